"""All of this study's theory: counts are static, public names described, internal ones left out."""

import inspect

import jax
import numpy as np
import pytest

from boundlab.theory.excess_risk import graph, relu, ridge, sgd

MU = np.arange(1.0, 9.0) ** -1.5


def test_traced_count_is_named() -> None:
    message = "num_samples: got a traced value, expected a static integer"
    for call in (
        lambda n: ridge.effective_ridge(MU, 0.2, n),
        lambda n: ridge.ols_risk(0.2, 3, n),
        lambda n: relu.ridge_risk(MU, np.ones(8), 0.3, 0.2, n),
        lambda n: relu.glmtron_risk([1.0], [1.0], 0.3, 0.2, n),
        lambda n: sgd.risk_curve([1.0], [1.0], 0.3, 0.2, n),
    ):
        with pytest.raises(ValueError, match=f"^{message}"):
            jax.jit(call)(20)
    static = jax.jit(ridge.effective_ridge, static_argnums=2)(MU, 0.2, 20)
    np.testing.assert_allclose(static, ridge.effective_ridge(MU, 0.2, np.int32(20)), rtol=1e-13)


@pytest.mark.parametrize("module", [ridge, relu, sgd, graph])
def test_public_names_are_functions_with_arguments_described(module) -> None:
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isfunction(value):
            for argument in inspect.signature(value).parameters:
                assert f"{argument}: " in value.__doc__, (name, argument)
    internal = {"ridge_profile", "split_risk"}
    assert not internal & set(module.__all__)
