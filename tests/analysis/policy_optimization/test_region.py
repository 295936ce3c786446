"""The part on trust regions: layout, worst cases worked by hand, and claims that can fail."""

from collections.abc import Callable

import jax
import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.policy_optimization import region, region_cases
from boundlab.analysis.policy_optimization.config import PRESETS
from boundlab.analysis.policy_optimization.region_claims import CLAIMS
from boundlab.claims import Evidence
from boundlab.verdicts import judge


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("policy_optimization", "region_")


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("region_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    config = PRESETS["smoke"]
    assert dataset["region_simulated"].shape == (config.region_seeds, len(region.SIMULATED))
    assert (dataset["region_kind"] == "random").sum() == config.region_processes
    assert (dataset["region_tree_kind"] == "random").sum() == 5 * config.region_trees


def test_cases_lie_on_both_sides(dataset: xr.Dataset) -> None:
    """Steps that are limited and not, samples inside and outside, gains and losses."""
    unlimited = np.isclose(dataset["region_step"], dataset["region_unlimited"])
    assert 3 <= unlimited.sum() <= unlimited.size - 3
    outside = dataset["region_before"] > dataset["region_radius_apc"]
    assert 0.2 < outside.mean() < 0.95
    assert 0.2 < (dataset["region_gain"] > 0).mean() < 0.9
    assert dataset["region_feasible"].mean() > 0.8
    assert dataset["region_tree_proper"].mean() > 0.3


def test_worst_cases_by_hand(dataset: xr.Dataset) -> None:
    """Away from the first state after t steps with probability 1 − (1 − α)ᵗ; there all is lost twice."""
    for kind, gain in (("mixture", "mixture_gain"), ("small step", "gain")):
        at = np.flatnonzero(dataset["region_kind"] == kind)
        for place in at:
            discount = float(dataset["region_discount"][place])
            far = float(dataset["region_share"][place])
            size = far if kind == "mixture" else 2 * far
            times = np.arange(2000)
            expected = size * (discount**times * (2 * (1 - far) ** times - 1)).sum()
            found = float(dataset[f"region_{gain}"][place])
            np.testing.assert_allclose(found, expected, rtol=1e-10)
    astray = dataset["region_kind"].values == "gains astray"
    ratio = (dataset["region_step_gain"] / dataset["region_guarantee"]).values[astray]
    # 2 − (1/8)/(1 + 1/16), but for the actions that aren't quite tied.
    np.testing.assert_allclose(ratio, 2 - 2 / 17, rtol=2e-4)


def test_worst_trees_by_enumeration(key: jax.Array) -> None:
    """Sums over the 3^H leaves of π′ and π, each path's rewards added up token by token."""
    trees, kinds = region_cases.trees(key, 1)
    at = [i for i, kind in enumerate(kinds) if kind == "worst" and trees.horizon[i] == 3]
    assert len(at) == len(region_cases.WORST)
    for place, far in zip(at, region_cases.WORST, strict=True):
        total = 0.0
        for path in np.ndindex(3, 3, 3):
            chance, paid, away = 1.0, 0.0, False
            for token in path:
                old = (0.5 - far, 0.5 + far, 0.0) if away else (0.5 - far, 0.5, far)
                chance *= old[token]
                paid += ((1, -1, 1) if away else (-1, 1, 1))[token]
                away |= token == 2
            total += chance * paid
        # Later tokens of the shape's five change nothing.
        leaves = trees.leaf_reward[place].reshape(27, 9)
        np.testing.assert_array_equal(leaves, leaves[:, :1].repeat(9, axis=1))
        expected = 2 * far * sum(2 * (1 - far) ** t - 1 for t in range(3))
        np.testing.assert_allclose(total, expected, rtol=1e-12)
        assert leaves[0, 0] == -3
        assert leaves[-1, 0] == 3


def test_golden_section() -> None:
    found = jax.jit(lambda top: region._best_radius(lambda d: -((d - top) ** 2)))(0.3217)
    np.testing.assert_allclose(found, 0.3217, rtol=1e-6)


def test_controls_are_theories_of_their_own(dataset: xr.Dataset) -> None:
    """None is its claim turned round."""

    def sides(evidence: Evidence) -> list[np.ndarray]:
        values = evidence.samples if evidence.exact is None else evidence.exact
        return [np.asarray(values), np.asarray(evidence.reference)]

    for claim in CLAIMS:
        checked, control = (sides(check(dataset)) for check in (claim.check, claim.control))
        turned = [np.array_equal(a, b) for a, b in zip(checked, control[::-1], strict=True)]
        negated = [np.array_equal(a, -b) for a, b in zip(checked, control, strict=True)]
        assert not all(turned), claim.id
        assert not all(negated), claim.id


@pytest.mark.parametrize(
    ("claim", "variable", "factor"),
    [
        ("region-closed-form", "region_step", 1.001),
        ("region-retraction", "region_after", 1.2),
        ("region-step-least", "region_step_gain", 0.95),
        ("region-step-most", "region_step_gain", 1.1),
        ("region-radius", "region_radius_found", 1.01),
        ("region-trpo", "region_gain", 0.99),
        ("region-finite", "region_tree_gain", 0.99),
        ("region-one-step", "region_tree_gain", 1.01),
        ("region-simulated", "region_simulated", 0.5),
    ],
)
def test_claims_look_at_the_data(
    dataset: xr.Dataset, claim: str, variable: str, factor: float
) -> None:
    """Values that are off violate them."""
    found = next(item for item in CLAIMS if item.id == claim)
    changed = dataset.assign({variable: factor * dataset[variable]})
    (verdict,) = judge(
        [found], [found.check(changed)], [found.control(changed)], false_alarm_rate=1e-3
    )
    assert verdict.status == "violated"
