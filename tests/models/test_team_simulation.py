"""Simulated regret against laws that are enumerated and integrated here, and method against method."""

import itertools

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.special import log_ndtr, ndtr

from boundlab.models import team_simulation, teams

TRIALS, RAW_TRIALS = 20_000, 4_000
# Every joint action unlike every other (A = K = 3), and the smallest team.
TASK = teams.ParityTask(3, 3, 0.6, 0.35, outcome_noise_std=1.0)
PAIR = teams.ParityTask(2, 2, 0.6, 0.35, outcome_noise_std=0.5)
PAIR_REWARDS = np.array([[0.0, 0.05], [0.05, -0.6]])


def table(task: teams.ParityTask) -> np.ndarray:
    grid = np.indices((task.num_actions,) * task.num_agents)
    parity = (grid.sum(axis=0) - 1) % task.num_actions == 0
    return task.coupling * parity - task.gap * (grid != 0).mean(axis=0)


def selection(values: np.ndarray, scale: float) -> np.ndarray:
    """P(arm i has the largest of independent N(values_i, scale²)), by the trapezoidal rule."""
    z = np.linspace(-9, 9, 4001)
    shifted = z[None, :, None] + (values[:, None, None] - values[None, None, :]) / scale
    cdf = ndtr(shifted)
    cdf[np.arange(len(values)), :, np.arange(len(values))] = 1.0
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return np.trapezoid(density * cdf.prod(axis=2), z, axis=1)


def agents_regret(task: teams.ParityTask, scores: list[np.ndarray], scale: float) -> float:
    """Expected regret of agents that pick independently the largest of noisy scores."""
    picks = [selection(values, scale) for values in scores]
    rewards = table(task)
    for pick in picks:
        rewards = np.tensordot(pick, rewards, 1)
    return table(task).max() - float(rewards)


def check_mean(samples, expected: float) -> None:
    values = np.asarray(samples)
    assert abs(values.mean() - expected) < 4.9 * values.std(ddof=1) / np.sqrt(len(values))


def run(key: int, task, learner: str, n, method: str) -> np.ndarray:
    trials = RAW_TRIALS if method == "raw" else TRIALS
    found = teams.simulate_regret(jax.random.key(key), task, learner, n, trials, method)
    assert found.shape == (trials,)
    return np.asarray(found)


@pytest.mark.parametrize("method", ["sufficient", "grouped", "raw"])
def test_one_agent(method: str) -> None:
    """40 samples of each of 27 joint actions."""
    expected = table(TASK).max() - selection(table(TASK).ravel(), 40**-0.5) @ table(TASK).ravel()
    assert expected == pytest.approx(0.0356177, abs=1e-6)
    found = run(0, TASK, "joint", 40 * 27, method)
    check_mean(found, expected)
    gaps = np.unique(np.round(table(TASK).max() - table(TASK), 9))
    assert (np.abs(found[:, None] - gaps[None, :]).min(axis=1) < 1e-9).all()


@pytest.mark.parametrize("method", ["sufficient", "grouped", "raw"])
def test_own_rewards(method: str) -> None:
    own = [np.array([0.0, -0.6, -0.6])] * 3
    found = run(1, TASK, "own", 24, method)
    check_mean(found, agents_regret(TASK, own, 8**-0.5))


def test_full_factorial() -> None:
    """Contrasts of agents are independent, with the outcome's noise and no teammates' variance."""
    marginals = [table(TASK).mean(axis=axes) for axes in ((1, 2), (0, 2), (0, 1))]
    found = run(2, TASK, "orthogonal", 54, "raw")
    check_mean(found, agents_regret(TASK, marginals, 18**-0.5))


