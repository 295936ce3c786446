"""What every policy loss is at the policy that drew the data: its gradient there is −μA.

Symbols: A advantage, μ the weight that an aggregation gives each token, B sequences of T_b tokens, n
tokens in all, N sequences that have any.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_choice, check_number, check_shape, fail
from boundlab.precision import float64, is_traced

AGGREGATIONS = (
    "token-mean",
    "token-sum",
    "seq-mean-token-mean",
    "seq-mean-token-sum",
    "seq-mean-token-sum-norm",
)


@float64
def token_weights(
    mask: Any, aggregation: str, norm: Any = None
) -> Float[Array, "sequences tokens"]:
    """Weight μ of each token in the loss Σ μ_bt ℓ_bt that an aggregation makes of losses ℓ:

        token-mean                 1/n              seq-mean-token-mean        1/(N T_b)
        token-sum                  1                seq-mean-token-sum         1/N
        seq-mean-token-sum-norm    1/(N · norm)

    Args:
        mask: (B, T) bool or 0/1, which positions are tokens. May be traced.
        aggregation: one of the five.
        norm: positive, for the last only; None: T. May be traced.

    Returns:
        μ (B, T), 0 where masked. Sequences without a token count in no mean.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/policy_optimization.md#loss-chooser.

    """
    check_shape("mask", mask, (None, None), "(sequences, tokens)")
    if not is_traced(mask):
        held = np.asarray(mask)
        if held.dtype != bool:
            check_number("mask", held)
        if not ((held == 0) | (held == 1)).all():
            raise fail("mask", "other values", "bool, or numbers 0 and 1")
    check_choice("aggregation", aggregation, AGGREGATIONS)
    if norm is not None and not aggregation.endswith("norm"):
        raise fail("norm", norm, f"None with {aggregation!r}")
    length = mask.shape[1] if norm is None else norm
    check_shape("norm", length, (), "one number")
    check_number("norm", length, 0, low_open=True)
    ones = jnp.asarray(mask).astype(jnp.float64)
    tokens = ones @ jnp.ones(ones.shape[1])
    sequences = jnp.sum(jnp.where(tokens > 0.0, 1.0, 0.0))
    if aggregation == "token-sum":
        share = jnp.ones_like(tokens)
    elif aggregation == "token-mean":
        share = jnp.full_like(tokens, 1.0) / jnp.maximum(jnp.sum(tokens), 1.0)
    else:
        share = jnp.full_like(tokens, 1.0) / jnp.maximum(sequences, 1.0)
        if aggregation == "seq-mean-token-mean":
            share = share / jnp.maximum(tokens, 1.0)
        elif aggregation == "seq-mean-token-sum-norm":
            share = share / jnp.asarray(length).astype(jnp.float64)
    return jnp.outer(share, jnp.ones(ones.shape[1])) * ones


@float64
def on_policy_gradient(
    advantage: Any, mask: Any, aggregation: str, norm: Any = None
) -> Float[Array, "sequences tokens"]:
    """Gradient of any loss of the family by log π_θ at π_θ = π_old: −μA.

    It is the whole family's first-order agreement: gates differ only in what they do off policy. GMPO,
    which weighs a sequence by its mean advantage, has −μ times that mean. Behaviour weights must be 1.

    Args:
        advantage: A (B, T); what masked positions hold doesn't matter. May be traced.
        mask: see `token_weights`, as for `aggregation` and `norm`.
        aggregation: by which losses are combined.
        norm: its constant, if any.

    Returns:
        (B, T), 0 where masked.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/policy_optimization.md#loss-family.

    """
    weights = token_weights(mask, aggregation, norm)
    check_shape("advantage", advantage, weights.shape, "that of mask")
    if not is_traced(weights):
        check_number("advantage", advantage, where=np.asarray(weights) > 0)
    values = jnp.asarray(advantage).astype(jnp.float64)
    return -weights * jnp.where(weights > 0.0, values, 0.0)
