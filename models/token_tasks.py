"""A tabular task of writing token by token, explored uniformly without noise.

Symbols: K steps, one an agent; S contexts a step, uniform; A tokens, one of which is right for its
context. A *dependent* step's context is its own and the token before it. A step's context is solved by
step rewards (process) once its right token was written there; a joint context by the outcome alone once
all K tokens were right at once. N trajectories, in each of which all steps act.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from boundlab.checks import check_integer, check_key, check_shape, fail
from boundlab.precision import is_traced
from boundlab.typing import Count

# Joint contexts that are held one by one.
MOST_CONTEXTS = 2**22


@dataclass(frozen=True)
class TokenTask:
    """K steps with S contexts and A tokens; which token is right for a context doesn't matter.

    Raises `ValueError` naming the argument. Source: derived, docs/team_learning.md#tokens.
    """

    num_steps: Count
    """K ≥ 1, one an agent."""
    num_contexts: Count
    """S ≥ 1 of each step; S^K at most 2²²."""
    num_actions: Count
    """A ≥ 1 tokens."""
    dependent: bool = False
    """Whether all steps but the first see the token before theirs."""

    def __post_init__(self) -> None:
        for name in ("num_steps", "num_contexts", "num_actions"):
            check_integer(name, getattr(self, name), 1)
        if int(self.num_contexts) ** int(self.num_steps) > MOST_CONTEXTS:
            got = f"{self.num_contexts}^{self.num_steps} joint contexts"
            raise fail("num_contexts", got, f"at most {MOST_CONTEXTS}")


class Solved(NamedTuple):
    """Shares of contexts that one run of exploration solved."""

    process: Float[Array, " steps"]
    """Of each step's contexts, by step rewards."""
    outcome: Float[Array, ""]
    """Of the S^K joint contexts, by the outcome alone."""


def explore_tokens(
    key: Any, task: TokenTask, num_trajectories: Any, *, max_trajectories: Count | None = None
) -> Solved:
    """Explore N trajectories uniformly and count what was seen rewarded.

    Args:
        key: one typed key; with `max_trajectories` fewer trajectories are the first of more.
        task: the task.
        num_trajectories: N ≥ 0. May be traced if `max_trajectories` is given.
        max_trajectories: the largest N that `num_trajectories` stands for.

    Returns:
        Shares in the working precision; a dependent step's are of its S·A contexts.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#tokens.

    """
    check_key("key", key)
    if not isinstance(task, TokenTask):
        raise fail("task", f"a {type(task).__name__}", "a TokenTask")
    count, most = trajectories("num_trajectories", num_trajectories, max_trajectories)
    return _explore(key, count, task, most)


def trajectories(name: str, count: Any, most: Any) -> tuple[Int[Array, ""], int]:
    """A number of trajectories as an array, and the static number that is drawn."""
    named = (name, count) if most is None else ("max_trajectories", most)
    drawn = check_integer(*named, 0)
    if is_traced(count):
        check_shape(name, count, ())
        array = jnp.asarray(count)
        if not jnp.issubdtype(array.dtype, jnp.integer):
            raise fail(name, f"values of type {array.dtype}", "a traced integer")
        return jnp.minimum(array, jnp.asarray(drawn, array.dtype)).astype(jnp.int32), drawn
    return jnp.asarray(check_integer(name, count, 0, drawn), jnp.int32), drawn


def uniform_integers(uniform: Float[Array, "*shape"], size: int) -> Int[Array, "*shape"]:
    """Integers from 0 to size − 1 from numbers in [0, 1), equally likely to the numbers' spacing."""
    scaled = (uniform * jnp.asarray(size, uniform.dtype)).astype(jnp.int32)
    return jnp.minimum(scaled, jnp.asarray(size - 1, jnp.int32))


@partial(jax.jit, static_argnames=("task", "most"))
def _explore(key: jax.Array, count: Int[Array, ""], task: TokenTask, most: int) -> Solved:
    steps, contexts, actions = int(task.num_steps), int(task.num_contexts), int(task.num_actions)
    dtype = jnp.result_type(float)
    seen = contexts * actions if task.dependent else contexts
    # One draw for contexts and tokens compiles in half the time of two.
    uniform = jax.random.uniform(key, (2, steps, most), dtype)
    context, token = (uniform_integers(uniform[0], contexts), uniform_integers(uniform[1], actions))
    place = context
    if task.dependent:  # the first step's token before it is always 0
        before = jnp.concatenate([jnp.zeros_like(token[:1]), token[:-1]])
        place = context * actions + before
    used = jnp.arange(most, dtype=jnp.int32) < count
    # Exploration is uniform, so that any table of right tokens has the same law.
    hit = (token == place % actions) & used[None, :]
    process = jax.vmap(partial(_share, cells=seen))(place, hit)
    if task.dependent:
        # Only S of the first step's table can come up.
        process = process * jnp.where(jnp.arange(steps) == 0, actions, 1).astype(dtype)
    digits = contexts ** jnp.arange(steps - 1, -1, -1, dtype=jnp.int32)
    joint = jnp.sum(context * digits[:, None], axis=0, dtype=jnp.int32)
    return Solved(process, _share(joint, jnp.all(hit, axis=0), contexts**steps))


def _share(
    place: Int[Array, " trajectories"], hit: Bool[Array, " trajectories"], cells: int
) -> Float[Array, ""]:
    """Share of `cells` places with a hit."""
    solved = jnp.zeros(cells, jnp.bool_).at[place].max(hit)
    return jnp.sum(solved, dtype=jnp.result_type(float)) / cells
