"""Estimators around a policy loss: KL divergence per token, advantages relative to a prompt's group.

Symbols: x = log π_θ − log π_ref of a token that π_θ drew; with E over π_θ, E k1 = E k3 = KL(π_θ‖π_ref).
"""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_choice, check_number, check_shape, fail, shown
from boundlab.models.policy_batch import check_ids, check_type

KL_KINDS = ("k1", "k2", "k3")
# e^{−x} is continued by its tangent below x = −20: a float32 would overflow at −88, and a sum sooner.
LARGEST_EXPONENT = 20.0
# 1/n! for n = 2 … 15, all that e^{−x} − 1 + x needs for |x| < ½ in float64.
SERIES = tuple(1 / math.factorial(n) for n in range(2, 16))


def kl_estimate(
    log_prob: Any, log_prob_reference: Any, kind: str
) -> Float[Array, "sequences tokens"]:
    """Estimate of KL(π_θ‖π_ref) from each token drawn from π_θ, x = log π_θ − log π_ref:

        k1 = x,   k2 = x²/2,   k3 = e^{−x} − 1 + x.

    k1 and k3 have the divergence as mean, k2 has not; k2 and k3 are ≥ 0. Differentiated through
    `log_prob` as a loss they mean something else: on average k1's gradient is 0, k2's that of
    KL(π_θ‖π_ref), k3's that of KL(π_ref‖π_θ).

    Args:
        log_prob: (B, T) log π_θ, natural logarithm. May be traced.
        log_prob_reference: (B, T) log π_ref. May be traced.
        kind: `k1`, `k2` or `k3`.

    Returns:
        (B, T), float32 at least. k3 keeps its digits near x = 0, and goes on by its tangent below
        x = −20, so that it and its gradient stay finite. Where x is not finite, as padding may be, the
        estimate isn't either, but the gradient is 0: a mask that removes the value leaves nothing behind.

    Raises:
        ValueError: an argument of another shape or type, an unknown kind; it is named.

    Source: Schulman's k1, k2, k3 (recalled); derived, docs/policy_optimization.md#behaviour-weights.

    """
    check_choice("kind", kind, KL_KINDS)
    check_shape("log_prob", log_prob, (None, None), "(sequences, tokens)")
    check_shape("log_prob_reference", log_prob_reference, np.shape(log_prob), "that of log_prob")
    for name, value in (("log_prob", log_prob), ("log_prob_reference", log_prob_reference)):
        check_type(name, value, "floating-point numbers", np.floating)
    policy, reference = jnp.asarray(log_prob), jnp.asarray(log_prob_reference)
    dtype = _computed_in(policy.dtype, reference.dtype)
    return _estimate(policy.astype(dtype) - reference.astype(dtype), kind)


def group_advantage(
    reward: Any, group_id: Any, *, scale: bool = True
) -> Float[Array, " sequences"]:
    """Reward less the mean of its group, over the group's sample standard deviation + 1e-6:

        A_b = (R_b − mean_g R)/(s_g + 10⁻⁶),   s_g² = Σ_g (R − mean_g R)²/(n_g − 1).

    Exactly 0 in a group of equal rewards, and for one that is alone. A traced reward that isn't finite
    makes the advantages of its group NaN or infinite.

    Args:
        reward: (B,) finite. May be traced.
        group_id: (B,) integers in [0, B): the prompt group of each sequence. May be traced.
        scale: False leaves the division out, as Dr.GRPO does.

    Returns:
        (B,), in the type of `reward`, float32 at least.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: `shao2024deepseekmath` (recalled); n − 1 and 10⁻⁶ are conventions of the suite.

    """
    check_shape("reward", reward, (None,), "one a sequence")
    check_type("reward", reward, "real numbers", np.integer, np.floating)
    given = reward if isinstance(reward, jax.Array) else np.asarray(reward)
    dtype, count = _computed_in(jax.dtypes.canonicalize_dtype(given.dtype)), given.shape[0]
    limit = float(jnp.finfo(dtype).max) / (4 * count)
    check_number("reward", given, -limit, limit, why="their sums overflow beyond")
    check_ids("group_id", group_id, count)
    if not isinstance(scale, bool | np.bool):
        raise fail("scale", shown(scale), "True or False")
    ids, rewards = jnp.asarray(group_id).astype(jnp.int32), jnp.asarray(given.astype(dtype))
    # From the largest reward of the group, equal ones are exactly 0 apart.
    from_top = rewards - jax.ops.segment_max(rewards, ids, count)[ids]
    members = jax.ops.segment_sum(jnp.ones_like(from_top), ids, count)[ids]
    centred = from_top - jax.ops.segment_sum(from_top, ids, count)[ids] / members
    if not scale:
        return centred
    # Relative to the largest deviation, whose square could overflow.
    largest = jax.ops.segment_max(jnp.abs(centred), ids, count)[ids]
    unit = jnp.where(largest > 0, largest, 1)
    relative = centred / unit
    squares = jax.ops.segment_sum(relative**2, ids, count)[ids] / jnp.maximum(members - 1, 1)
    spread = jnp.sqrt(jnp.where(largest > 0, squares, 1))
    return relative / (spread + 1e-6 / unit)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _estimate(x: Float[Array, "*shape"], kind: str) -> Float[Array, "*shape"]:
    if kind == "k1":
        return x
    if kind == "k2":
        return x**2 / 2
    inside = jnp.maximum(x, -LARGEST_EXPONENT)
    # e^{−x} − 1 and x nearly cancel at small x, where the series is used; each term of it is small.
    near = jnp.where(jnp.abs(x) < 0.5, x, 0)
    series = jnp.zeros_like(near)
    for coefficient in SERIES[::-1]:
        series = coefficient - near * series
    tangent = (x - inside) * (1 - math.exp(LARGEST_EXPONENT))
    value = jnp.expm1(-inside) + inside + tangent
    return jnp.where(jnp.abs(x) < 0.5, near**2 * series, value)


@_estimate.defjvp
def _estimate_jvp(
    kind: str, primals: tuple[Array], tangents: tuple[Array]
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    (x,), (direction,) = primals, tangents
    slopes = {
        "k1": lambda x: jnp.ones_like(x),
        "k2": lambda x: x,
        "k3": lambda x: -jnp.expm1(-jnp.maximum(x, -LARGEST_EXPONENT)),
    }
    finite = jnp.isfinite(x)
    slope = jnp.where(finite, slopes[kind](jnp.where(finite, x, 0)), 0)
    return _estimate(x, kind), slope * direction


def _computed_in(*dtypes: Any) -> np.dtype:
    """The widest of these floating-point types, float32 at least; JAX's own for integers."""
    floating = [d if jnp.issubdtype(d, jnp.floating) else jnp.zeros(()).dtype for d in dtypes]
    return np.dtype(max([np.dtype(np.float32), *floating], key=lambda d: jnp.finfo(d).bits))
