"""Failure probabilities of the two learners of `advise`, and the budgets at which they are δ.

Symbols: N trajectories (all agents act at once), C = ΠA_k joint actions, σ the noise of the team's
reward; a joint action is *bad* if its regret R* − R exceeds the accuracy ε. One agent: balanced over all
joint actions, m = N/C samples each. A team: each agent ranks its own actions by the shared reward,
m = N/A_k samples each while its teammates act uniformly, noise σ_k² = σ² + mean Var(R | a_k); the agents'
errors count as independent.
"""

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float

from boundlab.analysis.team_learning.advice_estimates import TeamTask, main_effects
from boundlab.checks import fail
from boundlab.theory.team_learning import selection_probabilities

TIE = 1e-12
"""Rewards and marginal means closer than this, relative to the spread of the rewards, are tied."""
MOST_GROUPS = 4096
"""Distinct mean rewards in the law of one agent's choice."""
SCANNED = 96
"""Budgets at which a team's failure, which may rise and fall, is looked at before the root is refined."""
FEWEST = 64
"""Groups to which smaller laws are padded."""
LEAST = 1e-300
QUIETEST = 1e-100
"""Noise over the spread of the rewards below which any number of trajectories is enough."""
LOUDEST = 1e75
"""Noise over the spread of the rewards beyond which no number of trajectories is enough."""
Failure = Callable[[float], float]


class Laws:
    """The laws of one task: rewards on the scale of their spread, ties made exact."""

    def __init__(self, task: TeamTask, accuracy: float, failure_probability: float) -> None:
        """Bad joint actions, groups of equal reward, and each agent's marginal means."""
        tensor = task.reward - task.reward.ravel()[0]
        self.spread = float(tensor.max() - tensor.min())
        slack = TIE * self.spread
        self.delta = failure_probability
        regret = tensor.max() - tensor
        self.bad: Bool[np.ndarray, "*actions"] = regret > accuracy + slack
        scale = self.spread if self.spread > 0.0 else 1.0
        self.noise = task.noise_std / scale
        self.values, self.counts, self.group_bad = _groups(regret / scale, self.bad)
        self.means = [_tied(effect / scale, TIE) for effect in main_effects(tensor)]
        self.noises = np.hypot(task.noise_std, np.sqrt(task.teammates_variance)) / scale
        chosen = tuple(int(np.argmax(mean == mean.max())) for mean in self.means)
        self.floor = float(regret[chosen])
        self.reachable = not bool(self.bad[chosen])

    def joint_failure(self, num_trajectories: float) -> float:
        """P(regret > ε) of one agent that ranks all joint actions."""
        per_arm = num_trajectories / self.bad.size
        law = _law(self.values, self.counts, per_arm, self.noise)
        return float(law[self.group_bad].sum())

    def agent_laws(self, num_trajectories: float) -> list[Float[np.ndarray, " actions"]]:
        """Probability of each action of each agent, by the central limit theorem."""
        found: dict[tuple[bytes, float], np.ndarray] = {}
        laws = []
        for mean, noise in zip(self.means, self.noises, strict=True):
            case = (mean.tobytes(), float(noise))
            if case not in found:
                per_arm = num_trajectories / len(mean)
                found[case] = _law(mean, np.ones(len(mean)), per_arm, float(noise))
            laws.append(found[case])
        return laws

    def shared_failure(self, num_trajectories: float) -> float:
        """P(regret > ε) of a team on the shared reward."""
        return self._expected_bad(self.agent_laws(num_trajectories))

    def joint_samples(self) -> float:
        """N at which one agent's failure is δ; it falls with N; 0 where it never exceeds δ."""
        if self.bad.mean() <= self.delta or self.noise < QUIETEST:
            return 0.0
        if self.noise > LOUDEST:
            return math.inf
        gap = -float(self.values[self.group_bad].max())
        size = float(self.bad.size)
        high = size * _most(size, self.delta) * (self.noise / gap) ** 2
        low = min(high, size * self.noise**2) * 1e-12
        return _root(self.joint_failure, self.delta, low, high)

    def shared_samples(self) -> float:
        """N from which on a team's failure is at most δ; +inf if its floor, or a tie, keeps it above."""
        ends = [(mean == mean.max()) / np.sum(mean == mean.max()) for mean in self.means]
        spare = self.delta - self._expected_bad(ends)
        if not self.reachable or spare <= 0.0:
            return math.inf
        if sum(actions > 1 for actions in self.bad.shape) == 1:
            return self.joint_samples()  # the same learner
        if self.noise > LOUDEST:
            return math.inf if self.bad.mean() > self.delta else 0.0
        unsure, lows = [0.0], []
        for mean, noise in zip(self.means, self.noises, strict=True):
            below = mean.max() - mean[mean < mean.max()]
            if below.size and noise > QUIETEST:
                # Together the agents err with less than half of what is to spare.
                most = _most(2.0 * float(self.bad.ndim * len(mean)), max(spare, LEAST))
                unsure.append(len(mean) * most * (float(noise) / float(below.min())) ** 2)
                lows.append(len(mean) * float(noise) ** 2 * 1e-12)
        high = max(unsure)
        if high == 0.0:
            return 0.0
        low = min([high * 1e-12, *lows])
        grid = np.geomspace(low, high, SCANNED)
        for place in range(SCANNED - 2, -1, -1):
            if self.shared_failure(float(grid[place])) > self.delta:
                return _root(self.shared_failure, self.delta, grid[place], grid[place + 1])
        return 0.0

    def _expected_bad(self, laws: list[np.ndarray]) -> float:
        left = self.bad.astype(np.float64)
        for law in laws:
            left = np.tensordot(law, left, axes=(0, 0))
        return float(left)


