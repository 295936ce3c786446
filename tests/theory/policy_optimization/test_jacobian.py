"""Gate of FiberPO in closed form: by loops, finite differences, hand calculation and extremes."""

import jax
import numpy as np
import pytest

from boundlab.theory.policy_optimization.jacobian import (
    censored_aggregate,
    fiber_gradient,
    fiber_jacobian,
    fiber_log_gate,
    gate_bounds,
    gate_lipschitz,
    hierarchy_bounds,
    identity_box,
)

MASK = np.arange(6)[None] < np.array([6, 4, 1, 0, 5, 6])[:, None]
BUDGETS = (0.12, 0.05, 0.04)

log_gate = jax.jit(fiber_log_gate)
jacobian = jax.jit(fiber_jacobian)
gradient = jax.jit(fiber_gradient)


def ratios(scale, seed=0):
    drawn = scale * np.random.default_rng(seed).standard_normal(MASK.shape)
    return np.where(MASK, drawn, np.nan)


def gate_by_hand(ratio, plus, minus, epsilon):
    """Log G of one sequence without padding, channel by channel."""
    size = len(ratio)
    s = {1: sum(max(r, 0) for r in ratio) / size, -1: sum(max(-r, 0) for r in ratio) / size}
    base = 0.0
    for sign, budget in ((1, plus), (-1, minus)):
        if s[sign] <= budget:
            base += sign * s[sign]
        elif s[sign] < (1 + 1 / size) * budget:
            base += sign * ((size + 1) * budget - size * s[sign])
    signs = [1 if r >= 0 else -1 for r in ratio]
    limited = [
        np.clip(r - sign * s[sign], -epsilon, epsilon) + sign * min(s[-sign], epsilon)
        for r, sign in zip(ratio, signs, strict=True)
    ]
    return base + np.array(limited)


@pytest.mark.parametrize("scale", [0.02, 0.1, 0.3, 3.0])
def test_values_by_loops(scale):
    ratio = ratios(scale)
    found = np.array(log_gate(ratio, MASK, *BUDGETS))
    for b, kept in enumerate(MASK):
        if kept.any():
            expected = gate_by_hand(ratio[b][kept], *BUDGETS)
            np.testing.assert_allclose(found[b][kept], expected, atol=1e-15)
    assert not found[~MASK].any()


@pytest.mark.parametrize(("scale", "seed"), [(0.02, 1), (0.1, 2), (0.1, 3), (0.3, 4), (3.0, 5)])
def test_jacobian_by_central_differences(scale, seed):
    """∂G_i/∂r_j from the loops above; the draws stay away from thresholds."""
    ratio, step = ratios(scale, seed), 1e-6
    found = np.array(jacobian(ratio, MASK, *BUDGETS))
    for b, kept in enumerate(MASK):
        size = int(kept.sum())
        expected = np.zeros((6, 6))
        for j in range(size):
            ends = []
            for side in (1, -1):
                moved = np.exp(ratio[b, :size])
                moved[j] += side * step
                ends.append(np.exp(gate_by_hand(np.log(moved), *BUDGETS)))
            expected[:size, j] = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(found[b], expected, atol=1e-7)


def test_jacobian_at_equal_ratios_in_rollback():
    """All ρ = x in rollback: u = 0 and every |u|, |v| passes, so J = (G/r)(I + ((−T) − 1)/T)."""
    for size, x in ((6, 0.125), (4, 0.13)):
        ratio = np.where(MASK, x, 0.0)
        row = int(np.flatnonzero(MASK.sum(axis=1) == size)[0])
        expected_gate = (size + 1) * 0.12 - size * x
        by_log = np.eye(size) - (size + 1) / size
        expected = np.exp(expected_gate - x) * by_log
        found = np.array(jacobian(ratio, MASK, *BUDGETS))[row, :size, :size]
        np.testing.assert_allclose(found, expected, atol=1e-13)
        columns = (found / np.exp(expected_gate - x)).sum(axis=0)
        np.testing.assert_allclose(columns, -size, rtol=1e-13)


