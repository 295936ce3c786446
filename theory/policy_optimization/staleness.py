"""SGD whose gradients are τ updates old, on a quadratic: stability, stationary law, gradient correlation.

One mode of curvature λ and step size η, the step a = ηλ:

    g_t = λ x_{t−τ} + ξ_t,    x_{t+1} = x_t − η g_t,    ξ_t independent, mean 0, variance σ².

All follows from the angle θ of the step, a = 2 sin(θ/2), and what is left of it to the edge of stability,
ψ = (2τ+1)(θ_c − θ)/4 with θ_c = π/(2τ+1). Moments are those of the stationary law, which exists for
0 < a < a_c. Correlations are of whole gradients, noise included, around their mean, which is 0.
"""

import functools
import math
from decimal import Decimal, localcontext
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_integer, check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.typing import Count, Numbers, Scalar

# Delays up to here leave (2τ + 1)θ its digits.
LONGEST = 10**9
# From here on the half of a step has all its digits, too.
LEAST = 4 * float(np.finfo(np.float64).tiny)
PI = Decimal("3.14159265358979323846264338327950288419716939937510")


class _Edge(NamedTuple):
    """The edge of stability of one delay."""

    half_sine: np.float64
    """sin(θ_c/2) = a_c/2, rounded."""
    rest: np.float64
    """What `half_sine` lacks of the true value."""
    half_cosine: np.float64
    """cos(θ_c/2)."""
    turns: np.float64
    """τ + ½."""


class _Angles(NamedTuple):
    half_sine: Float[Array, "*shape"]
    """sin(θ/2) = a/2."""
    half_cosine: Float[Array, "*shape"]
    """cos(θ/2)."""
    theta: Float[Array, "*shape"]
    psi: Float[Array, "*shape"]
    """ψ > 0, to full relative precision however near the edge the step is."""


@float64
def delayed_sgd_limit(delay: Count) -> Float[Array, ""]:
    """Step a_c at which delayed gradient descent on a quadratic stops being stable:

        a_c = 2 sin(π/(2(2τ+1))),

    so η < a_c/λ_max. At τ = 0 the familiar 2, at τ = 1 one half of it, then about π/(2τ).

    Args:
        delay: τ ≥ 0, static: how many updates old the parameters of a gradient are.

    Returns:
        a_c, without a unit.

    Raises:
        ValueError: `delay` is out of range.

    Source: derived, docs/policy_optimization.md#delayed-gradients.

    """
    return jnp.asarray(_limit(_delay(delay)), jnp.float64)


@float64
def oscillation_limit(delay: Count) -> Float[Array, ""]:
    """Step up to which delayed gradient descent on a quadratic can come in without oscillating:

        τ^τ/(τ+1)^{τ+1},

    where the two real modes of decay, τ/(τ+1) an update, meet. a_c over it tends to πe/2 = 4.27.

    Args:
        delay: τ ≥ 0, static.

    Returns:
        The step, without a unit: 1 at τ = 0, ¼ at τ = 1.

    Raises:
        ValueError: `delay` is out of range.

    Source: derived, docs/policy_optimization.md#delayed-gradients.

    """
    tau = _delay(delay)
    power = math.exp(-tau * math.log1p(1 / tau)) if tau else 1.0
    return jnp.asarray(power / (tau + 1), jnp.float64)


@float64
def gradient_autocorrelation(step: Numbers, delay: Count) -> Float[Array, "*shape"]:
    """Correlation of two consecutive noisy gradients of one mode, E g_t g_{t−1}/E g_t²:

        τ = 0: −a/2,    τ = 1: a/2,    τ ≥ 1: sin(θ/2) cos(ψ+θ)/sin(ψ+θ/2).

    With any delay it is at least a/2 and grows with a, to cos(π/(2τ+1)) at the edge of stability.

    Args:
        step: a = ηλ in (0, a_c), a number or an array, elementwise. May be traced; then a step outside
            gives NaN.
        delay: τ ≥ 0, static.

    Returns:
        The correlation, in the shape of `step`.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/policy_optimization.md#gradient-correlation.

    """
    tau, a = _step(step, delay)
    if tau <= 1:
        return _inside(a, _edge(tau), (-0.5 if tau == 0 else 0.5) * a)
    return _correlation(a, _edge(tau))


