"""The `Graph` that every study shares, and its conversions from and to other representations.

A graph is host data (NumPy): it is built once, outside any `jit`, and handed to JAX as a matrix, a
padded neighbour table or an edge list. Symbols: n nodes, E edges (unordered pairs), A the (n, n)
adjacency matrix, d_v = Σ_u A_vu the degrees.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from boundlab.checks import check_integer, check_number, check_shape, fail
from boundlab.typing import Count

# Node ids are int32 in the samplers.
MOST_NODES = 2**31 - 1


class NeighborTable(NamedTuple):
    """Neighbours of each node, padded to the largest degree.

    Row v of `index` lists v's neighbours in increasing order and then v itself as padding; `mask`
    is true on neighbours.
    """

    index: Int[np.ndarray, "n max_degree"]  # type: ignore[assignment]  # hides tuple.index
    mask: Bool[np.ndarray, "n max_degree"]


@dataclasses.dataclass(frozen=True, eq=False)
class SimpleGraph:
    """What `Graph` and `DirectedGraph` share: edges without loops or repeats, and node data."""

    num_nodes: int
    pairs: Int[np.ndarray, "E 2"]
    features: Float[np.ndarray, "n p"] | None = None
    labels: Int[np.ndarray, " n"] | None = None
    class_names: tuple[str, ...] = ()
    splits: Mapping[str, Int[np.ndarray, " _"]] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        n = check_integer("num_nodes", self.num_nodes, 1, MOST_NODES)
        fields: dict[str, Any] = {"num_nodes": n, "pairs": self._kept_pairs("pairs", self.pairs, n)}
        if self.features is not None:
            check_shape("features", self.features, (n, None), "one row a node")
            check_number("features", self.features)
            fields["features"] = read_only(np.asarray(self.features))
        if self.labels is not None:
            check_shape("labels", self.labels, (n,), "one entry a node")
            fields["labels"] = read_only(check_integers("labels", self.labels, -1, None))
        if not isinstance(self.splits, Mapping):
            raise fail("splits", f"a {type(self.splits).__name__}", "a mapping of names to nodes")
        fields["splits"] = {
            name: read_only(check_integers(f"splits[{name!r}]", nodes, 0, n - 1))
            for name, nodes in self.splits.items()
        }
        if not isinstance(self.class_names, tuple | list):
            raise fail("class_names", f"a {type(self.class_names).__name__}", "a tuple of names")
        fields["class_names"] = tuple(self.class_names)
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @staticmethod
    def _kept_pairs(name: str, pairs: Any, num_nodes: int) -> np.ndarray:
        raise NotImplementedError

    def _directed_edges(self) -> Int[np.ndarray, "2 edges"]:
        raise NotImplementedError

    @functools.cached_property
    def _edge_index(self) -> Int[np.ndarray, "2 edges"]:
        return read_only(self._directed_edges())

    def to_edge_index(self) -> Int[np.ndarray, "2 edges"]:
        """Directed edges (2, edges), as PyTorch Geometric's `edge_index`; read-only.

        Row 0 holds the senders, row 1 the receivers (of an undirected graph both directions of each
        edge); sorted by receiver, then sender, so that messages to one node are contiguous.
        """
        return self._edge_index

    @property
    def num_edges(self) -> int:
        """Number of edges E, each pair counted once."""
        return len(self.pairs)

    def degrees(self) -> Int[np.ndarray, " n"]:
        """Number of neighbours of each node: of nodes that send to it."""
        return np.bincount(self.to_edge_index()[1], minlength=self.num_nodes)

    def out_degrees(self) -> Int[np.ndarray, " n"]:
        """Number of nodes that each node sends to; the degree, in an undirected graph."""
        return np.bincount(self.to_edge_index()[0], minlength=self.num_nodes)

    def neighbor_table(self) -> NeighborTable:
        """Neighbours of each node as a padded table (n, max degree)."""
        senders, receivers = self.to_edge_index()
        degrees = np.bincount(receivers, minlength=self.num_nodes)
        index = np.tile(np.arange(self.num_nodes)[:, None], (1, degrees.max(initial=0)))
        slot = np.arange(len(receivers)) - np.repeat(np.cumsum(degrees) - degrees, degrees)
        index[receivers, slot] = senders
        return NeighborTable(index, np.arange(index.shape[1]) < degrees[:, None])

    def to_graphs_tuple(self) -> Any:
        """`jraph.GraphsTuple` of this one graph, with the edges of `to_edge_index`.

        `nodes` are the features (or `None`); edges carry no features and are sorted by receiver.
        """
        import jraph

        senders, receivers = self.to_edge_index().astype(np.int32)
        return jraph.GraphsTuple(
            nodes=self.features,
            edges=None,
            senders=senders,
            receivers=receivers,
            globals=None,
            n_node=np.array([self.num_nodes], np.int32),
            n_edge=np.array([len(senders)], np.int32),
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Graph(SimpleGraph):
    """A simple undirected graph (no self-loops, no repeated edges, no weights).

    `pairs` (E, 2) may be given as in `from_edges`; it is checked and kept with each edge once,
    first < second, in lexicographic order. All arrays are read-only.

    Optional node data: `features` (n, p), `labels` (n,) with −1 for unlabelled, `class_names`, and
    `splits`, a mapping from a split's name to its node indices.

    Raises `ValueError` naming the field.
    """

    @staticmethod
    def _kept_pairs(name: str, pairs: Any, num_nodes: int) -> np.ndarray:
        ordered = checked_pairs(name, pairs, num_nodes)
        return distinct_pairs(np.sort(ordered, axis=1), num_nodes)

    def edges(self) -> Int[np.ndarray, "E 2"]:
        """Edges (E, 2): each pair once, first < second, sorted."""
        return self.pairs

    def _directed_edges(self) -> Int[np.ndarray, "2 two_E"]:
        sources = np.concatenate([self.pairs[:, 0], self.pairs[:, 1]])
        targets = np.concatenate([self.pairs[:, 1], self.pairs[:, 0]])
        order = np.lexsort((sources, targets))
        return np.stack([sources[order], targets[order]])

    def adjacency(self) -> Float[np.ndarray, "n n"]:
        """Dense adjacency matrix A (n, n) of 0 and 1, float64, zero diagonal."""
        matrix = np.zeros((self.num_nodes, self.num_nodes))
        matrix[self.pairs[:, 0], self.pairs[:, 1]] = 1.0
        matrix[self.pairs[:, 1], self.pairs[:, 0]] = 1.0
        return matrix

    def degrees(self) -> Int[np.ndarray, " n"]:
        """Number of neighbours of each node."""
        return np.bincount(self.pairs.reshape(-1), minlength=self.num_nodes)

    def out_degrees(self) -> Int[np.ndarray, " n"]:
        """Number of neighbours of each node."""
        return self.degrees()

    def is_connected(self) -> bool:
        """Whether every node can be reached from every other; a single node is connected."""
        return bool(connected_components(self._sparse(), directed=False)[0] == 1)

    def to_networkx(self) -> Any:
        """`networkx.Graph` on the nodes 0 … n − 1, without node data."""
        import networkx

        graph = networkx.Graph()
        graph.add_nodes_from(range(self.num_nodes))
        graph.add_edges_from(self.pairs.tolist())
        return graph

    def induced(self, nodes: Any) -> "Graph":
        """Subgraph on `nodes` (distinct), renumbered 0, 1, … in the order given.

        Features, labels and splits follow their nodes; a split loses the nodes that are not kept.
        """
        nodes = check_integers("nodes", nodes, 0, self.num_nodes - 1)
        if len(np.unique(nodes)) != len(nodes):
            raise fail("nodes", nodes, "distinct nodes")
        if len(nodes) == 0:
            raise fail("nodes", "none", "at least one node")
        new = np.full(self.num_nodes, -1)
        new[nodes] = np.arange(len(nodes))
        kept = new[self.pairs]
        piece = from_edges(kept[(kept >= 0).all(axis=1)], len(nodes))
        splits = {name: new[index] for name, index in self.splits.items()}
        return dataclasses.replace(
            piece,
            features=None if self.features is None else self.features[nodes],
            labels=None if self.labels is None else self.labels[nodes],
            class_names=self.class_names,
            splits={name: index[index >= 0] for name, index in splits.items()},
        )

    def _sparse(self) -> csr_array:
        sources, targets = self.to_edge_index()
        shape = (self.num_nodes, self.num_nodes)
        return csr_array(coo_array((np.ones(len(sources), np.int8), (sources, targets)), shape))


def check_graph(name: str, value: Any) -> None:
    """Refuse anything but a `Graph`."""
    if not isinstance(value, Graph):
        accepted = "a Graph of boundlab.models.graphs (from_edges and from_networkx make one)"
        raise fail(name, f"a {type(value).__name__}", accepted)


def from_edges(edges: Any, num_nodes: Count) -> Graph:
    """Graph on `num_nodes` nodes from a list of pairs (E, 2), in either direction.

    Repeated pairs, reversed ones included, count once.

    Raises `ValueError` naming `edges` for a self-loop, a node outside 0 … num_nodes − 1, or
    anything but pairs of integers.
    """
    n = check_integer("num_nodes", num_nodes, 1, MOST_NODES)
    return Graph(n, Graph._kept_pairs("edges", edges, n))


def from_networkx(g: Any) -> Graph:
    """Graph from an undirected `networkx` graph; node and edge data are dropped.

    Nodes that equal the integers 0 … n − 1 keep their numbers; otherwise nodes are numbered in the
    order of `g.nodes`. Parallel edges count once, self-loops are refused.
    """
    if not all(hasattr(g, name) for name in ("is_directed", "nodes", "edges")):
        raise fail("g", f"a {type(g).__name__}", "an undirected networkx graph")
    if g.is_directed():
        raise fail("g", "a directed graph", "an undirected networkx graph")
    nodes = list(g.nodes)
    if not nodes:
        raise fail("g", "a graph without nodes", "at least one node")
    if set(nodes) == set(range(len(nodes))):  # of whatever type, as NumPy's integers
        nodes = list(range(len(nodes)))
    number = {node: i for i, node in enumerate(nodes)}
    loops = [u for u, v in g.edges() if u == v]
    if loops:
        raise fail("g", f"a self-loop at node {loops[0]!r}", "a graph without self-loops")
    return from_edges([(number[u], number[v]) for u, v in g.edges()], len(nodes))


def largest_component(graph: Any) -> Graph:
    """Connected component with the most nodes, in increasing order of their old numbers.

    Among equally large ones, the one that holds the smallest node. Node data are kept.
    """
    check_graph("graph", graph)
    _, component = connected_components(graph._sparse(), directed=False)
    _, first, sizes = np.unique(component, return_index=True, return_counts=True)
    chosen = component[min(first[sizes == sizes.max()])]
    return graph.induced(np.flatnonzero(component == chosen))


def breadth_first_piece(graph: Any, num_nodes: Count, root: Count = 0) -> Graph:
    """Connected piece: the subgraph on the first `num_nodes` nodes met breadth first from `root`.

    Neighbours are met in increasing order; nodes are renumbered in the order in which they are met,
    so `root` becomes node 0. Node data are kept.

    Raises `ValueError` naming `num_nodes` if the component of `root` is smaller than that.
    """
    check_graph("graph", graph)
    check_integer("root", root, 0, graph.num_nodes - 1)
    order = breadth_first_order(graph._sparse(), root, directed=True, return_predecessors=False)
    check_integer("num_nodes", num_nodes, 1, len(order))
    return graph.induced(order[:num_nodes])


def checked_pairs(name: str, edges: Any, num_nodes: int) -> np.ndarray:
    """Pairs (E, 2) of distinct nodes as int64, or a `ValueError` that names them."""
    accepted = "pairs of integers, shape (any, 2)"
    try:
        pairs = np.asarray(edges if hasattr(edges, "shape") else list(edges))
    except (TypeError, ValueError) as error:
        raise fail(name, f"a {type(edges).__name__} of something else", accepted) from error
    if pairs.shape in ((0,), (0, 2)):  # an empty list has the type of floats
        pairs = np.zeros((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise fail(name, f"{pairs.dtype} of shape {pairs.shape}", accepted)
    outside = (pairs < 0) | (pairs >= num_nodes)
    if outside.any():
        raise fail(name, f"node {pairs[outside][0]}", f"nodes from 0 to {num_nodes - 1}")
    loops = pairs[:, 0] == pairs[:, 1]
    if loops.any():
        raise fail(name, f"a self-loop at node {pairs[loops][0, 0]}", "pairs of distinct nodes")
    return pairs.astype(np.int64)


def distinct_pairs(pairs: np.ndarray, num_nodes: int) -> np.ndarray:
    """Pairs (E, 2), each once, in lexicographic order, read-only."""
    # One number a pair: sorted much faster than rows, in the same order.
    code = np.unique(pairs[:, 0] * num_nodes + pairs[:, 1])
    return read_only(np.stack(np.divmod(code, num_nodes), axis=1))


def check_integers(name: str, value: Any, low: int, high: int | None) -> np.ndarray:
    """`value` as an array (any,) of integers in [low, high]."""
    accepted = f"a list of integers ≥ {low}" + ("" if high is None else f" and ≤ {high}")
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise fail(name, f"a {type(value).__name__} of something else", accepted) from error
    if array.shape == (0,):
        return np.zeros(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise fail(name, f"{array.dtype} of shape {array.shape}", accepted)
    outside = (array < low) if high is None else (array < low) | (array > high)
    if outside.any():
        raise fail(name, array[outside][0], accepted)
    return array


def read_only(array: np.ndarray) -> np.ndarray:
    """`array` as read-only, copied if it is writable: someone else may hold it."""
    if array.flags.writeable:
        array = array.copy()
        array.flags.writeable = False
    return array
