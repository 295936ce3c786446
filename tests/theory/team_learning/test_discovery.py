"""Discovery without noise: exact integers by rational arithmetic, and probabilities by enumeration."""

import itertools
from fractions import Fraction

import jax
import numpy as np
import pytest

from boundlab.precision import x64
from boundlab.theory.team_learning import (
    coupon_samples,
    coverage_mean,
    coverage_probability,
    discovery_failure,
)

PUBLISHED = {
    (4, 3, 0.1): (147, 12),
    (4, 3, 0.01): (293, 20),
    (3, 4, 0.1): (186, 10),
    (3, 4, 0.01): (371, 15),
    (8, 2, 0.1): (147, 23),
    (8, 2, 0.01): (293, 40),
}


def failures(size, actions, agents):
    """Both failures after `size` trajectories, as rationals."""
    single = (1 - Fraction(1, actions)) ** size
    return (1 - Fraction(1, actions**agents)) ** size, 1 - (1 - single) ** agents


@pytest.mark.parametrize("case", PUBLISHED)
def test_published_sizes(case):
    assert coupon_samples(*case) == PUBLISHED[case]


@pytest.mark.parametrize(
    "case",
    [
        *PUBLISHED,
        (2, 1, 0.25),  # equal to δ at n = 2
        (2, 2, 1 - 0.75**2),  # … for both agents
        (4, 1, 0.75**7),
        (2, 1, 2.0**-1074),
        (3, 2, 1 - 2.0**-53),
        (2, 3, 1e-12),
        (5, 1, 0.9),
    ],
)
def test_smallest_integers(case):
    actions, agents, delta = case
    for learner, size in enumerate(coupon_samples(*case)):
        assert failures(size, actions, agents)[learner] <= Fraction(delta)
        before = failures(size - 1, actions, agents)[learner] if size > 1 else 2
        assert before > Fraction(delta)


def test_sizes_beyond_every_integer_type():
    """A^K = 2^120: n is A^K ln(1/δ) to a part in 10^36; at most one is subtracted for rounding up."""
    one, team = coupon_samples(8, 40, 0.5)
    np.testing.assert_allclose(one / 8**40, np.log(2), rtol=1e-14)
    assert failures(team, 8, 40)[1] <= Fraction(1, 2) < failures(team - 1, 8, 40)[1]
    assert coupon_samples(1, 7, 0.1) == (1, 1)
    assert coupon_samples(5, 1, 0.1)[0] == coupon_samples(5, 1, 0.1)[1]
    assert all(type(n) is int for n in coupon_samples(np.int64(4), 3, np.float32(0.1)))


def test_failures_by_hand():
    sizes = np.array([0, 1, 5, 147])
    found = discovery_failure(sizes, 4, 3)
    expected = np.array([[float(f) for f in failures(int(n), 4, 3)] for n in sizes])
    np.testing.assert_allclose(found[0], expected[:, 0], rtol=1e-12)
    np.testing.assert_allclose(found[1], expected[:, 1], rtol=1e-12)
    # One arm is found at once; a size beyond every integer type; far tails.
    assert [float(f) for f in discovery_failure(3, 1, 2)] == [0.0, 0.0]
    assert [float(f) for f in discovery_failure(0, 1, 2)] == [1.0, 1.0]
    np.testing.assert_allclose(discovery_failure(8**40, 8, 40)[0], np.exp(-1), rtol=1e-12)
    tail = discovery_failure(2000, 4, 3)[1]
    np.testing.assert_allclose(np.log(float(tail)), np.log(3) + 2000 * np.log(0.75), rtol=1e-12)


def test_coverage_by_enumeration():
    draws = list(itertools.product(range(3), repeat=5))
    share = sum(len(set(one)) == 3 for one in draws) / len(draws)
    np.testing.assert_allclose(coverage_probability(3, 5), share, rtol=1e-13)
    np.testing.assert_allclose(coverage_probability(3, 5, 2), share**2, rtol=1e-13)
    assert float(coverage_probability(3, 2)) == 0.0
    assert float(coverage_probability(3, 0)) == 0.0
    np.testing.assert_allclose(coverage_probability(1, 1, 4), 1.0, rtol=1e-15)
    with x64():
        traced = jax.jit(lambda n: coverage_probability(3, n))(np.int64(5))
    np.testing.assert_allclose(traced, share, rtol=1e-13)


def test_small_coverage_keeps_its_digits():
    """40 arms in 40 draws: 40!/40^40, where the alternating sum cancels."""
    expected = Fraction(1)
    for j in range(1, 41):
        expected *= Fraction(j, 40)
    np.testing.assert_allclose(coverage_probability(40, 40), float(expected), rtol=1e-12)


def test_coverage_means():
    np.testing.assert_allclose(coverage_mean(64), 64 * sum(1 / j for j in range(1, 65)), rtol=1e-13)
    # Two arms: 1 + the largest of K geometric numbers, Σ_n 1 − (1 − 2^{−n})^K.
    expected = 1 + sum(1 - (1 - 0.5**n) ** 3 for n in range(80))
    np.testing.assert_allclose(coverage_mean(2, 3), expected, rtol=1e-12)
    np.testing.assert_allclose(coverage_mean(1, 3), 1.0, rtol=1e-12)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "function", "arguments"),
    [
        ("num_actions", coupon_samples, (0, 2, 0.1)),
        ("num_actions", coupon_samples, (2.5, 2, 0.1)),
        ("num_agents", coupon_samples, (2, 0, 0.1)),
        ("num_agents", coupon_samples, (10, 1001, 0.1)),
        ("failure_probability", coupon_samples, (2, 2, 0.0)),
        ("failure_probability", coupon_samples, (2, 2, 1.0)),
        ("failure_probability", coupon_samples, (2, 2, [0.1])),
        ("num_samples", discovery_failure, (-1, 2, 2)),
        ("num_samples", discovery_failure, (np.nan, 2, 2)),
        ("num_actions", discovery_failure, (3, 0, 2)),
        ("num_arms", coverage_probability, (0, 2)),
        ("num_samples", coverage_probability, (3, -2)),
        ("num_agents", coverage_probability, (3, 2, 0)),
        ("num_arms", coverage_mean, (10**6,)),
        ("num_agents", coverage_mean, (3, 0)),
    ],
)
def test_bad_input_is_named(named, function, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        function(*arguments)


def test_traced_failure_probability_is_refused():
    with pytest.raises(ValueError, match=r"^failure_probability: "):
        jax.jit(lambda delta: coupon_samples(2, 2, delta)[0])(0.1)
