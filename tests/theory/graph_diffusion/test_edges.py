"""Noised edges: values by adaptive quadrature of the definitions, derivatives and enumeration."""

from itertools import pairwise

import jax
import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats

from boundlab.precision import x64
from boundlab.theory.graph_diffusion import (
    bernoulli_graph_totals,
    edge_chi_squared,
    edge_entropy,
    edge_fisher,
    edge_initialization_kl,
    edge_log_density,
    edge_mmse,
    edge_posterior,
    edge_probability_after_sampling,
    edge_score,
)

TIMES = np.array([0.01, 0.1, 0.5, 5.0])
CODES = [(0.0, 1.0), (-1.0, 1.0), (-0.2, 1.5)]
PROBABILITIES = [0.5, 0.0125, 1e-6]


def normal(x, mean: float = 0.0, std: float = 1.0):
    """Density of N(mean, std²); SciPy's takes 40 times as long for a number, which `quad` asks for."""
    return np.exp(-0.5 * ((x - mean) / std) ** 2) / (std * np.sqrt(2 * np.pi))


def law(t: float, p: float, low: float, high: float):
    """Density of x, and the log-odds of the posterior, straight from the definitions."""
    mean, std = np.exp(-t), np.sqrt(-np.expm1(-2 * t))

    def parts(x):
        return normal(x, mean * low, std), normal(x, mean * high, std)

    def density(x):
        absent, present = parts(x)
        return (1 - p) * absent + p * present

    def log_odds(x):
        squares = (x - mean * low) ** 2 - (x - mean * high) ** 2
        return scipy.special.logit(p) + squares / (2 * std**2)

    return density, log_odds


def integrate(function, t: float, p: float, low: float, high: float) -> float:
    """∫ over x, cut at both atoms, at the tie of the posterior and some standard deviations off."""
    mean, std = np.exp(-t), np.sqrt(-np.expm1(-2 * t))
    tie = mean * (low + high) / 2 - scipy.special.logit(p) * std**2 / (mean * (high - low))
    ends = mean * low - 12 * std, mean * high + 12 * std
    tie = np.clip(tie, *ends)
    cuts = np.concatenate(
        [[mean * low, mean * high], *(tie + w * std * np.array([-1, 0, 1]) for w in (0.1, 1))]
    )
    cuts = np.unique(np.concatenate([np.clip(cuts, *ends), ends]))
    pieces = [
        scipy.integrate.quad(function, a, b, epsabs=0, epsrel=1e-12, limit=200)[0]
        for a, b in pairwise(cuts)
    ]
    return float(np.sum(pieces))


@pytest.mark.parametrize(("low", "high"), CODES)
@pytest.mark.parametrize("p", PROBABILITIES)
def test_information_by_quadrature(p, low, high):
    found = [f(TIMES, p, low, high) for f in (edge_mmse, edge_fisher, edge_entropy)]
    for k, t in enumerate(TIMES):
        density, log_odds = law(t, p, low, high)
        arguments = t, p, low, high

        def doubt(x, log_odds=log_odds):
            return scipy.special.expit(log_odds(x)) * scipy.special.expit(-log_odds(x))

        mmse = (high - low) ** 2 * integrate(lambda x, d=density: d(x) * doubt(x), *arguments)
        np.testing.assert_allclose(found[0][k], mmse, rtol=1e-10)

        def surprise(x, density=density):
            return scipy.special.entr(density(x))

        np.testing.assert_allclose(
            found[2][k], integrate(surprise, *arguments), rtol=1e-10, atol=1e-10
        )
        mean, variance = np.exp(-t), -np.expm1(-2 * t)

        def squared(x, density=density, log_odds=log_odds, mean=mean, variance=variance):
            guess = low + (high - low) * scipy.special.expit(log_odds(x))
            return density(x) * ((mean * guess - x) / variance) ** 2

        np.testing.assert_allclose(found[1][k], integrate(squared, *arguments), rtol=1e-10)


