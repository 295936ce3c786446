"""Picking the best of noisy means: all of them drawn, or only the largest of each group of equal means.

Symbols: T trials; R rows (agents that choose for themselves, or 1 for all jointly); G groups of arms with
equal values in a row, c arms in each; scale the standard deviation of an arm's mean, σ/√m for m samples.
The largest of c independent N(0, 1) numbers is Φ⁻¹(U^{1/c}), one uniform number whatever c.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtri
from jaxtyping import Array, Float, Int


def group_maxima(
    key: Any, counts: Float[Array, "rows groups"], num_trials: int
) -> Float[Array, "rows groups trials"]:
    """The largest of c independent N(0, 1) numbers, one a group; 0 for empty groups.

    z = −Φ⁻¹(−expm1(−e/c)), e ~ Exp(1), which keeps its digits up to c = 1e15 and beyond.
    """
    dtype = counts.dtype
    # An exponential of 0 stands for less than the generator's step, not for an infinite maximum.
    least = float(jnp.finfo(dtype).eps) / 4
    e = jnp.maximum(jax.random.exponential(key, (*counts.shape, num_trials), dtype), least)
    some = counts[:, :, None] > 0
    return jnp.where(some, -ndtri(-jnp.expm1(-e / jnp.where(some, counts[:, :, None], 1.0))), 0.0)


def group_winners(
    values: Float[Array, "rows groups"],
    counts: Float[Array, "rows groups"],
    maxima: Float[Array, "rows groups trials"],
    scale: Float[Array, ""],
) -> Int[Array, "rows trials"]:
    """The group of the largest value + scale·maximum; of exact ties the larger maximum, as scale → 0."""
    some = counts > 0

    def score(g: int) -> Float[Array, "rows trials"]:
        drawn = values[:, g, None] + scale * maxima[:, g]
        return jnp.where(some[:, g, None], drawn, -jnp.inf)

    # Group after group on whole rows of trials, which vectorises; an argmax over few groups doesn't.
    winner = jnp.zeros(maxima[:, 0].shape, jnp.int32)
    best, tie_break = score(0), maxima[:, 0]
    for g in range(1, values.shape[1]):
        other = score(g)
        wins = (other > best) | ((other == best) & (maxima[:, g] > tie_break))
        winner = jnp.where(wins, g, winner)
        best = jnp.where(wins, other, best)
        tie_break = jnp.where(wins, maxima[:, g], tie_break)
    return winner


def stored_normal(key: Any, shape: tuple[int, ...], dtype: Any) -> Float[Array, "..."]:
    """Independent N(0, 1) numbers that several passes may read.

    Drawn in two halves by a loop: what a loop returns is in memory, while numbers drawn in the open are
    drawn anew in every pass over them, which costs more than all else on CPU.
    """
    half = -(-shape[0] // 2)
    halves = jax.lax.map(
        lambda one: jax.random.normal(one, (half, *shape[1:]), dtype), jax.random.split(key, 2)
    )
    return halves.reshape(-1, *shape[1:])[: shape[0]]


def arm_winners(
    scores: Float[Array, "*rows arms"], tie_break: Float[Array, "*rows arms"]
) -> Int[Array, "*rows"]:
    """The arm of the largest score; of exact ties that of the largest `tie_break`."""
    top = jnp.max(scores, axis=-1, keepdims=True)
    return jnp.argmax(jnp.where(scores == top, tie_break, -jnp.inf), axis=-1).astype(jnp.int32)
