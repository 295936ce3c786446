"""The budget up to which a team beats one agent: where the joint learner's regret falls below the team's.

Symbols as in `regret`: D(N) = regret of the joint learner − regret of the team, N in trajectories.
"""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_choice
from boundlab.precision import float64
from boundlab.theory.team_learning._team_task import (
    ROUNDING,
    Task,
    agent_signal,
    read_task,
    sees_all,
)
from boundlab.theory.team_learning.regret import regret_at

SIGNALS = ("own", "shared", "orthogonal")
# Budgets at which D's sign is looked at, evenly in log N, and halvings between two of them.
GRID = 256
HALVINGS = 48
# Largest budget looked at, over A^K.
MOST = 1e60


@float64
def budget_crossover(task: Any, signal: str) -> Float[Array, ""]:
    """N*, the last N ≥ A^K at which the joint learner's regret falls below the team's.

    One agent's regret falls to 0 with N, the team's to its floor λ − Δ/K: N* is the last zero of
    D(N) = `team_regret(N, task, "joint")` − `team_regret(N, task, signal)`, bracketed from large N, since D
    may change sign twice.

    Args:
        task: as for `team_regret`; its floats may be traced.
        signal: what the team learns from, `own`, `shared` or `orthogonal`.

    Returns:
        N* in trajectories (not agent-samples): A^K where the joint learner is below throughout, +inf
        without a floor (λ ≤ Δ/K, one action, or one agent paid the outcome).

    Raises:
        ValueError: an argument or attribute is out of range; it is named.

    Source: derived, docs/team_learning.md#budget-crossover.

    """
    check_choice("signal", signal, SIGNALS)
    read = read_task(task)
    return _crossover((read.num_actions, read.num_agents), tuple(read[2:]), signal)


@functools.partial(jax.jit, static_argnames=("sizes", "signal"))
def _crossover(sizes: tuple[int, int], numbers: tuple, signal: str) -> Float[Array, ""]:
    task = Task(*sizes, *numbers)
    if task.num_actions == 1 or sees_all(task, signal):
        return jnp.full((), jnp.inf, jnp.float64)

    def difference(log_budget: Float[Array, ""]) -> Float[Array, ""]:
        budget = jnp.exp(log_budget)
        return regret_at(budget, task, "joint") - regret_at(budget, task, signal)

    low = jnp.asarray(math.log(task.num_joint), jnp.float64)
    grid = low + jnp.linspace(0.0, 1.0, GRID, dtype=jnp.float64) * (
        _log_settled(task, signal) - low
    )
    above = jax.lax.map(difference, grid, batch_size=GRID) > 0.0
    last = GRID - 1 - jnp.argmax(above[::-1])

    def halve(
        _: Any, bracket: tuple[Float[Array, ""], Float[Array, ""]]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        middle = 0.5 * (bracket[0] + bracket[1])
        wins = difference(middle) > 0.0
        return jnp.where(wins, middle, bracket[0]), jnp.where(wins, bracket[1], middle)

    bracket = (grid[last], grid[jnp.minimum(last + 1, GRID - 1)])
    start, stop = jax.lax.fori_loop(0, HALVINGS, halve, bracket)
    crossing = jnp.where(jnp.any(above), jnp.exp(0.5 * (start + stop)), task.num_joint)
    none = task.floor <= ROUNDING * (task.gap + task.coupling)
    return jnp.where(none, jnp.inf, crossing)


def _log_settled(task: Task, signal: str) -> Float[Array, ""]:
    """Log of a budget from which on both learners make errors too rare to count beside the floor."""
    gap, noise = agent_signal(task, signal)
    step = task.gap / task.num_agents
    # Between neighbouring values of joint actions: Δ/K, or the floor if that is smaller.
    finest = jnp.where(step > 0.0, jnp.minimum(task.floor, step), task.floor)
    errors = 14.0 + 3.0 * math.sqrt(math.log(task.num_joint))
    joint = task.num_joint * (errors * _over(task.outcome_noise_std, finest)) ** 2
    team = task.num_actions * (errors * _over(noise, gap)) ** 2
    settled = jnp.maximum(jnp.maximum(joint, team), 4.0 * task.num_joint)
    return jnp.log(jnp.minimum(settled, MOST * task.num_joint))


def _over(noise: Float[Array, ""], gap: Float[Array, ""]) -> Float[Array, ""]:
    return jnp.where(gap > 0.0, noise / jnp.where(gap > 0.0, gap, 1.0), 0.0)
