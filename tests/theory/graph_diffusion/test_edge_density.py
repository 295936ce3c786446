"""Law of the sampler on one edge, against dense quadrature, Gaussian recursions and published values."""

from itertools import pairwise

import jax
import numpy as np
import pytest
import scipy.special
import scipy.stats

from boundlab.precision import x64
from boundlab.theory.graph_diffusion import edge_sampling_errors, propagate_edge_density


def half_and_half(steps: int, horizon: float = 3.0, early_stop: float = 0.02) -> np.ndarray:
    coarse = np.linspace(horizon, 1, steps // 2 + 1)
    return np.concatenate([coarse, np.geomspace(1, early_stop, steps - steps // 2 + 1)[1:]])


def moved(y: np.ndarray, tau: float, t: float, p: float, low: float, high: float) -> np.ndarray:
    """Mean of a step of the exponential integrator, with the score from the two normals."""
    mean, std = np.exp(-tau), np.sqrt(-np.expm1(-2 * tau))
    absent, present = (scipy.stats.norm.logpdf(y, mean * code, std) for code in (low, high))
    edge = scipy.special.expit(present - absent + np.log(p / (1 - p)))
    guess = low + (high - low) * edge
    return np.exp(tau - t) * y + 2 * np.expm1(tau - t) * (mean * guess - y) / std**2


@pytest.mark.parametrize(("p", "low", "high"), [(0.3, -1.0, 1.0), (0.1, 0.0, 1.0)])
def test_dense_kernels(p, low, high):
    """Transition matrices on another grid, step by step, without any transform."""
    times = np.array([1.5, 1.0, 0.6, 0.4, 0.3])
    y = np.linspace(-8, 8, 1201)
    density = scipy.stats.norm.pdf(y)
    for tau, t in pairwise(times):
        std = np.sqrt(np.expm1(2 * (tau - t)))
        centre = moved(y, tau, t, p, low, high)
        density = scipy.stats.norm.pdf(y[:, None], centre[None, :], std) @ density * (y[1] - y[0])
    grid, found = propagate_edge_density(times, p, low, high, half_width=8.0, num_points=2401)
    np.testing.assert_allclose(grid[::2], y, atol=1e-12)
    np.testing.assert_allclose(found[::2], density, atol=1e-12)


def test_share_of_edges_by_the_last_step():
    """P(y > θ) from the normal tails of the last step, whose kernel needs no grid above θ."""
    times, p, size = (
        np.array([1.5, 1.0, 0.6, 0.4, 0.3, 0.2]),
        0.1,
        {"half_width": 8.0, "num_points": 2401},
    )
    grid, before = (np.asarray(a) for a in propagate_edge_density(times[:-1], p, **size))
    centre = moved(grid, times[-2], times[-1], p, 0.0, 1.0)
    std = np.sqrt(np.expm1(2 * (times[-2] - times[-1])))
    tails = scipy.stats.norm.sf(0.5 * np.exp(-times[-1]), centre, std)
    expected = np.sum(before * tails) * (grid[1] - grid[0])
    found = edge_sampling_errors(times, p, **size)["probability"]
    np.testing.assert_allclose(float(found), expected, atol=2e-8)


def test_certain_edge_is_gaussian():
    """For p → 0 the edge is the constant 0: the variance obeys the recursion of a Gaussian mode."""
    times = np.array([2.0, 1.4, 1.0, 0.7, 0.5])
    result = propagate_edge_density(times, 1e-15, half_width=12.0, num_points=2401)
    grid, density = (np.asarray(a) for a in result)
    variance = 1.0
    for tau, t in pairwise(times):
        factor = np.exp(tau - t) - 2 * np.expm1(tau - t) / -np.expm1(-2 * tau)
        variance = factor**2 * variance + np.expm1(2 * (tau - t))
    np.testing.assert_allclose(density, scipy.stats.norm.pdf(grid, 0, variance**0.5), atol=1e-12)


def test_published_values():
    """KL, total variation and share of edges to their printed digits; mass 1; p = ½ stays ½."""
    table = [
        (0.5, -1.0, 40, 0.01100, 0.0513, 0.5),
        (0.3, -1.0, 40, 0.01120, 0.0519, 0.3128),
        (0.1, 0.0, 40, 0.01172, 0.0565, 0.1288),
        (0.1, 0.0, 100, 0.00200, 0.0225, 0.1144),
    ]
    shares = []
    for p, low, steps, kl, variation, share in table:
        times = half_and_half(steps)
        errors = edge_sampling_errors(times, p, low)
        # The published share of the last but one row is .1288, that of its definition .1286.
        np.testing.assert_allclose(float(errors["kl"]), kl, atol=6e-6)
        np.testing.assert_allclose(float(errors["total_variation"]), variation, atol=6e-5)
        shares.append(float(errors["probability"]))
        np.testing.assert_allclose(shares[-1], share, atol=2.5e-4)
    grid, density = propagate_edge_density(times, p, low)
    np.testing.assert_allclose(np.sum(density) * float(grid[1] - grid[0]), 1.0, atol=1e-12)
    np.testing.assert_allclose(shares[0], 0.5, atol=1e-12)


def test_finer_grids_agree():
    times = np.array([1.5, 1.0, 0.6, 0.4, 0.3])
    coarse, fine = (
        edge_sampling_errors(times, 0.1, half_width=w, num_points=n)
        for w, n in ((11.0, 2401), (12.0, 4501))
    )
    np.testing.assert_allclose(float(coarse["kl"]), float(fine["kl"]), rtol=1e-10)
    np.testing.assert_allclose(float(coarse["probability"]), float(fine["probability"]), atol=2e-8)
    np.testing.assert_allclose(
        float(coarse["total_variation"]), float(fine["total_variation"]), atol=2e-5
    )


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"times": [1.0, 0.99999]}, "num_points"),
        ({"times": [1.0, 0.95, 0.5], "num_points": 100}, "num_points"),
        ({"num_points": 10}, "num_points"),
        ({"num_points": 300.5}, "num_points"),
        ({"half_width": 1.0}, "half_width"),
        ({"half_width": -1.0}, "half_width"),
        ({"half_width": 1e308}, "half_width"),
        ({"num_points": 10**400}, "num_points"),
        ({"low": -40.0, "high": -39.0}, "half_width"),
        ({"times": [0.5, 1.0]}, "times"),
        ({"times": [0.5, 0.0]}, "times"),
        ({"times": [0.5]}, "times"),
        ({"probability": 1.0}, "probability"),
        ({"probability": [0.1, 0.2]}, "probability"),
        ({"low": 1.0}, "low"),
    ],
)
def test_bad_input(change, named):
    arguments = {"times": [1.0, 0.7, 0.5], "probability": 0.3} | change
    for function in (propagate_edge_density, edge_sampling_errors):
        with pytest.raises(ValueError, match=f"^{named}:"):
            function(**arguments)


def test_known_times_with_a_traced_probability():
    times = np.array([1.0, 0.7, 0.5])
    with x64():
        traced = jax.jit(lambda p: propagate_edge_density(times, p, num_points=301)[1])(0.3)
    _, density = propagate_edge_density(times, 0.3, num_points=301)
    np.testing.assert_allclose(traced, density, rtol=1e-12, atol=1e-16)


def test_data_outside_the_grid():
    """The sampler starts too far off to find the edges at 40, and stays on the grid: the data don't."""
    times = np.array([1.0, 0.7, 0.5])
    propagate_edge_density(times, 0.3, high=40.0)
    with pytest.raises(ValueError, match=r"^half_width:.*noised data"):
        edge_sampling_errors(times, 0.3, high=40.0)
