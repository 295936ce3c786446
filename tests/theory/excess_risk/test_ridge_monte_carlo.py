"""Ridge: the deterministic equivalent against drawn designs, label noise averaged exactly."""

import numpy as np
import pytest

from boundlab.theory.excess_risk import ridge as theory


def conditional_profile(
    rng: np.random.Generator,
    mu: np.ndarray,
    theta_sq: np.ndarray,
    noise_variance: float,
    ridge: float,
    num_samples: int,
    draws: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Bias and variance of each direction, (draws, d), given each design.

    The bias is averaged over the signs of θ*, on which its mean does not depend.
    """
    designs = rng.normal(size=(draws, num_samples, len(mu))) * np.sqrt(mu)
    gram = np.swapaxes(designs, 1, 2) @ designs
    resolvent = np.linalg.inv(gram + ridge * np.eye(len(mu)))
    bias = mu * ridge**2 * (resolvent**2 @ theta_sq)
    variance = noise_variance * mu * ((resolvent @ gram) * resolvent).sum(2)
    return bias, variance


@pytest.mark.parametrize("num_samples", [30, 50, 128])
@pytest.mark.parametrize("ridge", [0.05, 0.5])
def test_total_risk(ridge: float, num_samples: int) -> None:
    rng = np.random.default_rng(3)
    # A four-regular circulant graph on 64 nodes, G = L + I.
    angle = 2 * np.pi * np.arange(64) / 64
    mu = (5 - 2 * np.cos(angle) - 2 * np.cos(2 * angle)) ** 2
    mu /= mu.sum()
    theta_sq = rng.exponential(size=64)
    bias, variance = conditional_profile(rng, mu, theta_sq, 0.25, ridge, num_samples, 1000)
    drawn = (bias + variance).sum(1)
    profile = theory.risk(mu, theta_sq, 0.25, ridge, num_samples)
    expected = float(np.sum(profile.bias) + np.sum(profile.variance))
    assert drawn.std() / np.sqrt(len(drawn)) < 0.004 * expected
    assert 0.98 < drawn.mean() / expected < 1.02


def test_ordinary_least_squares_is_the_limit() -> None:
    rng = np.random.default_rng(4)
    mu = np.arange(1.0, 65.0) ** -1.0
    _, variance = conditional_profile(rng, mu, np.zeros(64), 0.25, 0.0, 128, 400)
    drawn = variance.sum(1)
    exact = float(theory.ols_risk(0.25, 64, 128))
    error = drawn.std() / np.sqrt(len(drawn))
    assert error < 0.01 * exact
    assert abs(drawn.mean() - exact) < 4.5 * error


def test_profile_per_direction() -> None:
    rng = np.random.default_rng(5)
    mu = np.arange(1.0, 41.0) ** -1.0
    theta_sq = np.arange(1.0, 41.0) / 40
    bias, variance = conditional_profile(rng, mu, theta_sq, 0.25, 1.0, 45, 4000)
    profile = theory.risk(mu, theta_sq, 0.25, 1.0, 45)
    scale = 1 / np.sqrt(len(bias))
    # The equivalent is asymptotic: 4 % of model error on top of 4.5 standard errors.
    for drawn, expected in ((bias, profile.bias), (variance, profile.variance)):
        allowed = 4.5 * drawn.std(0) * scale + 0.04 * np.asarray(expected)
        assert np.all(np.abs(drawn.mean(0) - expected) < allowed)
        assert np.all(allowed < 0.09 * np.asarray(expected))
    # The summands of the formula for the total miss the head's bias by far.
    kappa = float(theory.effective_ridge(mu, 1.0, 45))
    df2 = np.sum((mu / (mu + kappa)) ** 2)
    summand = 45 / (45 - df2) * (kappa / (mu + kappa)) ** 2 * mu * theta_sq
    assert bias[:, 0].mean() > 50 * summand[0]
    np.testing.assert_allclose(np.sum(profile.bias), summand.sum(), rtol=1e-12)


def test_risk_at_the_prior_ridge_is_the_posterior_variance() -> None:
    # For θ* ~ N(0, τ²I) no estimator beats the posterior mean: E tr M (S/σ² + I/τ²)^{-1}.
    rng = np.random.default_rng(6)
    mu = np.arange(1.0, 65.0) ** -1.0
    noise, prior = 0.5, 2.0
    designs = rng.normal(size=(400, 50, 64)) * np.sqrt(mu)
    precision = np.swapaxes(designs, 1, 2) @ designs / noise + np.eye(64) / prior
    floor = (np.diagonal(np.linalg.inv(precision), axis1=1, axis2=2) @ mu).mean()
    profile = theory.risk(mu, np.full(64, prior), noise, noise / prior, 50)
    np.testing.assert_allclose(np.sum(profile.bias) + np.sum(profile.variance), floor, rtol=0.01)
