"""The length of diffusion that balances a sampler's start against its steps."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_integer, check_number, check_shape
from boundlab.precision import float64, is_traced
from boundlab.theory.graph_diffusion._gaussian_arguments import eigenvalues_of, modes_of
from boundlab.theory.graph_diffusion._system_arguments import MOST
from boundlab.typing import Count, Numbers

# log T is bracketed by these; every root of finite input lies between.
LOG_RANGE = (-1600.0, 7.0)
HALVINGS = 64


@float64
def optimal_horizon(
    eigenvalues: Numbers, num_steps: Count, mean: Numbers | None = None
) -> Float[Array, ""]:
    """Horizon T at which start and discretisation of N equal steps balance: the root T > 0 of

        Σ(λ_i − 1)² e^{−4T} + |μ₀|² e^{−2T} = 2dT/N.

    It minimises ¼Σ(λ_i − 1)²e^{−4T} + ½|μ₀|²e^{−2T} + dT²/N, an approximation of `initialization_kl` +
    `discretization_ei` with δ = 0 and ∫v^{−2} taken for T: within 8.1 % of their minimiser (δ = .01,
    N ≥ 200) for one centred mode with λ in [.5, .95] or [1.05, 50]; too long for smaller λ, too short
    where λ is so near 1 that T comes close to δ. The exact KL has another minimiser.

    Args:
        eigenvalues: λ (d,) > 0 of the data covariance, d the number of modes. May be traced.
        num_steps: N ≥ 1. May be traced.
        mean: μ₀ (d,) of the data, None for 0. May be traced.

    Returns:
        T, one number in OU time; 0 where all eigenvalues are 1 and there is no mean. Derivatives are
        those of the root.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#diffusion-length.

    """
    modes = eigenvalues_of(eigenvalues)
    if is_traced(num_steps):
        check_shape("num_steps", num_steps, ())
        check_number("num_steps", num_steps, 1)
        steps = jnp.asarray(num_steps).astype(jnp.float64)
    else:
        steps = jnp.asarray(check_integer("num_steps", num_steps, 1, MOST), jnp.float64)
    return _root(modes, steps, modes_of("mean", mean, len(modes)))


@jax.jit
def _root(
    eigenvalues: Float[Array, " d"], steps: Float[Array, ""], mean: Float[Array, " d"]
) -> Float[Array, ""]:
    spread, center = _log_square(eigenvalues - 1.0), _log_square(mean)
    some = jnp.isfinite(spread) | jnp.isfinite(center)
    level = jnp.log(2.0 * len(eigenvalues)) - jnp.log(steps)

    def excess(log_t: Float[Array, ""]) -> Float[Array, ""]:
        """Logarithm of the left side over the right; it falls as T grows."""
        t = jnp.exp(log_t)
        left = jnp.logaddexp(spread - 4.0 * t, jnp.where(some, center, 0.0) - 2.0 * t)
        return left - level - log_t

    def halve(
        _: Any, bracket: tuple[Float[Array, ""], Float[Array, ""]]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        low, high = bracket
        middle = 0.5 * (low + high)
        above = excess(middle) > 0.0
        return jnp.where(above, middle, low), jnp.where(above, high, middle)

    low, high = (jnp.asarray(end, jnp.float64) for end in LOG_RANGE)
    low, _ = jax.lax.fori_loop(0, HALVINGS, halve, (low, high))
    at = jax.lax.stop_gradient(low)
    # One Newton step: it polishes, and its derivative is that of the root.
    slope = jax.lax.stop_gradient(jax.grad(excess)(at))
    return jnp.where(some, jnp.exp(at - excess(at) / slope), 0.0)


def _log_square(values: Float[Array, " d"]) -> Float[Array, ""]:
    """Log Σx², −∞ for zeros; squares don't overflow."""
    largest = jax.lax.stop_gradient(jnp.max(jnp.abs(values)))
    some = largest > 0.0
    scale = jnp.where(some, largest, 1.0)
    total = jnp.where(some, jnp.sum((values / scale) ** 2), 1.0)
    return jnp.where(some, 2.0 * jnp.log(scale) + jnp.log(total), -jnp.inf)
