"""Graph operators G and the covariance that aggregation with them gives.

A signal x on the nodes with covariance H is aggregated L times, m = G^L x, so that
M = E[mmᵀ] = G^L H (G^L)ᵀ: with H = I the spectrum of M is that of G to the power 2L, and the
graph's shape is the whole story. Symbols: A adjacency, D degrees, Ã = A + I, D̃ = D + I,
S = D̃^{-½} Ã D̃^{-½}.

Everything here is float64: the spectra of deep aggregations span many orders of magnitude.
"""

import functools
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_choice, check_integer, check_number, check_shape, fail
from boundlab.models.graph_types import check_graph
from boundlab.precision import float64, is_traced
from boundlab.typing import Count, Numbers, Scalar

__all__ = ["KINDS", "Spectrum", "aggregation_covariance", "graph_operator", "spectrum"]

KINDS = ("laplacian", "normalized_adjacency", "adjacency", "personalized_pagerank")
_LEAST_TELEPORT = 1e-6


class Spectrum(NamedTuple):
    """Eigenpairs in descending order of the eigenvalues; eigenvector i is column i."""

    eigenvalues: Float[Array, " d"]
    eigenvectors: Float[Array, "d d"]


@float64
def graph_operator(
    graph: Any, kind: str, shift: Scalar = 1.0, *, teleport: Scalar = 0.1
) -> Float[Array, "n n"]:
    """Symmetric positive-definite operator G (n, n) of a graph.

    - `laplacian`: D − A + shift·I;
    - `adjacency`: A + (ρ + shift)·I with ρ = max |eigenvalue of A|;
    - `normalized_adjacency`: (I + S)/2, eigenvalues in (0, 1]; `shift` plays no part;
    - `personalized_pagerank`: teleport·(I − (1 − teleport)S)^{-1}, 1e-6 ≤ teleport ≤ 1.

    Isolated nodes are fine. shift > 0, and large enough that rounding leaves G positive definite:
    ≥ 8 n ε (1 + largest degree), ε = 2.2e-16. The error of the inverse grows as ε/teleport and the
    least eigenvalue is about teleport/2, hence the limit for teleport. Neither is checked where
    traced. Derived: S is similar to a lazy walk, whose eigenvalues lie in (−1, 1].

    Raises `ValueError` naming `graph`, `kind`, `shift` or `teleport`.
    """
    check_graph("graph", graph)
    check_choice("kind", kind, KINDS)
    check_shape("shift", shift, ())
    check_shape("teleport", teleport, ())
    degrees = graph.degrees()
    if kind in ("laplacian", "adjacency"):
        check_number("shift", shift, 0, low_open=True)
        rounding = 8 * graph.num_nodes * np.finfo(np.float64).eps * (1 + degrees.max())
        check_number("shift", shift, rounding, why="rounding leaves G positive definite")
    check_number("teleport", teleport, _LEAST_TELEPORT, 1)
    adjacency = graph.adjacency()
    identity = np.eye(graph.num_nodes)
    xp = _library(shift, teleport)
    shift = xp.asarray(shift, np.float64)
    teleport = xp.asarray(teleport, np.float64)
    if kind == "laplacian":
        return jnp.asarray(np.diag(degrees) - adjacency + shift * identity)
    if kind == "adjacency":
        radius = float(np.abs(np.linalg.eigvalsh(adjacency)).max())
        return jnp.asarray(adjacency + (radius + shift) * identity)
    scale = 1 / np.sqrt(degrees + 1.0)
    smoothing = scale[:, None] * (adjacency + identity) * scale[None, :]
    if kind == "normalized_adjacency":
        return jnp.asarray((identity + smoothing) / 2)
    inverse = xp.linalg.inv(identity - (1 - teleport) * smoothing)
    # Rounding leaves the inverse slightly asymmetric.
    return jnp.asarray(teleport * (inverse + inverse.T) / 2)


