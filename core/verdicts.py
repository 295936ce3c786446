"""Verdicts: what a dataset says of each claim, at one declared family-wise false-alarm rate.

A claim's p-value is Bonferroni's over its cases, the claims of one call are corrected by Holm, and a
control is rejected at rate / number of claims. Statements without randomness stand outside the family.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from boundlab import statistics
from boundlab.checks import check_number, fail
from boundlab.claims import Claim, Evidence, Kind
from boundlab.precision import x64
from boundlab.typing import Scalar

if TYPE_CHECKING:
    from boundlab.experiment import Study

FEW_SEEDS = 64  # below this many, skewed samples exceed the declared rate


class Status(StrEnum):
    """Outcome of a check."""

    HOLDS = "holds"
    VIOLATED = "violated"
    INCONCLUSIVE = "inconclusive"


class Verdict(NamedTuple):
    """What the data say of one claim; numbers are those of its worst case."""

    claim: str
    """The claim's id."""
    status: Status
    """holds, violated or inconclusive; compares equal to the plain string."""
    control_rejected: bool
    """Whether the data reject the deliberately wrong theory: if not, the check has no power."""
    margin: float
    """Distance of the mean from what it must not pass, negative on the wrong side, in its units."""
    tightness: float
    """Reference / measured mean (for `order`: mean of the larger / of the smaller)."""
    interval: tuple[float, float]
    """Simultaneous confidence interval of the mean (for `order`: of the difference)."""
    num_seeds: int
    """Seeds behind the mean; 0 without randomness."""
    p_value: float
    """Of the claim, corrected for its cases and for the other claims; NaN without randomness."""
    measured: float
    """Mean, fitted exponent, difference or exact value."""
    reference: float
    """Bound, expected value, exponent, or 0."""
    case: str
    """Label of the worst case."""
    rate_is_approximate: bool
    """True under 64 seeds, where skewed samples may exceed the declared rate."""


# (low, high) that the mean must not pass, (low, high) inside which it holds, sides to test.
Bands = tuple[statistics.Array, statistics.Array, statistics.Array, statistics.Array, int]


class _Tested(NamedTuple):
    """Evidence reduced to one summary a case, with the band in which the mean must lie."""

    evidence: Evidence
    kind: Kind
    summary: statistics.Summary
    low: statistics.Array  # the mean must not be below this
    high: statistics.Array  # nor above this
    low_hold: statistics.Array  # it holds once the interval is inside these two
    high_hold: statistics.Array
    sides: int  # 2 when both sides can be violated

    def case_p_values(self) -> statistics.Array:
        above = statistics.p_mean_above(self.summary, self.high)
        below = statistics.p_mean_below(self.summary, self.low)
        return np.minimum(1.0, self.sides * np.minimum(above, below))

    def p_value(self) -> float:
        p = self.case_p_values()
        return float(min(1.0, p.min() * len(p)))

    def interval(self, level: float) -> tuple[statistics.Array, statistics.Array]:
        return statistics.interval(self.summary, level / len(self.low) / self.sides)


def verify(
    study: "Study", dataset: xr.Dataset, *, false_alarm_rate: Scalar = 1e-3
) -> tuple[Verdict, ...]:
    """Verdicts of `dataset` on the claims of `study`, in their order.

    `false_alarm_rate`: probability that any true claim of this call is called violated. Raises
    `ValueError` naming `dataset` if it is another study's or lacks what a claim needs.
    """
    if not isinstance(dataset, xr.Dataset):
        raise fail("dataset", f"a {type(dataset).__name__}", "an xarray.Dataset")
    made_by = dataset.attrs.get("study", study.name)
    if made_by != study.name:
        raise fail("dataset", f"a dataset of {made_by!r}", f"one of {study.name!r}")
    with x64():
        checked, controls = [], []
        for claim in study.claims:
            try:
                checked.append(claim.check(dataset))
                controls.append(claim.control(dataset))
            except KeyError as error:
                raise ValueError(
                    f"dataset: claim {claim.id!r} of study {study.name!r} needs {error}"
                ) from error
            except (ValueError, TypeError, IndexError, AttributeError) as error:
                raise ValueError(
                    f"dataset: claim {claim.id!r} of study {study.name!r} can't be checked: {error}"
                ) from error
    return judge(study.claims, checked, controls, false_alarm_rate=false_alarm_rate)


