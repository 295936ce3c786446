"""What dependence, order of moves and missing information cost a team, beside simulations of each.

Chains: how early errors are amplified, and whether K² samples are needed. Sequential best response under
parity, and its repair by a phase of own rewards. Agents that don't see what they must answer. Step
rewards against an outcome on tokens.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.team_learning import chain_exact
from boundlab.analysis.team_learning.chain_claims import CLAIMS as CLAIMS
from boundlab.analysis.team_learning.chain_exact import (
    CONTEXTS,
    COUPLING,
    EPSILON,
    EXPLORED,
    EXPLORED_CONTEXTS,
    EXPLORERS,
    GAP,
    PHASED_DELTA,
    PROFILES,
    SIMULATED,
    TEAMS,
    TOKENS,
    TRAJECTORIES,
    worst_gap,
)
from boundlab.analysis.team_learning.config import Config
from boundlab.experiment import Repeat
from boundlab.models import teams
from boundlab.theory import team_learning as theory

# What rounding makes of a regret of 0.
ROUNDING = 1e-9
# Fresh trajectories of the information task.
EVALUATIONS = 16


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Closed forms and simulations of chains, best response, contexts and tokens."""
    chain_key, run_key = jax.random.split(key)
    parts = [
        chain_exact.amplification(chain_key),
        chain_exact.minimax(),
        chain_exact.references(),
        chain_exact.curves(),
        _simulated(config, run_key, repeat),
    ]
    dataset = xr.merge(parts)
    return describe(dataset, "reward", **{n: "1" for n in map(str, dataset) if _is_ratio(n)})


def _is_ratio(name: str) -> bool:
    words = ("amplification", "failure", "error", "attrition", "ratio", "token", "stage")
    return any(word in name for word in words)


