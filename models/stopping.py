"""When a recorded loss reaches its target, and what to say if it never does."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from boundlab.checks import check_integer, check_number, check_shape, fail
from boundlab.precision import is_traced, standard_promotion
from boundlab.typing import Count, Numbers, Scalar


class FirstHit(NamedTuple):
    """When a loss reached its target; `censored`: not within the run."""

    iterations: Int[Array, ""]
    censored: Bool[Array, ""]


def first_hit(losses: Numbers, target: Scalar) -> FirstHit:
    """First check at which a loss is at most its target: T = min{t ≥ 1 : losses[t − 1] ≤ target}.

    Args:
        losses: (num_steps,), one check each; NaN never counts. vmap batches it.
        target: one number.

    Returns:
        `iterations` int32, 1 for the first check; if the target is never reached, the number of checks,
        with `censored` true: a lower bound of T, not T.

    Raises:
        ValueError: naming `losses` or `target`.

    Source: the loops of [liu2026full], counted from 1, docs/fanout.md#stopping-rules. Applied to the
    batch loss it is the authors' rule; to the sampled or the full loss, one without batch noise.

    """
    return held(losses, target, 1)


def held(losses: Numbers, target: Scalar, window: Count) -> FirstHit:
    """First check from which on a loss is at most its target for `window` checks in a row.

    Arguments and result as in `first_hit`, which is `window` 1. T is the first check of the window;
    a window that the run's end cuts short does not count.

    Raises `ValueError` naming the argument, `window` also if it is longer than the run.
    """
    check_shape("losses", losses, (None,), "one loss a check")
    if not is_traced(losses) and np.asarray(losses).dtype.kind not in "fiu":
        raise fail("losses", f"values of type {np.asarray(losses).dtype}", "real numbers")
    check_shape("target", target, ())
    check_number("target", target)
    values: Any = jnp.asarray(losses)
    length = values.shape[0]
    check_integer("window", window, 1, length, why=f"{length} losses")
    # A target of float64 rounded to float32 would make losses pass that are above it, and the reverse.
    with standard_promotion():
        wide = jnp.promote_types(values.dtype, jnp.asarray(target).dtype)
    below = values.astype(wide) <= jnp.asarray(target).astype(wide)
    misses = jnp.concatenate([jnp.zeros(1, jnp.int32), jnp.cumsum(~below, dtype=jnp.int32)])
    quiet = misses[window:] == misses[: length - int(window) + 1]
    reached = jnp.any(quiet)
    iterations = jnp.where(reached, jnp.argmax(quiet) + 1, length).astype(jnp.int32)
    return FirstHit(iterations, ~reached)
