"""Kernels that some jax versions compute wrongly without a warning, checked against NumPy float64.

`boundlab doctor` and the tests run them; each is as large as the fault it watches for needs.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from boundlab.precision import x64_is_on

ROWS = 40_000  # the faults of batched reductions begin at about 16,000 rows


class Canary(NamedTuple):
    """One kernel's outcome: its error against NumPy (or a time ratio) and what is allowed."""

    name: str
    value: float
    limit: float
    unit: str

    @property
    def alive(self) -> bool:
        """Whether the value is within its limit (NaN is not)."""
        return self.value <= self.limit


def run_canaries() -> tuple[Canary, ...]:
    """Run every canary in the current precision and on the default device."""
    kernels = (_batched_reduction, _scatter_add, _segment_gradient, _shift_and_reshape, _recording)
    return tuple(kernel() for kernel in kernels)


def _tolerance() -> float:
    # Sums of 40,000 terms: a few hundred units in the last place.
    return 1e-11 if x64_is_on() else 2e-4


def _error(got: jax.Array, wanted: np.ndarray) -> float:
    return float(np.max(np.abs(np.asarray(got, np.float64) - wanted)) / np.max(np.abs(wanted)))


def _draw(*shape: int) -> np.ndarray:
    dtype = np.float64 if x64_is_on() else np.float32
    return np.random.default_rng(7).standard_normal(shape).astype(dtype)


def _batched_reduction() -> Canary:
    matrix, weights = _draw(ROWS, 8), _draw(16, 8)
    loss = jax.jit(jax.vmap(lambda w: jnp.sum((jnp.asarray(matrix) @ w) ** 2)))
    wanted = ((matrix.astype(np.float64) @ weights.T.astype(np.float64)) ** 2).sum(axis=0)
    return Canary("jit(vmap) of a sum over rows", _error(loss(weights), wanted), _tolerance(), "")


def _indices() -> np.ndarray:
    return np.random.default_rng(8).integers(0, 500, ROWS).astype(np.int32)


def _scatter_add() -> Canary:
    values, index = _draw(ROWS, 3), _indices()
    got = jax.jit(lambda v: jnp.zeros((500, 3), v.dtype).at[index].add(v))(values)
    wanted = np.zeros((500, 3))
    np.add.at(wanted, index, values.astype(np.float64))
    return Canary("scatter-add", _error(got, wanted), _tolerance(), "")


def _segment_gradient() -> Canary:
    values, index = _draw(ROWS), np.sort(_indices())

    def loss(v: jax.Array) -> jax.Array:
        return jnp.sum(jax.ops.segment_sum(v, index, num_segments=500) ** 2)

    sums = np.bincount(index, values.astype(np.float64), minlength=500)
    return Canary(
        "gradient of segment_sum",
        _error(jax.jit(jax.grad(loss))(values), 2 * sums[index]),
        _tolerance(),
        "",
    )


def _shift_and_reshape() -> Canary:
    # The kernel that the suite uses instead of x.at[1:].set(x[:-1]), which reads its own output.
    values = _draw(ROWS)
    got = jax.jit(lambda v: jnp.concatenate([v[:1], v[:-1]]).reshape(200, -1).sum(axis=1))(values)
    wanted = np.concatenate([values[:1], values[:-1]]).astype(np.float64).reshape(200, -1)
    return Canary("shift, then reshape", _error(got, wanted.sum(axis=1)), _tolerance(), "")


def _recording() -> Canary:
    # A scan that records its steps takes time in proportion to their number: four times as many
    # steps take sixteen times as long where it is quadratic.
    short, long = (_seconds(_recorder(steps)) for steps in (4_000, 16_000))
    return Canary("scan that records its steps", long / short, 9.0, "× time for 4 × steps")


def _recorder(steps: int) -> Callable[[], jax.Array]:
    start = jnp.asarray(_draw(64))
    scan = jax.jit(lambda x: jax.lax.scan(lambda c, _: (c * 0.5 + 1, c), x, None, length=steps)[1])
    return lambda: scan(start).block_until_ready()


def _seconds(call: Callable[[], jax.Array]) -> float:
    call()
    times = []
    for _ in range(5):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)
