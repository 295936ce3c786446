"""The `Graph` that every study shares, and its conversions from and to other representations.

A graph is host data (NumPy): it is built once, outside any `jit`, and handed to JAX as a matrix, a
padded neighbour table or an edge list. Symbols: n nodes, E edges (unordered pairs), A the (n, n)
adjacency matrix, d_v = Σ_u A_vu the degrees.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from boundlab.checks import check_integer, fail
from boundlab.typing import Count, Numbers


class NeighborTable(NamedTuple):
    """Neighbours of each node, padded to the largest degree.

    Row v of `index` lists v's neighbours in increasing order and then v itself as padding; `mask`
    is true on neighbours.
    """

    index: Int[np.ndarray, "n max_degree"]  # type: ignore[assignment]  # hides tuple.index
    mask: Bool[np.ndarray, "n max_degree"]


@dataclasses.dataclass(frozen=True, eq=False)
class Graph:
    """A simple undirected graph (no self-loops, no repeated edges, no weights).

    Build one with `from_edges`, `from_networkx` or a constructor of `boundlab.models.graphs`: they
    check and sort. `pairs` (E, 2) holds each edge once, first < second, in lexicographic order;
    its arrays are read-only.

    Optional node data: `features` (n, p), `labels` (n,) with −1 for unlabelled, `class_names`, and
    `splits`, a mapping from a split's name to its node indices.
    """

    num_nodes: int
    pairs: Int[np.ndarray, "E 2"]
    features: Float[np.ndarray, "n p"] | None = None
    labels: Int[np.ndarray, " n"] | None = None
    class_names: tuple[str, ...] = ()
    splits: Mapping[str, Int[np.ndarray, " _"]] = dataclasses.field(default_factory=dict)

    @property
    def num_edges(self) -> int:
        """Number of edges E, each pair counted once."""
        return len(self.pairs)

    def edges(self) -> Int[np.ndarray, "E 2"]:
        """Edges (E, 2): each pair once, first < second, sorted."""
        return self.pairs

    def to_edge_index(self) -> Int[np.ndarray, "2 two_E"]:
        """Both directions of each edge, (2, 2E), as PyTorch Geometric's `edge_index`.

        Row 0 holds the sources, row 1 the targets; sorted by target, then source, so that messages
        to one node are contiguous.
        """
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

    def neighbor_table(self) -> NeighborTable:
        """Neighbours of each node as a padded table (n, max degree)."""
        degrees = self.degrees()
        sources, targets = self.to_edge_index()
        index = np.tile(np.arange(self.num_nodes)[:, None], (1, degrees.max(initial=0)))
        slot = np.arange(len(targets)) - np.repeat(np.cumsum(degrees) - degrees, degrees)
        index[targets, slot] = sources
        return NeighborTable(index, np.arange(index.shape[1]) < degrees[:, None])

    def is_connected(self) -> bool:
        """Whether every node can be reached from every other; a single node is connected."""
        return bool(connected_components(self._sparse(), directed=False)[0] == 1)

    def to_graphs_tuple(self) -> Any:
        """`jraph.GraphsTuple` of this one graph, with both directions of each edge.

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

    def to_networkx(self) -> Any:
        """`networkx.Graph` on the nodes 0 … n − 1, without node data."""
        import networkx

        graph = networkx.Graph()
        graph.add_nodes_from(range(self.num_nodes))
        graph.add_edges_from(self.pairs.tolist())
        return graph

    def induced(self, nodes: Numbers) -> "Graph":
        """Subgraph on `nodes` (distinct), renumbered 0, 1, … in the order given.

        Features, labels and splits follow their nodes; a split loses the nodes that are not kept.
        """
        nodes = np.asarray(nodes)
        if nodes.ndim != 1 or not np.issubdtype(nodes.dtype, np.integer):
            raise fail("nodes", f"{nodes.dtype} of shape {nodes.shape}", "a list of integers")
        if (
            len(np.unique(nodes)) != len(nodes)
            or not np.isin(nodes, np.arange(self.num_nodes)).all()
        ):
            raise fail("nodes", nodes, f"distinct nodes among the {self.num_nodes}")
        if len(nodes) == 0:
            raise fail("nodes", "none", "at least one node")
        new = np.full(self.num_nodes, -1)
        new[nodes] = np.arange(len(nodes))
        kept = new[self.pairs]
        piece = from_edges(kept[(kept >= 0).all(axis=1)], len(nodes))
        splits = {name: new[index] for name, index in self.splits.items()}
        return dataclasses.replace(
            piece,
            features=None if self.features is None else _frozen(self.features[nodes]),
            labels=None if self.labels is None else _frozen(self.labels[nodes]),
            class_names=self.class_names,
            splits={name: _frozen(index[index >= 0]) for name, index in splits.items()},
        )

    def _sparse(self) -> csr_array:
        sources, targets = self.to_edge_index()
        shape = (self.num_nodes, self.num_nodes)
        return csr_array(coo_array((np.ones(len(sources), np.int8), (sources, targets)), shape))


