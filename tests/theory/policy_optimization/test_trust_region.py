"""The trust-region step against linear programs, the gates against loops, the retraction at random."""

import jax
import numpy as np
import pytest
from scipy.optimize import linprog, minimize_scalar

from boundlab.theory.policy_optimization import (
    apc_gate,
    apc_objective,
    guaranteed_gain,
    guaranteed_gain_finite,
    retraction,
    trust_region_radius,
    trust_region_radius_finite,
    tv_trpo_step,
)

STATES, ACTIONS = 4, 3


def by_linear_program(policy, advantage, weights, radius):
    """The best gain with π′ = π + up − down, one state after another."""
    total = 0.0
    for pi, gain, weight in zip(policy, advantage, weights, strict=True):
        size = len(pi)
        found = linprog(
            -np.concatenate([gain, -gain]),
            A_ub=np.ones((1, 2 * size)),
            b_ub=[radius],
            A_eq=np.concatenate([np.ones(size), -np.ones(size)])[None],
            b_eq=[0.0],
            bounds=[(0, None)] * size + [(0, p) for p in pi],
        )
        total -= weight * found.fun
    return total


def tables(seed):
    """Policies with zeros, ties among best and worst, a state of equal advantages, one of weight 0."""
    rng = np.random.default_rng(seed)
    policy = rng.dirichlet(np.ones(ACTIONS), size=STATES)
    advantage = rng.standard_normal((STATES, ACTIONS))
    weights = rng.uniform(0.2, 3.0, STATES)
    if seed % 2:
        policy[0] = [0.0, 0.4, 0.6]
        advantage[1, 2], advantage[2] = advantage[1, 0], 0.7
        weights[3] = 0.0
    return policy, advantage, weights


@pytest.mark.parametrize("radius", [0.0, 0.1, 0.5, 1.3, 2.0, 7.0])
def test_gain_is_that_of_the_linear_program(radius):
    for seed in range(4):
        policy, advantage, weights = tables(seed)
        step = tv_trpo_step(policy, advantage, weights, radius)
        new = np.asarray(step.policy)
        assert new.min() >= 0
        np.testing.assert_allclose(new.sum(axis=1), 1.0, rtol=1e-14)
        assert np.abs(new - policy).sum(axis=1).max() <= radius + 1e-14
        by_hand = (weights[:, None] * (new - policy) * advantage).sum()
        np.testing.assert_allclose(step.surrogate_gain, by_hand, rtol=1e-12, atol=1e-14)
        expected = by_linear_program(policy, advantage, weights, radius)
        np.testing.assert_allclose(step.surrogate_gain, expected, rtol=1e-9, atol=1e-12)


def test_water_filling_by_hand():
    """.35 is moved: the worst gives all it has, the next-worst the rest."""
    policy = np.array([[0.2, 0.3, 0.1, 0.4]])
    advantage = np.array([[-1.0, 0.5, 3.0, -0.5]])
    step = tv_trpo_step(policy, advantage, [2.0], 0.7)
    np.testing.assert_allclose(step.policy, [[0.0, 0.3, 0.45, 0.25]], atol=1e-16)
    np.testing.assert_allclose(step.surrogate_gain, 2 * (0.2 * 4 + 0.15 * 3.5), rtol=1e-14)
    # Without limits the first is the formula: δ(max − min)/2.
    small = tv_trpo_step(policy, advantage, [2.0], 0.3)
    np.testing.assert_allclose(small.surrogate_gain, 2 * 0.3 * 4 / 2, rtol=1e-14)
    np.testing.assert_allclose(
        tv_trpo_step(policy, advantage + 1e9, [2.0], 0.3).surrogate_gain, 1.2, rtol=1e-6
    )


