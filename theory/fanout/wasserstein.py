"""Wasserstein-2 distance of Gaussian laws: a lower bound for any laws with the same two moments.

Symbols: m, C mean and covariance; A = C^{1/2} the symmetric root.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_number, check_shape
from boundlab.precision import float64
from boundlab.theory.fanout._covariance import covariance_of
from boundlab.typing import Numbers


@float64
def gaussian_w2(
    mean: Numbers, covariance: Any, other_mean: Numbers, other_covariance: Any
) -> Float[Array, ""]:
    """Wasserstein-2 distance of N(m, C) and N(m', C') in the Euclidean metric; not its square.

    W2² = ‖m − m'‖² + tr C + tr C' − 2 tr(C^{1/2} C' C^{1/2})^{1/2}, computed as
    ‖m − m'‖² + ‖A − A'U‖²_F with the roots A, A' and the orthogonal U nearest to aligning them, which
    doesn't cancel. Eigenvalues below r·2⁻⁵² of the largest count as zero, as rounding leaves them in
    place of it: the distance is accurate to about 1e-13 of the largest standard deviation, also of
    singular and of equal laws, and to 1e-8 of it where such small eigenvalues are meant. Arguments are
    scaled to order 1 first, so that entries up to 1e300 don't overflow. For any two laws with these
    moments it is at most their W2 [gelbrich1990formula].

    Args:
        mean: m (r,). All arguments may be traced.
        covariance: C (r, r), symmetric and positive semi-definite, both to 1e-8 of its largest entry;
            singular ones are allowed.
        other_mean: m' (r,).
        other_covariance: C' (r, r), likewise.

    Returns:
        The distance, a JAX scalar, in the unit of the mean; NaN if a traced covariance is none. Its
        derivatives are finite: where the distance has none (equal laws, a singular covariance), the
        part that does not exist is left out.

    Raises:
        ValueError: an argument has the wrong shape, isn't finite, or a covariance isn't symmetric and
            positive semi-definite; it is named.

    Source: [gelbrich1990formula]; docs/fanout.md#wasserstein-distances.

    """
    check_shape("mean", mean, (None,))
    check_number("mean", mean)
    first = jnp.asarray(mean, jnp.float64)
    check_shape("other_mean", other_mean, first.shape, "as mean")
    check_number("other_mean", other_mean)
    return _distance(
        first,
        jnp.asarray(other_mean, jnp.float64),
        covariance_of("covariance", covariance, len(first)),
        covariance_of("other_covariance", other_covariance, len(first)),
    )


@jax.jit
def _distance(
    mean: Float[Array, " r"],
    other_mean: Float[Array, " r"],
    covariance: Float[Array, "r r"],
    other_covariance: Float[Array, "r r"],
) -> Float[Array, ""]:
    means = jnp.maximum(jnp.max(jnp.abs(mean)), jnp.max(jnp.abs(other_mean)))
    entry = jnp.maximum(jnp.max(jnp.abs(covariance)), jnp.max(jnp.abs(other_covariance)))
    scale = jax.lax.stop_gradient(jnp.maximum(means, jnp.sqrt(entry)))  # it cancels
    scale = jnp.where(scale == 0.0, 1.0, scale)
    difference = mean / scale - other_mean / scale
    root = _symmetric_root(covariance / scale / scale)
    other_root = _symmetric_root(other_covariance / scale / scale)
    # The nearest U may be held fixed in derivatives: it minimises.
    left, _, right = jnp.linalg.svd(jax.lax.stop_gradient(other_root @ root))
    apart = root - other_root @ (left @ right)
    squared = jnp.sum(difference**2) + jnp.sum(apart**2)
    equal = squared == 0.0
    return scale * jnp.where(equal, 0.0, jnp.sqrt(jnp.where(equal, 1.0, squared)))


@jax.custom_jvp
def _symmetric_root(matrix: Float[Array, "r r"]) -> Float[Array, "r r"]:
    deviation, vectors = _deviations(matrix)
    return (vectors * deviation[None, :]) @ vectors.T


@_symmetric_root.defjvp
def _symmetric_root_jvp(
    primals: tuple[Float[Array, "r r"]], tangents: tuple[Float[Array, "r r"]]
) -> tuple[Float[Array, "r r"], Float[Array, "r r"]]:
    """From dA·A + A·dA = dC, whose solution needs no gaps between eigenvalues, as `eigh`'s does."""
    deviation, vectors = _deviations(primals[0])
    total = deviation[:, None] + deviation[None, :]
    rotated = vectors.T @ tangents[0] @ vectors
    change = jnp.where(total > 0.0, rotated / jnp.where(total > 0.0, total, 1.0), 0.0)
    return (vectors * deviation[None, :]) @ vectors.T, vectors @ change @ vectors.T


def _deviations(matrix: Float[Array, "r r"]) -> tuple[Float[Array, " r"], Float[Array, "r r"]]:
    """Standard deviations along the principal axes, and those axes in columns."""
    values, vectors = jnp.linalg.eigh(matrix)
    least = len(values) * jnp.finfo(values.dtype).eps * values[-1]
    return jnp.sqrt(jnp.where(values < least, 0.0, jnp.maximum(values, 0.0))), vectors  # NaN stays