def pair_regret(samples: int, fitted: bool) -> float:
    """Two agents with two actions: in shuffled designs (1, 1) is played h times, hypergeometric.

    Given h, both agents' contrasts are jointly Gaussian.
    """
    total, m = 0.0, samples
    for h in range(m + 1):
        counts = np.array([[h, m - h], [m - h, h]])
        a, b = np.array([[1.0, 1.0], [-1.0, -1.0]]), np.array([[1.0, -1.0], [1.0, -1.0]])
        mean = -np.array([(counts * a * PAIR_REWARDS).sum(), (counts * b * PAIR_REWARDS).sum()]) / m
        spread = 0.25 / m**2 * np.array([[2 * m, (counts * a * b).sum()]] * 2)
        spread[1] = spread[1][::-1]
        if fitted:
            # Effects of both agents at once: contrasts divided by the design's correlation.
            gram = np.array([[1.0, (counts * a * b).sum() / (2 * m)]] * 2)
            gram[1] = gram[1][::-1]
            inverse = np.linalg.pinv(gram)
            mean, spread = inverse @ mean, inverse @ spread @ inverse
        if abs(spread[0, 1]) > spread[0, 0] * (1 - 1e-12):
            continue  # every row (0, 0) or (1, 1), or none: negligible here
        reward = 0.0
        for i, j in itertools.product(range(2), repeat=2):
            signs = np.array([1 if i else -1, 1 if j else -1])
            # P(signs·contrast > 0).
            chance = stats.multivariate_normal.cdf(
                signs * mean, np.zeros(2), spread * np.outer(signs, signs)
            )
            reward += chance * PAIR_REWARDS[i, j]
        total += stats.hypergeom.pmf(h, 2 * m, m, m) * (0.05 - reward)
    return total


@pytest.mark.parametrize("learner", ["shared", "ols"])
def test_shuffled_designs(learner: str) -> None:
    found = run(3, PAIR, learner, 24, "raw")
    check_mean(found, pair_regret(12, learner == "ols"))


def test_designs_are_balanced() -> None:
    def draw(key: jax.Array, samples: jax.Array) -> tuple[jax.Array, ...]:
        pattern, payoffs = team_simulation.halves(teams.ParityTask(3, 3, 0.6, 0.35, 0.0))
        return team_simulation.shuffled_outcomes(key, payoffs, samples, pattern, 15)

    played, outcomes, used = map(np.asarray, jax.jit(draw)(jax.random.key(0), np.int32(4)))
    np.testing.assert_array_equal(used, [1.0] * 12 + [0.0] * 3)
    for column in played[:12].T:
        np.testing.assert_array_equal(np.bincount(column), [4, 4, 4])
    assert (played[:12, 1] != played[:12, 2]).any()
    np.testing.assert_allclose(outcomes[:12], table(TASK)[tuple(played[:12].T)], atol=1e-12)
    assert (outcomes[12:] == 0).all()


def test_joint_actions_beyond_memory() -> None:
    """8^16 joint actions, one better: P(miss) = ∫ φ(z)(1 − Φ(z + x)^{M − 1}) dz."""
    arms, x = 8.0**16, 8.5
    z = np.linspace(-9, 9, 20_001)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    miss = np.trapezoid(-np.expm1((arms - 1) * log_ndtr(z + x)) * density, z)
    task = teams.NeedleTask(8, 16, 1.0, outcome_noise_std=1.0)
    found = run(4, task, "joint", x**2 * arms, "grouped")
    assert 0.1 < miss < 0.9
    check_mean(found, miss)


@pytest.mark.parametrize(("learner", "method"), [("own", "grouped"), ("shared", "raw")])
def test_ties_are_broken_uniformly(learner: str, method: str) -> None:
    """Without gap and noise nothing tells an agent's actions apart; parity then is a coin."""
    task = teams.ParityTask(2, 2, 0.0, 1.0, 0.0, 0.0)
    n = 24 if learner == "shared" else 16
    check_mean(run(5, task, learner, n, method), 0.5)