def judge(
    claims: Sequence[Claim],
    checked: Sequence[Evidence],
    controls: Sequence[Evidence],
    *,
    false_alarm_rate: Scalar,
) -> tuple[Verdict, ...]:
    """Verdicts on `claims` from the evidence for them and for their controls."""
    rate = check_rate(false_alarm_rate)
    rejected = [
        _violated_alone(claim, control, rate / len(claims))
        for claim, control in zip(claims, controls, strict=True)
    ]
    tested = [
        None if evidence.exact is not None else _reduce(evidence, claim.kind)
        for claim, evidence in zip(claims, checked, strict=True)
    ]
    p_values = np.array([item.p_value() for item in tested if item is not None])
    violated, adjusted, level = statistics.holm(p_values, rate)
    family = iter(zip(violated, adjusted, level, strict=True))
    verdicts = []
    for claim, evidence, item, control in zip(claims, checked, tested, rejected, strict=True):
        if item is None:
            verdicts.append(_exact_verdict(claim.id, claim.kind, evidence, control))
        else:
            alarm, p, at = next(family)
            verdicts.append(_verdict(claim.id, item, bool(alarm), float(p), float(at), control))
    return tuple(verdicts)


def check_rate(false_alarm_rate: Scalar) -> float:
    """The rate as a float, or a `ValueError` that names it."""
    check_number("false_alarm_rate", false_alarm_rate, 0, 1, low_open=True, high_open=True)
    return float(np.asarray(false_alarm_rate))


def single(kind: Kind, evidence: Evidence, rate: float) -> Verdict:
    """Verdict on one statement that stands alone, without a control."""
    if evidence.exact is not None:
        return _exact_verdict(str(kind), kind, evidence, False)
    item = _reduce(evidence, kind)
    p = item.p_value()
    return _verdict(str(kind), item, p <= rate, p, rate, False)


def _violated_alone(claim: Claim, evidence: Evidence, rate: float) -> bool:
    return single(claim.kind, evidence, rate).status == Status.VIOLATED


def _reduce(evidence: Evidence, kind: Kind) -> _Tested:
    samples = evidence.samples
    assert samples is not None
    if kind == Kind.IDENTITY:
        raise fail("samples", "random samples", "`exact` values for an identity")
    if (kind == Kind.RATE) != (evidence.points is not None):
        raise fail("points", evidence.points, "abscissae for a rate, none for other kinds")
    if (kind == Kind.ORDER) != (evidence.compared_with is not None):
        raise fail("compared_with", evidence.compared_with, "samples for an order, else none")
    if kind == Kind.RATE:
        assert evidence.points is not None
        samples = statistics.jackknife_exponents(samples, np.asarray(evidence.points))
    if kind == Kind.ORDER:
        return _Tested(evidence, kind, _difference(samples, evidence), *_bands(evidence, kind))
    return _Tested(evidence, kind, statistics.summarize(samples), *_bands(evidence, kind))


def _difference(first: NDArray[np.floating], evidence: Evidence) -> statistics.Summary:
    """Summary of the paired differences, whose rounding is that of the larger samples."""
    second = np.asarray(evidence.compared_with)
    largest = np.maximum(np.abs(first).max(axis=0), np.abs(second).max(axis=0)).astype(np.float64)
    eps = max(float(np.finfo(array.dtype).eps) for array in (first, second))
    with np.errstate(over="ignore"):
        difference = first.astype(np.float64) - second.astype(np.float64)
    if not np.isfinite(difference).all():
        raise fail("samples", "a difference that overflows", "samples below 1e308 in size")
    return statistics.summarize(difference, rounding=8 * eps * largest)


