"""Bounds on sample complexity beside exact sizes: one agent against a team, and how loose bounds are.

Exact sizes where every candidate is scored on the same n prompts (full information), ratios of bounds,
sizes of discovery without noise, and total variation of token policies; failures at those sizes are
simulated. n counts samples per arm, that is prompts; trajectories in discovery. Agents of a team see
their own rewards.
"""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.team_learning.bounds_claims import CLAIMS as CLAIMS
from boundlab.analysis.team_learning.bounds_exact import (
    ACTIONS,
    AGENTS,
    CELLS,
    crossovers,
    discoveries,
    ratios,
    variations,
)
from boundlab.analysis.team_learning.config import Config
from boundlab.experiment import Repeat
from boundlab.models import teams
from boundlab.models.team_selection import group_maxima, group_winners
from boundlab.theory import team_learning as theory

SIZES = ("one", "k_times_team", "union", "fano")
GAP, SAMPLES = 0.6, 15
COUPLINGS = np.array([0.1, 0.35, 0.6])
DISCOVERY_ACTIONS = np.array([2, 3, 4])
DISCOVERY_AGENTS, DISCOVERY_DELTAS = 3, np.array([0.1, 0.03])


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Sizes, ratios and rates of failure as one dataset."""
    exact = ratios()
    parts = [
        exact,
        crossovers(),
        discoveries(DISCOVERY_ACTIONS, DISCOVERY_AGENTS, DISCOVERY_DELTAS),
        variations(jax.random.key(0)),
        _failures(exact, config, jax.random.fold_in(key, 0), repeat),
        _joint(exact, config, jax.random.fold_in(key, 1), repeat),
        _discovered(config, jax.random.fold_in(key, 2), repeat),
    ]
    return describe(xr.merge(parts), "1")


def _failures(table: xr.Dataset, config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Rates of failure of one agent and of a team with their own sizes, and with those of wrong rules."""
    arms = CELLS[:, 0].astype(float) ** CELLS[:, 1]
    squares = {name: table[f"bounds_size_{name}"].values for name in (*SIZES, "team", "undivided")}
    most = int(CELLS[:, 1].max())
    # One agent's candidates and each teammate's: the best one and all others.
    counts = np.stack(
        [np.stack([np.ones(len(CELLS)), many - 1.0], axis=1) for many in (arms, CELLS[:, 0])]
    )
    joint = np.stack([squares[name] for name in SIZES], axis=1)
    team = np.stack([squares["team"], squares["undivided"]], axis=1)

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        cell, (first, second) = params["cell"], jax.random.split(key)
        values = jnp.asarray([[0.0, -1.0]])

        def missed(maxima: jax.Array, sizes: np.ndarray, rows: int) -> jax.Array:
            """Which winners aren't the best, (sizes, rows, trials)."""
            levels = jnp.broadcast_to(values, (rows, 2))
            groups = jnp.ones((rows, 2))
            return jnp.stack(
                [
                    group_winners(levels, groups, maxima, 1.0 / jnp.sqrt(square)) != 0
                    for square in jnp.asarray(sizes)[cell]
                ]
            )

        alone = group_maxima(first, jnp.asarray(counts[0])[cell][None], config.bounds_trials)
        rows = jnp.broadcast_to(jnp.asarray(counts[1])[cell], (most, 2))
        each = group_maxima(second, rows, config.bounds_trials)
        present = jnp.arange(most) < jnp.asarray(CELLS[:, 1])[cell]
        wrong = jnp.any(missed(each, team, most) & present[None, :, None], axis=1)
        return {
            "joint": jnp.mean(missed(alone, joint, 1)[:, 0], axis=1, dtype=alone.dtype),
            "team": jnp.mean(wrong, axis=1, dtype=alone.dtype),
        }

    keys = jax.random.split(key, config.bounds_seeds)
    grid = {"cell": np.arange(len(CELLS), dtype=np.int32)}
    found = repeat("bounds-failures", one, grid, keys)
    dims = ("bounds_seed", "bounds_cell")
    data = {}
    for place, name in enumerate(SIZES):
        data[f"bounds_failure_{name}"] = (
            dims,
            found["joint"].transpose("seed", "cell", ...).values[..., place],
            {"long_name": f"rate of failure of one agent, size: {name.replace('_', ' ')}"},
        )
    for place, name in enumerate(("team", "undivided")):
        data[f"bounds_failure_{name}"] = (
            dims,
            found["team"].transpose("seed", "cell", ...).values[..., place],
            {"long_name": f"rate of failure of a team, size: {name}"},
        )
    return xr.Dataset(data)


