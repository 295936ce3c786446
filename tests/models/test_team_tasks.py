"""Tasks of teams against rewards that are counted joint action by joint action."""

import itertools

import jax
import numpy as np
import pytest

from boundlab.models import teams

GAP, COUPLING = 0.6, 0.35


def rewards(task) -> np.ndarray:
    """R (A, …, A) by the definitions."""
    size, agents = task.num_actions, task.num_agents
    table = np.zeros((size,) * agents)
    for a in itertools.product(range(size), repeat=agents):
        away = sum(action != 0 for action in a)
        if isinstance(task, teams.NeedleTask):
            table[a] = task.gap * (away == 0)
        elif isinstance(task, teams.OrderTask):
            switched = all(action == 1 for action in a[: task.order])
            table[a] = -task.gap * away / agents + task.coupling * switched
        else:
            parity = (sum(a) - 1) % size == 0
            table[a] = -task.gap * away / agents + task.coupling * parity
    return table


TASKS = [
    *(teams.ParityTask(a, k, GAP, COUPLING) for a, k in ((1, 1), (3, 1), (2, 2), (4, 3), (1, 3))),
    *(teams.OrderTask(3, 3, GAP, COUPLING, q) for q in (1, 2, 3)),
    teams.OrderTask(1, 2, GAP, COUPLING, 2),
    teams.NeedleTask(3, 2, GAP),
    teams.NeedleTask(1, 1, GAP),
]


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_rewards(task) -> None:
    expected = rewards(task)
    agents, size = task.num_agents, task.num_actions
    actions = np.array(list(itertools.product(range(size), repeat=agents)))
    found = jax.jit(
        lambda: (
            teams.reward_tensor(task),
            teams.reward_groups(task),
            teams.marginal_rewards(task),
            teams.own_rewards(task),
            teams.team_reward(task, actions),
        )
    )()
    tensor, (values, counts), marginals, own, rewarded = jax.tree.map(np.asarray, found)
    np.testing.assert_allclose(tensor, expected, atol=1e-15)
    np.testing.assert_allclose(rewarded, expected.ravel(), atol=1e-15)
    listed = np.sort(np.repeat(values, counts.astype(int)))
    np.testing.assert_allclose(listed, np.sort(expected.ravel()), atol=1e-15)
    others = [tuple(j for j in range(agents) if j != k) for k in range(agents)]
    means = [expected.mean(axis=axes) for axes in others]
    np.testing.assert_allclose(marginals, means, atol=1e-12)
    np.testing.assert_array_equal(own, np.tile(-GAP * (np.arange(size) != 0), (agents, 1)))


def test_groups_of_many_joint_actions() -> None:
    """8^16 = 2^48 joint actions; an eighth of them has the parity."""
    values, counts = (np.asarray(x) for x in teams.reward_groups(teams.ParityTask(8, 16, 0.0, 1.0)))
    assert counts.sum() == 2.0**48
    assert counts[values == 1.0].sum() == 2.0**45
    needle = teams.reward_groups(teams.NeedleTask(8, 16, GAP))
    np.testing.assert_array_equal(needle, [[GAP, 0.0], [1.0, 2.0**48 - 1]])


def test_numbers_may_be_traced() -> None:
    values = jax.vmap(lambda gap: teams.reward_tensor(teams.ParityTask(2, 2, gap, gap / 2)))(
        np.array([0.2, 0.6])
    )
    np.testing.assert_allclose(values[1], rewards(teams.ParityTask(2, 2, 0.6, 0.3)), atol=1e-15)


@pytest.mark.usefixtures("as_users_call")
def test_bad_input() -> None:
    good = {"num_actions": 2, "num_agents": 2, "gap": 0.5, "coupling": 0.1}
    bad = {
        "num_actions": (0, 2.5, True),
        "num_agents": (0, "2"),
        "gap": (-1.0, np.inf, None, [0.1, 0.2]),
        "coupling": (-0.1, np.nan),
        "own_noise_std": (-1.0, None),
        "outcome_noise_std": (-1.0, np.array([1.0])),
    }
    for name, values in bad.items():
        for value in values:
            with pytest.raises(ValueError, match=f"^{name}: got"):
                teams.ParityTask(**{**good, name: value})
    for order in (0, 3, 1.5):
        with pytest.raises(ValueError, match=r"^order: got"):
            teams.OrderTask(**good, order=order)
    with pytest.raises(ValueError, match=r"^gap: got"):
        teams.NeedleTask(2, 2, -0.5)
    task = teams.ParityTask(**good)
    for actions in ([0, 2], [0.0, 1.0], [0, 1, 1], [-1, 0]):
        with pytest.raises(ValueError, match=r"^actions: got"):
            teams.team_reward(task, np.array(actions))
    with pytest.raises(ValueError, match=r"^task: got"):
        teams.reward_tensor(teams.ParityTask(2, 30, 0.5, 0.0))
    with pytest.raises(ValueError, match=r"^task: got"):
        teams.reward_groups(teams.ParityTask(10, 400, 0.5, 0.0))
    with pytest.raises(ValueError, match=r"^task: got"):
        teams.own_rewards(None)
