"""Distance of two ReLU neurons on Gaussian input, without cancellation when they nearly agree.

Symbols: a, b norms of the two weight vectors and c = cos φ of their angle, all in M's inner product.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

# Coefficients of (sin φ − φ cos φ)/φ³ in powers of φ²: (−1)^(k+1) 2k/(2k+1)!, k = 1, 2, …
SERIES = (1 / 3, -1 / 30, 1 / 840, -1 / 45360, 1 / 3991680, -1 / 518918400, 1 / 93405312000)
# Up to here seven terms reach rounding; beyond, the direct form loses at most a digit.
SERIES_LIMIT = 0.5


def angle(cosine: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return φ = arccos c from 1 − c, which is exact near c = 1 where 1 − c² is not."""
    return 2 * jnp.arctan2(jnp.sqrt(1 - cosine), jnp.sqrt(1 + cosine))


@jax.custom_jvp
def kernel_gap(cosine: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return g(c) = (1 − c) − (sin φ − φ cos φ)/π: 0 at c = 1, 1 − 1/π at 0, 1 at −1."""
    phi = angle(cosine)
    square = jnp.where(phi < SERIES_LIMIT, phi, 0.0) ** 2
    series = jnp.full_like(square, SERIES[-1])
    for coefficient in SERIES[-2::-1]:
        series = series * square + coefficient
    direct = jnp.sqrt((1 - cosine) * (1 + cosine)) - phi * cosine
    lens = jnp.where(phi < SERIES_LIMIT, phi * square * series, direct)
    return (1 - cosine) - lens / jnp.pi


@kernel_gap.defjvp
def _kernel_gap_jvp(
    primals: tuple[Float[Array, "..."]], tangents: tuple[Float[Array, "..."]]
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    # g' = −(π−φ)/π is finite at c = ±1, where the derivative of arccos is not.
    (cosine,), (tangent,) = primals, tangents
    return kernel_gap(cosine), (angle(cosine) / jnp.pi - 1) * tangent


@jax.jit
def gap(
    norm_sq: Float[Array, "..."], norm_star_sq: Float[Array, "..."], cosine: Float[Array, "..."]
) -> Float[Array, "..."]:
    """E(ReLU(u) − ReLU(v))² = ½(a−b)² + ab·g(c) for Gaussian u, v; see `relu.excess_risk`."""
    both = (norm_sq > 0) & (norm_star_sq > 0)
    # √ of each by itself: the product of two small squares would underflow.
    norm = jnp.sqrt(jnp.where(both, norm_sq, 1.0))
    norm_star = jnp.sqrt(jnp.where(both, norm_star_sq, 1.0))
    # (a² − b²)/(a + b) keeps the digits of a − b.
    difference = (norm_sq - norm_star_sq) / (norm + norm_star)
    # Not jnp.clip, which halves the derivative at the very ends.
    inside = jnp.where(jnp.abs(cosine) > 1, jnp.sign(cosine), cosine)
    both_present = 0.5 * difference**2 + norm * norm_star * kernel_gap(inside)
    return jnp.where(both, both_present, 0.5 * (norm_sq + norm_star_sq))