def test_extremes():
    """Nothing overflows; the noise alone is left at t → 0, nothing of the edge at t → ∞."""
    times = np.array([1e-12, 1e-4, 40.0, 400.0])
    for p in (1e-12, 0.5, 1 - 1e-12):
        mmse = np.asarray(edge_mmse(times, p))
        variance = -np.expm1(-2 * times)
        np.testing.assert_allclose(mmse[:2], 0, atol=1e-200)
        np.testing.assert_allclose(mmse[2:], p * (1 - p), rtol=1e-12)
        np.testing.assert_allclose(edge_fisher(times, p), 1 / variance, rtol=1e-12)
        left = np.asarray(edge_entropy(times, p)) - 0.5 * np.log(2 * np.pi * np.e * variance)
        whole = scipy.special.entr(p) + scipy.special.entr(1 - p)
        np.testing.assert_allclose(left, [whole, whole, 0, 0], rtol=1e-9, atol=1e-14)
    far = edge_probability_after_sampling(1e-6, np.array([1e-9, 80.0, 800.0]))
    np.testing.assert_allclose(far, [scipy.stats.norm.sf(0.5), 1e-6, 1e-6], rtol=1e-4)
    np.testing.assert_allclose(far[1:], 1e-6, rtol=1e-12)


def test_score_forms():
    """The tanh form at codes ±1, and the derivative of the log-density."""
    x = np.linspace(-4, 4, 41)
    for t, p in ((0.02, 0.3), (0.4, 0.01), (3.0, 0.9)):
        mean, variance = np.exp(-t), -np.expm1(-2 * t)
        tanh = np.tanh(mean * x / variance + scipy.special.logit(p) / 2)
        expected = (mean * tanh - x) / variance
        found = edge_score(x, t, p, -1.0, 1.0)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 / variance)
        with x64():
            slope = jax.vmap(jax.grad(edge_log_density), (0, None, None, None, None))
            derivative = slope(x, t, p, -0.2, 1.5)
        np.testing.assert_allclose(
            edge_score(x, t, p, -0.2, 1.5), derivative, rtol=1e-10, atol=1e-9
        )


def test_density_and_posterior_by_hand():
    x, p = np.array([[-0.3, 0.2], [0.9, 2.0]]), np.array([[0.1, 0.5], [0.3, 0.9]])
    mean, std = np.exp(-0.4), np.sqrt(-np.expm1(-0.8))
    absent, present = (scipy.stats.norm.pdf(x, mean * code, std) for code in (-1.0, 2.0))
    density = (1 - p) * absent + p * present
    np.testing.assert_allclose(edge_log_density(x, 0.4, p, -1.0, 2.0), np.log(density), rtol=1e-12)
    np.testing.assert_allclose(
        edge_posterior(x, 0.4, p, -1.0, 2.0), p * present / density, rtol=1e-12
    )


@pytest.mark.parametrize("p", [0.5, 0.1, 0.0125])
def test_start_against_quadrature(p):
    """KL and χ² to N(0, 1) by quadrature, and the Hermite series of χ²; the KL is below log(1 + χ²)."""
    for t, low, high in ((0.275, 0.0, 1.0), (1.0, 0.0, 1.0), (0.5, -1.0, 1.0)):
        density, _ = law(t, p, low, high)

        def divergence(x, density=density):
            return density(x) * (np.log(density(x)) + x**2 / 2 + np.log(2 * np.pi) / 2)

        kl = float(edge_initialization_kl(t, p, low, high))
        np.testing.assert_allclose(kl, integrate(divergence, t, p, low, high), rtol=1e-9)
        chi = float(edge_chi_squared(t, p, low, high))

        def square(x, density=density):
            return normal(x) * (density(x) / normal(x) - 1) ** 2

        np.testing.assert_allclose(
            chi, scipy.integrate.quad(square, -14, 14, epsrel=1e-12, limit=400)[0], rtol=1e-9
        )
        orders = np.arange(1, 121)
        moments = (1 - p) * scipy.special.eval_hermitenorm(orders, low) + p * (
            scipy.special.eval_hermitenorm(orders, high)
        )
        log_terms = -2 * t * orders - scipy.special.gammaln(orders + 1)
        series = np.sum(moments**2 * np.exp(log_terms))
        np.testing.assert_allclose(chi, series, rtol=1e-10)
        assert 0 < kl < np.log1p(chi)


