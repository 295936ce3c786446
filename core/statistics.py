"""p-values and intervals for a mean whose declared error rate holds for skewed samples too.

Student's t alone alarms too often on skewed data: the sample mean and the sample standard deviation
are correlated, so t itself is skewed. Every p-value here is the larger of Student's and of Hall's
skewness-corrected one (`hall1992removal`): with a = skewness/√n,

    t₂ = t + a t²/3 + a² t³/27 + a/6,    t = √n (mean − μ)/s,

which is monotone in t and can therefore be inverted for the interval. Both are referred to Student's
distribution with n − 1 degrees of freedom. Outcomes (samples that are all 0 or 1) have exact binomial
tests and Clopper and Pearson's limits instead: of a rare event that wasn't seen, no t knows anything.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Value = float | np.floating | Array


class Summary(NamedTuple):
    """What the tests need to know of the samples of each case; `num_seeds` is common to all."""

    mean: Array
    standard_error: Array
    """At least the rounding of the samples: a mean is compared with a reference no closer than that."""
    skewness: Array
    num_seeds: int
    binary: NDArray[np.bool_]
    """Whether all samples are 0 or 1: these have exact binomial tests, also where all are equal."""
    constant: NDArray[np.bool_]
    """Whether all samples are equal to rounding (and not binary): nothing random is left."""


def summarize(samples: NDArray[np.floating], rounding: Value | None = None) -> Summary:
    """Summary of `samples` (seeds, cases); `rounding` (cases,) their absolute error.

    By default a few units in the last place of the samples' own type.
    """
    size = np.abs(samples).max(axis=0).astype(np.float64)
    if rounding is None:
        rounding = 8 * float(np.finfo(samples.dtype).eps) * size
    num_seeds = samples.shape[0]
    # Scaled twice, so that neither sums nor cubes of huge or tiny samples overflow or vanish.
    unit = np.where(size > 0, size, 1.0)
    values = samples.astype(np.float64) / unit
    mean = values.mean(axis=0)
    centred = values - mean
    scale = np.abs(centred).max(axis=0)
    deviation = centred / np.where(scale > 0, scale, 1.0)
    variance = (deviation**2).mean(axis=0)
    spread = np.where(variance > 0, variance, 1.0)
    skewness = np.where(variance > 0, (deviation**3).mean(axis=0) / spread**1.5, 0.0)
    binary = ((samples == 0) | (samples == 1)).all(axis=0)
    if num_seeds < 2:
        error = np.full_like(mean, np.inf)
    else:
        error = unit * scale * np.sqrt(variance / (num_seeds - 1))
    floor = np.maximum(rounding, np.finfo(np.float64).smallest_subnormal)
    return Summary(
        mean * unit,
        np.maximum(error, floor),
        skewness,
        num_seeds,
        binary,
        (error <= floor) & ~binary,
    )


def p_mean_above(summary: Summary, value: Value) -> Array:
    """One-sided p-value, per case, of "the mean is at most `value`": small if it is above."""
    from scipy import stats

    if summary.num_seeds < 2:
        return np.ones_like(summary.mean)
    with np.errstate(over="ignore"):
        t = (summary.mean - value) / summary.standard_error
    freedom = summary.num_seeds - 1
    approximate = np.maximum(stats.t.sf(t, freedom), stats.t.sf(_hall(t, summary), freedom))
    ones = np.round(np.where(summary.binary, summary.mean, 0.0) * summary.num_seeds)
    exact = stats.binom.sf(ones - 1, summary.num_seeds, np.clip(value, 0.0, 1.0))
    # A probability below 0 is impossible, whatever was seen; one of 1 or more explains everything.
    return np.where(summary.binary, np.where(np.less(value, 0), 0.0, exact), approximate)


def p_mean_below(summary: Summary, value: Value) -> Array:
    """One-sided p-value, per case, of "the mean is at least `value`": small if it is below."""
    mirrored = summary._replace(
        mean=np.where(summary.binary, 1 - summary.mean, -summary.mean), skewness=-summary.skewness
    )
    return p_mean_above(
        mirrored, np.where(summary.binary, 1 - np.asarray(value), -np.asarray(value))
    )


def interval(summary: Summary, rate: Value) -> tuple[Array, Array]:
    """(low, high) per case: the values that neither one-sided test rejects at `rate` a side."""
    from scipy import stats

    if summary.num_seeds < 2:
        infinite = np.full_like(summary.mean, np.inf)
        return -infinite, infinite
    quantile = stats.t.isf(rate, summary.num_seeds - 1) + np.zeros_like(summary.mean)
    lowest_t = np.minimum(-quantile, _hall_inverse(-quantile, summary))
    highest_t = np.maximum(quantile, _hall_inverse(quantile, summary))
    error, count = summary.standard_error, summary.num_seeds
    ones = np.round(np.where(summary.binary, summary.mean, 0.5) * count)
    # Clopper and Pearson's limits; the beta law has no mass at all where no 1 (or no 0) was seen.
    least = np.where(ones > 0, stats.beta.ppf(rate, np.maximum(ones, 1), count - ones + 1), 0.0)
    most = np.where(ones < count, stats.beta.isf(rate, ones + 1, np.maximum(count - ones, 1)), 1.0)
    low = np.where(summary.binary, least, summary.mean - error * highest_t)
    high = np.where(summary.binary, most, summary.mean - error * lowest_t)
    return low, high


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


def jackknife_exponents(samples: NDArray[np.floating], points: Array) -> Array:
    """Jackknife pseudo-values (seeds, cases) of the exponent b in mean ∝ points^b.

    `samples` (seeds, cases, points), positive means; b by least squares of log mean on log points.
    The pseudo-values n·b − (n − 1)·b₍₋ᵢ₎ behave like samples of which b is the mean.
    """
    # A common scale changes no exponent, and keeps sums of huge samples finite.
    values = samples.astype(np.float64) / np.abs(samples).max().astype(np.float64)
    count = values.shape[0]
    x = np.log(points)
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    total = values.sum(axis=0)
    full = np.log(total / count) @ weights
    rest = total - values
    if not (rest > 0).all():
        raise ValueError(
            "samples: got a point whose mean is not positive without one of its seeds, expected more "
            "seeds: no exponent can be fitted there"
        )
    without = np.log(rest / (count - 1)) @ weights
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
