"""Risk of learning one ReLU neuron from Gaussian features m ~ N(0, M), y = ReLU(mᵀθ*) + ε.

Symbols: a² = θᵀMθ, b² = θ*ᵀMθ*, φ the angle between θ and θ* in M's inner product, μ_i eigenvalues
of M, σ² noise variance, γ step size, N samples, s first averaged iterate.

Conventions: every risk is R = E(ReLU(mᵀθ) − ReLU(mᵀθ*))², twice the excess of the ½-loss. One pass,
one fresh sample a step, iterates θ_0 … θ_{N−1} (N − 1 updates), tail average θ̄ = mean of θ_s … θ_{N−1}.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_number, check_shape, fail
from boundlab.precision import float64
from boundlab.theory.excess_risk import _arguments as arguments
from boundlab.theory.excess_risk._counts import count
from boundlab.theory.excess_risk.equivalent import filters, solve_effective_ridge
from boundlab.theory.excess_risk.mean_field import tail_average_moments
from boundlab.theory.excess_risk.relu_gap import gap
from boundlab.theory.excess_risk.ridge import ridge_profile
from boundlab.theory.excess_risk.stability import stable_step_size
from boundlab.typing import Numbers, Scalar


@float64
def excess_risk(norm_sq: Numbers, norm_star_sq: Numbers, cosine: Numbers) -> Float[Array, "..."]:
    """Excess risk of a ReLU neuron in closed form.

    R = ½a² + ½b² − (ab/π)(sin φ + (π−φ) cos φ), computed as ½(a−b)² + ab·g(cos φ) with
    g = (1 − cos φ) − (sin φ − φ cos φ)/π, which keeps its relative precision as θ → θ*.

    Args:
        norm_sq: a² ≥ 0, any shape.
        norm_star_sq: b² ≥ 0, any shape; the three broadcast.
        cosine: cos φ in [−1, 1] (10⁻⁹ beyond is taken for rounding); of no effect where a or b is
            0, but finite.

    Returns:
        R in the broadcast shape, between ¼ and ½ of a² + b² − 2ab cos φ = ‖θ−θ*‖²_M; exactly 0 at
        a = b, cos φ = 1. Derivatives are finite: where a or b is 0 the infinite one is replaced by
        that of ½(a² + b²).

    Raises:
        ValueError: an argument is out of range, or they don't broadcast; it is named.

    Source: derived (arc-cosine kernel of degree 1); used by wu2023relu.

    """
    check_number("norm_sq", norm_sq, 0.0)
    check_number("norm_star_sq", norm_star_sq, 0.0)
    check_number("cosine", cosine, -1.0 - 1e-9, 1.0 + 1e-9)
    values = [jnp.asarray(value, jnp.float64) for value in (norm_sq, norm_star_sq, cosine)]
    try:
        shape = jnp.broadcast_shapes(*(value.shape for value in values))
    except ValueError:
        shapes = ", ".join(str(value.shape) for value in values)
        raise fail(
            "norm_sq, norm_star_sq, cosine", f"shapes {shapes}", "shapes that broadcast"
        ) from None
    return gap(*(jnp.broadcast_to(value, shape) for value in values))


@float64
def glmtron_risk(
    mu: Numbers,
    theta_star: Numbers,
    noise_variance: Scalar,
    step_size: Scalar,
    num_samples: Scalar,
    tail_start: Scalar | None = None,
    theta0: Numbers | None = None,
) -> Float[Array, ""]:
    """Risk of the tail average of GLM-tron, in mean field.

    θ_{t+1} = θ_t − γ (ReLU(mᵀθ_t) − y) m, whose mean is exactly (I − γM/2)^t (θ_0 − θ*) + θ*. The
    second moments follow E[e² mmᵀ] by Stein's lemma at the mean a, b, φ of each step (mean field);
    R is the closed form at E‖θ̄‖²_M and E⟨θ̄, θ*⟩_M. Against simulation: within 3 %.

    Args:
        mu: eigenvalues of M, (d,), ≥ 0 and not all 0, in any order.
        theta_star: components of θ* in M's eigenbasis, with sign, (d,).
        noise_variance: σ² ≥ 0.
        step_size: γ in (0, stability_limit(mu)), in units of 1/μ (the limit is that of linear SGD:
            half the pull, half the noise).
        num_samples: N ≥ 1; N − 1 updates.
        tail_start: s in [0, N − 1]; `None` is N // 2.
        theta0: components of θ_0, (d,), with sign; `None` is 0.

    Returns:
        R = 2Δ of the tail average, a scalar.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived; the algorithm is that of wu2023relu.

    """
    return _mean_field(
        mu, theta_star, noise_variance, step_size, num_samples, tail_start, theta0, gated=False
    )


@float64
def relu_sgd_risk(
    mu: Numbers,
    theta_star: Numbers,
    noise_variance: Scalar,
    step_size: Scalar,
    num_samples: Scalar,
    tail_start: Scalar | None = None,
    theta0: Numbers | None = None,
) -> Float[Array, ""]:
    """Risk of the tail average of SGD on the ½-loss of a ReLU neuron, in mean field.

    θ_{t+1} = θ_t − γ (ReLU(mᵀθ_t) − y) 1[mᵀθ_t > 0] m. The derivative of ReLU at 0 is 0, so that
    θ_0 = 0 never moves: R = b²/2 for any γ and N. Otherwise as `glmtron_risk`, with the mean
    gradient M(Aθ − Bθ*), A = ½ − b sin φ/(2πa), B = (π−φ)/(2π), where a, b, φ are plugged in too.

    Args:
        mu: eigenvalues of M, (d,), ≥ 0 and not all 0, in any order.
        theta_star: components of θ* in M's eigenbasis, with sign, (d,).
        noise_variance: σ² ≥ 0.
        step_size: γ in (0, stability_limit(mu)), in units of 1/μ.
        num_samples: N ≥ 1; N − 1 updates.
        tail_start: s in [0, N − 1]; `None` is N // 2.
        theta0: components of θ_0, (d,), with sign; `None` is 0.

    Returns:
        R = 2Δ of the tail average, a scalar.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived; the algorithm is that of wu2023relu.

    """
    return _mean_field(
        mu, theta_star, noise_variance, step_size, num_samples, tail_start, theta0, gated=True
    )


@float64
def ridge_risk(
    mu: Numbers, theta_sq: Numbers, noise_variance: Scalar, ridge: Scalar, num_samples: Scalar
) -> Float[Array, ""]:
    """Risk of the ReLU neuron whose weights come from ridge regression on 2y.

    E[2y m] = Mθ*, so 2y is a linear response with the uncorrelated rest |mᵀθ*| + 2ε of mean square
    b² + 4σ². With bias and variance of `boundlab.theory.excess_risk.ridge.risk` at that noise:
    ab cos φ = Σp_i𝓛_i, a² = bias + var − b² + 2Σp_i𝓛_i, then the closed form. No intercept (with
    one, the rest would be b²(1 − 2/π) + 4σ²).

    Args:
        mu: eigenvalues of M, (d,), ≥ 0 and not all 0, in any order.
        theta_sq: squared components of θ* in M's eigenbasis, (d,), ≥ 0.
        noise_variance: σ² ≥ 0 of y (not of 2y).
        ridge: λ ≥ 0, un-normalised: ‖Fθ−2y‖² + λ‖θ‖².
        num_samples: N ≥ 1.

    Returns:
        R = 2Δ of ReLU(mᵀθ̂), a scalar; within 4 % of simulation away from N ≈ d at λ = 0, where it
        is infinite.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived.

    """
    eigenvalues = arguments.spectrum(mu)
    return _ridge_risk(
        eigenvalues,
        arguments.per_direction("theta_sq", theta_sq, eigenvalues),
        arguments.scalar("noise_variance", noise_variance),
        arguments.scalar("ridge", ridge),
        arguments.scalar("num_samples", count("num_samples", num_samples)),
    )


@jax.jit
def _ridge_risk(
    mu: Float[Array, " d"],
    theta_sq: Float[Array, " d"],
    noise_variance: Float[Array, ""],
    ridge: Float[Array, ""],
    num_samples: Float[Array, ""],
) -> Float[Array, ""]:
    power = mu * theta_sq
    norm_star_sq = jnp.sum(power)
    noise = 4 * noise_variance + norm_star_sq
    profile = ridge_profile(mu, theta_sq, noise, ridge, num_samples)
    distance_sq = jnp.sum(profile.bias) + jnp.sum(profile.variance)
    inner = jnp.sum(power * filters(mu, solve_effective_ridge(mu, ridge, num_samples)).learnt)
    finite = jnp.isfinite(distance_sq)
    norm_sq = jnp.where(finite, distance_sq, 0.0) - norm_star_sq + 2 * inner
    result = _at_moments(norm_sq, norm_star_sq, inner)
    return jnp.where(finite, result, jnp.inf)


def _at_moments(
    norm_sq: Float[Array, ""], norm_star_sq: Float[Array, ""], inner: Float[Array, ""]
) -> Float[Array, ""]:
    """The closed form at a², b² and ab cos φ."""
    norm_sq = jnp.maximum(norm_sq, 0.0)
    product = norm_sq * norm_star_sq
    some = product > 0
    return gap(
        norm_sq, norm_star_sq, jnp.where(some, inner / jnp.sqrt(jnp.where(some, product, 1.0)), 0.0)
    )


def _mean_field(
    mu: Numbers,
    theta_star: Numbers,
    noise_variance: Scalar,
    step_size: Scalar,
    num_samples: Scalar,
    tail_start: Scalar | None,
    theta0: Numbers | None,
    *,
    gated: bool,
) -> Float[Array, ""]:
    """Check the arguments, run the moments, and take the closed form at those of the average."""
    eigenvalues = arguments.spectrum(mu)
    noise = arguments.scalar("noise_variance", noise_variance)
    step = stable_step_size(step_size, eigenvalues)
    samples = count("num_samples", num_samples)
    tail = samples // 2 if tail_start is None else count("tail_start", tail_start, 0, samples - 1)
    teacher = _signed("theta_star", theta_star, eigenvalues)
    first = jnp.zeros_like(teacher) if theta0 is None else _signed("theta0", theta0, eigenvalues)
    moments = tail_average_moments(
        eigenvalues, teacher, noise, step, first, num_samples=samples, tail_start=tail, gated=gated
    )
    return _at_moments(*moments)


def _signed(name: str, value: Numbers, mu: Float[Array, " d"]) -> Float[Array, " d"]:
    check_shape(name, value, mu.shape, "one entry for each eigenvalue in mu")
    check_number(name, value)
    return jnp.asarray(value, jnp.float64)