def _simulated(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """All simulations, in one program; each is the mean of a run's teams or trajectories."""
    trials, few = config.chain_trials, max(config.chain_trials // 8, 1)
    searches = {sizes: _searches(*sizes) for sizes in TEAMS}

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        keys = jax.random.split(key, 6)
        returns = jax.vmap(lambda p: teams.simulate_chain(keys[0], p, trials).dependent)(
            jnp.asarray(list(PROFILES.values()))
        )
        explored = teams.simulate_on_policy(keys[1], EXPLORED, EXPLORERS, max(few // 4, 1))
        apart, failures = _staged(keys[2], 2 * trials)
        regrets = jnp.stack([_regrets(keys[3], *t, searches[t], trials) for t in TEAMS])
        wrong = jnp.mean((regrets > ROUNDING).astype(jnp.float64), axis=2)
        named = jax.vmap(_contexts, in_axes=(0, None))(
            jax.random.split(keys[4], few), jnp.asarray(EXPLORED_CONTEXTS)
        )
        solved = jax.vmap(_tokens, in_axes=(0, None))(
            jax.random.split(keys[5], few), jnp.asarray(TRAJECTORIES)
        )
        return {
            "return": jnp.mean(returns, axis=1),
            "failure": failures,
            "response": jnp.mean(regrets[:, 0], axis=1),
            "response_own": regrets[:, 1, 0],
            "phases_failure": wrong[:, 2],
            "phases_failure_thin": wrong[:, 3],
            "local": jnp.mean(named.local, axis=0),
            "attrition": jnp.mean(explored.reached.astype(jnp.float64), axis=0) / EXPLORERS,
            "error": apart,
            "joint": jnp.mean(named.joint, axis=0),
            "tokens_process": jnp.mean(solved.process, axis=(0, 2)),
            "tokens_outcome": jnp.mean(solved.outcome, axis=0),
        }

    found = repeat("chain-runs", one, {}, jax.random.split(key, config.chain_seeds))
    described = {
        "return": ("chain_profile", "return of the chain"),
        "failure": ("chain_team_size", "failures of a chain at its worst gap"),
        "response": ("chain_team", "regret of best response from a random start"),
        "phases_failure": ("chain_team", "failures after both phases"),
        "phases_failure_thin": ("chain_team", "failures, team phase without the factor K^2"),
        "attrition": ("chain_stage", "share of trajectories that reach the stage"),
        "error": ("chain_stage", "errors of stages trained apart"),
        "joint": ("chain_explored", "regret of a joint learner"),
        "local": ("chain_explored", "regret of local policies"),
        "tokens_process": ("chain_trajectories", "solved share, step rewards"),
        "tokens_outcome": ("chain_trajectories", "solved share, outcome alone"),
    }
    drawn = {
        f"chain_{name}": (("chain_seed", dim), found[name].values, {"long_name": words})
        for name, (dim, words) in described.items()
    }
    best = np.array([COUPLING - GAP / agents for _, agents in TEAMS])
    return xr.Dataset(
        drawn
        | {
            # Exact responses from fixed actions: alike in all runs.
            "chain_response_own": (
                "chain_team",
                best - found["response_own"].values[0],
                {"long_name": "reward of best response from agents' own best actions"},
            ),
            "chain_phases_cost": (
                ("chain_team", "chain_phase"),
                [list(searches[sizes].cost) for sizes in TEAMS],
                {"long_name": "trajectories of each phase", "units": "trajectories"},
            ),
        },
        coords={"chain_phase": ["own rewards", "team's reward"]},
    )


def _staged(key: jax.Array, trials: int) -> tuple[jax.Array, jax.Array]:
    """Errors of stages that learn apart, and how often chains lose more than EPSILON; common draws."""
    explored = (EXPLORED.gap, EXPLORED.success, EXPLORERS / 2)
    rows = jnp.asarray([explored] + [(gap, 1.0, m) for gap, m in map(worst_gap, SIMULATED)])

    def errors(row: jax.Array) -> jax.Array:
        task = teams.ChainTask(max(SIMULATED), row[0], row[1])
        return teams.simulate_staged(key, task, row[2], trials)

    erred = jax.vmap(errors)(rows)
    failed = []
    for stages, gap, row in zip(SIMULATED, rows[1:, 0], erred[1:], strict=True):
        lost, _ = teams.chain_losses(teams.ChainTask(stages, gap), row[:, :stages])
        failed.append(jnp.mean((lost > EPSILON).astype(jnp.float64)))
    apart = erred[0, :, : int(EXPLORED.num_stages)]
    return jnp.mean(apart.astype(jnp.float64), axis=0), jnp.stack(failed)


class _Search(NamedTuple):
    """One way to search, a row each, of one size of team; what two phases cost."""

    coupling: np.ndarray
    own_noise: np.ndarray
    own_samples: np.ndarray
    outcome_noise: np.ndarray
    team_samples: np.ndarray
    cost: tuple[float, float]


def _searches(actions: int, agents: int) -> _Search:
    """Exact responses from a random start and from ā; two phases, and those with a K²-th of the second.

    The phases are for λ = 2Δ/K, where own rewards and responses have gaps Δ and Δ/K.
    """
    even, noise = 2 * GAP / agents, agents**-0.5
    cost = theory.two_phase_samples(actions, agents, GAP, even, 1.0, noise, PHASED_DELTA)
    own, team = float(cost[0]) / actions, float(cost[1]) / (actions * agents)
    rows = (
        (COUPLING, 1.0, 0.0, 0.0, 1.0),
        (COUPLING, 0.0, 1.0, 0.0, 1.0),
        (even, 1.0, own, noise, team),
        (even, 1.0, own, noise, team / agents**2),
    )
    coupling, own_noise, own_samples, outcome_noise, team_samples = np.array(rows).T
    paid = float(cost[0]), float(cost[1])
    return _Search(coupling, own_noise, own_samples, outcome_noise, team_samples, paid)


def _regrets(key: jax.Array, actions: int, agents: int, search: _Search, trials: int) -> jax.Array:
    """Regrets (rows, trials); rows share their draws, and one program."""

    def row(*numbers: jax.Array) -> jax.Array:
        coupling, own_noise, own_samples, outcome_noise, team_samples = numbers
        task = teams.ParityTask(actions, agents, GAP, coupling, own_noise, outcome_noise)
        return teams.simulate_two_phases(key, task, own_samples, team_samples, trials).regret

    return jax.vmap(row)(*(jnp.asarray(column) for column in search[:-1]))


def _contexts(key: jax.Array, counts: jax.Array) -> teams.InformationRegret:
    most = max(EXPLORED_CONTEXTS)

    def at(count: jax.Array) -> teams.InformationRegret:
        return teams.simulate_information(
            key, CONTEXTS, 2, COUPLING, count, EVALUATIONS, max_trajectories=most
        )

    return jax.vmap(at)(counts)


def _tokens(key: jax.Array, counts: jax.Array) -> teams.Solved:
    def at(count: jax.Array) -> teams.Solved:
        return teams.explore_tokens(key, TOKENS, count, max_trajectories=max(TRAJECTORIES))

    return jax.vmap(at)(counts)
