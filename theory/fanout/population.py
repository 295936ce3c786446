"""Gradient descent of one ReLU unit towards a ReLU teacher, on the population loss.

Nodes' feature vectors x_j are independent N(0, I), the unit's output is σ(ã_i X w), with the activation
σ(x) = √2·max(x, 0), and the aggregator's rows ã_i are independent of the features. Then an aggregated
feature vector is N(0, ‖ã_i‖²I), and the graph, the batch and the fan-out enter the expected loss through
one number, Γ = mean_i ‖ã_i‖².

Symbols: w = φw* + ψw⊥ with unit teacher w*, R² = φ² + ψ², ρ = φ/R, σ̂ the arc-cosine kernel
σ̂(ρ) = (√(1 − ρ²) + ρ(π − arccos ρ))/π, σ̂'(ρ) = (π − arccos ρ)/π. The loss has the ½.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from boundlab.checks import check_integer, check_number, check_shape
from boundlab.precision import float64
from boundlab.theory.fanout._outcome import nan_unless
from boundlab.typing import Count, Numbers, Scalar


class PopulationTrajectory(NamedTuple):
    """Iterates of gradient descent and their loss; entry 0 is the start.

    Attributes:
        parallel: φ_t, component along the teacher.
        orthogonal: ψ_t, component orthogonal to it.
        loss: L(φ_t, ψ_t).

    """

    parallel: Float[Array, " steps"]
    orthogonal: Float[Array, " steps"]
    loss: Float[Array, " steps"]


@float64
def population_loss(
    parallel: Numbers, orthogonal: Numbers, squared_norm: Numbers
) -> Float[Array, "..."]:
    """Expected loss ½E(σ(ãXw) − σ(ãXw*))² of one ReLU unit against its teacher.

    L = (Γ/2)(R² + 1 − 2Rσ̂(φ/R)), R = √(φ² + ψ²), σ̂(ρ) = (√(1 − ρ²) + ρ(π − arccos ρ))/π. The rows of X
    are independent N(0, I) and σ(x) = √2·max(x, 0), so that E σ(g)² = 1 for a standard normal g.
    Computed as (Γ/2)((1 − R)² + 2R(1 − σ̂)) with 1 − σ̂ from the half angle, which keeps its digits
    near the teacher.

    Args:
        parallel: φ, component of the weights along the unit teacher, any shape.
        orthogonal: ψ, component orthogonal to it; the three broadcast.
        squared_norm: Γ ≥ 0, mean squared norm of the aggregator's rows.

    Returns:
        L in the broadcast shape, a JAX array in the unit of Γ; Γ/2 at w = 0, NaN for a traced Γ < 0.

    Raises:
        ValueError: an argument is not finite or Γ is negative; it is named.

    Source: derived (arc-cosine kernel of degree 1), docs/fanout.md#relu-teacher.

    """
    check_number("parallel", parallel)
    check_number("orthogonal", orthogonal)
    check_number("squared_norm", squared_norm, 0.0)
    phi, psi, gamma = (
        jnp.asarray(value, dtype=jnp.float64) for value in (parallel, orthogonal, squared_norm)
    )
    return _loss(phi, psi, gamma)


@float64
def population_gradient_descent(
    parallel: Scalar,
    orthogonal: Scalar,
    squared_norm: Scalar,
    step_size: Scalar,
    num_steps: Count,
) -> PopulationTrajectory:
    """Gradient descent on the expected loss of one ReLU unit against its teacher.

    φ ← φ − ηΓ(φ − (φ/R)σ̂ − ψ²σ̂'/R²),  ψ ← ψ − ηΓ(ψ − (ψ/R)σ̂ + φψσ̂'/R²), the gradient of
    `population_loss` (activation √2·max(x, 0), independent N(0, I) features, the ½), with R² = φ² + ψ²,
    ρ = φ/R, σ̂ = (√(1 − ρ²) + ρ(π − arccos ρ))/π and σ̂' = (π − arccos ρ)/π. Γ and η enter through ηΓ
    alone, so that the number of updates to a share of the loss is ∝ 1/(ηΓ). At w = 0 the gradient
    is taken as 0 (ReLU'(0) = 0: a dead unit stays dead).

    Args:
        parallel: φ_0, component of the start along the unit teacher.
        orthogonal: ψ_0, component orthogonal to it.
        squared_norm: Γ > 0, mean squared norm of the aggregator's rows.
        step_size: η > 0.
        num_steps: updates T ≥ 0, static.

    Returns:
        PopulationTrajectory of JAX arrays (num_steps + 1,), entry 0 the start; NaN for a traced Γ or η
        that isn't positive.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, with the signs of the cross term corrected from [liu2025draft, B.1];
    docs/fanout.md#relu-teacher.

    """
    for name, value in (("parallel", parallel), ("orthogonal", orthogonal)):
        check_shape(name, value, ())
        check_number(name, value)
    for name, value in (("squared_norm", squared_norm), ("step_size", step_size)):
        check_shape(name, value, ())
        check_number(name, value, 0.0, low_open=True)
    updates = check_integer("num_steps", num_steps, 0)
    gamma = jnp.asarray(squared_norm, jnp.float64)
    start = (jnp.asarray(parallel, jnp.float64), jnp.asarray(orthogonal, jnp.float64))
    return _descend(*start, gamma, jnp.asarray(step_size, jnp.float64), updates)


@functools.partial(jax.jit, static_argnums=4)
def _descend(
    phi: Float[Array, ""],
    psi: Float[Array, ""],
    gamma: Float[Array, ""],
    step_size: Float[Array, ""],
    updates: int,
) -> PopulationTrajectory:
    Pair = tuple[Float[Array, ""], Float[Array, ""]]
    rate = step_size * gamma

    def update(weights: Pair, _: None) -> tuple[Pair, Pair]:
        phi, psi = weights
        radius, angle = _polar(phi, psi)
        safe = jnp.where(radius > 0.0, radius, 1.0)
        shrink = 1.0 - _kernel(angle) / safe
        turn = (jnp.pi - angle) / jnp.pi * psi / safe**2
        moved = (phi - rate * (phi * shrink - psi * turn), psi - rate * (psi * shrink + phi * turn))
        return moved, weights

    last, before = lax.scan(update, (phi, psi), None, length=updates)
    phi, psi = (jnp.concatenate([path, end[None]]) for path, end in zip(before, last, strict=True))
    path = PopulationTrajectory(phi, psi, _loss(phi, psi, gamma))
    return nan_unless((gamma > 0.0) & (step_size > 0.0), path)


@jax.jit
def _loss(
    phi: Float[Array, "..."], psi: Float[Array, "..."], gamma: Float[Array, "..."]
) -> Float[Array, "..."]:
    radius, angle = _polar(phi, psi)
    lens = (jnp.sin(angle) - angle * jnp.cos(angle)) / jnp.pi
    missing = 2.0 * jnp.sin(0.5 * angle) ** 2 - lens  # 1 − σ̂
    return nan_unless(gamma >= 0.0, 0.5 * gamma * ((1.0 - radius) ** 2 + 2.0 * radius * missing))


def _polar(
    phi: Float[Array, "..."], psi: Float[Array, "..."]
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Norm R and angle arccos(φ/R) in [0, π]; finite derivatives at 0, where the angle is 0."""
    some = (phi != 0.0) | (psi != 0.0)
    phi, psi = jnp.where(some, phi, 1.0), jnp.where(some, jnp.abs(psi), 0.0)
    radius = jnp.sqrt(phi**2 + psi**2)
    return jnp.where(some, radius, 0.0), jnp.arctan2(psi, phi)


def _kernel(angle: Float[Array, "..."]) -> Float[Array, "..."]:
    """The arc-cosine kernel σ̂ at cos(angle)."""
    return (jnp.sin(angle) + (jnp.pi - angle) * jnp.cos(angle)) / jnp.pi
