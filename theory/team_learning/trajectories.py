"""Sample complexity: the trajectories at which a learner fails with a given probability, exactly.

Symbols as in `regret`: ε accuracy, δ failure probability, N in trajectories, s = √m/σ the root of the
samples per arm over their noise. Results are real numbers: the laws (E1) and (E3) at real m.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.theory.team_learning._team_task import (
    ROUNDING,
    Task,
    agent_signal,
    check_learner,
    fails,
    losses_of,
    pattern_failure,
    read_task,
    sees_all,
    team_spectrum,
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
    read = read_task(task)
    check_shape("accuracy", accuracy, ())
    check_number("accuracy", accuracy, 0)
    level, delta = jnp.asarray(accuracy).astype(jnp.float64), _probability(failure_probability)
    return _needed((read.num_actions, read.num_agents), tuple(read[2:]), learner, level, delta)


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
    for name, number in (("noise_std", noise_std), ("accuracy", accuracy)):
        check_shape(name, number, ())
        check_number(name, number, 0)
    noise, level = (jnp.asarray(number).astype(jnp.float64) for number in (noise_std, accuracy))
    return _joint_needed(arms, sizes, noise, level, _probability(failure_probability))


def _probability(value: Scalar) -> Float[Array, ""]:
    check_shape("failure_probability", value, ())
    check_number("failure_probability", value, 0, 1, low_open=True, high_open=True)
    return jnp.asarray(value).astype(jnp.float64)


@functools.partial(jax.jit, static_argnames=("sizes", "learner"))
def _needed(
    sizes: tuple[int, int],
    numbers: tuple,
    learner: str,
    accuracy: Float[Array, ""],
    delta: Float[Array, ""],
) -> Float[Array, ""]:
    task = Task(*sizes, *numbers)
    if task.num_actions == 1:
        return jnp.zeros((), jnp.float64)
    if sees_all(task, learner):
        values, counts = team_spectrum(task)
        failing = fails(losses_of(values, counts), accuracy, task)
        scale = scale_at(values, counts, failing, delta)
        return task.num_joint * (task.outcome_noise_std * scale) ** 2
    gap, noise = agent_signal(task, learner)
    error = _largest_error(task, accuracy, delta)
    arms, counts = jnp.asarray([[1.0, 0.0], [1.0, task.num_actions - 1.0]], jnp.float64)
    separation = scale_at(arms, counts, jnp.asarray([False, True]), error)
    learnable = gap > 0.0
    samples = (separation * noise / jnp.where(learnable, gap, 1.0)) ** 2
    needed = jnp.where(learnable | (separation <= 0.0), task.num_actions * samples, jnp.inf)
    return jnp.where(fails(task.floor, accuracy, task), jnp.inf, needed)


@jax.jit
def _joint_needed(
    values: Float[Array, " groups"],
    counts: Float[Array, " groups"],
    noise: Float[Array, ""],
    accuracy: Float[Array, ""],
    delta: Float[Array, ""],
) -> Float[Array, ""]:
    losses = losses_of(values, counts)
    failing = losses > accuracy + ROUNDING * jnp.max(losses)
    return jnp.sum(counts) * (noise * scale_at(values, counts, failing, delta)) ** 2


def scale_at(
    values: Float[Array, " groups"],
    counts: Float[Array, " groups"],
    failing: Any,
    delta: Float[Array, ""],
) -> Float[Array, ""]:
    """S with P(the winner is of a failing group) = δ; 0 where that is at most δ at s = 0.

    The groups that fail are the lower ones, so that the chance falls with s.
    """
    losses = losses_of(values, counts)
    charged = failing & (counts > 0.0)
    some = jnp.any(charged)
    nearest = jnp.where(some, jnp.min(jnp.where(charged, losses, jnp.inf)), 1.0)
    weights = charged.astype(jnp.float64)

    def chance(log_scale: Float[Array, ""]) -> Float[Array, ""]:
        return winners_loss(values, counts, weights, jnp.exp(log_scale))

    # From e^{−40} of the scale at which nothing fails any more.
    top = jnp.log(FURTHEST / nearest)
    found = _last_above(chance, top - 40.0, top, delta)
    uniform = jnp.sum(jnp.where(charged, counts, 0.0)) / jnp.sum(counts)
    return jnp.where(uniform > delta, jnp.exp(found), 0.0)


def _largest_error(
    task: Task, accuracy: Float[Array, ""], delta: Float[Array, ""]
) -> Float[Array, ""]:
    """The chance q of an agent's error up to which a team fails with at most δ; at most 1 − 1/A."""
    most = 1.0 - 1.0 / task.num_actions
    # The failure is a polynomial in q that need not be monotone where patterns repair each other.
    small = jnp.exp(jnp.linspace(-740.0, -4.0, GRID, dtype=jnp.float64))
    large = jnp.linspace(0.0, 1.0, GRID + 1, dtype=jnp.float64)[1:]
    grid = most * jnp.sort(jnp.concatenate([small, large]))
    failure = jax.vmap(lambda error: pattern_failure(error, task, accuracy))(grid)
    exceeds = failure > delta
    first = jnp.argmax(exceeds)
    low = jnp.log(grid[jnp.maximum(first - 1, 0)])

    def success(log_error: Float[Array, ""]) -> Float[Array, ""]:
        return -pattern_failure(jnp.exp(log_error), task, accuracy)

    root = _last_above(success, low, jnp.log(grid[first]), -delta)
    return jnp.where(jnp.any(exceeds), jnp.exp(root), most)


def _last_above(
    falling: Any, low: Float[Array, ""], high: Float[Array, ""], level: Float[Array, ""]
) -> Float[Array, ""]:
    """Where a falling function crosses `level`, by halving."""

    def halve(
        _: Any, bracket: tuple[Float[Array, ""], Float[Array, ""]]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        middle = 0.5 * (bracket[0] + bracket[1])
        above = falling(middle) > level
        return jnp.where(above, middle, bracket[0]), jnp.where(above, bracket[1], middle)

    low, high = jax.lax.fori_loop(0, HALVINGS, halve, (low, high))
    return 0.5 * (low + high)
