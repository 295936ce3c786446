"""p-values and intervals for a mean whose declared error rate holds for skewed samples too.

Student's t alone alarms too often on skewed data: the sample mean and the sample standard deviation
are correlated, so t itself is skewed. Every p-value here is the larger of Student's and of Hall's
skewness-corrected one (`hall1992removal`): with a = skewness/√n,

    t₂ = t + a t²/3 + a² t³/27 + a/6,    t = √n (mean − μ)/s,

which is monotone in t and can therefore be inverted for the interval. Both are referred to Student's
distribution with n − 1 degrees of freedom.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Value = float | np.floating | Array


class Summary(NamedTuple):
    """Mean, its standard error and the skewness of each case's samples, and the number of seeds."""

    mean: Array
    standard_error: Array
    skewness: Array
    num_seeds: int


def summarize(samples: NDArray[np.floating]) -> Summary:
    """Summary of `samples` (seeds, cases). The standard error is at least the rounding of the samples,
    so that equal samples are compared with a reference to rounding and no further.
    """
    rounding = 8 * np.finfo(samples.dtype).eps * np.abs(samples).max(axis=0).astype(np.float64)
    values = samples.astype(np.float64)
    num_seeds = values.shape[0]
    mean = values.mean(axis=0)
    if num_seeds < 2:
        infinite = np.full_like(mean, np.inf)
        return Summary(mean, infinite, np.zeros_like(mean), num_seeds)
    centred = values - mean
    # Scaled by the largest deviation, so that cubes of huge or tiny samples stay representable.
    scale = np.abs(centred).max(axis=0)
    unit = centred / np.where(scale > 0, scale, 1.0)
    variance = (unit**2).mean(axis=0)
    spread = np.where(variance > 0, variance, 1.0)
    skewness = np.where(variance > 0, (unit**3).mean(axis=0) / spread**1.5, 0.0)
    error = scale * np.sqrt(variance / (num_seeds - 1))
    return Summary(mean, np.maximum(error, np.maximum(rounding, 1e-300)), skewness, num_seeds)


def p_mean_above(summary: Summary, value: Value) -> Array:
    """One-sided p-value, per case, of "the mean is at most `value`": small if it is above."""
    from scipy import stats

    if summary.num_seeds < 2:
        return np.ones_like(summary.mean)
    t = (summary.mean - value) / summary.standard_error
    freedom = summary.num_seeds - 1
    return np.maximum(stats.t.sf(t, freedom), stats.t.sf(_hall(t, summary), freedom))


def p_mean_below(summary: Summary, value: Value) -> Array:
    """One-sided p-value, per case, of "the mean is at least `value`": small if it is below."""
    mirrored = summary._replace(mean=-summary.mean, skewness=-summary.skewness)
    return p_mean_above(mirrored, -value)


def interval(summary: Summary, rate: Value) -> tuple[Array, Array]:
    """(low, high) per case: the values that neither one-sided test rejects at `rate` a side."""
    from scipy import stats

    if summary.num_seeds < 2:
        infinite = np.full_like(summary.mean, np.inf)
        return -infinite, infinite
    quantile = stats.t.isf(rate, summary.num_seeds - 1) + np.zeros_like(summary.mean)
    lowest_t = np.minimum(-quantile, _hall_inverse(-quantile, summary))
    highest_t = np.maximum(quantile, _hall_inverse(quantile, summary))
    error = summary.standard_error
    return summary.mean - error * highest_t, summary.mean - error * lowest_t


def holm(p_values: Array, rate: float) -> tuple[NDArray[np.bool_], Array, Array]:
    """Holm's step-down test (`holm1979simple`): (rejected, adjusted p-values, level of each).

    The level is the one at which a rejected hypothesis was rejected, and rate/m for the others, so
    that an interval at that level misses exactly the rejected references.
    """
    count = len(p_values)
    order = np.argsort(p_values, kind="stable")
    factors = count - np.arange(count)
    adjusted = np.empty(count)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p_values[order] * factors))
    rejected = adjusted <= rate
    level = np.full(count, rate / max(count, 1))
    level[order] = np.where(rejected[order], rate / factors, level[order])
    return rejected, adjusted, level


def seeds_to_decide(summary: Summary, gap: Array, rate: float) -> Array:
    """About how many seeds separate the mean from a value that is `gap` away, at `rate`."""
    from scipy import stats

    deviation = summary.standard_error * np.sqrt(max(summary.num_seeds, 1))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        needed = (stats.norm.isf(rate) * deviation / np.abs(gap)) ** 2
    return np.where(np.isfinite(needed), np.ceil(np.maximum(needed, 2)), np.inf)


def jackknife_exponents(samples: NDArray[np.floating], points: Array) -> Array:
    """Jackknife pseudo-values (seeds, cases) of the exponent b in mean ∝ points^b.

    `samples` (seeds, cases, points), positive means; b by least squares of log mean on log points.
    The pseudo-values n·b − (n − 1)·b₍₋ᵢ₎ behave like samples of which b is the mean.
    """
    values = samples.astype(np.float64)
    count = values.shape[0]
    x = np.log(points)
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    total = values.sum(axis=0)
    full = np.log(total / count) @ weights
    without = np.log((total - values) / (count - 1)) @ weights
    return count * full - (count - 1) * without


def _hall(t: Array, summary: Summary) -> Array:
    a = summary.skewness / np.sqrt(summary.num_seeds)
    t = np.clip(t, -1e50, 1e50)  # one side of a band may be infinite, and ∞ − ∞ is no number
    return t + a * t**2 / 3 + a**2 * t**3 / 27 + a / 6


def _hall_inverse(corrected: Array, summary: Summary) -> Array:
    a = summary.skewness / np.sqrt(summary.num_seeds)
    safe = np.where(np.abs(a) > 1e-7, a, 1.0)
    exact = 3 / safe * (np.cbrt(1 + safe * (corrected - safe / 6)) - 1)
    series = corrected - a / 6 - a * corrected**2 / 3
    return np.where(np.abs(a) > 1e-7, exact, series)
