"""Graph operators G and the covariance that aggregation with them gives.

A signal x on the nodes with covariance H is aggregated L times, m = G^L x, so that
M = E[mmᵀ] = G^L H (G^L)ᵀ: with H = I the spectrum of M is that of G to the power 2L, and the
graph's shape is the whole story. Symbols: A adjacency, D degrees, Ã = A + I, D̃ = D + I,
S = D̃^{-½} Ã D̃^{-½}.

Everything here is float64: the spectra of deep aggregations span many orders of magnitude.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_choice, check_integer, check_number, check_shape, fail
from boundlab.models.graph_types import Graph
from boundlab.precision import float64, is_traced
from boundlab.typing import Count, Numbers, Scalar

__all__ = ["KINDS", "Spectrum", "aggregation_covariance", "graph_operator", "spectrum"]

KINDS = ("laplacian", "normalized_adjacency", "adjacency", "personalized_pagerank")


class Spectrum(NamedTuple):
    """Eigenpairs in descending order of the eigenvalues; eigenvector i is column i."""

    eigenvalues: Float[Array, " d"]
    eigenvectors: Float[Array, "d d"]


@float64
def graph_operator(
    graph: Graph, kind: str, shift: Scalar = 1.0, *, teleport: Scalar = 0.1
) -> Float[Array, "n n"]:
    """Symmetric positive-definite operator G (n, n) of a graph.

    - `laplacian`: D − A + shift·I, shift > 0;
    - `adjacency`: A + (ρ + shift)·I with ρ = max |eigenvalue of A|, shift > 0;
    - `normalized_adjacency`: (I + S)/2, eigenvalues in (0, 1]; `shift` plays no part;
    - `personalized_pagerank`: teleport·(I − (1 − teleport)S)^{-1}, 0 < teleport ≤ 1.

    Isolated nodes are fine. Derived: S is similar to a lazy walk, whose eigenvalues lie in (−1, 1].

    Raises `ValueError` naming `kind`, `shift` or `teleport`.
    """
    check_choice("kind", kind, KINDS)
    if kind in ("laplacian", "adjacency"):
        check_number("shift", shift, 0, low_open=True)
    check_number("teleport", teleport, 0, 1, low_open=True)
    adjacency = graph.adjacency()
    identity = np.eye(graph.num_nodes)
    shift = jnp.asarray(shift, jnp.float64)
    teleport = jnp.asarray(teleport, jnp.float64)
    if kind == "laplacian":
        return jnp.asarray(np.diag(adjacency.sum(axis=1)) - adjacency) + shift * identity
    if kind == "adjacency":
        radius = float(np.abs(np.linalg.eigvalsh(adjacency)).max())
        return jnp.asarray(adjacency) + (radius + shift) * identity
    scale = 1 / np.sqrt(graph.degrees() + 1.0)
    smoothing = scale[:, None] * (adjacency + identity) * scale[None, :]
    if kind == "normalized_adjacency":
        return jnp.asarray((identity + smoothing) / 2)
    inverse = jnp.linalg.inv(identity - (1 - teleport) * smoothing)
    return teleport * (inverse + inverse.T) / 2  # rounding leaves the inverse slightly asymmetric


@float64
def aggregation_covariance(
    operator: Numbers, feature_covariance: Numbers | None, depth: Count = 1
) -> Float[Array, "n n"]:
    """Covariance M = G^depth H (G^depth)ᵀ of depth-fold aggregated signals, not rescaled.

    `operator` G (n, n); `feature_covariance` H (n, n), symmetric, `None` for the identity;
    `depth` ≥ 0.
    """
    check_shape("operator", operator, (None, None))
    check_shape("operator", operator, (np.shape(operator)[0],) * 2, "a square matrix")
    check_number("operator", operator)
    check_integer("depth", depth, 0)
    power = jnp.linalg.matrix_power(jnp.asarray(operator, jnp.float64), int(depth))
    if feature_covariance is None:
        return power @ power.T
    check_shape("feature_covariance", feature_covariance, np.shape(operator))
    _check_symmetric("feature_covariance", feature_covariance)
    covariance = power @ jnp.asarray(feature_covariance, jnp.float64) @ power.T
    return (covariance + covariance.T) / 2


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
    rounding = 4 * n * jnp.finfo(jnp.float64).eps * jnp.max(jnp.abs(values))
    if not is_traced(values) and bool(values[0] < -rounding):
        raise fail(
            "covariance", f"an eigenvalue of {values[0]:g}", "a positive semi-definite matrix"
        )
    values = jnp.where((values < 0) & (values >= -rounding), 0.0, values)
    return Spectrum(values[::-1], vectors[:, ::-1])


def _check_symmetric(name: str, matrix: Numbers) -> None:
    check_number(name, matrix)
    if is_traced(matrix):
        return
    array = np.asarray(matrix)
    if np.abs(array - array.T).max() > 1e-6 * np.abs(array).max():
        raise fail(name, "a matrix that is not symmetric", "a symmetric matrix")
