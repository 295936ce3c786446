"""Batches of small graphs as dense padded arrays, and random ones drawn at once.

Symbols: B graphs on n places, of which the mask says which are nodes: the first ones of each graph.
Built on the host, pure functions of a key (`random_graphs`).
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from boundlab.checks import check_integer, check_number, check_shape, fail
from boundlab.models.graph_types import Graph, check_integers
from boundlab.models.random_graphs import generator
from boundlab.precision import is_traced
from boundlab.typing import Count, Numbers


class GraphBatch(NamedTuple):
    """Graphs padded to the same number of places."""

    adjacency: Float[np.ndarray, "B n n"]
    """Of 0 and 1, symmetric, zero diagonal, zero where no node is."""
    mask: Bool[np.ndarray, "B n"]
    """True for nodes."""
    features: Float[np.ndarray, "B n p"] | None = None
    """Zero where no node is; `None` unless all graphs have some."""


def pad_graphs(graphs: Any, num_places: Count | None = None) -> GraphBatch:
    """Batch of `Graph`s, each on its first places, with features where all graphs have them.

    `num_places` n defaults to the largest number of nodes. Raises `ValueError` naming the argument,
    `graphs` also when the widths of their features differ.
    """
    graphs = list(graphs) if isinstance(graphs, Iterable) else [graphs]
    wrong = [graph for graph in graphs if not isinstance(graph, Graph)]
    if wrong or not graphs:
        got = f"a {type(wrong[0]).__name__} among them" if wrong else "none"
        raise fail("graphs", got, "a sequence of Graph, at least one")
    sizes = np.array([graph.num_nodes for graph in graphs])
    most = int(sizes.max())
    n = most if num_places is None else check_integer("num_places", num_places, most)
    adjacency = np.zeros((len(graphs), n, n))
    for row, graph in zip(adjacency, graphs, strict=True):
        row[: graph.num_nodes, : graph.num_nodes] = graph.adjacency()
    mask = _first_places(sizes, n)
    found = [graph.features for graph in graphs]
    kept = [features for features in found if features is not None]
    if len(kept) < len(graphs):
        return GraphBatch(adjacency, mask)
    widths = {features.shape[1] for features in kept}
    if len(widths) > 1:
        raise fail("graphs", f"features of widths {sorted(widths)}", "one width")
    features = np.zeros((*mask.shape, widths.pop()), kept[0].dtype)
    features[mask] = np.concatenate(kept)
    return GraphBatch(adjacency, mask, features)


def erdos_renyi(
    key: Any, num_nodes: Any, probability: Numbers, num_places: Count | None = None
) -> GraphBatch:
    """Graphs in which all pairs of nodes are joined with one probability, independently.

    Args:
        key: One key, concrete.
        num_nodes: (B,) nodes of each graph, at least one.
        probability: One for all graphs, or (B,) one each; in [0, 1].
        num_places: n, by default the largest number of nodes.

    Raises:
        ValueError: naming the argument.

    """
    sizes, n = _sizes(num_nodes, num_places)
    p = _concrete("probability", probability)
    if p.shape not in ((), sizes.shape):
        raise fail("probability", f"shape {p.shape}", f"one number, or {len(sizes)}")
    joined = np.broadcast_to(p, sizes.shape)[:, None, None]
    mask = _first_places(sizes, n)
    return GraphBatch(_drawn(generator(key), joined, mask), mask)


def block_graphs(
    key: Any, block_sizes: Any, probabilities: Numbers, num_places: Count | None = None
) -> GraphBatch:
    """Graphs of a stochastic block model: nodes of blocks k, l are joined with probability P[k, l].

    Args:
        key: One key, concrete.
        block_sizes: (B, K) nodes of each block of each graph; a block may be empty, a graph not.
        probabilities: P (K, K), symmetric, in [0, 1].
        num_places: n, by default the largest number of nodes.

    Returns:
        The batch; nodes stand in the order of their blocks.

    Raises:
        ValueError: naming the argument.

    """
    p = _concrete("probabilities", probabilities)
    check_shape("probabilities", p, (None, None))
    if p.shape[0] != p.shape[1] or not np.array_equal(p, p.T):
        raise fail("probabilities", f"shape {p.shape}, not symmetric", "a symmetric matrix (K, K)")
    check_shape("block_sizes", block_sizes, (None, len(p)), "one row a graph, one column a block")
    blocks = check_integers("block_sizes", np.asarray(block_sizes).ravel(), 0, None)
    blocks = blocks.reshape(-1, len(p))
    sizes, n = _sizes(blocks.sum(axis=1), num_places, "block_sizes")
    ends = np.cumsum(blocks, axis=1)
    label = (np.arange(n)[None, :, None] >= ends[:, None, :]).sum(axis=2)
    label = np.minimum(label, len(p) - 1)  # of places without a node: any
    mask = _first_places(sizes, n)
    joined = p[label[:, :, None], label[:, None, :]]
    return GraphBatch(_drawn(generator(key), joined, mask), mask)


def _concrete(name: str, value: Any) -> Float[np.ndarray, "..."]:
    if is_traced(value):
        raise fail(name, "traced values", "concrete numbers: build graphs outside jit")
    check_number(name, value, 0, 1)
    return np.asarray(value, np.float64)


def _sizes(
    num_nodes: Any, num_places: Count | None, name: str = "num_nodes"
) -> tuple[Int[np.ndarray, " B"], int]:
    if is_traced(num_nodes):
        raise fail(name, "traced values", "concrete integers: build graphs outside jit")
    sizes = check_integers(name, num_nodes, 1, None)
    if len(sizes) == 0:
        raise fail(name, "none", "the size of at least one graph")
    most = int(sizes.max())
    return sizes, most if num_places is None else check_integer("num_places", num_places, most)


def _first_places(sizes: Int[np.ndarray, " B"], n: int) -> Bool[np.ndarray, "B n"]:
    return np.arange(n)[None, :] < sizes[:, None]


def _drawn(
    rng: np.random.Generator, probability: np.ndarray, mask: Bool[np.ndarray, "B n"]
) -> Float[np.ndarray, "B n n"]:
    """Independent edges between nodes, one draw a pair."""
    n = mask.shape[1]
    upper = np.triu(rng.random((len(mask), n, n)) < probability, 1)
    upper &= mask[:, :, None] & mask[:, None, :]
    return (upper | np.swapaxes(upper, 1, 2)).astype(np.float64)
