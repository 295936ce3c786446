"""From a loss a token to one number: the five ways in use, and what each divides by.

Symbols: ℓ_bt the loss of token t of sequence b; T_b its number of tokens, n = Σ_b T_b; N the number of
sequences with a token; T the padded length. A sequence without a token counts in no mean.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_choice, check_number, check_shape, fail, shown
from boundlab.models.policy_batch import as_number, check_mask, check_type, working_type

TOKEN_MODES = ("token-mean", "token-sum")
SEQUENCE_MODES = ("seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm")
MODES = TOKEN_MODES + SEQUENCE_MODES


def aggregate(
    per_token: Any, mask: Any, mode: str, *, norm: Any = None, denominator: Any = None
) -> Float[Array, ""]:
    """One number of the losses of all tokens.

        token-mean                  Σ_bt ℓ_bt / n
        token-sum                   Σ_bt ℓ_bt
        seq-mean-token-mean         (1/N) Σ_b (1/T_b) Σ_t ℓ_bt
        seq-mean-token-sum          (1/N) Σ_b Σ_t ℓ_bt
        seq-mean-token-sum-norm     (1/N) Σ_b Σ_t ℓ_bt / norm

    Losses of micro-batches add up to the whole batch's if each is given the whole batch's n or N as
    `denominator`, and `norm` where it is used: its default is the length to which *this* batch is padded.

    Args:
        per_token: ℓ (B, T); what masked positions hold doesn't matter. Computes in its type, in float32
            where that is narrower.
        mask: (B, T) bool or 0/1.
        mode: one of the above.
        norm: a positive number, with `seq-mean-token-sum-norm` only; None: T. May be traced.
        denominator: a positive number in place of n or N (of 1 for `token-sum`). May be traced.

    Returns:
        The loss; 0 where all is masked.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/policy_optimization.md#loss-chooser.

    """
    check_shape("per_token", per_token, (None, None), "(sequences, tokens)")
    check_type("per_token", per_token, "floating-point numbers", np.floating)
    values = jnp.asarray(per_token)
    check_mask(mask, values.shape)
    check_aggregation(mode, norm, denominator, name="mode")
    dtype = working_type(values.dtype)
    kept = jnp.asarray(mask).astype(bool)
    values = jnp.where(kept, values.astype(dtype), jnp.zeros((), dtype))
    return combine(values, jnp.sum(kept, axis=1, dtype=dtype), mode, norm, denominator)


def check_aggregation(mode: Any, norm: Any, denominator: Any, *, name: str = "aggregation") -> None:
    """Refuse an unknown `mode`, a `norm` that it doesn't use, and numbers that aren't positive."""
    check_choice(name, mode, MODES)
    if norm is not None and mode != "seq-mean-token-sum-norm":
        raise fail("norm", shown(norm), f"None: {mode!r} doesn't divide by it")
    for label, value in (("norm", norm), ("denominator", denominator)):
        if value is not None:
            check_shape(label, value, (), "one number")
            check_number(label, value, 0, low_open=True)


def combine(
    per_token: Float[Array, "sequences tokens"],
    lengths: Float[Array, " sequences"],
    mode: str,
    norm: Any = None,
    denominator: Any = None,
) -> Float[Array, ""]:
    """`aggregate` of checked arguments: `per_token` is 0 where masked, `lengths` are T_b."""
    # One pass over the tokens, sequences side by side. XLA would fold a sum of sums into one over both
    # axes, in small windows, a quarter slower.
    rows = jnp.sum(per_token, axis=1)
    if mode in TOKEN_MODES:
        rows, lengths = jax.lax.optimization_barrier((rows, lengths))
        own = jnp.sum(lengths) if mode == "token-mean" else None
        return jnp.sum(rows) / _count(own, denominator, rows.dtype)
    if mode == "seq-mean-token-mean":
        rows = rows / jnp.maximum(lengths, 1.0)
    elif mode == "seq-mean-token-sum-norm":
        rows = rows / as_number(per_token.shape[1] if norm is None else norm, rows.dtype)
    return mean_of_sequences(rows, lengths, denominator)


def mean_of_sequences(
    rows: Float[Array, " sequences"], lengths: Float[Array, " sequences"], denominator: Any = None
) -> Float[Array, ""]:
    """Mean of values that are 0 for a sequence without tokens, over the sequences with any."""
    own = jnp.sum(lengths > 0.0, dtype=rows.dtype)
    return jnp.sum(rows) / _count(own, denominator, rows.dtype)


def _count(own: Float[Array, ""] | None, denominator: Any, dtype: Any) -> Float[Array, ""]:
    if denominator is not None:
        return as_number(denominator, dtype)
    return jnp.ones((), dtype) if own is None else jnp.maximum(own, 1.0)
