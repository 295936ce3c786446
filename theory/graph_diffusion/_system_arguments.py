"""Arguments of the coupled systems: a covariance of two blocks, two noise schedules, a grid of times."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_integer, check_number, check_shape, fail
from boundlab.precision import is_traced

# Asymmetry up to this share of the largest entry is taken for rounding.
ROUNDING = 1e-8
# Times and rates up to this size, the squares of which don't overflow.
LARGEST = 1e100
# Counts up to this size, which float64 holds exactly.
MOST = 10**15


class System(NamedTuple):
    """A checked Gaussian system of two blocks, the features first."""

    covariance: Float[Array, "d d"]
    """S, of the data."""
    features: Float[np.ndarray, " d"]
    """1 for coordinates of the features, 0 for those of the structure."""
    slopes: Float[Array, "d 2"]
    """(β₀, β₁) of each coordinate's own block."""

    @property
    def own_block(self) -> Float[np.ndarray, "d d"]:
        """1 for pairs of coordinates of the same block, else 0."""
        same = self.features[:, None] == self.features[None, :]
        return same.astype(np.float64)

    @property
    def prior(self) -> Float[Array, "d d"]:
        """Covariance of the sampler's start: I, and that of the data in a block that is given."""
        given = jnp.max(self.slopes, axis=1) == 0.0
        data = self.covariance * self.own_block
        return jnp.where(given[:, None], data, jnp.eye(len(data), dtype=data.dtype))


def system_of(covariance: Any, dim_features: Any, schedules: Any) -> System:
    """The three arguments, checked and in float64."""
    matrix = positive_definite("covariance", covariance)
    size = check_integer(
        "dim_features", dim_features, 1, len(matrix) - 1, why="both blocks have a coordinate"
    )
    check_shape("schedules", schedules, (2, 2), "(β₀, β₁) of features and of structure")
    check_number("schedules", schedules, 0, LARGEST)
    if not is_traced(schedules) and not np.asarray(schedules).max() > 0:
        raise fail("schedules", schedules, "a positive rate in one block at least")
    rates = jnp.asarray(schedules, jnp.float64)
    features = (np.arange(len(matrix)) < size).astype(np.float64)
    return System(matrix, features, rates[np.where(features, 0, 1)])


def system_over(
    covariance: Any, dim_features: Any, schedules: Any, times: Any
) -> tuple[System, Float[Array, " steps_1"]]:
    """The system and the grid of times, over which no rate may fall below 0."""
    system, grid = system_of(covariance, dim_features, schedules), times_of(times)
    _check_rates(schedules, times)
    return system, grid


def system_at(
    covariance: Any, dim_features: Any, schedules: Any, t: Any
) -> tuple[System, Float[Array, ""]]:
    """The system and one time ≥ 0, until which no rate may fall below 0."""
    system = system_of(covariance, dim_features, schedules)
    check_shape("t", t, ())
    check_number("t", t, 0, LARGEST)
    _check_rates(schedules, t)
    return system, jnp.asarray(t, jnp.float64)


def _check_rates(schedules: Any, times: Any) -> None:
    """Refuse a falling rate that is negative by the last of the checked times."""
    if is_traced(schedules, times):
        return
    last, ends = float(np.max(np.asarray(times))), np.asarray(schedules, np.float64)
    rates = ends[:, 0] + (ends[:, 1] - ends[:, 0]) * last
    if rates.min() < -ROUNDING * ends.max():
        raise fail("schedules", f"a rate of {rates.min():.3g} at time {last:g}", "rates ≥ 0")


def positive_definite(name: str, value: Any) -> Float[Array, "d d"]:
    """A symmetric positive-definite matrix in float64; a traced one isn't looked at."""
    check_shape(name, value, (None, None))
    matrix = value if is_traced(value) else np.asarray(value)
    check_shape(name, matrix, (matrix.shape[0], matrix.shape[0]), "square")
    check_number(name, matrix)
    if not is_traced(value):
        matrix = matrix.astype(np.float64)
        asymmetry = np.abs(matrix - matrix.T).max()
        if asymmetry > ROUNDING * np.abs(matrix).max():
            raise fail(name, f"an asymmetry of {asymmetry:.3g}", "a symmetric matrix")
        matrix = (matrix + matrix.T) / 2
        eigenvalues = np.linalg.eigvalsh(matrix)
        lowest, rounding = eigenvalues[0], len(matrix) * np.finfo(np.float64).eps * eigenvalues[-1]
        if lowest <= rounding:
            got = f"an eigenvalue {lowest:.6g}" + (" within rounding of 0" if lowest > 0 else "")
            raise fail(name, got, "a positive-definite matrix")
    return jnp.asarray(matrix, jnp.float64)


def times_of(value: Any) -> Float[Array, " steps_1"]:
    """Strictly decreasing times ≥ 0, at least two."""
    check_shape("times", value, (None,))
    check_number("times", value, 0, LARGEST)
    if not is_traced(value):
        array = np.asarray(value)
        if len(array) < 2:
            raise fail("times", f"{len(array)} of them", "at least 2, one step")
        rises = np.flatnonzero(np.diff(array) >= 0)
        if len(rises):
            pair = array[rises[0] : rises[0] + 2].tolist()
            raise fail("times", f"{pair[0]} and then {pair[1]}", "strictly decreasing times")
    return jnp.asarray(value, jnp.float64)


def check_overflow(covariance: Float[Array, "d d"]) -> None:
    """Refuse the times of a sampler whose covariance has overflowed."""
    if not is_traced(covariance) and not np.isfinite(np.asarray(covariance)).all():
        raise fail("times", "steps so long that the sampler overflows", "shorter steps")


def integrated_beta(
    slopes: Float[Array, "d 2"], start: Float[Array, ""], end: Float[Array, ""]
) -> Float[Array, " d"]:
    """B(start, end) = ∫β of each coordinate for β = β₀ + (β₁ − β₀)t, from `start` up to `end`."""
    first, last = slopes[:, 0], slopes[:, 1]
    return (end - start) * (first + 0.5 * (last - first) * (start + end))


def noised(covariance: Float[Array, "d d"], beta: Float[Array, " d"]) -> Float[Array, "d d"]:
    """S_t = M S M + I − M², M = diag(e^{−B/2}): the covariance under total noise B."""
    mean = jnp.exp(-0.5 * beta)
    return covariance * mean[:, None] * mean[None, :] + jnp.diag(-jnp.expm1(-beta))
