"""Bounds on sample complexity beside exact sizes: one agent against a team, and how loose bounds are.

Exact sizes where every candidate is scored on the same n prompts (full information), ratios of bounds,
sizes of discovery without noise, and total variation of token policies; failures at those sizes are
simulated. n counts samples per arm, that is prompts; trajectories in discovery. Agents of a team see
their own rewards.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.team_learning.bounds_claims import CLAIMS as CLAIMS
from boundlab.analysis.team_learning.bounds_exact import (
    ACTIONS,
    AGENTS,
    CELLS,
    crossovers,
    dataset_of,
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
TEAM = ("team", "undivided")
GAP, SEPARATION = 0.6, 2.5
COUPLINGS = np.array([0.1, 0.35, 0.6])
DISCOVERY_ACTIONS = np.array([2, 3])
DISCOVERY_AGENTS, DISCOVERY_DELTAS = 3, np.array([0.1, 0.03])


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Sizes, ratios and rates of failure as one dataset."""
    exact = ratios()
    parts = [
        exact,
        crossovers(),
        discoveries(DISCOVERY_ACTIONS, DISCOVERY_AGENTS, DISCOVERY_DELTAS),
        variations(),
        _failures(exact, config, jax.random.fold_in(key, 0), repeat),
        _joint(exact, config, jax.random.fold_in(key, 1), repeat),
        _discovered(config, jax.random.fold_in(key, 2), repeat),
    ]
    return describe(xr.merge(parts), "1")


