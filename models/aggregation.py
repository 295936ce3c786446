"""Aggregation over neighbours: of sampled ones, row by row, and over the whole graph.

A *block* is one round of aggregation, from `senders` (rows of values) to `rows`; layers of networks
take a block and don't know whether it was sampled. Symbols: N(i) in-neighbours of node i, d_i their
number, dout_j the number of edges out of j, S_i ⊂ N(i) the sampled ones, m_i their number, c_j the
number of a block's rows that sampled j.

| kind | sampled | whole graph |
|---|---|---|
| `mean` | Σ_S x_j/m_i | Σ_N x_j/d_i |
| `mean_self` | (x_i + d_i·Σ_S x_j/m_i)/(d_i + 1) | (x_i + Σ_N x_j)/(d_i + 1) |
| `sum` | Σ_S x_j, not rescaled | Σ_N x_j |
| `gcn_full_ht` | (d_i/m_i)·Σ_S x_j/√(d_i dout_j) | Σ_N x_j/√(d_i dout_j) |
| `gcn_block` | Σ_S x_j/√(m_i c_j) | Σ_N x_j/√(d_i dout_j) |

An empty sum is 0. With all neighbours sampled the two columns agree, `gcn_block` only if the rows are
all the nodes, each once.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from boundlab.checks import check_choice, check_number, check_range_of, check_shape, fail
from boundlab.models.graph_layout import (
    Layout,
    graph_layout,
    neighbor_sum,
    rows_of,
    slot_sum,
    true_slots,
)
from boundlab.precision import is_traced
from boundlab.typing import Numbers

# `aggregate` gathers up to so many numbers at once and sums them by a product, which is not fused with
# what made the indices; where these are in memory already (`train`), slot by slot takes half the time.
_GATHERED = 2**22
KINDS = ("mean", "mean_self", "sum", "gcn_full_ht", "gcn_block")


class SampledBlock(NamedTuple):
    """One round over sampled neighbours.

    Without `own` and `index`, the senders are the rows themselves and then the slots of row 0, of
    row 1, …, so that nothing has to be gathered.
    """

    own: Int[Array, " rows"] | None
    """Place of each row itself among the senders."""
    index: Int[Array, "rows fan_out"] | None  # type: ignore[assignment]  # hides tuple.index
    """Places of its sampled neighbours among the senders."""
    mask: Bool[Array, "rows fan_out"]
    """Slots that hold a neighbour."""
    in_degrees: Int[Array, " rows"]
    """d_i of the rows, in the whole graph."""
    out_degrees: Int[Array, "rows fan_out"]
    """dout_j of the sampled neighbours, in the whole graph."""

    def own_rows(self, values: Float[Array, "senders ..."]) -> Float[Array, "rows ..."]:
        """Values of the rows themselves."""
        if self.own is None:
            return values[: self.mask.shape[0]]
        return rows_of(values, self.own)

    def aggregate(
        self, values: Float[Array, "senders r"], kind: str, *, at_once: bool = False
    ) -> Float[Array, "rows r"]:
        """One of `KINDS` over the sampled neighbours; `at_once`: gather all slots before summing."""
        dtype = values.dtype
        count = self.mask.sum(axis=1).astype(dtype)
        scale, weights = jnp.ones_like(count), jnp.ones(self.mask.shape, dtype)
        if kind in ("mean", "mean_self"):
            scale = 1 / jnp.maximum(count, 1)
        elif kind == "gcn_full_ht":
            scale = jnp.sqrt(self.in_degrees.astype(dtype)) / jnp.maximum(count, 1)
            weights = _inverse_root(self.out_degrees, dtype)
        elif kind == "gcn_block":
            scale = _inverse_root(count, dtype)
            weights = _inverse_root(self._times_sampled(values.shape[0]), dtype)
        total = scale[:, None] * self._sum(values, weights, at_once=at_once)
        if kind == "mean_self":
            degrees = self.in_degrees.astype(dtype)[:, None]
            total = (self.own_rows(values) + degrees * total) / (degrees + 1)
        return total

    def attend(
        self,
        values: Float[Array, "senders heads r"],
        sender_scores: Float[Array, "senders heads"],
        row_scores: Float[Array, "rows heads"],
        slope: float,
    ) -> Float[Array, "rows heads r"]:
        """Σ_S α_ij values_j, α_i· = softmax over S_i of leaky ReLU(sender_scores_j + row_scores_i)."""
        scores = self._slots(sender_scores) + row_scores[:, None, :]
        weights = _softmax(jax.nn.leaky_relu(scores, slope), self.mask)
        return jax.vmap(self._sum, in_axes=(1, 2), out_axes=1)(values, weights)

    def _slots(self, values: Float[Array, "senders r"]) -> Float[Array, "rows fan_out r"]:
        """Values of each slot."""
        if self.index is None:
            return values[self.mask.shape[0] :].reshape(*self.mask.shape, values.shape[1])
        return rows_of(values, self.index)

    def _sum(
        self,
        values: Float[Array, "senders r"],
        weights: Float[Array, "rows fan_out"],
        *,
        at_once: bool = False,
    ) -> Float[Array, "rows r"]:
        """Σ of the slots that are used, with weights."""
        if self.index is None or at_once:
            weights = jnp.where(self.mask, weights, jnp.zeros_like(weights))
            return jnp.einsum("ik,ikr->ir", weights, self._slots(values))
        return slot_sum(values, self.index, weights, self.mask)

    def _times_sampled(self, num_senders: int) -> Int[Array, "rows fan_out"]:
        """c_j of each slot's neighbour."""
        if self.index is None:
            raise ValueError("kind: got 'gcn_block' in an inner layer, expected one layer only")
        # A slot that is not used counts for no sender: its place is past the last one.
        places = jnp.where(self.mask, self.index, num_senders)
        times = jnp.zeros(num_senders, jnp.int32).at[places].add(1, mode="drop")
        return rows_of(times, self.index)


