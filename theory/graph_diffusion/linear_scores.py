"""Gaussian systems sampled with a linear score s(t_k, z) = L_k z: its error and the sampler's law.

A network that is linear in its input has such a score, trained or not, and the output stays Gaussian.
Symbols: S the covariance of the data, S_t of the noised pair, M = diag(e^{−B_b/2}), blocks and schedules
as in `boundlab.theory.graph_diffusion.systems`.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_number, check_shape
from boundlab.precision import float64
from boundlab.theory.graph_diffusion._system_arguments import (
    integrated_beta,
    noised,
    system_at,
    system_over,
)
from boundlab.typing import Count, Numbers, Scalar


@float64
def linear_score_reverse(
    covariance: Any, dim_features: Count, schedules: Any, times: Numbers, matrices: Any
) -> Float[Array, "d d"]:
    """Covariance of what the coupled sampler returns with the score L_k z over step k.

    From N(0, I); V → A V Aᵀ + diag(e^B − 1), A = diag(e^{B/2}) + 2 diag(e^{B/2} − 1) L_k, B the total
    rate of each coordinate's block over the step: the exponential integrator, both blocks from the old
    pair. With L_k = −S_τ⁻¹ it is `joint_reverse`.

    Args:
        covariance: S (d, d) of the data, features first; of it only the size is used, unless a block is
            given clean.
        dim_features: How many coordinates are features, from 1 to d − 1.
        schedules: ((β₀, β₁) of features, (β₀, β₁) of structure), rates ≥ 0 in the time of `times`.
        times: (N + 1,) strictly decreasing, ≥ 0. May be traced.
        matrices: (N, d, d), L_k at times[k]. May be traced.

    Returns:
        V (d, d).

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#score-error.

    """
    system, grid = system_over(covariance, dim_features, schedules, times)
    scores = _matrices_of(matrices, len(grid) - 1, len(system.covariance))
    return _reverse(system.prior, system.slopes, grid, scores)


@jax.jit
def _reverse(
    prior: Float[Array, "d d"],
    slopes: Float[Array, "d 2"],
    times: Float[Array, " steps_1"],
    scores: Float[Array, "steps d d"],
) -> Float[Array, "d d"]:
    def step(
        variance: Float[Array, "d d"], given: tuple[jax.Array, ...]
    ) -> tuple[Float[Array, "d d"], None]:
        tau, t, score = given
        beta = integrated_beta(slopes, t, tau)
        moved = jnp.diag(jnp.exp(0.5 * beta)) + 2 * jnp.expm1(0.5 * beta)[:, None] * score
        variance = moved @ variance @ moved.T + jnp.diag(jnp.expm1(beta))
        return (variance + variance.T) / 2, None

    return jax.lax.scan(step, prior, (times[:-1], times[1:], scores))[0]


@float64
def linear_score_error(
    covariance: Any, dim_features: Count, schedules: Any, times: Numbers, matrices: Any
) -> tuple[Float[Array, " steps"], Float[Array, " steps"]]:
    """ε_b²(t_k) = E‖L_k Z − ∇ log q_{t_k}(Z)‖² of each block, at the times where scores are evaluated.

    The trace over the block of (L_k + S_t⁻¹) S_t (L_k + S_t⁻¹)ᵀ; no ½, summed over coordinates.

    Args:
        covariance: S (d, d) of the data, positive definite, features first.
        dim_features: How many coordinates are features, from 1 to d − 1.
        schedules: As for `linear_score_reverse`.
        times: (N + 1,) strictly decreasing, ≥ 0. May be traced.
        matrices: (N, d, d), L_k at times[k]. May be traced.

    Returns:
        (of the features (N,), of the structure (N,)).

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#score-error.

    """
    system, grid = system_over(covariance, dim_features, schedules, times)
    scores = _matrices_of(matrices, len(grid) - 1, len(system.covariance))

    rows = _errors(system.covariance, system.slopes, grid[:-1], scores)
    return rows @ system.features, rows @ (1.0 - system.features)


@jax.jit
def _errors(
    covariance: Float[Array, "d d"],
    slopes: Float[Array, "d 2"],
    times: Float[Array, " steps"],
    scores: Float[Array, "steps d d"],
) -> Float[Array, "steps d"]:
    """ε² of each coordinate."""

    def one(given: tuple[Float[Array, ""], Float[Array, "d d"]]) -> Float[Array, " d"]:
        t, score = given
        spread = noised(covariance, integrated_beta(slopes, jnp.zeros_like(t), t))
        gap = score + jnp.linalg.inv(spread)
        return jnp.sum((gap @ spread) * gap, axis=1)

    return jax.lax.map(one, (times, scores))


@float64
def block_mmse(
    covariance: Any, dim_features: Count, schedules: Any, t: Scalar
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Least mean square error E‖Z_b(0) − E[Z_b(0) | Z_t]‖² of each block from the noised pair.

    The trace over the block of S − S M S_t⁻¹ M S.

    Args:
        covariance: S (d, d) of the data, positive definite, features first.
        dim_features: How many coordinates are features, from 1 to d − 1.
        schedules: As for `linear_score_reverse`.
        t: Time ≥ 0; may be traced.

    Returns:
        (of the features, of the structure), summed over coordinates.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#training-loss.

    """
    system, time = system_at(covariance, dim_features, schedules, t)
    total = integrated_beta(system.slopes, jnp.zeros_like(time), time)
    cross = system.covariance * jnp.exp(-0.5 * total)[None, :]
    gain = jnp.linalg.solve(noised(system.covariance, total), cross.T).T
    left = jnp.diag(system.covariance) - jnp.sum(gain * cross, axis=1)
    return jnp.sum(left * system.features), jnp.sum(left * (1.0 - system.features))


def _matrices_of(value: Any, steps: int, size: int) -> Float[Array, "steps d d"]:
    check_shape("matrices", value, (steps, size, size), "one a step")
    check_number("matrices", value)
    return jnp.asarray(value, jnp.float64)
