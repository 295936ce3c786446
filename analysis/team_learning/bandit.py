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
    exact = _exact(tables)
    shared = _shared(tables, actions, agents)

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

    found = [measured(slice(0, 1), 0), measured(slice(None), 1)]
    values = np.concatenate([part["value"].values for part in found], axis=1)
    dims = ("bandit_cell", "bandit_learner")
    # Union bounds over 2M deviations of ε/2 (Hoeffding's, with Gaussian noise), and Mannor and
    # Tsitsiklis's bound below, at the gap of the closest arms.
    gap = np.stack([GAP / agents, np.full(len(cells), GAP), GAP / agents, GAP / agents], axis=1)
    policies = np.stack([actions**agents, *[actions * agents] * 3], axis=1).astype(float)
    unit = tables.arms * (tables.noise_std / gap) ** 2
    above = 8 * unit * np.log(2 * policies / FAILURE)
    divergence = (1 - 2 * FAILURE) * np.log((1 - FAILURE) / FAILURE)
    below = (tables.arms - 1) / tables.arms * unit / 2 * divergence
    price = np.stack([agents, agents**2], axis=1) * exact[:, 1:2]
    return xr.Dataset(
        {
            "bandit_measured": (
                ("bandit_seed", *dims),
                np.moveaxis(values, -1, 0),
                {"long_name": "measured sample complexity"},
            ),
            "bandit_exact": (dims, exact, {"long_name": "exact sample complexity"}),
            "bandit_slippage": (
                "bandit_cell",
                _slippage(tables, gap),
                {"long_name": "one agent's sample complexity, all other arms the least gap behind"},
            ),
            "bandit_one_agent": (
                dims,
                _one_agent(tables, gap),
                {"long_name": "sample complexity if a single agent's failure counted"},
            ),
            "bandit_shared": (
                "bandit_cell",
                shared,
                {"long_name": "sample complexity with shared rewards, Gaussian teammates"},
            ),
            "bandit_above": (dims, above, {"long_name": "finite-class bound from above"}),
            "bandit_below": (dims, below, {"long_name": "bound from below"}),
            "bandit_price": (
                ("bandit_cell", "bandit_signal"),
                price,
                {"long_name": "own rewards' sample complexity times the price of the team's"},
            ),
            "bandit_actions": ("bandit_cell", actions, {"long_name": "actions A", "units": "1"}),
            "bandit_agents": ("bandit_cell", agents, {"long_name": "agents K", "units": "1"}),
        },
        coords={
            "bandit_cell": [f"A={a}, K={k}" for a, k in cells],
            "bandit_learner": list(LEARNERS),
            "bandit_signal": ["outcome", "judge"],
        },
    )


def _exact(tables: Tables) -> np.ndarray:
    """The root of the exact law for every cell and learner, by one program."""
    # An agent's arms are the first row's: the team's failure is that of K such rows.
    rows = (tables.values[:, :, 0], tables.counts[:, :, 0], tables.noise_std, tables.failure)
    flat = [x.reshape(-1, *x.shape[2:]) for x in rows]
    return np.asarray(_roots(*flat)).reshape(tables.arms.shape)


@jax.jit
def _roots(
    values: jax.Array, counts: jax.Array, noise_std: jax.Array, failure: jax.Array
) -> jax.Array:
    def one(row: tuple[jax.Array, ...]) -> jax.Array:
        arms, sizes, sigma, delta = row
        return theory.joint_trajectories_needed(arms, sizes, sigma, 0.0, delta)

    return jax.lax.map(one, (values, counts, noise_std, failure))


def _separations(arms: np.ndarray, failure: np.ndarray | float) -> np.ndarray:
    return np.asarray(theory.slippage_root(arms, np.broadcast_to(failure, arms.shape)))


def _slippage(tables: Tables, gap: np.ndarray) -> np.ndarray:
    unit = tables.arms * (tables.noise_std / gap) ** 2
    return unit[:, 0] * _separations(tables.arms[:, 0], FAILURE) ** 2


def _one_agent(tables: Tables, gap: np.ndarray) -> np.ndarray:
    """With δ for each agent instead of for all together."""
    unit = tables.arms * (tables.noise_std / gap) ** 2
    return unit * _separations(tables.arms, FAILURE) ** 2


def _shared(tables: Tables, actions: np.ndarray, agents: np.ndarray) -> np.ndarray:
    """N of shared rewards: the outcome's noise and teammates' variance (E4), at gap Δ/K."""
    teammates = (agents - 1) / agents**2 * GAP**2 * (actions - 1) / actions**2
    x = _separations(actions.astype(float), tables.failure[:, 1])
    return actions * (1 / agents + teammates) * (agents / GAP * x) ** 2


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
    both = np.concatenate([budgets, left(budgets)])
    kept = np.asarray(theory.team_failure(budgets, SHUFFLED, "shared", 0.0))
    removed = np.asarray(theory.team_failure(both, SHUFFLED, "orthogonal", 0.0))
    independent, fitted = np.split(removed, 2)
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
    free = teams.ParityTask(3, 3, COUPLED.gap, 0.0, outcome_noise_std=1.0)
    exact, uncoupled = (float(theory.team_regret(budget, t, "joint")) for t in (COUPLED, free))
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
