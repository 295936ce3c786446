"""Checks of arguments: each failure is a `ValueError` that names the argument, what it got and
what is accepted. Traced values can't be looked at and pass.
"""

import difflib
from collections.abc import Iterable

import numpy as np

from boundlab.precision import is_traced
from boundlab.typing import Numbers, Scalar


def fail(name: str, got: object, accepted: str) -> ValueError:
    """The error for argument `name`: what it got and what is accepted."""
    return ValueError(f"{name}: got {got}, expected {accepted}")


def check_choice(name: str, value: str, choices: Iterable[str]) -> None:
    """Refuse a `value` that is none of `choices`, and name the nearest one."""
    choices = tuple(choices)
    if value not in choices:
        near = difflib.get_close_matches(str(value), choices, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise fail(name, repr(value), "one of " + ", ".join(map(repr, choices)) + hint)


def check_integer(
    name: str, value: object, minimum: int, maximum: int | None = None, *, why: str = ""
) -> int:
    """Refuse anything but a concrete integer in [minimum, maximum]; return it as a Python int.

    `why` is added to the message (what the limit is).
    """
    if is_traced(value):
        raise fail(name, "a traced value", "a static integer (mark it static in jit)")
    accepted = f"an integer ≥ {minimum}" + ("" if maximum is None else f" and ≤ {maximum}")
    accepted += f" ({why})" if why else ""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise fail(name, repr(value), accepted)
    if value < minimum or (maximum is not None and value > maximum):
        raise fail(name, value, accepted)
    return int(value)


def check_number(
    name: str,
    value: Numbers,
    low: Scalar = -np.inf,
    high: Scalar = np.inf,
    *,
    low_open: bool = False,
    high_open: bool = False,
    why: str = "",
) -> None:
    """Refuse numbers (a scalar, or every entry of an array) that are not finite or out of range.

    `low_open`: `low` itself is refused too. `why` is added to the message (what the limit is).
    """
    if is_traced(value):
        return
    array = np.asarray(value)
    sides = []
    if np.isfinite(low):
        sides.append(f"{'>' if low_open else '≥'} {low:g}")
    if np.isfinite(high):
        sides.append(f"{'<' if high_open else '≤'} {high:g}")
    accepted = " ".join(
        ["finite numbers" if array.ndim else "a finite number", " and ".join(sides)]
    )
    accepted = accepted.strip() + (f" ({why})" if why else "")
    if array.dtype == bool or not np.issubdtype(array.dtype, np.number):
        raise fail(name, f"values of type {array.dtype}", accepted)
    bad = ~np.isfinite(array)
    bad |= (array <= low) if low_open else (array < low)
    bad |= (array >= high) if high_open else (array > high)
    if bad.any():
        where = f" at {tuple(int(i) for i in np.argwhere(bad)[0])}" if array.ndim else ""
        raise fail(name, f"{array[bad].flat[0]}{where}", accepted)


def check_shape(name: str, value: Numbers, shape: tuple[int | None, ...], what: str = "") -> None:
    """Refuse an array of another shape; `None` in `shape` stands for any length ≥ 1."""
    got = np.shape(value)
    wanted = ", ".join("any" if s is None else str(s) for s in shape)
    matches = len(got) == len(shape) and all(
        (g >= 1 if s is None else g == s) for g, s in zip(got, shape, strict=True)
    )
    if not matches:
        raise fail(name, f"shape {got}", f"shape ({wanted})" + (f", {what}" if what else ""))
