"""Arguments of the gates, checked and brought to arrays: log-ratios, masks, parents, budgets."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from boundlab.checks import check_number, check_shape, fail, shown
from boundlab.precision import is_traced


def floating(values: Any) -> Float[Array, "..."]:
    """An array of float32 or float64; narrower types are widened to float32."""
    array = jnp.asarray(values)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        array = array.astype(jnp.result_type(float))
    return array.astype(jnp.float32) if array.dtype.itemsize < 4 else array


def masked(
    log_ratio: Any, mask: Any
) -> tuple[Float[Array, "batch tokens"], Bool[Array, "batch tokens"]]:
    """ρ with 0 in place of what masked positions hold, and the mask as booleans; checked."""
    check_shape("log_ratio", log_ratio, (None, None), "sequences by tokens")
    shape = np.shape(log_ratio)
    check_shape("mask", mask, shape, "that of log_ratio")
    if not is_traced(mask):
        values = np.asarray(mask)
        if values.dtype != bool:
            check_number("mask", values, 0, 1, why="0 or 1")
            if ((values != 0) & (values != 1)).any():
                raise fail("mask", "numbers between 0 and 1", "booleans, or 0 and 1")
        check_number("log_ratio", log_ratio, where=values != 0)
    kept = jnp.asarray(mask)
    kept = kept if kept.dtype == jnp.bool_ else kept != 0
    return jnp.where(kept, floating(log_ratio), 0.0), kept


def parent_ids(parents: tuple[Any, ...], batch: int) -> list[tuple[Int[Array, " _"], int]]:
    """Each level's parent ids and the number of nodes of the level above it; checked."""
    above, length = [], batch
    for depth, ids in enumerate(parents):
        what = "one id for each sequence" if depth == 0 else "one id for each node below"
        check_shape("parents", ids, (length if depth == 0 else None,), f"level {depth}: {what}")
        array = ids if is_traced(ids) else np.asarray(ids)
        if not jnp.issubdtype(array.dtype, jnp.integer):
            raise fail("parents", f"values of type {array.dtype}", "integers")
        size = np.shape(parents[depth + 1] if depth + 1 < len(parents) else ids)
        length = size[0] if size else 0
        if not is_traced(array) and ((array < 0).any() or (array >= length).any()):
            bad = array[(array < 0) | (array >= length)].flat[0]
            none = f"a level {depth + 1} with nodes: it is empty"
            accepted = f"ids from 0 to {length - 1}" if length else none
            raise fail("parents", f"the id {bad} at level {depth}", accepted)
        above.append((jnp.asarray(array), length))
    return above


def pairs(budgets: Any, levels: int) -> tuple[tuple[Any, Any], ...]:
    """One pair (C⁺, C⁻) a level; checked."""
    accepted = f"{levels} pairs (C⁺, C⁻), one a level"
    if isinstance(budgets, jax.Array | np.ndarray):
        check_shape("budgets", budgets, (levels, 2), accepted)
        check_number("budgets", budgets, 0)
    elif not isinstance(budgets, tuple | list) or len(budgets) != levels:
        got = f"{len(budgets)}" if isinstance(budgets, tuple | list) else shown(budgets)
        raise fail("budgets", got, accepted)
    for pair in budgets:
        if not isinstance(pair, tuple | list | np.ndarray | jax.Array) or len(pair) != 2:
            raise fail("budgets", shown(pair), "pairs (C⁺, C⁻)")
        for budget in pair:
            check_scalar("budgets", budget, positive=False)
    return tuple((pair[0], pair[1]) for pair in budgets)


def check_scalar(name: str, value: Any, *, positive: bool) -> None:
    """Refuse anything but one number ≥ 0 (`positive`: > 0)."""
    check_shape(name, value, (), "one number")
    check_number(name, value, 0, low_open=positive)
