"""Exact excess risk of one-pass SGD with a constant step on a linear teacher, and bounds on it.

Model: y = mᵀθ* + ε with m ~ N(0, M), E ε² = σ². One fresh sample a step, no repeats:
θ_{t+1} = θ_t − γ (m_tᵀθ_t − y_t) m_t for t = 0 … N − 2, so N iterates and N − 1 updates. The
estimate is the tail average θ̄ = (1/n) Σ_{t=s}^{N−1} θ_t, n = N − s, s = N // 2 unless said.

Symbols: μ_i eigenvalues of M, δ = θ − θ*, p_i = μ_i δ_{0,i}², γ step size, x_i = γμ_i, and the
risk R(θ) = ‖θ − θ*‖²_M, **without ½** (the excess of the ½-loss is R/2).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from boundlab.checks import check_integer
from boundlab.precision import float64
from boundlab.theory.excess_risk import _arguments as arguments
from boundlab.theory.excess_risk import _recursion as recursion
from boundlab.theory.excess_risk.filter import filter_limit
from boundlab.theory.excess_risk.profiles import Bounds, RiskProfile
from boundlab.theory.excess_risk.stability import (
    gain,
    stability_limit,
    stable_step_size,
    stationary_risk,
)
from boundlab.theory.excess_risk.step_size import best_step_size
from boundlab.theory.excess_risk.zou import (
    learnable_directions,
    zou_bounds,
    zou_inflation,
    zou_tail_bound,
)
from boundlab.typing import Count, Numbers, Scalar

__all__ = [
    "Bounds",
    "RiskProfile",
    "best_step_size",
    "filter_limit",
    "learnable_directions",
    "risk_bounds",
    "risk_curve",
    "stability_limit",
    "stationary_risk",
    "tail_averaged_risk",
    "zou_bounds",
    "zou_inflation",
    "zou_tail_bound",
]


@float64
def tail_averaged_risk(
    mu: Numbers,
    delta0_sq: Numbers,
    noise_variance: Scalar,
    step_size: Scalar,
    num_samples: Count,
    tail_start: Count | None = None,
) -> RiskProfile:
    """Exact expected risk of tail-averaged SGD, per direction, in bias and variance.

    With s_i(t) = E δ_i²: s_i ← (1 − 2x_i + 2x_i²) s_i + γx_i (Σ_j μ_j s_j + σ²), and
    E R(θ̄) = Σ_i μ_i n⁻² Σ_{t=s}^{N−1} s_i(t) [1 + 2 Σ_{k=1}^{N−1−t} (1 − x_i)^k]. The bias is the
    run with σ² = 0, the variance the run with δ_0 = 0; they add up exactly.

    Args:
        mu: (d,) eigenvalues of M, ≥ 0, in any order.
        delta0_sq: (d,) squared components of θ_0 − θ* in M's eigenbasis.
        noise_variance: σ² ≥ 0, in the unit of y².
        step_size: γ in (0, stability_limit(mu)), in units of 1/μ.
        num_samples: N ≥ 1, static; N − 1 updates (N = 1: θ̄ = θ_0).
        tail_start: s in 0 … N − 1, first averaged iterate; N // 2 by default.

    Returns:
        RiskProfile with `bias`, `variance` of shape (d,), in the order of `mu`; R is their sum over
        parts and directions. A derivative keeps all N iterates in memory, a value does not.

    Raises:
        ValueError: an argument is out of range; for `step_size` the message gives the limit.

    Source: derived (Isserlis: E[mmᵀSmmᵀ] = 2MSM + tr(MS)M for Gaussian m).

    """
    eigenvalues = arguments.spectrum(mu)
    initial = arguments.per_direction("delta0_sq", delta0_sq, eigenvalues)
    noise = arguments.scalar("noise_variance", noise_variance)
    count, start = arguments.tail(num_samples, tail_start)
    step = stable_step_size(step_size, mu)
    return split_risk(step * eigenvalues, eigenvalues * initial, noise, count, start)


def split_risk(
    x: Float[Array, " d"],
    power: Float[Array, " d"],
    noise: Float[Array, ""],
    num_samples: int,
    tail_start: int,
) -> RiskProfile:
    """Internal: `tail_averaged_risk` of checked arguments, from x = γμ and p = μ δ_0² alone."""

    def part(power: Float[Array, " d"], noise: Float[Array, ""]) -> Float[Array, " d"]:
        return recursion.tail_average(x, power, noise, jnp.ones(()), num_samples, tail_start)

    # Both parts in one loop; the variance at unit noise, so that a sweep over σ² is one multiply.
    powers = jnp.stack([power, jnp.zeros_like(power)])
    bias, unit_variance = jax.vmap(part)(powers, jnp.array([0.0, 1.0]))
    return RiskProfile(bias, noise * unit_variance)


@float64
def risk_curve(
    mu: Numbers,
    delta0_sq: Numbers,
    noise_variance: Scalar,
    step_size: Scalar,
    num_samples: Count,
) -> Float[Array, " t"]:
    """Exact expected risk of each single iterate, E‖θ_t − θ*‖²_M for t = 0 … N − 1.

    Args:
        mu: (d,) eigenvalues of M, ≥ 0, in any order.
        delta0_sq: (d,) squared components of θ_0 − θ* in M's eigenbasis.
        noise_variance: σ² ≥ 0, in the unit of y².
        step_size: γ > 0, stable or not; an unstable run grows and may end at ∞.
        num_samples: N ≥ 1, static.

    Returns:
        (N,) risks R without ½; the first is Σ_i μ_i δ_{0,i}².

    Raises:
        ValueError: an argument is out of range.

    Source: derived, the recursion in `tail_averaged_risk`.

    """
    eigenvalues = arguments.spectrum(mu)
    initial = arguments.per_direction("delta0_sq", delta0_sq, eigenvalues)
    noise = arguments.scalar("noise_variance", noise_variance)
    check_integer("num_samples", num_samples, 1)
    step = arguments.scalar("step_size", step_size, is_open=True)
    return recursion.curve(step * eigenvalues, eigenvalues * initial, noise, int(num_samples))


@float64
def risk_bounds(
    mu: Numbers,
    delta0_sq: Numbers,
    noise_variance: Scalar,
    step_size: Scalar,
    num_samples: Count,
) -> Bounds:
    """Two-sided bound with explicit constants on the risk of SGD averaged over the default tail.

        Σ p_i φ_i² + σ² V ≤ E R(θ̄) ≤ Σ p_i φ_i² + (σ² + 2 Σ p_i)/(1 − h) · D,

    s = N // 2, n = N − s, φ_i = (1 − x_i)^s (1 − (1 − x_i)^n)/(n x_i) (the mean's filter; φ_i → 1 at
    μ_i = 0, where nothing is learnt),
    D = Σ_i min{2/(N (1 − x_i)), N x_i²}, h = ½ Σ x_i/(1 − x_i), and V the variance at σ² = 1 of
    the recursion without the feedback of R.

    Args:
        mu: (d,) eigenvalues of M, ≥ 0, in any order.
        delta0_sq: (d,) squared components of θ_0 − θ* in M's eigenbasis.
        noise_variance: σ² ≥ 0, in the unit of y².
        step_size: γ in (0, stability_limit(mu)).
        num_samples: N ≥ 1, odd or even, static.

    Returns:
        Bounds of two scalars on R (without ½), bias and variance together.

    Raises:
        ValueError: an argument is out of range; for `step_size` the message gives the limit.

    Source: derived; for γ max μ ≤ ½ the upper side has the form of zou2021benefits and
    su2025interplay (head by its inverse, tail by its power) with constants.

    """
    eigenvalues = arguments.spectrum(mu)
    initial = arguments.per_direction("delta0_sq", delta0_sq, eigenvalues)
    noise = arguments.scalar("noise_variance", noise_variance)
    count, start = arguments.tail(num_samples, None)
    x = stable_step_size(step_size, mu) * eigenvalues
    free = recursion.tail_average(x, jnp.zeros_like(x), jnp.ones(()), jnp.zeros(()), count, start)
    return _assemble_bounds(x, eigenvalues * initial, noise, free, count, start)


@jax.jit
def _assemble_bounds(
    x: Float[Array, " d"],
    power: Float[Array, " d"],
    noise: Float[Array, ""],
    free_variance: Float[Array, " d"],
    num_samples: Int[Array, ""],
    tail_start: Int[Array, ""],
) -> Bounds:
    total = jnp.asarray(num_samples, dtype=x.dtype)
    before = jnp.asarray(tail_start, dtype=x.dtype)
    width = total - before
    inside = jnp.minimum(x, 1.0 - jnp.finfo(x.dtype).eps)
    moves = inside > 0.0
    safe = jnp.where(moves, inside, 0.5)
    log_decay = jnp.log1p(-safe)
    average = -jnp.expm1(width * log_decay) / (width * safe)
    filtered = jnp.where(moves, jnp.exp(before * log_decay) * average, 1.0)
    mean_risk = jnp.sum(power * jnp.square(filtered))

    dimension = jnp.sum(jnp.minimum(2.0 / (total * (1.0 - inside)), total * jnp.square(x)))
    feedback = gain(x)
    stable = feedback < 1.0
    margin = jnp.where(stable, 1.0 - feedback, 1.0)
    spread = (noise + 2.0 * jnp.sum(power)) * dimension / margin
    return Bounds(
        mean_risk + noise * jnp.sum(free_variance), jnp.where(stable, mean_risk + spread, jnp.inf)
    )
