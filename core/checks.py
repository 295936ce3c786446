"""Checks of arguments: each failure is a `ValueError` that names the argument, what it got and
what is accepted. Traced values can't be looked at and pass.
"""

import difflib
import sys
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import jax
import numpy as np

from boundlab.precision import is_traced
from boundlab.typing import Scalar

# Counts above it have no float: formulas would overflow.
LARGEST_COUNT = int(sys.float_info.max)


def fail(name: str, got: object, accepted: str) -> ValueError:
    """The error for argument `name`: what it got and what is accepted."""
    return ValueError(f"{name}: got {got}, expected {accepted}")


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Refuse a `value` that is none of `choices`, and name the nearest one."""
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        text = value if isinstance(value, str) else ""
        near = difflib.get_close_matches(text, choices, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise fail(name, shown(value), "one of " + ", ".join(map(repr, choices)) + hint)


def check_stored_name(argument: str, name: object) -> None:
    """Refuse a `name` (given within `argument`) under which netCDF can't keep a variable."""
    accepted = "printable text without '/' or spaces around it, and not '.'"
    if not (isinstance(name, str) and name.isprintable() and name.strip() == name != ""):
        raise fail(argument, f"the name {name!r}", accepted)
    if "/" in name or name == ".":
        raise fail(argument, f"the name {name!r}", accepted)


def check_integer(
    name: str, value: object, minimum: int, maximum: int | None = None, *, why: str = ""
) -> int:
    """Refuse anything but a concrete integer in [minimum, maximum]; return it as a Python int.

    Without a `maximum` what is beyond all floats (1.8e308) is refused. Arrays of NumPy and JAX without
    dimensions count as integers by their type. `why` is added to the message (what the limit is).
    """
    if is_traced(value):
        raise fail(name, "a traced value", "a static integer (mark it static in jit)")
    accepted = f"an integer ≥ {minimum}"
    if maximum is not None:
        accepted += f" and ≤ {maximum}" if maximum < 10**16 else f" and ≤ {Decimal(maximum):.3g}"
    accepted += f" ({why})" if why else ""
    _refuse_masked(name, value, accepted)
    if isinstance(value, jax.Array | np.ndarray | np.integer) and not value.shape:
        whole = jax.dtypes.issubdtype(value.dtype, np.integer) and value.dtype.kind != "m"
        value = value.item() if whole else value  # NumPy takes a time span for an integer
    if isinstance(value, bool) or not isinstance(value, int):
        raise fail(name, shown(value), accepted)
    if maximum is None and value > LARGEST_COUNT:
        raise fail(name, shown(value), f"{accepted} and below 1.8e308")
    if value < minimum or (maximum is not None and value > maximum):
        raise fail(name, shown(value), accepted)
    return int(value)


def check_key(name: str, value: Any) -> None:
    """Refuse anything but one typed key, as `jax.random.key` makes it; it may be traced."""
    accepted = "one key of jax.random.key(seed)"
    if not isinstance(value, jax.Array | np.ndarray):
        raise fail(name, f"a {type(value).__name__}", accepted)
    if not jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key) or value.shape:
        raise fail(name, f"{value.dtype} of shape {value.shape}", accepted)


def check_number(
    name: str,
    value: Any,
    low: Scalar = -np.inf,
    high: Scalar = np.inf,
    *,
    low_open: bool = False,
    high_open: bool = False,
    why: str = "",
    where: Any = None,
) -> None:
    """Refuse numbers (a scalar, or every entry of an array) that are not finite or out of range.

    Real numbers of any precision are accepted; complex ones, bool, text and objects are not.
    `low_open`: `low` itself is refused too. `why` is added to the message (what the limit is).
    `where`: booleans of the array's shape; values at other entries don't matter.
    """
    sides = []
    if np.isfinite(low):
        sides.append(f"{'>' if low_open else '≥'} {low:g}")
    if np.isfinite(high):
        sides.append(f"{'<' if high_open else '≤'} {high:g}")
    limits = (" " + " and ".join(sides) if sides else "") + (f" ({why})" if why else "")
    traced = is_traced(value)
    if traced and not isinstance(value, jax.Array):
        return  # a sequence with traced numbers in it
    array = value if traced else _as_array(name, value, "finite real numbers" + limits)
    accepted = ("finite numbers" if array.ndim else "a finite number") + limits
    if not _is_real(array.dtype):
        raise fail(name, f"values of type {array.dtype}", accepted)
    if traced:
        return
    if array.dtype.itemsize < 8 and array.dtype.kind not in "iu":
        array = array.astype(np.float64)  # the limits, rounded to float32, could pass as equal
    bad = ~np.isfinite(array)
    bad |= (array <= low) if low_open else (array < low)
    bad |= (array >= high) if high_open else (array > high)
    bad &= True if where is None else np.asarray(where)
    if bad.any():
        place = f" at {tuple(int(i) for i in np.argwhere(bad)[0])}" if array.ndim else ""
        raise fail(name, f"{array[bad].flat[0]}{place}", accepted)