def test_on_policy_it_is_the_identity():
    expected = np.where(MASK[:, :, None] & MASK[:, None, :], np.eye(6)[None], 0.0)
    for zero in (0.0, -0.0):
        found = jacobian(np.full(MASK.shape, zero), MASK, *BUDGETS)
        np.testing.assert_allclose(found, expected, atol=1e-15)


def test_huge_ratios_give_no_nan():
    signs = np.where(np.arange(36).reshape(6, 6) % 2, 1.0, -1.0)
    found = jacobian(1e4 * signs, MASK, *BUDGETS)
    assert not np.isnan(found).any()
    assert np.isfinite(log_gate(1e4 * signs, MASK, *BUDGETS)).all()


def test_gradient_of_the_surrogate_by_differences():
    ratio, step = ratios(0.1, seed=6), 1e-6
    advantage = np.cos(np.arange(36)).reshape(6, 6)
    found = np.array(gradient(ratio, MASK, np.where(MASK, advantage, np.nan), *BUDGETS))
    for b, kept in enumerate(MASK):
        size = int(kept.sum())
        for j in range(size):
            ends = []
            for side in (1, -1):
                moved = ratio[b, :size].copy()
                moved[j] += side * step
                gates = np.exp(gate_by_hand(moved, *BUDGETS))
                ends.append((gates * advantage[b, :size]).mean())
            np.testing.assert_allclose(found[b, j], (ends[0] - ends[1]) / (2 * step), atol=1e-7)
    assert not found[~MASK].any()


def test_signs_of_rollback_by_hand():
    """Six equal tokens: dJ/dρ of each one is −A·G, T times an ungated one's, in either channel."""
    mask = np.arange(6)[:, None] < np.full((1, 6), 4)
    ratio = np.array([-0.0525, -0.0525, 0.125, 0.125, 0.0, 0.0])[:, None] * mask
    advantage = np.array([1.0, -1.0, 1.0, -1.0, 0.0, 0.0])
    found = np.array(gradient(ratio, mask, advantage[:, None] * mask, *BUDGETS))
    bases = -(7 * 0.05 - 6 * 0.0525), 7 * 0.12 - 6 * 0.125
    gates = np.exp(np.repeat([*bases, 0.0], 2))
    np.testing.assert_allclose(found, np.outer(-advantage * gates, np.ones(6)), rtol=1e-12)


def test_bounds_by_random_and_extreme_ratios():
    lower, upper = (float(part) for part in gate_bounds(*BUDGETS))
    assert (lower, upper) == pytest.approx((-0.13, 0.2), rel=1e-14)
    found = [np.array(log_gate(ratios(3.0, seed), MASK, *BUDGETS)) for seed in range(40)]
    assert lower <= np.min(found)
    assert np.max(found) <= upper
    # Half of the tokens up so that log s⁺ = C⁺, one far below: log s⁻ is zeroed and above ε.
    ratio = np.array([0.0, 0.0, 0.0, 0.0, 6 * 0.12, -10.0])
    np.testing.assert_allclose(gate_by_hand(ratio, *BUDGETS).max(), upper, rtol=1e-12)
    np.testing.assert_allclose(gate_by_hand(-ratio, 0.05, 0.12, 0.04).min(), -upper, rtol=1e-12)


def test_bounds_of_hierarchies_by_hand():
    pairs = ((0.12, 0.05), (0.1, 0.03), (0.2, 0.07))
    lower, upper = hierarchy_bounds(pairs, 0.04)
    np.testing.assert_allclose(upper, 0.2 + 0.13 + 0.17 + 0.08, rtol=1e-14)
    np.testing.assert_allclose(lower, -(0.07 + 0.13 + 0.17 + 0.08), rtol=1e-14)
    np.testing.assert_allclose(hierarchy_bounds((BUDGETS[:2],), 0.04), gate_bounds(*BUDGETS))


