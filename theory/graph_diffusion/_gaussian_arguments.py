"""Arguments and building blocks of Gaussian modes: eigenvalues, means, noised variances, remainders.

Symbols: λ eigenvalue of the data covariance, v(t) = 1 + (λ − 1)e^{−2t} variance of the noised mode in OU
time t.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_number, check_shape, fail
from boundlab.precision import is_traced
from boundlab.theory.graph_diffusion._system_arguments import times_of
from boundlab.typing import Scalar

# Longest step: its e^{2h} times any variance at hand stays far below the largest float.
LONGEST_STEP = 300.0
# Where series take over from logarithms, and how many terms they need there.
SERIES_BELOW = 0.125
SERIES_TERMS = 18


def eigenvalues_of(value: Any) -> Float[Array, " d"]:
    """Eigenvalues (d,) > 0, d ≥ 1, in float64."""
    check_shape("eigenvalues", value, (None,))
    check_number("eigenvalues", value, 0, low_open=True)
    return jnp.asarray(value, jnp.float64)


def modes_of(name: str, value: Any, size: int, *, scalar: bool = False) -> Float[Array, " d"]:
    """A number a mode; None is 0, and with `scalar` one number stands for all modes."""
    if value is None:
        return jnp.zeros(size, jnp.float64)
    if scalar:
        check_number(name, value)
        known = getattr(value, "shape", None)
        if (np.shape(value) if known is None else known) == ():
            return jnp.broadcast_to(jnp.asarray(value, jnp.float64), (size,))
    check_shape(name, value, (size,), "one number an eigenvalue")
    check_number(name, value)
    return jnp.asarray(value, jnp.float64)


def number_of(
    name: str,
    value: Any,
    low: Scalar = -np.inf,
    high: Scalar = np.inf,
    *,
    low_open: bool = False,
    high_open: bool = False,
) -> Float[Array, ""]:
    """One finite number in a range, in float64."""
    check_shape(name, value, ())
    check_number(name, value, low, high, low_open=low_open, high_open=high_open)
    return jnp.asarray(value, jnp.float64)


def stretched(**values: Any) -> list[Float[Array, "*shape"]]:
    """The arguments as float64 arrays of their one common shape; single numbers are stretched."""
    arrays = {name: jnp.asarray(value, jnp.float64) for name, value in values.items()}
    shape: tuple[int, ...] = ()
    for name, array in arrays.items():
        if () not in (shape, array.shape) and array.shape != shape:
            raise fail(name, f"shape {array.shape}", f"one number or shape {shape}")
        shape = shape or array.shape
    return [jnp.broadcast_to(array, shape) for array in arrays.values()]


def span_of(horizon: Any, early_stop: Any) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """(T, δ) with T > δ ≥ 0."""
    end = number_of("horizon", horizon, 0, low_open=True)
    stop = number_of("early_stop", early_stop, 0)
    # Within a jit, `stop` and `end` are traced though the arguments are known.
    known = not is_traced(horizon, early_stop)
    if known and not float(np.asarray(early_stop)) < float(np.asarray(horizon)):
        raise fail("early_stop", early_stop, f"a time below the horizon {horizon}")
    return end, stop


def grid_of(times: Any) -> Float[Array, " steps_1"]:
    """Strictly decreasing times ≥ 0 with steps whose exponentials don't overflow."""
    grid = times_of(times)
    if not is_traced(times):
        longest = -np.diff(np.asarray(times, np.float64)).min()
        if longest > LONGEST_STEP:
            raise fail("times", f"a step of {longest:g}", f"steps of at most {LONGEST_STEP:g}")
    return grid


def noised(
    eigenvalues: Float[Array, "*modes"], times: Float[Array, "*times"]
) -> Float[Array, "*shape"]:
    """v(t) as a sum of two positive terms: λe^{−2t} + (1 − e^{−2t})."""
    return eigenvalues * jnp.exp(-2.0 * times) - jnp.expm1(-2.0 * times)


@functools.partial(jax.jit, static_argnums=2)
def log_remainder(
    q: Float[Array, "*shape"], log_rest: Float[Array, "*shape"], order: int
) -> Float[Array, "*shape"]:
    """−log(1 − q) without the first `order` − 1 terms of its series: Σ_{j ≥ order} q^j/j, q < 1.

    `log_rest` is log(1 − q), from the caller who may know it better than 1 − q tells. Every difference
    of exponentials and logarithms that would cancel for small steps is such a remainder.
    """
    near = jnp.abs(q) < SERIES_BELOW
    small = jnp.where(near, q, 0.0)
    series = jnp.full_like(small, 1.0 / (order + SERIES_TERMS))
    for j in range(order + SERIES_TERMS - 1, order - 1, -1):
        series = series * small + 1.0 / j
    far = -jnp.where(near, 0.0, log_rest)
    for j in range(1, order):
        far = far - jnp.where(near, 0.0, q) ** j / j
    return jnp.where(near, series * small**order, far)
