"""The law of the best of noisy arms: by quadrature, by enumeration, and published values."""

import itertools

import jax
import numpy as np
import pytest
import scipy.special
import scipy.stats

from boundlab.precision import x64
from boundlab.theory.team_learning import (
    bernoulli_selection,
    fano_lower,
    selection_probabilities,
    slippage_bounds,
    slippage_failure,
    slippage_root,
    union_upper,
)

DELTA = 0.05


def log_cdf(z):
    """Log Φ to rounding on both sides."""
    right = np.log1p(-scipy.stats.norm.sf(np.maximum(z, 0.0)))
    return np.where(z > 0, right, scipy.special.log_ndtr(np.minimum(z, 0.0)))


def log_quadrature(num_arms, x):
    """Log of ∫ φ(z)(1 − Φ(z + x)^{M−1}) dz by the trapezoid rule on 8001 nodes."""
    z = np.linspace(-0.5 * x - 13.0, 13.0, 8_001)
    lost = -np.expm1((num_arms - 1.0) * log_cdf(z + x))
    inside = np.log(np.where(lost > 0, lost, 1.0))
    inside = np.where(lost > 0, inside, -np.inf) + scipy.stats.norm.logpdf(z)
    return scipy.special.logsumexp(inside) + np.log(z[1] - z[0])


def group_quadrature(values, counts, scale, group):
    """P(g) by (E1) on its own axis, z from the mean of group g, with 8001 nodes."""
    behind = scale * (np.max(values) - values[group])
    z = np.linspace(-13.0, behind + 13.0, 8_001)
    log_others = (counts[group] - 1) * log_cdf(z)
    for other, (value, count) in enumerate(zip(values, counts, strict=True)):
        if other != group:
            log_others = log_others + count * log_cdf(z + (values[group] - value) * scale)
    density = counts[group] * np.exp(scipy.stats.norm.logpdf(z) + log_others)
    return float(np.sum(density) * (z[1] - z[0]))


ARMS = np.array([2.0, 4.0, 64.0, 4096.0, 2.0**40, 8.0**16])
SEPARATIONS = np.array([0.01, 1.0, 3.0, 7.0, 12.0, 26.0, 50.0])


def test_slippage_by_quadrature():
    """To a failure of 1e-273; with the bounds above and below."""
    found = slippage_failure(ARMS[:, None], SEPARATIONS[None, :])
    expected = [[log_quadrature(m, x) for x in SEPARATIONS] for m in ARMS]
    np.testing.assert_allclose(np.log(found), expected, rtol=0, atol=1e-9)
    bounds = slippage_bounds(ARMS[:, None], SEPARATIONS[None, :])
    assert (np.asarray(bounds.lower) <= np.asarray(found) * (1 + 1e-9)).all()
    assert (np.asarray(found) <= np.asarray(bounds.slepian) * (1 + 1e-9)).all()
    assert (np.asarray(bounds.slepian) <= np.asarray(bounds.union) * (1 + 1e-9)).all()
    np.testing.assert_allclose(found[1, 1], 0.4479685, atol=1e-7)


def test_slippage_values_and_limits():
    np.testing.assert_allclose(slippage_failure(4, 0.6 * 60**0.5), 0.00146146, rtol=1e-5)
    limits = slippage_failure([7.0, 1.0, 5.0, 2.0], [1e3, 2.0, 0.0, 1e300])
    np.testing.assert_array_equal(limits, [0.0, 0.0, 0.8, 0.0])
    # Two arms differ by N(x, 2).
    np.testing.assert_allclose(
        slippage_failure(2, 40.0), scipy.stats.norm.sf(40 / 2**0.5), rtol=1e-9
    )


