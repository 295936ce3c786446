"""Exact solutions of decision processes against loops, sums over time and finite differences."""

import jax
import numpy as np
import pytest
from scipy import stats

from boundlab.models.tabular_mdp import random_mdp, simulate_returns, solve_mdp

STATES, ACTIONS = 4, 3
RNG = np.random.default_rng(11)
MDP = {
    "transition": RNG.dirichlet(np.ones(STATES), size=(STATES, ACTIONS)),
    "reward": RNG.standard_normal((STATES, ACTIONS)),
    "policy": RNG.dirichlet(np.ones(ACTIONS), size=STATES),
    "discount": 0.8,
    "initial": RNG.dirichlet(np.ones(STATES)),
}


def by_sums(transition, reward, policy, discount, initial, steps=400):
    """V, Q, d, J by adding up time steps, one entry at a time."""
    states, actions = reward.shape
    value = np.zeros(states)
    for _ in range(steps):
        value = np.array(
            [
                sum(
                    policy[s, a] * (reward[s, a] + discount * transition[s, a] @ value)
                    for a in range(actions)
                )
                for s in range(states)
            ]
        )
    action_value = np.array(
        [
            [reward[s, a] + discount * transition[s, a] @ value for a in range(actions)]
            for s in range(states)
        ]
    )
    occupancy, now = np.zeros(states), np.array(initial)
    for t in range(steps):
        occupancy += discount**t * now
        now = sum(
            now[s] * policy[s, a] * transition[s, a] for s in range(states) for a in range(actions)
        )
    return value, action_value, occupancy, initial @ value


def test_solution_by_sums_over_time():
    value, action_value, occupancy, objective = by_sums(**MDP)
    found = solve_mdp(**MDP)
    np.testing.assert_allclose(found.value, value, rtol=1e-11)
    np.testing.assert_allclose(found.action_value, action_value, rtol=1e-11)
    np.testing.assert_allclose(found.advantage, action_value - value[:, None], rtol=1e-10)
    np.testing.assert_allclose(found.occupancy, occupancy, rtol=1e-11)
    np.testing.assert_allclose(found.objective, objective, rtol=1e-11)
    np.testing.assert_allclose(np.sum(found.occupancy), 1 / (1 - 0.8), rtol=1e-13)
    np.testing.assert_allclose((MDP["policy"] * found.advantage).sum(axis=1), 0, atol=1e-13)


def test_two_states_by_hand():
    """Reward 1 in the first state, which a step leaves for good: V = (1, 0) whatever γ."""
    moves = np.zeros((2, 1, 2))
    moves[:, :, 1] = 1.0
    found = solve_mdp(moves, [[1.0], [0.0]], np.ones((2, 1)), 0.9, [1.0, 0.0])
    np.testing.assert_allclose(found.value, [1.0, 0.0], atol=1e-14)
    np.testing.assert_allclose(found.occupancy, [1.0, 9.0], rtol=1e-13)
    still = solve_mdp(moves, [[1.0], [0.0]], np.ones((2, 1)), 0.0, [1.0, 0.0])
    np.testing.assert_allclose(still.occupancy, [1.0, 0.0], atol=1e-15)


def test_gradient_is_the_policy_gradient():
    """dJ/dπ(a|s) = d(s)Q(s, a), for the rows of π as free numbers."""
    rest = {name: value for name, value in MDP.items() if name != "policy"}
    slope = jax.jit(jax.grad(lambda pi: solve_mdp(policy=pi, **rest).objective))(MDP["policy"])
    _, action_value, occupancy, _ = by_sums(**MDP)
    np.testing.assert_allclose(slope, occupancy[:, None] * action_value, rtol=1e-10)


def test_type_is_that_of_the_arguments():
    narrow = {name: np.float32(value) for name, value in MDP.items()}
    found, exact = solve_mdp(**narrow), solve_mdp(**MDP)
    assert all(part.dtype == np.float32 for part in found)
    np.testing.assert_allclose(found.advantage, exact.advantage, atol=2e-5)
    assert solve_mdp(**{**narrow, "reward": MDP["reward"]}).value.dtype == np.float64


