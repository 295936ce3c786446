"""What the start of the sampler costs an edge: divergences of the noised edge from N(0, 1), and the bias.

m² = e^{−B} and σ² = 1 − e^{−B} for a schedule of total noise B, OU time T = B/2; r = P(edge | x).
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_number
from boundlab.precision import float64
from boundlab.theory.graph_diffusion._edge_arguments import (
    SHORTEST,
    Edge,
    at_times,
    edge_of,
)
from boundlab.theory.graph_diffusion.edges import edge_information
from boundlab.typing import Numbers, Scalar

# Slope of the posterior's argument above which the logistic law is integrated and not the normal one.
STEEP = 2.5
# Nodes either side: to ±32 in x by .2, or ±80 in the logistic variable by .5.
HALF_NODES = 160


@float64
def edge_initialization_kl(
    horizon: Numbers, probability: Numbers, low: Scalar = 0.0, high: Scalar = 1.0
) -> Float[Array, "*shape"]:
    """KL(q_T ‖ N(0, 1)) of a noised edge: what starting the sampler from the prior costs.

    ½m²(E a² − 1) − ½ log(1 − m²) − I(a; x_T): the bound S8 for any law, less the information left in x.
    To 1e-15 absolutely.

    Args:
        horizon: OU times T ≥ 1e-100, of any shape, T = B/2 for another schedule. All arguments may be
            traced.
        probability: p in (0, 1); it and `horizon` are one number or of one common shape.
        low: a₀, the value of a missing edge.
        high: a₁ > a₀, the value of an edge.

    Returns:
        An array of that shape, in nats.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#initialisation.

    """
    return _initialization_kl(at_times(horizon, probability, low, high, "horizon"))


@float64
def edge_chi_squared(
    horizon: Numbers, probability: Numbers, low: Scalar = 0.0, high: Scalar = 1.0
) -> Float[Array, "*shape"]:
    """χ²(q_T ‖ N(0, 1)) of a noised edge; the KL is at most log(1 + χ²).

    1 + χ² = Σ_{ij} p_i p_j (1 − ρ²)^{−½} exp([ρ a_i a_j − ρ²(a_i² + a_j²)/2]/(1 − ρ²)), ρ = e^{−2T}: the
    Hermite series of docs/graph_diffusion.md summed by Mehler's formula.

    Args:
        horizon: OU times T ≥ 1e-100, of any shape, T = B/2 for another schedule. All arguments may be
            traced.
        probability: p in (0, 1); it and `horizon` are one number or of one common shape.
        low: a₀, the value of a missing edge.
        high: a₁ > a₀, the value of an edge.

    Returns:
        An array of that shape.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#initialisation.

    """
    return _chi_squared(at_times(horizon, probability, low, high, "horizon"))


@float64
def edge_probability_after_sampling(
    probability: Numbers, integrated_beta: Numbers, low: Scalar = 0.0, high: Scalar = 1.0
) -> Float[Array, "*shape"]:
    """P(edge) in samples of the reverse SDE with the exact score, started from N(0, 1).

    E_{x ~ N(0, 1)} r(x, T) with m² = e^{−B}, σ² = 1 − e^{−B}: the reverse SDE is the true backward
    kernel, so what it makes of the wrong start is the posterior. No discretisation error is in it. It
    tends to p as B → ∞ and to P(x > (a₀ + a₁)/2) as B → 0.

    Args:
        probability: p in (0, 1); it and `integrated_beta` are one number or of one common shape.
        integrated_beta: B = ∫β ≥ 1e-100, the total noise of the schedule, of any shape. All may be
            traced.
        low: a₀, the value of a missing edge.
        high: a₁ > a₀, the value of an edge.

    Returns:
        An array of that shape.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#short-schedule.

    """
    check_number("integrated_beta", integrated_beta, SHORTEST)
    return _prior_posterior(
        edge_of("integrated_beta", integrated_beta, 0.5, probability, low, high)
    )


@jax.jit
def _initialization_kl(edge: Edge) -> Float[Array, "*shape"]:
    second = edge.low**2 + edge.probability * (edge.high**2 - edge.low**2)
    gaussian = 0.5 * (edge.mean**2 * (second - 1.0) - jnp.log(edge.sigma_sq))
    return gaussian - edge_information(edge)


@jax.jit
def _chi_squared(edge: Edge) -> Float[Array, "*shape"]:
    rho = edge.mean**2
    spread = edge.sigma_sq * (1.0 + rho)
    total = jnp.zeros_like(rho)
    atoms = ((edge.low, 1.0 - edge.probability), (edge.high, edge.probability))
    for first, weight in atoms:
        for second, other in atoms:
            exponent = rho * (first * second - 0.5 * rho * (first**2 + second**2)) / spread
            total += weight * other * jnp.expm1(exponent - 0.5 * jnp.log1p(-(rho**2)))
    return total


@jax.jit
def _prior_posterior(edge: Edge) -> Float[Array, "*shape"]:
    slope = edge.mean * (edge.high - edge.low) / edge.sigma_sq
    offset = edge.log_odds - 0.5 * slope * edge.mean * (edge.high + edge.low)
    return _logistic_normal(offset, slope)


def _logistic_normal(
    offset: Float[Array, "*shape"], slope: Float[Array, "*shape"]
) -> Float[Array, "*shape"]:
    """E sigmoid(offset + slope·x) over x ~ N(0, 1), slope > 0, to 1e-10 whatever its size.

    A steep sigmoid is nearly a step; as P(L < offset + slope·x) with L logistic, the integral over L has
    the smooth integrand Φ((offset − u)/slope)/(2cosh(u/2))².
    """
    nodes = jnp.arange(-HALF_NODES, HALF_NODES + 1, dtype=jnp.float64)
    nodes = nodes.reshape((1,) * offset.ndim + (-1,))
    steep = slope > STEEP
    flat_slope = jnp.where(steep, 1.0, slope)[..., None]
    normal = jnp.exp(-0.5 * (0.2 * nodes) ** 2) / math.sqrt(2 * math.pi)
    flat = 0.2 * jnp.sum(
        normal * jax.nn.sigmoid(offset[..., None] + flat_slope * (0.2 * nodes)), axis=-1
    )
    steep_slope = jnp.where(steep, slope, 1.0)
    # Below u = 0 the integrand is e^{u − (u − offset)²/(2 slope²)} where Φ is small.
    mode = jnp.minimum(offset + steep_slope**2, 0.0)
    u = mode[..., None] + 0.5 * nodes
    logistic = jax.nn.sigmoid(u) * jax.nn.sigmoid(-u)
    below = jax.scipy.special.ndtr((offset[..., None] - u) / steep_slope[..., None])
    return jnp.where(steep, 0.5 * jnp.sum(logistic * below, axis=-1), flat)
