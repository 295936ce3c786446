"""What every policy loss is given, a padded batch of sequences, and the form in which losses use it.

Symbols: B sequences of at most T tokens; ρ = log π_θ − log π_old the log-ratio of a token; T_b the
number of tokens of sequence b, unmasked positions.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from boundlab.checks import check_shape, fail
from boundlab.precision import is_traced


class PolicyBatch(NamedTuple):
    """B sequences of at most T tokens, padded; what a masked position holds never matters.

    A token whose numbers aren't finite (−inf is no log-probability of a token that was drawn) is refused
    where values are concrete. Where they are traced, it makes loss, metrics and its own gradient NaN.

        log_prob, log_prob_old, advantage   (B, T) floating; an advantage a sequence, (B,), is given as
                                            broadcast(advantage[:, None], (B, T))
        log_prob_behavior                   (B, T), or None: the old one; used by behaviour weights alone
        mask                                (B, T) bool or 0/1
        group_id, domain_id                 (B,) integers in [0, B) of this batch (renumber a slice's by
                                            np.unique), a group in one domain; None where not needed.
                                            Where traced and not so, losses that need them are NaN.
    """

    log_prob: Any
    """(B, T) log π_θ of the tokens drawn, natural logarithm; the loss is differentiated by it alone."""
    log_prob_old: Any
    """(B, T) the same under the proximal policy π_old, of which the ratio r = π_θ/π_old is taken."""
    log_prob_behavior: Any
    """(B, T) the same under the policy that drew the tokens; None: the old one."""
    advantage: Any
    """(B, T) estimated advantage of each token."""
    mask: Any
    """(B, T) bool or 0/1: which positions are tokens."""
    group_id: Any = None
    """(B,) integers in [0, B): the prompt group of each sequence; None where the loss needs none."""
    domain_id: Any = None
    """(B,) integers in [0, B): the domain of each sequence; a group lies in one domain only."""


class CleanBatch(NamedTuple):
    """A checked batch in one floating-point type, with 0 at every masked position of every field.

    Only `log_prob` and `log_ratio` carry a gradient. Where one number of a token isn't finite, or ρ or
    log π_old − log π_behavior overflows, all four are NaN, and so is the token's gradient.
    """

    log_prob: Float[Array, "sequences tokens"]
    """log π_θ."""
    log_ratio: Float[Array, "sequences tokens"]
    """ρ = log π_θ − log π_old."""
    log_ratio_behavior: Float[Array, "sequences tokens"]
    """log π_old − log π_behavior: 0 where the behaviour policy isn't given."""
    advantage: Float[Array, "sequences tokens"]
    """A."""
    mask: Bool[Array, "sequences tokens"]
    """True at tokens."""
    lengths: Float[Array, " sequences"]
    """T_b, the number of tokens, 0 for a sequence without any."""
    group_id: Int[Array, " sequences"] | None
    """Prompt group of each sequence."""
    domain_id: Int[Array, " sequences"] | None
    """Domain of each sequence."""


# Log-ratios are cut here before they are exponentiated: e²⁰ squared, times the size of a batch, is still
# a float32. The gradient is 0 beyond, where the ratio is 5e8.
LARGEST_LOG_RATIO = 20.0
IDS = ("group_id", "domain_id")


