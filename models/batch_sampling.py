"""Uniform batches of training nodes, with a traced size.

Symbols: n training nodes, b the batch size.
"""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Bool, Int, UInt32

from boundlab.checks import check_integer, check_key, fail
from boundlab.models.counter_bits import after, below, counter_key, threefry
from boundlab.models.neighborhoods import node_ids
from boundlab.precision import is_traced
from boundlab.typing import Count

# Most slots of a row or a batch: more would not fit in memory.
MOST_SLOTS = 2**28
# Up to so many nodes a whole random order is cheaper than the rejection of repeats.
_SMALL = 256


def sample_batch(
    key: Any, train_nodes: Any, batch_size: Count, max_batch_size: Count
) -> tuple[Int[jax.Array, " max_batch_size"], Bool[jax.Array, " max_batch_size"]]:
    """Uniform subset of b training nodes, without replacement: the first b of one random order.

    Every ordered choice is equally likely, to a relative error of about n²/2³³ (ties among 32
    random bits). For one key the subsets are nested in b, whatever `max_batch_size`.

    The random order is that of first occurrences in n independent uniform draws followed by a
    random permutation. For b much below n the first few draws decide, so that time grows with
    `max_batch_size`, not with n log n.

    Args:
        key: One key; may be traced. Not one that `sample_neighbors` is given too: the two draws
            would depend on each other.
        train_nodes: Distinct node ids (n,); may be traced.
        batch_size: b, an integer in 1 … min(n, max_batch_size); a traced one is clamped to it.
        max_batch_size: Slots, static; may exceed n.

    Returns:
        Node ids (max_batch_size,), int32, and the mask, true on the first b slots. Masked slots
        hold nodes of `train_nodes` as well.

    Raises:
        ValueError: Naming the argument.
    """
    check_key("key", key)
    max_batch_size = check_integer("max_batch_size", max_batch_size, 1, MOST_SLOTS)
    nodes = node_ids("train_nodes", train_nodes, None)
    num_train = len(nodes)
    if num_train == 0:
        raise fail("train_nodes", "none", "at least one node")
    if not is_traced(nodes):
        concrete = np.asarray(nodes)
        if np.any(concrete[1:] <= concrete[:-1]) and len(np.unique(concrete)) < num_train:
            raise fail("train_nodes", "repeated nodes", "distinct nodes")
    limit = min(num_train, max_batch_size)
    if is_traced(batch_size):
        if batch_size.shape or not jnp.issubdtype(batch_size.dtype, jnp.integer):  # type: ignore[union-attr]
            raise fail("batch_size", f"a traced {batch_size}", "one integer")
    else:
        why = f"max_batch_size = {max_batch_size}, {num_train} train nodes"
        batch_size = check_integer("batch_size", batch_size, 1, limit, why=why)
    return _sample_batch(key, nodes, clamped(batch_size, 1, limit), max_batch_size)


def clamped(size: Any, low: int, high: int) -> Int[jax.Array, ""]:
    """An integer, which may be traced, clamped to low … high < 2³¹ and then made an int32."""
    if not is_traced(size):
        return jnp.asarray(min(max(int(size), low), high), dtype=jnp.int32)
    limits = jnp.iinfo(size.dtype)  # of few or no negative numbers, in small or unsigned types
    low, high = (min(max(bound, int(limits.min)), int(limits.max)) for bound in (low, high))
    return jnp.clip(size, low, high).astype(jnp.int32)


@functools.partial(jax.jit, static_argnames=("max_batch_size",))
def _sample_batch(
    key: Any,
    train_nodes: Int[jax.Array, " n"],
    batch_size: Int[jax.Array, ""],
    max_batch_size: int,
) -> tuple[Int[jax.Array, " max_batch_size"], Bool[jax.Array, " max_batch_size"]]:
    num_train = len(train_nodes)
    wanted = min(num_train, max_batch_size)
    words = counter_key(key)
    draws = _draws_for(num_train, wanted)
    if draws is None:
        order = _whole_order(words, num_train)[:wanted]
    else:
        short = _first_occurrences(_positions(words, num_train, draws), num_train, wanted)
        # Almost never: a loop, since both branches of a `cond` are run under vmap.
        order, _ = lax.while_loop(
            lambda state: state[1] < wanted,
            lambda state: (
                _whole_order(after(state[1], words), num_train)[:wanted],
                jnp.int32(wanted),
            ),
            short,
        )
    order = jnp.concatenate([order, jnp.zeros(max_batch_size - wanted, jnp.int32)])
    return train_nodes[order], jnp.arange(max_batch_size, dtype=jnp.int32) < batch_size


def _draws_for(num_train: int, wanted: int) -> int | None:
    """Draws that hold `wanted` distinct values of n except with probability about 1e-9.

    Mean n·ln(n/(n − w)) plus six standard deviations; None where the whole order is no dearer.
    """
    if num_train <= _SMALL or 2 * wanted > num_train:
        return None
    log_ratio = -math.log1p(-wanted / num_train)
    variance = num_train * (wanted / (num_train - wanted) - log_ratio)
    draws = math.ceil(num_train * log_ratio + 6 * math.sqrt(variance)) + 8
    return draws if draws < num_train else None


def _positions(
    words: tuple[UInt32[jax.Array, ""], UInt32[jax.Array, ""]], num_train: int, draws: int
) -> Int[jax.Array, " draws"]:
    """The first `draws` of the independent uniform draws from 0 … n − 1."""
    pairs = jnp.arange(-(-draws // 2), dtype=jnp.uint32)
    bits = jnp.stack(threefry(words, jnp.zeros_like(pairs), pairs), axis=-1).reshape(-1)[:draws]
    return below(bits, jnp.full((draws,), num_train, jnp.uint32)).astype(jnp.int32)


def _whole_order(
    words: tuple[UInt32[jax.Array, ""], UInt32[jax.Array, ""]], num_train: int
) -> Int[jax.Array, " n"]:
    """The whole random order of 0 … n − 1: first occurrences in n draws, then in a permutation."""
    pairs = jnp.arange(-(-num_train // 2), dtype=jnp.uint32)
    bits = jnp.stack(threefry(words, jnp.ones_like(pairs), pairs), axis=-1).reshape(-1)[:num_train]
    _, rest = lax.sort((bits, jnp.arange(num_train, dtype=jnp.int32)), num_keys=1)
    sequence = jnp.concatenate([_positions(words, num_train, num_train), rest])
    return _first_occurrences(sequence, num_train, num_train)[0]


def _first_occurrences(
    sequence: Int[jax.Array, " length"], num_values: int, wanted: int
) -> tuple[Int[jax.Array, " wanted"], Int[jax.Array, ""]]:
    """The first `wanted` distinct values of a sequence in 0 … num_values − 1, and how many there are."""
    length = len(sequence)
    place = jnp.arange(length, dtype=jnp.int32)
    first = jnp.full((num_values,), length, jnp.int32).at[sequence].min(place)
    new = first[sequence] == place
    count = jnp.cumsum(new, dtype=jnp.int32)
    slot = jnp.where(new, count - 1, wanted)
    found = jnp.zeros((wanted,), jnp.int32).at[slot].set(sequence, mode="drop")
    return found, count[-1]
