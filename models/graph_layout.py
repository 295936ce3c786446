"""Layout of a graph for aggregation over all its edges, and the sum over neighbours it is made for.

Rows are sorted by degree into buckets whose widths double, each a padded table of neighbours; the
sums of a bucket are accumulated slot by slot and put back in the nodes' order by one gather. There is
no scatter, so the order of summation is fixed, and a node of degree 171 costs its neighbours 171
slots, not everyone. The derivative goes through the same layout of the reversed edges.

On PubMed (n = 19,717, mean degree 4.5, largest 171), two cores: 1.3 ms with 16 features and 2.1 with
64, against 1.1 and 3.4 for `segment_sum` over sorted edges, whose derivative scatters. Buckets of
more widths are no faster.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Num

from boundlab.checks import fail

# Wider tables are walked by a loop: unrolled, they would take long to compile.
UNROLLED = 32


class Buckets(NamedTuple):
    """In-neighbours of all nodes, one padded table a bucket of similar degrees."""

    tables: tuple[Int[Array | np.ndarray, "rows width"], ...]
    """Neighbours in increasing order; padding repeats the last one."""
    degrees: tuple[Int[Array | np.ndarray, " rows"], ...]
    """True slots of each row."""
    nodes: tuple[Int[Array | np.ndarray, " rows"], ...]
    """Node of each row."""
    place: Int[Array | np.ndarray, " n"]
    """Row of each node in the buckets laid end to end."""


class Layout(NamedTuple):
    """A graph as programs take it: host integers (int32), an argument and never a constant."""

    in_degrees: Int[Array | np.ndarray, " n"]
    out_degrees: Int[Array | np.ndarray, " n"]
    incoming: Buckets
    outgoing: Buckets
    """The same of the reversed edges."""


def graph_layout(graph: Any) -> Layout:
    """Layout of a `Graph` or `DirectedGraph`, made once a graph; a `Layout` is returned as it is.

    Raises `ValueError` naming `graph`.
    """
    if isinstance(graph, Layout):
        return graph
    if not (hasattr(graph, "num_nodes") and hasattr(graph, "to_edge_index")):
        raise fail("graph", f"a {type(graph).__name__}", "a Graph or DirectedGraph")
    # A graph never changes, so that what was made of it can be kept with it.
    kept: dict[str, Any] = vars(graph)
    if "_layout" not in kept:
        kept["_layout"] = _build(graph.num_nodes, *graph.to_edge_index())
    layout: Layout = kept["_layout"]
    return layout


def _build(num_nodes: int, senders: np.ndarray, receivers: np.ndarray) -> Layout:
    """Edges must be sorted by receiver, then sender."""
    incoming = _buckets(num_nodes, senders, receivers)
    order = np.lexsort((receivers, senders))
    reversed_edges = receivers[order], senders[order]
    undirected = all(map(np.array_equal, reversed_edges, (senders, receivers)))
    return Layout(
        in_degrees=_counts(num_nodes, receivers),
        out_degrees=_counts(num_nodes, senders),
        incoming=incoming,
        outgoing=incoming if undirected else _buckets(num_nodes, *reversed_edges),
    )


def _counts(num_nodes: int, nodes: np.ndarray) -> np.ndarray:
    return np.bincount(nodes, minlength=num_nodes).astype(np.int32)


def _buckets(num_nodes: int, senders: np.ndarray, receivers: np.ndarray) -> Buckets:
    degrees = _counts(num_nodes, receivers)
    first = np.cumsum(degrees) - degrees
    # Bucket 0 holds degree 0, bucket k the degrees from 2^(k−2) + 1 to 2^(k−1): 1, 2, 3–4, 5–8, …
    bucket = np.where(degrees > 0, np.ceil(np.log2(np.maximum(degrees, 1))) + 1, 0)
    nodes = [np.flatnonzero(bucket == number) for number in np.unique(bucket)]
    tables = []
    for rows in nodes:
        own = degrees[rows]
        slot = np.minimum(np.arange(own.max())[None, :], own[:, None] - 1)
        tables.append(senders[first[rows][:, None] + slot].astype(np.int32))
    place = np.empty(num_nodes, np.int32)
    place[np.concatenate(nodes)] = np.arange(num_nodes)
    return Buckets(
        tables=tuple(tables),
        degrees=tuple(degrees[rows] for rows in nodes),
        nodes=tuple(rows.astype(np.int32) for rows in nodes),
        place=place,
    )


def true_slots(
    table: Int[Array | np.ndarray, "rows width"], degrees: Int[Array | np.ndarray, " rows"]
) -> Bool[Array, "rows width"]:
    """Slots of a bucket's table that hold a neighbour."""
    slot = jnp.arange(table.shape[1], dtype=jnp.int32)
    return slot[None, :] < jnp.asarray(degrees)[:, None]


def rows_of(
    values: Num[Array, "senders ..."], index: Int[Array | np.ndarray, "rows ..."]
) -> Num[Array, "rows ..."]:
    """Rows `index` of `values`; an index out of range (of a slot that is not used) reads any row."""
    return jnp.take(values, jnp.asarray(index), axis=0, mode="clip")


def slot_sum(
    values: Float[Array, "senders r"],
    index: Int[Array | np.ndarray, "rows width"],
    weights: Float[Array, "rows width"],
    used: Bool[Array, "rows width"],
) -> Float[Array, "rows r"]:
    """Σ_k weights[i, k]·values[index[i, k]] over the slots `used` (bool), one slot after another.

    Neither values nor derivatives of the other slots enter, so that they may be anything.
    """

    def add(
        total: Float[Array, "rows r"], slot: tuple[Array, Array, Array]
    ) -> tuple[Float[Array, "rows r"], None]:
        index, weight, used = slot
        term = weight[:, None] * rows_of(values, index)
        return total + jnp.where(used[:, None], term, jnp.zeros_like(term)), None

    total = jnp.zeros((index.shape[0], values.shape[1]), values.dtype)
    slots = (jnp.asarray(index).T, weights.T, used.T)
    if index.shape[1] <= UNROLLED:
        for k in range(index.shape[1]):
            total, _ = add(total, (slots[0][k], slots[1][k], slots[2][k]))
        return total
    return jax.lax.scan(add, total, slots)[0]


@jax.custom_vjp
def neighbor_sum(
    incoming: Buckets, outgoing: Buckets, values: Float[Array, "n r"]
) -> Float[Array, "n r"]:
    """Σ_{j∈N(i)} values[j] at every node; 0 without neighbours.

    Reverse-mode derivatives only: the cotangent is summed over out-neighbours, without a scatter.
    """
    del outgoing
    sums = []
    for table, degrees in zip(incoming.tables, incoming.degrees, strict=True):
        ones = jnp.ones(table.shape, values.dtype)
        sums.append(slot_sum(values, table, ones, true_slots(table, degrees)))
    return rows_of(jnp.concatenate(sums), incoming.place)


def _forward(
    incoming: Buckets, outgoing: Buckets, values: Float[Array, "n r"]
) -> tuple[Float[Array, "n r"], tuple[Buckets, Buckets]]:
    return neighbor_sum(incoming, outgoing, values), (incoming, outgoing)


def _backward(
    layouts: tuple[Buckets, Buckets], cotangent: Float[Array, "n r"]
) -> tuple[None, None, Float[Array, "n r"]]:
    incoming, outgoing = layouts
    return None, None, neighbor_sum(outgoing, incoming, cotangent)


neighbor_sum.defvjp(_forward, _backward)
