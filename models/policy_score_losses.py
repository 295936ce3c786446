"""Policy losses in score form: −sg[weight]·A·log π_θ, per token, and DRO's squared penalty.

Only the gradient means something: the value is no objective, it changes with log π_θ itself. Weights,
masks and thresholds carry no gradient. Symbols as in `policy_ratio_losses`; sg is stop-gradient.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from boundlab.models.policy_batch import CleanBatch, exp_ratio
from boundlab.models.policy_ratio_losses import PerToken, _number, _wide

# VESPO: (λ, k) by the sign of the advantage, and the range of the sequence's ratio.
VESPO_POSITIVE, VESPO_NEGATIVE = (3.0, 2.0), (2.0, 3.0)
VESPO_LOG_RANGE = (float(np.log(1e-8)), 20.0)
# DPPO: largest ratio that a score is weighted by.
DPPO_LARGEST = 20.0


def clipped_weight(batch: CleanBatch, *, epsilon_low: Any, epsilon_high: Any) -> PerToken:
    """CISPO: −sg[clip(r, 1 − ε_l, 1 + ε_h)]·A·log π; every token keeps a gradient.

    ε_l ≥ 1: there is no lower limit.
    """
    ratio = jax.lax.stop_gradient(exp_ratio(batch.log_ratio))
    high, low = 1.0 + _number(epsilon_high, batch), 1.0 - _number(epsilon_low, batch)
    weight = jnp.where(ratio > high, high, jnp.where(ratio < low, low, ratio))
    loss = -weight * batch.advantage * batch.log_prob
    return PerToken(loss, (ratio > high) | (ratio < low), {})


def sequence_weight(batch: CleanBatch) -> PerToken:
    """VESPO: −sg[φ(W)]·A·log π, φ = exp(λ + k log W − λW), W = Πr over the sequence's tokens.

    (k, λ) = (2, 3) where A ≥ 0 and (3, 2) where A < 0; log W clipped to [log 1e-8, 20].
    """
    total = jax.lax.stop_gradient(jnp.sum(batch.log_ratio, axis=1))
    log_product = jnp.clip(total, *VESPO_LOG_RANGE)
    product = jnp.exp(log_product)

    def phi(scale: float, power: float) -> Any:
        return _wide(jnp.exp(scale + power * log_product - scale * product), batch)

    weight = jnp.where(batch.advantage >= 0.0, phi(*VESPO_POSITIVE), phi(*VESPO_NEGATIVE))
    loss = -weight * batch.advantage * batch.log_prob
    return PerToken(loss, jnp.zeros_like(batch.mask), {})


def masked_by_probability(batch: CleanBatch, *, threshold: Any) -> PerToken:
    """DPPO (total variation): −sg[min(r, 20)]·A·log π where the probability hasn't moved too far.

    Kept are tokens of A > 0 with π − π_old ≤ κ and tokens of A ≤ 0 with π − π_old ≥ −κ.
    """
    log_ratio, log_prob = (jax.lax.stop_gradient(x) for x in (batch.log_ratio, batch.log_prob))
    ratio = exp_ratio(log_ratio)
    # Kept from overflow, as ratios are, where log π is no logarithm of a probability.
    moved = exp_ratio(log_prob) - exp_ratio(log_prob - log_ratio)
    limit = _number(threshold, batch)
    dropped = jnp.where(batch.advantage > 0.0, moved > limit, moved < -limit)
    weight = jnp.where(dropped, 0.0, jnp.minimum(ratio, DPPO_LARGEST))
    return PerToken(-weight * batch.advantage * batch.log_prob, dropped, {})


def squared_penalty(batch: CleanBatch, *, beta: Any) -> PerToken:
    """DRO: −(A log π − ½βρ²); no gate, but a pull back to π_old."""
    penalty = 0.5 * _number(beta, batch) * batch.log_ratio**2
    loss = -(batch.advantage * batch.log_prob - penalty)
    return PerToken(loss, jnp.zeros_like(batch.mask), {})