def test_tied_actions_share():
    """In proportion to what they have; the best equally if they have nothing."""
    advantage = np.array([[1.0, -1.0, 1.0, -1.0]])
    step = tv_trpo_step([[0.1, 0.2, 0.3, 0.4]], advantage, [1.0], 0.6)
    np.testing.assert_allclose(step.policy, [[0.175, 0.1, 0.525, 0.2]], rtol=1e-14)
    step = tv_trpo_step([[0.0, 0.2, 0.0, 0.8]], advantage, [1.0], 0.6)
    np.testing.assert_allclose(step.policy, [[0.15, 0.14, 0.15, 0.56]], rtol=1e-14)
    equal = [[0.25, 0.2, 0.15, 0.4]]
    step = tv_trpo_step(equal, np.full((1, 4), 0.3), [1.0], 1.0)
    np.testing.assert_array_equal(step.policy, equal)
    assert float(step.surrogate_gain) == 0.0
    one = tv_trpo_step([[1.0]], [[2.0]], [1.0], 1.0)
    np.testing.assert_array_equal(one.policy, [[1.0]])


def test_step_of_traced_arguments():
    policy, advantage, weights = tables(1)
    slope = jax.jit(jax.grad(lambda d: tv_trpo_step(policy, advantage, weights, d).surrogate_gain))
    ends = [by_linear_program(policy, advantage, weights, d) for d in (0.1001, 0.0999)]
    np.testing.assert_allclose(slope(np.float64(0.1)), (ends[0] - ends[1]) / 2e-4, rtol=1e-6)
    gain = jax.vmap(lambda d: tv_trpo_step(policy, advantage, weights, d).surrogate_gain)
    several = jax.jit(gain)
    expected = [by_linear_program(policy, advantage, weights, d) for d in (0.2, 3.0)]
    np.testing.assert_allclose(several(np.array([0.2, 3.0])), expected, rtol=1e-9)


@pytest.mark.smoke
def test_many_rows_are_like_few():
    """40,000 states, and as many samples, in copies of a few: the compiler may choose other kernels."""
    policy, advantage, weights = tables(1)
    few = tv_trpo_step(policy, advantage, weights, 0.5)
    copies = 10_000
    many = tv_trpo_step(*(np.concatenate([x] * copies) for x in (policy, advantage, weights)), 0.5)
    np.testing.assert_allclose(many.policy, np.tile(few.policy, (copies, 1)), rtol=1e-14)
    np.testing.assert_allclose(many.surrogate_gain, copies * few.surrogate_gain, rtol=1e-11)
    ratio, state = np.array([1.3, 0.9, 1.02, 1.5]), np.array([0, 0, 0, 3])
    gated = apc_gate(
        np.tile(ratio, copies), (4 * np.arange(copies)[:, None] + state[None, :]).ravel(), 0.1
    )
    np.testing.assert_allclose(gated, np.tile([1.18, 1.0, 1.0, 1.1], copies), rtol=1e-14)


def gated_by_hand(ratio, state, radius):
    """B_i sample by sample, as in the paper's definition."""
    gated = []
    for i, r in enumerate(ratio):
        same = [j for j in range(len(ratio)) if state[j] == state[i]]
        others = sum(abs(ratio[j] - 1) for j in same if j != i)
        limit = max(len(same) * radius - others, 0.0)
        gated.append(1 + np.clip(r - 1, -limit, limit))
    return np.array(gated)


@pytest.mark.parametrize("radius", [0.0, 0.05, 0.2, 1.0])
def test_censoring_by_hand(radius):
    rng = np.random.default_rng(3)
    for spread in (0.01, 0.2, 1.0):
        ratio = np.exp(spread * rng.standard_normal(12))
        advantage, state = rng.standard_normal(12), rng.integers(0, 4, 12)
        expected = gated_by_hand(ratio, state, radius)
        np.testing.assert_allclose(apc_gate(ratio, state, radius), expected, rtol=1e-13)
        found = apc_objective(ratio, advantage, state, radius)
        np.testing.assert_allclose(found, np.mean(expected * advantage), rtol=1e-12)


