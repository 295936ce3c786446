"""Divergences by quadrature of densities and quantiles, and by 50-digit arithmetic."""

from decimal import Decimal, localcontext

import jax
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from boundlab.theory.graph_diffusion import (
    bretagnolle_huber,
    gaussian_kl,
    gaussian_w2,
    pinsker,
    w2_early_stop,
)


@pytest.mark.parametrize(
    ("v", "u", "target", "mean"), [(2.0, 0.5, 0.3, -0.4), (0.1, 3.0, 1.0, 0.0)]
)
def test_kl_by_quadrature(v, u, target, mean):
    p, q = scipy.stats.norm(target, v**0.5), scipy.stats.norm(mean, u**0.5)
    expected, _ = scipy.integrate.quad(
        lambda x: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), *p.interval(1 - 1e-15), epsabs=1e-13
    )
    np.testing.assert_allclose(gaussian_kl(v, u, target, mean), expected, rtol=1e-9)


@pytest.mark.parametrize("ratio", [1 + 2.0**-40, 1 - 2.0**-30, 1.2, 1.3, 0.78, 0.7, 1e6, 1e-6])
def test_kl_to_rounding(ratio):
    """½(x − log(1 + x)) to 50 digits, on both sides of where the series takes over."""
    with localcontext() as context:
        context.prec = 50
        x = Decimal(ratio) - 1
        expected = float((x - (1 + x).ln()) / 2)
    np.testing.assert_allclose(gaussian_kl(ratio, 1.0), expected, rtol=2e-14)


def test_shapes_and_edges():
    found = gaussian_kl(np.array([1.0, 2.0]), np.array([1.0, 1.0]), 0.5)
    np.testing.assert_allclose(found, [0.125, 0.125 + (1 - np.log(2)) / 2], rtol=1e-14)
    assert float(gaussian_kl(2.0, 2.0, 1.0, 1.0)) == 0.0
    assert float(jax.jit(gaussian_kl)(1.0, 0.0)) == np.inf


def test_distance_by_quantiles():
    """One mode: W2² = ∫ (F^{−1} − G^{−1})² over (0, 1); several add up."""
    laws = [((2.0, 0.3), (0.5, -0.4)), ((0.1, 1.0), (3.0, 0.0))]
    squares = []
    for (v, target), (u, mean) in laws:
        nodes, weights = np.polynomial.hermite_e.hermegauss(20)
        gap = (target + v**0.5 * nodes) - (mean + u**0.5 * nodes)
        squares.append((weights * gap**2).sum() / weights.sum())
    (v, target), (u, mean) = (np.array(column).T for column in zip(*laws, strict=True))
    np.testing.assert_allclose(gaussian_w2(v, u, target, mean), np.sqrt(sum(squares)), rtol=1e-12)


def test_distance_of_equal_and_degenerate_laws():
    assert float(gaussian_w2([0.0, 1.0], [0.0, 1.0])) == 0.0
    np.testing.assert_allclose(gaussian_w2([0.0, 4.0], [9.0, 4.0]), 3.0, rtol=1e-15)
    gradient = jax.grad(lambda u: gaussian_w2(np.array([0.0, 1.0]), u))(np.array([0.0, 1.0]))
    assert np.isfinite(gradient).all()


def test_early_stop():
    """Against the distance of the two laws themselves."""
    lam, mean, stop = np.array([0.2, 1.0, 7.0]), np.array([1.0, -2.0, 0.0]), 0.05
    noised = lam * np.exp(-2 * stop) + 1 - np.exp(-2 * stop)
    expected = np.sqrt(
        ((np.sqrt(lam) - np.sqrt(noised)) ** 2).sum() + ((1 - np.exp(-stop)) ** 2 * mean**2).sum()
    )
    np.testing.assert_allclose(w2_early_stop(lam, stop, mean), expected, rtol=1e-12)
    assert float(w2_early_stop(lam, 0.0, mean)) == 0.0


def test_total_variation_of_gaussians_is_below_both():
    for v, shift in ((1.5, 0.0), (1.0, 0.4), (9.0, 2.0)):
        p, q = scipy.stats.norm(shift, v**0.5), scipy.stats.norm()
        exact = (
            0.5
            * scipy.integrate.quad(
                lambda x, p=p, q=q: abs(p.pdf(x) - q.pdf(x)), -30, 30, limit=200, epsabs=1e-10
            )[0]
        )
        kl = float(gaussian_kl(v, 1.0, shift))
        assert exact <= float(pinsker(kl))
        assert exact <= float(bretagnolle_huber(kl)) < 1.0
    np.testing.assert_allclose(pinsker(np.array([0.0, 2.0])), [0.0, 1.0])
    np.testing.assert_allclose(bretagnolle_huber(1e-20), 1e-10, rtol=1e-14)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "function", "arguments"),
    [
        ("variance_target", gaussian_kl, (0.0, 1.0)),
        ("variance", gaussian_kl, (1.0, -1.0)),
        ("variance", gaussian_kl, ([1.0, 2.0], [1.0, 2.0, 3.0])),
        ("mean", gaussian_kl, (1.0, 1.0, 0.0, np.nan)),
        ("variance", gaussian_w2, (1.0, -1.0)),
        ("mean_target", gaussian_w2, ([1.0, 1.0], 1.0, [[1.0]])),
        ("early_stop", w2_early_stop, ([1.0], -0.1)),
        ("eigenvalues", w2_early_stop, ([0.0], 0.1)),
        ("kl", pinsker, (-1e-9,)),
        ("kl", bretagnolle_huber, (np.nan,)),
    ],
)
def test_bad_input_is_named(named, function, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        function(*arguments)