class FullBlock(NamedTuple):
    """One round over all neighbours of all nodes: senders and rows are the n nodes."""

    layout: Layout

    def own_rows(self, values: Float[Array, "n r"]) -> Float[Array, "n r"]:
        """Values of the rows themselves."""
        return values

    def aggregate(self, values: Float[Array, "n r"], kind: str) -> Float[Array, "n r"]:
        """One of `KINDS` over all neighbours."""
        layout, dtype = self.layout, values.dtype
        degrees = jnp.asarray(layout.in_degrees).astype(dtype)[:, None]
        if kind in ("gcn_full_ht", "gcn_block"):
            values = _inverse_root(layout.out_degrees, dtype)[:, None] * values
        total = neighbor_sum(layout.incoming, layout.outgoing, values)
        if kind == "mean":
            return total / jnp.maximum(degrees, 1)
        if kind == "mean_self":
            return (values + total) / (degrees + 1)
        return total if kind == "sum" else _inverse_root(layout.in_degrees, dtype)[:, None] * total

    def attend(
        self,
        values: Float[Array, "n heads r"],
        sender_scores: Float[Array, "n heads"],
        row_scores: Float[Array, "n heads"],
        slope: float,
    ) -> Float[Array, "n heads r"]:
        """Σ_N α_ij values_j, α_i· = softmax over N(i) of leaky ReLU(sender_scores_j + row_scores_i)."""
        buckets, parts = self.layout.incoming, []
        for table, degrees, nodes in zip(
            buckets.tables, buckets.degrees, buckets.nodes, strict=True
        ):
            used = true_slots(table, degrees)
            scores = rows_of(sender_scores, table) + rows_of(row_scores, nodes)[:, None, :]
            weights = _softmax(jax.nn.leaky_relu(scores, slope), used)
            by_head = jax.vmap(slot_sum, in_axes=(1, None, 2, None), out_axes=1)
            parts.append(by_head(values, table, weights, used))
        return rows_of(jnp.concatenate(parts), buckets.place)


class KnownBlock(NamedTuple):
    """One round whose result is known, since its senders' values and neighbours never change."""

    own: Int[Array, " rows"]
    known: Float[Array, "rows r"]

    def own_rows(self, values: Float[Array, "senders r"]) -> Float[Array, "rows r"]:
        """Values of the rows themselves."""
        return rows_of(values, self.own)

    def aggregate(self, values: Float[Array, "senders r"], kind: str) -> Float[Array, "rows r"]:
        """The known result, of whatever kind it was made with."""
        del values, kind
        return self.known


Block = SampledBlock | FullBlock | KnownBlock


def aggregate(
    graph: Any, nodes: Any, index: Any, mask: Any, features: Numbers, kind: str
) -> Float[Array, "rows r"]:
    """Aggregate sampled neighbours of `nodes`, by the formulas at the head of this module.

    Args:
        graph: `Graph`, `DirectedGraph`, or a `Layout` of one; its degrees are used.
        nodes: (rows,) node ids; a node may come more than once.
        index: (rows, fan_out) node ids of sampled neighbours, as `sample_neighbors` gives them.
        mask: (rows, fan_out) bool; what `index` holds elsewhere plays no part.
        features: (n, r) float32 or float64, in which the sums are taken.
        kind: `mean`, `mean_self`, `sum`, `gcn_full_ht` or `gcn_block`. `gcn_block` counts c_j over
            all rows given, repeated ones each time.

    Returns:
        (rows, r), finite with finite derivatives also where nothing was sampled.

    Raises:
        ValueError: naming the argument.

    Source: [liu2026full] and DGL's GraphConv (`gcn_block`), docs/fanout.md#fan-out-estimator.

    """
    layout, features = _checked(graph, features, kind)
    num_nodes = layout.in_degrees.shape[0]
    nodes = node_ids("nodes", nodes, (None,), num_nodes - 1)
    index = node_ids("index", index, (nodes.shape[0], None), num_nodes)
    check_shape("mask", mask, index.shape, "one entry a slot of index")
    mask = jnp.asarray(mask)
    if mask.dtype != bool:
        raise fail("mask", f"values of type {mask.dtype}", "bool")
    return _aggregate(layout, nodes, index, mask, features, kind=kind)


