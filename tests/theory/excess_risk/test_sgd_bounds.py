"""Bounds never fail on random instances, keep their published form, and are not trivially loose."""

import jax
import numpy as np
import pytest

from boundlab.theory.excess_risk import sgd

DIRECTIONS = 12


def instances(seed, number, top):
    """Random spectra, teachers, noises and step sizes, single-direction teachers among them."""
    rng = np.random.default_rng(seed)
    mu = rng.random((number, DIRECTIONS)) ** rng.choice([0.1, 1.0, 6.0], size=(number, 1))
    delta0_sq = rng.random((number, DIRECTIONS)) ** rng.choice([0.1, 5.0], size=(number, 1))
    single = rng.random(number) < 0.3
    one = np.eye(DIRECTIONS)[rng.integers(DIRECTIONS, size=number)]
    delta0_sq = np.where(single[:, None], one, delta0_sq)
    noise = 10.0 ** rng.uniform(-4, 2, size=number) * (rng.random(number) < 0.8)
    fraction = rng.choice([0.01, 0.1, 0.5, 0.9, 0.99], size=number)
    return mu, delta0_sq, noise, fraction * top(mu)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 32, 33, 200])
def test_two_sided_bound_holds(count):
    cases = instances(count, 60, jax.vmap(sgd.stability_limit))
    risk = jax.vmap(lambda *a: sum(sgd.tail_averaged_risk(*a, count)).sum())(*cases)
    lower, upper = jax.vmap(lambda *a: sgd.risk_bounds(*a, count))(*cases)
    slack = 1 + 1e-12
    assert np.all(lower <= risk * slack)
    assert np.all(risk <= upper * slack)


def test_two_sided_bound_parts_by_hand():
    """N = 4, one direction: filter, dimension and free variance worked out."""
    mu, start, noise, step = 0.5, 2.0, 0.3, 0.4
    x = mu * step
    average = ((1 - x) ** 2 + (1 - x) ** 3) / 2  # of the mean over t = 2, 3
    gain = 0.5 * x / (1 - x)
    dimension = min(2 / (4 * (1 - x)), 4 * x**2)
    a = 1 - 2 * x + 2 * x**2
    free = [0, 1, 1 + a, 1 + a + a**2]
    variance = x**2 * ((1 + 2 * (1 - x)) * free[2] + free[3]) / 4
    got = sgd.risk_bounds([mu], [start], noise, step, 4)
    mean = mu * start * average**2
    np.testing.assert_allclose(got.lower, mean + noise * variance, 1e-14)
    expected = mean + (noise + 2 * mu * start) / (1 - gain) * dimension
    np.testing.assert_allclose(got.upper, expected, 1e-14)


def test_lower_variance_is_a_fixed_share_of_the_dimension():
    """V ≥ .23 Σ min{2/N, N x²} for x < ½, N ≥ 10: the two sides differ by a constant factor."""
    for count in (10, 11, 64, 500):
        x = np.geomspace(1e-6, 0.49, 60)
        share = []
        for value in x:
            low = sgd.risk_bounds([1.0], [0.0], 1.0, value, count).lower
            share.append(float(low) / min(2 / count, count * value**2))
        assert min(share) > 0.23


def test_a_wrong_constant_is_noticed():
    """The upper side without the feedback 1/(1 − h) is below the risk somewhere: the test has power."""
    mu, delta0_sq, noise, step = instances(5, 60, jax.vmap(sgd.stability_limit))
    zero = np.zeros_like(delta0_sq)
    noise = noise + 1.0
    variance = jax.vmap(lambda *a: sgd.tail_averaged_risk(*a, 400).variance.sum())(
        mu, zero, noise, step
    )
    upper = jax.vmap(lambda *a: sgd.risk_bounds(*a, 400).upper)(mu, zero, noise, step)
    x = step[:, None] * mu
    gain = 0.5 * np.sum(x / (1 - x), axis=1)
    assert np.all(variance <= upper)
    assert np.any(variance > upper * (1 - gain))


def test_traced_unstable_step_has_no_upper_bound():
    got = jax.jit(lambda g: sgd.risk_bounds(np.ones(3), np.ones(3), 1.0, g, 8))(2.0)
    assert np.isposinf(got.upper)


def published_limit(mu):
    return 1 / (3 * np.sum(mu, axis=1))


