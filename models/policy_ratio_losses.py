"""Policy losses whose value is a surrogate: a gated ratio times the advantage, per token.

Each function maps a cleaned batch to a `PerToken`. Symbols: ρ = log π_θ − log π_old, r = e^ρ (ρ clipped
to ±20), A the advantage, T_b the tokens of a sequence; ε_l, ε_h the distances of the clip limits from 1.
Minimising −min(rA, clip(r)A) is the same as −A·g with g = min(r, 1 + ε_h) for A > 0 and
g = max(r, 1 − ε_l) for A < 0, as it is computed here.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from boundlab.models.gates import FiberInfo, fiber_gate, hierarchy_gate
from boundlab.models.policy_batch import CleanBatch, as_number, exp_ratio

# Largest logarithm of a sequence's ratio, as in the implementations that are in use.
LARGEST_LOG_SEQUENCE_RATIO = 10.0


class PerToken(NamedTuple):
    """Losses of tokens (B, T), or of sequences (B,), before they are combined."""

    loss: Float[Array, "*shape"]
    """0 where masked."""
    gated: Bool[Array, "sequences tokens"]
    """Where the gate acts; what it holds at masked positions doesn't matter."""
    extra: dict[str, Float[Array, ""]]
    """Further metrics."""


def clipped(batch: CleanBatch, *, epsilon_low: Any, epsilon_high: Any) -> PerToken:
    """PPO: −min(rA, clip(r, 1 − ε_l, 1 + ε_h)A).

    Source: schulman2017proximal, eq. 7.
    """
    ratio = exp_ratio(batch.log_ratio)
    gate, gated = _clip_worse(ratio, batch.advantage, epsilon_low, epsilon_high)
    return PerToken(-gate * batch.advantage, gated, {})


def dual_clipped(
    batch: CleanBatch, *, epsilon_low: Any, epsilon_high: Any, dual_clip: Any
) -> PerToken:
    """PPO, with the loss of tokens of A < 0 bounded by c|A|: −max(min(rA, clip(r)A), cA) there."""
    ratio = exp_ratio(batch.log_ratio)
    gate, gated = _clip_worse(ratio, batch.advantage, epsilon_low, epsilon_high)
    limit = _number(dual_clip, batch)
    bounded = (batch.advantage < 0.0) & (gate > limit)
    gate = jnp.where(bounded, limit, gate)
    return PerToken(-gate * batch.advantage, gated | bounded, {})


def sequence_clipped(batch: CleanBatch, *, epsilon_low: Any, epsilon_high: Any) -> PerToken:
    """GSPO in the token form: PPO with s·π/sg[π] for r, s = exp((1/T_b)Σρ) without a gradient.

    All tokens of a sequence have the value s; each has the gradient of its own log π.

    Source: zheng2025group, eqs. 5, 7 and the token variant.
    """
    mean = jnp.sum(batch.log_ratio, axis=1) / jnp.maximum(batch.lengths, 1.0)
    shared = jnp.exp(jnp.minimum(jax.lax.stop_gradient(mean), LARGEST_LOG_SEQUENCE_RATIO))
    # 1 + log π − sg[log π] is π/sg[π] to first order, which is all that is ever asked of it.
    own = 1.0 + (batch.log_prob - jax.lax.stop_gradient(batch.log_prob))
    ratio = _wide(shared, batch) * own
    gate, gated = _clip_worse(ratio, batch.advantage, epsilon_low, epsilon_high)
    return PerToken(-gate * batch.advantage, gated, {})


def geometric(batch: CleanBatch, *, epsilon_low: Any, epsilon_high: Any) -> PerToken:
    """GMPO, one loss a sequence: −exp(mean_t sgn(A)min(sgn(A)ρ, sgn(A)clip(ρ, −ε_l, ε_h)))·mean_t A.

    Source: derived, docs/policy_optimization.md#loss-family (the form of implementations in use).
    """
    low, high = -_number(epsilon_low, batch), _number(epsilon_high, batch)
    up, down = batch.advantage > 0.0, batch.advantage < 0.0
    gated = (up & (batch.log_ratio > high)) | (down & (batch.log_ratio < low))
    # sgn(0) = 0: a token without advantage moves nothing.
    kept = jnp.where(up | down, batch.log_ratio, 0.0)
    gate = jnp.where(gated, jnp.where(up, high, low), kept)
    lengths = jnp.maximum(batch.lengths, 1.0)
    ratio = exp_ratio(jnp.sum(gate, axis=1) / lengths)
    return PerToken(-ratio * (jnp.sum(batch.advantage, axis=1) / lengths), gated, {})


def soft_gated(
    batch: CleanBatch, *, temperature_positive: Any, temperature_negative: Any
) -> PerToken:
    """SAPO: −(4/τ)σ(τ(r − 1))A, τ = τ⁺ where A > 0 and τ⁻ elsewhere; nothing is cut off."""
    scale = jnp.where(
        batch.advantage > 0.0,
        _number(temperature_positive, batch),
        _number(temperature_negative, batch),
    )
    gate = 4.0 / scale * jax.nn.sigmoid(scale * (exp_ratio(batch.log_ratio) - 1.0))
    return PerToken(-gate * batch.advantage, jnp.zeros_like(batch.mask), {})


