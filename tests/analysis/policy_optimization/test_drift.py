"""Layout of the part on drift, its inner loops by slopes worked out by hand, and what its claims see."""

from collections.abc import Callable

import jax
import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.policy_optimization import drift, drift_lengths
from boundlab.analysis.policy_optimization.config import PRESETS

CLAIMS = {claim.id: claim for claim in drift.CLAIMS}
STEPS = 50


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("policy_optimization", "drift_")


def grpo_slope(log_ratio: np.ndarray, advantage: np.ndarray) -> np.ndarray:
    ratio = np.exp(log_ratio)
    return advantage * ratio * np.where(advantage > 0, ratio <= 1.2, ratio >= 0.8)


def gspo_slope(log_ratio: np.ndarray, advantage: np.ndarray) -> np.ndarray:
    """The token form: each token moves with its own advantage, at the sequence's ratio."""
    ratio = np.exp(log_ratio.mean(axis=2, keepdims=True))
    return advantage * ratio * np.where(advantage > 0, ratio <= 1.01, ratio >= 0.99)


def fiber_slope(log_ratio: np.ndarray, advantage: np.ndarray) -> np.ndarray:
    """Σ_i A_i G_i ∂log G_i/∂ρ_j, with T = 4, C⁺ = .12, C⁻ = .05, ε = .04."""
    up = log_ratio >= 0
    means = [np.maximum(s * log_ratio, 0).mean(axis=2, keepdims=True) for s in (1, -1)]
    base, slopes = [], []
    for x, budget in zip(means, (0.12, 0.05), strict=True):
        passed, rolled = x <= budget, x < 1.25 * budget
        base.append(np.where(passed, x, np.where(rolled, 5 * budget - 4 * x, 0)))
        slopes.append(np.where(passed, 1, np.where(rolled, -4, 0)))
    own, other = (np.where(up, *pair) for pair in (means, means[::-1]))
    u, v = np.abs(log_ratio) - own, -other
    sign = np.where(up, 1, -1)
    fiber = np.clip(sign * u, -0.04, 0.04) - np.clip(sign * v, -0.04, 0.04)
    paid = advantage * np.exp(base[0] - base[1] + fiber)
    near, far = (np.abs(x) <= 0.04 for x in (u, v))
    slope = near * paid
    for j in range(4):
        alike = up == up[:, :, j : j + 1]
        channel = np.where(up[:, :, j : j + 1], *slopes)
        slope[:, :, j] += (paid * (channel - near * alike - far * ~alike)).sum(axis=2) / 4
    return slope


@pytest.mark.parametrize(
    ("name", "slope"), [("GRPO", grpo_slope), ("GSPO", gspo_slope), ("FiberPO", fiber_slope)]
)
def test_inner_loop_without_differentiation(name: str, slope: drift.Slope, key: jax.Array) -> None:
    logits, reward = drift.tasks(jax.random.fold_in(key, 5), 2)
    one = jax.jit(lambda *task: drift._inner_loop(name, STEPS, *task))
    for setting in ({"step": 1.0, "own": 1.0}, {"step": 0.5, "own": 0.0}):
        step, own = 0.5 * setting["step"], setting["own"] > 0
        expected = drift.ascend(slope, logits, reward, step, own, STEPS)
        found = [one(x, r, setting)["moved"][-1] for x, r in zip(logits, reward, strict=True)]
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("slope", [drift._clamp_slope, drift._sequence_slope])
def test_slopes_of_rivals_by_differences(slope: drift.Slope) -> None:
    """At log-ratios on both sides of the limits, none of them at one."""
    rng = np.random.default_rng(3)
    advantage = rng.standard_normal((1, 40, 4))
    scale = 0.15 if slope is drift._clamp_slope else 0.02
    log_ratio = scale * rng.standard_normal((1, 40, 4))
    if slope is drift._clamp_slope:
        log_ratio[:, :8] += 0.3

    def objective(x: np.ndarray) -> np.ndarray:
        mean = x.mean(axis=2, keepdims=True)
        if slope is drift._clamp_slope:
            base = np.minimum(np.maximum(mean, -0.17), 0.17)
            gate = np.exp(base + np.minimum(np.maximum(x - base, -0.04), 0.04))
        else:
            side = np.sign(advantage.sum(axis=2, keepdims=True))
            gate = side * np.minimum(side * np.exp(mean), side * np.clip(np.exp(mean), 0.99, 1.01))
        return (gate * advantage).sum(axis=(0, 2))

    for j in range(4):
        step = np.zeros(4)
        step[j] = 1e-6
        expected = (objective(log_ratio + step) - objective(log_ratio - step)) / 2e-6
        np.testing.assert_allclose(slope(log_ratio, advantage)[0, :, j], expected, atol=1e-8)