def test_published_numbers():
    """χ² of the specification at T = 1, and the shares of edges by the schedule from .1 to 1."""
    np.testing.assert_allclose(float(edge_chi_squared(1.0, 0.1)), 0.008876435718, rtol=1e-9)
    shares = edge_probability_after_sampling(np.array([0.7, 0.33, 0.0125]), np.full(3, 0.55))
    np.testing.assert_allclose(shares, [0.52663, 0.28775, 0.02466], atol=5e-6)
    start = edge_initialization_kl(np.full(3, 0.275), np.array([0.7, 0.33, 0.0125]))
    np.testing.assert_allclose(start, [0.219, 0.106, 0.137], atol=5e-4)


@pytest.mark.parametrize(("low", "high"), CODES)
def test_probability_after_sampling_by_quadrature(low, high):
    totals = np.array([0.002, 0.1, 0.55, 3.0, 20.0])
    for p in (0.7, 0.0125, 1e-6):
        found = np.asarray(edge_probability_after_sampling(p, totals, low, high))
        for share, total in zip(found, totals, strict=True):
            _, log_odds = law(total / 2, p, low, high)
            mean, variance = np.exp(-total / 2), -np.expm1(-total)
            tie = mean * (low + high) / 2
            tie = tie - scipy.special.logit(p) * variance / (mean * (high - low))
            near = [tie + w * variance for w in (-40, -10, -3, -1, 0, 1, 3, 10, 40)]
            cuts = np.unique(np.clip([-12, -4, 0, 4, 12, *near], -12, 12))

            def weighed(x, log_odds=log_odds):
                return normal(x) * scipy.special.expit(log_odds(x))

            expected = sum(
                scipy.integrate.quad(weighed, a, b, epsabs=0, epsrel=1e-12, limit=200)[0]
                for a, b in pairwise(cuts)
            )
            np.testing.assert_allclose(share, expected, rtol=1e-10)


def test_contraction_and_entropy_identities():
    """S2 with the joint law of both times by quadrature, and dH/dt = J − 1 integrated over time."""
    p, low, high, early, late = 0.3, -1.0, 1.0, 0.2, 0.5
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / np.sqrt(2 * np.pi)
    gap = late - early
    first = 0.0
    for atom, chance in ((low, 1 - p), (high, p)):
        x = np.exp(-early) * atom + np.sqrt(-np.expm1(-2 * early)) * nodes
        y = np.exp(-gap) * x[:, None] + np.sqrt(-np.expm1(-2 * gap)) * nodes[None, :]
        scores = [np.asarray(edge_score(v, t, p, low, high)) for v, t in ((x, early), (y, late))]
        squares = (scores[0][:, None] - scores[1]) ** 2
        first += chance * weights @ squares @ weights
    fisher = np.asarray(edge_fisher(np.array([early, late]), p, low, high))
    # The score's poles are near the axis at the early time: 80 nodes give six digits.
    np.testing.assert_allclose(first, fisher[0] - (2 * np.exp(-gap) - 1) * fisher[1], rtol=1e-5)
    times, share = np.polynomial.legendre.leggauss(60)
    at = 0.05 * np.exp((times + 1) / 2 * np.log(3.0 / 0.05))
    total = np.sum(share / 2 * np.log(3.0 / 0.05) * at * np.asarray(edge_fisher(at, p, low, high)))
    entropy = np.asarray(edge_entropy(np.array([3.0, 0.05]), p, low, high))
    np.testing.assert_allclose(entropy[0] - entropy[1], total - 2.95, rtol=1e-10)


def test_graph_totals_by_summing_pairs():
    times = np.array([2.0, 0.7, 0.1])
    chances = np.array([0.7, 0.1, 0.1, 0.1, 0.7, 0.7])  # the six pairs of four nodes
    entropy, fisher = bernoulli_graph_totals(times, np.array([0.7, 0.1]), np.array([3, 3]))
    np.testing.assert_allclose(entropy, sum(edge_entropy(times, p) for p in chances), rtol=1e-12)
    np.testing.assert_allclose(fisher, sum(edge_fisher(times, p) for p in chances), rtol=1e-12)
    none, _ = bernoulli_graph_totals(times, np.array([0.7, 0.1]), np.array([0, 0]))
    np.testing.assert_array_equal(none, 0)


