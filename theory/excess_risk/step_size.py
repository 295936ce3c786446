"""The best constant step size of tail-averaged SGD, found on the exact risk.

Symbols: μ_i eigenvalues of M, γ step size, γ_max the limit of stability, N samples, σ² noise.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from boundlab.checks import check_integer
from boundlab.precision import float64
from boundlab.theory.excess_risk import _arguments as arguments
from boundlab.theory.excess_risk import _recursion as recursion
from boundlab.theory.excess_risk.stability import limit
from boundlab.typing import Count, Numbers, Scalar

GRID = 25  # points of a round: the first is a factor 2.2 apart, each later one 12 times finer
ROUNDS = 5


@float64
def best_step_size(
    mu: Numbers, delta0_sq: Numbers, noise_variance: Scalar, num_samples: Count
) -> Float[Array, ""]:
    """Step size in (0, γ_max) at which SGD averaged over the default tail has the least risk.

    Minimises bias + variance of `tail_averaged_risk` over log γ between 10⁻⁸ γ_max and
    (1 − 10⁻⁶) γ_max, on a grid that is refined around its best point.

    Args:
        mu: (d,) eigenvalues of M, ≥ 0, in any order.
        delta0_sq: (d,) squared components of θ_0 − θ* in M's eigenbasis.
        noise_variance: σ² ≥ 0, in the unit of y².
        num_samples: N ≥ 1, static.

    Returns:
        γ, scalar, within a factor 1 ± 10⁻⁴ of the minimiser (the risk is flat there). Its
        derivative is taken as zero, with which the risk *at* γ has its right first derivative.

    Raises:
        ValueError: an argument is out of range.

    Source: derived.

    """
    eigenvalues = arguments.spectrum(mu)
    initial = arguments.per_direction("delta0_sq", delta0_sq, eigenvalues)
    noise = arguments.scalar("noise_variance", noise_variance)
    check_integer("num_samples", num_samples, 1)
    frozen = lax.stop_gradient((eigenvalues, eigenvalues * initial, noise))
    return _minimise(*frozen, int(num_samples))[0]


def least_risk(
    mu: Float[Array, " d"],
    power: Float[Array, " d"],
    noise: Float[Array, ""],
    num_samples: Int[Array, ""],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Best step size and its total risk; the number of samples may be traced."""
    top = limit(mu)

    def total(log_fraction: Float[Array, ""]) -> Float[Array, ""]:
        x = jnp.exp(log_fraction) * top * mu
        return jnp.sum(recursion.run(x, power, noise, jnp.ones(()), num_samples, num_samples // 2))

    def refine(
        bracket: tuple[Float[Array, ""], Float[Array, ""]], _: None
    ) -> tuple[
        tuple[Float[Array, ""], Float[Array, ""]], tuple[Float[Array, ""], Float[Array, ""]]
    ]:
        low, high = bracket
        spacing = (high - low) / (GRID - 1)
        grid = low + spacing * jnp.arange(GRID, dtype=mu.dtype)
        risks = jax.vmap(total)(grid)
        best = jnp.argmin(risks)
        centre = grid[best]
        inside = jnp.maximum(centre - spacing, low), jnp.minimum(centre + spacing, high)
        return inside, (centre, risks[best])

    bracket = (jnp.log(jnp.asarray(1e-8)), jnp.log1p(-jnp.asarray(1e-6)))
    centres, risks = lax.scan(refine, bracket, length=ROUNDS)[1]
    best = jnp.argmin(risks)
    return jnp.exp(centres[best]) * top, risks[best]


_minimise = jax.jit(least_risk)
