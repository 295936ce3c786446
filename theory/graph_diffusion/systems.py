"""Gaussian systems of two blocks, features and structure, that are noised and sampled together.

The data are N(0, S); block b has its own rate β_b(t) = β₀ + (β₁ − β₀)t and forward process
dZ_b = −½β_b Z_b dt + √β_b dW_b, so that B_b(s, t) = ∫_s^t β_b and S_t = M S M + I − M² with
M = diag(e^{−B_b/2}). The joint score is −S_t⁻¹z; a marginal score sees its own block alone. A block whose
rates are (0, 0) is never noised: it is given, clean, and the other is generated conditionally on it.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_choice, check_integer, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.theory.graph_diffusion._system_arguments import (
    System,
    check_overflow,
    integrated_beta,
    noised,
    positive_definite,
    system_at,
    system_over,
)
from boundlab.typing import Count, Numbers, Scalar

SCORES = ("joint", "marginal")
ORDERS = ("jacobi", "gauss_seidel")


@float64
def joint_reverse(
    covariance: Any,
    dim_features: Count,
    schedules: Any,
    times: Numbers,
    scores: str = "joint",
    order: str = "jacobi",
) -> Float[Array, "d d"]:
    """Covariance of what the coupled sampler returns, with the exact score frozen over each step.

    Started from N(0, I); a step from τ down to t takes block b to
    e^{B_b/2} z_b + 2(e^{B_b/2} − 1) s_b(τ, z) + N(0, e^{B_b} − 1), B_b = B_b(t, τ): the exponential
    integrator. The law stays Gaussian with mean zero. A block with rates (0, 0) starts, and stays, at the
    law of the data: V is then the law of (given block, other block sampled given it), and its KL the
    mean over the given block of the conditional KL.

    Args:
        covariance: S (d, d) of the data, positive definite, features first.
        dim_features: How many coordinates are features, from 1 to d − 1.
        schedules: ((β₀, β₁) of features, (β₀, β₁) of structure), rates ≥ 0 in the time of `times`;
            (0, 0) for at most one block, which is then given.
        times: (N + 1,) strictly decreasing from the horizon to the early stop, ≥ 0. May be traced,
            as S and the schedules may; a traced grid may end in repetitions of its last time, which
            change nothing.
        scores: `joint`, of the pair; `marginal`, each block's score of its own law.
        order: `jacobi`: both blocks step from the old pair. `gauss_seidel`: the features step first and
            the structure's score, still at τ, sees the new features.

    Returns:
        V (d, d), to be held against S at times[−1] (`noised_covariance`).

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#coupled-systems.

    """
    system, grid = system_over(covariance, dim_features, schedules, times)
    check_choice("scores", scores, SCORES)
    check_choice("order", order, ORDERS)
    seen = system.covariance
    if scores == "marginal":
        seen = seen * system.own_block
    found = _reverse(seen, system.prior, system.features, system.slopes, grid, order == "jacobi")
    check_overflow(found)
    return found


@functools.partial(jax.jit, static_argnums=5)
def _reverse(
    seen: Float[Array, "d d"],
    prior: Float[Array, "d d"],
    features: Float[Array, " d"],
    slopes: Float[Array, "d 2"],
    times: Float[Array, " steps_1"],
    together: bool,
) -> Float[Array, "d d"]:
    identity = jnp.eye(len(seen), dtype=seen.dtype)
    total = jnp.zeros((), times.dtype)
    blocks = (jnp.ones_like(features),) if together else (features, 1.0 - features)

    def step(
        variance: Float[Array, "d d"], pair: tuple[Float[Array, ""], Float[Array, ""]]
    ) -> tuple[Float[Array, "d d"], None]:
        tau, t = pair
        precision = jnp.linalg.inv(noised(seen, integrated_beta(slopes, total, tau)))
        beta = integrated_beta(slopes, t, tau)
        moved = jnp.diag(jnp.exp(0.5 * beta)) - 2 * jnp.expm1(0.5 * beta)[:, None] * precision
        for block in blocks:  # a row of a block that waits is one of the identity
            step_map = jnp.where(block[:, None] > 0, moved, identity)
            variance = step_map @ variance @ step_map.T + jnp.diag(block * jnp.expm1(beta))
        return (variance + variance.T) / 2, None

    return jax.lax.scan(step, prior, (times[:-1], times[1:]))[0]


@float64
def noised_covariance(
    covariance: Any, dim_features: Count, schedules: Any, t: Scalar
) -> Float[Array, "d d"]:
    """Covariance S_t = M S M + I − M² of the pair at time t, M = diag(e^{−B_b(0, t)/2}).

    Args:
        covariance: S (d, d) of the data, features first.
        dim_features: How many coordinates are features.
        schedules: As for `joint_reverse`.
        t: Time ≥ 0; may be traced.

    Returns:
        S_t (d, d).

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#coupled-systems.

    """
    return _at(*system_at(covariance, dim_features, schedules, t))


@float64
def block_fisher(
    covariance: Any, dim_features: Count, schedules: Any, t: Scalar
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Fisher information J_b(t) = E‖∇_b log q_t(X_t, A_t)‖² of the joint score, a number a block.

    J_b = tr (S_t⁻¹)_bb, summed over the coordinates of the block.

    Args:
        covariance: S (d, d) of the data, features first.
        dim_features: How many coordinates are features.
        schedules: As for `joint_reverse`.
        t: Time ≥ 0; may be traced.

    Returns:
        (J of the features, J of the structure).

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#coupled-systems.

    """
    system, time = system_at(covariance, dim_features, schedules, t)
    diagonal = jnp.diag(jnp.linalg.inv(_at(system, time)))
    return jnp.sum(diagonal * system.features), jnp.sum(diagonal * (1.0 - system.features))