def _bands(evidence: Evidence, kind: Kind) -> Bands:
    reference = np.asarray(evidence.reference, dtype=np.float64)
    infinite = np.full_like(reference, np.inf)
    tolerance = float(np.asarray(evidence.tolerance))
    allowed = tolerance * np.abs(reference)
    resolved = max(tolerance, float(np.asarray(evidence.resolution))) * np.abs(reference)
    if kind in (Kind.UPPER, Kind.ORDER):
        return -infinite, reference + allowed, -infinite, reference + allowed, 1
    if kind == Kind.LOWER:
        return reference - allowed, infinite, reference - allowed, infinite, 1
    return (
        reference - allowed,
        reference + allowed,
        reference - resolved,
        reference + resolved,
        2,
    )


def _verdict(
    claim: str, item: _Tested, violated: bool, p: float, level: float, control: bool
) -> Verdict:
    low, high = item.interval(level)
    mean = item.summary.mean
    # Where nothing random is left, a mean that touches its bound to rounding is on its right side.
    touch = np.where(item.summary.constant, high - low, 0.0)
    strict = item.kind == Kind.ORDER
    slack = np.minimum(item.high_hold - high, low - item.low_hold) + (0.0 if strict else touch)
    inside = np.minimum(item.high - mean, mean - item.low)
    holding = np.minimum(item.high_hold - mean, mean - item.low_hold)
    if violated:
        # Among cases whose p-values underflow to 0, the one furthest out in standard errors.
        with np.errstate(over="ignore"):
            distance = inside / item.summary.standard_error
        worst = int(np.lexsort((distance, item.case_p_values()))[0])
    else:
        scale = np.maximum(np.abs(np.asarray(item.evidence.reference)), np.abs(mean))
        worst = int(np.argmin(slack / np.where(scale > 0, scale, 1.0)))
    status = (
        Status.VIOLATED
        if violated
        else Status.HOLDS
        if bool((slack >= 0).all())
        else Status.INCONCLUSIVE
    )
    numerator = np.asarray(item.evidence.reference)[worst]
    denominator = mean[worst]
    if item.kind == Kind.ORDER:
        assert item.evidence.samples is not None
        numerator = np.mean(np.asarray(item.evidence.compared_with)[:, worst], dtype=np.float64)
        denominator = np.mean(item.evidence.samples[:, worst], dtype=np.float64)
    return Verdict(
        claim=claim,
        status=status,
        control_rejected=control,
        margin=float((inside if violated else holding)[worst]),
        tightness=_ratio(numerator, denominator),
        interval=(float(low[worst]), float(high[worst])),
        num_seeds=item.summary.num_seeds,
        p_value=p,
        measured=float(mean[worst]),
        reference=float(np.asarray(item.evidence.reference)[worst]),
        case=_label(item.evidence, worst),
        rate_is_approximate=item.summary.num_seeds < FEW_SEEDS,
    )


def _exact_verdict(claim: str, kind: Kind, evidence: Evidence, control: bool) -> Verdict:
    if kind in (Kind.ORDER, Kind.RATE):
        raise fail("exact", f"exact values for {kind}", "samples, or the kind upper or identity")
    exact = np.asarray(evidence.exact, dtype=np.float64)
    low, high, *_ = _bands(evidence, Kind.EQUAL if kind == Kind.IDENTITY else kind)
    inside = np.minimum(high - exact, exact - low)
    reference = np.asarray(evidence.reference)
    scale = np.maximum(np.abs(reference), np.abs(exact))
    worst = int(np.argmin(inside / np.where(scale > 0, scale, 1.0)))
    return Verdict(
        claim=claim,
        status=Status.HOLDS if bool((inside >= 0).all()) else Status.VIOLATED,
        control_rejected=control,
        margin=float(inside[worst]),
        tightness=_ratio(reference[worst], exact[worst]),
        interval=(float(exact[worst]), float(exact[worst])),
        num_seeds=0,
        p_value=float("nan"),
        measured=float(exact[worst]),
        reference=float(reference[worst]),
        case=_label(evidence, worst),
        rate_is_approximate=False,
    )


def _label(evidence: Evidence, case: int) -> str:
    return evidence.labels[case] if evidence.labels else f"case {case}"


def _ratio(numerator: float, denominator: float) -> float:
    return float(numerator / denominator) if denominator != 0 else float("nan")
