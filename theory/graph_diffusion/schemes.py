"""Exact law of discretised reverse samplers on Gaussian modes.

The data are N(μ₀, λ) in each mode, dX = −X dt + √2 dW, v(t) = 1 + (λ − 1)e^{−2t}, score
−(x − e^{−t}μ₀)/v(t). A step from τ down to t, h = τ − t, is y' = A y + B s(y) + N(0, Q), so the law stays
Gaussian and its mean and variance obey a recursion [pierret2025diffusion].
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_choice, check_number, fail
from boundlab.precision import float64, is_traced
from boundlab.theory.graph_diffusion._gaussian_arguments import (
    LONGEST_STEP,
    eigenvalues_of,
    grid_of,
    modes_of,
    noised,
    number_of,
    span_of,
    stretched,
)
from boundlab.typing import Numbers, Scalar

SCHEMES = ("exponential_integrator", "euler_maruyama", "ancestral", "probability_flow")


@float64
def step_coefficients(
    scheme: str, tau: Numbers, t: Numbers
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"], Float[Array, "*shape"]]:
    """Coefficients A, B, Q of a step y' = A y + B s(y, τ) + N(0, Q) from τ down to t in OU time.

    With h = τ − t, a = e^{−2h}, σ_t² = 1 − e^{−2t}:

    * `exponential_integrator`: e^h, 2(e^h − 1), e^{2h} − 1;
    * `euler_maruyama`: 1 + h, 2h, 2h;
    * `ancestral`: a^{−½}, (1 − a)a^{−½}, (1 − a)σ_t²/σ_τ²;
    * `probability_flow` (Euler on the ordinary differential equation): 1 + h, h, 0.

    Args:
        scheme: one of the four.
        tau: where the step starts, in OU time; one number or an array. May be traced, as t may.
        t: where it ends, 0 ≤ t < τ, of the shape of `tau` or one number; steps of at most 300.

    Returns:
        (A, B, Q), each of the common shape; Q is a variance.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#discretisation.

    """
    check_choice("scheme", scheme, SCHEMES)
    check_number("tau", tau, 0, low_open=True)
    check_number("t", t, 0)
    start, end = stretched(tau=tau, t=t)
    if not is_traced(tau, t):
        length = np.asarray(tau, np.float64) - np.asarray(t, np.float64)
        if not (length > 0).all():
            raise fail("t", t, f"times below tau = {tau}")
        if (length > LONGEST_STEP).any():
            raise fail("t", t, f"steps of at most {LONGEST_STEP:g}")
    return _coefficients(scheme, start, end)


def _coefficients(
    scheme: str, tau: Float[Array, "*shape"], t: Float[Array, "*shape"]
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"], Float[Array, "*shape"]]:
    h = tau - t
    if scheme == "exponential_integrator":
        return jnp.exp(h), 2.0 * jnp.expm1(h), jnp.expm1(2.0 * h)
    if scheme == "euler_maruyama":
        return 1.0 + h, 2.0 * h, 2.0 * h
    if scheme == "probability_flow":
        return 1.0 + h, h, jnp.zeros_like(h)
    removed = -jnp.expm1(-2.0 * h)
    ratio = jnp.expm1(-2.0 * t) / jnp.expm1(-2.0 * tau)
    return jnp.exp(h), removed * jnp.exp(h), removed * ratio


@float64
def reverse_moments(
    eigenvalues: Numbers,
    times: Numbers,
    scheme: str,
    relative_score_error: Scalar = 0.0,
    score_bias: Numbers | None = None,
    mean: Numbers | None = None,
) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
    """Mean and variance of what the sampler returns at times[−1], started from N(0, 1) at times[0].

    With the score (1 + e)·score + b the step's factor is a = A − B(1 + e)/v(τ), and

        m' = a m + B[(1 + e)e^{−τ}μ₀/v(τ) + b],   u' = a²u + Q,   m = 0 and u = 1 at the start.

    Args:
        eigenvalues: λ (d,) > 0 of the data covariance. All numbers may be traced.
        times: (N + 1,) strictly decreasing OU times ≥ 0, steps of at most 300. A traced grid may end in
            repetitions of its last time, which change nothing.
        scheme: one of `step_coefficients`.
        relative_score_error: e, by which the score is too large.
        score_bias: b, None for 0, one number or (d,); added after the factor.
        mean: μ₀ (d,) of the data in the modes' basis, None for 0.

    Returns:
        (mean (d,), variance (d,)), to be held against e^{−t}μ₀ and `noised_variance` at t = times[−1].

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#discretisation and #score-error.

    """
    check_choice("scheme", scheme, SCHEMES)
    modes, grid = eigenvalues_of(eigenvalues), grid_of(times)
    factor = 1.0 + number_of("relative_score_error", relative_score_error)
    bias = modes_of("score_bias", score_bias, len(modes), scalar=True)
    return _moments(modes, grid, factor, bias, modes_of("mean", mean, len(modes)), scheme)


def _moments_of(
    eigenvalues: Float[Array, " d"],
    times: Float[Array, " steps_1"],
    factor: Float[Array, ""],
    bias: Float[Array, " d"],
    mean: Float[Array, " d"],
    scheme: str,
) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
    tau, t = times[:-1], times[1:]
    moving = tau > t
    # A repeated time at the end of a traced grid: no division 0/0, and an exact identity.
    linear, score, noise = _coefficients(
        scheme, jnp.where(moving, tau, 1.0), jnp.where(moving, t, 0.5)
    )
    steps = (
        jnp.where(moving, linear, 1.0),
        jnp.where(moving, score, 0.0),
        jnp.where(moving, noise, 0.0),
        jnp.exp(-tau),
        jnp.exp(-2.0 * tau),
        -jnp.expm1(-2.0 * tau),
    )

    def step(
        law: tuple[Float[Array, " d"], Float[Array, " d"]], given: tuple[Float[Array, ""], ...]
    ) -> tuple[tuple[Float[Array, " d"], Float[Array, " d"]], None]:
        linear, score, noise, decay, decay_sq, added = given
        m, u = law
        slope = score * factor / (eigenvalues * decay_sq + added)
        a = linear - slope
        return (a * m + slope * decay * mean + score * bias, a**2 * u + noise), None

    start = (jnp.zeros_like(eigenvalues), jnp.ones_like(eigenvalues))
    return jax.lax.scan(step, start, steps)[0]


_moments = jax.jit(_moments_of, static_argnums=5)


@float64
def noised_variance(eigenvalues: Numbers, t: Scalar) -> Float[Array, " d"]:
    """Variance v(t) = 1 + (λ − 1)e^{−2t} of the noised modes.

    Args:
        eigenvalues: λ (d,) > 0. All numbers may be traced.
        t: OU time ≥ 0.

    Returns:
        v (d,).

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#setting.

    """
    return noised(eigenvalues_of(eigenvalues), number_of("t", t, 0))


@float64
def reverse_sde_variance(
    eigenvalues: Numbers, horizon: Scalar, early_stop: Scalar
) -> Float[Array, " d"]:
    """Variance at δ of the reverse SDE itself, no steps, begun at N(0, 1) instead of q_T.

    u = v(δ) + (1 − v(T)) e^{−2(T−δ)} (v(δ)/v(T))²: it forgets its start, the error of the variance is of
    order e^{−4T} and the KL of order e^{−8T}.

    Args:
        eigenvalues: λ (d,) > 0. All numbers may be traced.
        horizon: T > δ, OU time.
        early_stop: δ ≥ 0.

    Returns:
        u (d,).

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#initialisation.

    """
    modes = eigenvalues_of(eigenvalues)
    end, stop = span_of(horizon, early_stop)
    last, first = noised(modes, stop), noised(modes, end)
    # Error of the start, 1 − v(T), carried by the square of the flow's factor.
    return last - (modes - 1.0) * jnp.exp(-2.0 * end) * (jnp.exp(stop - end) * last / first) ** 2


@float64
def probability_flow_variance(
    eigenvalues: Numbers, horizon: Scalar, early_stop: Scalar
) -> Float[Array, " d"]:
    """Variance v(δ)/v(T) at δ of the probability-flow ODE itself, no steps, begun at N(0, 1).

    The flow is a bijection: it keeps all of the KL of its start, KL(q_T ‖ N(0, 1)).

    Args:
        eigenvalues: λ (d,) > 0. All numbers may be traced.
        horizon: T > δ, OU time.
        early_stop: δ ≥ 0.

    Returns:
        (d,) variances.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#initialisation.

    """
    modes = eigenvalues_of(eigenvalues)
    end, stop = span_of(horizon, early_stop)
    return noised(modes, stop) / noised(modes, end)
