"""Bounds on selecting the best of M arms that were known before: above, below, and for any algorithm.

Symbols as in `selection`: M arms, one better by Δ; x = Δ√m/σ at m samples per arm of noise σ; q(M, x) the
failure probability, x* its root at δ, so that x*² = mΔ²/σ² is the exact normalised sample size per arm.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float

from boundlab.checks import check_number, check_shape, fail
from boundlab.precision import float64
from boundlab.typing import Numbers, Scalar


class SlippageBounds(NamedTuple):
    """Bounds on q(M, x), `lower` ≤ q ≤ `slepian` ≤ `union`."""

    lower: Float[Array, "*batch"]
    """½(1 − Φ(x)^{M−1}): the best arm's own estimate is below its mean half of the time."""
    slepian: Float[Array, "*batch"]
    """1 − Φ(x/√2)^{M−1}: the M − 1 differences, of correlation ½, as if independent."""
    union: Float[Array, "*batch"]
    """½(M − 1) e^{−x²/4}: one arm after another; may exceed 1."""


@float64
def slippage_bounds(num_arms: Numbers, x: Numbers) -> SlippageBounds:
    """Bounds ½(1 − Φ(x)^{M−1}) ≤ q(M, x) ≤ 1 − Φ(x/√2)^{M−1} ≤ ½(M − 1)e^{−x²/4}.

    Args:
        num_arms: M ≥ 1, up to 1e300. May be traced.
        x: ≥ 0, at most 1e150. May be traced. Both may be arrays that broadcast.

    Returns:
        The three bounds, in the order lower, slepian, union.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived (Slepian's inequality above, conditioning below), docs/team_learning.md#selection.

    """
    arms, at = _arms_and("x", num_arms, x)
    check_number("x", x, 0, 1e150)
    return _slippage(arms, at)


@float64
def fano_lower(num_arms: Numbers, failure_probability: Numbers) -> Float[Array, "*batch"]:
    """Fano's lower bound on x*²: 2((1 − δ) ln M − ln 2), at least 0.

    Args:
        num_arms: M ≥ 1, up to 1e300. May be traced.
        failure_probability: δ in (0, 1). May be traced. Both may be arrays that broadcast.

    Returns:
        The bound on mΔ²/σ², m in samples per arm.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived (Fano's inequality with M equal arms for reference, at a divergence of x²/2),
    docs/team_learning.md#selection.

    """
    _check_probability(failure_probability)
    return _fano(*_arms_and("failure_probability", num_arms, failure_probability))


@float64
def union_upper(num_arms: Numbers, failure_probability: Numbers) -> Float[Array, "*batch"]:
    """Union bound on x*²: 4 ln((M − 1)/(2δ)), at least 0.

    Args:
        num_arms: M ≥ 1, up to 1e300. May be traced.
        failure_probability: δ in (0, 1). May be traced. Both may be arrays that broadcast.

    Returns:
        The bound on mΔ²/σ², m in samples per arm.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#selection.

    """
    _check_probability(failure_probability)
    return _union(*_arms_and("failure_probability", num_arms, failure_probability))


@float64
def pac_lower_bound(
    num_arms: Numbers, noise_std: Scalar, accuracy: Scalar, failure_probability: Numbers
) -> Float[Array, "*batch"]:
    """Samples in all that any (ε, δ)-PAC algorithm needs on some M Gaussian arms, however it samples:

        E N ≥ (M − 1) (σ²/(2ε²)) kl(δ, 1 − δ),   kl(δ, 1 − δ) = (1 − 2δ) ln((1 − δ)/δ) ≥ ln(1/(2.4δ)).

    For one agent M = A^K and N is in trajectories. For a team with own rewards a trajectory is one pull
    for each agent: the bound is that of the hardest agent, M = A, not a sum.

    Args:
        num_arms: M ≥ 1, up to 1e300. May be traced.
        noise_std: σ ≥ 0 of one sample. May be traced.
        accuracy: ε > 0 in units of reward; for an agent of a team paid the mean, K times the team's.
            May be traced.
        failure_probability: δ in (0, 1). May be traced. It may broadcast with `num_arms`.

    Returns:
        The bound on the expected number of samples of all arms; 0 for δ ≥ ½, where it says nothing.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: mannor2004sample for the rate; kaufmann2016complexity for the change of measure, recalled; the
    constant derived, docs/team_learning.md#lower-bounds.

    """
    arms, delta = _arms_and("failure_probability", num_arms, failure_probability)
    _check_probability(failure_probability)
    for name, number in (("noise_std", noise_std), ("accuracy", accuracy)):
        check_shape(name, number, ())
        check_number(name, number, 0, low_open=name == "accuracy")
    noise, level = (jnp.asarray(n).astype(jnp.float64) for n in (noise_std, accuracy))
    return _any_algorithm(arms, delta, noise / level)


@jax.jit
def _slippage(arms: Float[Array, "*n"], x: Float[Array, "*n"]) -> SlippageBounds:
    others = arms - 1.0
    return SlippageBounds(
        -0.5 * jnp.expm1(others * log_ndtr(x)),
        -jnp.expm1(others * log_ndtr(x / jnp.sqrt(2.0))),
        0.5 * others * jnp.exp(-0.25 * x**2),
    )


@jax.jit
def _fano(arms: Float[Array, "*n"], delta: Float[Array, "*n"]) -> Float[Array, "*n"]:
    return jnp.maximum(2.0 * ((1.0 - delta) * jnp.log(arms) - jnp.log(2.0)), 0.0)


@jax.jit
def _union(arms: Float[Array, "*n"], delta: Float[Array, "*n"]) -> Float[Array, "*n"]:
    others = arms - 1.0
    some = others > 0.0
    log_ratio = jnp.log(jnp.where(some, others, 1.0)) - jnp.log(2.0 * delta)
    return jnp.where(some, jnp.maximum(4.0 * log_ratio, 0.0), 0.0)


@jax.jit
def _any_algorithm(
    arms: Float[Array, "*n"], delta: Float[Array, "*n"], ratio: Float[Array, ""]
) -> Float[Array, "*n"]:
    others = arms - 1.0
    divergence = (1.0 - 2.0 * delta) * (jnp.log1p(-delta) - jnp.log(delta))
    return jnp.where(delta < 0.5, others * 0.5 * ratio**2 * divergence, 0.0)


def _arms_and(
    name: str, num_arms: Any, other: Any
) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    """M ≥ 1 and the other argument, as arrays that broadcast."""
    whole = isinstance(num_arms, int) and not isinstance(num_arms, bool)
    if whole and abs(num_arms) > 10**300:
        raise fail("num_arms", "an integer beyond 1e300", "at most 1e300")
    arms = float(num_arms) if whole else num_arms
    check_number("num_arms", arms, 1, 1e300)
    check_number(name, other)
    try:
        shape = np.broadcast_shapes(np.shape(arms), np.shape(other))
    except ValueError as error:
        raise fail(name, f"shape {np.shape(other)}", f"one that fits {np.shape(arms)}") from error
    both = (jnp.asarray(one).astype(jnp.float64) for one in (arms, other))
    first, second = (jnp.broadcast_to(one, shape) for one in both)
    return first, second


def _check_probability(value: Any) -> None:
    check_number("failure_probability", value, 0, 1, low_open=True, high_open=True)
