"""Uniform samples of neighbours and of training nodes, with traced sizes.

Shapes are static (`max_fan_out`, `max_batch_size`), sizes may be traced (`fan_out`, `batch_size`):
one compiled program serves a whole grid of them. Here the neighbours, in `batch_sampling` the nodes.
Symbols: N(i) the in-neighbours of node i, d = |N(i)| its degree, β the fan-out, m = min(β, d).
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Bool, Int, UInt32

from boundlab.checks import check_integer, check_key, fail
from boundlab.models.batch_sampling import MOST_SLOTS, clamped, sample_batch
from boundlab.models.counter_bits import after, below, counter_key, threefry
from boundlab.models.neighborhoods import Neighborhoods, neighborhoods, node_ids
from boundlab.precision import is_traced
from boundlab.typing import Count

# Slots whose comparisons are written out; beyond, compile time would grow with their square.
_UNROLLED = 16

__all__ = ["sample_batch", "sample_neighbors"]


def sample_neighbors(
    key: Any,
    graph: Any,
    nodes: Any,
    fan_out: Count,
    max_fan_out: Count,
    *,
    replace: bool = False,
) -> tuple[Int[jax.Array, "rows max_fan_out"], Bool[jax.Array, "rows max_fan_out"]]:
    """Uniform sample of min(β, d) in-neighbours of each node, without replacement.

    Floyd's algorithm [bentley1987floyd], all rows at once: slot k takes a uniform position t from
    {0, …, d − m + k}, or d − m + k itself where t was taken before. Each of the C(d, m) subsets has
    the same probability, to a relative error of at most m·d/2³² (32 random bits a slot). The bits
    are a function of (key, node, slot) alone: a repeated node has the same subset in each of its
    rows, different nodes have independent ones, and nothing depends on `max_fan_out` or on x64
    mode. For β ≥ d all neighbours are returned, in increasing order.

    Args:
        key: One key; may be traced. Not one that `sample_batch` is given too: the two draws would
            depend on each other.
        graph: `Graph`, `DirectedGraph`, or their `Neighborhoods` (which may be traced).
        nodes: Node ids (rows,), repeats allowed; may be traced. Id n stands for no node: an empty
            row.
        fan_out: β, an integer ≥ 0; more than `max_fan_out` only if no node has more neighbours than
            that. A traced one, which can't be checked, is clamped to 0 … max_fan_out.
        max_fan_out: Slots of a row, static; may exceed every degree.
        replace: Instead draw β neighbours independently, with replacement (none where d = 0). Never
            reaches the full neighbourhood: for comparisons only.

    Returns:
        Node ids (rows, max_fan_out), int32, and the mask of sampled slots, the first m of a row
        (the first β with replacement). A masked slot holds the row's own node.

    Raises:
        ValueError: Naming the argument.
    """
    check_key("key", key)
    lists = neighborhoods(graph)
    max_fan_out = check_integer("max_fan_out", max_fan_out, 0, MOST_SLOTS)
    if not isinstance(replace, bool | np.bool):
        raise fail("replace", repr(replace), "True or False")
    nodes = node_ids("nodes", nodes, lists.num_nodes)
    if is_traced(fan_out):
        if fan_out.shape or not jnp.issubdtype(fan_out.dtype, jnp.integer):  # type: ignore[union-attr]
            raise fail("fan_out", f"a traced {fan_out}", "one integer")
    else:
        fan_out = check_integer("fan_out", fan_out, 0)
        if fan_out > max_fan_out and not is_traced(lists):
            largest = int(np.max(lists.degrees(), initial=0))
            if replace or largest > max_fan_out:
                accepted = f"an integer ≤ max_fan_out = {max_fan_out}"
                why = "" if replace else f" (the largest degree is {largest})"
                raise fail("fan_out", fan_out, accepted + why)
    fan_out = clamped(fan_out, 0, max_fan_out)
    return _sample_neighbors(key, lists, nodes, fan_out, max_fan_out, bool(replace))


@functools.partial(jax.jit, static_argnames=("max_fan_out", "replace"))
def _sample_neighbors(
    key: Any,
    lists: Neighborhoods,
    nodes: Int[jax.Array, " rows"],
    fan_out: Int[jax.Array, ""],
    max_fan_out: int,
    replace: bool,
) -> tuple[Int[jax.Array, "rows max_fan_out"], Bool[jax.Array, "rows max_fan_out"]]:
    rows = len(nodes)
    own = jnp.broadcast_to(nodes[:, None], (rows, max_fan_out))
    if max_fan_out == 0 or lists.indices.shape[0] == 0:
        return own, jnp.zeros((rows, max_fan_out), bool)
    indptr, indices = (jnp.asarray(array) for array in lists)
    start = indptr[nodes]
    degree = indptr[jnp.minimum(nodes + 1, lists.num_nodes)] - start  # node n has none
    # One row a slot until the end: contiguous over nodes, so that XLA vectorises.
    slot = jnp.arange(max_fan_out, dtype=jnp.int32)[:, None]
    bits = _slot_bits(key, nodes, max_fan_out)
    if replace:
        count = jnp.where(degree > 0, fan_out, 0)
        bound = jnp.broadcast_to(degree[None, :], bits.shape).astype(jnp.uint32)
        chosen = below(bits, bound).astype(jnp.int32)
    else:
        count = jnp.minimum(degree, fan_out)
        highest = (degree - count)[None, :] + slot
        draws = below(bits, highest.astype(jnp.uint32) + np.uint32(1)).astype(jnp.int32)
        chosen = _without_repeats(draws, highest, jnp.max(count, initial=0))
    mask = slot < count[None, :]
    edge = start[None, :] + jnp.where(mask, chosen, 0)
    index = jnp.where(mask, indices.at[edge].get(mode="clip"), nodes[None, :])
    return index.T, mask.T


def _slot_bits(
    key: Any, nodes: Int[jax.Array, " rows"], max_fan_out: int
) -> UInt32[jax.Array, "max_fan_out rows"]:
    """32 random bits for each slot and row, a function of (key, node, slot) alone."""
    shape = (max_fan_out, len(nodes))
    node = jnp.broadcast_to(nodes.astype(jnp.uint32)[None, :], shape)
    slot = lax.broadcasted_iota(jnp.uint32, shape, 0)
    # One of the two words of a counter: XLA would go through all rounds again for the other.
    return threefry(counter_key(key), node, slot)[0]


def _without_repeats(
    draws: Int[jax.Array, "slots rows"],
    highest: Int[jax.Array, "slots rows"],
    used: Int[jax.Array, ""],
) -> Int[jax.Array, "slots rows"]:
    """Floyd's rule: each slot's draw, or the slot's `highest` where an earlier slot holds the draw.

    Slots from `used` on may hold anything.
    """
    if len(draws) > _UNROLLED:

        def fill(k: Int[jax.Array, ""], chosen: Int[jax.Array, "slots rows"]) -> Any:
            draw = lax.dynamic_index_in_dim(draws, k, keepdims=False)
            taken = jnp.any(chosen == draw[None, :], axis=0)
            value = jnp.where(taken, lax.dynamic_index_in_dim(highest, k, keepdims=False), draw)
            return lax.dynamic_update_index_in_dim(chosen, value, k, axis=0)

        return lax.fori_loop(0, used, fill, jnp.full_like(draws, -1))

    def mark(_: Int[jax.Array, ""], bits: UInt32[jax.Array, " rows"]) -> UInt32[jax.Array, " rows"]:
        return _taken_bits(after(bits, draws), highest[0])

    # A loop of one step keeps its operands in memory; fused into the comparisons, the random bits
    # would be drawn again for each of them.
    start = jnp.zeros_like(highest[0], dtype=jnp.uint32)
    bits = lax.fori_loop(0, jnp.minimum(used, 1), mark, start)
    slot = jnp.arange(len(draws), dtype=jnp.uint32)[:, None]
    return jnp.where((bits[None, :] >> slot) & np.uint32(1) == np.uint32(1), highest, draws)


def _taken_bits(
    draws: Int[jax.Array, "slots rows"], base: Int[jax.Array, " rows"]
) -> UInt32[jax.Array, " rows"]:
    """Bit k: whether an earlier slot holds the draw of slot k, whose `highest` is base + k.

    One does if it drew the same, or if it is slot draw − base and had to take its `highest`: but for
    that one bit of an earlier slot, the comparisons don't wait for each other.
    """
    one = np.uint32(1)
    bits = jnp.zeros(base.shape, jnp.uint32)
    for k in range(1, len(draws)):
        different = functools.reduce(jnp.minimum, [jnp.abs(draws[k] - draws[j]) for j in range(k)])
        # Below `base`, a place is a huge number; slots from k on are not marked yet.
        place = jnp.minimum((draws[k] - base).astype(jnp.uint32), np.uint32(31))
        taken = jnp.where(different == 0, one, (bits >> place) & one)
        bits = bits | (taken << np.uint32(k))
    return bits
