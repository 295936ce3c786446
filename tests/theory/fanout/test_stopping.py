"""Stopping times against a tree of outcomes, quadrature-free hand values and simulated checks."""

import itertools

import jax
import numpy as np
import pytest
from scipy.stats import norm

from boundlab import testing
from boundlab.theory import fanout

LOSSES = np.array([0.9, 0.6, 0.5, 0.45, 0.44])
DEVIATIONS = np.array([0.3, 0.2, 0.0, 0.1, 0.1])


@pytest.mark.smoke
def test_tree_of_outcomes():
    """Every sequence of stop or go at the five checks, with its probability."""
    stop = norm.cdf((0.4 - LOSSES[[0, 1, 3, 4]]) / DEVIATIONS[[0, 1, 3, 4]])
    stop = np.insert(stop, 2, 0.0)  # the third check is certain, and its loss is above the target
    mean = censored = 0.0
    for outcome in itertools.product([False, True], repeat=5):
        chance = np.prod(np.where(outcome, stop, 1 - stop))
        mean += chance * (outcome.index(True) + 1 if any(outcome) else 5)
        censored += chance * (not any(outcome))
    got = fanout.hitting_time(LOSSES, DEVIATIONS, 0.4)
    np.testing.assert_allclose([got.mean, got.censored], [mean, censored], rtol=1e-13)


@pytest.mark.parametrize(
    ("target", "mean", "censored"),
    [(0.3, 5, 1), (0.44, 5, 0), (0.45, 4, 0), (0.5, 3, 0), (0.89, 2, 0), (0.9, 1, 0), (5, 1, 0)],
)
def test_certain_checks(target, mean, censored):
    assert fanout.hitting_time(LOSSES, np.zeros(5), target) == (mean, censored)


def test_simulated_checks():
    rng = np.random.default_rng(12)
    level = 0.3 + 0.7 * 0.97 ** np.arange(80)
    deviation = np.full(80, 0.03)
    seen = level + deviation * rng.normal(size=(20_000, 80))
    hit = seen <= 0.36
    time = np.where(hit.any(axis=1), hit.argmax(axis=1) + 1, 80).astype(float)
    got = fanout.hitting_time(level, deviation, 0.36)
    testing.assert_mean_equal(time, got.mean)
    lower = fanout.hitting_time(level, deviation, 0.32)
    testing.assert_mean_equal(1.0 - (seen <= 0.32).any(axis=1), lower.censored)


@pytest.mark.smoke
def test_tiny_chances_and_long_runs():
    """Products over 40,000 checks, in logarithms; a check that is all but certain."""
    certain = fanout.hitting_time(np.full(40_000, -40.0), np.ones(40_000), 0.0)
    np.testing.assert_allclose(certain.mean, 1.0, rtol=0)
    many = fanout.hitting_time(np.full(40_000, 4.0), np.ones(40_000), 0.0)
    chance = norm.cdf(-4.0)
    np.testing.assert_allclose(many.censored, np.exp(40_000 * np.log1p(-chance)), rtol=1e-10)
    restricted = -np.expm1(40_000 * np.log1p(-chance)) / chance
    np.testing.assert_allclose(many.mean, restricted, rtol=1e-10)


def test_transformations():
    """jit(vmap) equals single calls; the derivative in the target, differences; no NaN at sd 0."""
    targets = np.array([0.35, 0.4, 0.5])
    many = jax.jit(jax.vmap(lambda e: fanout.hitting_time(LOSSES, DEVIATIONS, e)))(targets)
    for i, target in enumerate(targets):
        one = fanout.hitting_time(LOSSES, DEVIATIONS, target)
        np.testing.assert_allclose([many.mean[i], many.censored[i]], one, rtol=1e-13)
    mean = lambda e: fanout.hitting_time(LOSSES, DEVIATIONS, e).mean  # noqa: E731
    slope = (mean(0.4 + 1e-6) - mean(0.4 - 1e-6)) / 2e-6
    np.testing.assert_allclose(jax.grad(mean)(0.4), slope, rtol=1e-7)
    for argument in range(2):
        gradient = jax.grad(lambda *a: fanout.hitting_time(*a, 0.4).mean, argument)(
            LOSSES, DEVIATIONS
        )
        assert np.isfinite(gradient).all()


BAD = [
    ("losses", np.ones((2, 2))),
    ("losses", []),
    ("losses", [1.0, np.nan, 1.0]),
    ("losses", [1.0, np.inf, 1.0]),
    ("standard_deviations", [0.1, 0.1]),
    ("standard_deviations", [0.1, -0.1, 0.1]),
    ("standard_deviations", [0.1, np.nan, 0.1]),
    ("target", np.nan),
    ("target", [0.1]),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_bad_input_is_named(as_users_call, name, value):
    good = {"losses": np.ones(3), "standard_deviations": np.ones(3), "target": 0.5}
    with pytest.raises(ValueError, match=f"^{name}: got"):
        fanout.hitting_time(**{**good, name: value})
