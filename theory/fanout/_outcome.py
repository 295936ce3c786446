"""What becomes of results that don't exist: an error for concrete arguments, NaN for traced ones."""

from collections.abc import Iterable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from boundlab.checks import fail

T = TypeVar("T")


def refuse_overflow(results: Iterable[Any], **arguments: Any) -> None:
    """Refuse finite arguments whose results are not: the largest of them is named."""
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # a finite sum has finite terms, and is faster
        if all(np.isfinite(np.sum(r)) or np.isfinite(r).all() for r in results):
            return
    sizes = {n: float(np.nanmax(np.abs(value), initial=0.0)) for n, value in arguments.items()}
    name = max(sizes, key=lambda key: sizes[key])
    raise fail(name, f"entries up to {sizes[name]:.3g}", "smaller ones: the result passes 1.8e308")


def nan_unless(valid: Any, result: T) -> T:
    """The arrays of `result`, NaN where the traced arguments are out of range."""
    return jax.tree.map(lambda value: jnp.where(valid, value, jnp.nan), result)
