"""The mean loss of the arm with the largest estimate: the Bechhofer integral on one axis for all groups.

Symbols: groups g of c_g arms of value v_g; each arm's estimate is N(v_g, 1/s²), s = √m/σ for m samples
of noise σ; u_g = s(v_g − v_best) the places of the groups. With F(t) = Π_h Φ(t − u_h)^{c_h}, the winner
is of group g with density c_g (φ/Φ)(t − u_g) F(t) at t: one pass over t serves all groups. No checks;
everything may be traced.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

# Searches for the integrand's support, nodes of each, and nodes of the trapezoid rule on it.
SEARCHES = 2
SEARCH_NODES = 18
NODES = 80
# The support ends where the integrand has fallen by e^{−33}.
DEPTH = 33.0
# Arms further below the best than this, in standard errors, win with a chance below 1e-300.
FURTHEST = 80.0
# Chebyshev interpolation, in powers of y = (x − 4)/(x + 4), of (1 + x)·Φ(−x)/φ(x) for x ≥ 0: to 1e-14.
# XLA has no scaled erfc, and its erfc and log Φ cost twice as much.
MILLS = (
    1.1832619145678025,
    -0.24239967052191114,
    0.03509188023507642,
    0.07169048120881558,
    -0.08070800969404655,
    0.04495912891797037,
    -0.012539103366775156,
    -0.000715949311094995,
    0.0017418466235382408,
    -0.00023671064081471824,
    -0.00022020507716260233,
    5.329710816041033e-05,
    3.4127067715684534e-05,
    -8.671410758453983e-06,
    -6.49178122174831e-06,
    1.1109988536628065e-06,
    1.313665764903073e-06,
    -8.543228762165564e-08,
    -2.2605308164886262e-07,
    4.253138278228432e-10,
    2.247013983342086e-08,
)
ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


def winners_loss(
    values: Float[Array, " groups"],
    counts: Float[Array, " groups"],
    losses: Float[Array, " groups"],
    scale: Float[Array, ""],
) -> Float[Array, ""]:
    """Σ_g losses_g P(the winner is of group g), for losses ≥ 0 and a scale s in [0, ∞].

    A small sum keeps its relative accuracy if the losses of the best groups are 0: 1e-10 up to a million
    arms, 1e-7 up to 2^40.
    """
    present = counts > 0.0
    best = jnp.max(jnp.where(present, values, -jnp.inf))
    behind = jnp.where(present, best - values, 0.0)
    apart = (behind > 0.0) & (scale > 0.0)
    distance = jnp.where(apart, behind, 1.0) * jnp.where(apart, scale, 1.0)
    places = -jnp.where(apart, jnp.minimum(distance, FURTHEST), 0.0)
    weights = jnp.where(present, losses, 0.0) * counts
    # The largest of c estimates is about √(2 log c) above its place.
    reach = places + jnp.sqrt(2.0 * jnp.log(jnp.maximum(counts, 1.0)))
    low = 0.5 * jnp.min(jnp.where(weights > 0.0, places, 0.0)) - 9.0
    high = jnp.max(jnp.where(present, reach, 0.0)) + 9.0

    def narrow(
        _: Any, ends: tuple[Float[Array, ""], Float[Array, ""]]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        at = _grid(*ends, SEARCH_NODES)
        largest, hazard = _factors(at, places, counts, weights)
        some = hazard > 0.0
        size = jnp.where(some, largest + jnp.log(jnp.where(some, hazard, 1.0)), -jnp.inf)
        kept = size >= jnp.max(size) - DEPTH
        first, last = jnp.argmax(kept), SEARCH_NODES - 1 - jnp.argmax(kept[::-1])
        return at[jnp.maximum(first - 1, 0)], at[jnp.minimum(last + 1, SEARCH_NODES - 1)]

    low, high = jax.lax.fori_loop(0, SEARCHES, narrow, (low, high))
    largest, hazard = _factors(_grid(low, high, NODES), places, counts, weights)
    return (high - low) / (NODES - 1) * jnp.sum(jnp.exp(largest) * hazard)


def _grid(low: Float[Array, ""], high: Float[Array, ""], nodes: int) -> Float[Array, " nodes"]:
    return low + (high - low) * jnp.linspace(0.0, 1.0, nodes, dtype=jnp.float64)


def _factors(
    at: Float[Array, " nodes"],
    places: Float[Array, " groups"],
    counts: Float[Array, " groups"],
    weights: Float[Array, " groups"],
) -> tuple[Float[Array, " nodes"], Float[Array, " nodes"]]:
    """Log F and Σ_g weights_g (φ/Φ)(t − u_g), whose product is the integrand."""
    z = at[:, None] - places[None, :]
    size = jnp.abs(z)
    y = (size - 4.0) / (size + 4.0)
    ratio = jnp.full_like(y, MILLS[-1])
    for coefficient in MILLS[-2::-1]:
        ratio = ratio * y + coefficient
    ratio = ratio / (1.0 + size)
    density = jnp.exp(-0.5 * z**2) / ROOT_TWO_PI
    above = z > 0.0
    tail = jnp.where(above, density * ratio, 0.0)
    # log Φ keeps its relative accuracy on both sides: counts as large as A^K multiply it.
    log_cdf = jnp.where(
        above, jnp.log1p(-tail), jnp.log(ratio) - 0.5 * z**2 - math.log(ROOT_TWO_PI)
    )
    hazard = jnp.where(above, density / (1.0 - tail), 1.0 / ratio)
    return jnp.sum(counts[None, :] * log_cdf, axis=1), jnp.sum(weights[None, :] * hazard, axis=1)
