"""A graph as the closed forms of this study read it, and the checks of arguments they share.

Any graph will do that has `num_nodes` and `to_edge_index()`, senders above receivers, sorted by
receiver. Symbols: N(i) = the senders of the edges into node i, d_i = |N(i)|, and "rows" = the nodes
over which a result and its averages run.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csr_array

from boundlab.checks import check_integer, check_number, check_shape, fail
from boundlab.precision import is_traced
from boundlab.typing import Count, Numbers

CHUNK = 2**22
"""Numbers that one piece of edges × features may hold: 32 MB."""


class Rows(NamedTuple):
    """The neighbours of some nodes, edge by edge.

    Edge e goes from node `senders[e]` into row `row[e]`, that is into node `nodes[row[e]]`; the
    edges of one row are contiguous, start at `start[row]`, and rows come in the order of `nodes`.
    """

    num_nodes: int
    nodes: Int[np.ndarray, " rows"]
    degrees: Int[np.ndarray, " rows"]
    start: Int[np.ndarray, " rows_and_one"]
    senders: Int[np.ndarray, " edges"]
    row: Int[np.ndarray, " edges"]

    def matrix(self, values: Float[np.ndarray, " edges"] | None = None) -> csr_array:
        """Sparse (rows, num_nodes) matrix with one value an edge, 1 if none are given."""
        data = np.ones(len(self.senders)) if values is None else values
        shape = (len(self.nodes), self.num_nodes)
        return csr_array((data, self.senders, self.start), shape=shape)

    def mean(self, values: Float[np.ndarray, "n c"]) -> Float[np.ndarray, "rows c"]:
        """Mean of a node quantity over the neighbours of each row; 0 where there are none."""
        total = self.matrix() @ values
        total /= np.maximum(self.degrees, 1)[:, None]
        return total

    def sum(self, values: Float[np.ndarray, "edges *c"]) -> Float[np.ndarray, "rows *c"]:
        """Sum of an edge quantity over the edges of each row."""
        total = np.zeros((len(self.nodes), *values.shape[1:]))
        filled = np.flatnonzero(self.degrees)  # reduceat would read past an empty row
        if len(filled):
            total[filled] = np.add.reduceat(values, self.start[filled], axis=0)
        return total

    def kept(self, chosen: Any) -> "Rows":
        """The rows at the positions `chosen` (integers or a mask), in that order."""
        positions = np.arange(len(self.nodes))[chosen]
        degrees = self.degrees[positions]
        start = np.concatenate([[0], np.cumsum(degrees)])
        row = np.repeat(np.arange(len(positions)), degrees)
        edge = np.arange(len(row)) - start[row] + self.start[positions][row]
        return Rows(self.num_nodes, self.nodes[positions], degrees, start, self.senders[edge], row)

    def pieces(self, width: int) -> Iterator[tuple[slice, "Rows"]]:
        """Consecutive rows, with about `CHUNK` numbers when each edge and row carries `width`."""
        cost = (np.arange(1, len(self.nodes) + 1) + self.start[1:]) * width
        cuts = np.flatnonzero(np.diff(cost // CHUNK)) + 1
        for low, high in zip([0, *cuts], [*cuts, len(self.nodes)], strict=True):
            yield slice(int(low), int(high)), self.kept(slice(int(low), int(high)))


def rows(graph: Any, nodes: Any = None) -> Rows:
    """Neighbours of `nodes`, checked; of all nodes by default."""
    if not (hasattr(graph, "num_nodes") and hasattr(graph, "to_edge_index")):
        accepted = "a Graph or DirectedGraph of boundlab.models.graphs"
        raise fail("graph", f"a {type(graph).__name__}", accepted)
    n = int(graph.num_nodes)
    senders, receivers = np.asarray(graph.to_edge_index())
    degrees = np.bincount(receivers, minlength=n)
    start = np.concatenate([[0], np.cumsum(degrees)])
    everything = Rows(n, np.arange(n), degrees, start, senders, receivers)
    return everything if nodes is None else everything.kept(node_list("nodes", nodes, n))


def rows_of(graph: Any, nodes: Any, name: str) -> Rows:
    """Neighbours of `nodes`, called `name` in errors; they have no default."""
    everything = rows(graph)
    return everything.kept(node_list(name, nodes, everything.num_nodes))


def node_list(name: str, nodes: Any, num_nodes: int) -> Int[np.ndarray, " rows"]:
    """Distinct nodes of a graph, at least one, as an integer array in the order given."""
    accepted = f"a list of distinct nodes from 0 to {num_nodes - 1}, at least one"
    if is_traced(nodes):
        raise fail(name, "traced values", accepted)
    try:
        array = np.asarray(nodes)
    except (TypeError, ValueError) as error:
        raise fail(name, f"a {type(nodes).__name__} of something else", accepted) from error
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise fail(name, f"{array.dtype} of shape {array.shape}", accepted)
    outside = (array < 0) | (array >= num_nodes)
    if outside.any():
        raise fail(name, array[outside][0], accepted)
    values, counts = np.unique(array, return_counts=True)
    if (counts > 1).any():
        raise fail(name, f"node {values[counts > 1][0]} more than once", accepted)
    return array.astype(np.int64)


def fan_out_of(fan_out: Count) -> int:
    """A concrete fan-out β ≥ 1."""
    return check_integer("fan_out", fan_out, 1, why="neighbours sampled a node")


def batch_size_of(batch_size: Count, num_rows: int) -> int:
    """A concrete batch size b, from 1 to the number of nodes that it is drawn from."""
    why = "the number of nodes a batch is drawn from"
    return check_integer("batch_size", batch_size, 1, num_rows, why=why)


def features_of(features: Numbers, num_nodes: int) -> Float[np.ndarray, "n r"]:
    """Finite node features, one row a node, in float64."""
    if is_traced(features):
        raise fail("features", "traced values", "a concrete array")
    check_shape("features", features, (num_nodes, None), "one row a node")
    check_number("features", features)
    return np.asarray(features, dtype=np.float64)


def targets_of(targets: Numbers, over: Rows) -> Float[np.ndarray, "rows outputs"]:
    """Finite targets of the rows `over`; (n, K) are given, other nodes' entries are not read."""
    if is_traced(targets):
        raise fail("targets", "traced values", "a concrete array")
    check_shape("targets", targets, (over.num_nodes, None), "one row a node")
    chosen = np.asarray(targets)[over.nodes]
    check_number("targets", chosen)
    return chosen.astype(np.float64)


def weights_of(weights: Numbers, outputs: int, num_features: int) -> Float[np.ndarray, "outputs r"]:
    """A finite weight matrix W (K, r) in float64."""
    if is_traced(weights):
        raise fail("weights", "traced values", "a concrete array")
    check_shape("weights", weights, (outputs, num_features), "(outputs, features)")
    check_number("weights", weights)
    return np.asarray(weights, dtype=np.float64)
