"""Checks of the arguments of `boundlab.models.samplers`, and the form their loops take them in."""

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from boundlab.checks import check_choice, check_integer, check_number, check_shape, fail
from boundlab.models.sampler_steps import SCHEMES, Coefficients, Langevin, coefficients
from boundlab.models.sde import OU, SDE, VP
from boundlab.precision import is_traced

# A start that costs more nats a coordinate is warned of.
START_LIMIT = 0.01
_step_coefficients = jax.jit(coefficients, static_argnums=0)


def prepare(
    scheme: str, sdes: dict[str, Any], times: Any, dtype: Any, corrector: Any, from_prior: bool
) -> tuple[tuple[Coefficients, ...], bool, Any]:
    """Coefficients of each SDE's steps, whether they have noise, and the state's type."""
    check_choice("scheme", scheme, SCHEMES)
    for name, sde in sdes.items():
        if not isinstance(sde, SDE):
            raise fail(name, f"a {type(sde).__name__}", "an SDE of boundlab.models.sde")
    if not (corrector is None or isinstance(corrector, Langevin)):
        raise fail("corrector", f"a {type(corrector).__name__}", "Langevin(...) or None")
    if corrector is not None:
        check_number("snr", corrector.snr, 0)
        check_number("scale", corrector.scale, 0)
        check_integer("num_steps", corrector.num_steps, 1)
    grid = _times(times)
    if from_prior:
        for name, sde in sdes.items():
            _warn_of_short_schedule(name, sde, times)
    dtype = grid.dtype if dtype is None else jnp.dtype(dtype)
    if not jnp.issubdtype(dtype, jnp.floating):
        raise fail("dtype", dtype, "a floating-point type")
    dtype = jax.dtypes.canonicalize_dtype(dtype)
    tables = (_step_coefficients(scheme, sde, grid) for sde in sdes.values())
    steps = tuple(Coefficients(*(column.astype(dtype) for column in table)) for table in tables)
    return steps, scheme != "probability_flow", dtype


def _times(times: Any) -> jax.Array:
    check_shape("times", times, (None,))
    check_number("times", times, 0)
    length = np.shape(times)[0]
    if length < 2:
        raise fail("times", "one number", "at least two: a step from times[0] to times[1]")
    if not is_traced(times) and (np.diff(np.asarray(times, np.float64)) >= 0).any():
        k = int(np.argmax(np.diff(np.asarray(times, np.float64)) >= 0))
        raise fail("times", f"no decrease after entry {k}", "strictly decreasing numbers")
    grid = jnp.asarray(times)
    if not jnp.issubdtype(grid.dtype, jnp.floating):
        grid = grid.astype(jnp.result_type(float))
    return grid


def _warn_of_short_schedule(name: str, sde: Any, times: Any) -> None:
    """Warn if the noised law at the horizon may be far from N(0, I)."""
    if not isinstance(sde, VP | OU) or is_traced(times, sde):
        return
    # By NumPy: inside a jit or a shard_map, JAX would trace these concrete numbers.
    t = float(np.asarray(times)[0])
    low, high = (2.0, 2.0) if isinstance(sde, OU) else (float(np.asarray(rate)) for rate in sde)
    noise = t * (low + (high - low) * t / 2)
    bias = -0.5 * np.log(-np.expm1(-noise)) if noise > 0 else np.inf
    if bias > START_LIMIT:
        warnings.warn(
            f"{name}: its total noise B = {noise:.3g} up to times[0] leaves the start N(0, I) up to "
            f"{bias:.3g} nats a coordinate from the noised data (unit second moment); a longer or "
            "stronger schedule removes the bias",
            UserWarning,
            stacklevel=4,
        )


def checked_shape(shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, tuple | list):
        raise fail("shape", repr(shape), "a tuple of integers")
    return tuple(check_integer("shape", size, 0) for size in shape)


def checked_mask(mask: Any, shape: tuple[int, int]) -> Any:
    if mask is None:
        return np.ones(shape, bool)
    array = jnp.asarray(mask) if is_traced(mask) else np.asarray(mask)
    if array.shape != shape or array.dtype != bool:
        raise fail("mask", f"{array.dtype} of shape {array.shape}", f"bool of shape {shape}")
    return array


def checked_start(name: str, value: Any, shape: tuple[int, ...], dtype: Any) -> jax.Array:
    if np.shape(value) != shape:
        raise fail(name, f"shape {np.shape(value)}", f"shape {shape}")
    check_number(name, value)
    return jnp.asarray(value).astype(dtype)


def checked_graph_start(start: Any, shapes: Any, dtype: Any) -> tuple[jax.Array, ...]:
    if not isinstance(start, tuple | list) or len(start) != 2:
        raise fail("start", f"a {type(start).__name__}", "a pair (x, adjacency)")
    return tuple(
        checked_start("start", value, shape, dtype)
        for value, shape in zip(start, shapes, strict=True)
    )


def check_score(score: Any, shapes: Any, dtype: Any, evaluate: Any) -> None:
    """Refuse a score that isn't a function to arrays of the right shapes."""
    if not callable(score):
        raise fail("score", f"a {type(score).__name__}", "a function")
    values = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
    found = jax.eval_shape(evaluate, *values, jax.ShapeDtypeStruct((), dtype))
    got = tuple(np.shape(leaf) for leaf in jax.tree.leaves(found))
    if not isinstance(found, tuple) or got != tuple(shapes):
        raise fail("score", f"results of shapes {got}", f"shapes {tuple(shapes)}")


def check_finite(result: Any) -> None:
    if is_traced(result):
        return
    if not all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(result)):
        accepted = "a finite sample (is the score finite, and are the steps small enough for it?)"
        raise fail("score", "a sample with values that are NaN or infinite", accepted)
