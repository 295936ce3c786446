"""One step of each sampler as three numbers, and the Langevin corrector's step size.

A step from τ down to t is y' = A y + B s(y, τ) + N(0, Q) for the SDE dx = f x dt + g dW; h = τ − t,
Δ = ∫_t^τ β, so that −∫f = Δ/2 (0 for VE), and a = e^{−Δ/2}.

| scheme | A | B | Q |
| --- | --- | --- | --- |
| exponential_integrator | 1/a | ∫_t^τ e^{−∫_t^r f} g² dr | ∫_t^τ e^{−2∫_t^r f} g² dr |
| euler_maruyama | 1 − f(τ)h | g²(τ)h | g²(τ)h |
| ancestral | 1/a | q/a | q σ²(t)/σ²(τ) |
| probability_flow | 1 − f(τ)h | ½g²(τ)h | 0 |
| symmetric_splitting | 1/a | e^{½∫_t^μ β} ∫_t^τ g² | as the exponential integrator |

q = σ²(τ) − a²σ²(t) is the variance that the forward SDE adds between t and τ, μ = (τ + t)/2.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.models.sde import VE, SubVP
from boundlab.typing import Scalar

SCHEMES = (
    "exponential_integrator",
    "euler_maruyama",
    "ancestral",
    "probability_flow",
    "symmetric_splitting",
)


class Coefficients(NamedTuple):
    """A, B and √Q of each step, the time τ at which its score is taken, and α of the corrector."""

    linear: Float[Array, " steps"]
    score: Float[Array, " steps"]
    noise_std: Float[Array, " steps"]
    time: Float[Array, " steps"]
    alpha: Float[Array, " steps"]


def coefficients(scheme: str, sde: Any, times: Float[Array, " points"]) -> Coefficients:
    """Coefficients of the steps down `times`, in the precision of `times`."""
    tau, t = times[:-1], times[1:]
    h, delta = tau - t, sde.integrated_rate(tau, t)
    growth = jnp.exp(delta / 2)
    if scheme in ("euler_maruyama", "probability_flow"):
        linear = 1 - sde.drift_coefficient(tau) * h
        variance = sde.diffusion(tau) ** 2 * h
        score = variance if scheme == "euler_maruyama" else variance / 2
        noise = variance if scheme == "euler_maruyama" else jnp.zeros_like(variance)
    elif scheme == "ancestral":
        linear, added = growth, _added_variance(sde, tau, t, delta)
        score, noise = added * growth, added * _variance_ratio(sde, tau, t)
    else:
        linear = growth
        score, noise = _reverse_flow(sde, tau, t, delta)
        if scheme == "symmetric_splitting":
            score = jnp.exp(sde.integrated_rate((tau + t) / 2, t) / 2) * _energy(sde, tau, t, delta)
    return Coefficients(linear, score, jnp.sqrt(noise), tau, jnp.exp(-delta))


def _added_variance(sde: Any, tau: jax.Array, t: jax.Array, delta: jax.Array) -> jax.Array:
    """q, of the forward SDE between t and τ."""
    if isinstance(sde, VE):
        return sde.variance(tau) - sde.variance(t)
    lost = -jnp.expm1(-delta)
    if isinstance(sde, SubVP):
        return lost * -jnp.expm1(-2 * sde.integrated_rate(t) - delta)
    return lost


def _variance_ratio(sde: Any, tau: jax.Array, t: jax.Array) -> jax.Array:
    """σ²(t)/σ²(τ); 1 where no noise has come in by τ, as with a rate that starts from 0."""
    above, below = sde.variance(t), sde.variance(tau)
    return jnp.where(below > 0, above / jnp.where(below > 0, below, 1), 1)


def _reverse_flow(
    sde: Any, tau: jax.Array, t: jax.Array, delta: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """B and Q of the reverse SDE whose linear part and noise are exact, the score frozen."""
    if isinstance(sde, VE):
        added = _added_variance(sde, tau, t, delta)
        return added, added
    score, noise = 2 * jnp.expm1(delta / 2), jnp.expm1(delta)
    if isinstance(sde, SubVP):  # g² lacks the part βe^{−2B}
        lacking = jnp.exp(-2 * sde.integrated_rate(t))
        score = score + lacking * jnp.expm1(-3 * delta / 2) * 2 / 3
        noise = noise + lacking * jnp.expm1(-delta)
    return score, noise


def _energy(sde: Any, tau: jax.Array, t: jax.Array, delta: jax.Array) -> jax.Array:
    """∫_t^τ g²."""
    if isinstance(sde, VE):
        return sde.variance(tau) - sde.variance(t)
    if isinstance(sde, SubVP):
        return delta + jnp.exp(-2 * sde.integrated_rate(t)) * jnp.expm1(-2 * delta) / 2
    return delta


class Langevin(NamedTuple):
    """Corrector: `num_steps` times x ← x + a s + √(2a) · `scale` · z before each step of the scheme.

    a = 2α (`snr` · ‖z‖/‖s‖)² with norms of one sample averaged over the batch, s the score at the
    current point and time τ, z fresh noise, α = e^{−Δ}; a = 0 where the score vanishes. As in
    [jo2022score], but for α, there 1 − β/N, which is the same to first order.
    """

    snr: Any = 0.05
    scale: Any = 0.7
    num_steps: int = 1


def langevin_step(
    x: jax.Array, score: jax.Array, noise: jax.Array, alpha: Scalar, corrector: Langevin
) -> jax.Array:
    """One step of the corrector on a batch along the first axis."""
    size, strength = _mean_norm(score), _mean_norm(noise)
    ratio = jnp.where(size > 0, strength / jnp.where(size > 0, size, 1), 0)
    snr, scale = (jnp.asarray(value).astype(x.dtype) for value in corrector[:2])
    step = 2 * alpha * (snr * ratio) ** 2
    return x + step * score + jnp.sqrt(2 * step) * scale * noise


def _mean_norm(x: jax.Array) -> jax.Array:
    if not x.size:
        return jnp.zeros((), x.dtype)
    rows = x.reshape(x.shape[0] if x.ndim else 1, -1)
    return jnp.sqrt((rows**2).sum(axis=1)).mean()
