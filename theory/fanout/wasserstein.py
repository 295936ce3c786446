"""Wasserstein-2 distance of Gaussian laws: a lower bound for any laws with the same two moments.

Symbols: m, C mean and covariance; A = C^{1/2} the symmetric root.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.typing import Numbers

# Asymmetry and negative eigenvalues up to this share of the largest one are taken for rounding.
ROUNDING = 1e-8


@float64
def gaussian_w2(
    mean: Numbers, covariance: Any, other_mean: Numbers, other_covariance: Any
) -> Float[Array, ""]:
    """Wasserstein-2 distance of N(m, C) and N(m', C') in the Euclidean metric; not its square.

    W2² = ‖m − m'‖² + tr C + tr C' − 2 tr(C^{1/2} C' C^{1/2})^{1/2}, computed as
    ‖m − m'‖² + ‖A − A'U‖²_F with the roots A, A' and the orthogonal U nearest to aligning them, which
    doesn't cancel: equal arguments give less than 1e-7 of the largest standard deviation (1e-14 where
    the covariance is well conditioned). For any two laws with these moments it is at most their W2
    [gelbrich1990formula].

    Args:
        mean: m (r,).
        covariance: C (r, r), symmetric, positive semi-definite; singular ones are allowed.
        other_mean: m' (r,).
        other_covariance: C' (r, r), likewise.

    Returns:
        The distance, scalar, in the unit of the mean.

    Raises:
        ValueError: an argument has the wrong shape, isn't finite, or a covariance isn't symmetric and
            positive semi-definite (to 1e-8 of its largest eigenvalue); it is named.

    Source: [gelbrich1990formula]; docs/fanout.md#wasserstein-distances.

    """
    check_shape("mean", mean, (None,))
    check_number("mean", mean)
    first = jnp.asarray(mean, jnp.float64)
    check_shape("other_mean", other_mean, first.shape, "as mean")
    check_number("other_mean", other_mean)
    return _distance(
        first - jnp.asarray(other_mean, jnp.float64),
        _covariance("covariance", covariance, len(first)),
        _covariance("other_covariance", other_covariance, len(first)),
    )


@jax.jit
def _distance(
    difference: Float[Array, " r"], first: Float[Array, "r r"], other: Float[Array, "r r"]
) -> Float[Array, ""]:
    root, other_root = _symmetric_root(first), _symmetric_root(other)
    left, _, right = jnp.linalg.svd(other_root @ root)
    apart = root - other_root @ (left @ right)
    return jnp.sqrt(jnp.sum(difference**2) + jnp.sum(apart**2))


def _symmetric_root(matrix: Float[Array, "r r"]) -> Float[Array, "r r"]:
    values, vectors = jnp.linalg.eigh(matrix)
    return (vectors * jnp.sqrt(jnp.maximum(values, 0.0))[None, :]) @ vectors.T


def _covariance(name: str, value: Any, size: int) -> Float[Array, "r r"]:
    """A symmetric positive semi-definite matrix in float64, or an error that names it."""
    check_shape(name, value, (size, size), "one row and column an entry of the mean")
    check_number(name, value)
    if not is_traced(value):
        matrix = np.asarray(value, dtype=np.float64)
        scale = np.abs(matrix).max()
        asymmetry = np.abs(matrix - matrix.T).max()
        if asymmetry > ROUNDING * scale:
            raise fail(name, f"an asymmetry of {asymmetry:.3g}", "a symmetric matrix")
        lowest = np.linalg.eigvalsh(matrix)[0]
        if lowest < -ROUNDING * scale * size:
            raise fail(name, f"an eigenvalue {lowest:.6g}", "a positive semi-definite matrix")
    array = jnp.asarray(value, jnp.float64)
    return 0.5 * (array + array.T)
