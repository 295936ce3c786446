"""Gate of FiberPO in closed form: its values, its Jacobian, its bounds and where it is the identity.

Symbols: ρ_i = log r_i the log-ratio of a token, T the unmasked tokens of its sequence, l_i = +1 where
ρ_i ≥ 0 and −1 elsewhere, log s± = (1/T)Σ max(±ρ, 0), C± their budgets, ε the limit of a token, and

    log G_i = g(log s⁺; C⁺) − g(log s⁻; C⁻) + clip(l_i u_i, ±ε) − clip(l_i v_i, ±ε),
    g(x; C) = x for |x| ≤ C,  sgn(x)(T + 1)C − Tx for C < |x| < (1 + 1/T)C,  else 0,
    u_i = l_iρ_i − log s^(l_i),   v_i = −log s^(−l_i).
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from boundlab.checks import check_integer, check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.typing import Count, Numbers, Scalar


class GateBounds(NamedTuple):
    """What log G never leaves."""

    lower: Float[Array, ""]
    upper: Float[Array, ""]


class _Fiber(NamedTuple):
    """All that a sequence's gate is made of."""

    ratio: Float[Array, "batch tokens"]
    kept: Bool[Array, "batch tokens"]
    up: Bool[Array, "batch tokens"]
    length: Float[Array, "batch 1"]
    log_gate: Float[Array, "batch tokens"]
    slope_up: Float[Array, "batch 1"]
    slope_down: Float[Array, "batch 1"]
    inside_u: Bool[Array, "batch tokens"]
    inside_v: Bool[Array, "batch tokens"]


@float64
def fiber_log_gate(
    log_ratio: Any, mask: Any, budget_plus: Scalar, budget_minus: Scalar, epsilon: Scalar
) -> Float[Array, "batch tokens"]:
    """Log G (B, T) of FiberPO by its definition (module's formula), 0 where masked.

    Args:
        log_ratio: ρ (B, T), natural logarithm, finite at tokens. May be traced, as all that follows.
        mask: (B, T), bool or 0/1: which positions are tokens.
        budget_plus: C⁺ ≥ 0.
        budget_minus: C⁻ ≥ 0.
        epsilon: ε > 0.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: li2026fibration, Definition 5.1.

    """
    return _fiber(log_ratio, mask, budget_plus, budget_minus, epsilon).log_gate


@float64
def fiber_jacobian(
    log_ratio: Any, mask: Any, budget_plus: Scalar, budget_minus: Scalar, epsilon: Scalar
) -> Float[Array, "batch tokens tokens"]:
    """∂G_i/∂r_j within each sequence, between sequences it is 0:

        J_ij = (G_i/r_j)[1(|u_i| ≤ ε)δ_ij + (γ_j − q_ij)/T],
        q_ij = 1(|u_i| ≤ ε) if l_i = l_j, else 1(|v_i| ≤ ε);    γ_j = g'(log s^(l_j)):

    γ is 1 where the channel passes, −T in rollback, 0 where it is zeroed. At r = 1, J = I. Where a
    channel is at its budget but for rounding, as where every ρ = C, rounding decides between 1 and −T.

    Args:
        log_ratio: ρ (B, T), finite at tokens. May be traced, as all that follows.
        mask: (B, T), bool or 0/1.
        budget_plus: C⁺ ≥ 0.
        budget_minus: C⁻ ≥ 0.
        epsilon: ε > 0.

    Returns:
        (B, T, T), [b, i, j] = ∂G_i/∂r_j in sequence b; 0 where i or j is masked.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: li2026fibration, Proposition 5.2.

    """
    fiber = _fiber(log_ratio, mask, budget_plus, budget_minus, epsilon)
    batch, tokens = fiber.up.shape
    shape = (batch, tokens, tokens)
    rows = [
        jnp.broadcast_to(part[:, :, None], shape)
        for part in (fiber.up, fiber.inside_u, fiber.inside_v, fiber.log_gate, fiber.kept)
    ]
    up, inside_u, inside_v, log_gate, kept = rows
    slope = jnp.where(fiber.up, fiber.slope_up, fiber.slope_down)
    up_j, kept_j, ratio_j, slope_j = (
        jnp.broadcast_to(part[:, None, :], shape)
        for part in (fiber.up, fiber.kept, fiber.ratio, slope)
    )
    length = jnp.broadcast_to(fiber.length[:, :, None], shape)
    diagonal = jnp.broadcast_to(jnp.eye(tokens, dtype=bool)[None], shape)
    residual = jnp.where(up == up_j, inside_u, inside_v)
    bracket = _one(inside_u & diagonal) + (slope_j - _one(residual)) / length
    # exp may overflow where the bracket is 0, or where a token is masked.
    used = kept & kept_j & (bracket != 0.0)
    return jnp.where(used, jnp.exp(jnp.where(used, log_gate - ratio_j, 0.0)) * bracket, 0.0)