def from_edges(edges: Iterable[Any], num_nodes: Count) -> Graph:
    """Graph on `num_nodes` nodes from a list of pairs (E, 2), in either direction.

    Repeated pairs, reversed ones included, count once.

    Raises `ValueError` naming `edges` for a self-loop, a node outside 0 … num_nodes − 1, or
    anything but pairs of integers.
    """
    check_integer("num_nodes", num_nodes, 1)
    pairs = np.asarray(edges if hasattr(edges, "shape") else list(edges))
    if pairs.size == 0:
        pairs = np.zeros((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        got = f"{pairs.dtype} of shape {pairs.shape}"
        raise fail("edges", got, "pairs of integers, shape (any, 2)")
    outside = (pairs < 0) | (pairs >= num_nodes)
    if outside.any():
        raise fail("edges", f"node {pairs[outside][0]}", f"nodes from 0 to {num_nodes - 1}")
    loops = pairs[:, 0] == pairs[:, 1]
    if loops.any():
        raise fail("edges", f"a self-loop at node {pairs[loops][0, 0]}", "pairs of distinct nodes")
    pairs = np.unique(np.sort(pairs.astype(np.int64), axis=1), axis=0)
    return Graph(int(num_nodes), _frozen(pairs))


def from_networkx(g: Any) -> Graph:
    """Graph from an undirected `networkx` graph; node and edge data are dropped.

    Nodes that are exactly the integers 0 … n − 1 keep their numbers; otherwise nodes are numbered
    in the order of `g.nodes`. Parallel edges count once, self-loops are refused.
    """
    if g.is_directed():
        raise fail("g", "a directed graph", "an undirected networkx graph")
    nodes = list(g.nodes)
    if not nodes:
        raise fail("g", "a graph without nodes", "at least one node")
    if all(isinstance(v, int) for v in nodes) and set(nodes) == set(range(len(nodes))):
        nodes = list(range(len(nodes)))
    number = {node: i for i, node in enumerate(nodes)}
    loops = [u for u, v in g.edges() if u == v]
    if loops:
        raise fail("g", f"a self-loop at node {loops[0]!r}", "a graph without self-loops")
    return from_edges([(number[u], number[v]) for u, v in g.edges()], len(nodes))


def largest_component(graph: Graph) -> Graph:
    """Connected component with the most nodes, in increasing order of their old numbers.

    Among equally large ones, the one that holds the smallest node. Node data are kept.
    """
    _, component = connected_components(graph._sparse(), directed=False)
    _, first, sizes = np.unique(component, return_index=True, return_counts=True)
    chosen = component[min(first[sizes == sizes.max()])]
    return graph.induced(np.flatnonzero(component == chosen))


def breadth_first_piece(graph: Graph, num_nodes: Count, root: Count = 0) -> Graph:
    """Connected piece: the subgraph on the first `num_nodes` nodes met breadth first from `root`.

    Neighbours are met in increasing order; nodes are renumbered in the order in which they are met,
    so `root` becomes node 0. Node data are kept.

    Raises `ValueError` naming `num_nodes` if the component of `root` is smaller than that.
    """
    check_integer("root", root, 0, graph.num_nodes - 1)
    order = breadth_first_order(graph._sparse(), root, directed=True, return_predecessors=False)
    check_integer("num_nodes", num_nodes, 1, len(order))
    return graph.induced(order[:num_nodes])


def _frozen(array: np.ndarray) -> np.ndarray:
    """`array` as read-only, copied if it is a view of writable data."""
    array = np.array(array) if array.base is not None else array
    array.flags.writeable = False
    return array
