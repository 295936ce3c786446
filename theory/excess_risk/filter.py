"""Tail-averaged SGD for vanishing steps: a linear filter on the spectrum, to lay beside ridge.

Symbols: μ_i eigenvalues of M, p_i = μ_i δ_{0,i}² signal powers, γ step size, N samples, σ² noise
variance, X_i = γμ_iN the training time of direction i.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_integer
from boundlab.precision import float64
from boundlab.theory.excess_risk import _arguments as arguments
from boundlab.theory.excess_risk.profiles import RiskProfile
from boundlab.typing import Count, Numbers, Scalar


@float64
def filter_limit(
    mu: Numbers,
    delta0_sq: Numbers,
    noise_variance: Scalar,
    step_size: Scalar,
    num_samples: Count,
) -> RiskProfile:
    """Risk of SGD averaged over the default tail for γ → 0 at fixed X_i = γμ_iN: a linear filter.

    bias_i = p_i φ(X_i)², φ(X) = e^{−X/2} (1 − e^{−X/2})/(X/2);
    variance_i = (σ²/N) f(X_i), f(X) = 4 ∫_{½}^{1} (1 − e^{−X(1−u)})(1 − e^{−2Xu}) du.
    f ≈ ⅔X² for small X and → 2 for large X: SGD pays 2σ²/N a learnt direction, ridge σ²/N.

    Args:
        mu: (d,) eigenvalues of M, ≥ 0, in any order.
        delta0_sq: (d,) squared components of θ_0 − θ* in M's eigenbasis.
        noise_variance: σ² ≥ 0, in the unit of y².
        step_size: γ > 0; the relative error against `tail_averaged_risk` is of order h(γ).
        num_samples: N ≥ 1, static.

    Returns:
        RiskProfile, both (d,), R without ½.

    Raises:
        ValueError: an argument is out of range.

    Source: derived.

    """
    eigenvalues = arguments.spectrum(mu)
    initial = arguments.per_direction("delta0_sq", delta0_sq, eigenvalues)
    noise = arguments.scalar("noise_variance", noise_variance)
    check_integer("num_samples", num_samples, 1)
    step = arguments.scalar("step_size", step_size, is_open=True)
    bias_filter, variance_filter = _filters(step * eigenvalues * float(num_samples))
    return RiskProfile(
        eigenvalues * initial * jnp.square(bias_filter),
        noise / float(num_samples) * variance_filter,
    )


@jax.jit
def _filters(
    time: Float[Array, " d"],
) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
    some = time > 0.0
    half = jnp.where(some, time, 1.0) / 2.0
    bias_filter = jnp.where(some, jnp.exp(-half) * -jnp.expm1(-half) / half, 1.0)

    # The integral in closed form cancels for small X, and quadrature misses the layer of width 1/X
    # at u = 1 for large X: each where the other fails.
    switch = 8.0
    nodes, weights = (jnp.asarray(v) for v in np.polynomial.legendre.leggauss(24))
    u = (0.75 + 0.25 * nodes)[:, None]
    small = jnp.minimum(time, switch)[None, :]
    integrand = jnp.expm1(-small * (1.0 - u)) * jnp.expm1(-2.0 * small * u)
    quadrature = jnp.sum(weights[:, None] * integrand, axis=0)  # 4 × the half-length ¼
    big = jnp.maximum(time, switch)
    decay = jnp.exp(-big / 2.0)
    closed = 2.0 + 4.0 / big * (
        -(1.0 - decay) - (decay**2 - decay**4) / 2.0 + decay**2 * (decay - decay**2)
    )
    return bias_filter, jnp.where(time < switch, quadrature, closed)