@float64
def fiber_gradient(
    log_ratio: Any,
    mask: Any,
    advantage: Any,
    budget_plus: Scalar,
    budget_minus: Scalar,
    epsilon: Scalar,
) -> Float[Array, "batch tokens"]:
    """Gradient by ρ_j of a sequence's surrogate (1/T)Σ_i G_i A_i: (1/T)Σ_i A_i J_ij r_j.

    Args:
        log_ratio: ρ (B, T), finite at tokens. May be traced, as all that follows.
        mask: (B, T), bool or 0/1.
        advantage: A (B, T), finite at tokens.
        budget_plus: C⁺ ≥ 0.
        budget_minus: C⁻ ≥ 0.
        epsilon: ε > 0.

    Returns:
        (B, T), per sequence (not divided by the number of sequences); 0 where masked.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/policy_optimization.md#rollback.

    """
    check_shape("log_ratio", log_ratio, (None, None), "sequences by tokens")
    check_shape("advantage", advantage, np.shape(log_ratio), "that of log_ratio")
    _, gain = _masked("advantage", advantage, mask)
    kept, ratio = _masked("log_ratio", log_ratio, mask)
    jacobian = fiber_jacobian(log_ratio, mask, budget_plus, budget_minus, epsilon)
    length = jnp.maximum(jnp.sum(kept, axis=1, dtype=jnp.float64), 1.0)
    total = jnp.einsum("bi,bij->bj", gain, jacobian) * jnp.exp(ratio)
    return total / jnp.broadcast_to(length[:, None], total.shape)


@float64
def gate_bounds(budget_plus: Scalar, budget_minus: Scalar, epsilon: Scalar) -> GateBounds:
    """Bounds −(C⁻ + 2ε) ≤ log G ≤ C⁺ + 2ε, whatever the ratios; both ends are reached.

    Args:
        budget_plus: C⁺ ≥ 0. May be traced, as all that follows.
        budget_minus: C⁻ ≥ 0.
        epsilon: ε > 0.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/policy_optimization.md#gate-bounds.

    """
    _check_budgets(budget_plus, budget_minus, epsilon)
    plus, minus, limit = (_wide(value) for value in (budget_plus, budget_minus, epsilon))
    return GateBounds(-(minus + 2.0 * limit), plus + 2.0 * limit)


@float64
def hierarchy_bounds(budgets: Any, epsilon: Scalar) -> GateBounds:
    """Bounds of log G of a hierarchy: the coarsest level's own pair, both budgets of every finer level.

        −(C⁻_top + Σ(C⁺ + C⁻) + 2ε) ≤ log G ≤ C⁺_top + Σ(C⁺ + C⁻) + 2ε,   Σ over the finer levels,

    whose residuals have either sign. One level: `gate_bounds`.

    Args:
        budgets: (levels, 2), pairs (C⁺, C⁻) ≥ 0, finest first. May be traced.
        epsilon: ε > 0. May be traced.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/policy_optimization.md#hierarchy.

    """
    pairs = _budget_pairs(budgets)
    _check_epsilon(epsilon)
    spread = jnp.sum(pairs[:-1]) + 2.0 * _wide(epsilon)
    return GateBounds(-(pairs[-1, 1] + spread), pairs[-1, 0] + spread)


@float64
def identity_box(budgets: Any, epsilon: Scalar) -> Float[Array, ""]:
    """Radius b = min(ε, all budgets): where |ρ| ≤ b on a sequence (with all that share a node), G = r.

    On the edge itself, all ρ = b = C, rounding decides: a mean computed an ulp above C is rolled back.

    Args:
        budgets: (levels, 2), pairs (C⁺, C⁻) ≥ 0; one pair for FiberPO. May be traced.
        epsilon: ε > 0. May be traced.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/policy_optimization.md#identity-box.

    """
    _check_epsilon(epsilon)
    return jnp.minimum(jnp.min(_budget_pairs(budgets)), _wide(epsilon))


@float64
def gate_lipschitz(num_tokens: Count) -> Float[Array, ""]:
    """Lipschitz constant T + 2 of ρ ↦ log G_i of a sequence in the sup-norm; T is reached in rollback.

    Raises:
        ValueError: `num_tokens` isn't an integer ≥ 1.

    Source: derived, docs/policy_optimization.md#gate-jacobian.

    """
    return jnp.asarray(check_integer("num_tokens", num_tokens, 1) + 2.0, jnp.float64)