def aggregate_full(graph: Any, features: Numbers, kind: str) -> Float[Array, "n r"]:
    """Aggregate all neighbours at every node: right column of the table at the head of this module.

    Args:
        graph: `Graph`, `DirectedGraph`, or a `Layout` of one.
        features: (n, r) float32 or float64, in which the sums are taken.
        kind: as in `aggregate`. `gcn_block` here is D_in^{-1/2} A D_out^{-1/2}, as `gcn_full_ht`.

    Returns:
        (n, r); reverse-mode derivatives only (`jax.grad`, `jax.vjp`).

    Raises:
        ValueError: naming the argument.

    Source: [liu2026full], docs/fanout.md#fan-out-estimator.

    """
    layout, features = _checked(graph, features, kind)
    return _aggregate_full(layout, features, kind=kind)


def sampled_block(
    layout: Layout,
    nodes: Int[Array, " rows"],
    index: Int[Array, "rows fan_out"],
    mask: Bool[Array, "rows fan_out"],
) -> SampledBlock:
    """Block whose senders are all n nodes."""
    return SampledBlock(
        own=nodes,
        index=index,
        mask=mask,
        in_degrees=rows_of(jnp.asarray(layout.in_degrees), nodes),
        out_degrees=rows_of(jnp.asarray(layout.out_degrees), index),
    )


@partial(jax.jit, static_argnames="kind")
def _aggregate(
    layout: Layout, nodes: Array, index: Array, mask: Array, features: Array, *, kind: str
) -> Array:
    at_once = index.size * features.shape[1] <= _GATHERED
    return sampled_block(layout, nodes, index, mask).aggregate(features, kind, at_once=at_once)


@partial(jax.jit, static_argnames="kind")
def _aggregate_full(layout: Layout, features: Array, *, kind: str) -> Array:
    return FullBlock(layout).aggregate(features, kind)


def _inverse_root(counts: Any, dtype: Any) -> Array:
    """1/√count, and 0 for a count of 0."""
    counts = jnp.asarray(counts).astype(dtype)
    return jnp.where(counts > 0, 1 / jnp.sqrt(jnp.maximum(counts, 1)), jnp.zeros_like(counts))


def _softmax(
    scores: Float[Array, "rows width heads"], used: Bool[Array, "rows width"]
) -> Float[Array, "rows width heads"]:
    """Softmax over the slots that are used; 0 elsewhere, and in rows that use none."""
    used = used[:, :, None]
    lowest = jnp.full_like(scores, jnp.finfo(scores.dtype).min)
    scores = jnp.where(used, scores, lowest)
    largest = jnp.max(scores, axis=1, keepdims=True, initial=jnp.finfo(scores.dtype).min)
    shifted = jnp.where(used, scores - jax.lax.stop_gradient(largest), jnp.zeros_like(scores))
    powers = jnp.where(used, jnp.exp(shifted), jnp.zeros_like(scores))
    total = powers.sum(axis=1, keepdims=True)
    return powers / jnp.where(total > 0, total, jnp.ones_like(total))


def _checked(graph: Any, features: Any, kind: str) -> tuple[Layout, Array]:
    layout = graph_layout(graph)
    check_choice("kind", kind, KINDS)
    return layout, check_features(features, layout.in_degrees.shape[0])


def check_features(features: Any, num_nodes: int) -> Array:
    """Features (n, r) as a JAX array, or the error that names them."""
    check_shape("features", features, (num_nodes, None), "one row a node")
    check_number("features", features)
    array = features if is_traced(features) else np.asarray(features)
    dtype = jax.dtypes.canonicalize_dtype(array.dtype)  # float32 for float64 where x64 is off
    if dtype not in (jnp.float32, jnp.float64):
        raise fail("features", f"values of type {dtype}", "float32 or float64")
    check_range_of("features", array, dtype)
    return jnp.asarray(features)


def node_ids(name: str, value: Any, shape: tuple[int | None, ...], largest: int) -> Array:
    """Array of node ids from 0 to `largest`; lengths that are `None` may be 0."""
    try:
        got = np.shape(value)
    except ValueError as error:
        raise fail(name, "a list that is no array (uneven lengths?)", "node ids") from error
    if len(got) != len(shape) or any(s not in (None, g) for g, s in zip(got, shape, strict=True)):
        wanted = ", ".join("any" if s is None else str(s) for s in shape)
        raise fail(name, f"shape {got}", f"shape ({wanted}) of node ids")
    array = value if is_traced(value) else np.asarray(value)
    if array.size == 0:
        return jnp.zeros(got, jnp.int32)
    if not np.issubdtype(array.dtype, np.integer):
        raise fail(name, f"values of type {array.dtype}", "integers")
    if not is_traced(array) and (array.min() < 0 or array.max() > largest):
        outside = array[(array < 0) | (array > largest)].flat[0]
        raise fail(name, int(outside), f"node ids from 0 to {largest}")
    return jnp.asarray(array).astype(jnp.int32)
