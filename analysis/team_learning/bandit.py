"""Bandit feedback: how many trajectories one agent, and agents by themselves, need for the best action.

The additive task with one best action for each of K agents, one gap Δ; the failure asked for is δ, the
accuracy 0. N is in trajectories, in each of which all K agents act. `joint` is one agent that compares
the A^K joint actions by the outcome; `own` agents compare their A actions by their own (process) rewards;
`outcome` and `judge` agents by the team's reward in a full factorial design, whose noise is that of a
mean of subtask scores (σ_s/√K) or of one judge (σ_s).
"""

from math import comb
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.team_learning.bandit_claims import CLAIMS as CLAIMS
from boundlab.analysis.team_learning.config import Config
from boundlab.experiment import Repeat
from boundlab.models import team_simulation, teams
from boundlab.models.sample_complexity import search_groups
from boundlab.models.team_selection import arm_winners
from boundlab.theory import team_learning as theory

ACTIONS = 4
GAP, FAILURE = 0.5, 0.1
# Other sizes (A, K), whose sample complexities are known to 1 % from elsewhere.
SIZES = ((2, 2), (2, 4), (8, 3))
LEARNERS = ("joint", "own", "outcome", "judge")
# Shuffled designs: teammates' variance is a fifth of the total, and N is small.
SHUFFLED = teams.ParityTask(4, 3, 0.6, 0.0, 0.4)
BUDGETS = np.array([48, 64])
FINE_BUDGETS = np.arange(24.0, 97.0, 4.0)
# Three simulators of one law.
METHODS = ("sufficient", "grouped", "raw")
COUPLED = teams.ParityTask(3, 3, 0.6, 0.35, outcome_noise_std=1.0)
SAMPLES = 40


