"""Risk of learning one ReLU neuron from Gaussian features m ~ N(0, M), y = ReLU(mᵀθ*) + ε.

Symbols: a² = θᵀMθ, b² = θ*ᵀMθ*, φ the angle between θ and θ* in M's inner product, μ_i eigenvalues
of M, σ² noise variance, γ step size, N samples, s first averaged iterate.

Conventions: every risk is R = E(ReLU(mᵀθ) − ReLU(mᵀθ*))², twice the excess of the ½-loss. One pass,
one fresh sample a step, iterates θ_0 … θ_{N−1} (N − 1 updates), tail average θ̄ = mean of θ_s … θ_{N−1}.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_integer, check_number, check_shape, fail
from boundlab.precision import float64
from boundlab.theory.excess_risk import _arguments as arguments
from boundlab.theory.excess_risk.equivalent import filters, solve_effective_ridge
from boundlab.theory.excess_risk.mean_field import tail_average_moments
from boundlab.theory.excess_risk.relu_gap import gap
from boundlab.theory.excess_risk.ridge import ridge_profile
from boundlab.theory.excess_risk.stability import stable_step_size
from boundlab.typing import Count, Numbers, Scalar

__all__ = ["excess_risk", "glmtron_risk", "relu_sgd_risk", "ridge_risk"]


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
    num_samples: Count,
    tail_start: Count | None = None,
    theta0: Numbers | None = None,
) -> Float[Array, ""]:
    """Risk of the tail average of GLM-tron, in mean field.

    θ_{t+1} = θ_t − γ (ReLU(mᵀθ_t) − y) m. In M's eigenbasis let p_i = E θ_i and q_i = E θ_i² (at
    t = 0: θ_{0,i} and θ_{0,i}²), and at each step a² = Σμ_i q_i, b² = Σμ_i θ*_i²,
    ab cos φ = Σμ_i p_i θ*_i (cos φ cut to [−1, 1]). Then (index i left out, new from old)

        p ← (1 − γμA) p + γμB θ*,
        q ← (1 − 2γμA) q + 2γμB θ*p + γ²μ F + γ²μ² (f_uu q + 2 f_uv θ*p + f_vv θ*²),

    A = B = ½, F = σ² + ½a² + ½b² − (ab/π)(sin φ + (π−φ) cos φ), f_uu = 1 − b sin φ/(πa),
    f_uv = −(π−φ)/π, f_vv = 1 − a sin φ/(πb). If a = 0 or b = 0: φ = π/2 and both ratios are 0. The
    mean is exact, p = θ* + (1 − γμ/2)^t (θ_0 − θ*); q is a mean field (a, φ for the random ones).

    The average θ̄ of θ_s … θ_{N−1}, n = N − s, is carried by S1 = E Σ, S2 = E Σ², C = E[Σ θ_t], Σ the
    running sum of direction i: all 0 until t = s; then each t, with the p, q, A, B of θ_t,

        S2 ← S2 + 2C + q,    S1 ← S1 + p,    C ← (1 − γμA)(C + q) + γμB θ* S1 (the new S1).

    R is `excess_risk` at ā² = E‖θ̄‖²_M = Σμ_i S2_i/n², b² and āb cos φ̄ = Σμ_i θ*_i S1_i/n. Against
    simulation: within 3 %. Derivation: docs/excess_risk.md#relu-teachers.

    Args:
        mu: eigenvalues of M, (d,), ≥ 0 and not all 0, in any order.
        theta_star: components of θ* in M's eigenbasis, with sign, (d,).
        noise_variance: σ² ≥ 0.
        step_size: γ in (0, stability_limit(mu)), in units of 1/μ (the limit is that of linear SGD:
            half the pull, half the noise).
        num_samples: N ≥ 1, static Python or NumPy int; N − 1 updates.
        tail_start: s in [0, N − 1], static Python or NumPy int; `None` is N // 2.
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
    num_samples: Count,
    tail_start: Count | None = None,
    theta0: Numbers | None = None,
) -> Float[Array, ""]:
    """Risk of the tail average of SGD on the ½-loss of a ReLU neuron, in mean field.

    θ_{t+1} = θ_t − γ (ReLU(mᵀθ_t) − y) 1[mᵀθ_t > 0] m. The recursions of p, q, S1, S2, C and the
    closed form at the end are those of `glmtron_risk`, with other coefficients:

        A = ½ − b sin φ/(2πa),    B = (π−φ)/(2π),
        F = ½σ² + ½a² − (ab/π)(sin φ + (π−φ) cos φ) + (b²/(2π))((π−φ) + sin φ cos φ),
        f_uu = 1 − (b sin φ/(πa))(1 + b cos φ/a),
        f_uv = b sin φ/(πa) − (π−φ)/π,    f_vv = (π−φ)/π − a sin φ/(πb).

    If a = 0 all six are 0, since the derivative of ReLU at 0 is 0: θ_0 = 0 never moves, and R = b²/2
    for any γ and N. If b = 0: φ = π/2, the ratios with b or 1/b are 0. Here the mean p is a mean
    field too. Against simulation: within 3 %. Derivation: docs/excess_risk.md#relu-teachers.

    Args:
        mu: eigenvalues of M, (d,), ≥ 0 and not all 0, in any order.
        theta_star: components of θ* in M's eigenbasis, with sign, (d,).
        noise_variance: σ² ≥ 0.
        step_size: γ in (0, stability_limit(mu)), in units of 1/μ.
        num_samples: N ≥ 1, static Python or NumPy int; N − 1 updates.
        tail_start: s in [0, N − 1], static Python or NumPy int; `None` is N // 2.
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
    mu: Numbers, theta_sq: Numbers, noise_variance: Scalar, ridge: Scalar, num_samples: Count
) -> Float[Array, ""]:
    """Risk of the ReLU neuron whose weights come from ridge regression on 2y.

    E[2y m] = Mθ*, so 2y is a linear response with the uncorrelated rest |mᵀθ*| + 2ε of mean square
    b² + 4σ². With bias and variance of `boundlab.theory.excess_risk.ridge.risk` at that noise:
    ab cos φ = Σp_i𝓛_i, a² = bias + var − b² + 2Σp_i𝓛_i, then the closed form. No intercept (with
    one, the rest would be b²(1 − 2/π) + 4σ²).

    The rest is uncorrelated with m but not independent: E[(mᵀθ*)² mmᵀ] = b²M + 2Mθ*θ*ᵀM, so that its
    share of the variance is nearer b²(df2+2)/N than b²df2/N. The formula asks for df2 = Σ𝓛_i² ≫ 2;
    below that R is too low, for N ≫ d at λ = 0 by 2b²/((d+2)b² + 4dσ²) of itself.

    Args:
        mu: eigenvalues of M, (d,), ≥ 0 and not all 0, in any order.
        theta_sq: squared components of θ* in M's eigenbasis, (d,), ≥ 0.
        noise_variance: σ² ≥ 0 of y (not of 2y).
        ridge: λ ≥ 0, un-normalised: ‖Fθ−2y‖² + λ‖θ‖².
        num_samples: N ≥ 1, static Python or NumPy int.

    Returns:
        R = 2Δ of ReLU(mᵀθ̂), a scalar, infinite at N = d, λ = 0. Measured away from there (μ flat,
        λ = 0, σ² = b²/4): too low by 11–15 % at d = 6, N = 24 … 384, by 3 % at d = 24, N = 96, by
        less than 1 % at d = 64, N = 256; at σ² = 0 by 17–25 %, 5 % and 2 %.

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
        arguments.scalar("num_samples", check_integer("num_samples", num_samples, 1)),
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
    num_samples: Count,
    tail_start: Count | None,
    theta0: Numbers | None,
    *,
    gated: bool,
) -> Float[Array, ""]:
    """Check the arguments, run the moments, and take the closed form at those of the average."""
    eigenvalues = arguments.spectrum(mu)
    noise = arguments.scalar("noise_variance", noise_variance)
    step = stable_step_size(step_size, eigenvalues)
    samples, tail = arguments.tail(num_samples, tail_start)
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
