"""Bandit feedback: how many trajectories one agent, and agents by themselves, need for the best action.

The additive task with one best action for each of K agents, one gap Δ; the failure asked for is δ, the
accuracy 0. N is in trajectories, in each of which all K agents act. `joint` is one agent that compares
the A^K joint actions by the outcome; `own` agents compare their A actions by their own (process) rewards;
`outcome` and `judge` agents by the team's reward in a full factorial design, whose noise is that of a
mean of subtask scores (σ_s/√K) or of one judge (σ_s).
"""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.team_learning.bandit_claims import CLAIMS as CLAIMS
from boundlab.analysis.team_learning.bandit_laws import (
    COUPLED,
    FAILURE,
    LEARNERS,
    SAMPLES,
    SHUFFLED,
    Tables,
    exact_laws,
    tables_of,
)
from boundlab.analysis.team_learning.config import Config
from boundlab.experiment import Repeat
from boundlab.models import team_simulation, teams
from boundlab.models.sample_complexity import search_groups
from boundlab.models.team_selection import arm_winners

ACTIONS = 4
# Other sizes (A, K), whose sample complexities are known to 1 % from elsewhere.
SIZES = ((2, 2), (2, 4), (8, 3))
# Trajectories of the shuffled designs: simulated, and of the lines.
BUDGETS = np.array([48, 64])
FINE_BUDGETS = np.arange(24.0, 97.0, 4.0)
# Three simulators of one law.
METHODS = ("sufficient", "grouped", "raw")


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Exact and measured sample complexities, failures of shuffled designs, three simulators."""
    sizes = [(ACTIONS, agents) for agents in config.bandit_agents]
    cells = [*sizes, *(size for size in SIZES if size not in sizes)]
    tables = tables_of(cells)
    laws = exact_laws(tables, np.concatenate([BUDGETS.astype(float), FINE_BUDGETS]))
    parts = [
        _needed(tables, laws, config, jax.random.fold_in(key, 0), repeat),
        _shuffled(laws, config, jax.random.fold_in(key, 1), repeat),
        _methods(laws, config, jax.random.fold_in(key, 2), repeat),
    ]
    return describe(xr.merge(parts), "trajectories")


def _needed(
    tables: Tables, laws: dict[str, np.ndarray], config: Config, key: jax.Array, repeat: Repeat
) -> xr.Dataset:
    """N at which failures are as rare as δ: by the exact law, and by simulated selection."""

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
            "cell": np.arange(len(tables.agents)),
            "learner": np.arange(1, len(LEARNERS)) if learner else np.array([0]),
        }
        return repeat(f"bandit-needed-{learner}", one, grid, keys, batch_size=16)

    found = [measured(slice(0, 1), 0), measured(slice(None), 1)]
    values = np.concatenate([part["value"].values for part in found], axis=1)
    dims = ("bandit_cell", "bandit_learner")
    described = {
        "exact": (dims, "exact sample complexity"),
        "slippage": (dims[:1], "that of one agent, all other arms the least gap behind"),
        "one_agent": (dims, "sample complexity if a single agent's failure counted"),
        "shared": (dims[:1], "sample complexity with shared rewards, Gaussian teammates"),
        "above": (dims, "finite-class bound from above"),
        "below": (dims, "bound from below"),
    }
    return xr.Dataset(
        {
            "bandit_measured": (
                ("bandit_seed", *dims),
                np.moveaxis(values, -1, 0),
                {"long_name": "measured sample complexity"},
            ),
            **{
                f"bandit_{name}": (where, laws[name], {"long_name": words})
                for name, (where, words) in described.items()
            },
            "bandit_actions": (dims[:1], tables.actions, {"long_name": "actions A", "units": "1"}),
            "bandit_agents": (dims[:1], tables.agents, {"long_name": "agents K", "units": "1"}),
        },
        coords={
            "bandit_cell": [
                f"A={a}, K={k}" for a, k in zip(tables.actions, tables.agents, strict=True)
            ],
            "bandit_learner": list(LEARNERS),
        },
    )


def _shuffled(
    laws: dict[str, np.ndarray], config: Config, key: jax.Array, repeat: Repeat
) -> xr.Dataset:
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
    n = len(BUDGETS)
    lines = {
        "shared_theory": (laws["kept"], "failure with teammates' variance"),
        "independent": (laws["removed"], "failure without teammates' variance"),
        "fitted_theory": (laws["fitted"], "failure of the additive fit"),
    }
    variables: dict[str, tuple] = {}
    for name, (values, words) in lines.items():
        described = {"long_name": words, "units": "1"}
        variables[f"bandit_{name}"] = ("bandit_budget", values[:n], described)
        variables[f"bandit_{name}_fine"] = ("bandit_fine", values[n:], described)
    for name, words in (("shared", "mean outcomes"), ("fitted", "an additive fit")):
        described = {"long_name": f"share of failures, shuffled designs, {words}", "units": "1"}
        dims = ("bandit_budget", "bandit_seed")
        variables[f"bandit_{name}_failure"] = (dims, found[name].values, described)
    return xr.Dataset(variables, coords={"bandit_budget": BUDGETS, "bandit_fine": FINE_BUDGETS})


def _methods(
    laws: dict[str, np.ndarray], config: Config, key: jax.Array, repeat: Repeat
) -> xr.Dataset:
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
    reward = {"units": "reward"}
    return xr.Dataset(
        {
            "bandit_regret": (
                ("bandit_seed", "bandit_method"),
                found["value"].values,
                {"long_name": "mean regret of one agent", **reward},
            ),
            "bandit_regret_exact": ((), laws["regret"], {"long_name": "its exact value", **reward}),
            "bandit_regret_uncoupled": (
                (),
                laws["uncoupled"],
                {"long_name": "exact value without coupling", **reward},
            ),
        },
        coords={"bandit_method": list(METHODS)},
    )
