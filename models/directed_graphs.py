"""`DirectedGraph`, the directed sibling of `Graph`: N(i) are the senders of the edges into i.

Neighbour tables with in-neighbours chosen at will (a fixed mix of classes, nearest neighbours) are
directed: that j is a neighbour of i says nothing about i being one of j.
"""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from boundlab.checks import check_integer, fail
from boundlab.models.graph_types import (
    MOST_NODES,
    SimpleGraph,
    check_integers,
    checked_pairs,
    distinct_pairs,
)
from boundlab.typing import Count


@dataclasses.dataclass(frozen=True, eq=False)
class DirectedGraph(SimpleGraph):
    """A simple directed graph (no self-loops, no repeated edges, no weights).

    `pairs` (E, 2) are (sender, receiver); they are checked and kept each once, in lexicographic
    order. i → j and j → i are two edges. All arrays are read-only; node data are as in `Graph`.

    Raises `ValueError` naming the field.
    """

    @staticmethod
    def _kept_pairs(name: str, pairs: Any, num_nodes: int) -> np.ndarray:
        return distinct_pairs(checked_pairs(name, pairs, num_nodes), num_nodes)

    def edges(self) -> Int[np.ndarray, "E 2"]:
        """Edges (E, 2) as (sender, receiver), sorted by sender, then receiver."""
        return self.pairs

    def _directed_edges(self) -> Int[np.ndarray, "2 E"]:
        senders, receivers = self.pairs.T
        order = np.argsort(receivers, kind="stable")  # senders are in order already
        return np.stack([senders[order], receivers[order]])

    def degrees(self) -> Int[np.ndarray, " n"]:
        """In-degree of each node: the number of its neighbours."""
        return np.bincount(self.pairs[:, 1], minlength=self.num_nodes)

    def out_degrees(self) -> Int[np.ndarray, " n"]:
        """Out-degree of each node."""
        return np.bincount(self.pairs[:, 0], minlength=self.num_nodes)

    def adjacency(self) -> Float[np.ndarray, "n n"]:
        """Dense matrix A (n, n), float64: A_ij = 1 for an edge j → i, so that row i sums over N(i)."""
        matrix = np.zeros((self.num_nodes, self.num_nodes))
        matrix[self.pairs[:, 1], self.pairs[:, 0]] = 1.0
        return matrix

    def to_networkx(self) -> Any:
        """`networkx.DiGraph` on the nodes 0 … n − 1, without node data."""
        import networkx

        graph = networkx.DiGraph()
        graph.add_nodes_from(range(self.num_nodes))
        graph.add_edges_from(self.pairs.tolist())
        return graph


def from_directed_edges(senders: Any, receivers: Any, num_nodes: Count) -> DirectedGraph:
    """Directed graph on `num_nodes` nodes with an edge from each sender to its receiver.

    Repeated edges count once; an edge and its reverse are two.

    Raises `ValueError` naming `senders` or `receivers` for lists of other things than nodes, and
    `receivers` for another length than `senders` or a self-loop.
    """
    n = check_integer("num_nodes", num_nodes, 1, MOST_NODES)
    senders = check_integers("senders", senders, 0, n - 1)
    receivers = check_integers("receivers", receivers, 0, n - 1)
    if len(senders) != len(receivers):
        raise fail("receivers", f"{len(receivers)} nodes", f"as many as senders, {len(senders)}")
    pairs = np.stack([senders.astype(np.int64), receivers.astype(np.int64)], axis=1)
    return DirectedGraph(n, DirectedGraph._kept_pairs("receivers", pairs, n))
