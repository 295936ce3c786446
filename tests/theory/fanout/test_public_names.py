"""All of this study's theory: public names described, counts static, any precision of the caller."""

import inspect

import jax
import numpy as np
import pytest

from boundlab.theory import fanout

FUNCTIONS = sorted(n for n in fanout.__all__ if inspect.isfunction(getattr(fanout, n)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_argument_is_described(name):
    function = getattr(fanout, name)
    for argument in inspect.signature(function).parameters:
        assert f"{argument}: " in function.__doc__, argument
    for part in ("Returns:", "Raises:", "Source:"):
        assert part in function.__doc__, part


def test_float32_outside_is_float64_inside(ragged):
    """The same numbers with x64 off, and refusal of what was traced there."""
    x, y, w = (value.astype(np.float32) for value in ragged[1:])
    calls = {
        "moments": lambda: fanout.neighbor_mean_moments(ragged, x, 2),
        "distance": lambda: fanout.row_distance([3, 4], 2, "nuclear"),
        "noise": lambda: fanout.gradient_covariance(ragged, x, y, w, 2, 2),
        "floor": lambda: fanout.noise_floor(ragged, x, y, 2, 2, 0.01),
        "loss": lambda: fanout.sampled_loss_moments(ragged, x, y, w, 2),
        "time": lambda: fanout.hitting_time([3.0, 2.0], [1.0, 1.0], 1.0),
    }
    for name, call in calls.items():
        wide = call()
        with jax.enable_x64(False):
            narrow = call()
        for a, b in zip(jax.tree.leaves(wide), jax.tree.leaves(narrow), strict=True):
            np.testing.assert_array_equal(a, b, err_msg=name)
            assert np.asarray(b).dtype == np.float64, name
    with jax.enable_x64(False), pytest.raises(ValueError, match="traced with x64 off"):
        jax.jit(lambda e: fanout.hitting_time([3.0, 2.0], [1.0, 1.0], e).mean)(1.0)