def test_regimes_of_censoring():
    """Identity inside; outside, shrunk by T_s(D̂ − δ) or 0. Another state doesn't matter."""
    ratio = np.array([1.3, 0.9, 1.02, 1.5])
    state = np.array([0, 0, 0, 3])
    np.testing.assert_array_equal(apc_gate(ratio, state, 0.6), ratio)
    gated = apc_gate(ratio, state, 0.1)
    np.testing.assert_allclose(gated, [1.18, 1.0, 1.0, 1.1], rtol=1e-14)
    slope = jax.jit(jax.grad(lambda r: apc_gate(r, state, 0.1)[0]))(ratio)
    # What is over its budget moves with its neighbours only, against their deviations.
    np.testing.assert_allclose(slope, [0.0, 1.0, -1.0, 0.0], atol=1e-14)


def test_retraction_lands_inside():
    """D̂ of the retracted deviations, in loops over samples; 2δ − D̂ is what is left of the way."""
    rng = np.random.default_rng(8)
    outside = 0
    for _ in range(150):
        counts = rng.integers(1, 6, 4)
        deviation = rng.standard_normal(4) * rng.uniform(0.02, 1.0)
        deviation -= counts @ deviation / counts.sum()
        radius = rng.choice([0.05, 0.2])
        samples = np.repeat(deviation, counts)
        gated = gated_by_hand(1 + samples, np.zeros(len(samples)), radius) - 1
        found = np.asarray(retraction(deviation, counts, radius))
        np.testing.assert_allclose(np.repeat(found, counts), gated - gated.mean(), atol=1e-13)
        before, after = np.abs(samples).mean(), counts @ np.abs(found) / counts.sum()
        if before <= radius:
            np.testing.assert_allclose(found, deviation, rtol=0, atol=1e-15)
        else:
            outside += 1
            assert after < radius
            assert after <= max(2 * radius - before, 0.0) + 1e-14
    assert 30 < outside < 148


def test_censored_objective_needs_the_identities():
    """At most δM if ratios average to 1; (3, −1, −1, −1) reaches half as much again without."""
    advantage, state = np.array([3.0, -1.0, -1.0, -1.0]), np.zeros(4, int)
    best = 1 + 0.2 * 2 * np.array([1.0, -1 / 3, -1 / 3, -1 / 3])
    found = 4 * apc_objective(best, advantage, state, 0.2)
    np.testing.assert_allclose(found, 0.2 * 4 * (3 + 1) / 2, rtol=1e-14)
    alone = 4 * apc_objective([1.8, 1.0, 1.0, 1.0], advantage, state, 0.2)
    np.testing.assert_allclose(alone, 2.4, rtol=1e-14)


@pytest.mark.parametrize(("improvement", "largest"), [(0.4, 0.9), (0.1, 2.0)])
def test_radius_maximises_the_bound(improvement, largest):
    """By a numerical search for the radius, in the units of the paper, D̂ in the place of D_TV."""
    for discount in (0.2, 0.9):
        steps = 1 / (1 - discount)

        def promised(radius, discount=discount, steps=steps):
            return steps * radius * improvement - 4 * discount * largest * (radius * steps) ** 2

        found = minimize_scalar(lambda d: -promised(d), bounds=(0, 2), method="bounded")
        radius = float(trust_region_radius(improvement, largest, discount))
        np.testing.assert_allclose(radius, found.x, rtol=1e-3)
        gain = guaranteed_gain(improvement, largest, discount)
        np.testing.assert_allclose(gain, promised(radius), rtol=1e-13)
        np.testing.assert_allclose(gain, -found.fun, rtol=1e-6)
    for horizon in (2, 6):

        def sure(radius, horizon=horizon):
            return radius * improvement - 2 * horizon * (horizon - 1) * largest * (radius / 2) ** 2

        found = minimize_scalar(lambda d: -sure(d), bounds=(0, 2), method="bounded")
        radius = float(trust_region_radius_finite(improvement, largest, horizon))
        np.testing.assert_allclose(radius, found.x, rtol=1e-3)
        gain = guaranteed_gain_finite(improvement, largest, horizon)
        np.testing.assert_allclose(gain, sure(radius), rtol=1e-13)


