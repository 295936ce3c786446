"""Dependent subtasks as a chain of stages: trajectories, and stages that learn apart or on-policy.

Symbols: K stages, one an agent, of A actions each. While a trajectory lives, stage k's action a succeeds
with probability p for a = 0 and p − g otherwise; a failure ends the trajectory. A stage that is reached
shows its agent a signal of its own (process reward), that probability + σ·N(0, 1). A team's return is the
mean over stages of having succeeded: of all stages up to it in a chain (*dependent*), of the stage alone
if stages are *independent*.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from boundlab.checks import check_integer, check_key, check_number, check_shape, fail
from boundlab.models.team_selection import arm_winners
from boundlab.models.token_tasks import uniform_integers
from boundlab.precision import is_traced
from boundlab.typing import Count, Numbers, Scalar


@dataclass(frozen=True)
class ChainTask:
    """K stages of A actions, one of which is better by g.

    Raises `ValueError` naming the argument. Source: derived, docs/team_learning.md#chain.
    """

    num_stages: Count
    """K ≥ 1, one an agent."""
    gap: Scalar
    """g, 0 ≤ g ≤ success: what a wrong action takes off the chance of success. May be traced."""
    success: Scalar = 1.0
    """p in [0, 1], of the right action. May be traced."""
    noise_std: Scalar = 1.0
    """σ ≥ 0, of a stage's own signal. May be traced."""
    num_actions: Count = 2
    """A ≥ 1 of each stage; action 0 is the right one."""

    def __post_init__(self) -> None:
        check_integer("num_stages", self.num_stages, 1)
        check_integer("num_actions", self.num_actions, 1)
        for name, high in (("success", 1.0), ("gap", 1.0), ("noise_std", jnp.inf)):
            check_number(name, getattr(self, name), 0, high)
            check_shape(name, getattr(self, name), ())
        if not is_traced(self.gap, self.success) and self.gap > self.success:
            raise fail("gap", self.gap, f"a number ≤ {self.success}, the chance it is taken off")


class ChainRollouts(NamedTuple):
    """Trajectories of a fixed policy."""

    dependent: Float[Array, " trajectories"]
    """Return in the chain."""
    independent: Float[Array, " trajectories"]
    """Return of the same stages if independent, on the same draws."""
    reached: Bool[Array, "trajectories stages"]
    """Whether the chain came to each stage."""


class ChainLearners(NamedTuple):
    """What the agents of each trial learned."""

    errors: Bool[Array, "trials stages"]
    """Whether a stage's agent chose a wrong action."""
    reached: Int[Array, "trials stages"]
    """Trajectories that came to each stage."""


def simulate_chain(
    key: Any, success_probabilities: Numbers, num_trajectories: Count
) -> ChainRollouts:
    """Trajectories of a chain whose stages succeed with given probabilities.

    Args:
        key: one typed key.
        success_probabilities: (K,) in [0, 1]. May be traced.
        num_trajectories: ≥ 1.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#chain.

    """
    check_key("key", key)
    check_number("success_probabilities", success_probabilities, 0, 1)
    check_shape("success_probabilities", success_probabilities, (None,), "a number a stage")
    count = check_integer("num_trajectories", num_trajectories, 1)
    chances = jnp.asarray(success_probabilities).astype(_dtype())
    return _rollouts(key, chances, count)


def simulate_staged(
    key: Any, task: ChainTask, samples_per_arm: Scalar, num_trials: Count
) -> Bool[Array, "trials stages"]:
    """Whether stages err that were trained one after another, each on trajectories of its own.

    Every stage is handed live trajectories, m for each of its A actions, and chooses the largest mean of
    its signals. Means are drawn by their law. All stages take K·A·m trajectories.

    Args:
        key: one typed key.
        task: the chain; its floats may be traced.
        samples_per_arm: m ≥ 0 of one stage, real: 0 leaves a uniform choice. May be traced.
        num_trials: ≥ 1 independent teams.

    Returns:
        (num_trials, K), true where the choice is wrong.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#staged-minimax.

    """
    check_key("key", key)
    stages, actions, chances, noise = _read(task)
    trials = check_integer("num_trials", num_trials, 1)
    check_number("samples_per_arm", samples_per_arm, 0)
    check_shape("samples_per_arm", samples_per_arm, ())
    counts = jnp.broadcast_to(jnp.asarray(samples_per_arm).astype(_dtype()), (1, stages, actions))
    return _choices(key, chances, noise, counts, trials) != 0


def simulate_on_policy(
    key: Any, task: ChainTask, num_trajectories: Count, num_trials: Count
) -> ChainLearners:
    """Stages that all learn at once from N trajectories which start at the first stage.

    All explore uniformly; a stage learns from the trajectories that come to it. An action it never tried
    counts as worse than any; of several such one is drawn.

    Args:
        key: one typed key.
        task: the chain; its floats may be traced.
        num_trajectories: N ≥ 1 of each team. Memory is num_trials·N·K.
        num_trials: ≥ 1 independent teams.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#chain.

    """
    check_key("key", key)
    stages, actions, chances, noise = _read(task)
    count = check_integer("num_trajectories", num_trajectories, 1)
    trials = check_integer("num_trials", num_trials, 1)
    return _on_policy(key, chances, noise, (trials, count, stages, actions))