def test_groups_by_quadrature():
    values, counts = np.array([0.0, -0.4, -0.2, -0.6]), np.array([1.0, 27.0, 9.0, 27.0])
    found = selection_probabilities(values, counts, 60, 1.0)
    np.testing.assert_allclose(found, [0.514557, 0.0328967, 0.452414, 0.0001326], atol=1e-5)
    expected = [group_quadrature(values, counts, 60**0.5, g) for g in range(4)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(np.sum(found), 1.0, rtol=0, atol=1e-12)


def test_group_tails_by_quadrature():
    """Probabilities down to 1e-130, and 2.8e14 arms; the best in any place."""
    values, counts = np.array([-1.0, 0.0, -0.5, -2.0]), np.array([8.0**16, 2.0, 5.0, 3.0])
    found = selection_probabilities(values, counts, 100, 0.5)
    expected = [group_quadrature(values, counts, 20.0, g) for g in range(4)]
    assert 1e-300 < expected[3] < 1e-100
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_group_limits():
    values, counts = [1.0, 1.0, 0.0, 2.0], [1, 3, 4, 0]
    np.testing.assert_array_equal(
        selection_probabilities(values, counts, 5, 0.0), [0.25, 0.75, 0, 0]
    )
    shares = [0.125, 0.375, 0.5, 0.0]
    for noise in (0.0, 1.0):
        np.testing.assert_array_equal(selection_probabilities(values, counts, 0, noise), shares)
    far = selection_probabilities([0.0, -1e300, 0.0, 0.0], [1, 2**80, 0, 0], 1.0, 1e-300)
    np.testing.assert_allclose(far, [1.0, 0.0, 0.0, 0.0], rtol=1e-15)
    tied = selection_probabilities([2.0, 2.0, 2.0, 2.0], [1, 3, 4, 0], 5.0, 1.0)
    np.testing.assert_allclose(tied, shares, rtol=1e-12)
    np.testing.assert_allclose(selection_probabilities([3.0], [1e300], 5.0, 1.0), [1.0], rtol=1e-6)
    with x64():
        every = jax.vmap(
            lambda m: selection_probabilities(np.asarray(values), np.asarray(counts, float), m, 1.0)
        )
        traced = every(np.array([0.0, 5.0]))
    np.testing.assert_allclose(traced[0], shares, rtol=1e-12)
    np.testing.assert_allclose(
        traced[1], selection_probabilities(values, counts, 5, 1.0), rtol=1e-12
    )


PUBLISHED = {
    (4, 0.2): 3.584,
    (4, 0.05): 8.504,
    (4, 0.01): 14.417,
    (64, 0.05): 17.267,
    (4096, 0.05): 28.726,
    (2**20, 0.05): 43.170,
    (2**40, 0.05): 77.382,
}


def test_roots_published():
    arms, delta = np.array(list(PUBLISHED), float).T
    found = np.asarray(slippage_root(arms, delta)) ** 2
    np.testing.assert_allclose(found, list(PUBLISHED.values()), atol=6e-4)


def test_roots_between_their_bounds():
    """Fano ≤ x*² ≤ union on 12 cells; more arms and less failure need more."""
    arms, delta = np.array([4.0, 64.0, 4096.0, 2.0**20])[:, None], np.array([0.2, 0.05, 0.01])
    squares = np.asarray(slippage_root(arms, delta)) ** 2
    fano = 2 * ((1 - delta) * np.log(arms) - np.log(2))
    union = 4 * np.log((arms - 1) / (2 * delta))
    np.testing.assert_allclose(fano_lower(arms, delta), np.maximum(fano, 0), rtol=1e-12)
    np.testing.assert_allclose(union_upper(arms, delta), union, rtol=1e-12)
    assert (fano < squares).all()
    assert (squares < union).all()
    assert (np.diff(squares, axis=0) > 0).all()
    assert (np.diff(squares, axis=1) > 0).all()
    np.testing.assert_array_equal(union_upper([1.0, 2.0], [0.1, 0.9]), 0.0)
    np.testing.assert_array_equal(fano_lower([1.0, 2.0], [0.1, 0.9]), 0.0)


def test_root_limits():
    """Uniform choice is enough; a tiny δ; the root is where the failure is δ."""
    arms = np.array([3.0, 1.0, 2.0, 8.0, 2.0**40, 5.0])
    delta = np.array([2 / 3, 0.01, 0.5 - 1e-9, 1e-300, 1e-30, 1 - 1e-15])
    roots = slippage_root(arms, delta)
    np.testing.assert_array_equal(np.asarray(roots)[[0, 1, 5]], 0.0)
    for m, x, d in zip(arms[2:5], roots[2:5], delta[2:5], strict=True):
        np.testing.assert_allclose(log_quadrature(m, float(x)), np.log(d), atol=1e-7)


def test_ratios_published():
    """ρ_F at δ = .05: above 1/K, falling in A; 1 for one agent."""
    table = {
        2: ([4, 16, 256, 4096, 65536], [0.8349, 0.7531, 0.6781, 0.6452, 0.6264]),
        4: ([4, 16, 256, 4096], [0.6383, 0.5196, 0.4316, 0.3959]),
        8: ([4, 16], [0.4463, 0.3359]),
        1: ([4], [1.0]),
    }
    for agents, (actions, expected) in table.items():
        a, each = np.array(actions, float), -np.expm1(np.log1p(-DELTA) / agents)
        pairs = np.concatenate([a, a**agents]), np.repeat([each, DELTA], len(a))
        spare = 10 - len(pairs[0])
        padded = [np.pad(part, (0, spare), mode="edge") for part in pairs]
        squares = np.asarray(slippage_root(*padded)) ** 2
        ratio = squares[: len(a)] / squares[len(a) : 2 * len(a)]
        np.testing.assert_allclose(ratio, expected, atol=1e-4)
        assert agents == 1 or (ratio > 1 / agents).all()
        assert (np.diff(ratio) < 0).all()


def by_enumeration(num_arms, best, other, samples):
    """All numbers of successes of all arms, ties at random."""
    k = np.arange(samples + 1)
    laws = [scipy.stats.binom.pmf(k, samples, p) for p in [best] + [other] * (num_arms - 1)]
    total = 0.0
    for wins in itertools.product(k, repeat=num_arms):
        if wins[0] == max(wins):
            chance = np.prod([law[w] for law, w in zip(laws, wins, strict=True)])
            total += chance / wins.count(wins[0])
    return total


@pytest.mark.parametrize("means", [(0.6, 0.5), (0.2, 0.7), (1.0, 0.3), (0.4, 0.0), (0.0, 1.0)])
def test_bernoulli_by_enumeration(means):
    found = bernoulli_selection(3, *means, 4)
    np.testing.assert_allclose(found, by_enumeration(3, *means, 4), rtol=1e-11, atol=1e-300)


def test_bernoulli_values_and_limits():
    np.testing.assert_allclose(bernoulli_selection(8, 0.6, 0.5, 100), 0.71361, atol=5e-6)
    np.testing.assert_allclose(bernoulli_selection(8, 0.6, 0.6, 4), 0.125, rtol=1e-12)
    np.testing.assert_allclose(bernoulli_selection(8, 0.6, 0.1, 0), 0.125, rtol=1e-12)
    np.testing.assert_allclose(bernoulli_selection(1, 0.1, 0.6, 4), 1.0, rtol=1e-12)
    # So many arms that one of them has no failure: a share of the ties is all that is left.
    np.testing.assert_allclose(bernoulli_selection(1e12, 1.0, 0.5, 4), 16e-12, rtol=1e-6)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "function", "arguments"),
    [
        ("values", selection_probabilities, ([], [], 1, 1.0)),
        ("values", selection_probabilities, ([np.nan], [1], 1, 1.0)),
        ("counts", selection_probabilities, ([1.0], [1, 2], 1, 1.0)),
        ("counts", selection_probabilities, ([1.0], [-1], 1, 1.0)),
        ("counts", selection_probabilities, ([1.0], [0], 1, 1.0)),
        ("counts", selection_probabilities, ([1.0], [10**400], 1, 1.0)),
        ("samples_per_arm", selection_probabilities, ([1.0], [1], -1, 1.0)),
        ("noise_std", selection_probabilities, ([1.0], [1], 1, -1.0)),
        ("num_arms", slippage_failure, (0, 1.0)),
        ("num_arms", slippage_failure, (10**400, 1.0)),
        ("x", slippage_failure, (2, -1.0)),
        ("x", slippage_failure, ([2, 3], [1.0, 2.0, 3.0])),
        ("failure_probability", slippage_root, (2, 0.0)),
        ("failure_probability", slippage_root, (2, 1.0)),
        ("num_arms", slippage_bounds, (0.5, 1.0)),
        ("x", slippage_bounds, (2, -1.0)),
        ("num_arms", fano_lower, (10**400, 0.1)),
        ("failure_probability", fano_lower, (2, 1.5)),
        ("failure_probability", union_upper, ([2, 3], [0.1, 0.2, 0.3])),
        ("num_arms", bernoulli_selection, (0, 0.5, 0.5, 3)),
        ("best_mean", bernoulli_selection, (2, 1.5, 0.5, 3)),
        ("other_mean", bernoulli_selection, (2, 0.5, -0.5, 3)),
        ("samples_per_arm", bernoulli_selection, (2, 0.5, 0.5, 1.5)),
    ],
)
def test_bad_input_is_named(named, function, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        function(*arguments)
