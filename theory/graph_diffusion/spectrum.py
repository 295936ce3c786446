"""Where topology enters: aggregations P of a graph and the spectrum of features X = PZ + s₀ξ.

Z and ξ are independent standard Gaussians, a column a feature, so that each column of X has the
covariance PPᵀ + s₀²I. Symbols: A adjacency, d_i degrees without the loop, D = diag(d_i + 1).
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_choice, check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.typing import Numbers, Scalar

AGGREGATIONS = ("sum", "row", "symmetric", "heat", "personalized_pagerank")


@float64
def aggregation_matrix(
    adjacency: Numbers, kind: str, *, diffusion_time: Scalar = 1.0, teleport: Scalar = 0.1
) -> Float[Array, "n n"]:
    """Aggregation P of a graph, each node being its own neighbour too.

    - `sum`: A + I;
    - `row`: D^{−1}(A + I), the mean over the neighbourhood; not symmetric;
    - `symmetric`: S = D^{−½}(A + I)D^{−½}, of spectral norm exactly 1;
    - `heat`: exp(−s(I − S)), s = `diffusion_time` ≥ 0;
    - `personalized_pagerank`: a(I − (1 − a)S)^{−1}, a = `teleport` in (0, 1].

    Args:
        adjacency: A (n, n), symmetric, of entries ≥ 0, zero diagonal. May be traced.
        kind: One of the five.
        diffusion_time: Of `heat` alone.
        teleport: Of `personalized_pagerank` alone.

    Returns:
        P (n, n). An isolated node keeps its own value in all of them.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#topology.

    """
    matrix = _adjacency(adjacency)
    check_choice("kind", kind, AGGREGATIONS)
    check_shape("diffusion_time", diffusion_time, ())
    check_number("diffusion_time", diffusion_time, 0)
    check_shape("teleport", teleport, ())
    check_number("teleport", teleport, 0, 1, low_open=True)
    identity = jnp.eye(len(matrix), dtype=jnp.float64)
    looped = matrix + identity
    if kind == "sum":
        return looped
    degrees = jnp.sum(looped, axis=1)
    if kind == "row":
        return looped / degrees[:, None]
    scale = 1 / jnp.sqrt(degrees)
    smoothing = looped * (scale[:, None] * scale[None, :])  # symmetric to the last bit
    if kind == "symmetric":
        return smoothing
    values, vectors = jnp.linalg.eigh(smoothing)
    if kind == "heat":
        damped = jnp.exp(-jnp.asarray(diffusion_time, jnp.float64) * (1 - values))
    else:
        share = jnp.asarray(teleport, jnp.float64)
        damped = share / (1 - (1 - share) * values)
    damping = (vectors * damped[None, :]) @ vectors.T
    return (damping + damping.T) / 2


@float64
def feature_spectrum(
    aggregation: Numbers, noise_std: Scalar, standardise: bool = False
) -> Float[Array, " n"]:
    """Eigenvalues of the covariance PPᵀ + s₀²I of one column of features, descending.

    Each occurs once a feature. `standardise` divides the features by their root mean square over
    nodes, so that the eigenvalues have mean 1.

    Args:
        aggregation: P (n, k); need not be symmetric, as `row` isn't. May be traced.
        noise_std: s₀ > 0: without it a low-pass filter leaves a singular covariance.
        standardise: Static.

    Returns:
        (n,) eigenvalues, at least s₀² (before standardising).

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#graph-filtered-features.

    """
    check_shape("aggregation", aggregation, (None, None))
    check_number("aggregation", aggregation)
    check_shape("noise_std", noise_std, ())
    check_number("noise_std", noise_std, 0, low_open=True)
    if not isinstance(standardise, bool):
        raise fail("standardise", repr(standardise), "True or False")
    matrix = jnp.asarray(aggregation, jnp.float64)
    # Singular values, since squaring first would lose the small ones to rounding.
    squared = jnp.linalg.svd(matrix, compute_uv=False) ** 2
    squared = jnp.pad(squared, (0, len(matrix) - len(squared)))
    eigenvalues = squared + jnp.asarray(noise_std, jnp.float64) ** 2
    return eigenvalues / jnp.mean(eigenvalues) if standardise else eigenvalues


@float64
def aggregation_frobenius(adjacency: Numbers, kind: str) -> Float[Array, ""]:
    """‖P‖_F² from degrees and edges alone, for an unweighted graph.

    `sum` 2|E| + n; `row` Σ_i 1/(d_i + 1); `symmetric` Σ_{i~j} 1/((d_i + 1)(d_j + 1)) over ordered
    adjacent pairs, plus Σ_i 1/(d_i + 1)² of the loops. The expected square of a node's feature is
    ‖P‖_F²/n + s₀².

    Raises `ValueError` naming `adjacency`, whose entries must be 0 or 1, or `kind`.

    Source: derived, docs/graph_diffusion.md#topology.
    """
    matrix = _adjacency(adjacency)
    if not is_traced(adjacency) and not np.isin(adjacency, (0.0, 1.0)).all():
        raise fail("adjacency", "other entries", "entries 0 and 1")
    check_choice("kind", kind, AGGREGATIONS[:3])
    size = jnp.sum(matrix, axis=1) + 1
    if kind == "sum":
        return jnp.sum(size)
    if kind == "row":
        return jnp.sum(1 / size)
    return jnp.sum((1 / size) * (matrix @ (1 / size))) + jnp.sum(size**-2)


@float64
def star_row_norm(num_nodes: Scalar) -> Float[Array, ""]:
    """‖P‖² of the row normalisation of a star with n ≥ 2 nodes: n/4 + O(n^{−2}), not 1.

    On the hub and the unit vector of the leaves P is [[1/n, √(n−1)/n], [√(n−1)/2, ½]], whose squared
    singular values have the sum n/4 + 1/n and the product ((n − 2)/(2n))²; P is ½ on the rest.

    Raises `ValueError` naming `num_nodes`.

    Source: derived, docs/graph_diffusion.md#topology.
    """
    check_shape("num_nodes", num_nodes, ())
    check_number("num_nodes", num_nodes, 2)
    n = jnp.asarray(num_nodes, jnp.float64)
    total, product = n / 4 + 1 / n, ((n - 2) / (2 * n)) ** 2
    return (total + jnp.sqrt(total**2 - 4 * product)) / 2


@float64
def score_lipschitz(eigenvalues: Numbers) -> Float[Array, ""]:
    """Lipschitz constant of all noised scores of a Gaussian: sup_t max_i 1/v_i(t) = max(1, 1/λ_min).

    `eigenvalues` (d,) > 0 of the data covariance. Raises `ValueError` naming it.

    Source: derived, docs/graph_diffusion.md#topology.
    """
    check_shape("eigenvalues", eigenvalues, (None,))
    check_number("eigenvalues", eigenvalues, 0, low_open=True)
    return jnp.maximum(1.0, 1 / jnp.min(jnp.asarray(eigenvalues, jnp.float64)))


def _adjacency(adjacency: Numbers) -> Float[Array, "n n"]:
    check_shape("adjacency", adjacency, (None, None))
    n = np.shape(adjacency)[0]
    check_shape("adjacency", adjacency, (n, n), "a square matrix")
    check_number("adjacency", adjacency, 0)
    if not is_traced(adjacency):
        concrete = np.asarray(adjacency)
        if not (concrete == concrete.T).all():
            raise fail("adjacency", "a matrix that is not symmetric", "a symmetric one")
        if np.diag(concrete).any():
            raise fail("adjacency", "self-loops", "a zero diagonal: the loop is added")
    return jnp.asarray(adjacency, jnp.float64)
