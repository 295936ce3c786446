"""The deterministic equivalent behind ridge: filters, the effective ridge κ, safe root finding.

A random design of N samples acts on average like a known one with the larger ridge κ (per sample):
N = Σ_i μ_i/(μ_i+κ) + λ/κ. Direction i is learnt to the fraction 𝓛_i = μ_i/(μ_i+κ) and missed by
1−𝓛_i = κ/(μ_i+κ). Everything is a function of κ alone, and every sum here is arranged so that only
whole numbers are subtracted: the result keeps its relative precision when κ is e^-600.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

# The widest bracket is about 1,500 e-folds, which 64 halvings bring to the last bit of log κ.
HALVINGS = 64
# Numbers below e^-700 are not held in full precision.
LOWEST_LOG = -700.0


class Filters(NamedTuple):
    """Fraction of each direction that is learnt, 𝓛, and missed, 1−𝓛, both without cancellation."""

    learnt: Float[Array, " d"]
    missed: Float[Array, " d"]


def filters(values: Float[Array, " d"], cut: Float[Array, ""]) -> Filters:
    """Return v/(v+c) and c/(v+c); 0 and 1 where both are zero."""
    total = values + cut
    some = total > 0
    safe = jnp.where(some, total, 1.0)
    return Filters(jnp.where(some, values / safe, 0.0), jnp.where(some, cut / safe, 1.0))


class Parts(NamedTuple):
    """Σ_i v_i/(v_i+c) as head − rest: the number of v_i ≥ c, and what it is too large by."""

    head: Float[Array, ""]
    rest: Float[Array, ""]


def sum_in_parts(values: Float[Array, " d"], cut: Float[Array, ""]) -> Parts:
    """Split Σ_i v_i/(v_i+c) so that whole numbers can be subtracted without rounding.

    Directions above the cut enter as 1 − c/(v+c), so that `rest` keeps its relative precision.
    """
    learnt, missed = filters(values, cut)
    head = (values >= cut) & (values > 0)
    whole = jnp.sum(head).astype(values.dtype)
    return Parts(whole, jnp.sum(jnp.where(head, missed, -learnt)))


def count_minus_sum(
    count: Float[Array, ""], values: Float[Array, " d"], cut: Float[Array, ""]
) -> Float[Array, ""]:
    """Return count − Σ_i v_i/(v_i+c), exact to the rounding of its smallest parts."""
    head, rest = sum_in_parts(values, cut)
    return (count - head) + rest


def bisect(
    function: Callable[[Float[Array, ""]], Float[Array, ""]],
    low: Float[Array, ""],
    high: Float[Array, ""],
    steps: int = HALVINGS,
) -> Float[Array, ""]:
    """Halve [low, high], with function(low) ≤ 0 ≤ function(high), `steps` times."""

    def halve(
        _: Array, bracket: tuple[Float[Array, ""], Float[Array, ""]]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        low, high = bracket
        middle = 0.5 * (low + high)
        below = function(middle) < 0
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    low, high = jax.lax.fori_loop(0, steps, halve, (low, high))
    return 0.5 * (low + high)


def root(
    function: Callable[[Float[Array, ""]], Float[Array, ""]],
    low: Float[Array, ""],
    high: Float[Array, ""],
    steps: int = HALVINGS,
) -> Float[Array, ""]:
    """Root of an increasing function by bisection; differentiable through the implicit function."""
    low, high = jax.lax.stop_gradient((low, high))
    return jax.lax.custom_root(
        function,
        0.5 * (low + high),
        lambda f, _: bisect(f, low, high, steps),
        lambda slope, y: y / slope(jnp.ones_like(y)),
    )


def rank(mu: Float[Array, " d"]) -> Float[Array, ""]:
    """Number of directions with a positive eigenvalue."""
    return jnp.sum(mu > 0).astype(mu.dtype)


def log_or_lowest(x: Float[Array, ""]) -> Float[Array, ""]:
    """Natural logarithm, never below `LOWEST_LOG` (so 0 is allowed)."""
    positive = x > 0
    return jnp.where(
        positive, jnp.maximum(jnp.log(jnp.where(positive, x, 1.0)), LOWEST_LOG), LOWEST_LOG
    )


def smallest_positive(mu: Float[Array, " d"]) -> Float[Array, ""]:
    """Least positive eigenvalue."""
    return jnp.min(jnp.where(mu > 0, mu, jnp.inf))


@jax.jit
def solve_effective_ridge(
    mu: Float[Array, " d"], ridge: Float[Array, ""], num_samples: Float[Array, ""]
) -> Float[Array, ""]:
    """κ of the module's equation; see `boundlab.theory.excess_risk.ridge.effective_ridge`."""
    spare = num_samples - rank(mu)
    ridgeless: Bool[Array, ""] = (ridge == 0) & (spare >= 0)
    ridge_inside = jnp.where(ridgeless, 1.0, ridge)

    def residual(log_kappa: Float[Array, ""]) -> Float[Array, ""]:
        kappa = jnp.exp(log_kappa)
        return count_minus_sum(num_samples, mu, kappa) - ridge_inside / kappa

    # λ/κ ≤ N gives the first lower end; Σκ/(μ+κ) ≥ rank − N > 0 the second, which serves λ = 0.
    missing = jnp.maximum(-spare, 0.0) / rank(mu)
    low = jnp.maximum(ridge_inside / num_samples, missing * smallest_positive(mu))
    # N ≤ (Σμ+λ)/κ, and (N − rank)κ ≤ λ if N exceeds the rank.
    high = (ridge_inside + jnp.sum(mu)) / num_samples
    high = jnp.where(spare > 0, jnp.minimum(high, ridge_inside / jnp.maximum(spare, 1.0)), high)
    # Rounding must not leave the root outside.
    log_kappa = root(residual, log_or_lowest(low) - 1e-9, log_or_lowest(high) + 1e-9)
    # At λ = 0 these are zero, with the right one-sided derivative: 1/(N − rank), or infinity.
    above = ridge / jnp.maximum(spare, 1.0)
    at_peak = jnp.sqrt(jnp.where(ridgeless & (spare == 0), ridge, 1.0))
    return jnp.where(ridgeless, jnp.where(spare > 0, above, at_peak), jnp.exp(log_kappa))
