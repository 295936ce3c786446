"""Helpers and layout of the part that compares SGD with ridge."""

import jax
import numpy as np
import pytest
import xarray as xr
from scipy.optimize import minimize_scalar

from boundlab import sweep
from boundlab.analysis.excess_risk import comparison, spiked
from boundlab.analysis.excess_risk.config import Config

TINY = Config(
    num_seeds=64,
    num_designs=8,
    num_nodes=16,
    num_samples=(12, 40),
    structure_nodes=32,
    spiked_dim=64,
    resolution=3,
)


def repeat(name: str, *args: object, **kwargs: object) -> xr.Dataset:
    return sweep(*args, progress=False, **kwargs)


@pytest.fixture(scope="module")
def dataset() -> xr.Dataset:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spiked, "STATED_DIM", TINY.spiked_dim)  # shares the programs of the curves
        return comparison.run(TINY, jax.random.key(3), repeat)


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
    count, tail = 64, spiked.TAIL / 63

    def total(log_kappa: float) -> float:
        kappa = np.exp(log_kappa)
        levels = np.array([1.0] + [tail] * 63)
        learnt = levels / (levels + kappa)
        missed = (1 - learnt[0]) ** 2
        unspent = count - np.sum(learnt**2)
        return (count * missed + spiked.NOISE * np.sum(learnt**2)) / unspent

    best = minimize_scalar(total, bounds=(-14, 0), method="bounded", options={"xatol": 1e-9})
    at = dataset.sel(comparison_teacher="head", comparison_samples=count)
    assert float(at.comparison_spiked_ridge_theory) == pytest.approx(best.fun, rel=1e-6)


def test_layout(dataset: xr.Dataset) -> None:
    assert dataset.comparison_floor_ridge.dims == ("comparison_graph", "design")
    assert dataset.comparison_floor_sgd.sizes["comparison_fraction"] == 3
    assert dataset.comparison_phase.shape == (3, 2, 3)
    assert set(dataset.comparison_simulated_samples.values) <= set(
        dataset.comparison_samples.values
    )
    even = dataset.comparison_phase.sel(comparison_teacher="even")
    assert (even < 1.01).all()
    stated = dataset.comparison_stated_win * dataset.comparison_spiked_handicap
    assert float(stated) == pytest.approx(1)
