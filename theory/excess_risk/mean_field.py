"""First and second moments of two algorithms that learn a ReLU neuron, in mean field.

GLM-tron steps along e·m, SGD along e·1[u > 0]·m, with u = mᵀθ, v = mᵀθ*, e = ReLU(u) − ReLU(v) − ε.
Stein's lemma for m ~ N(0, M) gives, at given a, b and φ (all in M's inner product),

    mean step        E[·] = M (A θ − B θ*),
    mean square      E[·²] = F M + M (f_uu θθᵀ + f_uv (θθ*ᵀ + θ*θᵀ) + f_vv θ*θ*ᵀ) M,

where F is the mean square of the scalar factor and f_uu, f_uv, f_vv are the mean second
derivatives of that square in u and v. Mean field: a² = Σμ E θ_i² and ab cos φ = Σμ θ*_i E θ_i are
put for the random a and φ. In M's eigenbasis the diagonal then closes on itself.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.theory.excess_risk.relu_gap import angle, gap


class Step(NamedTuple):
    """The coefficients A, B, F, f_uu, f_uv, f_vv of the module's two equations."""

    own: Float[Array, ""]
    teacher: Float[Array, ""]
    square: Float[Array, ""]
    own_own: Float[Array, ""]
    own_teacher: Float[Array, ""]
    teacher_teacher: Float[Array, ""]


class Moments(NamedTuple):
    """Of one iterate: E θ, E θ²; with the running sum Σ: E Σ, E Σθ, E Σ², each (d,)."""

    mean: Float[Array, " d"]
    square: Float[Array, " d"]
    sum_mean: Float[Array, " d"]
    sum_product: Float[Array, " d"]
    sum_square: Float[Array, " d"]


class AverageMoments(NamedTuple):
    """E‖θ̄‖²_M, ‖θ*‖²_M and E⟨θ̄, θ*⟩_M."""

    norm_sq: Float[Array, ""]
    norm_star_sq: Float[Array, ""]
    inner: Float[Array, ""]


def step_coefficients(
    norm_sq: Float[Array, ""],
    norm_star_sq: Float[Array, ""],
    inner: Float[Array, ""],
    noise_variance: Float[Array, ""],
    gated: bool,
) -> Step:
    """Coefficients at a², b² and ab cos φ; `gated` is SGD, with the factor 1[u > 0]."""
    moved, taught = norm_sq > 0, norm_star_sq > 0
    norm = jnp.sqrt(jnp.where(moved, norm_sq, 1.0))
    norm_star = jnp.sqrt(jnp.where(taught, norm_star_sq, 1.0))
    both = moved & taught
    cosine = jnp.clip(jnp.where(both, inner / (norm * norm_star), 0.0), -1.0, 1.0)
    # At cos φ = ±1 the angle is put in by hand: the derivative of arccos is infinite there.
    sine_sq = (1 - cosine) * (1 + cosine)
    curved = sine_sq > 0
    sine = jnp.where(curved, jnp.sqrt(jnp.where(curved, sine_sq, 1.0)), 0.0)
    # π − φ over π, and the two ratios b sin φ/(πa), a sin φ/(πb); 0 where there is no angle.
    phi = jnp.where(
        curved, angle(jnp.where(curved, cosine, 0.0)), jnp.where(cosine > 0, 0.0, jnp.pi)
    )
    overlap = (jnp.pi - phi) / jnp.pi
    by_own = jnp.where(both, norm_star * sine / (jnp.pi * norm), 0.0)
    by_teacher = jnp.where(both, norm * sine / (jnp.pi * norm_star), 0.0)
    if not gated:
        half = jnp.full_like(norm_sq, 0.5)
        return Step(
            own=half,
            teacher=half,
            square=noise_variance + gap(norm_sq, norm_star_sq, cosine),
            own_own=1 - by_own,
            own_teacher=-overlap,
            teacher_teacher=1 - by_teacher,
        )
    product = jnp.where(both, norm * norm_star, 0.0)
    error = 0.5 * norm_sq - product / jnp.pi * (sine + (jnp.pi - phi) * cosine)
    error += norm_star_sq / (2 * jnp.pi) * ((jnp.pi - phi) + sine * cosine)
    tilt = jnp.where(both, norm_star * cosine / norm, 0.0)
    step = Step(
        own=0.5 * (1 - by_own),
        teacher=0.5 * overlap,
        square=0.5 * noise_variance + error,
        own_own=1 - by_own * (1 + tilt),
        own_teacher=by_own - overlap,
        teacher_teacher=overlap - by_teacher,
    )
    # The gate is shut at θ = 0.
    return Step(*(jnp.where(moved, value, 0.0) for value in step))


@functools.partial(jax.jit, static_argnames=("num_samples", "tail_start", "gated"))
def tail_average_moments(
    mu: Float[Array, " d"],
    theta_star: Float[Array, " d"],
    noise_variance: Float[Array, ""],
    step_size: Float[Array, ""],
    theta0: Float[Array, " d"],
    *,
    num_samples: int,
    tail_start: int,
    gated: bool,
) -> AverageMoments:
    """Moments of the mean of θ_s … θ_{N−1} from one scan over the N − 1 updates."""
    norm_star_sq = jnp.sum(mu * theta_star**2)
    scaled = step_size * mu

    def update(now: Moments, t: Array) -> tuple[Moments, None]:
        norm_sq = jnp.sum(mu * now.square)
        inner = jnp.sum(mu * theta_star * now.mean)
        step = step_coefficients(norm_sq, norm_star_sq, inner, noise_variance, gated)
        kept, given = 1 - scaled * step.own, scaled * step.teacher * theta_star
        correction = step.own_own * now.square + step.teacher_teacher * theta_star**2
        correction += 2 * step.own_teacher * theta_star * now.mean
        noise = step_size * scaled * step.square + scaled**2 * correction
        pull = now.square * (1 - 2 * scaled * step.own) + 2 * given * now.mean
        # θ_t joins the sum before it moves on.
        inside = (t >= tail_start).astype(mu.dtype)
        sum_mean = now.sum_mean + inside * now.mean
        sum_product = now.sum_product + inside * now.square
        return Moments(
            mean=kept * now.mean + given,
            square=pull + noise,
            sum_mean=sum_mean,
            sum_product=kept * sum_product + given * sum_mean,
            sum_square=now.sum_square + inside * (2 * now.sum_product + now.square),
        ), None

    zero = jnp.zeros_like(theta0)
    start = Moments(theta0, theta0**2, zero, zero, zero)
    last, _ = jax.lax.scan(update, start, jnp.arange(num_samples))
    count = num_samples - tail_start
    return AverageMoments(
        norm_sq=jnp.sum(mu * last.sum_square) / count**2,
        norm_star_sq=norm_star_sq,
        inner=jnp.sum(mu * theta_star * last.sum_mean) / count,
    )