def _failures(exact: xr.Dataset, config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Rates of failure of one agent and of a team with their own sizes, and with those of wrong rules.

    The last cell has groups of arms at several distances, of which the shares of choices are kept.
    """
    arms, most = CELLS[:, 0].astype(float) ** CELLS[:, 1], int(CELLS[:, 1].max())
    squares = np.stack([exact[f"bounds_size_{name}"].values for name in (*SIZES, *TEAM)], axis=1)
    # One agent's candidates in the first row, each teammate's in the others: the best and all others.
    many = np.concatenate([arms[:, None], np.repeat(CELLS[:, :1], most, axis=1)], axis=1)
    off = np.arange(AGENTS + 1)
    counts, levels = np.zeros((2, len(CELLS) + 1, most + 1, len(off)))
    counts[:-1, :, 0], counts[:-1, :, 1], levels[:-1, :, 1] = 1.0, many - 1.0, -1.0
    counts[-1] = scipy.special.comb(AGENTS, off) * (ACTIONS - 1.0) ** off
    levels[-1] = -off / AGENTS
    squares = np.vstack([squares, np.full(squares.shape[1], SEPARATION**2)])
    present = np.arange(most) < np.append(CELLS[:, 1], 0)[:, None]

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        def own(table: np.ndarray) -> jax.Array:
            return jnp.asarray(table)[params["cell"]]

        maxima = group_maxima(key, own(counts), config.bounds_trials)

        def chosen(square: jax.Array) -> jax.Array:
            return group_winners(own(levels), own(counts), maxima, 1.0 / jnp.sqrt(square))

        winners = jax.vmap(chosen)(own(squares))
        wrong = winners != 0
        team = jnp.any(wrong[:, 1:] & own(present)[None, :, None], axis=1)
        groups = winners[0, 0][None, :] == jnp.arange(len(off), dtype=jnp.int32)[:, None]
        shares = {"one": wrong[:, 0], "team": team, "groups": groups}
        return {name: jnp.mean(x, axis=1, dtype=maxima.dtype) for name, x in shares.items()}

    keys = jax.random.split(key, config.bounds_seeds)
    grid = {"cell": np.arange(len(counts), dtype=np.int32)}
    found = repeat("bounds-failures", one, grid, keys).transpose("seed", "cell", ...)
    law = theory.selection_probabilities(levels[-1, 0], counts[-1, 0], SEPARATION**2, 1.0)
    even = theory.selection_probabilities(levels[-1, 0], np.ones(len(off)), SEPARATION**2, 1.0)
    dims, group = ("bounds_seed", "bounds_cell"), "bounds_group"
    described: dict[str, tuple[Any, np.ndarray, str]] = {
        f"failure_{name}": (
            dims,
            found[who].values[:, :-1, place],
            f"rate of failure of {text}, size: {name.replace('_', ' ')}",
        )
        for who, text, names in (("one", "one agent", SIZES), ("team", "a team", TEAM))
        for place, name in enumerate(names, (who == "team") * len(SIZES))
    }
    described |= {
        "selected": (
            (dims[0], group),
            found["groups"].values[:, -1],
            "share of choices with j of K agents off the best",
        ),
        "selected_theory": (group, np.asarray(law), "its probability"),
        "selected_even": (group, np.asarray(even), "with one arm a group"),
    }
    return dataset_of(described, {group: off})


def _joint(exact: xr.Dataset, config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Joint and per-agent empirical maximisers on the same scores, and the law of one agent's choice."""
    samples = float(exact["bounds_size_joint"]) / GAP**2
    # Additive with noise, then coupled: with noise, and without.
    couplings = np.concatenate([[0.0, COUPLINGS[-1]], COUPLINGS])
    noises = np.concatenate([[1.0, 1.0], np.zeros(len(COUPLINGS))])
    trials = config.bounds_trials

    def one(params: dict[str, jax.Array], key: jax.Array) -> jax.Array:
        del params

        def at(row: jax.Array) -> jax.Array:
            task = teams.ParityTask(ACTIONS, AGENTS, GAP, row[0], own_noise_std=row[1])
            found = teams.simulate_full_information(key, task, samples, trials)
            joint, separate = (teams.team_reward(task, actions) for actions in found)
            differs = jnp.any(found.joint != found.separate, axis=1)
            fails = jnp.any(found.joint != 0, axis=1)
            of_each = (differs.astype(joint.dtype), fails.astype(joint.dtype), joint - separate)
            return jnp.stack([jnp.mean(values) for values in of_each])

        return jax.lax.map(at, jnp.asarray(np.stack([couplings, noises], axis=1)))

    keys = jax.random.split(key, config.bounds_seeds)
    rows = repeat("bounds-joint", one, {}, keys)["value"].transpose("seed", ...).values
    floors = np.maximum(0.0, COUPLINGS - GAP / AGENTS)

    seed, coupling = "bounds_seed", "bounds_coupling"
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
    }
    return dataset_of(described, {coupling: COUPLINGS})


def _discovered(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Rates of failure of exploration without noise at the exact sizes."""
    pairs = [
        [theory.coupon_samples(int(a), DISCOVERY_AGENTS, d) for d in DISCOVERY_DELTAS]
        for a in DISCOVERY_ACTIONS
    ]
    sizes = np.array(pairs, np.int32)  # actions, failure probability, learner
    most = int(sizes.max())

    def one(params: dict[str, jax.Array], key: jax.Array) -> jax.Array:
        actions = jnp.asarray(DISCOVERY_ACTIONS)[params["place"]].astype(jnp.int32)
        times = teams.simulate_discovery(
            key, actions, DISCOVERY_AGENTS, most, config.bounds_discovery_trials
        )
        allowed = jnp.asarray(sizes)[params["place"]]
        late = jnp.stack(times)[None] > allowed[:, :, None]
        return jnp.mean(late, axis=2, dtype=jnp.result_type(float))

    keys = jax.random.split(key, config.bounds_seeds)
    grid = {"place": np.arange(len(DISCOVERY_ACTIONS), dtype=np.int32)}
    found = repeat("bounds-discovery", one, grid, keys)["value"].transpose("seed", "place", ...)
    dims = ("bounds_seed", "bounds_actions", "bounds_allowed")
    described = {
        f"discovery_{who}": (dims, found.values[..., place], f"rate of failure at its size, {who}")
        for place, who in enumerate(("one", "team"))
    }
    return dataset_of(described, {})
