"""Assertions for a bound of your own, with plain arrays, in any pytest.

    def test_my_bound():
        risks = simulate_many(seeds=256)            # (256,)
        boundlab.testing.assert_upper_bound(risks, my_bound(n=100))

Each is about the mean over seeds. `false_alarm_rate` is the probability that a true statement fails,
simultaneously over the cases; p-values hold for skewed samples too (`boundlab.statistics`).
"""

import numpy as np

from boundlab.checks import check_number, check_shape, fail
from boundlab.claims import Evidence, Kind
from boundlab.typing import Numbers, Scalar
from boundlab.verdicts import FEW_SEEDS, Status, Verdict, check_rate, single


def assert_upper_bound(
    samples: Numbers, bound: Numbers, *, false_alarm_rate: Scalar = 1e-3
) -> None:
    """Assert that the mean of `samples` over seeds is at most `bound`.

    `samples` (seeds,) or (seeds, cases); `bound` scalar or (cases,). `AssertionError` when the mean
    is above the bound beyond chance, and when the sample can't decide. `ValueError`, naming the
    argument, for NaN, infinity, wrong shapes or fewer than two seeds.
    """
    values = _samples("samples", samples)
    evidence = Evidence(samples=values, reference=_reference("bound", bound, values))
    _decide(Kind.UPPER, evidence, false_alarm_rate, "the mean is at most the bound", strict=True)


def assert_lower_bound(
    samples: Numbers, bound: Numbers, *, false_alarm_rate: Scalar = 1e-3
) -> None:
    """Assert that the mean of `samples` over seeds is at least `bound`; see `assert_upper_bound`."""
    values = _samples("samples", samples)
    evidence = Evidence(samples=values, reference=_reference("bound", bound, values))
    _decide(Kind.LOWER, evidence, false_alarm_rate, "the mean is at least the bound", strict=True)


def assert_mean_equal(
    samples: Numbers,
    expected: Numbers,
    *,
    tolerance: Scalar = 0.0,
    false_alarm_rate: Scalar = 1e-3,
) -> None:
    """Assert that the mean of `samples` over seeds is `expected`, to the relative `tolerance`.

    Shapes and errors as in `assert_upper_bound`. A sample that is too small to see a difference
    passes: look at the interval in a verdict if that matters.
    """
    values = _samples("samples", samples)
    evidence = Evidence(
        samples=values,
        reference=_reference("expected", expected, values),
        tolerance=_scalar("tolerance", tolerance, 0.0),
    )
    _decide(Kind.EQUAL, evidence, false_alarm_rate, "the mean equals the expected value")


def assert_rate(
    samples: Numbers,
    points: Numbers,
    exponent: Scalar,
    *,
    tolerance: Scalar = 0.0,
    false_alarm_rate: Scalar = 1e-3,
) -> None:
    """Assert that the mean over seeds grows as points^exponent.

    `samples` (seeds, points), `points` (points,) > 0. The exponent is fitted by least squares of log
    mean on log points, its error by the jackknife over seeds; `tolerance` is relative to `exponent`.
    """
    check_shape("samples", samples, (None, None), "(seeds, points)")
    values = _samples("samples", samples)
    check_number("points", points)
    evidence = Evidence(
        samples=values[:, None, :],
        points=np.asarray(points, dtype=np.float64),
        reference=_scalar("exponent", exponent),
        tolerance=_scalar("tolerance", tolerance, 0.0),
    )
    _decide(Kind.RATE, evidence, false_alarm_rate, "the mean grows with the given exponent")


def assert_order(smaller: Numbers, larger: Numbers, *, false_alarm_rate: Scalar = 1e-3) -> None:
    """Assert that the mean of `smaller` is below that of `larger`, both on the same keys (paired).

    (seeds,) or (seeds, cases) both. `AssertionError` also when the sample can't decide.
    """
    first, second = _samples("smaller", smaller), _samples("larger", larger)
    if first.shape != second.shape:
        raise fail("larger", f"shape {second.shape}", f"{first.shape}, that of smaller")
    evidence = Evidence(samples=first, compared_with=second)
    _decide(Kind.ORDER, evidence, false_alarm_rate, "the first mean is the smaller", strict=True)


def _samples(name: str, samples: Numbers) -> np.ndarray:
    if np.ma.isMaskedArray(samples):
        raise fail(name, "a masked array", "the unmasked values alone")
    outcomes = str(getattr(samples, "dtype", "")) == "bool"
    check_number(name, np.asarray(samples, np.int8) if outcomes else samples)
    values = np.asarray(samples)
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)  # counts, 0/1 outcomes, other widths
    if values.ndim not in (1, 2) or values.size == 0:
        raise fail(name, f"shape {values.shape}", "(seeds,) or (seeds, cases)")
    if values.shape[0] < 2:
        raise fail(name, f"{values.shape[0]} seed", "at least 2 seeds")
    return values if values.ndim == 2 else values[:, None]


def _reference(name: str, reference: Numbers, values: np.ndarray) -> np.ndarray:
    check_number(name, reference)
    array = np.asarray(reference, dtype=np.float64)
    cases = values.shape[1]
    if array.shape not in ((), (cases,)):
        raise fail(name, f"shape {array.shape}", f"a scalar or ({cases},), one a case")
    return array


def _scalar(name: str, value: Scalar, low: float = -np.inf) -> float:
    check_number(name, value, low)
    check_shape(name, value, ())
    return float(np.asarray(value))


def _decide(
    kind: Kind, evidence: Evidence, rate: Scalar, statement: str, *, strict: bool = False
) -> None:
    alarm_rate = check_rate(rate)
    verdict = single(kind, evidence, alarm_rate)
    if verdict.status == Status.VIOLATED or (strict and verdict.status != Status.HOLDS):
        raise AssertionError(_message(verdict, alarm_rate, statement))


def _message(verdict: Verdict, rate: float, statement: str) -> str:
    outcome = "violated" if verdict.status == Status.VIOLATED else "not decided by this sample"
    low, high = verdict.interval
    lines = [
        f"{statement}: {outcome} ({verdict.case})",
        f"  measured   {verdict.measured:.6g}",
        f"  reference  {verdict.reference:.6g}",
        f"  interval   [{low:.6g}, {high:.6g}] at false-alarm rate {rate:g}",
        f"  seeds      {verdict.num_seeds}",
        f"  p-value    {verdict.p_value:.3g}",
    ]
    gap = abs(verdict.measured - verdict.reference)
    # The side of the interval that faces the reference; it shrinks with the root of the seeds.
    side = (
        high - verdict.measured if verdict.reference > verdict.measured else verdict.measured - low
    )
    needed = verdict.num_seeds * (side / gap) ** 2 if gap > 0 else np.inf
    size = (
        f"about {max(2, int(np.ceil(needed))):,} seeds" if needed < 1e12 else "no number of seeds"
    )
    lines.append(f"  {size} would decide a difference of this size")
    if verdict.num_seeds < FEW_SEEDS:
        lines.append(f"  under {FEW_SEEDS} seeds the rate is approximate for skewed samples")
    return "\n".join(lines)
