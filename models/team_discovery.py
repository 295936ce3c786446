"""Exploration without noise: when uniform play first shows one agent, or each of a team, its best action.

Symbols: K agents of A actions, of which action 0 is best; each trajectory plays a uniform joint action.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from boundlab.checks import check_integer, check_key, check_number, check_shape, fail
from boundlab.precision import is_traced
from boundlab.typing import Count


class DiscoveryTimes(NamedTuple):
    """Trajectories until the best is seen, counted from 1; one more than there were if it wasn't."""

    joint: Int[Array, " trials"]
    """One agent, paid the outcome: until all agents play 0 in one trajectory."""
    separate: Int[Array, " trials"]
    """A team with own rewards: until every agent has played 0."""


def simulate_discovery(
    key: Any, num_actions: Any, num_agents: Count, num_samples: Count, num_trials: Count
) -> DiscoveryTimes:
    """Times of discovery on the same trajectories, in independent trials.

    Args:
        key: one typed key.
        num_actions: A, from 1 to 2³⁰; may be traced.
        num_agents: K ≥ 1.
        num_samples: n ≥ 1, the trajectories played.
        num_trials: T ≥ 1.

    Returns:
        Times (T,) in trajectories, from 1 to n + 1. P(time > N) is the failure after N ≤ n of them.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#discovery.

    """
    check_key("key", key)
    if is_traced(num_actions):
        check_shape("num_actions", num_actions, ())
        if not jnp.issubdtype(num_actions.dtype, jnp.integer):
            raise fail("num_actions", f"a value of type {num_actions.dtype}", "an integer")
        check_number("num_actions", num_actions, 1)
        actions = jnp.asarray(num_actions).astype(jnp.int32)
    else:
        actions = jnp.asarray(check_integer("num_actions", num_actions, 1, 2**30), jnp.int32)
    agents = check_integer("num_agents", num_agents, 1)
    samples = check_integer("num_samples", num_samples, 1, 2**30)
    trials = check_integer("num_trials", num_trials, 1)
    return _times(key, actions, agents, samples, trials)


@functools.partial(jax.jit, static_argnums=(2, 3, 4))
def _times(
    key: jax.Array, actions: Int[Array, ""], agents: int, samples: int, trials: int
) -> DiscoveryTimes:
    played = jax.random.randint(key, (trials, samples, agents), 0, actions, jnp.int32)
    best = played == 0
    each = jnp.max(_first(best), axis=1)
    return DiscoveryTimes(_first(jnp.all(best, axis=2, keepdims=True))[:, 0], each)


def _first(seen: Bool[Array, "trials samples k"]) -> Int[Array, "trials k"]:
    """The first trajectory with True, from 1; n + 1 if none."""
    places = jnp.arange(1, seen.shape[1] + 1, dtype=jnp.int32)
    never = jnp.int32(seen.shape[1] + 1)
    return jnp.min(jnp.where(seen, places[None, :, None], never), axis=1)
