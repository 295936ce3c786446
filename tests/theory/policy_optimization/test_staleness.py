"""Delayed SGD against Lyapunov's equation, companion matrices and exact arithmetic."""

from decimal import Decimal, localcontext
from functools import cache

import jax
import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov
from scipy.optimize import brentq, minimize_scalar

from boundlab.theory.policy_optimization.staleness import (
    autocovariance,
    delayed_sgd_limit,
    gradient_autocorrelation,
    gradient_second_moment,
    mixture_cosine,
    oscillation_limit,
    parameter_variance,
)

DELAYS = (0, 1, 2, 4, 8, 16)
MOMENTS = (gradient_autocorrelation, gradient_second_moment, parameter_variance)


def companion(step: float, delay: int) -> np.ndarray:
    """(x_t, …, x_{t−τ}) to the next: row 0 is x_{t+1} = x_t − a x_{t−τ}."""
    matrix = np.eye(delay + 1, k=-1)
    matrix[0, 0] += 1.0
    matrix[0, -1] -= step
    return matrix


def radius(step: float, delay: int) -> float:
    return float(np.abs(np.linalg.eigvals(companion(step, delay))).max())


@cache
def stationary(step: float, delay: int) -> tuple[float, float, np.ndarray]:
    """Correlation, E g²/σ² and C_0 … C_τ (η = σ = 1) from the covariance of x_t, …, x_{t−τ−1}."""
    size = delay + 2
    matrix = np.eye(size, k=-1)
    matrix[0, 0] += 1.0
    matrix[0, delay] -= step
    noise = np.zeros((size, size))
    noise[0, 0] = 1.0
    lags = solve_discrete_lyapunov(matrix, noise)[0]
    # g_t = a x_{t−τ} + ξ_t; without delay x_t holds −ξ_{t−1}.
    square = step**2 * lags[0] + 1
    product = step**2 * lags[1] - (step if delay == 0 else 0.0)
    return product / square, square, lags


@cache
def exact(step: float, delay: int) -> tuple[float, float, float]:
    """The same three numbers (C_0 the last) for this very float, by the recursion in 90 digits.

    C_{k+1} = C_k − aC_{τ−k}, read from both ends at once: u_k = C_k, v_k = C_{τ−k}; both are linear in
    C_0 and C_τ, of which the far end of the recursion fixes the ratio.
    """
    with localcontext(prec=90):
        a = Decimal(step)
        ends = []
        for u, v in ((Decimal(1), Decimal(0)), (Decimal(0), Decimal(1))):
            for _ in range(delay):
                u = u - a * v
                v = v + a * u
            ends.append(u)
        # u_τ = C_τ: C_0·ends[0] + C_τ·ends[1] = C_τ.
        last = ends[0] / (1 - ends[1]) if delay else Decimal(1)  # C_τ/C_0
        start = 1 / (2 * a * last - a * a)
        before = last + a if delay else 1 - a  # C_{τ−1} = C_τ + aC_1 …
        if delay:
            before = last + a * (1 - a * last)  # … with C_1 = C_0 − aC_τ
        rho = (before / last - 1) / 2
        return float(rho), float(2 * a * last * start), float(start)


@pytest.mark.parametrize("delay", DELAYS)
def test_limit_by_companion_eigenvalues(delay):
    limit = float(delayed_sgd_limit(delay))
    assert radius(0.999 * limit, delay) < 1 < radius(1.001 * limit, delay)
    found = brentq(lambda a: radius(a, delay) - 1, 0.7 * limit, 1.3 * limit, xtol=1e-15)
    np.testing.assert_allclose(limit, found, rtol=1e-12)


def test_known_limits():
    known = {0: 2, 1: 1, 2: 0.6180339887, 4: 0.3472963553, 16: 0.0951638316, 32: 0.0483274905}
    for delay, value in known.items():
        np.testing.assert_allclose(delayed_sgd_limit(delay), value, rtol=2e-9)


@pytest.mark.parametrize("delay", DELAYS[1:])
def test_oscillation_limit_by_maximisation(delay):
    """A real root z of z^{τ+1} − z^τ + a needs a = z^τ(1 − z) for some z."""
    best = minimize_scalar(
        lambda z: -(z**delay) * (1 - z), bounds=(0, 1), method="bounded", options={"xatol": 1e-10}
    )
    limit = float(oscillation_limit(delay))
    np.testing.assert_allclose(limit, -best.fun, rtol=1e-12)
    # A double root: half the digits.
    np.testing.assert_allclose(radius(limit, delay), delay / (delay + 1), atol=1e-3)
    assert float(oscillation_limit(0)) == 1.0


