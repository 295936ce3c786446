"""Exact laws of the part on bandit feedback: what its simulations are held against.

Everything is evaluated by one program, which is most of its cost.
"""

from math import comb
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from boundlab.models import teams
from boundlab.theory import team_learning as theory

GAP, FAILURE = 0.5, 0.1
LEARNERS = ("joint", "own", "outcome", "judge")
# Shuffled designs of A actions and K agents: teammates' variance is a fifth of the total, and N is small.
SHUFFLED_SIZE = (4, 3)
SHUFFLED_GAP, SHUFFLED_NOISE = 0.6, 0.4
SHUFFLED = teams.ParityTask(*SHUFFLED_SIZE, SHUFFLED_GAP, 0.0, SHUFFLED_NOISE)
# One agent on a coupled task, `SAMPLES` of each joint action.
COUPLED_SIZE, COUPLED_GAP, COUPLING, SAMPLES = (3, 3), 0.6, 0.35, 40
COUPLED = teams.ParityTask(*COUPLED_SIZE, COUPLED_GAP, COUPLING, outcome_noise_std=1.0)


class Tables(NamedTuple):
    """Arms that rows of learners compare, one entry a cell and learner, padded to one shape."""

    actions: np.ndarray  # (cells,)
    agents: np.ndarray  # (cells,)
    values: np.ndarray  # (cells, learners, rows, groups)
    counts: np.ndarray  # the same; groups of no arms are padding, rows of one arm never fail
    arms: np.ndarray  # (cells, learners), N = m·arms
    noise_std: np.ndarray  # (cells, learners)
    gap: np.ndarray  # (cells, learners) to the closest arm
    failure: np.ndarray  # (cells, learners) at which one row must fail for the team to fail at δ


def tables_of(cells: list[tuple[int, int]]) -> Tables:
    """What is compared by each learner in each cell (A, K)."""
    actions, agents = (np.array(column) for column in zip(*cells, strict=True))
    shape = (len(cells), len(LEARNERS), max(agents), max(agents) + 1)
    values, counts = np.zeros(shape), np.zeros(shape)
    counts[..., 0] = 1.0
    for c, (size, k) in enumerate(cells):
        away = np.arange(k + 1)
        values[c, 0, 0, away] = -GAP / k * away
        counts[c, 0, 0, away] = [comb(k, j) * (size - 1.0) ** j for j in away]
        values[c, 1:, :k, 1] = -np.array([GAP, GAP / k, GAP / k])[:, None]
        counts[c, 1:, :k, 1] = size - 1
    ones = np.ones(len(cells))
    team = 1 - (1 - FAILURE) ** (1 / agents)
    columns = (
        (actions.astype(float) ** agents, *[actions] * 3),
        (agents**-0.5, ones, agents**-0.5, ones),
        (GAP / agents, GAP * ones, GAP / agents, GAP / agents),
        (FAILURE * ones, team, team, team),
    )
    return Tables(actions, agents, values, counts, *(np.stack(c, axis=1) for c in columns))


def exact_laws(tables: Tables, budgets: np.ndarray) -> dict[str, np.ndarray]:
    """Sample complexities (cells, learners) and bounds on them, failures (budgets,), regrets ().

    - `exact`, and under wrong theories: `one_agent` with δ for each agent, `slippage` with all other
      joint actions the least gap behind.
    - `shared`: N of shared rewards with teammates' variance (E4).
    - `above`, `below`: finite classes with noise σ for a range of 1 (σ = 1/2), K agents covered at once
      by K·A policies; the change of measure. Both at the gap of the closest arms.
    - `kept`, `removed`, `fitted`: failures of the shuffled task with teammates' variance, without, and
      without at N less the degrees of freedom that the other agents' coefficients take.
    - `regret`, `uncoupled`: of one agent on the coupled task, and if it weren't.
    """
    actions, agents = tables.actions, tables.agents
    size, k = SHUFFLED_SIZE
    noise = SHUFFLED_NOISE**2 / k
    with_teammates = noise + float(_teammates(np.array(size), np.array(k), SHUFFLED_GAP))
    left = budgets * (1 - (k - 1) * (size - 1) / (budgets - 1))
    samples = np.stack([budgets / with_teammates, budgets / noise, left / noise]) / size
    policies = np.stack([actions.astype(float) ** agents, *[actions * agents] * 3], axis=1)
    found = _evaluate(
        (tables.values[:, 0, 0], tables.counts[:, 0, 0], tables.noise_std[:, 0]),
        tables.arms,
        np.stack([tables.failure, np.full_like(tables.failure, FAILURE)]),
        np.log(policies),
        SHUFFLED_GAP / k * np.sqrt(samples),
    )
    law = {name: np.asarray(value) for name, value in found.items()}
    unit = (tables.noise_std / tables.gap) ** 2
    exact, one_agent = tables.arms * unit * law["separations"] ** 2
    slippage = exact[:, 0].copy()
    exact[:, 0] = law["joint"]
    kept, removed, fitted = -np.expm1(k * np.log1p(-law["errors"]))
    outcome = exact[:, LEARNERS.index("outcome")]
    return {
        "exact": exact,
        "one_agent": one_agent,
        "slippage": slippage,
        "shared": outcome * (1 + agents * _teammates(actions, agents, GAP)),
        "above": 4 * tables.arms * unit * law["uniform"],
        "below": unit * law["any_algorithm"],
        "kept": kept,
        "removed": removed,
        "fitted": fitted,
        "regret": law["regrets"][0],
        "uncoupled": law["regrets"][1],
    }


def _teammates(actions: np.ndarray, agents: np.ndarray, gap: float) -> np.ndarray:
    """Variance of the additive reward when teammates act uniformly (E4), at noise 1 of an agent."""
    return np.asarray((agents - 1) / agents**2 * gap**2 * (actions - 1) / actions**2)


@jax.jit
def _evaluate(
    joint: tuple[jax.Array, ...],
    arms: jax.Array,
    failure: jax.Array,
    log_policies: jax.Array,
    separations: jax.Array,
) -> dict[str, jax.Array]:
    def needed(row: tuple[jax.Array, ...]) -> jax.Array:
        values, counts, noise_std = row
        return theory.joint_trajectories_needed(values, counts, noise_std, 0.0, FAILURE)

    def uniform(log_size: jax.Array) -> jax.Array:
        return theory.finite_class_samples(log_size[None], 1.0, FAILURE, "sarl")

    def regret(coupling: Any) -> jax.Array:
        values, counts = theory.parity_spectrum(*COUPLED_SIZE, COUPLED_GAP, coupling)
        law = theory.selection_probabilities(values, counts, SAMPLES, 1.0)
        best = jnp.max(jnp.where(counts > 0, values, -jnp.inf))
        return jnp.sum(law * (best - values))

    return {
        "joint": jax.lax.map(needed, joint),
        "separations": theory.slippage_root(jnp.broadcast_to(arms, failure.shape), failure),
        "uniform": jax.vmap(jax.vmap(uniform))(log_policies),
        "any_algorithm": theory.pac_lower_bound(arms, 1.0, 1.0, FAILURE),
        "errors": theory.slippage_failure(float(SHUFFLED_SIZE[0]), separations),
        "regrets": jax.lax.map(regret, jnp.array([COUPLING, 0.0])),
    }
