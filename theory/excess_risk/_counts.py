"""Whole-number arguments, typed so loosely that a bad one reaches the check that names it."""

from boundlab.checks import check_integer
from boundlab.typing import Count, Scalar


def count(name: str, value: Scalar, minimum: int = 1, maximum: int | None = None) -> int:
    """Return `value` as a Python int in [minimum, maximum], or raise the error that names it."""
    check_integer(name, value, minimum, maximum)
    assert isinstance(value, Count)
    return int(value)
