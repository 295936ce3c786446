"""Agents that stay alike: flow by enumeration of joint actions, the trap by an ODE and by a maximiser."""

import itertools

import jax
import numpy as np
import pytest
import scipy.optimize
from scipy.integrate import solve_ivp

from boundlab.theory.team_learning import (
    symmetric_parity_flow,
    symmetric_parity_regret,
    symmetric_trap_regret,
)

TASKS = [(4, 3, 0.6, 0.35), (3, 4, 0.6, 0.35), (2, 2, 0.3, 1.0), (5, 1, 0.6, 0.9)]


def reward(places, actions, gap, coupling):
    switched = sum(a > 0 for a in places)
    return -gap * switched / len(places) + coupling * (sum(places) % actions == 1 % actions)


def by_hand(policy, task):
    """E[R | a_1] of one agent, best reward and E[R], one joint action after another."""
    actions, agents, gap, coupling = task
    values, rewards = np.zeros(actions), []
    for places in itertools.product(range(actions), repeat=agents):
        rewards.append(reward(places, actions, gap, coupling))
        weight = np.prod([policy[a] for a in places[1:]])
        values[places[0]] += weight * rewards[-1]
    return values, max(rewards), policy @ values


@pytest.mark.parametrize("task", TASKS)
def test_flow_and_regret_by_enumeration(task):
    actions, *others = task
    for seed in range(3):
        theta = np.random.default_rng(seed).standard_normal(actions)
        pi = np.exp(theta) / np.exp(theta).sum()
        values, best, mean = by_hand(pi, task)
        expected = pi * (values - mean)
        np.testing.assert_allclose(symmetric_parity_flow(theta, *others), expected, atol=1e-14)
        found = symmetric_parity_regret(theta, *others)
        np.testing.assert_allclose(found, best - mean, atol=1e-14)


def own_flow(theta, task):
    """The flow once more, in NumPy, its law of sums by repeated convolution."""
    actions, agents, gap, coupling = task
    pi = np.exp(theta - theta.max())
    pi /= pi.sum()
    sums = np.eye(actions)[0]
    for _ in range(agents - 1):
        sums = sum(p * np.roll(sums, a) for a, p in enumerate(pi))
    own = -gap * (np.arange(actions) > 0)
    values = own / agents + coupling * sums[(1 - np.arange(actions)) % actions]
    return pi * (values - pi @ values)


@pytest.mark.parametrize(
    "task",
    [(4, 3, 0.6, 0.35), (2, 2, 0.6, 0.5), (4, 4, 0.6, 1.0), (5, 2, 0.6, 0.4), (4, 3, 0.1, 1.0)],
)
def test_trap_is_where_the_flow_ends(task):
    """From uniform to t = 10⁵; what is left falls as 1/t."""
    end = solve_ivp(
        lambda _, theta: own_flow(theta, task),
        (0, 1e5),
        np.zeros(task[0]),
        "LSODA",
        rtol=1e-9,
        atol=1e-11,
    ).y[:, -1]
    pi = np.exp(end - end.max())
    _, best, mean = by_hand(pi / pi.sum(), task)
    np.testing.assert_allclose(symmetric_trap_regret(*task[1:]), best - mean, atol=1e-4)


@pytest.mark.parametrize("task", [(3, 0.6, 0.35), (2, 0.6, 0.5), (6, 0.6, 0.35), (3, 0.0, 1.0)])
def test_trap_by_a_maximiser(task):
    """Among policies that play 1 with probability x and 0 else."""
    agents, gap, coupling = task

    def lost(x):
        return gap * x - coupling * agents * x * (1 - x) ** (agents - 1)

    found = scipy.optimize.minimize_scalar(
        lost, bounds=(0, 1 / agents), method="bounded", options={"xatol": 1e-10}
    )
    expected = coupling - gap / agents + found.fun
    np.testing.assert_allclose(symmetric_trap_regret(*task), expected, atol=1e-12)


def test_trap_at_the_edges():
    """None without coupling, below its threshold, or for one agent; closed form for two agents."""
    for task in ((3, 0.6, 0.0), (3, 0.6, 0.2), (1, 0.6, 2.0), (3, 0.0, 0.0)):
        np.testing.assert_allclose(symmetric_trap_regret(*task), 0.0, atol=1e-16)
    x = (1 - 0.6 / (2 * 0.5)) / 2
    expected = 0.5 - 0.3 + 0.6 * x - 0.5 * 2 * x * (1 - x)
    np.testing.assert_allclose(symmetric_trap_regret(2, 0.6, 0.5), expected, rtol=1e-13)
    limit = 1.0 - np.exp(-1.0)  # K → ∞ without gap: (1 − 1/K)^{K−1} → 1/e
    np.testing.assert_allclose(symmetric_trap_regret(10**6, 0.0, 1.0), limit, rtol=1e-5)
    assert float(symmetric_parity_regret([0.3], 3, 0.6, 0.35)) == 0.0
    np.testing.assert_array_equal(symmetric_parity_flow([0.3], 3, 0.6, 0.35), 0.0)


def test_traced_numbers():
    couplings = np.array([0.1, 0.35])
    found = jax.vmap(lambda c: symmetric_trap_regret(3, 0.6, c))(couplings)
    np.testing.assert_allclose(found, [0.0, symmetric_trap_regret(3, 0.6, 0.35)], rtol=1e-13)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "function", "arguments"),
    [
        ("logits", symmetric_parity_flow, (0.0, 3, 0.6, 0.3)),
        ("logits", symmetric_parity_regret, ([0.0, np.inf], 3, 0.6, 0.3)),
        ("num_agents", symmetric_parity_flow, ([0.0, 0.0], 0, 0.6, 0.3)),
        ("gap", symmetric_parity_regret, ([0.0, 0.0], 3, -0.6, 0.3)),
        ("num_agents", symmetric_trap_regret, (1.5, 0.6, 0.3)),
        ("gap", symmetric_trap_regret, (3, [0.6], 0.3)),
        ("coupling", symmetric_trap_regret, (3, 0.6, -0.3)),
        ("coupling", symmetric_trap_regret, (3, 0.6, np.nan)),
    ],
)
def test_bad_input_is_named(named, function, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        function(*arguments)
