"""Weights for tokens that another policy drew than the one of which the ratio is taken.

Symbols: w = π_old/π_behavior of a token (`log_prob_old` − `log_prob_behavior`); T_b tokens in sequence b.

| kind | weight of a token | options, defaults |
|---|---|---|
| `tis` | w clipped to [low, high] | low 0, high 2 |
| `icepop` | w where low ≤ w ≤ high, else 0 | low .5, high 5 |
| `sequence_mask` | w where low ≤ exp(mean_t log w) ≤ high, else 0 | low .5, high 5 |
| `opsm` | 0 where A < 0 and mean_t(log π_old − log π_θ) > threshold, else 1 | threshold 10⁻⁴ |
| `decoupled` | w | |
| `m2po` | 0 for the fewest tokens, those of largest (log w)², that leave a mean below threshold | .04 |

No weight carries a gradient. A loss multiplies its tokens by them; denominators stay as they are.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from boundlab.checks import check_choice, check_number, check_shape, fail, shown
from boundlab.models.policy_batch import CleanBatch, as_number, exp_ratio
from boundlab.precision import is_traced

BEHAVIOR_WEIGHTS = ("tis", "icepop", "sequence_mask", "opsm", "decoupled", "m2po")
# Defaults are those of slime (tis, opsm), OpenRLHF (icepop, sequence_mask) and AReaL's example (m2po).
DEFAULTS: dict[str | None, dict[str, float]] = {
    None: {},
    "tis": {"low": 0.0, "high": 2.0},
    "icepop": {"low": 0.5, "high": 5.0},
    "sequence_mask": {"low": 0.5, "high": 5.0},
    "opsm": {"threshold": 1e-4},
    "decoupled": {},
    "m2po": {"threshold": 0.04},
}


def behavior_options(kind: Any, low: Any, high: Any, threshold: Any) -> dict[str, Any]:
    """The options of one kind of weight, checked, with defaults for those that are None.

    Args:
        kind: None or one of the module's table.
        low: least weight; 0 ≤ low ≤ high. May be traced.
        high: largest weight, > 0. May be traced.
        threshold: ≥ 0 for `opsm`, > 0 for `m2po`. May be traced.

    Returns:
        The options that the kind uses, by the names `low`, `high`, `threshold`.

    Raises:
        ValueError: an unknown kind, an option that it doesn't use or that is out of range; it is named
            as `policy_loss` names it, `behavior_low` and so on.

    """
    if kind is not None:
        check_choice("behavior_weight", kind, BEHAVIOR_WEIGHTS)
    options = dict[str, Any](DEFAULTS[kind])
    for name, value in (("low", low), ("high", high), ("threshold", threshold)):
        if value is None:
            continue
        if name not in options:
            users = [str(other) for other, taken in DEFAULTS.items() if name in taken]
            raise fail(
                f"behavior_{name}",
                f"{shown(value)} with behavior_weight={kind!r}",
                "None but for " + ", ".join(users),
            )
        options[name] = value
    for name, value in options.items():
        check_shape(f"behavior_{name}", value, (), "one number")
        open_at_0 = name == "high" or kind == "m2po"
        check_number(f"behavior_{name}", value, 0, low_open=open_at_0)
    low, high = options.get("low"), options.get("high")
    if low is not None and not is_traced(low, high) and low > high:
        raise fail("behavior_low", f"{low} above behavior_high {high}", "a number ≤ behavior_high")
    return options


def behavior_weights(
    kind: str | None, batch: CleanBatch, *, low: Any = None, high: Any = None, threshold: Any = None
) -> Float[Array, "sequences tokens"]:
    """Weight of each token's loss, 0 where masked; see the module's table.

    Weights without a bound, of `decoupled` and `sequence_mask`, are cut at e^{±20}. The mean of
    `sequence_mask` and `opsm` is over the unmasked tokens of the sequence, that of `m2po` over those of
    the whole batch.

    Args:
        kind: one of the table, None for 1 everywhere.
        batch: as `boundlab.models.policy_batch.clean` makes it.
        low: see `behavior_options`, as for the other two.
        high: None for the kind's default.
        threshold: None for the kind's default.

    Raises:
        ValueError: see `behavior_options`.

    Source: derived from the code of the libraries named in docs/policy_optimization.md#behaviour-weights.

    """
    chosen = behavior_options(kind, low, high, threshold)
    dtype = batch.log_ratio_behavior.dtype
    limit = {name: as_number(value, dtype) for name, value in chosen.items()}
    log_weight = batch.log_ratio_behavior
    if kind == "tis":
        weight = jnp.clip(jnp.exp(log_weight), limit["low"], limit["high"])
    elif kind == "icepop":
        weight = jnp.exp(log_weight)  # may overflow, and is dropped then
        weight = jnp.where((weight >= limit["low"]) & (weight <= limit["high"]), weight, 0)
    elif kind == "sequence_mask":
        middle = jnp.exp(_sequence_mean(log_weight, batch))
        kept = (middle >= limit["low"]) & (middle <= limit["high"])
        weight = jnp.where(kept[:, None], exp_ratio(log_weight), 0)
    elif kind == "opsm":
        moved = _sequence_mean(-batch.log_ratio, batch) > limit["threshold"]
        weight = jnp.where((batch.advantage < 0) & moved[:, None], 0, jnp.ones_like(log_weight))
    elif kind == "decoupled":
        weight = exp_ratio(log_weight)
    elif kind == "m2po":
        weight = _second_moment_mask(batch, limit["threshold"]).astype(dtype)
    else:
        weight = jnp.ones_like(log_weight)
    # Comparisons hide a token whose numbers are NaN, which has no weight.
    weight = jnp.where(jnp.isnan(log_weight), log_weight, weight)
    return jax.lax.stop_gradient(jnp.where(batch.mask, weight, 0))


def sequence_weights(
    weights: Float[Array, "sequences tokens"], batch: CleanBatch
) -> Float[Array, " sequences"]:
    """One weight a sequence: the geometric mean over its tokens, 0 where one of them is 0."""
    dropped = (weights <= 0) & batch.mask  # not a NaN, which makes the mean NaN
    mean = _sequence_mean(jnp.log(jnp.where(dropped | ~batch.mask, 1, weights)), batch)
    return jax.lax.stop_gradient(jnp.where(jnp.any(dropped, axis=1), 0, jnp.exp(mean)))


def _sequence_mean(
    values: Float[Array, "sequences tokens"], batch: CleanBatch
) -> Float[Array, " sequences"]:
    """Mean over the tokens of each sequence of values that are 0 where masked; 0 without tokens."""
    return jnp.sum(jnp.where(batch.mask, values, 0), axis=1) / jnp.maximum(batch.lengths, 1)


def _second_moment_mask(
    batch: CleanBatch, threshold: Float[Array, ""]
) -> Bool[Array, "sequences tokens"]:
    """The tokens that M2PO keeps: as many of the smallest (log w)² as have a mean below the threshold.

    Prefixes of the sorted squares have increasing means. Of equal squares at the cut, those with the
    smaller log w, A and ρ stay: the order of the sequences then doesn't decide which.
    """
    largest = jnp.finfo(batch.advantage.dtype).max
    log_weight = jax.lax.stop_gradient(batch.log_ratio_behavior)
    # Padding comes last, after any square that overflows.
    square = jnp.where(batch.mask, jnp.minimum(log_weight**2, largest), jnp.inf)
    keys = (square, log_weight, batch.advantage, jax.lax.stop_gradient(batch.log_ratio))
    place = jnp.arange(square.size, dtype=jnp.int32)
    ordered = jax.lax.sort((*(key.ravel() for key in keys), place), num_keys=len(keys))
    counts = jnp.arange(1, square.size + 1, dtype=square.dtype)
    below = jnp.cumsum(ordered[0]) / counts < threshold
    stays = jnp.arange(square.size) < jnp.maximum(jnp.sum(below), 1)
    kept = jnp.zeros(square.size, bool).at[ordered[-1]].set(stays, unique_indices=True)
    return kept.reshape(square.shape) & batch.mask