@float64
def aggregation_covariance(
    operator: Numbers, feature_covariance: Numbers | None, depth: Count = 1
) -> Float[Array, "n n"]:
    """Covariance M = G^depth H (G^depth)ᵀ of depth-fold aggregated signals, not rescaled.

    `operator` G (n, n); `feature_covariance` H (n, n), symmetric and positive semi-definite, `None`
    for the identity; `depth` ≥ 0, a static integer.

    Raises `ValueError` naming the argument; `operator`, if the result overflows. A covariance that
    is negative by rounding alone (as in `spectrum`) passes.
    """
    check_shape("operator", operator, (None, None))
    check_shape("operator", operator, (np.shape(operator)[0],) * 2, "a square matrix")
    check_number("operator", operator)
    check_integer("depth", depth, 0)
    if feature_covariance is not None:
        check_shape("feature_covariance", feature_covariance, np.shape(operator))
        _check_symmetric("feature_covariance", feature_covariance)
        if not is_traced(feature_covariance):
            values = np.linalg.eigvalsh(np.asarray(feature_covariance, np.float64))
            _check_not_negative("feature_covariance", values)
    xp = _library(operator, feature_covariance)
    with np.errstate(over="ignore", invalid="ignore"):
        power = xp.linalg.matrix_power(xp.asarray(operator, np.float64), int(depth))
        features = (
            () if feature_covariance is None else (xp.asarray(feature_covariance, np.float64),)
        )
        covariance = functools.reduce(xp.matmul, (power, *features, power.T))
    if not (is_traced(covariance) or np.isfinite(covariance).all()):
        raise fail("operator", "large numbers", "smaller ones: the covariance overflows")
    return jnp.asarray((covariance + covariance.T) / 2)


@float64
def spectrum(covariance: Numbers) -> Spectrum:
    """Eigenvalues and eigenvectors of a symmetric positive semi-definite matrix, descending.

    Negative eigenvalues within rounding (4 n ε times the largest, ε = 2.2e-16) become 0.

    Raises `ValueError` naming `covariance` for a matrix that is not square, not finite, not
    symmetric (to 1e-6 of its largest entry) or that has a clearly negative eigenvalue.
    """
    check_shape("covariance", covariance, (None, None))
    n = np.shape(covariance)[0]
    check_shape("covariance", covariance, (n, n), "a square matrix")
    _check_symmetric("covariance", covariance)
    values, vectors = jnp.linalg.eigh(jnp.asarray(covariance, jnp.float64))
    if not is_traced(values):
        values, vectors = np.asarray(values), np.asarray(vectors)
        if not np.isfinite(values).all():
            raise fail("covariance", "large numbers", "smaller ones: its eigenvalues overflow")
        _check_not_negative("covariance", values)
    values = _library(values).where((values < 0) & (values >= -_rounding(values)), 0.0, values)
    return Spectrum(jnp.asarray(values[::-1]), jnp.asarray(vectors[:, ::-1]))


def _library(*values: Any) -> Any:
    """NumPy for concrete numbers, since JAX would compile every operation anew for every size."""
    return jnp if is_traced(values) else np


def _rounding(values: Any) -> Any:
    """Size of eigenvalues that stand for 0, given all of them."""
    return 4 * len(values) * np.finfo(np.float64).eps * abs(values).max()


def _check_not_negative(name: str, values: Any) -> None:
    """`values`: the eigenvalues of a matrix, ascending."""
    if values[0] < -_rounding(values):
        raise fail(name, f"an eigenvalue of {values[0]:g}", "a positive semi-definite matrix")


def _check_symmetric(name: str, matrix: Numbers) -> None:
    check_number(name, matrix)
    if is_traced(matrix):
        return
    array = np.asarray(matrix)
    if np.abs(array - array.T).max() > 1e-6 * np.abs(array).max():
        raise fail(name, "a matrix that is not symmetric", "a symmetric matrix")