def chain_losses(
    task: ChainTask, errors: Any
) -> tuple[Float[Array, "*trials"], Float[Array, "*trials"]]:
    """Expected return lost by teams with these errors, (in the chain, if stages were independent).

    Args:
        task: the chain; its floats may be traced.
        errors: (…, K), true where a stage errs. May be traced.

    Returns:
        Two arrays (…): return of the team without errors minus its own.

    Raises:
        ValueError: an argument is no such array; it is named.

    """
    stages, _, chances, _ = _read(task)
    wrong = jnp.asarray(errors)
    if not jnp.issubdtype(wrong.dtype, jnp.bool_):
        raise fail("errors", f"values of type {wrong.dtype}", "booleans")
    check_shape("errors", wrong, (*wrong.shape[:-1], stages), "one a stage")
    return _losses(chances, wrong)


def _dtype() -> Any:
    """The working precision: float64 with x64 on, float32 otherwise."""
    return jnp.result_type(float)


def _read(task: Any) -> tuple[int, int, Float[Array, " 2"], Float[Array, ""]]:
    """K, A, the chances of success (right, wrong) and σ."""
    if not isinstance(task, ChainTask):
        raise fail("task", f"a {type(task).__name__}", "a ChainTask")
    right, gap, noise = (
        jnp.asarray(value).astype(_dtype()) for value in (task.success, task.gap, task.noise_std)
    )
    return int(task.num_stages), int(task.num_actions), jnp.stack([right, right - gap]), noise


@partial(jax.jit, static_argnames="count")
def _rollouts(key: jax.Array, chances: Float[Array, " stages"], count: int) -> ChainRollouts:
    drawn = jax.random.uniform(key, (count, len(chances)), chances.dtype)
    succeeded = drawn < chances[None, :]
    alive = jnp.cumsum(~succeeded, axis=1, dtype=jnp.int32) == 0
    reached = jnp.concatenate([jnp.ones_like(alive[:, :1]), alive[:, :-1]], axis=1)
    dependent, independent = (jnp.mean(x.astype(chances.dtype), axis=1) for x in (alive, succeeded))
    return ChainRollouts(dependent, independent, reached)


@partial(jax.jit, static_argnames="trials")
def _choices(
    key: jax.Array,
    chances: Float[Array, " 2"],
    noise: Float[Array, ""],
    counts: Float[Array, "teams stages actions"],
    trials: int,
) -> Int[Array, "trials stages"]:
    """The action of the largest mean signal, given how often each was tried."""
    z = jax.random.normal(key, (trials, *counts.shape[1:]), chances.dtype)
    tried = counts > 0.0
    spread = noise / jnp.sqrt(jnp.where(tried, counts, 1.0))
    wrong = jnp.arange(counts.shape[2], dtype=jnp.int32) != 0
    means = jnp.where(wrong, chances[1], chances[0])[None, None, :]
    scores = jnp.where(tried, means + spread * z, -jnp.inf)
    return arm_winners(scores, z)


@partial(jax.jit, static_argnames="sizes")
def _on_policy(
    key: jax.Array,
    chances: Float[Array, " 2"],
    noise: Float[Array, ""],
    sizes: tuple[int, int, int, int],
) -> ChainLearners:
    draw_key, signal_key = jax.random.split(key)
    trials, count, stages, actions = sizes
    drawn = jax.random.uniform(draw_key, (trials, count, stages, 2), chances.dtype)
    chosen = uniform_integers(drawn[..., 0], actions)
    failed = drawn[..., 1] >= jnp.where(chosen == 0, chances[0], chances[1])
    # Failures before a stage, not at it.
    before = jnp.cumsum(failed, axis=2, dtype=jnp.int32) - failed.astype(jnp.int32)
    reached = before == 0
    counts = jnp.stack(
        [jnp.sum(reached & (chosen == a), axis=1, dtype=jnp.int32) for a in range(actions)], axis=2
    )
    # Signals are independent of what happens next, so that their means have a law given the counts.
    learned = _choices(signal_key, chances, noise, counts.astype(chances.dtype), trials)
    return ChainLearners(learned != 0, jnp.sum(counts, axis=2, dtype=jnp.int32))


@jax.jit
def _losses(
    chances: Float[Array, " 2"], errors: Bool[Array, "*trials stages"]
) -> tuple[Float[Array, "*trials"], Float[Array, "*trials"]]:
    own = jnp.where(errors, chances[1], chances[0])
    best = jnp.full_like(own, chances[0])
    chain = jnp.mean(jnp.cumprod(best, axis=-1) - jnp.cumprod(own, axis=-1), axis=-1)
    return chain, jnp.mean(best - own, axis=-1)