def test_radius_at_the_edges():
    assert float(trust_region_radius(0.5, 1.0, 0.0)) == np.inf
    assert float(trust_region_radius(0.0, 0.0, 0.5)) == np.inf
    assert float(trust_region_radius_finite(0.5, 1.0, 1)) == np.inf
    assert float(guaranteed_gain(0.0, 0.0, 0.5)) == 0.0
    assert float(guaranteed_gain_finite(0.0, 0.0, 2)) == 0.0
    slope = jax.jit(jax.grad(lambda g: trust_region_radius(0.5, 1.0, g)))(np.float64(0.5))
    np.testing.assert_allclose(slope, -0.5 / 8 / 0.25, rtol=1e-13)


HALF = np.full((2, 2), 0.5)
BAD = [
    ("policy", tv_trpo_step, ([0.5, 0.5], np.zeros(2), np.ones(1), 0.1)),
    ("policy", tv_trpo_step, (2 * HALF, HALF, np.ones(2), 0.1)),
    ("policy", tv_trpo_step, ([[1.5, -0.5]] * 2, HALF, np.ones(2), 0.1)),
    ("policy", tv_trpo_step, ([[np.nan, 1.0]] * 2, HALF, np.ones(2), 0.1)),
    ("advantage", tv_trpo_step, (HALF, np.zeros((2, 3)), np.ones(2), 0.1)),
    ("advantage", tv_trpo_step, (HALF, np.full((2, 2), np.inf), np.ones(2), 0.1)),
    ("weights", tv_trpo_step, (HALF, HALF, np.ones(3), 0.1)),
    ("weights", tv_trpo_step, (HALF, HALF, -np.ones(2), 0.1)),
    ("radius", tv_trpo_step, (HALF, HALF, np.ones(2), -0.1)),
    ("radius", tv_trpo_step, (HALF, HALF, np.ones(2), np.ones(2))),
    ("ratio", apc_objective, (np.ones((2, 2)), np.ones(2), np.zeros(2, int), 0.1)),
    ("ratio", apc_objective, ([1.0, np.nan], np.ones(2), np.zeros(2, int), 0.1)),
    ("advantage", apc_objective, (np.ones(2), np.ones(3), np.zeros(2, int), 0.1)),
    ("state_id", apc_objective, (np.ones(2), np.ones(2), np.zeros(3, int), 0.1)),
    ("state_id", apc_objective, (np.ones(2), np.ones(2), np.array([0, 2]), 0.1)),
    ("state_id", apc_objective, (np.ones(2), np.ones(2), np.array([0, -1]), 0.1)),
    ("state_id", apc_objective, (np.ones(2), np.ones(2), np.zeros(2), 0.1)),
    ("radius", apc_objective, (np.ones(2), np.ones(2), np.zeros(2, int), np.nan)),
    ("deviation", retraction, (np.ones((2, 2)), np.ones(2), 0.1)),
    ("counts", retraction, (np.ones(2), np.ones(3), 0.1)),
    ("counts", retraction, (np.ones(2), np.zeros(2), 0.1)),
    ("counts", retraction, (np.ones(2), [-1.0, 2.0], 0.1)),
    ("radius", retraction, (np.ones(2), np.ones(2), -1.0)),
    ("improvement", trust_region_radius, (-1.0, 1.0, 0.5)),
    ("advantage_max", trust_region_radius, (1.0, np.nan, 0.5)),
    ("discount", trust_region_radius, (1.0, 1.0, 1.0)),
    ("discount", guaranteed_gain, (1.0, 1.0, 0.0)),
    ("horizon", trust_region_radius_finite, (1.0, 1.0, 0)),
    ("horizon", guaranteed_gain_finite, (1.0, 1.0, 1)),
    ("improvement", guaranteed_gain_finite, (np.ones(2), 1.0, 2)),
]


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(("name", "function", "arguments"), BAD)
def test_bad_input_is_named(name, function, arguments):
    with pytest.raises(ValueError, match=f"^{name}: "):
        function(*arguments)