def test_traced_and_broadcast():
    times = np.array([[0.1, 0.4], [1.0, 3.0]])
    chances = np.array([[0.1, 0.2], [0.3, 0.4]])
    found = edge_fisher(times, chances)
    assert found.shape == (2, 2)
    with x64():
        traced = jax.jit(jax.vmap(jax.vmap(edge_fisher)))(times, chances)
        slope = jax.grad(lambda p: edge_mmse(0.3, p))(0.2)
    np.testing.assert_allclose(found, traced, rtol=1e-13)
    step = 1e-5
    difference = float(edge_mmse(0.3, 0.2 + step)) - float(edge_mmse(0.3, 0.2 - step))
    np.testing.assert_allclose(slope, difference / (2 * step), rtol=1e-7)


def test_one_time_and_many_probabilities():
    chances = np.array([0.1, 0.3])
    for function in (edge_mmse, edge_fisher, edge_entropy, edge_initialization_kl):
        expected = [float(function(0.3, chance)) for chance in chances]
        np.testing.assert_allclose(function(0.3, chances), expected, rtol=1e-14)
    # By hand: P(edge | x) at x = m/2, half-way between the two values, is p.
    middle = 0.5 * np.exp(-0.3)
    np.testing.assert_allclose(edge_posterior(middle, 0.3, chances), chances, rtol=1e-14)
    np.testing.assert_allclose(
        edge_score(middle, 0.3, chances),
        np.exp(-0.3) * (chances - 0.5) / -np.expm1(-0.6),
        rtol=1e-13,
    )
    found = edge_probability_after_sampling(chances, 0.55)
    expected = [float(edge_probability_after_sampling(chance, 0.55)) for chance in chances]
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"probability": 0.0}, "probability"),
        ({"probability": 1.0}, "probability"),
        ({"probability": [[0.2], [0.3, 0.4]]}, "probability"),
        ({"t": 0.0}, "t"),
        ({"t": np.nan}, "t"),
        ({"t": 1e-308}, "t"),
        ({"high": 1e200}, "high"),
        ({"low": 1.0}, "low"),
        ({"low": np.zeros(2)}, "low"),
        ({"high": np.inf}, "high"),
    ],
)
def test_bad_input(change, named):
    arguments = {"t": 0.5, "probability": 0.2, "low": 0.0, "high": 1.0} | change
    for function in (edge_mmse, edge_fisher, edge_entropy):
        with pytest.raises(ValueError, match=f"^{named}:"):
            function(**arguments)
    for function in (edge_score, edge_posterior, edge_log_density):
        with pytest.raises(ValueError, match=f"^{named}:"):
            function(np.zeros(2), **arguments)
    started = {k: v for k, v in arguments.items() if k != "t"}
    for function in (edge_initialization_kl, edge_chi_squared):
        with pytest.raises(ValueError, match=f"^{'horizon' if named == 't' else named}:"):
            function(arguments["t"], **started)
    with pytest.raises(ValueError, match=f"^{'integrated_beta' if named == 't' else named}:"):
        edge_probability_after_sampling(integrated_beta=2 * arguments["t"], **started)


@pytest.mark.usefixtures("as_users_call")
def test_bad_totals_and_values():
    with pytest.raises(ValueError, match=r"^pairs:"):
        bernoulli_graph_totals(np.array([0.5]), np.array([0.2, 0.3]), np.array([4]))
    with pytest.raises(ValueError, match=r"^pairs:"):
        bernoulli_graph_totals(np.array([0.5]), np.array([0.2]), np.array([-4]))
    with pytest.raises(ValueError, match=r"^probabilities:"):
        bernoulli_graph_totals(np.array([0.5]), np.array([1.2]), np.array([4]))
    with pytest.raises(ValueError, match=r"^times:"):
        bernoulli_graph_totals(0.5, np.array([0.2]), np.array([4]))
    with pytest.raises(ValueError, match=r"^x:"):
        edge_score(np.array([np.nan]), 0.5, 0.2)
    for function in (edge_mmse, edge_probability_after_sampling):
        with pytest.raises(ValueError, match=r"^probability: got shape"):
            function(np.full(2, 0.5), np.full(3, 0.5))
    with pytest.raises(ValueError, match=r"^t:"):
        edge_score(np.zeros(2), np.array([0.5, 0.6]), 0.2)
