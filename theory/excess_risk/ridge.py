"""Exact-in-the-limit risk of ridge regression on Gaussian features m ~ N(0, M).

Symbols: μ_i eigenvalues of M, p_i = μ_i θ*_i² signal power of direction i, N samples, σ² noise
variance, λ ridge, κ effective ridge, 𝓛_i = μ_i/(μ_i+κ), df1 = Σ𝓛_i, df2 = Σ𝓛_i².

Conventions of every function: θ̂ = argmin ‖Fθ−y‖² + λ‖θ‖², λ un-normalised (no 1/N, no ½);
R(θ̂) = E‖θ̂−θ*‖²_M, without ½; y = Fθ* + ε. Eigenvalues may come in any order; zeros are allowed
and carry no risk. The deterministic equivalent is accurate to 1–2 % of the total from N ≈ 30, and
to 7 % near the peak N = d at λ = 0.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_integer, check_number, fail
from boundlab.precision import float64
from boundlab.theory.excess_risk import _arguments as arguments
from boundlab.theory.excess_risk.correlated import risk_correlated
from boundlab.theory.excess_risk.equivalent import (
    count_minus_sum,
    filters,
    solve_effective_ridge,
)
from boundlab.theory.excess_risk.profiles import Bounds, RiskProfile
from boundlab.theory.excess_risk.ridge_tuning import tune_ridge
from boundlab.typing import Count, Numbers, Scalar

__all__ = [
    "Bounds",
    "RiskProfile",
    "best_ridge",
    "effective_ridge",
    "ols_risk",
    "risk",
    "risk_bounds",
    "risk_correlated",
]


@float64
def effective_ridge(mu: Numbers, ridge: Scalar, num_samples: Count) -> Float[Array, ""]:
    """Effective ridge κ: the root of N = Σ_i μ_i/(μ_i+κ) + λ/κ.

    Args:
        mu: eigenvalues of M, (d,), ≥ 0 and not all 0, in any order.
        ridge: λ ≥ 0, un-normalised; κ has the unit of λ/N.
        num_samples: N ≥ 1, static Python or NumPy int.

    Returns:
        κ, a scalar. With r the number of positive eigenvalues, at λ = 0: κ = 0 for N ≥ r (so
        whenever N > d), and the minimum-norm solution's κ > 0 for N < r. Differentiable in `mu`
        and `ridge` (at λ = 0 from the right: 1/(N−r), infinite for N = r). Range: a positive root
        below e^-700 ≈ 1e-304 comes back as e^-700 (inputs below 2e-308 count as 0), and κ is
        infinite where λ + Σμ exceeds 1.8e308. Neither is refused.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: simon2023eigenlearning, eq. for κ.

    """
    eigenvalues = arguments.spectrum(mu)
    return solve_effective_ridge(
        eigenvalues,
        arguments.scalar("ridge", ridge),
        arguments.scalar("num_samples", check_integer("num_samples", num_samples, 1)),
    )


@float64
def risk(
    mu: Numbers, theta_sq: Numbers, noise_variance: Scalar, ridge: Scalar, num_samples: Count
) -> RiskProfile:
    """Excess risk R of ridge regression, one term a direction.

    bias_i = (1−𝓛_i)² p_i + 𝓛_i² B/(N−df2),  B = Σ_j (1−𝓛_j)² p_j;  var_i = σ² 𝓛_i²/(N−df2).
    The second bias term is the missed signal, which acts as noise on the learnt directions; the
    sums are E0·B and σ²(E0−1) with E0 = N/(N−df2).

    Args:
        mu: eigenvalues of M, (d,), ≥ 0 and not all 0, in any order.
        theta_sq: squared components of θ* in the same basis, (d,), ≥ 0.
        noise_variance: σ² ≥ 0.
        ridge: λ ≥ 0, un-normalised.
        num_samples: N ≥ 1, static Python or NumPy int.

    Returns:
        Bias and variance, both (d,), in the order of `mu`. At the peak (λ = 0 and N equal to the
        number of positive eigenvalues) the variance is infinite where σ² > 0 and the bias is 0.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: simon2023eigenlearning for the sums; the split over directions is derived.

    """
    return ridge_profile(*_checked(mu, theta_sq, noise_variance, ridge, num_samples))


@float64
def best_ridge(
    mu: Numbers, theta_sq: Numbers, noise_variance: Scalar, num_samples: Count
) -> Float[Array, ""]:
    """Ridge λ ≥ 0 of least total risk, argmin_λ Σ_i (bias_i + var_i).

    The global minimum: all λ are scanned as a function of κ, and each local minimum is refined as
    a root of the derivative (for θ*_i² = τ² in all directions it is λ = σ²/τ²).

    Args:
        mu: eigenvalues of M, (d,), ≥ 0 and not all 0, in any order.
        theta_sq: squared components of θ* in the same basis, (d,), ≥ 0.
        noise_variance: σ² ≥ 0.
        num_samples: N ≥ 1, static Python or NumPy int.

    Returns:
        λ, un-normalised, a scalar: 0 where no regularisation (or the minimum-norm solution) is
        best, or where λ is below the rounding of κN; infinity where there is noise and no
        signal at all, so that more is always better. Negative λ, which can win a few per
        cent on a spike with a flat tail, is left out.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived (derivative of the risk in κ).

    """
    spectrum, teacher, noise, _, samples = _checked(mu, theta_sq, noise_variance, 0.0, num_samples)
    return tune_ridge(spectrum, teacher, noise, samples)


@float64
def risk_bounds(
    mu: Numbers, theta_sq: Numbers, noise_variance: Scalar, ridge: Scalar, num_samples: Count
) -> Bounds:
    """Two sides of the total risk of ridge in head-and-tail form, with constants ¼ and 1.

    upper = E0 (κ² Σ_{i≤K} θ*_i²/μ_i + Σ_{i>K} p_i) + E0 (σ²/N)(K + κ^{-2} Σ_{i>K} μ_i²),
    lower = upper/4, head K = {i: μ_i ≥ κ}, E0 = N/(N−df2). They bound the deterministic
    equivalent `risk`, since 𝓛_i ∈ [½, 1] on the head and 1−𝓛_i ∈ [½, 1] on the tail.

    Args:
        mu: eigenvalues of M, (d,), ≥ 0 and not all 0, in any order.
        theta_sq: squared components of θ* in the same basis, (d,), ≥ 0.
        noise_variance: σ² ≥ 0.
        ridge: λ > 0, un-normalised.
        num_samples: N ≥ 1, static Python or NumPy int.

    Returns:
        Lower and upper side for Σ_i (bias_i + var_i), scalars.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived; the form is that of tsigler2023benign and of su2025interplay, Theorem 4.2.

    """
    check_number("ridge", ridge, 0.0, low_open=True)
    return _bounds(*_checked(mu, theta_sq, noise_variance, ridge, num_samples))


@float64
def ols_risk(noise_variance: Scalar, dim: Count, num_samples: Count) -> Float[Array, ""]:
    """Exact risk of ordinary least squares on Gaussian features, R = σ² d/(N−d−1).

    It depends neither on the eigenvalues of M (all positive) nor on θ*, and is exact at finite N;
    `risk` at λ = 0 gives the nearby σ² d/(N−d).

    Args:
        noise_variance: σ² ≥ 0.
        dim: d ≥ 1, number of positive eigenvalues, static Python or NumPy int.
        num_samples: N ≥ d + 2, static Python or NumPy int.

    Returns:
        R, a scalar.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived (mean of an inverse Wishart matrix).

    """
    noise = arguments.scalar("noise_variance", noise_variance)
    directions = check_integer("dim", dim, 1)
    samples = check_integer("num_samples", num_samples, 1)
    if samples <= directions + 1:
        raise fail("num_samples", samples, f"more than dim + 1 = {directions + 1} samples")
    return noise * (directions / (samples - directions - 1))


@jax.jit
def ridge_profile(
    mu: Float[Array, " d"],
    theta_sq: Float[Array, " d"],
    noise_variance: Float[Array, ""],
    ridge: Float[Array, ""],
    num_samples: Float[Array, ""],
) -> RiskProfile:
    """Internal: `risk` of checked arguments."""
    kappa = solve_effective_ridge(mu, ridge, num_samples)
    learnt, missed = filters(mu, kappa)
    direct = missed**2 * mu * theta_sq
    spread = _safe_ratio(learnt**2, _unspent(mu, kappa, num_samples))
    # At the peak nothing is missed, and 0·∞ must stay 0.
    left, noise = jnp.sum(direct), noise_variance
    return RiskProfile(
        bias=direct + jnp.where(left > 0, spread, 0.0) * left,
        variance=jnp.where(noise > 0, spread, jnp.where(jnp.isinf(spread), 0.0, spread)) * noise,
    )


@jax.jit
def _bounds(
    mu: Float[Array, " d"],
    theta_sq: Float[Array, " d"],
    noise_variance: Float[Array, ""],
    ridge: Float[Array, ""],
    num_samples: Float[Array, ""],
) -> Bounds:
    kappa = solve_effective_ridge(mu, ridge, num_samples)
    head = mu >= kappa
    inflation = num_samples / _unspent(mu, kappa, num_samples)
    # Both ratios are at most 1 on their side, so nothing overflows.
    missed = jnp.where(head, kappa / jnp.where(head, mu, 1.0), 1.0)
    learnt = jnp.where(head, 1.0, mu / kappa)
    bias = jnp.sum(missed**2 * mu * theta_sq)
    variance = noise_variance / num_samples * jnp.sum(learnt**2)
    upper = inflation * (bias + variance)
    return Bounds(lower=upper / 4, upper=upper)


def _unspent(
    mu: Float[Array, " d"], kappa: Float[Array, ""], num_samples: Float[Array, ""]
) -> Float[Array, ""]:
    """N − df2 = (N − df1) + Σ𝓛(1−𝓛), without cancellation."""
    learnt, missed = filters(mu, kappa)
    return count_minus_sum(num_samples, mu, kappa) + jnp.sum(learnt * missed)


def _safe_ratio(top: Float[Array, " d"], bottom: Float[Array, ""]) -> Float[Array, " d"]:
    """top/bottom, infinite where bottom is 0 and top is not."""
    ratio = top / jnp.where(bottom > 0, bottom, 1.0)
    return jnp.where(bottom > 0, ratio, jnp.where(top > 0, jnp.inf, 0.0))


def _checked(
    mu: Numbers, theta_sq: Numbers, noise_variance: Scalar, ridge: Scalar, num_samples: Count
) -> tuple[Array, Array, Array, Array, Array]:
    """The arguments that most functions here share, checked, as float64 arrays."""
    eigenvalues = arguments.spectrum(mu)
    return (
        eigenvalues,
        arguments.per_direction("theta_sq", theta_sq, eigenvalues),
        arguments.scalar("noise_variance", noise_variance),
        arguments.scalar("ridge", ridge),
        arguments.scalar("num_samples", check_integer("num_samples", num_samples, 1)),
    )