def test_ratio_of_the_limits_tends_to_half_of_pi_e():
    ratios = [float(delayed_sgd_limit(d)) / float(oscillation_limit(d)) for d in (10, 100, 10**6)]
    errors = np.abs(np.array(ratios) - np.pi * np.e / 2)
    assert (errors[1:] < errors[:-1] / 50).all()
    assert errors[-1] < 1e-11


@pytest.mark.parametrize("delay", DELAYS)
def test_moments_by_lyapunov(delay):
    steps = np.array([0.02, 0.3, 0.5, 0.75, 0.9, 0.99]) * float(delayed_sgd_limit(delay))
    expected = [stationary(a, delay) for a in steps]
    for function, place in ((gradient_autocorrelation, 0), (gradient_second_moment, 1)):
        np.testing.assert_allclose(
            function(steps, delay), [found[place] for found in expected], rtol=1e-10
        )
    np.testing.assert_allclose(
        parameter_variance(steps, delay), [found[2][0] for found in expected], rtol=1e-10
    )
    for lag in range(delay + 2):
        np.testing.assert_allclose(
            autocovariance(steps, delay, lag),
            [found[2][lag] for found in expected],
            rtol=1e-10,
            atol=1e-12 / steps.min(),
        )


@pytest.mark.parametrize("delay", [0, 1, 2, 3, 8, 64, 256])
def test_moments_in_exact_arithmetic_up_to_both_ends(delay):
    limit = float(delayed_sgd_limit(delay))
    shares = np.array([1 - 1e-9, 1 - 1e-12, 1 - 1e-5, 0.5, 1e-3, 1e-12])
    steps = np.minimum(limit * shares, np.nextafter(limit, 0))
    expected = np.array([exact(a, delay) for a in steps]).T
    for function, numbers in zip(MOMENTS, expected, strict=True):
        np.testing.assert_allclose(function(steps, delay), numbers, rtol=1e-11)


def test_values_of_the_specification():
    table = {
        1: (0.25, 0.45, 0.495),
        2: (0.223607, 0.626711, 0.788174),
        4: (0.158148, 0.617030, 0.897407),
        8: (0.095948, 0.499877, 0.904238),
        16: (0.053183, 0.348779, 0.852701),
    }
    for delay, values in table.items():
        steps = np.array([0.5, 0.9, 0.99, 0.7, 0.2, 0.1]) * float(delayed_sgd_limit(delay))
        found = gradient_autocorrelation(steps, delay)[:3]
        np.testing.assert_allclose(found, values, atol=5e-7)


@pytest.mark.parametrize("delay", [0, 1])
def test_short_delays_are_exact(delay):
    steps = np.array([1e-300, 0.1, 0.37, 0.5, 0.9, 0.99])
    sign = -1 if delay == 0 else 1
    np.testing.assert_array_equal(gradient_autocorrelation(steps, delay), sign * steps / 2)
    np.testing.assert_allclose(gradient_second_moment(steps, 0), 2 / (2 - steps), rtol=1e-14)
    np.testing.assert_allclose(parameter_variance(steps, 0), 1 / steps / (2 - steps), rtol=1e-13)


@pytest.mark.parametrize("delay", [2, 8, 256])
def test_any_delay_flips_the_sign_and_correlation_grows_to_its_edge(delay):
    limit = float(delayed_sgd_limit(delay))
    steps = limit * np.append(np.linspace(1e-4, 0.999, 63), 1 - 1e-9)
    found = np.asarray(gradient_autocorrelation(steps, delay))
    assert (np.diff(found) > 0).all()
    assert (found > steps / 2).all()
    np.testing.assert_allclose(found[-1], np.cos(np.pi / (2 * delay + 1)), atol=1e-6)
    tiny = 1e-9 * limit
    np.testing.assert_allclose(gradient_autocorrelation(tiny, delay) / tiny, 0.5, rtol=1e-6)


def test_mixture_by_the_lyapunov_moments_of_its_modes():
    curvature = np.linspace(0.05, 1, 6)
    for delay, share in ((0, 0.5), (2, 0.9), (8, 0.9)):
        step_size = share * float(delayed_sgd_limit(delay))
        found = [stationary(step_size * value, delay) for value in curvature]
        expected = sum(rho * w for rho, w, _ in found) / sum(w for _, w, _ in found)
        np.testing.assert_allclose(
            mixture_cosine(curvature, step_size, delay), expected, rtol=1e-10
        )