def test_numbers_that_occur_once() -> None:
    rows = np.array([[1, 1, 2, 3], [4, 5, 5, 5], [0, 1, 2, 3], [7, 7, 7, 7]])
    np.testing.assert_array_equal(drift_lengths._alone(rows), [2, 1, 4, 0])


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("drift_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    config = PRESETS["smoke"]
    assert dataset["drift_moved"].shape == (3, config.drift_seeds, 3, config.drift_steps // 25 + 1)
    assert dataset["drift_alone"].shape == (config.drift_batches, 3)
    assert not dataset["drift_moved"].isel(drift_step=0).any()


def test_published_ranges(dataset: xr.Dataset) -> None:
    """Of another program and other random trees, 11 and 20 of them; the order in every tree."""
    ends = dataset["drift_moved"].isel(drift_step=-1).sel(drift_variant="sum")
    fiber, grpo, gspo = (ends.sel(drift_loss=name) for name in ("FiberPO", "GRPO", "GSPO"))
    assert (fiber < grpo).all()
    assert (grpo < gspo).all()
    for values, middle in ((fiber, 0.08), (grpo, 0.21), (gspo, 0.6)):
        np.testing.assert_allclose(values.median(), middle, rtol=0.2)


def test_cosines_spread_with_lengths(dataset: xr.Dataset) -> None:
    cosine = dataset["drift_cosine"].sel(drift_aggregation="mean, own")
    even = dataset["drift_spread"] < 1e-9
    np.testing.assert_allclose(cosine[even.values], 1.0, rtol=1e-12)
    assert float(cosine.min()) < 0.95
    np.testing.assert_allclose(dataset["drift_length"][even.values], 4.0, rtol=1e-12)


@pytest.mark.parametrize(
    ("claim", "variable", "factor"),
    [
        ("drift-fiberpo-grpo", "drift_moved", None),
        ("drift-budget", "drift_moved", 3.0),
        ("drift-gain", "drift_gained", None),
        ("drift-length-own", "drift_size", 1.001),
        ("drift-length-sum", "drift_cosine", 0.999),
        ("drift-alone", "drift_alone", 1.1),
    ],
)
def test_claims_see_the_data(
    dataset: xr.Dataset, claim: str, variable: str, factor: float | None
) -> None:
    """Losses exchanged, or numbers a little off."""
    if factor is None:
        changed = dataset[variable].copy(data=dataset[variable].values[[1, 0, 2]])
    else:
        changed = factor * dataset[variable]
    evidence = CLAIMS[claim].check(dataset.assign({variable: changed}))
    if evidence.exact is not None:
        assert not np.allclose(evidence.exact, evidence.reference, rtol=evidence.tolerance)
    elif evidence.compared_with is not None:
        assert (evidence.samples.mean(axis=0) > evidence.compared_with.mean(axis=0)).any()
    else:
        mean = evidence.samples.mean(axis=0)
        assert (np.abs(mean - evidence.reference) > 0.02 * evidence.reference).any()
