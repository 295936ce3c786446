"""What starting at N(0, I) instead of the noised data costs: KL(q_T ‖ N(0, I)) and bounds on it.

Symbols: T horizon in OU time, B = ∫β total noise, B = 2T for OU; He_j Hermite polynomials of the
probabilists, E He_i He_j = j! δ_ij under N(0, 1).
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_integer, check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.theory.graph_diffusion._gaussian_arguments import (
    eigenvalues_of,
    log_remainder,
    modes_of,
    noised,
    number_of,
)
from boundlab.theory.graph_diffusion._system_arguments import MOST
from boundlab.typing import Count, Numbers, Scalar

# How far weights may be from a sum of 1.
ROUNDING = 1e-9


@float64
def initialization_kl(
    eigenvalues: Numbers, horizon: Scalar, mean: Numbers | None = None
) -> Float[Array, " d"]:
    """KL(q_T ‖ N(0, 1)) of each Gaussian mode: ½[v(T) − 1 − log v(T) + e^{−2T}μ₀²].

    Args:
        eigenvalues: λ (d,) > 0 of the data covariance. All numbers may be traced.
        horizon: T ≥ 0, OU time.
        mean: μ₀ (d,) of the data, None for 0.

    Returns:
        (d,) in nats, accurate to rounding however small.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#initialisation.

    """
    modes, end = eigenvalues_of(eigenvalues), number_of("horizon", horizon, 0)
    center = modes_of("mean", mean, len(modes))
    excess = (modes - 1.0) * jnp.exp(-2.0 * end)
    spread = log_remainder(-excess, jnp.log(noised(modes, end)), 2)
    return 0.5 * (spread + (jnp.exp(-end) * center) ** 2)


@float64
def initialization_kl_universal(
    second_moment: Scalar, dim: Count, integrated_beta: Scalar
) -> Float[Array, ""]:
    """Bound on KL(q_T ‖ N(0, I)) for any law of the data, S8 of docs/graph_diffusion.md.

    ½[e^{−B}(E‖Z‖² − d) − d log(1 − e^{−B})], by convexity of the KL; attained by a point mass. With
    q = e^{−B} it is ½[q E‖Z‖² + d Σ_{j≥2} q^j/j], which doesn't cancel.

    Args:
        second_moment: E‖Z‖² ≥ 0 of the data, over all coordinates. May be traced.
        dim: d ≥ 1, the number of coordinates.
        integrated_beta: B > 0; 2T for OU. May be traced.

    Returns:
        The bound in nats.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#initialisation.

    """
    moment = number_of("second_moment", second_moment, 0)
    size = check_integer("dim", dim, 1, MOST)
    beta = number_of("integrated_beta", integrated_beta, 0, low_open=True)
    q = jnp.exp(-beta)
    log_rest = jnp.log(-jnp.expm1(-beta))
    return 0.5 * (q * moment + size * log_remainder(q, log_rest, 2))


@float64
def initialization_chi2(hermite_moments: Any, integrated_beta: Scalar) -> Float[Array, ""]:
    """χ²(q_T ‖ N(0, I)) of data with independent coordinates, by its Hermite series.

    1 + χ² = Π_i (1 + Σ_{j=1}^J e^{−jB}(E He_j(Z_i))²/j!), and KL ≤ log(1 + χ²). The terms left out are
    all positive; for bounded data they fall as e^{−jB}.

    Args:
        hermite_moments: (d, J) of E He_j(Z_i)/√j!, j = 1, …, J; `discrete_hermite_moments` makes them.
            All numbers may be traced.
        integrated_beta: B > 0; 2T for OU.

    Returns:
        χ², one number.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#initialisation.

    """
    check_shape("hermite_moments", hermite_moments, (None, None))
    check_number("hermite_moments", hermite_moments)
    moments = jnp.asarray(hermite_moments, jnp.float64)
    beta = number_of("integrated_beta", integrated_beta, 0, low_open=True)
    order = np.arange(1, moments.shape[1] + 1, dtype=np.float64)
    terms = jnp.exp(-beta * order)[None, :] * moments**2
    return jnp.expm1(jnp.sum(jnp.log1p(jnp.sum(terms, axis=1))))


@float64
def discrete_hermite_moments(
    values: Numbers, weights: Numbers, order: Count
) -> Float[Array, " order"]:
    """Normalised Hermite moments E He_j(Z)/√j!, j = 1, …, J, of a law on finitely many values.

    By √(j+1) ĥ_{j+1}(x) = x ĥ_j(x) − √j ĥ_{j−1}(x), whose values stay of moderate size.

    Args:
        values: (k,) atoms. May be traced.
        weights: (k,) their probabilities, ≥ 0 with sum 1. May be traced.
        order: J ≥ 1, static.

    Returns:
        (J,) moments.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#initialisation; the recurrence is textbook matter.

    """
    check_shape("values", values, (None,))
    check_number("values", values)
    atoms = jnp.asarray(values, jnp.float64)
    check_shape("weights", weights, atoms.shape, "one a value")
    check_number("weights", weights, 0)
    if not is_traced(weights) and abs(float(np.sum(np.asarray(weights))) - 1.0) > ROUNDING:
        raise fail("weights", f"a sum of {np.sum(np.asarray(weights)):.10g}", "a sum of 1")
    chances = jnp.asarray(weights, jnp.float64)
    count = check_integer("order", order, 1)

    def step(
        pair: tuple[Float[Array, " k"], Float[Array, " k"]], j: Float[Array, ""]
    ) -> tuple[tuple[Float[Array, " k"], Float[Array, " k"]], Float[Array, ""]]:
        before, now = pair
        after = (atoms * now - jnp.sqrt(j) * before) / jnp.sqrt(j + 1.0)
        return (now, after), jnp.sum(chances * after)

    start = (jnp.zeros_like(atoms), jnp.ones_like(atoms))
    return jax.lax.scan(step, start, jnp.arange(count, dtype=jnp.float64))[1]
