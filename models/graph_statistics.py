"""Four statistics of small graphs by which generated graphs are held against others.

Symbols: m graphs on n places, of which the mask says which are nodes; d degrees, t triangles at a
node. Histograms have mass 1; their conventions are those of the benchmarks of graph generation
(GDSS [jo2022score], EDP-GNN [niu2020permutation]).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from boundlab.checks import check_number, check_shape, fail
from boundlab.models.graph_orbits import orbit_counts
from boundlab.precision import is_traced, one_blas_thread, x64

CLUSTERING_EDGES = np.linspace(0.0, 1.0, 101)
# Begins just below 0, so that eigenvalues that are 0 to rounding share a bin.
SPECTRUM_EDGES = np.linspace(-1e-5, 2.0, 201)


class GraphStatistics(NamedTuple):
    """One row a graph."""

    degree: Float[Array, "m n"]
    """Share of the nodes with 0, 1, …, n − 1 neighbours."""
    clustering: Float[Array, "m 100"]
    """Share of the nodes whose clustering coefficient lies in each of 100 bins of [0, 1]."""
    orbits: Float[Array, "m 15"]
    """Mean over nodes of the counts of `orbit_counts`."""
    spectrum: Float[Array, "m 200"]
    """Share of the eigenvalues of the normalised Laplacian in each of 200 bins of (−1e−5, 2)."""


def graph_statistics(adjacency: Any, mask: Any = None) -> GraphStatistics:
    """Degrees, clustering, four-node orbits and Laplacian spectrum of each graph of a batch.

    The clustering coefficient of a node is 2t/(d(d − 1)), 0 where d < 2; the Laplacian is
    I − D^{−½}AD^{−½} with a zero row for an isolated node, whose eigenvalue is then 0. Bins hold
    their lower edge, the last one its upper edge too; eigenvalues that rounding puts outside of
    [0, 2] count in the first or last bin. Renumbering the nodes changes nothing.

    Args:
        adjacency: A (m, n, n) of 0 and 1, symmetric, zero diagonal, of any real type or bool. What
            stands in rows and columns of places without a node is ignored, NaN included. May be
            traced; then its entries aren't checked.
        mask: (m, n) bool, true for nodes, in any places; every graph needs one node. All by
            default.

    Returns:
        The four statistics; float64, or as in the surrounding trace. Only `degree` has a width that
        depends on n: padding adds zeros at its end and changes nothing else.

    Raises:
        ValueError: naming the argument.

    Source: [niu2020permutation], [jo2022score], as in their evaluation code.

    """
    check_shape("adjacency", adjacency, (None, None, None), "one matrix a graph")
    m, n, columns = np.shape(adjacency)
    if columns != n:
        raise fail("adjacency", f"shape {(m, n, columns)}", "square matrices")
    nodes: Any = np.ones((m, n), bool) if mask is None else mask
    check_shape("mask", nodes, (m, n), "one entry a place of `adjacency`")
    nodes = nodes if hasattr(nodes, "dtype") else np.asarray(nodes)
    if nodes.dtype.kind != "b":
        raise fail("mask", "entries of another type", "bool, true for nodes")
    if is_traced(adjacency, nodes):
        traced = jnp.asarray(adjacency)
        real = jnp.issubdtype(traced.dtype, jnp.floating)
        return _statistics(traced if real else traced.astype(float), jnp.asarray(nodes))
    known = np.asarray(nodes)
    if not known.any(axis=1).all():
        raise fail("mask", f"no node in graph {int(np.argmin(known.any(axis=1)))}", "at least one")
    matrix = _checked(np.asarray(adjacency), known)
    with x64(), one_blas_thread():
        return jax.block_until_ready(_statistics(matrix, known))


def _checked(adjacency: np.ndarray, nodes: np.ndarray) -> Float[np.ndarray, "m n n"]:
    """Adjacency of the true nodes, zero elsewhere, as float64; refused unless that of graphs."""
    if adjacency.dtype == bool:
        adjacency = adjacency.astype(np.float64)
    both = nodes[:, :, None] & nodes[:, None, :]
    matrix = np.where(both, adjacency, np.zeros((), adjacency.dtype))
    check_number("adjacency", matrix, 0, 1)
    matrix = matrix.astype(np.float64)
    problems = {
        "entries between 0 and 1": (matrix != 0) & (matrix != 1),
        "an edge from a node to itself": matrix * np.eye(matrix.shape[1]) != 0,
        "an edge in one direction only": matrix != np.swapaxes(matrix, 1, 2),
    }
    for got, wrong in problems.items():
        if wrong.any():
            where = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise fail("adjacency", f"{got} at {where}", "0 and 1, symmetric, zero diagonal")
    return matrix


@jax.jit
def _statistics(adjacency: Float[Array, "m n n"], nodes: Bool[Array, "m n"]) -> GraphStatistics:
    n, dtype = adjacency.shape[1], adjacency.dtype
    both = nodes[:, :, None] & nodes[:, None, :]
    matrix = jnp.where(both, adjacency, jnp.zeros((), dtype))
    number = jnp.sum(nodes, axis=1, dtype=dtype)[:, None]
    counts = orbit_counts(matrix)
    degree, triangles = counts[:, :, 0], counts[:, :, 3]
    pairs = degree * (degree - 1)
    coefficient = jnp.where(pairs > 0, 2 * triangles / jnp.where(pairs > 0, pairs, 1), 0)
    # In ascending order the eigenvalues of places without a node come last.
    first = jnp.arange(n, dtype=dtype)[None, :] < number
    eigenvalues = jax.lax.map(jnp.linalg.eigvalsh, _laplacian(matrix, degree, nodes))
    return GraphStatistics(
        degree=_counted(degree.astype(np.int32), nodes, n, dtype) / number,
        clustering=_counted(_bins(coefficient, CLUSTERING_EDGES), nodes, 100, dtype) / number,
        orbits=jnp.sum(counts, axis=1) / number,
        spectrum=_counted(_bins(eigenvalues, SPECTRUM_EDGES), first, 200, dtype) / number,
    )


def _laplacian(
    matrix: Float[Array, "m n n"], degree: Float[Array, "m n"], nodes: Bool[Array, "m n"]
) -> Float[Array, "m n n"]:
    """Normalised Laplacians, with 3 (above every eigenvalue) on the diagonal where no node is."""
    joined = degree > 0
    scale = jnp.where(joined, 1 / jnp.sqrt(jnp.where(joined, degree, 1)), 0)
    diagonal = jnp.where(nodes, joined.astype(matrix.dtype), 3)
    own = diagonal[:, :, None] * jnp.eye(matrix.shape[1], dtype=matrix.dtype)[None]
    return own - matrix * scale[:, :, None] * scale[:, None, :]


def _bins(values: Float[Array, "m n"], edges: Float[np.ndarray, " bins_1"]) -> Int[Array, "m n"]:
    """Number of the bin of each value, those outside in the first or last."""
    place = jnp.searchsorted(jnp.asarray(edges, values.dtype), values.ravel(), side="right") - 1
    return jnp.clip(place, 0, len(edges) - 2).reshape(values.shape).astype(np.int32)


def _counted(
    places: Int[Array, "m n"], kept: Bool[Array, "m n"], bins: int, dtype: Any
) -> Float[Array, "m bins"]:
    """How many of the kept entries of each row stand in each bin: whole numbers, in any order."""
    rows = jnp.arange(len(places), dtype=np.int32)[:, None]
    return jnp.zeros((len(places), bins), dtype).at[rows, places].add(kept.astype(dtype))