def exp_ratio(log_ratio: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Ratio r = e^ρ with ρ clipped to ±20; NaN stays NaN."""
    # jnp.clip would halve the gradient at the limits, by two more passes over the tokens.
    outside = jnp.abs(log_ratio) > LARGEST_LOG_RATIO
    limit = jnp.where(log_ratio > 0.0, LARGEST_LOG_RATIO, -LARGEST_LOG_RATIO)
    return jnp.exp(jnp.where(outside, limit.astype(log_ratio.dtype), log_ratio))


def working_type(dtype: Any) -> np.dtype:
    """The type of a computation with numbers of type `dtype`: float32 where that is narrower."""
    return np.dtype(dtype) if np.dtype(dtype).itemsize >= 4 else np.dtype(np.float32)


def check_batch(batch: Any, *, needs: tuple[str, ...] = ()) -> None:
    """Refuse a batch of wrong shapes or types, a mask that is not 0/1, ids out of range, NaN at a token.

    Values are looked at only where they are concrete, those of tokens only where the mask is too. What
    masked positions hold isn't looked at.

    Args:
        batch: a `PolicyBatch`.
        needs: fields among `group_id`, `domain_id` that may not be None.

    Raises:
        ValueError: the field is named.

    """
    if not isinstance(batch, PolicyBatch):
        raise fail("batch", f"a {type(batch).__name__}", "a PolicyBatch")
    check_shape("log_prob", batch.log_prob, (None, None), "(sequences, tokens)")
    shape = tuple(np.shape(batch.log_prob))
    for name in ("log_prob", "log_prob_old", "log_prob_behavior", "advantage"):
        value = getattr(batch, name)
        if value is None and name == "log_prob_behavior":
            continue
        check_shape(name, value, shape, "that of log_prob")
        check_type(name, value, "floating-point numbers", np.floating)
    check_mask(batch.mask, shape)
    if not is_traced(batch.mask):
        _check_tokens(batch)
    for name in IDS:
        value = getattr(batch, name)
        if value is not None:
            check_ids(name, value, shape[0])
        elif name in needs:
            raise fail(name, None, f"({shape[0]},) integers in [0, {shape[0]})")
    if not any(batch[i] is None or is_traced(batch[i]) for i in (4, 5, 6)):
        _check_nested(batch)


def check_mask(mask: Any, shape: tuple[int, ...]) -> None:
    """Refuse a mask of another shape, or of other values than 0 and 1 where it is concrete."""
    check_shape("mask", mask, shape, "that of the tokens")
    check_type("mask", mask, "bool, or numbers 0 and 1", np.bool_, np.integer, np.floating)
    if not is_traced(mask):
        values = np.asarray(mask)
        if values.dtype != bool and not ((values == 0) | (values == 1)).all():
            found = values[~((values == 0) | (values == 1))].flat[0]
            raise fail("mask", found, "bool, or numbers 0 and 1")


def check_type(name: str, value: Any, accepted: str, *kinds: type) -> None:
    """Refuse arrays of other types than `kinds`, which are NumPy's."""
    dtype = value.dtype if isinstance(value, jax.Array | np.ndarray) else np.asarray(value).dtype
    # NumPy takes a time span for an integer, and has floats that JAX has not.
    foreign = isinstance(dtype, np.dtype) and (dtype.kind in "mM" or dtype.itemsize > 8)
    if foreign or not any(jax.dtypes.issubdtype(dtype, kind) for kind in kinds):
        raise fail(name, f"values of type {dtype}", accepted)


def check_ids(name: str, value: Any, count: int) -> None:
    """Refuse anything but one integer in [0, count) a sequence, of `count` sequences."""
    accepted = f"({count},) integers in [0, {count})"
    check_shape(name, value, (count,), "one integer a sequence")
    check_type(name, value, accepted, np.integer)
    if not is_traced(value):
        ids = np.asarray(value)
        outside = (ids < 0) | (ids >= count)
        if outside.any():
            raise fail(name, f"{ids[outside][0]} at {int(np.argmax(outside))}", accepted)


def as_number(value: Any, dtype: Any) -> Float[Array, "..."]:
    """A checked number in the type of a computation; Python's integers and NumPy's may be large."""
    array = value if isinstance(value, jax.Array) else jnp.asarray(np.asarray(value, dtype))
    return array.astype(dtype)


def clean(batch: PolicyBatch) -> CleanBatch:
    """The form in which losses use a checked batch: masked positions replaced before any arithmetic.

    Computes in the type of `log_prob`, in float32 where that is narrower.
    """
    given = jnp.asarray(batch.log_prob)
    dtype = working_type(given.dtype)
    mask = jnp.asarray(batch.mask).astype(bool)

    def tokens(value: Any) -> Float[Array, "sequences tokens"]:
        return jnp.where(mask, jnp.asarray(value).astype(dtype), jnp.zeros((), dtype))

    def fixed(value: Any) -> Float[Array, "sequences tokens"]:
        return jax.lax.stop_gradient(tokens(value))

    def ids(value: Any) -> Int[Array, " sequences"] | None:
        return None if value is None else jnp.asarray(value).astype(jnp.int32)

    log_prob, old, advantage = tokens(given), fixed(batch.log_prob_old), fixed(batch.advantage)
    behavior = batch.log_prob_behavior
    log_ratio_behavior = jnp.zeros_like(old) if behavior is None else old - fixed(behavior)
    # A gate compares, and a comparison hides NaN. As a factor of all it comes through, in the gradient
    # too: that of a token that a gate cuts off is 0·NaN. 1·x is x to the bit.
    numbers = (jax.lax.stop_gradient(log_prob) - old, log_ratio_behavior, advantage)
    finite = jnp.isfinite(numbers[0]) & jnp.isfinite(numbers[1]) & jnp.isfinite(numbers[2])
    factor = jnp.where(finite, jnp.ones((), dtype), np.asarray(np.nan, dtype))
    log_prob = log_prob * factor
    return CleanBatch(
        log_prob=log_prob,
        log_ratio=log_prob - old,
        log_ratio_behavior=log_ratio_behavior * factor,
        advantage=advantage * factor,
        mask=mask,
        lengths=jnp.sum(mask, axis=1, dtype=dtype),
        group_id=ids(batch.group_id),
        domain_id=ids(batch.domain_id),
    )


def _check_tokens(batch: PolicyBatch) -> None:
    """Refuse values at tokens of which the losses, in their type, would make NaN."""
    kept = np.asarray(batch.mask) != 0
    dtype = working_type(jax.dtypes.canonicalize_dtype(_dtype(batch.log_prob)))
    limit = np.finfo(dtype).max / 2  # differences of two are finite
    for name, value in zip(batch._fields[:4], batch[:4], strict=True):
        if value is None or is_traced(value):
            continue
        with np.errstate(over="ignore"):
            values = np.asarray(value).astype(dtype, copy=False)
        bad = kept & ~(np.abs(values) <= limit)
        if bad.any():
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            accepted = f"numbers within ±{limit:.2g} wherever the mask is 1"
            raise fail(name, f"{np.asarray(value)[where]} at {where}", accepted)


def _dtype(value: Any) -> np.dtype:
    return np.dtype(getattr(value, "dtype", None) or np.asarray(value).dtype)


def _check_nested(batch: PolicyBatch) -> None:
    """Sequences without a token count for nothing, nor do their ids."""
    some = (np.asarray(batch.mask) != 0).any(axis=1)
    groups, domains = np.asarray(batch.group_id)[some], np.asarray(batch.domain_id)[some]
    pairs = np.unique(np.stack([groups, domains]), axis=1)
    twice = pairs[0, 1:][pairs[0, 1:] == pairs[0, :-1]]
    if twice.size:
        inside = pairs[1][pairs[0] == twice[0]].tolist()
        raise fail("group_id", f"group {twice[0]} in domains {inside}", "a group in one domain")
