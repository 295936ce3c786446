"""Bounds on the discretisation term and on the error of a sampler, exact ones and shapes.

A *shape* is a statement of prior work whose universal constant isn't given: its value means nothing,
only how it moves. S4 and S7 are the numbers of docs/graph_diffusion.md.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_integer, check_number, check_shape
from boundlab.precision import float64
from boundlab.theory.graph_diffusion._gaussian_arguments import grid_of, number_of, span_of
from boundlab.theory.graph_diffusion._system_arguments import MOST
from boundlab.typing import Count, Numbers, Scalar


@float64
def bound_lipschitz(
    lipschitz: Scalar, dim: Count, horizon: Scalar, early_stop: Scalar, num_steps: Count
) -> Float[Array, ""]:
    """Bound on the discretisation term for an L-Lipschitz score and N equal steps, S7.

    D ≤ d(L²h + Lh²/3)(T − δ), h = (T − δ)/N; the exponential integrator in OU time. L ≥ 1 isn't needed.

    Args:
        lipschitz: L > 0, of every score between δ and T; max(1, 1/λ_min) for a Gaussian. May be traced.
        dim: d ≥ 1, the number of coordinates.
        horizon: T > δ. May be traced.
        early_stop: δ ≥ 0. May be traced.
        num_steps: N ≥ 1.

    Returns:
        The bound in nats, ½ in.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#discretisation.

    """
    slope = number_of("lipschitz", lipschitz, 0, low_open=True)
    size, steps = check_integer("dim", dim, 1, MOST), check_integer("num_steps", num_steps, 1, MOST)
    end, stop = span_of(horizon, early_stop)
    h = (end - stop) / steps
    return size * (slope**2 * h + slope * h**2 / 3.0) * (end - stop)


@float64
def bound_entropy_fisher(
    entropy: Numbers, fisher: Numbers, times: Numbers, dim: Count
) -> Float[Array, ""]:
    """Discretisation term of any law from its entropy and Fisher information, S4, an identity.

    D = H(q_T) − H(q_δ) + d(T − δ) − Σ_k c(h_k)J(t_k), c(h) = 2(1 − e^{−h}) − h; the exponential
    integrator with the exact score, all blocks in OU time. The terms cancel to order h, so D has an
    absolute error of about d·T times rounding: `discretization_ei` has none, where the law is Gaussian.

    Args:
        entropy: H (N + 1,), differential entropy of q at `times`, in nats, over all coordinates. All
            numbers may be traced.
        fisher: J (N + 1,) ≥ 0, E‖∇log q_t‖² at `times`, over all coordinates; the last isn't used.
        times: (N + 1,) strictly decreasing OU times ≥ 0, steps of at most 300.
        dim: d ≥ 1, the number of coordinates; each pair of nodes counts once.

    Returns:
        D in nats, ½ in.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#contraction-identity.

    """
    grid = grid_of(times)
    size = check_integer("dim", dim, 1, MOST)
    check_shape("entropy", entropy, grid.shape, "one number a time")
    check_number("entropy", entropy)
    check_shape("fisher", fisher, grid.shape, "one number a time")
    check_number("fisher", fisher, 0)
    h = -jnp.diff(grid)
    weight = -2.0 * jnp.expm1(-h) - h
    level = jnp.asarray(entropy, jnp.float64)
    gained = level[0] - level[-1] + size * (grid[0] - grid[-1])
    return gained - jnp.sum(weight * jnp.asarray(fisher, jnp.float64)[:-1])


@float64
def bound_chen_shape(
    kl_of_data: Scalar,
    second_moment: Scalar,
    lipschitz: Scalar,
    dim: Count,
    horizon: Scalar,
    num_steps: Count,
    score_error: Scalar = 0.0,
    *,
    constant: Scalar = 1.0,
) -> Float[Array, ""]:
    """Shape of a bound on total variation for L-Lipschitz scores, up to a universal constant.

    constant·{√KL(q ‖ N(0, I)) e^{−T} + (L√(dh) + L m₂h)√T + ε√T}, h = T/N, m₂² = E‖Z‖². The constant
    isn't given by the source: the default 1 is a choice, not its statement.

    Args:
        kl_of_data: KL(q ‖ N(0, I)) ≥ 0 of the data. All numbers but `dim` and `num_steps` may be traced.
        second_moment: m₂² = E‖Z‖² ≥ 0, over all coordinates.
        lipschitz: L > 0, of every score.
        dim: d ≥ 1.
        horizon: T > 0, OU time.
        num_steps: N ≥ 1 equal steps of the exponential integrator.
        score_error: ε ≥ 0, root of the mean square error of the score at every time.
        constant: The factor that isn't known, > 0.

    Returns:
        The shape's value.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: [chen2023sampling], main theorem, recalled; a shape, docs/graph_diffusion.md#discretisation.

    """
    start = number_of("kl_of_data", kl_of_data, 0)
    moment = number_of("second_moment", second_moment, 0)
    slope = number_of("lipschitz", lipschitz, 0, low_open=True)
    size, steps = check_integer("dim", dim, 1, MOST), check_integer("num_steps", num_steps, 1, MOST)
    end = number_of("horizon", horizon, 0, low_open=True)
    error = number_of("score_error", score_error, 0)
    factor = number_of("constant", constant, 0, low_open=True)
    h = end / steps
    per_time = slope * (jnp.sqrt(size * h) + jnp.sqrt(moment) * h) + error
    return factor * (jnp.sqrt(start) * jnp.exp(-end) + per_time * jnp.sqrt(end))


@float64
def bound_benton_shape(
    times: Numbers, dim: Count, score_error: Scalar = 0.0, *, constant: Scalar = 1.0
) -> Float[Array, ""]:
    """Shape of a bound on the KL without Lipschitz scores, up to a universal constant.

    constant·{ε² + κ²dN + κdT + d e^{−2T}} with κ = max_k h_k/min(1, t_{k+1}), for data with covariance I.
    The constant isn't given by the source: the default 1 is a choice, not its statement.

    Args:
        times: (N + 1,) strictly decreasing OU times > 0. All numbers but `dim` may be traced.
        dim: d ≥ 1.
        score_error: ε ≥ 0 with ε² ≥ Σ_k h_k E‖score error at t_k‖².
        constant: The factor that isn't known, > 0.

    Returns:
        The shape's value.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: [benton2024nearly], main theorem, recalled; a shape, docs/graph_diffusion.md#discretisation.

    """
    grid = grid_of(times)
    check_number("times", times, 0, low_open=True)
    size = check_integer("dim", dim, 1, MOST)
    error = number_of("score_error", score_error, 0)
    factor = number_of("constant", constant, 0, low_open=True)
    kappa = jnp.max(-jnp.diff(grid) / jnp.minimum(1.0, grid[1:]))
    path = kappa**2 * (len(grid) - 1) + kappa * grid[0]
    return factor * (error**2 + size * (path + jnp.exp(-2.0 * grid[0])))