def check_range_of(name: str, value: Any, dtype: Any, *, positive: bool = False) -> None:
    """Refuse finite numbers that overflow in the floating-point type `dtype` of a computation.

    `positive`: also those that fall below its smallest normal number.
    """
    if is_traced(value):
        return
    array, limits = np.asarray(value), np.finfo(dtype)
    if array.dtype == dtype and not positive:
        return
    with np.errstate(over="ignore", under="ignore"):
        rounded = array.astype(dtype)
    bad = ~np.isfinite(rounded)
    if positive:
        bad |= rounded < limits.tiny
    if bad.any():
        low = limits.tiny if positive else limits.min
        accepted = f"{low:.2g} to {limits.max:.2g}, the range of {np.dtype(dtype).name}"
        where = f" at {tuple(int(i) for i in np.argwhere(bad)[0])}" if array.ndim else ""
        raise fail(name, f"{array[bad].flat[0]}{where}", accepted)


def check_shape(name: str, value: Any, shape: tuple[int | None, ...], what: str = "") -> None:
    """Refuse an array of another shape; `None` in `shape` stands for any length ≥ 1."""
    wanted = ", ".join("any" if s is None else str(s) for s in shape)
    accepted = f"shape ({wanted})" + (f", {what}" if what else "")
    _refuse_masked(name, value, accepted)
    known = getattr(value, "shape", None)  # also of what NumPy can't convert, as a traced array
    got = known if isinstance(known, tuple) else _as_array(name, value, accepted).shape
    matches = len(got) == len(shape) and all(
        (g >= 1 if s is None else g == s) for g, s in zip(got, shape, strict=True)
    )
    if not matches:
        if len(got) == len(shape) and 0 in got and None in shape:
            accepted = f"shape ({wanted}) with any ≥ 1" + (f", {what}" if what else "")
        raise fail(name, f"shape {got}", accepted)


def shown(value: object) -> str:
    """`value` as messages write it: integers of very many digits short."""
    if isinstance(value, int) and abs(value) > 10**40:
        return f"{Decimal(value):.3g}"
    try:
        return repr(value)
    except ValueError:  # such integers within it
        return f"a {type(value).__name__}"


def _refuse_masked(name: str, value: Any, accepted: str) -> None:
    """NumPy would read what is behind the mask, JAX refuses without a name."""
    if isinstance(value, np.ma.MaskedArray):
        raise fail(name, "a masked array", f"{accepted}, as a plain array (see its .filled)")
    if isinstance(value, list | tuple):
        for part in value:
            if isinstance(part, np.ma.MaskedArray):
                _refuse_masked(name, part, accepted)


def _as_array(name: str, value: Any, accepted: str) -> np.ndarray:
    _refuse_masked(name, value, accepted)
    try:
        return np.asarray(value)
    except jax.errors.TracerArrayConversionError as error:
        raise fail(name, "a list of traced values", accepted + ", as one array") from error
    except (TypeError, ValueError) as error:
        if isinstance(value, list | tuple):
            raise fail(name, "a list that is no array (uneven lengths?)", accepted) from error
        got = f"values of type {getattr(value, 'dtype', type(value).__name__)}"
        raise fail(name, got, accepted) from error


def _is_real(dtype: Any) -> bool:
    """Whether `dtype` is of integers or real numbers, bfloat16 and its like included."""
    if getattr(dtype, "kind", "") in "mM":  # NumPy takes a time span for an integer
        return False
    return any(jax.dtypes.issubdtype(dtype, kind) for kind in (np.integer, np.floating))