def test_full_information() -> None:
    """Without coupling both minimisers pick alike; without noise they differ by the floor."""
    key = jax.random.key(6)
    free = teams.ParityTask(3, 3, 0.6, 0.0)
    found = teams.simulate_full_information(key, free, 4.0, 200)
    np.testing.assert_array_equal(found.joint, found.separate)
    assert len(np.unique(np.asarray(found.joint), axis=0)) > 5
    exact = teams.ParityTask(3, 3, 0.6, 0.35, 0.0)
    found = teams.simulate_full_information(key, exact, 4.0, 200)
    best, separate = (table(exact)[tuple(np.asarray(x).T)] for x in found)
    np.testing.assert_allclose(best - separate, 0.35 - 0.6 / 3, atol=1e-12)


def test_keys_and_precision() -> None:
    """The same key gives the same regrets, another key others; float32 has the law of float64."""
    one, again, other = (run(key, PAIR, "own", 16, "grouped") for key in (7, 7, 8))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()
    with jax.enable_x64(False):
        single = run(9, PAIR, "own", 16, "grouped")
    assert single.dtype == np.float32
    own = [np.array([0.0, -0.6])] * 2
    check_mean(single.astype(np.float64), agents_regret(PAIR, own, 8**-0.5))


def test_numbers_may_be_traced() -> None:
    key = jax.random.key(10)

    def mean(n: jax.Array) -> jax.Array:
        return teams.simulate_regret(key, PAIR, "own", n, 500, "grouped").mean()

    many = jax.vmap(mean)(np.array([4.0, 16.0, 64.0]))
    assert np.asarray(many).tolist() == sorted(many, reverse=True)


@pytest.mark.usefixtures("as_users_call")
def test_bad_input() -> None:
    good = {
        "key": jax.random.key(0),
        "task": PAIR,
        "learner": "joint",
        "num_trajectories": 8,
        "num_trials": 4,
        "method": "raw",
    }
    bad = {
        "key": (0, jax.random.split(jax.random.key(0), 2)),
        "task": ({}, None),
        "learner": ("sarl", 1),
        "num_trajectories": (0, -4, np.nan, 6, 8.5, [8], "8"),
        "num_trials": (0, 2.0),
        "method": ("exact", None),
    }
    for name, values in bad.items():
        for value in values:
            with pytest.raises(ValueError, match=f"^{name}: got"):
                teams.simulate_regret(**{**good, name: value})
    for learner in ("shared", "orthogonal", "ols"):
        with pytest.raises(ValueError, match=r"^method: got"):
            teams.simulate_regret(**{**good, "learner": learner, "method": "sufficient"})
    with pytest.raises(ValueError, match=r"^num_trajectories: got"):
        teams.simulate_regret(**{**good, "learner": "shared", "num_trajectories": 7})
    large = teams.ParityTask(8, 16, 0.6, 0.0)
    for learner in ("joint", "orthogonal"):
        with pytest.raises(ValueError, match=r"^task: got"):
            teams.simulate_regret(**{**good, "task": large, "learner": learner})
    with pytest.raises(ValueError, match=r"^num_trajectories: got a traced"):
        jax.jit(lambda n: teams.simulate_regret(**{**good, "num_trajectories": n}))(8)
    for name, value in (("task", teams.NeedleTask(2, 2, 0.5)), ("num_samples", 0.0)):
        arguments = {"task": PAIR, "num_samples": 4.0, "num_trials": 4, name: value}
        with pytest.raises(ValueError, match=f"^{name}: got"):
            teams.simulate_full_information(jax.random.key(0), **arguments)


@pytest.mark.parametrize(("actions", "agents"), [(2, 1000), (8, 400)])
def test_more_joint_actions_than_can_be_drawn(actions: int, agents: int) -> None:
    """Beyond 1e291 the largest noise of a group underflows to +inf; 8^400 is beyond any float."""
    task = teams.ParityTask(actions, agents, 0.6, 0.0)
    with pytest.raises(ValueError, match=r"^task: got"):
        teams.simulate_regret(jax.random.key(0), task, "joint", 8.0, 4, "grouped")