@float64
def gradient_second_moment(step: Numbers, delay: Count) -> Float[Array, "*shape"]:
    """E g²/σ² of one mode, the stationary second moment of a gradient over that of its noise:

        1 + tan(θ/2)/tan ψ,

    that is 1/(1 − aC_0/(2C_τ)) with C the autocovariance of x; 2/(2 − a) at τ = 0. It grows from 1 to
    infinity at the edge of stability.

    Args:
        step: a = ηλ in (0, a_c), a number or an array, elementwise. May be traced; then a step outside
            gives NaN.
        delay: τ ≥ 0, static.

    Returns:
        The ratio, in the shape of `step`.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/policy_optimization.md#gradient-correlation.

    """
    tau, a = _step(step, delay)
    return _second_moment(a, _edge(tau))


@float64
def autocovariance(step: Numbers, delay: Count, lag: Count) -> Float[Array, "*shape"]:
    """C_k/(ησ)² = E x_t x_{t−k}/(ησ)² of one mode, for lags up to the delay and one more:

        cos(ψ + kθ)/(2 sin θ sin ψ),    0 ≤ k ≤ τ + 1.

    Args:
        step: a = ηλ in (0, a_c), a number or an array, elementwise. May be traced; then a step outside
            gives NaN.
        delay: τ ≥ 0, static.
        lag: k from 0 to τ + 1, static.

    Returns:
        The covariance in units of (ησ)², in the shape of `step`.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/policy_optimization.md#gradient-correlation.

    """
    tau, a = _step(step, delay)
    k = check_integer("lag", lag, 0, tau + 1, why="delay + 1")
    return _covariance(a, _edge(tau), np.float64(k))


@float64
def parameter_variance(step: Numbers, delay: Count) -> Float[Array, "*shape"]:
    """E x²/(ησ)² of one mode: `autocovariance` at lag 0, cot ψ/(2 sin θ); 1/(a(2 − a)) at τ = 0.

    Args:
        step: a = ηλ in (0, a_c), a number or an array, elementwise. May be traced; then a step outside
            gives NaN.
        delay: τ ≥ 0, static.

    Returns:
        The variance in units of (ησ)², in the shape of `step`.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/policy_optimization.md#gradient-correlation.

    """
    return autocovariance(step, delay, 0)


@float64
def mixture_cosine(curvature: Numbers, step_size: Scalar, delay: Count) -> Float[Array, ""]:
    """E⟨g_t, g_{t−1}⟩/E‖g_t‖² of gradients over many modes with equal noise:

        Σ_i w_i ρ(a_i)/Σ_i w_i,    a_i = ηλ_i,

    ρ the `gradient_autocorrelation` and w the `gradient_second_moment` of each mode. The mean of the
    cosine of g_t and g_{t−1} is this up to O(1/d).

    Args:
        curvature: λ (d,), positive. May be traced.
        step_size: η > 0 with η·max λ < a_c, one number. May be traced; a step outside gives NaN where
            either is traced.
        delay: τ ≥ 0, static.

    Returns:
        The ratio.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/policy_optimization.md#gradient-correlation.

    """
    tau = _delay(delay)
    check_shape("curvature", curvature, (None,), "one entry a mode")
    check_number("curvature", curvature, 0, low_open=True)
    check_shape("step_size", step_size, (), "one number")
    check_number("step_size", step_size, 0, low_open=True)
    limit = _limit(tau)
    if not is_traced(curvature, step_size):
        largest = float(np.asarray(step_size)) * float(np.max(np.asarray(curvature)))
        if not largest < limit:
            accepted = f"below {limit / float(np.max(np.asarray(curvature))):.6g}"
            raise fail("step_size", step_size, f"{accepted} (a_c/max curvature)")
    modes = jnp.asarray(curvature).astype(jnp.float64)
    size = jnp.asarray(step_size).astype(jnp.float64)
    # A product that underflows is a mode of noise alone.
    least = jnp.where((modes > 0.0) & (size > 0.0), LEAST, -jnp.inf)
    steps = jnp.maximum(size * modes, least)
    weights = gradient_second_moment(steps, tau)
    # Weights grow without bound at the edge: their shares don't.
    shares = weights / jnp.max(weights)
    return jnp.sum(shares * gradient_autocorrelation(steps, tau)) / jnp.sum(shares)