@float64
def mutual_information(covariance: Any, dim_features: Count) -> Float[Array, ""]:
    """Mutual information I(X; A) = −½ Σ log(1 − ρ_i²) of the two blocks, ρ_i the canonical correlations.

    In nats.

    Args:
        covariance: (d, d) of the pair, features first; that of noised data for I(X_t; A_t).
        dim_features: How many coordinates are features.

    Returns:
        A JAX scalar ≥ 0.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#price-of-decoupling.

    """
    correlations = canonical_correlations(covariance, dim_features)
    return -0.5 * jnp.sum(jnp.log1p(-(correlations**2)))


@float64
def canonical_correlations(covariance: Any, dim_features: Count) -> Float[Array, " k"]:
    """Canonical correlations ρ_i of the two blocks: singular values of S_XX^{−½} S_XA S_AA^{−½}.

    Args:
        covariance: (d, d) of the pair, features first.
        dim_features: How many coordinates are features.

    Returns:
        min(d_X, d_A) of them in [0, 1), descending.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#price-of-decoupling.

    """
    matrix = positive_definite("covariance", covariance)
    size = check_integer("dim_features", dim_features, 1, len(matrix) - 1)
    first = jnp.linalg.cholesky(matrix[:size, :size])
    second = jnp.linalg.cholesky(matrix[size:, size:])
    half = jax.scipy.linalg.solve_triangular(first, matrix[:size, size:], lower=True)
    whitened = jax.scipy.linalg.solve_triangular(second, half.T, lower=True)
    return jnp.linalg.svd(whitened, compute_uv=False)


@float64
def covariance_kl(covariance_target: Any, covariance: Any) -> Float[Array, ""]:
    """KL(N(0, C) ‖ N(0, V)) = ½ Σ [x_i − log(1 + x_i)], x_i the eigenvalues of V⁻¹(C − V).

    In nats, with the ½; digits are kept where the two are close.

    Args:
        covariance_target: C (d, d), positive definite.
        covariance: V (d, d), positive definite, of the approximation.

    Returns:
        A JAX scalar ≥ 0.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#coupled-systems.

    """
    target = positive_definite("covariance_target", covariance_target)
    check_shape("covariance", covariance, target.shape, "as covariance_target")
    root = jnp.linalg.cholesky(positive_definite("covariance", covariance))
    half = jax.scipy.linalg.solve_triangular(root, target, lower=True)
    whole = jax.scipy.linalg.solve_triangular(root, half.T, lower=True)
    # Subtracting I here costs no more digits than C − V before: both round at the size of V⁻¹C.
    excess = jnp.linalg.eigvalsh((whole + whole.T) / 2 - jnp.eye(len(whole), dtype=whole.dtype))
    return 0.5 * jnp.sum(excess - jnp.log1p(excess))


@float64
def two_stage_reverse(
    covariance: Any, dim_features: Count, schedules: Any, times: Numbers
) -> Float[Array, "d d"]:
    """Covariance of two samplers one after the other: the structure alone, then features given it.

    The first has the structure's marginal score and stops at A_δ; the second, the score of features
    conditionally on that A_δ. The errors add up: KL = KL_A + E KL_{X|A}, the mean over the true A_δ.

    Args:
        covariance: S (d, d) of the data, positive definite, features first.
        dim_features: How many coordinates are features, from 1 to d − 1.
        schedules: ((β₀, β₁) of features, (β₀, β₁) of structure), neither (0, 0).
        times: (N + 1,) strictly decreasing, ≥ 0, of both samplers.

    Returns:
        V (d, d), to be held against S at times[−1].

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#paradigms.

    """
    system, grid = system_over(covariance, dim_features, schedules, times)
    if not is_traced(schedules) and not (np.asarray(schedules).max(axis=1) > 0).all():
        raise fail("schedules", schedules, "a positive rate in each block")
    size = int(np.sum(system.features))
    alone = joint_reverse(system.covariance, size, schedules, grid, "marginal")[size:, size:]
    rates = jnp.asarray(schedules, jnp.float64)
    clean = jnp.zeros(2, jnp.float64)
    pair = noised_covariance(system.covariance, size, jnp.stack([clean, rates[1]]), grid[-1])
    given = joint_reverse(pair, size, jnp.stack([rates[0], clean]), grid)
    # Features depend on the given structure linearly, whatever law it has.
    slope = jnp.linalg.solve(given[size:, size:], given[size:, :size]).T
    change = alone - given[size:, size:]
    cross = slope @ change
    moved = jnp.block([[cross @ slope.T, cross], [cross.T, change]])
    return given + moved


def _at(system: System, t: Float[Array, ""]) -> Float[Array, "d d"]:
    start = jnp.zeros((), jnp.float64)
    return noised(system.covariance, integrated_beta(system.slopes, start, t))
