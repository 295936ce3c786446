"""Discretisation terms of the path bound on Gaussian modes, in closed form without cancellation.

For a step of length h = τ − t let v = v(τ), w = v(t), p = 1/v, g = v − 1, E = 1 − e^{−h}, G = e^h − 1,
q = p(1 − e^{−2h}), so that 1 − q = e^{−2h}w/v, and write R_k(x) = Σ_{j≥k} x^j/j for what is left of
−log(1 − x) after k − 1 terms. Then

* the exponential integrator has ∫E|score gap|² = p R₃(E) + ½R₂(q);
* Euler–Maruyama's drifts also differ by the position: the mean square of X_s − X_τ integrates to
  2R₂(E) − g R₃(−G), its product with the score gap to (1 − p)R₂(−G) − (1 + p)R₂(E).

To leading order these are h²p² and, together, h²(½ − p)². They are the differences of logarithms and
exponentials on the page of the study, rearranged: the terms of a step then have the size of the result.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.precision import float64
from boundlab.theory.graph_diffusion._gaussian_arguments import (
    eigenvalues_of,
    grid_of,
    log_remainder,
    modes_of,
    noised,
    number_of,
    span_of,
)
from boundlab.typing import Numbers, Scalar


class _Steps(NamedTuple):
    """Every step and mode."""

    length: Float[Array, "steps 1"]
    precision: Float[Array, "steps d"]
    excess: Float[Array, "steps d"]
    score_gap: Float[Array, "steps d"]
    shrink: Float[Array, "steps 1"]
    """R₂(E) = h − (1 − e^{−h})."""


@float64
def discretization_ei(eigenvalues: Numbers, times: Numbers) -> Float[Array, " d"]:
    """D_EI: discretisation term of the path bound for the exponential integrator, exact score.

    Σ_k ∫E|∇log q_t(X_t) − ∇log q_{t_k}(X_{t_k})|² dt over the steps
    = Σ_k {½ log[(e^{2t_k} + λ − 1)/(e^{2t_{k+1}} + λ − 1)] − c(h_k)/v(t_k)}, c(h) = 2(1 − e^{−h}) − h.
    KL(q_δ ‖ output) ≤ `initialization_kl` + D_EI.

    Args:
        eigenvalues: λ (d,) > 0 of the data covariance. All numbers may be traced.
        times: (N + 1,) strictly decreasing OU times ≥ 0, steps of at most 300. A traced grid may end in
            repetitions of its last time, which add nothing.

    Returns:
        (d,) in nats, with the ½ of the KL in; accurate to rounding for every length of step.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#discretisation.

    """
    return _exponential_integrator(eigenvalues_of(eigenvalues), grid_of(times))


@float64
def discretization_em(eigenvalues: Numbers, times: Numbers) -> Float[Array, " d"]:
    """D_EM: discretisation term of the path bound for Euler–Maruyama, exact score.

    ¼ Σ_k ∫E|d_t(X_t) − d_{t_k}(X_{t_k})|² dt with the reverse drift d_t(x) = x + 2∇log q_t(x) frozen over
    a step. D_EI is no bound for this scheme: at v = 2 this term vanishes to leading order, at large v it
    is h²/4 a step where that of the exponential integrator is h²/v².

    Args:
        eigenvalues: λ (d,) > 0 of the data covariance. All numbers may be traced.
        times: As for `discretization_ei`.

    Returns:
        (d,) in nats, with the ½ of the KL in.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#discretisation.

    """
    return _euler_maruyama(eigenvalues_of(eigenvalues), grid_of(times))


@float64
def discretization_with_score_error(
    eigenvalues: Numbers,
    times: Numbers,
    relative_score_error: Scalar = 0.0,
    score_bias: Numbers | None = None,
) -> Float[Array, " d"]:
    """Path term of the exponential integrator whose score is (1 + e)·score + b.

    D_EI + Σ_k {e²h + 2e[h − (1 − e^{−h})]}/v(t_k) + b²(T − δ): the score has mean 0, so that a constant
    bias has no cross term. Also with data whose mean isn't 0.

    Args:
        eigenvalues: λ (d,) > 0 of the data covariance. All numbers may be traced.
        times: As for `discretization_ei`.
        relative_score_error: e, one number.
        score_bias: b, None for 0, one number or (d,).

    Returns:
        (d,) in nats, with the ½ of the KL in.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#score-error.

    """
    modes, grid = eigenvalues_of(eigenvalues), grid_of(times)
    error = number_of("relative_score_error", relative_score_error)
    bias = modes_of("score_bias", score_bias, len(modes), scalar=True)
    return _with_error(modes, grid, error, bias)


@float64
def integrated_squared_precision(
    eigenvalues: Numbers, horizon: Scalar, early_stop: Scalar
) -> Float[Array, " d"]:
    """∫_δ^T v(t)^{−2} dt of each mode: D_EI ≈ h times it for small equal steps h.

    T − δ + ½ log(v(T)/v(δ)) + ½(1/v(δ) − 1/v(T)).

    Args:
        eigenvalues: λ (d,) > 0 of the data covariance. All numbers may be traced.
        horizon: T > δ, OU time.
        early_stop: δ ≥ 0.

    Returns:
        (d,), in units of time.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#diffusion-length.

    """
    modes = eigenvalues_of(eigenvalues)
    end, stop = span_of(horizon, early_stop)
    first, last = noised(modes, end), noised(modes, stop)
    return end - stop + 0.5 * (jnp.log(first) - jnp.log(last) + 1.0 / last - 1.0 / first)


def _steps_of(eigenvalues: Float[Array, " d"], times: Float[Array, " steps_1"]) -> _Steps:
    tau, t, h = times[:-1, None], times[1:, None], -jnp.diff(times)[:, None]
    v, w = noised(eigenvalues[None, :], tau), noised(eigenvalues[None, :], t)
    precision = 1.0 / v
    shrunk = -jnp.expm1(-h)
    q = -precision * jnp.expm1(-2.0 * h)
    log_rest = jnp.log(w) - jnp.log(v) - 2.0 * h
    score_gap = precision * log_remainder(shrunk, -h, 3) + 0.5 * log_remainder(q, log_rest, 2)
    excess = (eigenvalues[None, :] - 1.0) * jnp.exp(-2.0 * tau)
    return _Steps(h, precision, excess, score_gap, log_remainder(shrunk, -h, 2))


@jax.jit
def _exponential_integrator(
    eigenvalues: Float[Array, " d"], times: Float[Array, " steps_1"]
) -> Float[Array, " d"]:
    return jnp.sum(_steps_of(eigenvalues, times).score_gap, axis=0)


@jax.jit
def _euler_maruyama(
    eigenvalues: Float[Array, " d"], times: Float[Array, " steps_1"]
) -> Float[Array, " d"]:
    steps = _steps_of(eigenvalues, times)
    grown = jnp.expm1(steps.length)
    moved = 2.0 * steps.shrink - steps.excess * log_remainder(-grown, steps.length, 3)
    product = (1.0 - steps.precision) * log_remainder(-grown, steps.length, 2)
    product -= (1.0 + steps.precision) * steps.shrink
    return jnp.sum(0.25 * moved + product + steps.score_gap, axis=0)


@jax.jit
def _with_error(
    eigenvalues: Float[Array, " d"],
    times: Float[Array, " steps_1"],
    error: Float[Array, ""],
    bias: Float[Array, " d"],
) -> Float[Array, " d"]:
    steps = _steps_of(eigenvalues, times)
    scaled = steps.precision * (error**2 * steps.length + 2.0 * error * steps.shrink)
    return jnp.sum(steps.score_gap + scaled, axis=0) + bias**2 * (times[0] - times[-1])
