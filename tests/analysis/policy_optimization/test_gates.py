"""Layout of the part on gates, some of its numbers by hand, and claims that see changed numbers."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.policy_optimization import gates
from boundlab.analysis.policy_optimization.config import PRESETS
from boundlab.analysis.policy_optimization.gates_claims import CLAIMS
from boundlab.verdicts import judge


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("policy_optimization", "gates_")


def test_layout(dataset: xr.Dataset) -> None:
    config = PRESETS["smoke"]
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("gates_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    assert dataset["gates_jacobian_error"].shape == (3 * config.gates_batches,)
    assert dataset["gates_base_weight"].shape == (config.gates_grid,) * 2


def test_ratios_come_to_every_regime(dataset: xr.Dataset) -> None:
    """Errors of the wrong theories show where gates act; at the smallest scale they may not."""
    scale = dataset["gates_scale"].values
    assert (dataset["gates_uncoupled_error"].values[scale > 0.05] > 1e-2).all()
    assert (dataset["gates_cross_trajectory"].values[scale > 0.2] > 1e-3).mean() > 0.5
    assert set(np.unique(dataset["gates_far_regime"].values)[:5]) == {0, 1, 2, 3, 4}
    assert set(np.unique(dataset["gates_near_regime"].values)[:4]) == {0, 1, 2, 3}


def test_numbers_by_hand(dataset: xr.Dataset) -> None:
    """Base weights at C⁺ = .2, C⁻ = .1, two tokens; gradients of ten tokens in rollback."""
    at = dataset["gates_base_weight"].interp(gates_s_plus=0.15, gates_s_minus=0.2)
    np.testing.assert_allclose(at, 0.15, atol=1e-12)
    plus, minus = np.exp(11 * 0.12 - 10 * 0.125), np.exp(-(11 * 0.05 - 10 * 0.0525))
    expected = [-plus, plus, -minus, minus]
    np.testing.assert_allclose(dataset["gates_rollback"], expected, rtol=1e-12)
    np.testing.assert_array_equal(dataset["gates_restores"], [1, -1, -1, 1])
    # Where the minimum takes the ratio itself: A·r/T.
    expected = [-plus, -np.exp(0.125) / 10, np.exp(-0.0525) / 10, minus]
    np.testing.assert_allclose(dataset["gates_pessimistic_gradient"], expected, rtol=1e-12)
    np.testing.assert_allclose(dataset["gates_end"], [-0.13, 0.2], rtol=1e-12)
    np.testing.assert_allclose(dataset["gates_on_policy_sign"], 5 / 6, rtol=1e-12)
    np.testing.assert_allclose(dataset["gates_common_clip"], 1.0, rtol=1e-12)


MEASURED = (
    "theory_error",
    "jacobian_error",
    "off_trajectory",
    "on_policy",
    "box_error",
    "end",
    "symmetry_error",
    "density_error",
    "reflecting",
    "depth_error",
    "cross_domain",
    "common",
    "rollback",
    "pessimistic_excess",
    "long",
    "restores_pessimistic",
    "largest_log_gate",
)


def test_claims_look_at_the_data(dataset: xr.Dataset) -> None:
    """With every measured number moved by a thousandth, none but the ones with slack holds."""
    moved = dataset.assign({f"gates_{name}": dataset[f"gates_{name}"] + 1e-3 for name in MEASURED})
    checked = [[claim.check(data) for claim in CLAIMS] for data in (dataset, moved)]
    controls = [claim.control(dataset) for claim in CLAIMS]
    before, after = (judge(CLAIMS, found, controls, false_alarm_rate=1e-3) for found in checked)
    assert all(verdict.status == "holds" and verdict.control_rejected for verdict in before)
    holding = [verdict.claim for verdict in after if verdict.status == "holds"]
    assert holding == ["gates-lipschitz"]
    steeper = dataset.assign(gates_slope=dataset["gates_slope"] + 2.5)
    slopes = next(claim for claim in CLAIMS if claim.id == "gates-lipschitz")
    (verdict,) = judge(
        [slopes], [slopes.check(steeper)], [slopes.control(steeper)], false_alarm_rate=1e-3
    )
    assert verdict.status == "violated"


def test_wrong_kernel_loses_what_padding_takes() -> None:
    base = np.array([[0.3, 0.1]] * 6)
    lifted = np.asarray(gates._padded_kernel(jnp.asarray(base), gates.MASK))
    share = np.array([1, 5 / 6, 4 / 6, 1, 3 / 6, 0])
    np.testing.assert_allclose(lifted.sum(axis=1), share[:, None] * base, atol=1e-15)
