"""Improvement bounds on processes solved here by NumPy: never violated, attained where said."""

from fractions import Fraction

import jax
import numpy as np
import pytest

from boundlab.theory.policy_optimization import (
    achiam_bound,
    improvement_bound_discounted,
    improvement_bound_finite,
    kakade_langford_bound,
)


def solved(transition, reward, policy, discount, initial):
    """J, A and d of a policy."""
    followed = np.einsum("sa,sat->st", policy, transition)
    system = np.eye(len(initial)) - discount * followed
    value = np.linalg.solve(system, (policy * reward).sum(axis=1))
    advantage = reward + discount * transition @ value - value[:, None]
    return initial @ value, advantage, np.linalg.solve(system.T, initial)


def compared(transition, reward, old, new, discount, initial):
    """Exact improvement, and what the bounds are given: L, ε, ε′, max and mean D_TV."""
    before, advantage, occupancy = solved(transition, reward, old, discount, initial)
    after, _, _ = solved(transition, reward, new, discount, initial)
    expected = (new * advantage).sum(axis=1)
    divergence = 0.5 * np.abs(new - old).sum(axis=1)
    return (
        after - before,
        occupancy @ expected,
        np.abs(advantage).max(),
        np.abs(expected).max(),
        divergence.max(),
        occupancy @ divergence,
    )


def worst(far):
    """A first state where π stays and gains lead astray; once away, what π′ changes only costs.

    Rewards are the advantages themselves, since both states are worth 0 under π.
    """
    transition = np.zeros((2, 3, 2))
    transition[0, :2, 0] = transition[0, 2, 1] = transition[1, :, 1] = 1.0
    reward = np.array([[-1.0, 1.0, 1.0], [1.0, -1.0, 1.0]])
    old = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])
    new = old + far * np.array([[-1.0, 0.0, 1.0], [-1.0, 1.0, 0.0]])
    return transition, reward, old, new, np.array([1.0, 0.0])


@pytest.mark.parametrize("discount", [0.0, 0.5, 0.9])
def test_no_bound_is_violated(discount):
    rng = np.random.default_rng(int(10 * discount))
    for _ in range(25):
        transition = rng.dirichlet(np.ones(5), size=(5, 3))
        reward, initial = rng.standard_normal((5, 3)), rng.dirichlet(np.ones(5))
        old, new = rng.dirichlet(np.ones(3), size=5), rng.dirichlet(np.ones(3), size=5)
        gain, surrogate, largest, expected, far, mean = compared(
            transition, reward, old, new, discount, initial
        )
        assert gain >= improvement_bound_discounted(surrogate, largest, far, discount) - 1e-12
        assert gain >= achiam_bound(surrogate, expected, mean, discount) - 1e-12
        share = rng.uniform()
        mixed = (1 - share) * old + share * new
        step = compared(transition, reward, old, mixed, discount, initial)[0]
        assert step >= kakade_langford_bound(surrogate, expected, share, discount) - 1e-12


def test_worst_case_attains_the_bounds():
    """Kakade and Langford's exactly, the other two as the step shrinks."""
    transition, reward, old, _, initial = worst(0.5)
    # It leaves at once, and then takes what costs most.
    new = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    mixed = 0.6 * old + 0.4 * new
    for discount in (0.3, 0.9):
        _, surrogate, _, expected, _, _ = compared(transition, reward, old, new, discount, initial)
        gain = compared(transition, reward, old, mixed, discount, initial)[0]
        found = kakade_langford_bound(surrogate, expected, 0.4, discount)
        np.testing.assert_allclose(found, gain, rtol=1e-12)
    transition, reward, old, new, initial = worst(1e-5)
    gain, surrogate, largest, expected, far, mean = compared(
        transition, reward, old, new, 0.9, initial
    )
    for bound in (
        improvement_bound_discounted(surrogate, largest, far, 0.9),
        achiam_bound(surrogate, expected, mean, 0.9),
    ):
        np.testing.assert_allclose((surrogate - bound) / (surrogate - gain), 1.0, rtol=2e-4)


@pytest.mark.parametrize("far", [0.5, 0.1, 1e-4])
def test_worst_case_attains_the_finite_bound(far):
    """By walking through the H steps, at every H and divergence."""
    transition, reward, old, new, initial = worst(far)
    for horizon in (1, 2, 5, 40):
        objective, surrogate, now, then = 0.0, 0.0, initial, initial
        for _ in range(horizon):
            objective += then @ (new * reward).sum(axis=1)
            surrogate += now @ (new * reward).sum(axis=1)
            now = np.einsum("s,sa,sat->t", now, old, transition)
            then = np.einsum("s,sa,sat->t", then, new, transition)
        found = improvement_bound_finite(surrogate, 1.0, far, horizon)
        np.testing.assert_allclose(found, objective, rtol=0, atol=2e-15 * horizon)
        shift = surrogate - objective
        np.testing.assert_allclose(surrogate - found, shift, rtol=1e-7 if far < 0.1 else 1e-12)


