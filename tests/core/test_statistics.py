"""p-values, intervals, Holm and the jackknife, against SciPy, enumeration and simulation."""

import numpy as np
import pytest
from scipy import stats

from boundlab import statistics

FAMILY = 30


def _alarm_rate(seeds: int, repeats: int, student_only: bool) -> float:
    """Share of families of 30 true claims in which a test at 1e-3 alarms, for chi-squared data."""
    generator = np.random.default_rng(3)
    hits = 0
    for _ in range(repeats // 20_000):
        samples = generator.standard_normal((seeds, 20_000)) ** 2
        summary = statistics.summarize(samples)
        if student_only:
            summary = summary._replace(skewness=np.zeros_like(summary.skewness))
        p = np.minimum(
            statistics.p_mean_below(summary, np.float64(1.0)),
            statistics.p_mean_above(summary, np.float64(1.0)),
        )
        hits += int((2 * p < 1e-3 / FAMILY).sum())
    return 1 - (1 - hits / repeats) ** FAMILY


@pytest.mark.parametrize(("seeds", "repeats", "bound"), [(64, 400_000, 5e-3), (256, 100_000, 3e-3)])
def test_declared_rate_holds_for_skewed_data(seeds: int, repeats: int, bound: float) -> None:
    assert _alarm_rate(seeds, repeats, student_only=False) < bound


def test_student_alone_misses_its_rate() -> None:
    assert _alarm_rate(64, 100_000, student_only=True) > 0.04


@pytest.mark.smoke
def test_symmetric_samples_give_student() -> None:
    half = np.random.default_rng(0).standard_normal((20, 3))
    samples = np.concatenate([half, -half]) + 0.3
    summary = statistics.summarize(samples)
    expected = stats.ttest_1samp(samples, 0.1, alternative="greater").pvalue
    np.testing.assert_allclose(
        statistics.p_mean_above(summary, np.float64(0.1)), expected, rtol=1e-10
    )
    low, high = statistics.interval(summary, 0.01)
    wanted = stats.ttest_1samp(samples, 0.0).confidence_interval(0.98)
    np.testing.assert_allclose(low, wanted.low, rtol=1e-10)
    np.testing.assert_allclose(high, wanted.high, rtol=1e-10)


def test_skewness_is_scipys() -> None:
    samples = np.random.default_rng(1).exponential(size=(50, 4)) * 1e-120
    summary = statistics.summarize(samples)
    np.testing.assert_allclose(summary.skewness, stats.skew(samples * 1e120), rtol=1e-10)
    np.testing.assert_allclose(summary.standard_error, stats.sem(samples, axis=0), rtol=1e-10)


def test_interval_is_the_set_that_neither_test_rejects() -> None:
    samples = np.random.default_rng(2).exponential(size=(40, 5)) ** 2
    summary = statistics.summarize(samples)
    low, high = statistics.interval(summary, 1e-3)
    np.testing.assert_allclose(statistics.p_mean_above(summary, low), 1e-3, rtol=1e-8)
    np.testing.assert_allclose(statistics.p_mean_below(summary, high), 1e-3, rtol=1e-8)
    # Right-skewed samples: the mean may lie further above than below.
    assert (high - summary.mean > summary.mean - low).all()


def test_tiny_skewness_is_continuous() -> None:
    base = statistics.Summary(
        np.zeros(1), np.ones(1), np.zeros(1), 100, np.zeros(1, bool), np.zeros(1, bool)
    )
    for skewness in (1e-8, 1e-5, 1e-3):
        low, high = statistics.interval(base._replace(skewness=np.array([skewness])), 1e-4)
        straight = statistics.interval(base, 1e-4)
        assert abs(low[0] - straight[0][0]) < skewness * 2
        assert abs(high[0] - straight[1][0]) < skewness * 2


def test_one_seed_decides_nothing() -> None:
    summary = statistics.summarize(np.array([[3.0]]))
    assert statistics.p_mean_above(summary, np.array([0.0])) == 1
    assert statistics.interval(summary, 0.1) == (-np.inf, np.inf)


def test_constant_samples_are_compared_to_rounding() -> None:
    for dtype in (np.float32, np.float64):
        summary = statistics.summarize(np.full((10, 1), 0.1, dtype))
        assert statistics.p_mean_above(summary, np.array([0.1])) > 0.01
        assert statistics.p_mean_above(summary, np.array([0.0999])) < 1e-10


def test_holm_by_hand() -> None:
    rejected, adjusted, level = statistics.holm(np.array([0.04, 0.001, 0.02, 0.3]), 0.05)
    np.testing.assert_array_equal(rejected, [False, True, False, False])
    np.testing.assert_allclose(adjusted, [0.08, 0.004, 0.06, 0.3])
    np.testing.assert_allclose(level, [0.0125] * 4)
    rejected, adjusted, level = statistics.holm(np.array([0.012, 0.001, 0.02]), 0.05)
    assert rejected.all()
    np.testing.assert_allclose(adjusted, [0.024, 0.003, 0.024])
    np.testing.assert_allclose(level, [0.025, 0.05 / 3, 0.05])


def test_jackknife_recovers_an_exponent_and_its_error() -> None:
    generator = np.random.default_rng(4)
    points = np.array([10.0, 20.0, 40.0, 80.0])
    estimates, errors = [], []
    for _ in range(300):
        samples = points**-0.7 * generator.exponential(size=(100, 1, 4))
        pseudo = statistics.jackknife_exponents(samples, points)
        summary = statistics.summarize(pseudo)
        estimates.append(summary.mean[0])
        errors.append(summary.standard_error[0])
    spread = np.std(estimates)
    assert abs(np.mean(estimates) + 0.7) < 4.5 * spread / np.sqrt(300)
    assert 0.85 < np.mean(errors) / spread < 1.15


def test_jackknife_on_exact_powers() -> None:
    points = np.array([1.0, 3.0, 9.0])
    samples = np.ones((5, 2, 1)) * points ** np.array([[-0.5], [2.0]])
    np.testing.assert_allclose(
        statistics.jackknife_exponents(samples, points), np.tile([-0.5, 2.0], (5, 1)), atol=1e-12
    )
