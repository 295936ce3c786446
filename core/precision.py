"""Precision: theory is float64, and nothing changes JAX's configuration behind the caller's back.

The float64 context must be open *outside* `jit`: inside, the arguments were already rounded to
float32, and the result would be a float64 array with float32 errors.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import ParamSpec, TypeVar

import jax
import numpy as np

P = ParamSpec("P")
R = TypeVar("R")


def x64() -> AbstractContextManager[None]:
    """Open a context in which JAX computes in float64. Open it outside `jit`."""
    return jax.enable_x64(True)


def x64_is_on() -> bool:
    """Whether JAX computes in float64 here."""
    return bool(jax.config.jax_enable_x64)  # type: ignore[attr-defined]


def standard_promotion() -> AbstractContextManager[None]:
    """Open a context with JAX's usual type promotion, for libraries that break under the strict one."""
    return jax.numpy_dtype_promotion("standard")


def one_blas_thread() -> AbstractContextManager[object]:
    """Open a context in which BLAS and LAPACK use one thread.

    On small matrices their threads only wait for each other, and for XLA's: `eigh` at n = 128 is
    20 times slower with them on two cores. Sweeps keep the cores busy by themselves.
    """
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, user_api="blas")


def is_traced(*values: object) -> bool:
    """Whether any array in `values` (pytrees) is a tracer, so that its value can't be checked."""
    leaves = jax.tree.leaves(values, is_leaf=_is_iterator)
    return any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)


def float64(fn: Callable[P, R]) -> Callable[P, R]:
    """Make a theory function compute in float64 whatever the caller's setting.

    Floating-point arrays among the arguments become float64. With x64 off, concrete arguments open
    the context for this call; traced ones are refused, since they were rounded when traced.
    """

    @functools.wraps(fn)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        if x64_is_on():
            args, kwargs = jax.tree.map(_widen, (args, kwargs), is_leaf=_is_iterator)
            return fn(*args, **kwargs)
        if is_traced(args, kwargs):
            raise ValueError(
                f"{fn.__name__} computes in float64 and was traced with x64 off; open "
                "boundlab.precision.x64() around the outermost jit, vmap or grad"
            )
        with x64():
            args, kwargs = jax.tree.map(_widen, (args, kwargs), is_leaf=_is_iterator)
            return fn(*args, **kwargs)

    return wrapped


def _is_iterator(value: object) -> bool:
    """Whether JAX would complain about `value` in a pytree; left to the checks of arguments."""
    return isinstance(value, Iterator)


def _widen(leaf: object) -> object:
    if isinstance(leaf, jax.core.Tracer):
        return leaf.astype(np.float64) if np.issubdtype(leaf.dtype, np.floating) else leaf
    if isinstance(leaf, np.ndarray | np.generic | jax.Array) and (
        jax.dtypes.issubdtype(leaf.dtype, np.floating)
    ):
        if np.ma.is_masked(leaf):
            return leaf  # its entries aren't all numbers: left to the checks of arguments
        return np.asarray(leaf, dtype=np.float64)
    return leaf