def test_random_processes_are_processes(key):
    found = jax.jit(random_mdp, static_argnums=(1, 2))(key, STATES, ACTIONS)
    assert found.transition.shape == (STATES, ACTIONS, STATES)
    assert found.reward.shape == (STATES, ACTIONS)
    for rows in (found.transition, found.initial):
        assert float(rows.min()) > 0
        np.testing.assert_allclose(np.sum(rows, axis=-1), 1.0, rtol=1e-14)


def test_returns_of_a_policy_average_to_its_objective(key):
    """A z-test at a rate of 1e-4; the cut after 60 steps is below 1e-5 of the standard error."""
    found = np.asarray(
        simulate_returns(jax.random.fold_in(key, 1), **MDP, num_episodes=4096, num_steps=60)
    )
    z = (found.mean() - by_sums(**MDP)[-1]) / (found.std(ddof=1) / 64)
    assert abs(z) < stats.norm.isf(5e-5)


def test_returns_without_chance_are_exact(key):
    """A cycle of two states that pay 1 and 0, seen for three steps: 1 + γ²."""
    cycle = np.zeros((2, 2, 2))
    cycle[0, :, 1] = cycle[1, :, 0] = 1.0
    returns = simulate_returns(
        key, cycle, [[1.0, 9.0], [0.0, 9.0]], [[1.0, 0.0]] * 2, 0.5, [1.0, 0.0], 512, 3
    )
    np.testing.assert_allclose(returns, 1.25, rtol=1e-15)
    other = simulate_returns(
        key, cycle, [[9.0, 1.0], [9.0, 0.0]], [[0.0, 1.0]] * 2, 0.5, [1.0, 0.0], 512, 3
    )
    np.testing.assert_allclose(other, 1.25, rtol=1e-15)


BAD = [
    ("transition", np.full((2, 3, 4), 0.25)),
    ("transition", np.full((STATES, ACTIONS, STATES), 0.3)),
    ("transition", np.where(MDP["transition"] > 0, np.nan, 0)),
    ("transition", [[1.0]]),
    ("reward", np.zeros((STATES, ACTIONS + 1))),
    ("reward", np.full((STATES, ACTIONS), np.inf)),
    ("policy", -MDP["policy"]),
    ("policy", 2 * MDP["policy"]),
    ("policy", MDP["policy"][0]),
    ("discount", 1.0),
    ("discount", -0.1),
    ("discount", np.array([0.5])),
    ("initial", np.ones(STATES)),
    ("initial", np.full(2, 0.5)),
]


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(("name", "value"), BAD, ids=lambda v: v if isinstance(v, str) else "")
def test_bad_input_is_named(name, value):
    with pytest.raises(ValueError, match=f"^{name}: "):
        solve_mdp(**{**MDP, name: value})


@pytest.mark.usefixtures("as_users_call")
def test_bad_counts_and_keys_are_named(key):
    for name, change in (
        ("num_episodes", 0),
        ("num_steps", 2.5),
        ("key", 3),
        ("policy", np.ones((4, 3))),
    ):
        with pytest.raises(ValueError, match=f"^{name}: "):
            simulate_returns(**{"key": key, **MDP, "num_episodes": 2, "num_steps": 2, name: change})
    for name, change in (("num_states", 0), ("num_actions", -1), ("key", np.zeros(2))):
        with pytest.raises(ValueError, match=f"^{name}: "):
            random_mdp(**{"key": key, "num_states": 2, "num_actions": 2, name: change})


@pytest.mark.usefixtures("as_users_call")
def test_lists_of_integers_give_the_default_type():
    found = solve_mdp([[[1]]], [[3]], [[1]], 0.5, [1])
    assert found.value.dtype == np.float64
    np.testing.assert_allclose(found.objective, 6.0, rtol=1e-15)
    narrow = solve_mdp(np.ones((1, 1, 1), np.float32), [[3]], [[1]], 0.5, [1])
    assert narrow.value.dtype == np.float32


def test_float64_policies_are_taken_without_x64():
    """As steps of theory are, which are float64 whatever is switched on; a warning would be an error."""
    with jax.enable_x64(False):
        policy = np.full((2, 2), 0.5)
        found = solve_mdp(np.full((2, 2, 2), 0.5), np.eye(2), policy, 0.5, np.array([1.0, 0.0]))
    assert found.value.dtype == np.float32
    np.testing.assert_allclose(found.objective, 1.0, rtol=1e-6)
