"""Coefficients by integration and by conditioning, moments by one long linear map of the noises."""

from itertools import pairwise

import jax
import numpy as np
import pytest
import scipy.integrate

from boundlab.theory.graph_diffusion import (
    gaussian_kl,
    initialization_kl,
    noised_variance,
    probability_flow_variance,
    reverse_moments,
    reverse_sde_variance,
    step_coefficients,
    time_grid,
)

SCHEMES = ("exponential_integrator", "euler_maruyama", "ancestral", "probability_flow")
EIGENVALUES = np.array([1e-6, 0.05, 1.0, 3.0, 40.0])
TIMES = np.array([1.7, 1.1, 0.8, 0.35, 0.1, 0.02])


def test_exponential_integrator_solves_the_linear_equation():
    """Dy = (y + 2s) dr + √2 dW over length h with s fixed."""
    tau, t = 1.3, 0.9
    path = scipy.integrate.solve_ivp(
        lambda r, y: [y[0] + 2 * 0.7, y[1], 2 * y[2] + 2.0],
        (0.0, tau - t),
        [0.0, 1.0, 0.0],
        rtol=1e-12,
        atol=1e-13,
    )
    linear, score, noise = step_coefficients("exponential_integrator", tau, t)
    np.testing.assert_allclose([0.7 * score, linear, noise], path.y[:, -1], rtol=1e-10)


@pytest.mark.parametrize("t", [0.9, 0.0])
def test_ancestral_is_the_posterior_given_the_denoised_mean(t):
    """Law of x_t given x_τ and x_0 by Gaussian conditioning, with x_0 put to (x_τ + σ_τ² s)/m_τ."""
    tau = 1.3
    variance = [1 - np.exp(-2 * s) for s in (t, tau)]
    cross = np.exp(-(tau - t)) * variance[0]
    gain = cross / variance[1]
    x_now, s = 0.6, -0.8
    clean = (x_now + variance[1] * s) / np.exp(-tau)
    expected = np.exp(-t) * clean + gain * (x_now - np.exp(-tau) * clean)
    linear, score, noise = step_coefficients("ancestral", tau, t)
    np.testing.assert_allclose(linear * x_now + score * s, expected, rtol=1e-12)
    np.testing.assert_allclose(noise, variance[0] - gain * cross, rtol=1e-12, atol=1e-16)


def test_euler_coefficients_and_arrays():
    tau, t = np.array([1.0, 0.5]), np.array([0.75, 0.4])
    found = step_coefficients("euler_maruyama", tau, t)
    np.testing.assert_allclose(np.stack(found), [[1.25, 1.1], [0.5, 0.2], [0.5, 0.2]], rtol=1e-14)
    found = step_coefficients("probability_flow", tau, 0.4)
    np.testing.assert_allclose(np.stack(found), [[1.6, 1.1], [0.6, 0.1], [0.0, 0.0]], rtol=1e-14)


def by_hand(scheme, error, bias, mean):
    """Mean and variance from the output as an affine function of the start and all noises."""
    coefficients = [
        [float(c) for c in step_coefficients(scheme, *pair)] for pair in pairwise(TIMES)
    ]
    weights = np.zeros((len(TIMES), len(EIGENVALUES)))
    weights[0] = 1.0
    shift = np.zeros(len(EIGENVALUES))
    for k, (linear, score, noise) in enumerate(coefficients):
        v = 1 + (EIGENVALUES - 1) * np.exp(-2 * TIMES[k])
        # The score at y: −(1 + e)(y − e^{−τ}μ₀)/v + b.
        weights *= linear - score * (1 + error) / v
        shift *= linear - score * (1 + error) / v
        shift += score * ((1 + error) * np.exp(-TIMES[k]) * mean / v + bias)
        weights[k + 1] = np.sqrt(noise)
    return shift, (weights**2).sum(axis=0)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_moments_by_one_linear_map(scheme):
    mean = np.array([0.3, -1.0, 2.0, 0.5, 0.0])
    bias = np.array([0.1, 0.0, -0.2, 0.4, 1.0])
    found = reverse_moments(EIGENVALUES, TIMES, scheme, 0.2, bias, mean)
    for value, expected in zip(found, by_hand(scheme, 0.2, bias, mean), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-13)


def test_number_as_bias_stands_for_all_modes():
    found = reverse_moments(EIGENVALUES, TIMES, SCHEMES[0], score_bias=0.3)
    expected = reverse_moments(EIGENVALUES, TIMES, SCHEMES[0], score_bias=np.full(5, 0.3))
    np.testing.assert_array_equal(np.stack(found), np.stack(expected))


@pytest.mark.parametrize(
    ("scheme", "published"),
    [("exponential_integrator", 4.76e-5), ("euler_maruyama", 8.91e-5), ("ancestral", 3.00e-3)],
)
def test_published_kl_of_three_schemes(scheme, published):
    times = np.linspace(4.0, 0.01, 101)
    mean, variance = reverse_moments([3.0], times, scheme)
    assert float(mean[0]) == 0.0
    kl = gaussian_kl(noised_variance([3.0], 0.01), variance)
    np.testing.assert_allclose(kl, published, rtol=2e-3)


@pytest.mark.parametrize(
    ("scheme", "fixed"),
    [("exponential_integrator", 1.1110083427), ("euler_maruyama", 1.0526315789)],
)
def test_fixed_points_at_unit_variance(scheme, fixed):
    """400 steps of .1 from u = 1; (e^h + 1)/(3 − e^h) and 2/(2 − h)."""
    _, variance = reverse_moments([1.0], np.linspace(40.1, 0.1, 401), scheme)
    h = 0.1
    closed = {
        "exponential_integrator": (np.exp(h) + 1) / (3 - np.exp(h)),
        "euler_maruyama": 2 / (2 - h),
    }
    np.testing.assert_allclose(variance, fixed, atol=1e-9)
    np.testing.assert_allclose(variance, closed[scheme], rtol=1e-11)


