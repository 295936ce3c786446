"""Checks of the arguments that the closed forms of this study share."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_integer, check_number, check_shape, fail
from boundlab.precision import is_traced
from boundlab.typing import Count, Numbers, Scalar


def spectrum(mu: Numbers, name: str = "mu") -> Float[Array, " d"]:
    """Eigenvalues as a float64 array: finite, ≥ 0, in any order, not all of them zero."""
    check_shape(name, mu, (None,), "one eigenvalue a direction")
    check_number(name, mu, 0.0)
    if not is_traced(mu) and not np.any(np.asarray(mu) > 0.0):
        raise fail(name, "zeros only", "at least one eigenvalue > 0")
    return jnp.asarray(mu, dtype=jnp.float64)


def per_direction(name: str, value: Numbers, mu: Float[Array, " d"]) -> Float[Array, " d"]:
    """One finite number ≥ 0 for each entry of `mu`, as a float64 array."""
    check_shape(name, value, mu.shape, "one entry for each eigenvalue in mu")
    check_number(name, value, 0.0)
    return jnp.asarray(value, dtype=jnp.float64)


def scalar(
    name: str, value: Scalar, low: float = 0.0, high: float = np.inf, *, is_open: bool = False
) -> Float[Array, ""]:
    """One finite number in [low, high], in (low, high) if `is_open`, as a float64 scalar."""
    check_shape(name, value, ())
    check_number(name, value, low, high, low_open=is_open, high_open=is_open)
    return jnp.asarray(value, dtype=jnp.float64)


def tail(num_samples: Count, tail_start: Count | None) -> tuple[int, int]:
    """Checked number of iterates N and index of the first averaged one, N // 2 by default."""
    check_integer("num_samples", num_samples, 1)
    if tail_start is None:
        return int(num_samples), int(num_samples) // 2
    check_integer("tail_start", tail_start, 0, int(num_samples) - 1)
    return int(num_samples), int(tail_start)
