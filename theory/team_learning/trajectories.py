"""Sample complexity: the trajectories at which a learner fails with a given probability, exactly.

Symbols as in `regret`: ε accuracy, δ failure probability, N in trajectories, s = √m/σ the root of the
samples per arm over their noise. Results are real numbers: the laws (E1) and (E3) at real m.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from boundlab.checks import check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.theory.team_learning._team_task import (
    GROUPS,
    ROUNDING,
    Groups,
    Signal,
    Task,
    Value,
    agent_arms,
    agent_signal,
    check_learner,
    checked,
    fails,
    losses_of,
    pattern_failure,
    read_task,
    sees_all,
)
from boundlab.theory.team_learning._winners import FURTHEST, winners_loss
from boundlab.typing import Numbers, Scalar

HALVINGS = 60
# Errors q at which the failure of a team is looked at, to find where it first exceeds δ.
GRID = 128


@float64
def trajectories_needed(
    task: Any, learner: str, accuracy: Scalar, failure_probability: Scalar
) -> Float[Array, ""]:
    """Real N with P(regret > ε) = δ, from which on the learner fails with at most δ.

    The root of `team_failure`: of (E1) in m = N/A^K for `joint`; for the others the chance q of an
    agent's error at which the patterns that lose more than ε add up to δ, then the root of (E2) in
    m = N/A, with the gap and noise that `team_regret` states.

    Args:
        task: as for `team_regret`; its floats may be traced.
        learner: `joint`, `own`, `shared` (approximate, as `team_regret` says) or `orthogonal`.
        accuracy: ε ≥ 0, units of the team's reward. May be traced.
        failure_probability: δ in (0, 1). May be traced.

    Returns:
        N in trajectories: +inf where the learner's floor exceeds ε, or where it has nothing to learn
        from (no gap) and fails too often; 0 where a uniform choice, or any data without noise, does.

    Raises:
        ValueError: an argument or attribute is out of range; it is named.

    Source: derived, docs/team_learning.md#bandit-feedback.

    """
    check_learner(learner)
    read, level = read_task(task), checked("accuracy", accuracy)
    delta = _probability(failure_probability)
    if sees_all(task, learner):
        noise = read.outcome_noise_std
        return _joint_needed(read.values, read.counts, noise, level, delta)
    return _team_needed(read, agent_signal(read, learner), level, delta)


@float64
def joint_trajectories_needed(
    values: Numbers,
    counts: Numbers,
    noise_std: Scalar,
    accuracy: Scalar,
    failure_probability: Scalar,
) -> Float[Array, ""]:
    """Real N at which the largest of all joint arms' mean outcomes misses by more than ε with chance δ.

    N = m Σ_g c_g, m the samples per joint action at which Σ P_g over the groups more than ε below the
    best is δ, by (E1). For any reward: `reward_spectrum(reward)` gives `values` and `counts`.

    Args:
        values: v (G,) mean rewards of the groups, in any order. May be traced.
        counts: c (G,) ≥ 0 joint actions of each, not all 0; floats beyond integers. May be traced.
        noise_std: σ ≥ 0 of one trajectory's outcome. May be traced.
        accuracy: ε ≥ 0, units of reward. May be traced.
        failure_probability: δ in (0, 1). May be traced.

    Returns:
        N in trajectories; 0 where a uniform choice fails with at most δ, or without noise.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: bechhofer1954single for the law; derived, docs/team_learning.md#selection.

    """
    check_shape("values", values, (None,))
    check_number("values", values)
    arms = jnp.asarray(values).astype(jnp.float64)
    check_shape("counts", counts, arms.shape, "one count a value")
    check_number("counts", counts, 0)
    sizes = jnp.asarray(counts).astype(jnp.float64)
    if not is_traced(sizes) and not float(jnp.sum(sizes)) > 0:
        raise fail("counts", "zeros alone", "at least one joint action")
    noise, level = checked("noise_std", noise_std), checked("accuracy", accuracy)
    spare = (0, -arms.size % GROUPS)
    arms, sizes = jnp.pad(arms, spare), jnp.pad(sizes, spare)
    return _joint_needed(arms, sizes, noise, level, _probability(failure_probability))


def _probability(value: Scalar) -> Value:
    check_shape("failure_probability", value, ())
    check_number("failure_probability", value, 0, 1, low_open=True, high_open=True)
    return jnp.asarray(value).astype(jnp.float64)


@jax.jit
def _team_needed(task: Task, signal: Signal, accuracy: Value, delta: Value) -> Value:
    error = _largest_error(task, accuracy, delta)
    # In units of the gap: separation = gap·√m/noise.
    arms = agent_arms(task, jnp.ones_like(signal.gap))
    separation = scale_at(*arms, jnp.asarray([False, True]), error)
    learnable = signal.gap > 0.0
    samples = (separation * signal.noise_std / jnp.where(learnable, signal.gap, 1.0)) ** 2
    needed = jnp.where(learnable | (separation <= 0.0), task.num_actions * samples, jnp.inf)
    return jnp.where(fails(task.floor, accuracy, task), jnp.inf, needed)


@jax.jit
def _joint_needed(
    values: Groups,
    counts: Groups,
    noise: Value,
    accuracy: Value,
    delta: Value,
) -> Value:
    losses = losses_of(values, counts)
    failing = losses > accuracy + ROUNDING * jnp.max(losses)
    return jnp.sum(counts) * (noise * scale_at(values, counts, failing, delta)) ** 2


def scale_at(
    values: Groups,
    counts: Groups,
    failing: Bool[Array, " groups"],
    delta: Value,
) -> Value:
    """S with P(the winner is of a failing group) = δ; 0 where that is at most δ at s = 0.

    The groups that fail are the lower ones, so that the chance falls with s.
    """
    losses = losses_of(values, counts)
    charged = failing & (counts > 0.0)
    some = jnp.any(charged)
    nearest = jnp.where(some, jnp.min(jnp.where(charged, losses, jnp.inf)), 1.0)
    weights = charged.astype(jnp.float64)

    def chance(log_scale: Value) -> Value:
        return winners_loss(values, counts, weights, jnp.exp(log_scale))

    # From e^{−40} of the scale at which nothing fails any more.
    top = jnp.log(FURTHEST / nearest)
    found = _last_above(chance, top - 40.0, top, delta)
    uniform = jnp.sum(jnp.where(charged, counts, 0.0)) / jnp.sum(counts)
    return jnp.where(uniform > delta, jnp.exp(found), 0.0)


def _largest_error(task: Task, accuracy: Value, delta: Value) -> Value:
    """The chance q of an agent's error up to which a team fails with at most δ; 1 if it always does."""
    most = 1.0 - 1.0 / task.num_actions
    # The failure is a polynomial in q that need not be monotone where patterns repair each other.
    small = jnp.exp(jnp.linspace(-740.0, -4.0, GRID, dtype=jnp.float64))
    large = jnp.linspace(0.0, 1.0, GRID + 1, dtype=jnp.float64)[1:]
    grid = most * jnp.sort(jnp.concatenate([small, large]))
    failure = jax.vmap(lambda error: pattern_failure(error, task, accuracy))(grid)
    exceeds = failure > delta
    first = jnp.argmax(exceeds)
    low = jnp.log(grid[jnp.maximum(first - 1, 0)])

    def success(log_error: Value) -> Value:
        return -pattern_failure(jnp.exp(log_error), task, accuracy)

    root = _last_above(success, low, jnp.log(grid[first]), -delta)
    return jnp.where(jnp.any(exceeds), jnp.exp(root), 1.0)


def _last_above(falling: Any, low: Value, high: Value, level: Value) -> Value:
    """Where a falling function crosses `level`, by halving."""

    def halve(_: Any, bracket: tuple[Value, Value]) -> tuple[Value, Value]:
        middle = 0.5 * (bracket[0] + bracket[1])
        above = falling(middle) > level
        return jnp.where(above, middle, bracket[0]), jnp.where(above, bracket[1], middle)

    low, high = jax.lax.fori_loop(0, HALVINGS, halve, (low, high))
    return 0.5 * (low + high)