def test_reverse_equations_without_steps():
    """Variance of the reverse SDE and of the flow by integrating their own equations."""
    horizon, stop = 1.5, 0.01
    lam = np.array([0.3, 3.0])

    def slope(r, u):
        v = 1 + (lam - 1) * np.exp(-2 * (horizon - r))
        return np.concatenate([(2 - 4 / v) * u[:2] + 2, (2 - 2 / v) * u[2:]])

    path = scipy.integrate.solve_ivp(
        slope, (0.0, horizon - stop), np.ones(4), rtol=1e-11, atol=1e-12, method="DOP853"
    )
    np.testing.assert_allclose(reverse_sde_variance(lam, horizon, stop), path.y[:2, -1], rtol=1e-9)
    np.testing.assert_allclose(
        probability_flow_variance(lam, horizon, stop), path.y[2:, -1], rtol=1e-9
    )


def test_flow_keeps_the_kl_of_its_start():
    lam = np.array([0.05, 0.9, 3.0, 100.0])
    kl = gaussian_kl(noised_variance(lam, 0.01), probability_flow_variance(lam, 2.0, 0.01))
    np.testing.assert_allclose(kl, initialization_kl(lam, 2.0), rtol=1e-11)


def test_traced_grid_may_repeat_its_end_and_batches():
    """Horizons under vmap, and steps of length 0 after the end that change nothing."""
    padded = np.concatenate([TIMES, [TIMES[-1]] * 2])
    moments = jax.jit(
        lambda times: [reverse_moments(EIGENVALUES, times, s, 0.1, 0.2) for s in SCHEMES]
    )
    for scheme, found in zip(SCHEMES, moments(padded), strict=True):
        expected = reverse_moments(EIGENVALUES, TIMES, scheme, 0.1, 0.2)
        np.testing.assert_allclose(np.stack(found), np.stack(expected), rtol=1e-13)


def test_vmap_over_horizons():
    def variance(horizon):
        grid = time_grid(horizon, 0.02, 5, "uniform")
        return reverse_moments(EIGENVALUES, grid, "euler_maruyama")[1]

    found = jax.vmap(variance)(np.array([1.0, 2.0]))
    np.testing.assert_allclose(found[1], variance(2.0), rtol=1e-13)


def test_extreme_sizes_stay_finite():
    """Horizons where e^{2T} overflows, tiny early stops, eigenvalues from 1e-6 to 1e6."""
    lam = np.array([1e-6, 1.0, 1e6])
    times = np.concatenate([np.linspace(1000.0, 1.0, 1000), np.geomspace(0.9, 1e-8, 40)])
    for scheme in ("exponential_integrator", "ancestral"):
        assert np.isfinite(np.stack(reverse_moments(lam, times, scheme, mean=lam))).all()
    assert np.isfinite(reverse_sde_variance(lam, 1000.0, 1e-8)).all()
    np.testing.assert_allclose(reverse_sde_variance(lam, 1000.0, 0.0), lam, rtol=1e-9)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "changed"),
    [
        ("eigenvalues", {"eigenvalues": [1.0, 0.0]}),
        ("eigenvalues", {"eigenvalues": [1.0, np.nan]}),
        ("eigenvalues", {"eigenvalues": []}),
        ("eigenvalues", {"eigenvalues": 2.0}),
        ("times", {"times": [1.0, 1.0]}),
        ("times", {"times": [1.0, 2.0]}),
        ("times", {"times": [1.0, -0.1]}),
        ("times", {"times": [1.0]}),
        ("times", {"times": [1000.0, 0.1]}),
        ("scheme", {"scheme": "euler"}),
        ("relative_score_error", {"relative_score_error": [0.1]}),
        ("score_bias", {"score_bias": [0.1, 0.2, 0.3]}),
        ("score_bias", {"score_bias": np.inf}),
        ("score_bias", {"score_bias": [[0.1], [0.2, 0.3]]}),
        ("mean", {"mean": 1.0}),
        ("mean", {"mean": [1.0]}),
    ],
)
def test_bad_input_is_named(named, changed):
    arguments = {"eigenvalues": [1.0, 2.0], "times": [1.0, 0.1], "scheme": SCHEMES[0]}
    with pytest.raises(ValueError, match=rf"^{named}: "):
        reverse_moments(**arguments | changed)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "arguments"),
    [
        ("scheme", ("rk4", 1.0, 0.5)),
        ("t", (SCHEMES[0], 1.0, 1.0)),
        ("t", (SCHEMES[0], 1.0, -0.1)),
        ("t", (SCHEMES[0], [1.0, 2.0], [0.1, 0.2, 0.3])),
        ("t", (SCHEMES[0], 500.0, 1.0)),
        ("tau", (SCHEMES[0], np.nan, 0.5)),
    ],
)
def test_bad_steps_are_named(named, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        step_coefficients(*arguments)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize("function", [reverse_sde_variance, probability_flow_variance])
def test_bad_spans_are_named(function):
    for named, arguments in (
        ("early_stop", ([1.0], 1.0, 1.0)),
        ("horizon", ([1.0], 0.0, 0.0)),
        ("eigenvalues", ([-1.0], 1.0, 0.1)),
    ):
        with pytest.raises(ValueError, match=rf"^{named}: "):
            function(*arguments)
    with pytest.raises(ValueError, match=r"^t: "):
        noised_variance([1.0], -1.0)
