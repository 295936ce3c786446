"""Samples that SGD needs to match tuned ridge: against a scan over all N, and what is known of it."""

import jax
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from boundlab.theory.excess_risk import graph, ridge, sgd


def least_by_loop(mu, theta_sq, noise, count):
    """Least risk over the step size by SciPy on a NumPy recursion."""
    limit = float(sgd.stability_limit(mu))
    start = count // 2

    def risk(log_step):
        x = np.exp(log_step) * mu
        e, cross, square = mu * theta_sq, 0 * mu, 0 * mu
        for t in range(count):
            if t >= start:
                square, cross = square + 2 * cross + e, (1 - x) * (cross + e)
            e = (1 - 2 * x + 2 * x**2) * e + x**2 * (e.sum() + noise)
        return square.sum() / (count - start) ** 2

    grid = np.log(limit) + np.linspace(-9, -1e-6, 40)
    best = int(np.argmin([risk(g) for g in grid]))
    ends = grid[max(best - 1, 0)], grid[min(best + 1, 39)]
    return minimize_scalar(risk, bounds=ends, method="bounded", options={"xatol": 1e-5}).fun


@pytest.mark.parametrize(("noise", "count"), [(1.0, 12), (0.05, 12), (0.3, 5)])
def test_least_number_of_samples_by_scan(noise, count):
    mu = np.array([0.4, 0.3, 0.2, 0.1])
    theta_sq = np.array([1.0, 0.2, 1.0, 2.0])
    grid = np.geomspace(1e-4, 1e4, 2001)
    target = min(
        float(sum(map(np.sum, ridge.risk(mu, theta_sq, noise, g, count)))) for g in grid[::20]
    )
    best = minimize_scalar(
        lambda g: float(sum(map(np.sum, ridge.risk(mu, theta_sq, noise, np.exp(g), count)))),
        bounds=(-9, 9),
        method="bounded",
        options={"xatol": 1e-6},
    )
    target = min(target, best.fun)
    needed = next(n for n in range(1, 400) if least_by_loop(mu, theta_sq, noise, n) <= target)
    got = graph.sample_inflation(mu, theta_sq, noise, count)
    assert float(got) == needed / count


def test_isotropic_teacher_needs_more_samples_than_ridge():
    """Ridge is Bayes-optimal there; without noise at N > d no number of samples is enough."""
    mu = np.square(graph.laplacian_spectrum("cycle", 64) + 1.0)
    mu = mu / mu.sum()
    for noise in (0.01, 1.0):
        factor = float(graph.sample_inflation(mu, np.ones(64), noise, 80))
        assert 1 < factor <= sgd.zou_inflation(mu, np.ones(64), noise, 80)
    assert np.isposinf(graph.sample_inflation(mu, np.ones(64), 0.0, 80, largest=4))
    assert float(graph.sample_inflation(mu, np.zeros(64), 1.0, 80)) == 1 / 80


def spike_and_flat_tail(tail):
    return np.concatenate([[1.0], np.full(4095, tail / 4095)]), np.eye(4096)[0]


@pytest.mark.parametrize(
    ("tail", "noise", "count", "low", "high"),
    [(1.0, 1e-3, 128, 3.2, 4.0), (0.3, 0.1, 32, 0.0, 0.7)],
)
def test_ridge_against_sgd_on_a_spike_with_a_flat_tail(tail, noise, count, low, high):
    """The tail acts on ridge as a penalty that can't be tuned away; SGD does not feel it."""
    mu, theta_sq = spike_and_flat_tail(tail)
    step = sgd.best_step_size(mu, theta_sq, noise, count)
    best = ridge.best_ridge(mu, theta_sq, noise, count)
    ridge_risk = sum(map(np.sum, ridge.risk(mu, theta_sq, noise, best, count)))
    sgd_risk = sum(map(np.sum, sgd.tail_averaged_risk(mu, theta_sq, noise, step, count)))
    assert low < ridge_risk / sgd_risk < high


def test_aligned_teacher_with_a_heavy_flat_tail_needs_fewer():
    mu, theta_sq = spike_and_flat_tail(3.0)
    assert float(graph.sample_inflation(mu, theta_sq, 1e-3, 32)) < 0.8


def test_batched_and_traced():
    mu = np.array([0.4, 0.3, 0.2, 0.1])
    noises = np.array([0.05, 0.3, 1.0])
    batch = jax.jit(jax.vmap(lambda s: graph.sample_inflation(mu, np.ones(4), s, 12)))(noises)
    single = [graph.sample_inflation(mu, np.ones(4), s, 12) for s in noises]
    np.testing.assert_allclose(batch, single, 1e-15)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mu", np.zeros(2)),
        ("theta_sq", np.ones(3)),
        ("noise_variance", -1.0),
        ("num_samples", 0),
        ("largest", 0),
    ],
)
def test_bad_value_is_named(name, value):
    good = {"mu": np.ones(2), "theta_sq": np.ones(2), "noise_variance": 1.0, "num_samples": 8}
    with pytest.raises(ValueError, match=rf"^{name}: got"):
        graph.sample_inflation(**{**good, name: value})