def test_mixture_of_the_specification():
    modes = np.linspace(0.05, 1, 64)
    for delay, share, value in ((0, 0.5, -0.290), (8, 0.9, 0.1566), (16, 0.9, 0.0893)):
        step_size = share * float(delayed_sgd_limit(delay))
        np.testing.assert_allclose(mixture_cosine(modes, step_size, delay), value, atol=5e-4)


def test_mixture_at_the_edges():
    assert float(mixture_cosine([0.4], 0.5, 1)) == pytest.approx(0.1, rel=1e-14)
    assert float(mixture_cosine([1e-200, 1e-200], 1e-200, 3)) == pytest.approx(0.0, abs=1e-300)
    # One mode at the edge outweighs all others.
    limit = float(delayed_sgd_limit(4))
    found = mixture_cosine([1e-3, 1.0], np.nextafter(limit, 0), 4)
    np.testing.assert_allclose(found, np.cos(np.pi / 9), atol=1e-12)


def test_traced_steps_derivatives_and_nan_outside():
    @jax.jit
    def traced(step):
        return gradient_autocorrelation(step, 4), gradient_second_moment(step, 4)

    limit = float(delayed_sgd_limit(4))
    steps = np.array([-0.1, 0.0, 0.1, 0.3, limit, 3.0])
    for found, function in zip(traced(steps), MOMENTS, strict=False):
        np.testing.assert_array_equal(np.isnan(found), [True, True, False, False, True, True])
        np.testing.assert_allclose(found[2:4], function(steps[2:4], 4), rtol=1e-14)
    slope = jax.jit(jax.grad(lambda a: gradient_autocorrelation(a, 4)))
    for step in (1e-9, 0.3):
        width = 1e-4 * step
        around = [exact(step + width, 4)[0], exact(step - width, 4)[0]]
        np.testing.assert_allclose(slope(step), (around[0] - around[1]) / (2 * width), rtol=1e-6)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "function", "arguments"),
    [
        ("delay", delayed_sgd_limit, (-1,)),
        ("delay", delayed_sgd_limit, (1.5,)),
        ("delay", delayed_sgd_limit, (10**10,)),
        ("delay", oscillation_limit, (-1,)),
        ("delay", gradient_autocorrelation, (0.1, -1)),
        ("delay", mixture_cosine, ([0.1], 0.1, True)),
        ("step", gradient_autocorrelation, (0.0, 2)),
        ("step", gradient_autocorrelation, (-0.1, 2)),
        ("step", gradient_autocorrelation, (2.0, 0)),
        ("step", gradient_second_moment, ([0.1, 0.62], 2)),
        ("step", gradient_second_moment, (1.0, 1)),
        ("step", gradient_second_moment, (np.nan, 1)),
        ("step", parameter_variance, (0.618034, 2)),
        ("step", parameter_variance, ("a", 2)),
        ("lag", autocovariance, (0.1, 2, 4)),
        ("lag", autocovariance, (0.1, 2, -1)),
        ("curvature", mixture_cosine, ([0.0, 1.0], 0.1, 2)),
        ("curvature", mixture_cosine, ([np.inf, 1.0], 0.1, 2)),
        ("curvature", mixture_cosine, (1.0, 0.1, 2)),
        ("curvature", mixture_cosine, ([], 0.1, 2)),
        ("step_size", mixture_cosine, ([0.1, 1.0], 0.0, 2)),
        ("step_size", mixture_cosine, ([0.1, 1.0], 0.62, 2)),
        ("step_size", mixture_cosine, ([0.1, 1.0], [0.1], 2)),
        ("step_size", mixture_cosine, ([1e300, 1.0], 1e300, 2)),
    ],
)
def test_bad_input_is_named(named, function, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        function(*arguments)


def test_subnormal_steps_are_refused():
    for step in (5e-324, [0.1, 1e-310]):
        with pytest.raises(ValueError, match=r"^step: got .*≥ 8.9.*e-308 \(smaller ones"):
            gradient_autocorrelation(step, 0)
    for delay in (1, 2):
        found = gradient_autocorrelation(9e-308, delay)
        np.testing.assert_allclose(found, 4.5e-308, rtol=1e-14)
    np.testing.assert_allclose(mixture_cosine([1e-300, 1.0], 1e-10, 1), 0.25e-10, rtol=1e-10)
