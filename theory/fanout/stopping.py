"""When a run stops that watches a noisy loss: the first check at which the loss is ≤ a target.

Symbols: L_t expected loss before update t = 0, 1, …, s_t standard deviation of the loss that is
looked at, ε target, Φ the standard normal distribution function.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float

from boundlab.checks import check_number, check_shape
from boundlab.precision import float64
from boundlab.theory.fanout._outcome import nan_unless
from boundlab.typing import Numbers, Scalar


class HittingTime(NamedTuple):
    """Law of the stopping time, cut off at the last check.

    Attributes:
        mean: E min(T, number of checks), T counted from 1.
        censored: probability that no check stops.

    """

    mean: Float[Array, ""]
    censored: Float[Array, ""]


@float64
def hitting_time(losses: Numbers, standard_deviations: Numbers, target: Scalar) -> HittingTime:
    """Mean number of checks until a noisy loss is first ≤ the target.

    The check before update t sees N(L_t, s_t²), independently, and stops with probability
    Φ((ε − L_t)/s_t): E min(T, T_max) = Σ_{t<T_max} Π_{s<t} (1 − Φ_s), and Π_{s<T_max} (1 − Φ_s) is the
    censored share. A check whose loss is NaN (possible for traced losses only) does not stop. Noise
    makes the first hit early, and large batches have less of it. A model: the losses of one run are
    neither exactly normal nor independent.

    Args:
        losses: (T_max,) L_t, of the first check first.
        standard_deviations: (T_max,) s_t ≥ 0; 0 makes the check certain, L_t ≤ ε stops.
        target: ε, in the unit of the losses. All three may be traced.

    Returns:
        HittingTime of JAX scalars, in checks; stopping at the very first one is T = 1. Both are NaN for
        a traced standard deviation that is negative or NaN, or a traced target that is NaN.

    Raises:
        ValueError: an argument is not finite, negative or of another shape.

    Source: derived, docs/fanout.md, Stopping rules.

    """
    check_shape("losses", losses, (None,), "one a check")
    level = jnp.asarray(losses, dtype=jnp.float64)
    check_shape("standard_deviations", standard_deviations, level.shape, "one for each loss")
    check_shape("target", target, ())
    check_number("losses", losses)
    check_number("standard_deviations", standard_deviations, 0.0)
    check_number("target", target)
    deviation = jnp.asarray(standard_deviations, dtype=jnp.float64)
    return _hitting(level, deviation, jnp.asarray(target, dtype=jnp.float64))


@jax.jit
def _hitting(
    level: Float[Array, " checks"], deviation: Float[Array, " checks"], target: Float[Array, ""]
) -> HittingTime:
    noisy, seen = deviation > 0.0, ~jnp.isnan(level)
    gap = jnp.where(seen, level, 0.0) - target
    go_on = log_ndtr(gap / jnp.where(noisy, deviation, 1.0))  # log(1 − Φ) without cancellation
    certain = jnp.where(gap > 0.0, 0.0, -jnp.inf)
    log_chance = jnp.where(seen, jnp.where(noisy, go_on, certain), 0.0)
    survival = jnp.exp(jnp.cumsum(log_chance))
    valid = (deviation >= 0.0).all() & ~jnp.isnan(target)
    return nan_unless(valid, HittingTime(1.0 + jnp.sum(survival[:-1]), survival[-1]))
