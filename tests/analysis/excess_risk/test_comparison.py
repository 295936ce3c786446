"""Helpers and layout of the part that compares SGD with ridge."""

from collections.abc import Callable

import jax
import numpy as np
import pytest
import xarray as xr
from scipy.optimize import brentq, minimize_scalar

from boundlab.analysis.excess_risk import comparison, spiked
from boundlab.analysis.excess_risk.config import PRESETS

SMOKE = PRESETS["smoke"]


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("excess_risk", "comparison_")


def test_spectrum_and_teachers() -> None:
    mu = spiked.spectrum(9, 2.0)
    np.testing.assert_allclose(mu, [1] + [0.25] * 8)
    head, even = spiked.teachers(mu)
    np.testing.assert_allclose(head, [1] + [0] * 8)
    np.testing.assert_allclose(even, 1 / 3)


def test_instances_are_admissible() -> None:
    mu, fractions, noise = comparison.random_instances(jax.random.key(1), 24)
    assert mu.shape == (comparison.INSTANCES, 24)
    np.testing.assert_allclose(mu.sum(axis=1), 1.0)
    assert ((fractions > 0) & (fractions < 1)).all()
    assert noise.max() / noise.min() > 100


def test_best_ridge_for_an_even_teacher_is_noise_over_prior(dataset: xr.Dataset) -> None:
    # τ² = 1/Σμ = 1/(1 + T).
    found = dataset.comparison_spiked_lambda.sel(comparison_teacher="even").values
    np.testing.assert_allclose(found, spiked.NOISE * (1 + spiked.TAIL), rtol=1e-5)


def test_best_ridge_on_the_spike_by_scalar_search(dataset: xr.Dataset) -> None:
    # The two-level equations of the deterministic equivalent, solved by hand in κ.
    count, levels = 64, spiked.spectrum(SMOKE.spiked_dim, spiked.TAIL)

    def unspent(log_kappa: float, power: int) -> float:
        return count - np.sum((levels / (levels + np.exp(log_kappa))) ** power)

    def total(log_kappa: float) -> float:
        missed = (np.exp(log_kappa) / (1 + np.exp(log_kappa))) ** 2
        left = unspent(log_kappa, 2)
        return (count * missed + spiked.NOISE * (count - left)) / left

    # λ = κ (N − Σ𝓛) ≥ 0 keeps κ above that of λ = 0.
    lowest = brentq(unspent, -14, 0, args=(1,))
    best = minimize_scalar(total, bounds=(lowest, 0), method="bounded", options={"xatol": 1e-9})
    at = dataset.sel(comparison_teacher="head", comparison_samples=count)
    assert float(at.comparison_spiked_ridge_theory) == pytest.approx(best.fun, rel=1e-6)


def ratio_by_search(dim: int, tail: float, noise: float, count: int) -> float:
    """Best ridge over best SGD on the two levels of the spectrum, each tuned on a fine grid."""
    mu, copies, start = np.array([1.0, tail / (dim - 1)]), np.array([1, dim - 1]), count // 2
    # (steps, levels)
    x = np.geomspace(1e-3, 0.66, 2000)[:, None] * mu
    decay = 1 - x
    s, total = np.tile([1.0, 0.0], (len(x), 1)), np.zeros_like(x)
    for t in range(count):
        if t >= start:
            total += (1 + 2 * decay * (1 - decay ** (count - 1 - t)) / x) * s
        shared = (s * mu) @ copies + noise
        s = (1 - 2 * x + 2 * x**2) * s + x**2 / mu * shared[:, None]
    sgd = np.min(total @ (copies * mu)) / (count - start) ** 2
    learnt = mu / (mu + np.geomspace(1e-6, 10.0, 100_001)[:, None])
    # What is left of N is λ/κ: below the κ of λ = 0 there is no ridge.
    learnt = learnt[learnt @ copies <= count]
    spent = learnt**2 @ copies
    return np.min((count * (1 - learnt[:, 0]) ** 2 + noise * spent) / (count - spent)) / sgd


def test_stated_ratios_by_search(dataset: xr.Dataset) -> None:
    win, loss = spiked.STATED
    for name, case in (("comparison_stated_win", win), ("comparison_stated_loss", loss)):
        expected = ratio_by_search(spiked.STATED_DIM, *case)
        np.testing.assert_allclose(dataset[name], expected, rtol=2e-3)
    assert 3.2 < dataset["comparison_stated_win"] < 4.0
    assert dataset["comparison_stated_loss"] < 0.7


def test_layout(dataset: xr.Dataset) -> None:
    assert dataset.comparison_floor_ridge.dims == ("comparison_graph", "design")
    assert dataset.comparison_floor_sgd.sizes["comparison_fraction"] == len(comparison.FRACTIONS)
    assert dataset.comparison_phase.shape == (SMOKE.resolution, 2, SMOKE.resolution)
    assert set(dataset.comparison_simulated_samples.values) <= set(
        dataset.comparison_samples.values
    )
    even = dataset.comparison_phase.sel(comparison_teacher="even")
    assert (even < 1.01).all()
    stated = dataset.comparison_stated_win * dataset.comparison_spiked_handicap
    assert float(stated) == pytest.approx(1)
