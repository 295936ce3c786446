"""Simulators of teams of agents: grouped maxima against all means, and the search for N against NumPy.

    python benchmarks/team_learning_simulators.py

First, 4^8 = 65,536 joint actions of the parity task, regrets of one agent by `simulate_regret` with the
methods `sufficient` and `grouped`, a trial each; both draw the same law, which is checked by a two-sample
Kolmogorov–Smirnov test and by their means. Second, `empirical_sample_complexity` at one cell with 20,000
trials, against the same algorithm in vectorised NumPy (float64, SciPy's ndtri): the same draws of grouped
maxima, the same number of halvings of log N. The floor is the time to make the random numbers alone.
Prints medians over rounds in which the contestants alternate.
"""

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats
from scipy.special import ndtri

from boundlab.models import teams
from boundlab.models.sample_complexity import HALVINGS, SCALES
from boundlab.models.team_selection import group_maxima

LARGE = teams.ParityTask(4, 8, 0.6, 0.35)
BUDGET = 20.0 * 4**8
SUFFICIENT_TRIALS, GROUPED_TRIALS = 500, 50_000
CELL = teams.ParityTask(4, 3, 0.5, 0.0)
ACCURACY, FAILURE, TRIALS = 0.0, 0.1, 20_000
ROUNDS = 7


def numpy_search(rng: np.random.Generator, learner: str) -> tuple[float, float]:
    """N and the failure rate by bisection, the trials' numbers kept: whole arrays at each step."""
    agents, actions = CELL.num_agents, CELL.num_actions
    if learner == "joint":
        values, counts = (np.asarray(x)[None] for x in teams.reward_groups(CELL))
        arms, noise_std = actions**agents, agents**-0.5
    else:
        values = np.tile([0.0, -CELL.gap, -CELL.gap], (agents, 1))
        counts = np.tile([1.0, 1.0, actions - 2.0], (agents, 1))
        arms, noise_std = actions, CELL.own_noise_std
    e = rng.exponential(size=(*values.shape, TRIALS))
    maxima = -ndtri(-np.expm1(-e / counts[:, :, None]))
    rest = 2 + rng.integers(0, actions - 2, size=(len(values), TRIALS))
    best = 0.0

    def failure(scale: float) -> float:
        winners = np.argmax(values[:, :, None] + scale * maxima, axis=1)
        if learner == "joint":
            reward = values[0][winners[0]]
        else:
            picks = np.where(winners < 2, winners, rest)
            parity = (picks.sum(axis=0) - 1) % actions == 0
            reward = CELL.coupling * parity - CELL.gap * (picks != 0).mean(axis=0)
        return float(np.mean(best - reward > ACCURACY + 1e-12))

    low, high = np.log(np.ptp(values)) + np.log(SCALES)
    rate = np.nan
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        found = failure(np.exp(middle))
        if found <= FAILURE:
            low, rate = middle, found
        else:
            high = middle
    return arms * (noise_std / np.exp(low)) ** 2, rate


def floor(key: jax.Array, learner: str) -> jax.Array:
    """The maxima of one search, added up so that they must be made."""
    if learner == "joint":
        counts = teams.reward_groups(CELL)[1][None]
    else:
        counts = jnp.broadcast_to(jnp.array([1.0, 1.0, CELL.num_actions - 2.0]), (3, 3))
    first, second = jax.random.split(key)
    within = jax.random.uniform(second, (len(counts), TRIALS))
    return group_maxima(first, counts, TRIALS).sum() + within.sum()


def seconds(contestant: Callable[[], object]) -> float:
    """Wall time of one call, until its result is there."""
    start = time.perf_counter()
    jax.block_until_ready(contestant())
    return time.perf_counter() - start


def alternate(runs: dict[str, Callable[[], object]]) -> dict[str, np.ndarray]:
    """Seconds of each round, after one call that compiles."""
    for run in runs.values():
        seconds(run)
    spent = [[seconds(run) for run in runs.values()] for _ in range(ROUNDS)]
    return dict(zip(runs, np.array(spent).T, strict=True))


def simulators() -> None:
    """Grouped maxima against the means of all joint actions."""

    def run(method: str, trials: int) -> Callable[[], object]:
        return lambda: teams.simulate_regret(
            jax.random.key(len(method)), LARGE, "joint", BUDGET, trials, method
        )

    runs = {
        "sufficient": run("sufficient", SUFFICIENT_TRIALS),
        "grouped": run("grouped", GROUPED_TRIALS),
    }
    spent = alternate(runs)
    each = {
        "sufficient": spent["sufficient"] / SUFFICIENT_TRIALS,
        "grouped": spent["grouped"] / GROUPED_TRIALS,
    }
    print(f"one trial of one agent on 4^8 joint actions, medians of {ROUNDS} rounds")
    for name, times in each.items():
        ratio = times / each["grouped"]
        spread = f"({ratio.min():.0f} – {ratio.max():.0f})"
        print(f"  {name:28}{1e6 * np.median(times):10.2f} µs{np.median(ratio):8.0f}× {spread}")
    one, other = (np.asarray(runs[name]()) for name in runs)
    error = np.hypot(one.std() / len(one) ** 0.5, other.std() / len(other) ** 0.5)
    p_value = stats.ks_2samp(np.round(one, 9), np.round(other, 9)).pvalue
    print(f"  same law: means differ by {(one.mean() - other.mean()) / error:+.1f} standard errors, "
          f"Kolmogorov–Smirnov p = {p_value:.2f}")  # fmt: skip


def searches(learner: str) -> None:
    """The search for N against NumPy's, and the random numbers alone."""
    rng = np.random.default_rng(0)
    made = jax.jit(floor, static_argnames="learner")
    keys = iter(jax.random.split(jax.random.key(1), 4 * ROUNDS))

    def ours() -> teams.SampleComplexity:
        return teams.empirical_sample_complexity(
            next(keys), CELL, learner, ACCURACY, FAILURE, TRIALS
        )

    runs = {
        "empirical_sample_complexity": ours,
        "NumPy, the same algorithm": lambda: numpy_search(rng, learner),
        "floor: random numbers alone": lambda: made(next(keys), learner),
    }
    spent = alternate(runs)
    print(f"N of {learner!r} with {TRIALS} trials, medians of {ROUNDS} rounds")
    for name, times in spent.items():
        ratio = times / spent["empirical_sample_complexity"]
        spread = f"({ratio.min():.2f} – {ratio.max():.2f})"
        print(f"  {name:28}{1e3 * np.median(times):10.2f} ms{np.median(ratio):8.2f}× {spread}")
    print(f"  N = {float(ours().num_samples):.1f}, by NumPy {numpy_search(rng, learner)[0]:.1f}")


def main() -> None:
    """Both comparisons in float64, in which the study runs."""
    with jax.enable_x64(True):
        simulators()
        for learner in ("own", "joint"):
            searches(learner)


if __name__ == "__main__":
    main()
