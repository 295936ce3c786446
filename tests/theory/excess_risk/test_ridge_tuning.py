"""The ridge of least risk: known optimum, brute force, boundary cases."""

import jax
import numpy as np
import pytest

from boundlab.theory.excess_risk import ridge as theory

POWER = np.arange(1.0, 33.0) ** -1.5
ONES = np.ones(32)


def total(
    mu: np.ndarray, theta_sq: np.ndarray, noise: float, ridge: float, num_samples: int
) -> float:
    profile = theory.risk(mu, theta_sq, noise, ridge, num_samples)
    return float(np.sum(profile.bias) + np.sum(profile.variance))


@pytest.mark.smoke
def test_isotropic_prior_has_a_known_optimum() -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        n = int(rng.integers(1, 150))
        # With N < d and a λ below the rounding of the smallest κ there is nothing to find.
        mu = np.exp(rng.normal(size=32) * rng.choice([0.1, 1.0] if n < 32 else [0.1, 5.0, 20.0]))
        noise = 10 ** rng.uniform(-4 if n < 32 else -12, 8)
        prior = 10 ** rng.uniform(-6, 2)
        best = float(theory.best_ridge(mu, np.full(32, prior), noise, n))
        assert abs(np.log(best) - np.log(noise / prior)) < 1e-6


def test_no_ridge_on_a_grid_does_better() -> None:
    rng = np.random.default_rng(2)
    grid = np.r_[0.0, 10 ** np.linspace(-12, 6, 400)]

    @jax.jit
    def curve(mu, theta_sq, noise, n) -> jax.Array:
        def at(ridge: jax.Array) -> jax.Array:
            profile = theory.ridge_profile(mu, theta_sq, noise, ridge, n)
            return profile.bias.sum() + profile.variance.sum()

        return jax.vmap(at)(grid)

    inside = 0
    for _ in range(40):
        mu = np.exp(rng.normal(size=32) * rng.choice([0.3, 3.0]))
        # Signal on a few directions, so that the curve can have several minima.
        theta_sq = rng.exponential(size=32) * (rng.random(32) < 0.2) + 1e-9
        theta_sq /= np.sum(mu * theta_sq)
        noise, n = 10 ** rng.uniform(-5, 1), int(rng.choice([5, 20, 31, 33, 100]))
        best = float(theory.best_ridge(mu, theta_sq, noise, n))
        values = np.asarray(curve(mu, theta_sq, np.float64(noise), np.float64(n)))
        least = np.nanmin(values)
        reached = total(mu, theta_sq, noise, best, n)
        assert reached <= least * (1 + 1e-9)
        assert reached >= least * 0.99
        inside += best > 0
    assert 10 < inside < 40


def test_spike_on_a_flat_tail() -> None:
    # Reference values of tuned ridge at d = 4096, to the digits that are known.
    theta_sq = np.r_[1.0, np.zeros(4095)]
    for mass, noise, n, expected in ((1.0, 1e-3, 128, 9.96e-5), (3.0, 1e-2, 32, 8.2e-3)):
        mu = np.r_[1.0, np.full(4095, mass / 4095)]
        best = float(theory.best_ridge(mu, theta_sq, noise, n))
        # The tail acts as a ridge that is already too large: no more is wanted.
        assert best == 0.0
        assert total(mu, theta_sq, noise, best, n) == pytest.approx(expected, rel=0.01)


def test_boundary_cases() -> None:
    assert float(theory.best_ridge(POWER, ONES, 0.0, 50)) == 0.0
    assert float(theory.best_ridge(POWER, 0 * ONES, 0.0, 5)) == 0.0
    assert np.isinf(float(theory.best_ridge(POWER, 0 * ONES, 1.0, 5)))
    assert np.isinf(float(theory.best_ridge(POWER, 0 * ONES, 1.0, 50)))
    # Signal where M is zero is no signal.
    padded = np.r_[POWER[:16], np.zeros(16)]
    extra = np.where(np.arange(32) < 16, 1.0, 1e6)
    np.testing.assert_allclose(theory.best_ridge(padded, extra, 0.5, 10), 0.5, rtol=1e-9)


def test_derivative_of_the_optimum() -> None:
    slope = jax.grad(lambda noise: theory.best_ridge(POWER, 2 * ONES, noise, 20))(0.3)
    np.testing.assert_allclose(slope, 0.5, rtol=1e-9)
