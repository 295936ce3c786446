"""How much the best of several equally good cells is over-rated.

Symbols: m cells, their scores independent N(μ, σ²), φ and Φ density and distribution function of N(0, 1).
"""

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from boundlab.checks import check_integer
from boundlab.precision import float64
from boundlab.typing import Count

HALF_WIDTH = 12.0  # beyond it N(0, 1) has mass 4e-33
POINTS = 2401


@float64
def expected_maximum(num_cells: Count) -> Float[Array, ""]:
    """Mean of the largest of m independent standard normal numbers.

    E max = ∫ x·m·φ(x)·Φ(x)^{m−1} dx, 0 for m = 1. The best of m cells whose scores are N(μ, σ²)
    appears σ·E max better than any of them is: the bias of reporting a maximum over a grid.

    Args:
        num_cells: m ≥ 1, at most 10⁹ (concrete).

    Returns:
        E max, scalar, in standard deviations of one score; to 1e-12.

    Raises:
        ValueError: `num_cells` is no integer from 1 to 10⁹.

    Source: derived (docs/fanout.md, Published numbers); density of the largest order statistic.

    """
    count = check_integer("num_cells", num_cells, 1, 10**9)
    return _expected_maximum(jnp.asarray(float(count), dtype=jnp.float64))


@jax.jit
def _expected_maximum(count: Float[Array, ""]) -> Float[Array, ""]:
    # The trapezoidal rule converges faster than any power for a smooth density that vanishes at both
    # ends; Φ^{m−1} is taken in logarithms, where a large m doesn't underflow.
    x = jnp.linspace(-HALF_WIDTH, HALF_WIDTH, POINTS, dtype=jnp.float64)
    log_density = jnp.log(count) + norm.logpdf(x) + (count - 1.0) * norm.logcdf(x)
    spacing = 2.0 * HALF_WIDTH / (POINTS - 1)
    return spacing * jnp.sum(x * jnp.exp(log_density))