def test_identity_box_by_corners():
    """At every corner of the box G = r; at corners a quarter further out it isn't."""
    radius = float(identity_box((BUDGETS[:2],), BUDGETS[2]))
    assert radius == 0.04
    assert float(identity_box(((0.1, 0.2), (0.03, 0.1)), 0.05)) == 0.03
    corners = np.array(np.meshgrid(*[[-1, 1]] * 6)).reshape(6, -1).T
    worst = [
        max(np.abs(gate_by_hand(size * row, *BUDGETS) - size * row).max() for row in corners)
        for size in (radius, 1.25 * radius)
    ]
    assert worst[0] <= 1e-15
    assert worst[1] > 1e-3


def test_lipschitz_constant_by_slopes():
    """Differences of the loops between near points; T is reached where all tokens roll back."""
    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(2000):
        one = 0.12 + 0.05 * rng.standard_normal(6)
        two = one + 1e-4 * rng.standard_normal(6)
        change = np.abs(gate_by_hand(one, *BUDGETS) - gate_by_hand(two, *BUDGETS)).max()
        worst = max(worst, change / np.abs(one - two).max())
    assert 1 < worst <= float(gate_lipschitz(6)) == 8.0
    ends = [gate_by_hand(np.full(6, x), *BUDGETS)[0] for x in (0.125, 0.126)]
    np.testing.assert_allclose((ends[0] - ends[1]) / 0.001, 6.0, rtol=1e-9)


def test_censored_aggregate_is_the_limit():
    x = np.array([-0.3, -0.2, -0.1, 0.0, 0.19, 0.2, 0.21, 5.0])
    size = 10**7
    by_hand = [
        v if abs(v) <= 0.2 else np.sign(v) * max((size + 1) * 0.2 - size * abs(v), 0) for v in x
    ]
    np.testing.assert_allclose(censored_aggregate(x, 0.2), by_hand, atol=1e-15)


ZEROS, ONES = np.zeros((2, 3)), np.ones((2, 3))


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "function", "arguments"),
    [
        ("log_ratio", fiber_log_gate, (np.zeros(3), np.ones(3), 0.1, 0.1, 0.1)),
        ("log_ratio", fiber_jacobian, (np.full((2, 3), np.nan), ONES, 0.1, 0.1, 0.1)),
        ("mask", fiber_jacobian, (ZEROS, np.ones((3, 2)), 0.1, 0.1, 0.1)),
        ("mask", fiber_jacobian, (ZEROS, 0.5 * ONES, 0.1, 0.1, 0.1)),
        ("mask", fiber_jacobian, (ZEROS, 2 * ONES, 0.1, 0.1, 0.1)),
        ("budget_plus", fiber_jacobian, (ZEROS, ONES, -0.1, 0.1, 0.1)),
        ("budget_minus", fiber_log_gate, (ZEROS, ONES, 0.1, np.nan, 0.1)),
        ("budget_plus", fiber_log_gate, (ZEROS, ONES, np.ones(2), 0.1, 0.1)),
        ("epsilon", fiber_log_gate, (ZEROS, ONES, 0.1, 0.1, 0.0)),
        ("epsilon", fiber_jacobian, (ZEROS, ONES, 0.1, 0.1, np.ones(2))),
        ("advantage", fiber_gradient, (ZEROS, ONES, np.zeros(3), 0.1, 0.1, 0.1)),
        ("advantage", fiber_gradient, (ZEROS, ONES, ONES * np.inf, 0.1, 0.1, 0.1)),
        ("budget_minus", gate_bounds, (0.1, -0.1, 0.1)),
        ("epsilon", gate_bounds, (0.1, 0.1, np.inf)),
        ("budgets", hierarchy_bounds, ((0.1, 0.1), 0.1)),
        ("budgets", hierarchy_bounds, (((0.1, -0.1),), 0.1)),
        ("epsilon", hierarchy_bounds, (((0.1, 0.1),), 0.0)),
        ("budgets", identity_box, (np.zeros((0, 2)), 0.1)),
        ("epsilon", identity_box, (((0.1, 0.1),), -1.0)),
        ("num_tokens", gate_lipschitz, (0,)),
        ("num_tokens", gate_lipschitz, (2.5,)),
        ("x", censored_aggregate, (np.nan, 0.1)),
        ("budget", censored_aggregate, (0.1, -0.1)),
    ],
)
def test_bad_input_is_named(named, function, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        function(*arguments)
