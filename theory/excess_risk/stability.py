"""Mean-square stability of constant-step SGD on Gaussian inputs, and where its iterates settle.

Symbols: μ_i eigenvalues of M, γ step size, σ² noise variance, and the gain of the risk's feedback

    h(γ) = ½ Σ_i γμ_i / (1 − γμ_i).

SGD is stable in mean square if and only if γ < 1/max μ and h(γ) < 1.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from boundlab.checks import check_number, check_shape
from boundlab.precision import float64, is_traced
from boundlab.theory.excess_risk import _arguments as arguments
from boundlab.typing import Numbers, Scalar


@float64
def stability_limit(mu: Numbers) -> Float[Array, ""]:
    """Least step size at which one-pass SGD on Gaussian inputs is no longer stable in mean square.

    γ_max is the root in (0, 1/max μ) of h(γ) = ½ Σ_i γμ_i/(1 − γμ_i) = 1: there the matrix of the
    second-moment recursion, diag(1 − 2γμ + 2γ²μ²) + γ²μμᵀ, has spectral radius 1. It lies below
    2/Σμ; a single direction has γ_max = 2/(3μ).

    Args:
        mu: (d,) eigenvalues of M, ≥ 0, in any order.

    Returns:
        γ_max, scalar, in units of 1/μ, to a few units of rounding; ∞ for a traced zero spectrum.

    Raises:
        ValueError: `mu` is empty, negative, not finite or zero throughout.

    Source: derived (the recursion is that of `tail_averaged_risk`).

    """
    return limit(arguments.spectrum(mu))


@jax.jit
def limit(mu: Float[Array, " d"]) -> Float[Array, ""]:
    """`stability_limit` of a checked spectrum."""
    # The root γ(μ) does not depend on the unit in which it is computed: hence no gradient of it.
    top = lax.stop_gradient(jnp.max(mu))
    unit = jnp.where(top > 0.0, top, 1.0)
    weight = mu / unit
    trace = jnp.maximum(jnp.sum(weight), 1.0)

    # In z = γ·max μ the gain is convex and increasing, and at least ½z·trace and ½z/(1 − z). Both
    # put the root below the start, from where Newton's method descends to it without overshooting;
    # z ≤ 2/3 keeps the pole away and the curvature so small that seven steps reach rounding.
    start = lax.stop_gradient(jnp.minimum(2.0 / 3.0, 2.0 / trace))

    def newton(_: int | Int[Array, ""], z: Float[Array, ""]) -> Float[Array, ""]:
        ratio = weight / (1.0 - z * weight)
        excess = 0.5 * z * jnp.sum(ratio) - 1.0
        slope = 0.5 * jnp.sum(ratio / (1.0 - z * weight))
        return z - excess / jnp.where(slope > 0.0, slope, 1.0)

    root = lax.fori_loop(0, 9, newton, start)
    return jnp.where(top > 0.0, root / unit, jnp.inf)


def gain(x: Float[Array, " d"]) -> Float[Array, ""]:
    """The gain h = ½ Σ x/(1 − x) at x = γμ; ∞ where some x ≥ 1."""
    below = x < 1.0
    terms = jnp.where(below, x / jnp.where(below, 1.0 - x, 1.0), jnp.inf)
    return 0.5 * jnp.sum(terms)


def stable_step_size(step_size: Scalar, mu: Numbers) -> Float[Array, ""]:
    """A checked step size in (0, γ_max); `ValueError` with the limit if it is concrete and beyond.

    `mu` as the caller gave it: inside a trace, an array made from it would be traced too.
    """
    check_shape("step_size", step_size, ())
    high = np.inf
    if not is_traced(step_size, mu):
        with jax.ensure_compile_time_eval():
            high = float(limit(jnp.asarray(mu, dtype=jnp.float64)))
    check_number(
        "step_size",
        step_size,
        0.0,
        high,
        low_open=True,
        high_open=True,
        why=f"stability_limit(mu) = {high:.12g}" if np.isfinite(high) else "",
    )
    return jnp.asarray(step_size, dtype=jnp.float64)


@float64
def stationary_risk(mu: Numbers, noise_variance: Scalar, step_size: Scalar) -> Float[Array, ""]:
    """Risk at which the last iterate of SGD settles, N → ∞.

    R_∞ = σ² h/(1 − h), h = ½ Σ_i γμ_i/(1 − γμ_i). R is ‖θ−θ*‖²_M, without ½.

    Args:
        mu: (d,) eigenvalues of M, ≥ 0, in any order.
        noise_variance: σ², variance of the label noise, ≥ 0.
        step_size: γ in (0, stability_limit(mu)), in units of 1/μ.

    Returns:
        R_∞, scalar, in units of σ²; ∞ for a traced step size beyond the limit.

    Raises:
        ValueError: an argument is out of range; for `step_size` the message gives the limit.

    Source: derived, the fixed point of the recursion of `tail_averaged_risk`.

    """
    eigenvalues = arguments.spectrum(mu)
    noise = arguments.scalar("noise_variance", noise_variance)
    return _stationary(stable_step_size(step_size, mu) * eigenvalues, noise)


@jax.jit
def _stationary(x: Float[Array, " d"], noise: Float[Array, ""]) -> Float[Array, ""]:
    fed_back = gain(x)
    stable = fed_back < 1.0
    safe = jnp.where(stable, fed_back, 0.5)
    return jnp.where(stable, noise * safe / (1.0 - safe), jnp.inf)