def censored(batch: CleanBatch, *, radius: Any) -> PerToken:
    """APC a sequence: −(1 + clip(r − 1, ±B⁺))A, B = T_b(δ − D̂) + |r − 1|, D̂ = mean_t|r − 1|.

    B depends on the ratios of the other tokens, and its gradient counts.

    Source: li2026fibration, Definition 3.2 with the coupling of a trajectory (appendix E.5.3).
    """
    step = jnp.where(batch.mask, exp_ratio(batch.log_ratio) - 1.0, 0.0)
    size = jnp.abs(step)
    room = batch.lengths * _number(radius, batch) - jnp.sum(size, axis=1)
    limit = _wide(room, batch) + size
    # |r − 1| ≤ B is room ≥ 0: decided a sequence, so that rounding doesn't split its tokens.
    gated = ~_wide(room >= 0.0, batch)
    gate = jnp.where(gated, jnp.sign(step) * jnp.maximum(limit, 0.0), step)
    return PerToken(-(1.0 + gate) * batch.advantage, gated, {})


def fiber_gated(
    batch: CleanBatch, *, budget_plus: Any, budget_minus: Any, epsilon: Any, pessimistic: bool
) -> PerToken:
    """FiberPO: −GA; `pessimistic`: −min(rA, GA), which is not the paper's.

    Source: li2026fibration, Definition 5.1; the pessimistic form derived,
    docs/policy_optimization.md#pessimistic-fiberpo.
    """
    log_gate, info = fiber_gate(batch.log_ratio, batch.mask, budget_plus, budget_minus, epsilon)
    if pessimistic:
        # min(rA, GA) by logarithms, so that one exponential is enough.
        rho, up = batch.log_ratio, batch.advantage > 0.0
        log_gate = jnp.where(up == (rho < log_gate), rho, log_gate)
    gain = exp_ratio(log_gate) * batch.advantage
    return PerToken(-gain, jnp.abs(info.u) > _number(epsilon, batch), _regimes(info, batch))


def hierarchy_gated(batch: CleanBatch, *, budgets: Any, epsilon: Any) -> PerToken:
    """FiberPO-Domain: −GA with the levels sequence, prompt group and domain.

    Source: li2026fibration, Definition 6.4, with a pair of budgets a level.
    """
    assert batch.group_id is not None
    assert batch.domain_id is not None
    domains = _domains_of_groups(batch)
    # A group in two domains: refused where ids are concrete.
    nested = (batch.lengths == 0.0) | (domains[batch.group_id] == batch.domain_id)
    ratio = batch.log_ratio * jnp.where(jnp.all(nested), 1.0, jnp.nan).astype(batch.log_ratio.dtype)
    parents = (batch.group_id, domains)
    log_gate, info = hierarchy_gate(ratio, batch.mask, parents, budgets, epsilon)
    loss = -exp_ratio(log_gate) * batch.advantage
    return PerToken(loss, jnp.abs(info.u) > _number(epsilon, batch), _regimes(info, batch))


def _clip_worse(
    ratio: Float[Array, "sequences tokens"],
    advantage: Float[Array, "sequences tokens"],
    epsilon_low: Any,
    epsilon_high: Any,
) -> tuple[Float[Array, "sequences tokens"], Bool[Array, "sequences tokens"]]:
    """The ratio, clipped where that makes the surrogate smaller, and where it does."""
    high = 1.0 + as_number(epsilon_high, ratio.dtype)
    low = 1.0 - as_number(epsilon_low, ratio.dtype)
    above, below = (advantage > 0.0) & (ratio > high), (advantage < 0.0) & (ratio < low)
    return jnp.where(above, high, jnp.where(below, low, ratio)), above | below


def _domains_of_groups(batch: CleanBatch) -> Int[Array, " groups"]:
    """Domain of each group by its sequences with tokens; 0 for a group without any."""
    assert batch.group_id is not None
    assert batch.domain_id is not None
    counted = jnp.where(batch.lengths > 0.0, batch.domain_id, jnp.zeros_like(batch.domain_id))
    found = jax.ops.segment_max(counted, batch.group_id, batch.lengths.shape[0])
    return jnp.maximum(found, jnp.zeros_like(found))


def _regimes(info: FiberInfo, batch: CleanBatch) -> dict[str, Float[Array, ""]]:
    """Shares of the sequences with tokens whose channels are rolled back or zeroed."""
    some = batch.lengths > 0.0
    count = jnp.maximum(jnp.sum(some, dtype=batch.lengths.dtype), 1.0)
    shares = {}
    for channel, regime in (("plus", info.regime_plus), ("minus", info.regime_minus)):
        for code, name in ((0, "passed"), (1, "rolled_back"), (2, "zeroed")):
            found = jnp.sum(some & (regime == code), dtype=batch.lengths.dtype)
            shares[f"{channel}_{name}"] = found / count
    return shares


def _number(value: Any, batch: CleanBatch) -> Float[Array, ""]:
    return as_number(value, batch.log_ratio.dtype)


def _wide(values: Any, batch: CleanBatch) -> Any:
    """One value a sequence, (B,), for each of its tokens, (B, T)."""
    return jnp.broadcast_to(values[:, None], batch.log_ratio.shape)
