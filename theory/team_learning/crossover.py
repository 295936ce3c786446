"""The budget up to which a team beats one agent: where the joint learner's regret falls below the team's.

Symbols as in `regret`: D(N) = regret of the joint learner − regret of the team, N in trajectories.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_choice
from boundlab.precision import float64
from boundlab.theory.team_learning._team_task import (
    ROUNDING,
    Signal,
    Task,
    Value,
    agent_signal,
    read_task,
    sees_all,
)
from boundlab.theory.team_learning.regret import joint_regret, regret_of_team

SIGNALS = ("own", "shared", "orthogonal")
# Budgets at which D's sign is looked at, evenly in log N; again between the two around its last zero.
GRID = 96
PASSES = 8
# Largest budget looked at, over A^K.
MOST = 1e60


@float64
def budget_crossover(task: Any, signal: str) -> Float[Array, ""]:
    """N*, the last N ≥ A^K at which the joint learner's regret falls below the team's.

    One agent's regret falls to 0 with N, the team's to its floor λ − Δ/K: N* is the last zero of
    D(N) = `team_regret(N, task, "joint")` − `team_regret(N, task, signal)`, bracketed from large N, since
    D may change sign twice.

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
    if sees_all(task, signal):
        return jnp.full((), jnp.inf, jnp.float64)
    return _crossover(read, agent_signal(read, signal))


@jax.jit
def _crossover(task: Task, signal: Signal) -> Value:
    def difference(log_budget: Value) -> Value:
        budget = jnp.exp(log_budget)
        return joint_regret(budget, task) - regret_of_team(budget, task, signal)

    def narrow(_: Any, ends: tuple[Value, Value, Any]) -> tuple[Value, Value, Any]:
        start, stop, _ = ends
        grid = start + jnp.linspace(0.0, 1.0, GRID, dtype=jnp.float64) * (stop - start)
        above = jax.vmap(difference)(grid) > 0.0
        last = GRID - 1 - jnp.argmax(above[::-1])
        # D > 0 at the start of each pass but perhaps the first.
        return grid[last], grid[jnp.minimum(last + 1, GRID - 1)], jnp.any(above)

    low = jnp.log(task.num_joint)
    ends = (low, _log_settled(task, signal), jnp.asarray(False))
    start, _, wins = jax.lax.fori_loop(0, PASSES, narrow, ends)
    crossing = jnp.where(wins, jnp.exp(start), task.num_joint)
    none = task.floor <= ROUNDING * (task.gap + task.coupling)
    return jnp.where(none, jnp.inf, crossing)


def _log_settled(task: Task, signal: Signal) -> Value:
    """Log of a budget from which on both learners make errors too rare to count beside the floor."""
    step = task.gap / task.num_agents
    # Between neighbouring values of joint actions: Δ/K, or the floor if that is smaller.
    finest = jnp.where(step > 0.0, jnp.minimum(task.floor, step), task.floor)
    errors = 14.0 + 3.0 * jnp.sqrt(jnp.log(task.num_joint))
    joint = task.num_joint * (errors * _over(task.outcome_noise_std, finest)) ** 2
    team = task.num_actions * (errors * _over(signal.noise_std, signal.gap)) ** 2
    settled = jnp.maximum(jnp.maximum(joint, team), 4.0 * task.num_joint)
    return jnp.log(jnp.minimum(settled, MOST * task.num_joint))


def _over(noise: Value, gap: Value) -> Value:
    return jnp.where(gap > 0.0, noise / jnp.where(gap > 0.0, gap, 1.0), 0.0)
