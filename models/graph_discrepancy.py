"""Maximum mean discrepancy of two sets of graphs, with the kernels of the benchmarks.

Symbols: m and n sizes of the two sets, k a kernel on one statistic (a row of `GraphStatistics`), EMD
the earth mover's distance of two histograms: in one dimension Σ|difference of the cumulative sums|,
in units of the bin width.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_choice, check_integer, check_key, check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.typing import Count

# Bandwidth of exp(−distance²/(2·bandwidth²)): in bins, in the unit interval's 100 bins, in counts.
_BANDWIDTHS = {"degree": 1.0, "clustering": 10.0, "orbits": 30.0, "spectrum": 1.0}
KERNELS = tuple(_BANDWIDTHS)
ESTIMATORS = ("v", "u")
QUANTILES = (0.1, 0.5, 0.9)


class Floor(NamedTuple):
    """Squared discrepancy of two sets of one law, which are equal but for chance."""

    mean: float
    standard_deviation: float
    """Over resamplings (divisor: their number less one)."""
    quantiles: Float[np.ndarray, " 3"]
    """At 10, 50 and 90 %: the law is skewed."""


@float64
def kernel_matrix(first: Any, other: Any, kernel: str) -> Float[Array, "m n"]:
    """Kernel of every row of `first` with every row of `other`.

    - `degree` and `spectrum`: exp(−EMD²/2), in bins;
    - `clustering`: exp(−(EMD/100)²/(2·0.1²)), 100 bins;
    - `orbits`: exp(−‖difference‖²/(2·30²)), Euclidean, counts as they are.

    Args:
        first: (m, k), one statistic of m graphs. May be traced.
        other: (n, k); degree histograms of another length are filled up with zeros.
        kernel: One of the four.

    Raises:
        ValueError: naming the argument.

    """
    check_choice("kernel", kernel, KERNELS)
    return _kernel(*_pair("first", first, "other", other, kernel), kernel)


@float64
def mmd_squared(
    reference: Any, generated: Any, kernel: str, estimator: str = "v"
) -> Float[Array, ""]:
    """Squared maximum mean discrepancy of two samples [gretton2012kernel].

    mean k(R, R′) + mean k(G, G′) − 2 mean k(R, G). `v` takes all pairs, R = R′ included, as the
    benchmarks do: never negative, 0 for equal samples, and positive in the mean when both are of
    one law. `u` leaves the pairs of a graph with itself out: mean 0 then, and often negative.

    Args:
        reference: (m, k), one statistic (a field of `GraphStatistics`). May be traced.
        generated: (n, k), the same statistic.
        kernel: `degree`, `clustering`, `orbits` or `spectrum`, as in `kernel_matrix`.
        estimator: `v`, or `u`, which needs m and n ≥ 2.

    Raises:
        ValueError: naming the argument.

    Source: [niu2020permutation], [jo2022score], as in their evaluation code (`v`).

    """
    check_choice("kernel", kernel, KERNELS)
    check_choice("estimator", estimator, ESTIMATORS)
    first, other = _pair("reference", reference, "generated", generated, kernel)
    for name, sample in (("reference", first), ("generated", other)):
        if estimator == "u" and len(sample) < 2:
            raise fail(name, "one graph", "two or more with the estimator 'u'")
    return _squared(first, other, kernel, estimator)


@float64
def mmd_floor(
    key: Any,
    reference: Any,
    kernel: str,
    num_reference: Count,
    num_generated: Count,
    num_resamples: Count = 200,
    estimator: str = "v",
) -> Floor:
    """What `mmd_squared` gives between two sets of these sizes that both come from `reference`.

    Two disjoint subsets are drawn without replacement, `num_resamples` times. A generated set whose
    discrepancy lies within the quantiles can't be told from fresh graphs of the same law. Resamples
    share graphs, so that the floor itself is known no better than the pool allows.

    Args:
        key: One key.
        reference: (pool, k), one statistic of a pool of graphs of the law, best many times larger
            than the subsets.
        kernel: As in `mmd_squared`.
        num_reference: m.
        num_generated: n; m + n ≤ pool.
        num_resamples: At least 2.
        estimator: As in `mmd_squared`.

    Raises:
        ValueError: naming the argument.

    """
    check_key("key", key)
    check_choice("kernel", kernel, KERNELS)
    check_choice("estimator", estimator, ESTIMATORS)
    pool, _ = _pair("reference", reference, "reference", reference, kernel)
    least = 2 if estimator == "u" else 1
    m = check_integer("num_reference", num_reference, least, len(pool) - 1)
    n = check_integer(
        "num_generated", num_generated, least, len(pool) - m, why="num_reference + it ≤ the pool"
    )
    count = check_integer("num_resamples", num_resamples, 2)
    values = _resampled(jax.random.split(key, count), pool, kernel, m, n, estimator)
    found = np.asarray(values)
    return Floor(float(found.mean()), float(found.std(ddof=1)), np.quantile(found, QUANTILES))


def discrepancy(
    within_first: Float[Array, "m m"],
    within_other: Float[Array, "n n"],
    between: Float[Array, "m n"],
    estimator: str,
) -> Float[Array, ""]:
    """`mmd_squared` from the three kernel matrices."""

    def within(matrix: Float[Array, "m m"]) -> Float[Array, ""]:
        if estimator == "v":
            return jnp.mean(matrix)
        size = len(matrix)
        return (jnp.sum(matrix) - jnp.trace(matrix)) / (size * (size - 1))

    return within(within_first) + within(within_other) - 2 * jnp.mean(between)


@jax.jit(static_argnames=("kernel", "estimator"))
def _squared(
    first: Float[Array, "m k"], other: Float[Array, "n k"], kernel: str, estimator: str
) -> Float[Array, ""]:
    within = _kernel(first, first, kernel), _kernel(other, other, kernel)
    return discrepancy(*within, _kernel(first, other, kernel), estimator)


@jax.jit(static_argnames=("kernel", "m", "n", "estimator"))
def _resampled(
    keys: Any, pool: Float[Array, "pool k"], kernel: str, m: int, n: int, estimator: str
) -> Float[Array, " resamples"]:
    matrix = _kernel(pool, pool, kernel)

    def one(key: Any) -> Float[Array, ""]:
        drawn = jax.random.permutation(key, len(matrix))[: m + n]
        part = matrix[drawn][:, drawn]
        return discrepancy(part[:m, :m], part[m:, m:], part[:m, m:], estimator)

    return jax.lax.map(one, keys)


@jax.jit(static_argnames="kernel")
def _kernel(
    first: Float[Array, "m k"], other: Float[Array, "n k"], kernel: str
) -> Float[Array, "m n"]:
    if kernel != "orbits":
        first, other = jnp.cumsum(first, axis=1), jnp.cumsum(other, axis=1)

    def row(values: Float[Array, " k"]) -> Float[Array, " n"]:
        gaps = values[None, :] - other
        if kernel == "orbits":
            squared = jnp.sum(gaps * gaps, axis=1)
        else:
            squared = jnp.sum(jnp.abs(gaps), axis=1) ** 2
        return jnp.exp(-squared / (2 * _BANDWIDTHS[kernel] ** 2))

    return jax.lax.map(row, first)  # all at once would hold (m, n, k)


def _pair(
    first_name: str, first: Any, other_name: str, other: Any, kernel: str
) -> tuple[Float[Array, "m k"], Float[Array, "n k"]]:
    """Both samples as float64 arrays of one width."""
    for name, sample in ((first_name, first), (other_name, other)):
        check_shape(name, sample, (None, None), "one row a graph")
        check_number(name, sample, 0)
        if kernel != "orbits" and not is_traced(sample):
            mass = np.asarray(sample, np.float64).sum(axis=1)
            if not np.allclose(mass, 1.0, rtol=0, atol=1e-6):
                raise fail(name, "a row of another sum", "histograms of mass 1")
    one, two = jnp.asarray(first, jnp.float64), jnp.asarray(other, jnp.float64)
    if kernel == "degree":
        width = max(one.shape[1], two.shape[1])
        one, two = (jnp.pad(x, ((0, 0), (0, width - x.shape[1]))) for x in (one, two))
    if one.shape[1] != two.shape[1]:
        raise fail(other_name, f"width {two.shape[1]}", f"that of {first_name}, {one.shape[1]}")
    return one, two
