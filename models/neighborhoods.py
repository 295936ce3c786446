"""In-neighbour lists of a graph: what samplers read.

Compressed sparse rows: the in-neighbours of node i are indices[indptr[i]:indptr[i + 1]], in
increasing order. The arrays are arguments of a program, not constants in it, so that one compiled
program serves every graph of the same size.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from boundlab.checks import fail
from boundlab.models.graph_types import check_integers
from boundlab.precision import is_traced


class Neighborhoods(NamedTuple):
    """In-neighbour lists, int32: `indptr` (n + 1,) and `indices` (E,), sorted within each node."""

    indptr: Int[jax.Array | np.ndarray, " n_plus_1"]
    indices: Int[jax.Array | np.ndarray, " E"]

    @property
    def num_nodes(self) -> int:
        """Number of nodes n."""
        return int(self.indptr.shape[0]) - 1

    def degrees(self) -> Int[jax.Array | np.ndarray, " n"]:
        """In-degree of each node."""
        return self.indptr[1:] - self.indptr[:-1]


def neighborhoods(graph: Any) -> Neighborhoods:
    """In-neighbour lists of a `Graph` (its neighbours) or a `DirectedGraph` (senders of the edges in).

    They are kept on the graph object, so that only the first call builds them; `Neighborhoods`
    themselves, also traced ones, are returned as they are.

    Raises `ValueError` naming `graph` for anything else.
    """
    if isinstance(graph, Neighborhoods):
        return graph
    if not hasattr(graph, "to_edge_index") or not hasattr(graph, "degrees"):
        raise fail("graph", f"a {type(graph).__name__}", "a Graph, DirectedGraph or Neighborhoods")
    kept = graph.__dict__.get("_neighborhoods")
    if kept is None:
        indptr = np.concatenate([[0], np.cumsum(graph.degrees())])
        if indptr[-1] >= 2**31:
            raise fail("graph", f"{indptr[-1]} edges", "fewer than 2³¹ directed edges")
        senders = graph.to_edge_index()[0]
        # NumPy arrays: JAX's would belong to the trace or the mesh in which they were made.
        kept = Neighborhoods(np.asarray(indptr, np.int32), np.asarray(senders, np.int32))
        graph.__dict__["_neighborhoods"] = kept  # as cached_property does: the graph is frozen
    return kept


def node_ids(name: str, nodes: Any, last: int | None) -> Int[jax.Array, " rows"]:
    """`nodes` as int32, refused unless they are one axis of integers in 0 … last."""
    if is_traced(nodes):
        if not hasattr(nodes, "dtype"):
            raise fail(name, "a list of traced values", "one array of integers")
        if nodes.ndim != 1 or not jnp.issubdtype(nodes.dtype, jnp.integer):
            raise fail(name, f"{nodes.dtype} of shape {nodes.shape}", "integers, shape (any,)")
    else:
        nodes = check_integers(name, nodes, 0, 2**31 - 1 if last is None else last)
    return jnp.asarray(nodes, dtype=jnp.int32)
