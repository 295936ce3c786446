"""Linear stochastic differential equations of score-based models: forward, reverse, probability flow.

dx = f(t) x dt + g(t) dW, so that given x_0 the law of x_t is N(m(t) x_0, σ²(t) I). Symbols: β(t) noise
rate, B(t) = ∫_0^t β; f `drift_coefficient`, g `diffusion` (g, not g²), m `mean_coefficient`, σ²
`variance`.

| SDE | f | g² | m | σ² |
| --- | --- | --- | --- | --- |
| OU | −1 | 2 | e^{−t} | 1 − e^{−2t} |
| VP | −β/2 | β | e^{−B/2} | 1 − e^{−B} |
| sub-VP | −β/2 | β(1 − e^{−2B}) | e^{−B/2} | (1 − e^{−B})² |
| VE | 0 | 2 log(s₁/s₀) σ² | 1 | s₀²(s₁/s₀)^{2t} |

with β(t) = β₀ + (β₁ − β₀)t [song2021score; jo2022score]. The σ² of VE is the one in use there: the
kernel's own variance from t = 0 is σ²(t) − s₀², as if the data already carried noise of variance s₀².
VP is OU with the clock t → B/2. Each SDE is a pytree: its parameters may be traced.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from boundlab.checks import check_number, check_shape, fail
from boundlab.precision import is_traced
from boundlab.typing import Numbers, Scalar


class VP(NamedTuple):
    """Variance-preserving SDE, see `vp`."""

    beta_min: Any
    beta_max: Any

    def rate(self, t: Numbers) -> jax.Array:
        """β(t)."""
        t = _time(t)
        low, high = _parameters(self, t)
        return low + (high - low) * t

    def integrated_rate(self, t: Numbers, start: Numbers = 0.0) -> jax.Array:
        """∫ β from `start` to `t`, without the cancellation of B(t) − B(start)."""
        t = _time(t)
        start = _time(start).astype(t.dtype)
        low, high = _parameters(self, t)
        return (t - start) * (low + (high - low) * (t + start) / 2)

    def drift_coefficient(self, t: Numbers) -> jax.Array:
        """f(t) = −β/2."""
        return -self.rate(t) / 2

    def diffusion(self, t: Numbers) -> jax.Array:
        """g(t) = √β."""
        return jnp.sqrt(self.rate(t))

    def mean_coefficient(self, t: Numbers) -> jax.Array:
        """m(t) = e^{−B/2}."""
        return jnp.exp(-self.integrated_rate(t) / 2)

    def variance(self, t: Numbers) -> jax.Array:
        """σ²(t) = 1 − e^{−B}."""
        return -jnp.expm1(-self.integrated_rate(t))


class SubVP(NamedTuple):
    """Sub-variance-preserving SDE, see `sub_vp`."""

    beta_min: Any
    beta_max: Any

    def rate(self, t: Numbers) -> jax.Array:
        """β(t)."""
        return VP(*self).rate(t)

    def integrated_rate(self, t: Numbers, start: Numbers = 0.0) -> jax.Array:
        """∫ β from `start` to `t`."""
        return VP(*self).integrated_rate(t, start)

    def drift_coefficient(self, t: Numbers) -> jax.Array:
        """f(t) = −β/2."""
        return -self.rate(t) / 2

    def diffusion(self, t: Numbers) -> jax.Array:
        """g(t) = √(β(1 − e^{−2B}))."""
        return jnp.sqrt(self.rate(t) * -jnp.expm1(-2 * self.integrated_rate(t)))

    def mean_coefficient(self, t: Numbers) -> jax.Array:
        """m(t) = e^{−B/2}."""
        return jnp.exp(-self.integrated_rate(t) / 2)

    def variance(self, t: Numbers) -> jax.Array:
        """σ²(t) = (1 − e^{−B})²."""
        return jnp.expm1(-self.integrated_rate(t)) ** 2


class VE(NamedTuple):
    """Variance-exploding SDE, see `ve`."""

    sigma_min: Any
    sigma_max: Any

    def integrated_rate(self, t: Numbers, start: Numbers = 0.0) -> jax.Array:
        """0: nothing contracts."""
        t = _time(t)
        return jnp.zeros_like(t - _time(start).astype(t.dtype))

    def drift_coefficient(self, t: Numbers) -> jax.Array:
        """f(t) = 0."""
        return jnp.zeros_like(_time(t))

    def diffusion(self, t: Numbers) -> jax.Array:
        """g(t) = σ √(2 log(s₁/s₀))."""
        t = _time(t)
        low, high = _parameters(self, t)
        return jnp.sqrt(self.variance(t)) * jnp.sqrt(2 * jnp.log(high / low))

    def mean_coefficient(self, t: Numbers) -> jax.Array:
        """m(t) = 1."""
        return jnp.ones_like(_time(t))

    def variance(self, t: Numbers) -> jax.Array:
        """σ²(t) = s₀²(s₁/s₀)^{2t}."""
        t = _time(t)
        low, high = _parameters(self, t)
        return low**2 * jnp.exp(2 * t * jnp.log(high / low))


class OU(NamedTuple):
    """Ornstein–Uhlenbeck process, see `ou`."""

    def rate(self, t: Numbers) -> jax.Array:
        """β(t) = 2."""
        return jnp.full_like(_time(t), 2)

    def integrated_rate(self, t: Numbers, start: Numbers = 0.0) -> jax.Array:
        """2(t − start)."""
        t = _time(t)
        return 2 * (t - _time(start).astype(t.dtype))

    def drift_coefficient(self, t: Numbers) -> jax.Array:
        """f(t) = −1."""
        return jnp.full_like(_time(t), -1)

    def diffusion(self, t: Numbers) -> jax.Array:
        """g(t) = √2."""
        return jnp.sqrt(self.rate(t))

    def mean_coefficient(self, t: Numbers) -> jax.Array:
        """m(t) = e^{−t}."""
        return jnp.exp(-_time(t))

    def variance(self, t: Numbers) -> jax.Array:
        """σ²(t) = 1 − e^{−2t}."""
        return -jnp.expm1(-2 * _time(t))


SDE = VP | SubVP | VE | OU


def vp(beta_min: Scalar, beta_max: Scalar) -> VP:
    """Variance-preserving SDE dx = −(β/2) x dt + √β dW, β(t) = β₀ + (β₁ − β₀)t.

    Args:
        beta_min: β₀ ≥ 0, the rate at t = 0; may be traced.
        beta_max: β₁ ≥ β₀, above 0, the rate at t = 1; may be traced. B(1) = (β₀ + β₁)/2.

    Raises:
        ValueError: naming the argument.

    Source: [song2021score], as [jo2022score] uses it.

    """
    return VP(*_rates(beta_min, beta_max))


def sub_vp(beta_min: Scalar, beta_max: Scalar) -> SubVP:
    """Sub-VP SDE dx = −(β/2) x dt + √(β(1 − e^{−2B})) dW; arguments of `vp` [song2021score]."""
    return SubVP(*_rates(beta_min, beta_max))


def ve(sigma_min: Scalar, sigma_max: Scalar) -> VE:
    """Variance-exploding SDE dx = σ √(2 log(s₁/s₀)) dW, σ(t) = s₀(s₁/s₀)^t.

    Args:
        sigma_min: s₀ > 0, σ at t = 0; may be traced.
        sigma_max: s₁ > s₀, σ at t = 1; may be traced. Samplers start from N(0, I), which is near the
            law at t = 1 only if s₁ is 1 and the data are small; otherwise give them a `start`.

    Raises:
        ValueError: naming the argument.

    Source: [song2021score], as [jo2022score] uses it.

    """
    _check_scalar("sigma_min", sigma_min, low_open=True)
    _check_scalar("sigma_max", sigma_max, low_open=True)
    if not is_traced(sigma_min, sigma_max) and float(sigma_max) <= float(sigma_min):
        raise fail("sigma_max", sigma_max, f"above sigma_min = {sigma_min}")
    return VE(sigma_min, sigma_max)


def ou() -> OU:
    """Ornstein–Uhlenbeck process dx = −x dt + √2 dW: VP with β = 2, the clock of the theory."""
    return OU()


def perturb(sde: Any, x: Any, noise: Any, t: Numbers) -> jax.Array:
    """Forward: m(t) x + σ(t) · noise, of the law of x_t given x_0 = x if the noise is N(0, I).

    `t` is a scalar, or has the dimensions of `x`.
    """
    return sde.mean_coefficient(t) * x + jnp.sqrt(sde.variance(t)) * noise


def reverse_drift(sde: Any, x: Any, score: Any, t: Numbers) -> jax.Array:
    """Drift f x − g² score: dx = (…) dt + g dW, backwards in t, has the laws of the forward SDE."""
    return sde.drift_coefficient(t) * x - sde.diffusion(t) ** 2 * score


def probability_flow_drift(sde: Any, x: Any, score: Any, t: Numbers) -> jax.Array:
    """Drift f x − ½g² score: the ordinary differential equation with the same laws at every t."""
    return sde.drift_coefficient(t) * x - sde.diffusion(t) ** 2 / 2 * score


def _rates(beta_min: Scalar, beta_max: Scalar) -> tuple[Scalar, Scalar]:
    _check_scalar("beta_min", beta_min)
    _check_scalar("beta_max", beta_max, low_open=True)
    if not is_traced(beta_min, beta_max) and float(beta_max) < float(beta_min):
        raise fail("beta_max", beta_max, f"at least beta_min = {beta_min}")
    return beta_min, beta_max


def _check_scalar(name: str, value: Scalar, *, low_open: bool = False) -> None:
    check_shape(name, value, ())
    check_number(name, value, 0, low_open=low_open)


def _time(t: Numbers) -> jax.Array:
    """Times as a floating-point array; concrete ones are checked."""
    check_number("t", t, 0)
    t = jnp.asarray(t)
    return t if jnp.issubdtype(t.dtype, jnp.floating) else t.astype(jnp.result_type(float))


def _parameters(sde: Any, t: jax.Array) -> tuple[jax.Array, ...]:
    """The SDE's parameters in the precision of `t`."""
    return tuple(jnp.asarray(value).astype(t.dtype) for value in sde)
