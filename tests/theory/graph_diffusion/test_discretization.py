"""Discretisation terms by Gauss quadrature of the gap's variance, and by 60-digit arithmetic."""

from decimal import Decimal, localcontext
from itertools import pairwise

import jax
import numpy as np
import pytest

from boundlab.theory.graph_diffusion import (
    discretization_ei,
    discretization_em,
    discretization_with_score_error,
    integrated_squared_precision,
    noised_variance,
)

EIGENVALUES = np.array([0.05, 0.5, 1.0, 3.0, 20.0])
TIMES = np.linspace(3.0, 0.01, 21)
NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)


def v(t, lam):
    return 1 + (lam - 1) * np.exp(-2 * t)


def by_quadrature(rate, times=TIMES, lam=EIGENVALUES):
    """Σ ∫ rate(s, τ, λ) ds over the steps."""
    total = np.zeros(len(lam))
    for tau, t in pairwise(times):
        half = (tau - t) / 2
        s = (tau + t) / 2 + half * NODES[:, None]
        total += half * (WEIGHTS[:, None] * rate(s, tau, lam[None, :])).sum(axis=0)
    return total


def score_rate(s, tau, lam, error=0.0):
    """E(score gap)² with X_τ = e^{−r}X_s + noise: a sum of two squares."""
    decay = np.exp(-(tau - s))
    slope = (1 + error) * decay / v(tau, lam) - 1 / v(s, lam)
    return slope**2 * v(s, lam) + (1 - decay**2) * ((1 + error) / v(tau, lam)) ** 2


def drift_rate(s, tau, lam):
    """¼E(drift gap)², drift (1 − 2/v)x."""
    decay = np.exp(-(tau - s))
    first, last = 1 - 2 / v(s, lam), 1 - 2 / v(tau, lam)
    return 0.25 * ((first - last * decay) ** 2 * v(s, lam) + last**2 * (1 - decay**2))


def test_exponential_integrator_by_quadrature():
    found = discretization_ei(EIGENVALUES, TIMES)
    np.testing.assert_allclose(found, by_quadrature(score_rate), rtol=1e-12)
    published = [1.0955563250, 0.5290048440, 0.4255375208, 0.3072181491, 0.1590434109]
    np.testing.assert_allclose(found, published, atol=6e-11)


def test_euler_maruyama_by_quadrature():
    found = discretization_em(EIGENVALUES, TIMES)
    np.testing.assert_allclose(found, by_quadrature(drift_rate), rtol=1e-12)


@pytest.mark.parametrize("error", [0.1, -0.3])
def test_score_error_by_quadrature(error):
    bias = np.array([0.0, 0.1, 0.2, -0.3, 0.4])
    found = discretization_with_score_error(EIGENVALUES, TIMES, error, bias)
    expected = by_quadrature(lambda *args: score_rate(*args, error)) + bias**2 * 2.99
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    without = discretization_with_score_error(EIGENVALUES, TIMES)
    np.testing.assert_allclose(without, discretization_ei(EIGENVALUES, TIMES), rtol=1e-14)


def exact_step(lam, tau, t):
    """(D_EI, D_EM) of one step in 60 digits, from the cancelling formulas of the page."""
    with localcontext() as context:
        context.prec = 60
        lam, tau, t = Decimal(lam), Decimal(tau), Decimal(t)
        h, g = tau - t, (lam - 1) * (-2 * tau).exp()
        start, end = 1 + g, 1 + g * (2 * h).exp()
        log = (start / end).ln() / 2
        score = log + h - (2 * (1 - (-h).exp()) - h) / start
        b = 1 - 2 / start
        squares = h + g * ((2 * h).exp() - 1) / 2 - 4 * h + 4 * (h + log)
        product = g * (h.exp() - 1) - (1 - (-h).exp())
        return float(score), float((squares + b**2 * start * h - 2 * b * product) / 4)