@pytest.mark.parametrize("count", [2, 3, 10, 101])
def test_published_bounds_hold(count):
    cases = instances(100 + count, 60, published_limit)
    risk = jax.vmap(lambda *a: sum(sgd.tail_averaged_risk(*a, count, 0)).sum())(*cases)
    lower, upper = jax.vmap(lambda *a: sgd.zou_bounds(*a, count))(*cases)
    assert np.all(lower <= risk)
    assert np.all(risk <= upper)


@pytest.mark.parametrize("start", [0, 5, 50, 100])
def test_published_tail_bound_holds(start):
    cases = instances(300 + start, 60, published_limit)
    risk = jax.vmap(lambda *a: sum(sgd.tail_averaged_risk(*a, 101, start)).sum())(*cases)
    upper = jax.vmap(lambda *a: sgd.zou_tail_bound(*a, 101, start))(*cases)
    assert np.all(risk <= upper)


def published_by_loops(mu, delta0_sq, noise, step, count, alpha, beta):
    """Both published sides for descending `mu`, with k* and sums written as in the paper."""
    k = max([i + 1 for i, m in enumerate(mu) if m >= 1 / (step * count)], default=0)
    head, tail = range(k), range(k, len(mu))
    tail_power = sum(mu[i] * delta0_sq[i] for i in tail)
    bias = sum(delta0_sq[i] / mu[i] for i in head) / (step * count) ** 2 + tail_power
    dim = k / count + count * step**2 * sum(mu[i] ** 2 for i in tail)
    margin = 1 - step * alpha * sum(mu)
    start = 2 * alpha * (sum(delta0_sq[i] for i in head) + count * step * tail_power)
    variance = (start / (count * step * margin) + noise / margin) * dim
    lower = bias / 100 + beta / 1000 * tail_power * dim + noise / 50 * dim
    return 2 * lower, 2 * (2 * bias + 2 * variance), k


@pytest.mark.parametrize("count", [2, 40, 4000])
def test_published_bounds_term_by_term(count):
    rng = np.random.default_rng(7)
    mu = np.sort(rng.random(10) ** 3)[::-1]
    delta0_sq, step = rng.random(10), 0.8 / (2.5 * mu.sum())
    lower, upper, k = published_by_loops(mu, delta0_sq, 0.3, step, count, 2.5, 0.7)
    order = rng.permutation(10)
    got = sgd.zou_bounds(mu[order], delta0_sq[order], 0.3, step, count, alpha=2.5, beta=0.7)
    np.testing.assert_allclose(got, (lower, upper), 1e-13)
    assert int(sgd.learnable_directions(mu[order], step, count)) == k
    # All iterates averaged: the tail bound has twice the multiplicative term, otherwise the same.
    noise_only = sgd.zou_tail_bound(mu, 0 * mu, 0.3, step, count, 0, alpha=2.5)
    expected = sgd.zou_bounds(mu, 0 * mu, 0.3, step, count, alpha=2.5).upper
    np.testing.assert_allclose(noise_only, expected, 1e-13)


def test_published_lower_side_is_attained_up_to_its_constant():
    """N = 2, θ_0 = θ*, k* = 0: exact/lower = 25/8."""
    mu, step = np.array([0.6, 0.4]), 0.01
    exact = sgd.tail_averaged_risk(mu, [0.0, 0.0], 1.0, step, 2, 0).variance.sum()
    np.testing.assert_allclose(
        exact / sgd.zou_bounds(mu, [0, 0], 1.0, step, 2).lower, 25 / 8, 1e-12
    )


def test_published_inflation_by_hand():
    mu, theta_sq = np.array([0.5, 2.0, 1.0]), np.array([1.0, 1.0, 2.0])
    signal, count = 4.5 / 0.5, 2
    condition = 3.5 / (2 * 1.0)  # the second largest eigenvalue is 1
    expected = (1 + signal) * condition * max(1, np.log(condition * np.sqrt(signal * count)))
    np.testing.assert_allclose(sgd.zou_inflation(mu, theta_sq, 0.5, count), expected, 1e-14)
    np.testing.assert_allclose(sgd.zou_inflation(mu, 0 * mu, 0.5, count), condition, 1e-14)
    assert np.isposinf(sgd.zou_inflation([1.0, 0.0], [1.0, 1.0], 0.5, 2))
