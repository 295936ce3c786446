"""Cost of the start: by quadrature of densities, for Gaussians, a point mass and discrete laws."""

import jax
import numpy as np
import pytest
import scipy.integrate
import scipy.special

from boundlab.theory.graph_diffusion import (
    discrete_hermite_moments,
    gaussian_kl,
    initialization_chi2,
    initialization_kl,
    initialization_kl_universal,
)


def normal(x, mean=0.0, std=1.0):
    """Density of N(mean, std²); SciPy's takes 40 times as long for a number, which `quad` asks for."""
    return np.exp(-0.5 * ((x - mean) / std) ** 2) / (std * np.sqrt(2 * np.pi))


def divergences(values, weights, horizon):
    """KL and χ² of the noised discrete law from N(0, 1), by adaptive quadrature."""
    m, std = np.exp(-horizon), np.sqrt(1 - np.exp(-2 * horizon))

    def density(x):
        return np.dot(weights, normal(x, m * np.asarray(values), std))

    def kl(x):
        return density(x) * (np.log(density(x)) + x**2 / 2 + np.log(2 * np.pi) / 2)

    def chi2(x):
        return (density(x) - normal(x)) ** 2 / normal(x)

    return [scipy.integrate.quad(f, -9, 9, epsabs=1e-14, limit=400)[0] for f in (kl, chi2)]


LAWS = [([0.0, 1.0], [0.9, 0.1]), ([-1.0, 1.0], [0.5, 0.5]), ([-1.0, 0.5, 2.0], [0.2, 0.5, 0.3])]


def test_gaussian_modes_against_the_divergence():
    lam, mean = np.array([1e-6, 0.3, 1.0, 5.0, 1e6]), np.array([0.0, 1.0, -2.0, 0.5, 0.0])
    for horizon in (0.3, 2.0):
        v = 1 + (lam - 1) * np.exp(-2 * horizon)
        expected = gaussian_kl(v, 1.0, np.exp(-horizon) * mean)
        np.testing.assert_allclose(initialization_kl(lam, horizon, mean), expected, rtol=1e-9)


def test_small_and_empty_costs():
    """¼(λ − 1)²e^{−4T} far out, where 1 + (λ − 1)e^{−2T} is 1 to rounding; 0 in the limit."""
    found = initialization_kl([3.0, 0.5], 20.0)
    np.testing.assert_allclose(found, np.array([1.0, 0.0625]) * np.exp(-80.0), rtol=1e-12)
    np.testing.assert_array_equal(initialization_kl([3.0, 1.0], 1000.0, [1.0, 0.0]), 0.0)
    np.testing.assert_allclose(initialization_kl([1e-6], 0.0), (np.log(1e6) + 1e-6 - 1) / 2)


@pytest.mark.parametrize(("values", "weights"), LAWS)
@pytest.mark.parametrize("horizon", [0.5, 1.0])
def test_universal_bound_and_chi2_on_discrete_laws(values, weights, horizon):
    kl, chi2 = divergences(values, weights, horizon)
    moment = np.dot(weights, np.square(values))
    bound = float(initialization_kl_universal(moment, 1, 2 * horizon))
    hermite = discrete_hermite_moments(values, weights, 60)
    series = float(initialization_chi2(np.asarray(hermite)[None, :], 2 * horizon))
    np.testing.assert_allclose(series, chi2, rtol=1e-8)
    assert kl <= bound
    assert kl <= np.log1p(series)


def test_published_chi2():
    hermite = np.asarray(discrete_hermite_moments([0.0, 1.0], [0.9, 0.1], 40))
    np.testing.assert_allclose(
        initialization_chi2(hermite[None, :], 2.0), 0.008876435718, rtol=1e-9
    )
    pair = initialization_chi2(np.stack([hermite, hermite]), 2.0)
    np.testing.assert_allclose(1 + pair, (1 + 0.008876435718) ** 2, rtol=1e-11)


def test_hermite_moments_by_scipy():
    values, weights = LAWS[2]
    expected = [
        np.dot(weights, scipy.special.eval_hermitenorm(j, values))
        / scipy.special.factorial(j) ** 0.5
        for j in range(1, 9)
    ]
    np.testing.assert_allclose(discrete_hermite_moments(values, weights, 8), expected, rtol=1e-11)


def test_universal_bound_is_attained_by_a_point_mass():
    """N(ma, σ²I) from N(0, I) in 3 coordinates: the bound itself."""
    for beta in (1e-3, 0.5, 3.0, 60.0):
        variance = -np.expm1(-beta)
        expected = 3 * gaussian_kl(variance, 1.0, np.exp(-beta / 2) * 2.0)
        found = initialization_kl_universal(3 * 4.0, 3, beta)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_unit_second_moment():
    """−½ log(1 − e^{−B}) a coordinate."""
    found = initialization_kl_universal(7.0, 7, 0.55)
    np.testing.assert_allclose(found, -3.5 * np.log(1 - np.exp(-0.55)), rtol=1e-14)


def test_traced():
    horizons = np.array([0.5, 2.0])
    found = jax.vmap(lambda t: initialization_kl(np.array([2.0, 0.5]), t))(horizons)
    np.testing.assert_allclose(found[1], initialization_kl([2.0, 0.5], 2.0), rtol=1e-14)
    slope = jax.grad(lambda b: initialization_kl_universal(2.0, 2, b))(0.55)
    np.testing.assert_allclose(slope, -np.exp(-0.55) / (1 - np.exp(-0.55)), rtol=1e-12)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "function", "arguments"),
    [
        ("eigenvalues", initialization_kl, ([np.inf], 1.0)),
        ("horizon", initialization_kl, ([1.0], -1.0)),
        ("mean", initialization_kl, ([1.0], 1.0, [1.0, 2.0])),
        ("second_moment", initialization_kl_universal, (-1.0, 1, 1.0)),
        ("dim", initialization_kl_universal, (1.0, 0, 1.0)),
        ("dim", initialization_kl_universal, (1.0, 10**400, 1.0)),
        ("integrated_beta", initialization_kl_universal, (1.0, 1, 0.0)),
        ("hermite_moments", initialization_chi2, ([0.1, 0.2], 1.0)),
        ("integrated_beta", initialization_chi2, ([[0.1]], 0.0)),
        ("weights", discrete_hermite_moments, ([0.0, 1.0], [0.5, 0.6], 3)),
        ("weights", discrete_hermite_moments, ([0.0, 1.0], [1.0], 3)),
        ("values", discrete_hermite_moments, ([np.nan], [1.0], 3)),
        ("order", discrete_hermite_moments, ([0.0], [1.0], 0)),
    ],
)
def test_bad_input_is_named(named, function, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        function(*arguments)
