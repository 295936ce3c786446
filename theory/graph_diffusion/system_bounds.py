"""The system theorem for Gaussian data: what the coupled sampler's error costs, block by block.

KL(q_δ ‖ p) ≤ KL(q_T ‖ N(0, I)) + Σ_b ½ Σ_k ∫ β_b E‖s_b(t_k, Z_{t_k}) − ∇_b log q_t(Z_t)‖² dt for the
exponential integrator whose blocks step from the old pair (Jacobi); the argument doesn't cover
Gauss–Seidel, whose second score sees what the first block did within the step.
Symbols: τ = t_k, t in the step below it, B = B_b(t, τ), J_b the block Fisher information.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_number, fail
from boundlab.precision import float64, is_traced
from boundlab.theory.graph_diffusion._system_arguments import (
    integrated_beta,
    noised,
    system_over,
)
from boundlab.theory.graph_diffusion.systems import covariance_kl
from boundlab.typing import Count, Numbers

# Gauss–Legendre nodes of each step's integral.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(20)


@float64
def system_bound(
    covariance: Any, dim_features: Count, schedules: Any, times: Numbers
) -> dict[str, Float[Array, ""]]:
    """Bound on the KL of the coupled sampler with exact joint scores, as its three terms.

    initialization = KL(q_T ‖ N(0, I)), of a given block's partner the mean over the given block; the
    term of block b is
    ½ Σ_k ∫ β_b [J_b(t) − (2e^{−B/2} − 1) J_b(τ)] dt, by the contraction identity, which needs no
    moments across times. Quadrature over each step, 20 nodes in a time stretched towards 0 by the least
    eigenvalue of S: to 1e-12 relatively where a step's B is at most 1; one step of B = 4 may be off by
    1e-7, of B = 24 by 1e-4.

    Args:
        covariance: S (d, d) of the data, positive definite, features first.
        dim_features: How many coordinates are features, from 1 to d − 1.
        schedules: ((β₀, β₁) of features, (β₀, β₁) of structure), rates ≥ 0; (0, 0) for a given block,
            whose term is 0.
        times: (N + 1,) strictly decreasing, ≥ 0. All but `dim_features` may be traced.

    Returns:
        {"initialization", "features", "structure"}, in nats; the bound is their sum.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#system-theorem and #contraction-identity.

    """
    system, grid = system_over(covariance, dim_features, schedules, times)
    start = jnp.zeros((), jnp.float64)
    noisy = noised(system.covariance, integrated_beta(system.slopes, start, grid[0]))
    per_coordinate = _discretization(system.covariance, system.slopes, grid)
    return {
        "initialization": covariance_kl(noisy, system.prior),
        "features": jnp.sum(per_coordinate * system.features),
        "structure": jnp.sum(per_coordinate * (1.0 - system.features)),
    }


@float64
def system_bound_with_score_error(
    covariance: Any,
    dim_features: Count,
    schedules: Any,
    times: Numbers,
    error_features: Numbers,
    error_structure: Numbers,
) -> dict[str, Float[Array, ""]]:
    """Bound on the KL of the coupled sampler whose scores are off by a known mean square.

    With ε_b²(τ) = E‖s_b(τ, Z_τ) − ∇_b log q_τ(Z_τ)‖², summed over the block's coordinates and without a
    ½, the path cost exceeds that of exact scores by
    ½ Σ_k [B ε_b² + 2(B − 2(1 − e^{−B/2})) ε_b J_b(τ)^{1/2}]. The cross-term is so small since the mean
    of ∇_b log q_t(Z_t) given Z_τ is e^{−B/2}∇_b log q_τ(Z_τ); the whole is never above the cruder
    Σ_k B ε_b² plus twice the terms of `system_bound`, which |a + b|² ≤ 2|a|² + 2|b|² gives.

    Args:
        covariance: S (d, d) of the data, positive definite, features first.
        dim_features: How many coordinates are features, from 1 to d − 1.
        schedules: ((β₀, β₁) of features, (β₀, β₁) of structure), rates ≥ 0; (0, 0) for a given block,
            whose term is 0.
        times: (N + 1,) strictly decreasing, ≥ 0.
        error_features: ε_X² at times[:−1], where scores are evaluated: (N,), or one number ≥ 0.
        error_structure: ε_A², likewise.

    Returns:
        {"initialization", "features", "structure", "score_features", "score_structure"}, in nats; the
        bound is their sum. The first three are those of `system_bound`.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#score-error.

    """
    system, grid = system_over(covariance, dim_features, schedules, times)
    terms = dict(system_bound(covariance, dim_features, schedules, times))
    given = {"features": error_features, "structure": error_structure}
    for row, (block, error) in enumerate(given.items()):
        squares = _error_of(f"error_{block}", error, len(grid) - 1)
        own = system.features if row == 0 else 1.0 - system.features
        coordinate = 0 if row == 0 else len(own) - 1
        terms[f"score_{block}"] = _score_error(
            system.covariance, jnp.asarray(own), system.slopes, grid, squares, coordinate
        )
    return terms


def _error_of(name: str, value: Any, steps: int) -> Float[Array, " steps"]:
    check_number(name, value, 0)
    known = value if is_traced(value) else np.asarray(value)
    if known.shape not in ((), (steps,)):
        raise fail(name, f"shape {known.shape}", f"one number or shape ({steps},), one a step")
    return jnp.broadcast_to(jnp.asarray(value, jnp.float64), (steps,))


@jax.jit
def _discretization(
    covariance: Float[Array, "d d"], slopes: Float[Array, "d 2"], times: Float[Array, " steps_1"]
) -> Float[Array, " d"]:
    """½ Σ_k ∫ β [J(t) − (2e^{−B/2} − 1)J(τ)] dt of each coordinate."""
    # J has a pole where a noised eigenvalue would vanish, at about −offset: equal strides in
    # log(t + offset) keep it at the same relative distance from every step.
    rate = jnp.max(slopes)
    offset = jnp.linalg.eigvalsh(covariance)[0] / rate

    def step(
        total: Float[Array, " d"], pair: tuple[Float[Array, ""], Float[Array, ""]]
    ) -> tuple[Float[Array, " d"], None]:
        tau, t = pair
        stretch = 0.5 * jnp.log1p((tau - t) / (t + offset))
        # Not as a difference of two exponentials: `offset` may be far longer than the step.
        at = t + (t + offset) * jnp.expm1(stretch * (1.0 + NODES))
        weights = WEIGHTS * stretch * (at + offset)
        rates = slopes[None, :, 0] + (slopes[:, 1] - slopes[:, 0])[None, :] * at[:, None]
        fisher = jax.vmap(_fisher, in_axes=(None, None, 0))(covariance, slopes, at)
        integral = jnp.sum(weights[:, None] * rates * fisher, axis=0)
        beta = integrated_beta(slopes, t, tau)
        # ∫ β(2e^{−B/2} − 1) dt over the step, in closed form.
        frozen = (-4 * jnp.expm1(-0.5 * beta) - beta) * _fisher(covariance, slopes, tau)
        return total + 0.5 * (integral - frozen), None

    start = jnp.zeros(len(covariance), covariance.dtype)
    return jax.lax.scan(step, start, (times[:-1], times[1:]))[0]


@functools.partial(jax.jit, static_argnums=5)
def _score_error(
    covariance: Float[Array, "d d"],
    own: Float[Array, " d"],
    slopes: Float[Array, "d 2"],
    times: Float[Array, " steps_1"],
    squares: Float[Array, " steps"],
    coordinate: int,
) -> Float[Array, ""]:
    fisher = jax.vmap(_fisher, in_axes=(None, None, 0))(covariance, slopes, times[:-1])
    beta = jax.vmap(integrated_beta, in_axes=(None, 0, 0))(slopes, times[1:], times[:-1])
    beta = beta[:, coordinate]
    product = squares * jnp.sum(fisher * own[None, :], axis=1)
    present = product > 0.0
    cross = jnp.where(present, jnp.sqrt(jnp.where(present, product, 1.0)), 0.0)
    return jnp.sum(0.5 * beta * squares + (beta + 2 * jnp.expm1(-0.5 * beta)) * cross)


def _fisher(
    covariance: Float[Array, "d d"], slopes: Float[Array, "d 2"], t: Float[Array, ""]
) -> Float[Array, " d"]:
    """Diagonal of S_t⁻¹: the Fisher information of each coordinate under the joint score."""
    start = jnp.zeros((), t.dtype)
    return jnp.diag(jnp.linalg.inv(noised(covariance, integrated_beta(slopes, start, t))))