def _law(
    values: Float[np.ndarray, " G"], counts: Float[np.ndarray, " G"], per_arm: float, noise: float
) -> Float[np.ndarray, " G"]:
    """Probability of each group, padded by empty ones to few sizes: a program is compiled for each."""
    size = max(FEWEST, 1 << (len(values) - 1).bit_length())
    padding = (0, size - len(values))
    padded = np.pad(values, padding, "edge"), np.pad(counts, padding)
    return np.asarray(selection_probabilities(*padded, per_arm, noise))[: len(values)]


def _most(size: float, failure: float) -> float:
    """x² at which the union bound size/2·exp(−x²/4) is `failure`."""
    return 4.0 * max(math.log(size) - math.log(failure), 1.0)


def _root(failure: Failure, delta: float, low: float, high: float) -> float:
    """Where log failure crosses log δ between two budgets, to 1e-12 in log N."""
    from scipy.optimize import brentq

    target = math.log(delta)

    def excess(log_samples: float) -> float:
        return math.log(max(failure(math.exp(log_samples)), LEAST)) - target

    ends = math.log(low), math.log(high)
    if excess(ends[0]) <= 0.0:
        return 0.0
    return math.exp(brentq(excess, *ends, xtol=1e-12, rtol=1e-14))


def _groups(
    regret: np.ndarray, bad: np.ndarray
) -> tuple[Float[np.ndarray, " G"], Float[np.ndarray, " G"], Bool[np.ndarray, " G"]]:
    """Values −regret of the groups of tied joint actions, their counts, whether they are bad."""
    tied = _tied(-regret.ravel(), TIE)
    # A group is bad or not as a whole: a tie across the accuracy is cut there.
    keys = np.stack([tied, bad.ravel().astype(np.float64)])
    groups, counts = np.unique(keys, axis=1, return_counts=True)
    if groups.shape[1] > MOST_GROUPS:
        raise fail("reward", f"{groups.shape[1]} distinct rewards", f"at most {MOST_GROUPS}")
    return groups[0], counts.astype(np.float64), groups[1] > 0.5


def _tied(values: Float[np.ndarray, " n"], slack: float) -> Float[np.ndarray, " n"]:
    """The values with those that lie within `slack` of their neighbour made equal."""
    order = np.argsort(values)
    ranked = values[order]
    starts = np.concatenate([[True], np.diff(ranked) > slack])
    result = np.empty_like(values)
    result[order] = ranked[starts][np.cumsum(starts) - 1]
    return result
