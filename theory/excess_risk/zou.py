"""Published bounds on constant-step SGD by Zou and others, on the risk R = ‖θ−θ*‖²_M without ½.

Symbols: μ_i eigenvalues of M, δ_0 = θ_0 − θ*, γ step size, N samples; α and β bound the fourth
moment, E[mmᵀAmmᵀ] ⪯ α tr(MA) M and − MAM ⪰ β tr(MA) M (Gaussian inputs: α = 3, β = 1);
k* = #{i : μ_i ≥ 1/(γN)} directions form the *head*, the others the *tail*.
The papers state their bounds for the ½-loss L, E L − L* = R/2; here both sides are doubled.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from boundlab.checks import check_integer, check_number, check_shape
from boundlab.precision import float64, is_traced
from boundlab.theory.excess_risk import _arguments as arguments
from boundlab.theory.excess_risk.profiles import Bounds
from boundlab.typing import Count, Numbers, Scalar


@float64
def learnable_directions(mu: Numbers, step_size: Scalar, num_samples: Count) -> Int[Array, ""]:
    """Number of directions that SGD learns from N samples, k* = #{i : μ_i ≥ 1/(γN)}.

    Args:
        mu: (d,) eigenvalues of M, ≥ 0, in any order.
        step_size: γ > 0.
        num_samples: N ≥ 1, static Python or NumPy int.

    Returns:
        k*, an integer scalar.

    Raises:
        ValueError: an argument is out of range.

    Source: zou2023benign, Theorem 2.1.

    """
    eigenvalues = arguments.spectrum(mu)
    check_integer("num_samples", num_samples, 1)
    step = arguments.scalar("step_size", step_size, is_open=True)
    return jnp.sum(step * float(num_samples) * eigenvalues >= 1.0)


@float64
def zou_bounds(
    mu: Numbers,
    delta0_sq: Numbers,
    noise_variance: Scalar,
    step_size: Scalar,
    num_samples: Count,
    *,
    alpha: Scalar = 3.0,
    beta: Scalar = 1.0,
) -> Bounds:
    """Published two-sided bound on the risk of SGD averaged over all its iterates.

    The *head* is {i : μ_i ≥ 1/(γN)}, k* = #{μ_i ≥ 1/(γN)} its size, the *tail* all other directions;
    δ_i² below is δ_{0,i}². Effective bias EB, effective dimension `dim`, effective variance EV:

        EB = (γN)⁻² Σ_head δ_i²/μ_i + Σ_tail μ_i δ_i²,
        dim = k*/N + Nγ² Σ_tail μ_i²,
        EV = [(2α/(Nγ)) (Σ_head δ_i² + Nγ Σ_tail μ_i δ_i²) + σ²] · dim/(1 − γα Σ_i μ_i);

        R ≤ 4 EB + 4 EV,
        R ≥ 2 [EB/100 + (β/1000 · Σ_tail μ_i δ_i² + σ²/50) · dim].

    Args:
        mu: (d,) eigenvalues of M, ≥ 0, in any order.
        delta0_sq: (d,) squared components of θ_0 − θ* in M's eigenbasis.
        noise_variance: σ² ≥ 0, in the unit of y².
        step_size: γ in (0, 1/(α Σμ)).
        num_samples: N ≥ 2 iterates, all averaged (tail_start = 0), N − 1 updates; static Python or
            NumPy int. (At N = 1 nothing is updated, the variance is zero, and the lower side is
            false.)
        alpha: upper fourth-moment constant, > 0; 3 for Gaussian inputs.
        beta: lower fourth-moment constant, > 0; 1 for Gaussian inputs.

    Returns:
        Bounds of two scalars on R (twice the bounds on the ½-loss).

    Raises:
        ValueError: an argument is out of range; for `step_size` the message gives the limit.

    Source: zou2023benign, Theorems 2.1 (upper) and 2.2 (lower), reconstructed.

    """
    eigenvalues, initial, noise, step, high = _common(
        mu, delta0_sq, noise_variance, step_size, alpha
    )
    low = arguments.scalar("beta", beta, is_open=True)
    check_integer("num_samples", num_samples, 2)
    return _two_sided(eigenvalues, initial, noise, step, float(num_samples), high, low)


@jax.jit
def _two_sided(
    mu: Float[Array, " d"],
    initial: Float[Array, " d"],
    noise: Float[Array, ""],
    step: Float[Array, ""],
    count: Float[Array, ""],
    alpha: Float[Array, ""],
    beta: Float[Array, ""],
) -> Bounds:
    head = step * count * mu >= 1.0
    bias = _bias(mu, initial, step, count, head)
    tail_power = _tail_sum(head, mu * initial)
    dimension = (_head_sum(head, jnp.ones_like(mu)) + _tail_sum(head, (count * step * mu) ** 2)) / (
        count
    )
    start = 2.0 * alpha * (_head_sum(head, initial) + count * step * tail_power) / (count * step)
    variance = (start + noise) / (1.0 - step * alpha * jnp.sum(mu)) * dimension
    lower = bias / 100.0 + (beta / 1000.0 * tail_power + noise / 50.0) * dimension
    return Bounds(2.0 * lower, 4.0 * (bias + variance))


@float64
def zou_tail_bound(
    mu: Numbers,
    delta0_sq: Numbers,
    noise_variance: Scalar,
    step_size: Scalar,
    num_samples: Count,
    tail_start: Count | None = None,
    *,
    alpha: Scalar = 3.0,
) -> Float[Array, ""]:
    """Published upper bound on the risk of tail-averaged SGD.

    With n = N − s averaged iterates, k* = #{μ_i ≥ 1/(γn)}, k† = #{μ_i ≥ 1/(γN)}, μ descending,
    c = 1 − γα Σμ, δ_i² for δ_{0,i}²:

        EB = (γn)⁻² Σ_{i≤k*} (1 − γμ_i)^{2s} δ_i²/μ_i + Σ_{i>k*} (1 − γμ_i)^{2s} μ_i δ_i²,
        EV = 4α/(nγc) · (Σ_{i≤k†} δ_i² + Nγ Σ_{i>k†} μ_i δ_i²) (k*/n + nγ² Σ_{i>k*} μ_i²)
             + (σ²/c) (k*/n + γ Σ_{k*<i≤k†} μ_i + Nγ² Σ_{i>k†} μ_i²);    R ≤ 4 EB + 4 EV.

    Args:
        mu: (d,) eigenvalues of M, ≥ 0, in any order.
        delta0_sq: (d,) squared components of θ_0 − θ* in M's eigenbasis.
        noise_variance: σ² ≥ 0, in the unit of y².
        step_size: γ in (0, 1/(α Σμ)).
        num_samples: N ≥ 1 iterates in all (the paper's s + N), N − 1 updates; static Python or NumPy
            int.
        tail_start: s in 0 … N − 1, first averaged iterate, static Python or NumPy int; N // 2 by
            default.
        alpha: upper fourth-moment constant, > 0; 3 for Gaussian inputs.

    Returns:
        Upper bound on R, scalar (twice the bound on the ½-loss).

    Raises:
        ValueError: an argument is out of range; for `step_size` the message gives the limit.

    Source: zou2023benign, Theorem 5.1, reconstructed.

    """
    eigenvalues, initial, noise, step, high = _common(
        mu, delta0_sq, noise_variance, step_size, alpha
    )
    count, start = arguments.tail(num_samples, tail_start)
    return _tail_upper(eigenvalues, initial, noise, step, float(count), float(start), high)


@jax.jit
def _tail_upper(
    mu: Float[Array, " d"],
    initial: Float[Array, " d"],
    noise: Float[Array, ""],
    step: Float[Array, ""],
    total: Float[Array, ""],
    before: Float[Array, ""],
    alpha: Float[Array, ""],
) -> Float[Array, ""]:
    count = total - before
    head, wide = step * count * mu >= 1.0, step * total * mu >= 1.0
    decayed = initial * jnp.exp(2.0 * before * jnp.log1p(-step * mu))
    bias = _bias(mu, decayed, step, count, head)
    rank = _head_sum(head, jnp.ones_like(mu)) / count
    start = _head_sum(wide, initial) + total * step * _tail_sum(wide, mu * initial)
    shared = rank + count * step**2 * _tail_sum(head, mu**2)
    between = step * _head_sum(wide & ~head, mu)
    noisy = rank + between + total * step**2 * _tail_sum(wide, mu**2)
    margin = 1.0 - step * alpha * jnp.sum(mu)
    variance = (4.0 * alpha * start * shared / (count * step) + noise * noisy) / margin
    return 4.0 * (bias + variance)


@float64
def zou_inflation(
    mu: Numbers, theta_sq: Numbers, noise_variance: Scalar, num_samples: Count
) -> Float[Array, ""]:
    """Published factor of samples with which SGD does no worse than any ridge, constant set to 1.

    (1 + S) κ max(1, log a), S = ‖θ*‖²_M/σ², κ = Σμ/(N μ_{min(N,d)}) with μ descending, and
    a = κ √(S N).

    Args:
        mu: (d,) eigenvalues of M, ≥ 0, in any order.
        theta_sq: (d,) squared components of θ* in M's eigenbasis.
        noise_variance: σ² > 0, in the unit of y².
        num_samples: N ≥ 1, the samples that ridge gets, static Python or NumPy int.

    Returns:
        Factor N_sgd/N, scalar; ∞ where μ_{min(N,d)} = 0. Natural logarithm.

    Raises:
        ValueError: an argument is out of range.

    Source: zou2021benefits, the Gaussian corollary, reconstructed; the theorem has an unnamed constant.

    """
    eigenvalues = arguments.spectrum(mu)
    initial = arguments.per_direction("theta_sq", theta_sq, eigenvalues)
    noise = arguments.scalar("noise_variance", noise_variance, is_open=True)
    check_integer("num_samples", num_samples, 1)
    rank = min(int(num_samples), eigenvalues.shape[0])
    last = -jnp.sort(-eigenvalues)[rank - 1]
    some = last > 0.0
    condition = jnp.sum(eigenvalues) / (float(num_samples) * jnp.where(some, last, 1.0))
    signal = jnp.sum(eigenvalues * initial) / noise
    # max(1, log a) = ½ log max(e², a²): no log or square root of zero when there is no signal.
    log_term = 0.5 * jnp.log(jnp.maximum(np.exp(2.0), condition**2 * signal * float(num_samples)))
    return jnp.where(some, (1.0 + signal) * condition * log_term, jnp.inf)


def _common(
    mu: Numbers, delta0_sq: Numbers, noise_variance: Scalar, step_size: Scalar, alpha: Scalar
) -> tuple[
    Float[Array, " d"], Float[Array, " d"], Float[Array, ""], Float[Array, ""], Float[Array, ""]
]:
    eigenvalues = arguments.spectrum(mu)
    initial = arguments.per_direction("delta0_sq", delta0_sq, eigenvalues)
    noise = arguments.scalar("noise_variance", noise_variance)
    constant = arguments.scalar("alpha", alpha, is_open=True)
    check_shape("step_size", step_size, ())
    high = (
        np.inf if is_traced(mu, alpha) else 1.0 / float(np.asarray(alpha) * np.sum(np.asarray(mu)))
    )
    why = f"1/(alpha Σmu) = {high:.12g}" if np.isfinite(high) else ""
    check_number("step_size", step_size, 0.0, high, low_open=True, high_open=True, why=why)
    return eigenvalues, initial, noise, jnp.asarray(step_size, dtype=jnp.float64), constant


def _bias(
    mu: Float[Array, " d"],
    initial: Float[Array, " d"],
    step: Float[Array, ""],
    count: Float[Array, ""],
    head: Array,
) -> Float[Array, ""]:
    inverse = initial / jnp.where(head, mu, 1.0)
    return _head_sum(head, inverse) / (step * count) ** 2 + _tail_sum(head, mu * initial)


def _head_sum(head: Array, value: Float[Array, " d"]) -> Float[Array, ""]:
    return jnp.sum(jnp.where(head, value, 0.0))


def _tail_sum(head: Array, value: Float[Array, " d"]) -> Float[Array, ""]:
    return jnp.sum(jnp.where(head, 0.0, value))
