"""The advice on team tasks: budgets by drawn choices, estimates by matrices and coverage."""

import jaxtyping
import numpy as np
import pytest
import scipy.stats

from boundlab.analysis.team_learning import advice_estimates as estimates
from boundlab.analysis.team_learning.advice import advise
from boundlab.theory.team_learning import anova_alignment

ASKED = {"accuracy": 0.1, "failure_probability": 0.1}


@pytest.fixture
def as_users_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch the run-time type checker off, which would refuse some bad input before we do."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def parity(actions: int, agents: int, gap: float, coupling: float) -> np.ndarray:
    places = np.indices((actions,) * agents)
    deviations = np.sum(places != 0, axis=0)
    return -deviations * gap / agents + coupling * (places.sum(axis=0) % actions == 1)


def uneven() -> np.ndarray:
    """Three agents with 3, 2 and 2 actions."""
    return np.random.default_rng(5).normal(size=(3, 2, 2))


def logs(
    reward: np.ndarray, counts: np.ndarray, noise: float | np.ndarray, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Episodes in which each joint action occurs `counts` times."""
    cells = np.repeat(np.arange(reward.size), np.broadcast_to(counts, reward.shape).ravel())
    actions = np.stack(np.unravel_index(cells, reward.shape), axis=1)
    spread = np.broadcast_to(noise, reward.shape).ravel()[cells]
    drawn = np.random.default_rng(seed).standard_normal(len(cells))
    return actions, reward.ravel()[cells] + spread * drawn


@pytest.mark.parametrize(
    ("actions", "agents", "sarl", "marl"), [(4, 2, 1002, 275.4), (4, 3, 6834, 487.8)]
)
def test_budgets_of_the_golden_table(actions: int, agents: int, sarl: float, marl: float) -> None:
    """Additive reward, Δ = .5, σ_o = 1/√K, no regret allowed, δ = .1 (rounded there)."""
    reward = parity(actions, agents, 0.5, 0.0)
    asked = {"accuracy": 1e-9, "failure_probability": 0.1, "noise_std": agents**-0.5}
    found = advise(reward, **asked)
    np.testing.assert_allclose([found.sarl_samples, found.marl_samples], [sarl, marl], rtol=1e-3)
    assert found.decompose
    assert found.alignment_interval == (found.alignment, found.alignment)
    np.testing.assert_allclose([found.alignment, found.floor], [1.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("reward", [uneven(), parity(3, 2, 0.6, 0.35)])
def test_budgets_by_drawing_choices(reward: np.ndarray) -> None:
    """At the N returned, the failure rate is δ: means of arms are drawn and the best is taken."""
    accuracy = float(bias_floor_by_hand(reward)) + 0.4
    noise, delta, draws = 0.7, 0.2, 100_000
    asked = {"accuracy": accuracy, "failure_probability": delta, "noise_std": noise}
    found = advise(reward, **asked)
    bad = reward.max() - reward > accuracy
    rng = np.random.default_rng(0)
    spread = noise * np.sqrt(reward.size / found.sarl_samples)
    chosen = np.argmax(reward.ravel() + spread * rng.standard_normal((draws, reward.size)), axis=1)
    rates = [bad.ravel()[chosen].mean()]
    actions = []
    for k in range(reward.ndim):
        by_action = np.moveaxis(reward, k, 0).reshape(reward.shape[k], -1)
        effective = np.sqrt(noise**2 + by_action.var(axis=1).mean())
        spread = effective * np.sqrt(reward.shape[k] / found.marl_samples)
        drawn = by_action.mean(axis=1) + spread * rng.standard_normal((draws, reward.shape[k]))
        actions.append(drawn.argmax(axis=1))
    rates.append(bad[tuple(actions)].mean())
    error = np.sqrt(delta * (1 - delta) / draws)
    assert np.abs((np.array(rates) - delta) / error).max() < 4.9


def test_a_failure_that_rises_before_it_falls() -> None:
    """Chance alone fails less often than δ, a little data more often: N is where that ends."""
    reward = np.array([[[0.487, 0.738], [0.971, 0.683]], [[0.928, 0.69], [0.772, 0.597]]])
    asked = {"accuracy": 0.447, "failure_probability": 0.13, "noise_std": 0.3}
    bad = reward.max() - reward > 0.447
    assert bad.mean() < 0.13
    samples, draws = advise(reward, **asked).marl_samples, 400_000
    rng, actions = np.random.default_rng(0), []
    for k in range(3):
        by_action = np.moveaxis(reward, k, 0).reshape(2, 4)
        spread = np.sqrt((0.3**2 + by_action.var(axis=1).mean()) * 2 / samples)
        drawn = by_action.mean(axis=1) + spread * rng.standard_normal((draws, 2))
        actions.append(drawn.argmax(axis=1))
    error = np.sqrt(0.13 * 0.87 / draws)
    assert abs(bad[tuple(actions)].mean() - 0.13) < 4.9 * error


def bias_floor_by_hand(reward: np.ndarray) -> float:
    chosen = [
        int(np.moveaxis(reward, k, 0).reshape(reward.shape[k], -1).mean(axis=1).argmax())
        for k in range(reward.ndim)
    ]
    return float(reward.max() - reward[tuple(chosen)])


def test_the_teams_budget_by_trajectories() -> None:
    """Uniform teammates, drawn: the central limit theorem is off by a few per cent of δ at N = 303."""
    reward, noise, draws = parity(4, 3, 0.6, 0.25), 3**-0.5, 4000
    found = advise(reward, noise_std=noise, **ASKED)
    size = 4 * round(found.marl_samples / 4)
    rng = np.random.default_rng(0)
    base = np.repeat(np.arange(4), size // 4)
    bad = 0
    for _ in range(draws):
        a = np.stack([rng.permutation(base) for _ in range(3)])
        r = reward[tuple(a)] + noise * rng.standard_normal(size)
        chosen = tuple(int(np.bincount(own, r).argmax()) for own in a)
        bad += reward.max() - reward[chosen] > 0.1
    error = np.sqrt(0.1 * 0.9 / draws)
    assert abs(bad / draws - 0.1) < 0.01 + 4.9 * error


def test_alignment_and_floor() -> None:
    """The alignment in closed form, 1/(1 + Kλ²/Δ²), and by the theory for any reward."""
    rng = np.random.default_rng(1)
    for reward in (rng.normal(size=(3, 3, 3)), parity(3, 3, 0.6, 0.35)):
        found = advise(reward, **ASKED)
        np.testing.assert_allclose(found.alignment, anova_alignment(reward), rtol=1e-12)
        np.testing.assert_allclose(found.floor, bias_floor_by_hand(reward), atol=1e-14)
    np.testing.assert_allclose(found.alignment, 1 / (1 + 3 * 0.35**2 / 0.6**2), rtol=1e-12)
    np.testing.assert_allclose(advise(uneven(), **ASKED).floor, bias_floor_by_hand(uneven()))


def test_a_floor_above_the_accuracy_is_never_reached() -> None:
    found = advise(parity(4, 3, 0.6, 0.35), **ASKED)
    np.testing.assert_allclose(found.floor, 0.15, atol=1e-12)
    assert (found.marl_samples, found.decompose) == (np.inf, False)
    assert 0.0 < found.sarl_samples < np.inf
    # A regret that equals the accuracy up to rounding is allowed.
    assert advise(parity(4, 3, 0.6, 0.3), **ASKED).marl_samples < np.inf
    # Pure coordination: each agent's actions are tied whatever the budget.
    found = advise(np.eye(2)[::-1], **ASKED)
    assert (found.marl_samples, found.alignment) == (np.inf, 0.0)


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_degenerate_tasks(noise: float) -> None:
    for reward in (np.zeros((3, 3)), np.full((1, 1, 1), 7.0), np.full((2,), -1e90)):
        found = advise(reward, noise_std=noise, **ASKED)
        assert found == (1.0, (1.0, 1.0), 0.0, 0.0, 0.0, False)
    alone = advise([0.0, 0.5, 1.0], noise_std=noise, **ASKED)
    assert alone.sarl_samples == alone.marl_samples
    assert not alone.decompose
    assert (alone.sarl_samples > 0.0) == (noise > 0.0)
    # One agent with a choice, others without: one learner for both.
    beside = advise(np.array([[0.0, 0.5, 1.0]]), noise_std=noise, **ASKED)
    np.testing.assert_allclose(beside.sarl_samples, alone.sarl_samples, rtol=1e-9)
    assert beside.alignment == 1.0
    # Chance alone is good enough where few joint actions are bad.
    many = np.concatenate([np.zeros(1), np.ones(19)]).reshape(4, 5)
    assert advise(many, noise_std=noise, **ASKED).sarl_samples == 0.0


def test_extreme_noise_and_accuracy() -> None:
    reward = parity(3, 2, 0.6, 0.1)
    for noise, accuracy in ((1e90, 0.1), (1e-90, 1e-90), (1e70, 1e-90), (1e-90, 1e90)):
        found = advise(reward, noise_std=noise, accuracy=accuracy, failure_probability=1e-9)
        assert not np.isnan(found[2:5]).any()
        assert (found.sarl_samples == np.inf) == (noise == 1e90)
    assert found[3:] == (0.0, 0.0, False)


def test_scale_and_offset_change_nothing_but_units() -> None:
    reward = parity(3, 2, 0.6, 0.2)
    found = advise(reward, noise_std=0.5, **ASKED)
    scaled = advise(1e8 * reward + 1e9, accuracy=1e7, failure_probability=0.1, noise_std=0.5e8)
    np.testing.assert_allclose(scaled.floor, 1e8 * found.floor, atol=1.0)
    np.testing.assert_allclose(scaled[3:5], found[3:5], rtol=1e-6)
    np.testing.assert_allclose(scaled.alignment, found.alignment, rtol=1e-6)


def test_smaller_failure_probabilities_take_more() -> None:
    reward = parity(3, 2, 0.6, 0.1)
    budgets = [
        advise(reward, accuracy=0.1, failure_probability=delta)[3:5]
        for delta in (0.999, 0.3, 1e-3, 1e-9)
    ]
    assert (np.diff(budgets, axis=0) > 0.0).all()
    assert budgets[0] == (0.0, 0.0)


def test_logs_without_noise_are_the_tensor() -> None:
    reward = uneven()
    counts = np.random.default_rng(0).integers(1, 4, reward.shape)
    actions, rewards = logs(reward, counts, 0.0)
    known, found = (
        advise(reward, noise_std=0.0, **ASKED),
        advise(actions=actions, rewards=rewards, **ASKED),
    )
    np.testing.assert_allclose(found.alignment, known.alignment, rtol=1e-9)
    np.testing.assert_allclose(found.alignment_interval, known.alignment, atol=6e-4)
    np.testing.assert_allclose(found.floor, known.floor, atol=1e-9)
    loud, told = (
        advise(reward, noise_std=0.5, **ASKED),
        advise(actions=actions, rewards=rewards, noise_std=0.5, **ASKED),
    )
    assert told.alignment_interval[0] < told.alignment < told.alignment_interval[1]
    assert 0.0 < told.sarl_samples < np.inf
    assert loud.sarl_samples > 0.0


def test_many_logs_find_the_task() -> None:
    reward = parity(3, 2, 0.6, 0.25)  # no regret is near the accuracy
    actions, rewards = logs(reward, np.array(20_000), 0.5)
    known = advise(reward, noise_std=0.5, **ASKED)
    found = advise(actions=actions, rewards=rewards, **ASKED)
    low, high = found.alignment_interval
    assert low < known.alignment < high
    assert high - low < 0.05
    np.testing.assert_allclose(found[2:5], known[2:5], rtol=0.1, atol=0.02)


def test_noise_is_the_pooled_variance_within_joint_actions() -> None:
    reward = uneven()
    counts = np.random.default_rng(0).integers(1, 5, reward.shape)
    counts[0, 0, 0] = 1
    actions, rewards = logs(reward, counts, 0.7)
    cells = np.ravel_multi_index(tuple(actions.T), reward.shape)
    groups = [rewards[cells == cell] for cell in range(reward.size)]
    squares = sum(float(np.sum((group - group.mean()) ** 2)) for group in groups)
    expected = np.sqrt(squares / sum(len(group) - 1 for group in groups))
    found = estimates.task_of_logs(actions, rewards, None)
    np.testing.assert_allclose(found.noise_std, expected, rtol=1e-12)
    np.testing.assert_array_equal(found.visits, counts)


def test_the_estimated_reward_has_the_estimated_alignment() -> None:
    """Noise is taken off the sums of squares of the reward that budgets are computed from, too."""
    actions, rewards = logs(parity(3, 3, 0.6, 0.3), np.array(6), 0.5)
    found = estimates.task_of_logs(actions, rewards, None)
    np.testing.assert_allclose(anova_alignment(found.reward), found.alignment, rtol=1e-9)
    raw = np.zeros((3, 3, 3))
    np.add.at(raw, tuple(actions.T), rewards / 6)
    # Unbiased for balanced logs: less σ²/n times the degrees of freedom, by cells.
    expected = np.var(raw) - found.noise_std**2 / 6 * 26 / 27
    np.testing.assert_allclose(np.var(found.reward), expected, rtol=1e-9)
    spread = np.mean([raw.var(axis=tuple(j for j in range(3) if j != k)).mean() for k in range(3)])
    assert found.teammates_variance.mean() < spread


def test_moments_of_the_interval_by_matrices() -> None:
    v = np.random.default_rng(0).random((3, 2, 4))
    places = np.stack(np.unravel_index(np.arange(v.size), v.shape))
    same = places[:, :, None] == places[:, None, :]
    p = sum((size * same[k] - 1.0) / v.size for k, size in enumerate(v.shape))
    q = np.eye(v.size) - 1.0 / v.size
    s = np.diag(v.ravel())
    expected = [np.trace(a @ s @ b @ s) for a, b in ((p, p), (p, q), (q, q))]
    np.testing.assert_allclose(estimates._traces(v), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("coupling", "counts", "noise"),
    [
        (0.0, 3, 0.577),
        (0.35, "uneven", "uneven"),
    ],
)
def test_the_interval_covers(coupling: float, counts: object, noise: object) -> None:
    """About 95 %: more near A₁ = 1, where the interval ends; never below 93 %, by a binomial test."""
    rng = np.random.default_rng(7)
    reward, runs = parity(3, 3, 0.6, coupling), 120
    number = rng.integers(1, 9, reward.shape) if counts == "uneven" else np.array(counts)
    spread = 0.2 + 0.8 * rng.random(reward.shape) if noise == "uneven" else np.asarray(noise)
    share = float(anova_alignment(reward))
    covered = 0
    for run in range(runs):
        found = estimates.task_of_logs(*logs(reward, number, spread, run), None)
        low, high = found.interval
        assert low <= found.alignment <= high
        covered += low - 1e-9 <= share <= high + 1e-9
    assert scipy.stats.binom.cdf(covered, runs, 0.93) > 1e-6


ACTIONS, REWARDS = logs(parity(2, 2, 0.6, 0.1), np.array(2), 0.5)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("reward", {"reward": [[0.0, np.nan]]}),
        ("reward", {"reward": [[0.0, np.inf]]}),
        ("reward", {"reward": 3.0}),
        ("reward", {"reward": []}),
        ("reward", {"reward": "words"}),
        ("reward", {"reward": np.full((2, 2), 1e200)}),
        ("reward", {"reward": [[0.0, 1e-200]]}),
        ("reward", {"reward": np.zeros((2,) * 21)}),
        ("reward", {"reward": np.random.default_rng(0).random((70, 70))}),
        ("reward", {"reward": None}),
        ("actions", {"actions": ACTIONS}),
        ("rewards", {"rewards": REWARDS}),
        ("rewards", {"reward": None, "actions": ACTIONS}),
        ("actions", {"reward": None, "rewards": REWARDS}),
        ("accuracy", {"accuracy": 0.0}),
        ("accuracy", {"accuracy": np.nan}),
        ("accuracy", {"accuracy": [0.1, 0.2]}),
        ("failure_probability", {"failure_probability": 0.0}),
        ("failure_probability", {"failure_probability": 1.0}),
        ("failure_probability", {"failure_probability": "a"}),
        ("noise_std", {"noise_std": -1.0}),
        ("noise_std", {"noise_std": np.inf}),
        ("noise_std", {"noise_std": [1.0]}),
    ],
)
def test_bad_arguments_are_named(name: str, change: dict, as_users_call: None) -> None:
    with pytest.raises(ValueError, match=f"^{name}:"):
        advise(**{"reward": np.eye(2), **ASKED, **change})


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("actions", {"actions": np.zeros((0, 2), int), "rewards": np.zeros(0)}),
        ("actions", {"actions": ACTIONS[:, 0]}),
        ("actions", {"actions": ACTIONS - 1}),
        ("actions", {"actions": ACTIONS * 1.0}),
        ("actions", {"actions": ACTIONS * 2}),
        ("actions", {"actions": ACTIONS * 10**6}),
        ("actions", {"actions": [["a", "b"]]}),
        ("actions", {"actions": [[0, 1], [1]]}),
        ("actions", {"actions": ACTIONS[::2], "rewards": REWARDS[::2]}),
        ("rewards", {"rewards": REWARDS[:-1]}),
        ("rewards", {"rewards": REWARDS * np.nan}),
        ("rewards", {"rewards": REWARDS[:, None]}),
    ],
)
def test_bad_logs_are_named(name: str, change: dict, as_users_call: None) -> None:
    with pytest.raises(ValueError, match=f"^{name}:"):
        advise(**{"actions": ACTIONS, "rewards": REWARDS, **ASKED, **change})


def test_the_joint_action_without_an_episode_is_named() -> None:
    kept = ~((ACTIONS[:, 0] == 1) & (ACTIONS[:, 1] == 0))
    with pytest.raises(ValueError, match=r"1 of 4 joint actions, as of \(1, 0\)"):
        advise(actions=ACTIONS[kept], rewards=REWARDS[kept], **ASKED)
    # Each seen once: the noise must be known.
    once = {"actions": ACTIONS[::2], "rewards": REWARDS[::2]}
    with pytest.raises(ValueError, match="noise_std"):
        advise(**once, **ASKED)
    assert np.isfinite(advise(**once, noise_std=0.5, **ASKED).alignment)


def test_ends_of_noise_and_failure_probability() -> None:
    """Noise that squares to 0 is none; probabilities below the laws' range are refused by name."""
    reward = np.array([[0.0, 1.0], [0.2, 0.3]])
    found = advise(reward, **ASKED, noise_std=1e-170)
    none = advise(reward, **ASKED, noise_std=0.0)
    assert (found.sarl_samples, found.marl_samples) == (0.0, none.marl_samples)
    with pytest.raises(ValueError, match=r"^failure_probability: got 1e-305"):
        advise(reward, accuracy=0.1, failure_probability=1e-305)


def test_one_agent_with_a_choice_is_one_agent() -> None:
    found = advise(np.array([[0.0, 0.5, 0.9]]).T, **ASKED)
    assert found.marl_samples == found.sarl_samples
    assert not found.decompose