@pytest.mark.parametrize(("far", "horizon"), [("1/4", 3), ("1/1024", 700), ("1/1000000", 400_000)])
def test_finite_bound_in_rational_numbers(far, horizon):
    """αH − 1 + (1 − α)^H, without rounding (or to 60 digits), where floats cancel."""
    share = Fraction(far)
    if horizon < 1000:
        escaped = share * horizon - 1 + (1 - share) ** horizon
    else:
        terms, term, escaped = 40, Fraction(1), Fraction(0)
        for k in range(1, terms):
            term *= -share * (horizon - k + 1) / k
            escaped += term if k >= 2 else 0
    found = -improvement_bound_finite(0.0, 0.25, float(share), horizon)
    np.testing.assert_allclose(found, float(escaped), rtol=1e-12)


def test_finite_bound_at_the_edges():
    assert float(improvement_bound_finite(0.3, 5.0, 1.0, 1)) == 0.3
    assert float(improvement_bound_finite(0.3, 5.0, 0.0, 9)) == 0.3
    np.testing.assert_allclose(improvement_bound_finite(0.3, 5.0, 1.0, 4), 0.3 - 4 * 5 * 3)
    # A complete change computed as a sum of probabilities.
    np.testing.assert_allclose(improvement_bound_finite(0.3, 5.0, 1.0 + 1e-12, 4), 0.3 - 60)
    for far in (0.04, 0.5, 0.50001):
        loose = 0.3 - 2 * 12 * far**2
        assert float(improvement_bound_finite(0.3, 1.0, far, 4)) >= loose


def test_values_by_hand():
    # .5 − 4·.5·2·.01/.25,  .5 − 2·.5·.6·.4/.5,  .5·.4 − 2·.5·.6·.25/(.5·.75).
    np.testing.assert_allclose(improvement_bound_discounted(0.5, 2.0, 0.1, 0.5), 0.34, rtol=1e-14)
    np.testing.assert_allclose(achiam_bound(0.5, 0.6, 0.4, 0.5), 0.02, rtol=1e-13)
    np.testing.assert_allclose(kakade_langford_bound(0.4, 0.6, 0.5, 0.5), -0.2, rtol=1e-13)
    # 1/(1 − γ) of the mean divergence is a complete change.
    np.testing.assert_allclose(achiam_bound(0.5, 0.6, 2.0, 0.5), -1.9, rtol=1e-13)


def test_traced_numbers():
    far = np.array([0.1, 0.2])
    found = jax.jit(jax.vmap(lambda d: improvement_bound_finite(1.0, 1.0, d, 3)))(far)
    np.testing.assert_allclose(found[1], improvement_bound_finite(1.0, 1.0, 0.2, 3), rtol=1e-14)
    # 4ε Σ_t (1 − (1−α)ᵗ) = 4(α + α + α(1 − α)) for H = 3, times α.
    np.testing.assert_allclose(found, 1 - 4 * far * (far + 2 * far - far**2), rtol=1e-13)
    of_horizon = jax.jit(jax.vmap(lambda h: improvement_bound_finite(0.0, 1.0, 0.2, h)))
    steps = of_horizon(np.array([1, 2, 3]))
    np.testing.assert_allclose(steps, [0.0, -0.16, 1 - 1 - 4 * 0.2 * 0.56], atol=1e-14)
    slope = jax.jit(jax.grad(lambda d: improvement_bound_finite(0.0, 1.0, d, 2)))(np.float64(1.0))
    np.testing.assert_allclose(slope, -8.0, rtol=1e-13)


BAD = [
    ("surrogate_gain", improvement_bound_discounted, (np.nan, 1.0, 0.1, 0.5)),
    ("surrogate_gain", improvement_bound_discounted, (np.zeros(2), 1.0, 0.1, 0.5)),
    ("advantage_max", improvement_bound_discounted, (0.1, -1.0, 0.1, 0.5)),
    ("divergence", improvement_bound_discounted, (0.1, 1.0, 1.1, 0.5)),
    ("divergence", improvement_bound_discounted, (0.1, 1.0, -0.1, 0.5)),
    ("discount", improvement_bound_discounted, (0.1, 1.0, 0.1, 1.0)),
    ("discount", improvement_bound_discounted, (0.1, 1.0, 0.1, -0.1)),
    ("expected_advantage_max", achiam_bound, (0.1, -1.0, 0.1, 0.5)),
    ("mean_divergence", achiam_bound, (0.1, 1.0, 2.1, 0.5)),
    ("mean_divergence", achiam_bound, (0.1, 1.0, -0.1, 0.5)),
    ("discount", achiam_bound, (0.1, 1.0, 0.1, 1.0)),
    ("expected_advantage_max", kakade_langford_bound, (0.1, np.inf, 0.1, 0.5)),
    ("mixture", kakade_langford_bound, (0.1, 1.0, 1.5, 0.5)),
    ("discount", kakade_langford_bound, (0.1, 1.0, 0.5, 1.0)),
    ("advantage_max", improvement_bound_finite, (0.1, -1.0, 0.1, 3)),
    ("divergence", improvement_bound_finite, (0.1, 1.0, 1.1, 3)),
    ("horizon", improvement_bound_finite, (0.1, 1.0, 0.1, 0)),
    ("horizon", improvement_bound_finite, (0.1, 1.0, 0.1, 2.5)),
    ("horizon", improvement_bound_finite, (0.1, 1.0, 0.1, np.array([2, 3]))),
]


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(("name", "function", "arguments"), BAD)
def test_bad_input_is_named(name, function, arguments):
    with pytest.raises(ValueError, match=f"^{name}: "):
        function(*arguments)
