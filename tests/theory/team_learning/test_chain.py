"""Chains by exact fractions and enumeration of successes, tiny errors, and bad input."""

import itertools
from fractions import Fraction

import jax
import numpy as np
import pytest

from boundlab.theory.team_learning import (
    attrition,
    chain_amplification,
    chain_returns,
    product_gap_terms,
    uniform_chain_amplification,
)


@pytest.fixture(scope="module")
def chances():
    """Chances of success (20, 6), some of them 0 or 1, none of the chains free of errors."""
    rng = np.random.default_rng(1)
    drawn = rng.random((20, 6)) ** np.array([0.02, 1.0])[rng.integers(0, 2, (20, 1))]
    drawn[0, 2], drawn[1, :3], drawn[2] = 0.0, 1.0, 0.0
    return drawn


def exact(chances):
    """Dependent and independent losses as fractions."""
    alive, chain, apart = Fraction(1), Fraction(0), Fraction(0)
    for p in map(Fraction, chances):
        alive *= p
        chain += 1 - alive
        apart += 1 - p
    return chain / len(chances), apart / len(chances)


def test_amplification_by_fractions(chances):
    found = jax.vmap(chain_amplification)(chances)
    expected = [float(chain / apart) for chain, apart in map(exact, chances.tolist())]
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert (np.asarray(found) >= 1.0).all()
    assert (np.asarray(found) <= 6.0).all()


@pytest.mark.parametrize("error", [1e-15, 0.3, 1.0])
def test_amplification_at_the_extremes(error):
    for stage in range(6):
        p = np.ones(6)
        p[stage] -= error
        assert float(chain_amplification(p)) == pytest.approx(6 - stage, rel=1e-14)


def test_amplification_of_tiny_errors():
    """No digits are lost where 1 − p is a few units in the last place of 1."""
    p = 1.0 - np.array([3.0, 1.0, 0.0, 2.0, 1.0, 0.0]) * 2.0**-53
    chain, apart = exact(p.tolist())
    assert float(chain_amplification(p)) == pytest.approx(float(chain / apart), rel=1e-14)
    assert float(chain_amplification(np.ones(6))) == 1.0
    assert float(chain_amplification([0.4])) == 1.0
    gradient = jax.grad(chain_amplification)(np.ones(6))
    assert np.isfinite(gradient).all()


def test_equal_errors_by_the_closed_form(chances):
    for stages, error in itertools.product((1, 6, 40), (1e-12, 1e-5, 0.03, 0.5, 1.0)):
        g = Fraction(error)
        closed = (1 - (1 - g) * (1 - (1 - g) ** stages) / (stages * g)) / g
        found = float(uniform_chain_amplification(stages, error))
        assert found == pytest.approx(float(closed), rel=1e-13)
    assert float(uniform_chain_amplification(6, 0.0)) == 3.5
    general = float(chain_amplification(np.full(6, 0.75)))
    assert float(uniform_chain_amplification(6, 0.25)) == pytest.approx(general, rel=1e-14)


def test_returns_by_enumeration(chances):
    """All 2^K patterns of successes, each weighed by its chance."""
    for p in chances[:5]:
        chain = apart = 0.0
        for pattern in itertools.product((0, 1), repeat=6):
            weight = np.prod(np.where(pattern, p, 1 - p))
            chain += weight * np.mean(np.cumprod(pattern))
            apart += weight * np.mean(pattern)
        found = [float(x) for x in chain_returns(p)]
        np.testing.assert_allclose(found, [chain, apart], atol=1e-14)


def test_product_identity(chances):
    success, best = chances[::2], chances[1::2]
    terms = np.asarray(jax.vmap(product_gap_terms)(success, best))
    gap = best.prod(axis=1) - success.prod(axis=1)
    np.testing.assert_allclose(terms.sum(axis=1), gap, atol=1e-14)
    by_hand = [(0.9 - 0.5) * 0.8, 0.5 * (0.8 - 0.7)]
    np.testing.assert_allclose(product_gap_terms([0.5, 0.7], [0.9, 0.8]), by_hand, rtol=1e-14)


def test_attrition_by_hand():
    np.testing.assert_allclose(
        attrition([0.5, 0.8, 0.0, 0.9]), [1.0, 0.5, 0.4, 0.0], rtol=1e-15, atol=0
    )
    np.testing.assert_array_equal(attrition([0.3]), [1.0])


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "function", "arguments"),
    [
        ("success_probabilities", chain_amplification, ([0.5, 1.1],)),
        ("success_probabilities", chain_amplification, ([],)),
        ("success_probabilities", chain_amplification, (0.5,)),
        ("success_probabilities", chain_returns, ([[0.5]],)),
        ("success_probabilities", attrition, ([float("nan")],)),
        ("success_probabilities", product_gap_terms, ([-0.1], [0.5])),
        ("best_probabilities", product_gap_terms, ([0.1], [0.5, 0.5])),
        ("num_stages", uniform_chain_amplification, (0, 0.5)),
        ("num_stages", uniform_chain_amplification, (2.5, 0.5)),
        ("error", uniform_chain_amplification, (2, 1.5)),
        ("error", uniform_chain_amplification, (2, [0.5])),
    ],
)
def test_bad_input_is_named(named, function, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        function(*arguments)