@pytest.mark.parametrize("lam", [1e-6, 0.05, 1.0, 3.0, 1e6])
@pytest.mark.parametrize(
    ("tau", "t"),
    [(1.0, 1.0 - 2.0**-30), (2.0**-20, 2.0**-21), (2.0, 0.5), (9.0, 1e-8), (400.0, 200.0)],
)
def test_no_digits_are_lost(lam, tau, t):
    """Steps from 1e-9 to 200, eigenvalues from 1e-6 to 1e6."""
    score, drift = exact_step(lam, tau, t)
    found = discretization_ei([lam], [tau, t])
    np.testing.assert_allclose(found, score, rtol=2e-12)
    found = discretization_em([lam], [tau, t])
    np.testing.assert_allclose(found, drift, rtol=1e-9)


def test_leading_order():
    """D/h → ∫v^{−2} and ∫(½ − 1/v)², by quadrature; the error is of first order in h and extrapolates."""
    fine, coarse = (np.linspace(3.0, 0.01, steps + 1) for steps in (1000, 500))
    padded = np.pad(coarse, (0, 500), "edge")
    integral = integrated_squared_precision(EIGENVALUES, 3.0, 0.01)
    rates = {
        discretization_ei: lambda s, _, lam: v(s, lam) ** -2.0,
        discretization_em: lambda s, _, lam: (0.5 - 1 / v(s, lam)) ** 2,
    }
    np.testing.assert_allclose(integral, by_quadrature(rates[discretization_ei]), rtol=1e-11)
    for term, rate in rates.items():
        compiled, limit = jax.jit(term), by_quadrature(rate)
        near = np.asarray(compiled(EIGENVALUES, fine)) / (fine[0] - fine[1]) / limit - 1
        far = np.asarray(compiled(EIGENVALUES, padded)) / (coarse[0] - coarse[1]) / limit - 1
        np.testing.assert_allclose(2 * near - far, 0.0, atol=1e-3)
        if term is discretization_ei:
            assert (np.abs(near[1:]) < 2e-3).all()


def test_traced_grids_repeat_their_end():
    padded = np.concatenate([TIMES, [0.01, 0.01]])
    for term in (discretization_ei, discretization_em):
        found = jax.jit(term)(EIGENVALUES, padded)
        np.testing.assert_allclose(found, term(EIGENVALUES, TIMES), rtol=1e-13)


def test_derivative():
    """Of the larger term, whose formula holds the other's, at λ = 1 too, by central differences."""

    def total(lam):
        return discretization_em(lam, TIMES).sum()

    gradient = jax.grad(total)(EIGENVALUES)
    for i, lam in enumerate(EIGENVALUES):
        shift = np.zeros(5)
        shift[i] = 1e-5 * lam
        moved = (total(EIGENVALUES + shift) - total(EIGENVALUES - shift)) / (2e-5 * lam)
        np.testing.assert_allclose(gradient[i], moved, rtol=1e-6, atol=1e-8)


def test_score_has_fisher_information_one_over_v():
    """S5: J = 1/σ² − m²/σ⁴·mmse with the conditional variance λσ²/v."""
    for t in (0.05, 0.7):
        m, sigma_sq = np.exp(-t), 1 - np.exp(-2 * t)
        joint = np.stack([[EIGENVALUES, m * EIGENVALUES], [m * EIGENVALUES, v(t, EIGENVALUES)]])
        mmse = joint[0, 0] - joint[0, 1] ** 2 / joint[1, 1]
        fisher = 1 / sigma_sq - m**2 / sigma_sq**2 * mmse
        np.testing.assert_allclose(1 / noised_variance(EIGENVALUES, t), fisher, rtol=1e-10)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "function", "arguments"),
    [
        ("eigenvalues", discretization_ei, ([0.0], [1.0, 0.1])),
        ("eigenvalues", discretization_em, (1.0, [1.0, 0.1])),
        ("times", discretization_ei, ([1.0], [0.1, 1.0])),
        ("times", discretization_em, ([1.0], [1.0, -1.0])),
        ("times", discretization_ei, ([1.0], [[1.0, 0.5]])),
        ("relative_score_error", discretization_with_score_error, ([1.0], [1.0, 0.1], np.nan)),
        ("score_bias", discretization_with_score_error, ([1.0], [1.0, 0.1], 0.0, [1.0, 2.0])),
        ("early_stop", integrated_squared_precision, ([1.0], 1.0, 2.0)),
    ],
)
def test_bad_input_is_named(named, function, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        function(*arguments)