def _joint(exact: xr.Dataset, config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Joint and per-agent empirical maximisers on the same scores, and the law of one agent's choice."""
    samples = float(exact["bounds_size_joint"]) / GAP**2
    # Additive with noise, then coupled: with noise, and without.
    couplings = np.concatenate([[0.0, COUPLINGS[-1]], COUPLINGS])
    noises = np.concatenate([[1.0, 1.0], np.zeros(len(COUPLINGS))])
    levels = -GAP / AGENTS * np.arange(AGENTS + 1)

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        del params
        trials = config.bounds_trials

        def at(row: jax.Array) -> jax.Array:
            task = teams.ParityTask(ACTIONS, AGENTS, GAP, row[0], own_noise_std=row[1])
            found = teams.simulate_full_information(key, task, samples, trials)
            joint, separate = (teams.team_reward(task, actions) for actions in found)
            differs = jnp.any(found.joint != found.separate, axis=1)
            fails = jnp.any(found.joint != 0, axis=1)
            of_each = (differs.astype(joint.dtype), fails.astype(joint.dtype), joint - separate)
            return jnp.stack([jnp.mean(values) for values in of_each])

        rows = jax.lax.map(at, jnp.asarray(np.stack([couplings, noises], axis=1)))
        task = teams.ParityTask(ACTIONS, AGENTS, GAP, outcome_noise_std=1.0)
        other = jax.random.fold_in(key, 0)
        regret = teams.simulate_regret(
            other, task, "joint", SAMPLES * ACTIONS**AGENTS, config.bounds_trials
        )
        chosen = jnp.abs(regret[:, None] + jnp.asarray(levels)[None, :]) < 1e-6
        return {"rows": rows, "chosen": jnp.mean(chosen, axis=0, dtype=regret.dtype)}

    keys = jax.random.split(key, config.bounds_seeds)
    found = repeat("bounds-joint", one, {}, keys)
    rows = found["rows"].transpose("seed", ...).values
    values, counts = theory.parity_spectrum(ACTIONS, AGENTS, GAP, 0.0)
    law = theory.selection_probabilities(values, counts, SAMPLES, 1.0)
    even = theory.selection_probabilities(values, np.minimum(np.asarray(counts), 1.0), SAMPLES, 1.0)
    grouped = np.isclose(np.asarray(values)[None], levels[:, None], atol=1e-9)
    floors = np.maximum(0.0, COUPLINGS - GAP / AGENTS)

    seed, group, coupling = "bounds_seed", "bounds_group", "bounds_coupling"
    described = {
        "differs": ((), rows[:, 0, 0].mean(), "joint and separate choices differ, additive reward"),
        "differs_coupled": ((), rows[:, 1, 0].mean(), "joint and separate choices differ, coupled"),
        "joint_failure": (seed, rows[:, 0, 1], "rate of failure of the joint maximiser"),
        "floor": (
            coupling,
            rows[:, 2:, 2].mean(axis=0),
            "reward lost by separate choice, no noise",
        ),
        "none": ((), 0.0, "none"),
        "floor_theory": (coupling, floors, "max(0, λ − Δ/K)"),
        "floor_alignment": (coupling, COUPLINGS, "2α₀ = λ"),
        "selected": (
            (seed, group),
            found["chosen"].transpose("seed", ...).values,
            "share of joint choices with j agents off the best",
        ),
        "selected_theory": (group, grouped @ np.asarray(law), "its probability"),
        "selected_even": (group, grouped @ np.asarray(even), "with one arm a group"),
    }
    return xr.Dataset(
        {f"bounds_{k}": (dims, v, {"long_name": text}) for k, (dims, v, text) in described.items()},
        coords={coupling: COUPLINGS, group: np.arange(AGENTS + 1)},
    )


def _discovered(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Rates of failure of exploration without noise at the exact sizes."""
    pairs = [
        [theory.coupon_samples(int(a), DISCOVERY_AGENTS, d) for d in DISCOVERY_DELTAS]
        for a in DISCOVERY_ACTIONS
    ]
    sizes = np.array(pairs, np.int32)  # actions, failure probability, learner
    most = int(sizes.max())

    def one(params: dict[str, jax.Array], key: jax.Array) -> jax.Array:
        times = teams.simulate_discovery(
            key, params["actions"], DISCOVERY_AGENTS, most, config.bounds_discovery_trials
        )
        allowed = jnp.asarray(sizes)[params["place"]]
        late = jnp.stack(times)[None] > allowed[:, :, None]
        return jnp.mean(late, axis=2, dtype=jnp.result_type(float))

    keys = jax.random.split(key, config.bounds_seeds)

    def at(params: dict[str, jax.Array], key: jax.Array) -> jax.Array:
        actions = jnp.asarray(DISCOVERY_ACTIONS)[params["place"]].astype(jnp.int32)
        return one({"actions": actions, "place": params["place"]}, key)

    grid = {"place": np.arange(len(DISCOVERY_ACTIONS), dtype=np.int32)}
    found = repeat("bounds-discovery", at, grid, keys)["value"].transpose("seed", "place", ...)
    dims = ("bounds_seed", "bounds_actions", "bounds_allowed")
    return xr.Dataset(
        {
            f"bounds_discovery_{who}": (
                dims,
                found.values[..., place],
                {"long_name": f"rate of failure after the exact size, {who}"},
            )
            for place, who in enumerate(("one", "team"))
        }
    )
