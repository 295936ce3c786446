"""Checks of what `sweep` is given: its grid, its keys, and the names in both grid and result."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from boundlab.blocks import refuse_inside_transformations
from boundlab.checkpoints import Variable
from boundlab.checks import check_number, check_stored_name, fail
from boundlab.precision import is_traced


def working_dtype(dtype: Any) -> np.dtype[Any]:
    """`dtype`, or its 32-bit counterpart if x64 is off."""
    return np.dtype(jax.dtypes.canonicalize_dtype(dtype))


def check_grid(grid: Any) -> dict[str, np.ndarray]:
    """The grid's values by name, floats and integers in the working precision."""
    accepted = "a mapping of names to 1-D finite real numbers"
    if not isinstance(grid, Mapping):
        raise fail("grid", f"a {type(grid).__name__}", accepted)
    axes = {}
    for name, numbers in grid.items():
        check_stored_name("grid", name)
        if name == "seed":
            raise fail("grid", "the name 'seed'", "other names")
        what = f"grid[{name!r}]"
        if is_traced(numbers):
            raise fail(what, "a traced value", "concrete numbers: call sweep outside jit")
        if isinstance(numbers, Iterator):
            got = f"a {type(numbers).__name__}, which can be read only once"
            raise fail(what, got, "1-D finite real numbers: make it a list")
        try:
            values = np.asarray(numbers)
        except (TypeError, ValueError) as error:
            raise fail(what, f"{numbers!r}", "1-D finite real numbers") from error
        if values.ndim != 1 or not values.size:
            raise fail(what, f"shape {values.shape}", "1-D numbers, at least one")
        if values.dtype.kind not in "fiu":
            raise fail(what, f"values of type {values.dtype}", "1-D finite real numbers")
        if values.dtype.kind == "f":
            check_number(what, values)
            with np.errstate(over="ignore"):
                axes[name] = values.astype(working_dtype(np.float64))
            check_number(what, axes[name], why="in the working precision")
        else:
            limits = np.iinfo(working_dtype(np.int64))
            if int(values.min()) < limits.min or int(values.max()) > limits.max:
                raise fail(what, f"{values.tolist()}", f"integers that fit in {limits.dtype}")
            axes[name] = values.astype(limits.dtype)
    return axes


def check_keys(keys: Any) -> np.ndarray:
    """The keys' data, (S, 2) uint32."""
    accepted = "typed threefry keys of shape (S,), as jax.random.split(jax.random.key(0), S)"
    if is_traced(keys):
        raise fail("keys", "traced keys", accepted + "; call sweep outside jit")
    if not isinstance(keys, jax.Array):
        raise fail("keys", f"a {type(keys).__name__}", accepted)
    if not jax.dtypes.issubdtype(keys.dtype, jax.dtypes.prng_key):
        raise fail("keys", f"an array of {keys.dtype}", accepted)
    if str(jax.random.key_impl(keys)) != "threefry2x32":
        # The draws of other generators depend on how many entries are computed together.
        raise fail("keys", f"{jax.random.key_impl(keys)} keys", accepted)
    if keys.ndim != 1 or not keys.size:
        raise fail("keys", f"shape {keys.shape}", accepted)
    refuse_inside_transformations()
    return np.asarray(jax.random.key_data(keys))


def check_checkpoint(checkpoint: Any) -> Path | None:
    """The path, if there is one."""
    if checkpoint is None:
        return None
    accepted = "a path (text or os.PathLike), or None"
    if not isinstance(checkpoint, str | os.PathLike):
        raise fail("checkpoint", repr(checkpoint), accepted)
    path = os.fspath(checkpoint)
    if not isinstance(path, str) or not path or "\0" in path:
        raise fail("checkpoint", repr(path), accepted)
    return Path(path)


def result_dims(variable: Variable) -> tuple[str, ...]:
    """Names for the axes of one entry's array."""
    return tuple(f"{variable.name}_axis{i}" for i in range(len(variable.shape)))


def check_names(axes: Mapping[str, np.ndarray], variables: Sequence[Variable]) -> None:
    """Refuse names that would stand for two things in the dataset."""
    dims = [*axes, "seed", *(dim for variable in variables for dim in result_dims(variable))]
    names = [*dims, *(variable.name for variable in variables)]
    for name in names:
        if names.count(name) > 1:
            what = "grid" if name in axes else "fn"
            raise fail(what, f"the name {name!r} twice", "different names in grid and result")