def _delay(delay: Any) -> int:
    return check_integer("delay", delay, 0, LONGEST)


def _limit(delay: int) -> float:
    return 2.0 * float(_edge(delay).half_sine)


def _step(step: Any, delay: Any) -> tuple[int, Float[Array, "*shape"]]:
    """The checked delay and step."""
    tau = _delay(delay)
    why = "the edge of stability at this delay"
    check_number("step", step, 0, _limit(tau), low_open=True, high_open=True, why=why)
    check_number("step", step, LEAST, why="smaller ones are taken for 0")
    return tau, jnp.asarray(step).astype(jnp.float64)


@jax.jit
def _correlation(step: Float[Array, "*shape"], edge: _Edge) -> Float[Array, "*shape"]:
    at = _angles(step, edge)
    value = at.half_sine * jnp.cos(at.psi + at.theta) / jnp.sin(at.psi + at.theta / 2)
    return _inside(step, edge, value)


@jax.jit
def _second_moment(step: Float[Array, "*shape"], edge: _Edge) -> Float[Array, "*shape"]:
    at = _angles(step, edge)
    return _inside(step, edge, 1.0 + at.half_sine / (at.half_cosine * jnp.tan(at.psi)))


@jax.jit
def _covariance(step: Float[Array, "*shape"], edge: _Edge, lag: Any) -> Float[Array, "*shape"]:
    at = _angles(step, edge)
    # cos(ψ + kθ), written from the other end: ψ = π/2 − (ψ + (τ + ½)θ).
    numerator = jnp.sin(at.psi + (edge.turns - lag) * at.theta)
    return _inside(step, edge, numerator / (4 * at.half_sine * at.half_cosine * jnp.sin(at.psi)))


def _inside(step: Float[Array, "*shape"], edge: Any, value: Any) -> Float[Array, "*shape"]:
    """NaN where a traced step is outside (0, a_c)."""
    return jnp.where((step > 0.0) & (step < 2.0 * edge.half_sine), value, jnp.nan)


def _angles(step: Float[Array, "*shape"], edge: Any) -> _Angles:
    sine = step / 2
    cosine = jnp.sqrt((1.0 - sine) * (1.0 + sine))
    # Sine of (θ_c − θ)/2 from the difference of the two sines, which keeps its digits near the edge.
    gap = ((edge.half_sine - sine) + edge.rest) * (edge.half_sine + sine)
    opening = gap / (edge.half_sine * cosine + edge.half_cosine * sine)
    closing = edge.half_cosine * cosine + edge.half_sine * sine
    psi = edge.turns * jnp.arctan2(opening, closing)
    return _Angles(sine, cosine, 2.0 * jnp.arctan2(sine, cosine), psi)


@functools.cache
def _edge(delay: int) -> _Edge:
    """a_c/2 = sin(π/(2(2τ+1))) by its series in 50 digits, as a float and what that float lacks."""
    with localcontext(prec=50):
        x = PI / (2 * (2 * delay + 1))
        total = term = x
        order = 1
        while abs(term) > Decimal("1e-45") * total:
            term *= -x * x / ((order + 1) * (order + 2))
            total, order = total + term, order + 2
        rounded = float(total)
        rest = float(total - Decimal(rounded))
    cosine = math.sin(math.pi * delay / (2 * delay + 1))
    return _Edge(*(np.float64(value) for value in (rounded, rest, cosine, delay + 0.5)))