class Tables(NamedTuple):
    """Arms that rows of learners compare, one entry a cell and learner, padded to one shape."""

    values: np.ndarray  # (cells, learners, rows, groups)
    counts: np.ndarray  # the same; groups of no arms are padding, rows of one arm never fail
    arms: np.ndarray  # (cells, learners), N = m·arms
    noise_std: np.ndarray  # (cells, learners)
    failure: np.ndarray  # (cells, learners) at which one row must fail for the team to fail at δ


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Exact and measured sample complexities, failures of shuffled designs, three simulators."""
    sizes = [(ACTIONS, agents) for agents in config.bandit_agents]
    cells = [*sizes, *(size for size in SIZES if size not in sizes)]
    parts = [
        _needed(cells, config, jax.random.fold_in(key, 0), repeat),
        _shuffled(config, jax.random.fold_in(key, 1), repeat),
        _methods(config, jax.random.fold_in(key, 2), repeat),
    ]
    return describe(xr.merge(parts), "trajectories")


def _tables(cells: list[tuple[int, int]]) -> Tables:
    most = max(agents for _, agents in cells)
    shape = (len(cells), len(LEARNERS), most, most + 1)
    values, counts = np.zeros(shape), np.zeros(shape)
    counts[..., 0] = 1.0
    arms, noise_std, failure = (np.empty(shape[:2]) for _ in range(3))
    for c, (actions, agents) in enumerate(cells):
        away = np.arange(agents + 1)
        values[c, 0, 0, away] = -GAP / agents * away
        counts[c, 0, 0, away] = [comb(agents, j) * (actions - 1.0) ** j for j in away]
        values[c, 1:, :agents, 1] = -np.array([GAP, GAP / agents, GAP / agents])[:, None]
        counts[c, 1:, :agents, 1] = actions - 1
        arms[c] = [actions**agents, actions, actions, actions]
        noise_std[c] = [agents**-0.5, 1.0, agents**-0.5, 1.0]
        failure[c] = [FAILURE, *[1 - (1 - FAILURE) ** (1 / agents)] * 3]
    return Tables(values, counts, arms, noise_std, failure)


def _needed(
    cells: list[tuple[int, int]], config: Config, key: jax.Array, repeat: Repeat
) -> xr.Dataset:
    """N at which failures are as rare as δ: by the exact law, and by simulated selection."""
    tables = _tables(cells)
    actions, agents = (np.array(column) for column in zip(*cells, strict=True))

    def measured(rows: slice, learner: int) -> xr.Dataset:
        # One agent is one row, a team K; each gets a program without the other's padding.
        values, counts = (jnp.asarray(x[:, :, rows]) for x in (tables.values, tables.counts))
        if learner:
            values, counts = values[..., :2], counts[..., :2]

        def one(params: dict[str, jax.Array], key: jax.Array) -> jax.Array:
            at = (params["cell"], params["learner"])
            needed, _ = search_groups(
                jax.random.fold_in(key, params["learner"]),
                values[at],
                counts[at],
                jnp.asarray(tables.arms)[at],
                jnp.asarray(tables.noise_std)[at],
                lambda winners, _: (winners != 0).any(axis=0),
                jnp.float64(FAILURE),
                config.bandit_trials,
            )
            return needed

        keys = jax.random.split(jax.random.fold_in(key, learner), config.bandit_seeds)
        grid = {
            "cell": np.arange(len(cells)),
            "learner": np.arange(1, len(LEARNERS)) if learner else np.array([0]),
        }
        return repeat(f"bandit-needed-{learner}", one, grid, keys, batch_size=16)

    gap = np.stack([GAP / agents, np.full(len(cells), GAP), GAP / agents, GAP / agents], axis=1)
    exact = _exact(tables, gap)
    outcome = exact["exact"][:, LEARNERS.index("outcome")]
    shared = outcome * (1 + agents * _teammates(actions, agents, GAP))
    found = [measured(slice(0, 1), 0), measured(slice(None), 1)]
    values = np.concatenate([part["value"].values for part in found], axis=1)
    dims = ("bandit_cell", "bandit_learner")
    # Union bounds over 2M deviations of ε/2 (Hoeffding's, with Gaussian noise), and Mannor and
    # Tsitsiklis's bound below, at the gap of the closest arms.
    policies = np.stack([actions**agents, *[actions * agents] * 3], axis=1).astype(float)
    unit = tables.arms * (tables.noise_std / gap) ** 2
    above = 8 * unit * np.log(2 * policies / FAILURE)
    divergence = (1 - 2 * FAILURE) * np.log((1 - FAILURE) / FAILURE)
    below = (tables.arms - 1) / tables.arms * unit / 2 * divergence
    return xr.Dataset(
        {
            "bandit_measured": (
                ("bandit_seed", *dims),
                np.moveaxis(values, -1, 0),
                {"long_name": "measured sample complexity"},
            ),
            "bandit_exact": (dims, exact["exact"], {"long_name": "exact sample complexity"}),
            "bandit_slippage": (
                "bandit_cell",
                exact["slippage"],
                {"long_name": "one agent's sample complexity, all other arms the least gap behind"},
            ),
            "bandit_one_agent": (
                dims,
                exact["one_agent"],
                {"long_name": "sample complexity if a single agent's failure counted"},
            ),
            "bandit_shared": (
                "bandit_cell",
                shared,
                {"long_name": "sample complexity with shared rewards, Gaussian teammates"},
            ),
            "bandit_above": (dims, above, {"long_name": "finite-class bound from above"}),
            "bandit_below": (dims, below, {"long_name": "bound from below"}),
            "bandit_actions": ("bandit_cell", actions, {"long_name": "actions A", "units": "1"}),
            "bandit_agents": ("bandit_cell", agents, {"long_name": "agents K", "units": "1"}),
        },
        coords={
            "bandit_cell": [f"A={a}, K={k}" for a, k in cells],
            "bandit_learner": list(LEARNERS),
        },
    )


def _exact(tables: Tables, gap: np.ndarray) -> dict[str, np.ndarray]:
    """Exact N (cells, learners), and what it were under two wrong theories."""
    values, counts = (jnp.asarray(x[:, 0, 0]) for x in (tables.values, tables.counts))
    joint = np.asarray(_roots(values, counts, jnp.asarray(tables.noise_std[:, 0])))
    # Separations at the learners' own failures, and at δ for everyone: one call, one program.
    numbers = np.stack([tables.arms, tables.arms])
    failure = np.stack([tables.failure, np.full_like(tables.failure, FAILURE)])
    x = np.asarray(theory.slippage_root(numbers.ravel(), failure.ravel())).reshape(numbers.shape)
    unit = tables.arms * (tables.noise_std / gap) ** 2
    exact, one_agent = unit * x**2
    slippage = exact[:, 0].copy()
    exact[:, 0] = joint
    return {"exact": exact, "one_agent": one_agent, "slippage": slippage}


@jax.jit
def _roots(values: jax.Array, counts: jax.Array, noise_std: jax.Array) -> jax.Array:
    def one(row: tuple[jax.Array, ...]) -> jax.Array:
        return theory.joint_trajectories_needed(*row, 0.0, FAILURE)

    return jax.lax.map(one, (values, counts, noise_std))


def _teammates(actions: np.ndarray, agents: np.ndarray, gap: float) -> np.ndarray:
    """Variance of the additive reward when teammates act uniformly (E4)."""
    return (agents - 1) / agents**2 * gap**2 * (actions - 1) / actions**2


def _failure(budgets: np.ndarray, noise_variance: float) -> np.ndarray:
    """P(any of the shuffled task's agents errs) by (E2), with this noise in its outcomes."""
    samples = budgets / SHUFFLED.num_actions
    x = SHUFFLED.gap / SHUFFLED.num_agents * np.sqrt(samples / noise_variance)
    q = np.asarray(theory.slippage_failure(float(SHUFFLED.num_actions), x))
    return -np.expm1(SHUFFLED.num_agents * np.log1p(-q))


def _shuffled(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Failures where teammates shuffle: by mean outcomes of actions, and by an additive fit."""
    pattern, payoffs = team_simulation.halves(SHUFFLED)
    rows = int(BUDGETS.max())

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        samples = (params["bandit_budget"] // pattern.num_actions).astype(jnp.int32)

        def trial(key: jax.Array) -> tuple[jax.Array, jax.Array]:
            played, outcomes, used = team_simulation.shuffled_outcomes(
                key, payoffs, samples, pattern, rows
            )
            means = team_simulation.action_means(played, outcomes, samples, pattern)
            fit = team_simulation.additive_fit(played, outcomes, used, pattern)
            picks = [arm_winners(scores, scores) for scores in (means, fit)]
            return (picks[0] != 0).any(), (picks[1] != 0).any()

        failed = jax.vmap(trial)(jax.random.split(key, config.bandit_raw_trials))
        shares = [jnp.mean(part.astype(jnp.float64)) for part in failed]
        return {"shared": shares[0], "fitted": shares[1]}

    keys = jax.random.split(key, config.bandit_seeds)
    found = repeat("bandit-shuffled", one, {"bandit_budget": BUDGETS}, keys, batch_size=4)
    # The other agents' coefficients take d of the N − 1 degrees of freedom from an agent's.
    d = (SHUFFLED.num_agents - 1) * (SHUFFLED.num_actions - 1)

    def left(budgets: np.ndarray) -> np.ndarray:
        return budgets * (1 - d / (budgets - 1))

    budgets = np.concatenate([BUDGETS.astype(float), FINE_BUDGETS])
    noise = SHUFFLED.own_noise_std**2 / SHUFFLED.num_agents
    both = noise + float(
        _teammates(np.array(SHUFFLED.num_actions), np.array(SHUFFLED.num_agents), SHUFFLED.gap)
    )
    kept, independent = _failure(budgets, both), _failure(budgets, noise)
    fitted = _failure(left(budgets), noise)
    n = len(BUDGETS)
    lines = {
        "shared_theory": (kept, "failure with teammates' variance"),
        "independent": (independent, "failure without teammates' variance"),
        "fitted_theory": (fitted, "failure of the additive fit"),
    }
    variables = {}
    for name, (values, words) in lines.items():
        described = {"long_name": words, "units": "1"}
        variables[f"bandit_{name}"] = ("bandit_budget", values[:n], described)
        variables[f"bandit_{name}_fine"] = ("bandit_fine", values[n:], described)
    for name, words in (("shared", "mean outcomes"), ("fitted", "an additive fit")):
        described = {"long_name": f"share of failures, shuffled designs, {words}", "units": "1"}
        dims = ("bandit_budget", "bandit_seed")
        variables[f"bandit_{name}_failure"] = (dims, found[name].values, described)
    return xr.Dataset(variables, coords={"bandit_budget": BUDGETS, "bandit_fine": FINE_BUDGETS})


def _methods(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Mean regret of one agent on a coupled task by three simulators, and its exact value."""
    budget = SAMPLES * COUPLED.num_actions**COUPLED.num_agents

    def one(params: dict[str, jax.Array], key: jax.Array) -> jax.Array:
        del params
        means = [
            jnp.mean(
                teams.simulate_regret(
                    jax.random.fold_in(key, i),
                    COUPLED,
                    "joint",
                    budget,
                    config.bandit_raw_trials,
                    method,
                )
            )
            for i, method in enumerate(METHODS)
        ]
        return jnp.stack(means)

    keys = jax.random.split(key, config.bandit_seeds)
    found = repeat("bandit-methods", one, {}, keys, batch_size=4)
    exact, uncoupled = _joint_regret(COUPLED.coupling), _joint_regret(0.0)
    reward = {"units": "reward"}
    return xr.Dataset(
        {
            "bandit_regret": (
                ("bandit_seed", "bandit_method"),
                found["value"].values,
                {"long_name": "mean regret of one agent", **reward},
            ),
            "bandit_regret_exact": ((), exact, {"long_name": "its exact value", **reward}),
            "bandit_regret_uncoupled": (
                (),
                uncoupled,
                {"long_name": "exact value without coupling", **reward},
            ),
        },
        coords={"bandit_method": list(METHODS)},
    )


def _joint_regret(coupling: float) -> float:
    """Σ_g P_g (v_max − v_g) at `SAMPLES` an arm, by (E1)."""
    task = COUPLED
    values, counts = (
        np.asarray(x)
        for x in theory.parity_spectrum(task.num_actions, task.num_agents, task.gap, coupling)
    )
    law = theory.selection_probabilities(values, counts, SAMPLES, 1.0)
    return float(np.asarray(law) @ (values[counts > 0].max() - values))