@float64
def censored_aggregate(x: Numbers, budget: Scalar) -> Float[Array, "..."]:
    """Pointwise limit of g(x; C, T) for T → ∞: x where |x| ≤ C, else 0 (not a clip to ±C).

    Args:
        x: log of an aggregated ratio, any shape. May be traced.
        budget: C ≥ 0. May be traced.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/policy_optimization.md#rollback.

    """
    check_number("x", x)
    check_shape("budget", budget, (), "one number")
    check_number("budget", budget, 0)
    values = jnp.asarray(x).astype(jnp.float64)
    inside = jnp.abs(values) <= jnp.broadcast_to(_wide(budget), values.shape)
    return jnp.where(inside, values, 0.0)


def _fiber(log_ratio: Any, mask: Any, budget_plus: Any, budget_minus: Any, epsilon: Any) -> _Fiber:
    _check_budgets(budget_plus, budget_minus, epsilon)
    kept, ratio = _masked("log_ratio", log_ratio, mask)
    shape, limit = ratio.shape, _wide(epsilon)
    up = ratio >= 0.0
    length = jnp.maximum(jnp.sum(kept, axis=1, keepdims=True, dtype=jnp.float64), 1.0)
    s_up, s_down = (
        jnp.sum(jnp.maximum(part, 0.0), axis=1, keepdims=True) / length for part in (ratio, -ratio)
    )
    base_up, slope_up = _aggregate(s_up, _wide(budget_plus), length)
    base_down, slope_down = _aggregate(s_down, _wide(budget_minus), length)
    sign = jnp.where(up, 1.0, -1.0)
    own, other = (jnp.where(up, one, two) for one, two in ((s_up, s_down), (s_down, s_up)))
    u, v = sign * ratio - own, -other
    fiber = jnp.clip(sign * u, -limit, limit) - jnp.clip(sign * v, -limit, limit)
    log_gate = jnp.where(kept, jnp.broadcast_to(base_up - base_down, shape) + fiber, 0.0)
    inside_u, inside_v = (jnp.abs(part) <= jnp.broadcast_to(limit, shape) for part in (u, v))
    return _Fiber(ratio, kept, up, length, log_gate, slope_up, slope_down, inside_u, inside_v)


def _aggregate(
    x: Float[Array, "batch 1"], budget: Float[Array, ""], length: Float[Array, "batch 1"]
) -> tuple[Float[Array, "batch 1"], Float[Array, "batch 1"]]:
    """Value and slope of g at an x ≥ 0."""
    full = jnp.broadcast_to(budget, x.shape)
    passes, falls = x <= full, x < (1.0 + 1.0 / length) * full
    value = jnp.where(passes, x, jnp.where(falls, (length + 1.0) * full - length * x, 0.0))
    return value, jnp.where(passes, 1.0, jnp.where(falls, -length, 0.0))


def _masked(
    name: str, values: Any, mask: Any
) -> tuple[Bool[Array, "batch tokens"], Float[Array, "batch tokens"]]:
    """The mask as booleans, and `values` with 0 in place of what masked positions hold; checked."""
    check_shape(name, values, (None, None), "sequences by tokens")
    check_shape("mask", mask, np.shape(values), f"that of {name}")
    if not is_traced(mask):
        held = np.asarray(mask)
        if held.dtype != bool:
            check_number("mask", held, 0, 1)
            if not np.isin(held, (0, 1)).all():
                raise fail("mask", "numbers between 0 and 1", "booleans, or 0 and 1")
        check_number(name, values, where=held != 0)
    kept = jnp.asarray(mask).astype(bool)
    return kept, jnp.where(kept, jnp.asarray(values).astype(jnp.float64), 0.0)


def _check_budgets(budget_plus: Any, budget_minus: Any, epsilon: Any) -> None:
    for name, value in (("budget_plus", budget_plus), ("budget_minus", budget_minus)):
        check_shape(name, value, (), "one number")
        check_number(name, value, 0)
    _check_epsilon(epsilon)


def _check_epsilon(epsilon: Any) -> None:
    check_shape("epsilon", epsilon, (), "one number")
    check_number("epsilon", epsilon, 0, low_open=True)


def _budget_pairs(budgets: Any) -> Float[Array, "levels 2"]:
    check_shape("budgets", budgets, (None, 2), "pairs (C⁺, C⁻), finest level first")
    check_number("budgets", budgets, 0)
    return jnp.asarray(budgets).astype(jnp.float64)


def _wide(value: Any) -> Float[Array, ""]:
    return jnp.asarray(value).astype(jnp.float64)


def _one(condition: Bool[Array, "*shape"]) -> Float[Array, "*shape"]:
    return condition.astype(jnp.float64)
