"""Verdicts: status, control, family-wise rate, worst case, and errors."""

import numpy as np
import pytest
import xarray as xr

from boundlab import Claim, Evidence, Kind, Source, Verdict, verify
from boundlab.experiment import Study
from boundlab.verdicts import Status, judge

SHIFTED = np.random.default_rng(5).normal(1.0, 0.1, (256, 3))


def _claim(name: str, kind: str, evidence: Evidence, control: Evidence | None = None) -> Claim:
    return Claim(
        id=name,
        source=Source("derived", "a test"),
        statement="$m = r$",
        kind=Kind(kind),
        check=lambda _: evidence,
        control=lambda _: control or evidence,
        control_statement="none",
        formula="none",
        test="none",
    )


def _judge(kind: str, evidence: Evidence, control: Evidence | None = None) -> Verdict:
    claim = _claim("c", kind, evidence, control)
    (verdict,) = judge([claim], [claim.check(None)], [claim.control(None)], false_alarm_rate=1e-3)
    return verdict


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("kind", "reference", "status"),
    [
        ("upper", 1.1, "holds"),
        ("upper", 0.9, "violated"),
        ("upper", 1.0, "inconclusive"),
        ("lower", 0.9, "holds"),
        ("lower", 1.1, "violated"),
        ("lower", 1.0, "inconclusive"),
        ("equal", 1.0, "holds"),
        ("equal", 0.95, "violated"),
    ],
)
def test_status(kind: str, reference: float, status: str) -> None:
    verdict = _judge(kind, Evidence(samples=SHIFTED, reference=reference))
    assert verdict.status == status
    assert (verdict.margin < 0) == (status == "violated") or status == "inconclusive"
    assert verdict.num_seeds == 256
    low, high = verdict.interval
    assert low < 1 < high
    assert verdict.tightness == pytest.approx(reference / verdict.measured)


def test_equal_needs_resolution() -> None:
    noisy = np.random.default_rng(6).normal(1.0, 2.0, (256, 1))
    assert _judge("equal", Evidence(samples=noisy, reference=1.0)).status == "inconclusive"
    wide = Evidence(samples=noisy, reference=1.0, resolution=2.0)
    assert _judge("equal", wide).status == "holds"


def test_equal_with_a_tolerance() -> None:
    assert (
        _judge("equal", Evidence(samples=SHIFTED, reference=0.98, tolerance=0.03)).status == "holds"
    )
    off = Evidence(samples=SHIFTED, reference=0.90, tolerance=0.03)
    assert _judge("equal", off).status == "violated"


def test_violation_is_exactly_an_interval_that_misses() -> None:
    generator = np.random.default_rng(8)
    claims = [
        _claim(str(i), "equal", Evidence(samples=generator.exponential(size=(100, 2)) + shift))
        for i, shift in enumerate(np.linspace(-1.6, -0.4, 40))
    ]
    evidence = [
        Evidence(samples=claim.check(None).samples, reference=0.01, tolerance=0, resolution=1e3)
        for claim in claims
    ]
    verdicts = judge(claims, evidence, evidence, false_alarm_rate=1e-2)
    statuses = {verdict.status for verdict in verdicts}
    assert statuses == {Status.HOLDS, Status.VIOLATED}
    for verdict in verdicts:
        low, high = verdict.interval
        assert (verdict.status == "violated") == (not low <= 0.01 <= high)
        assert (verdict.status == "violated") == (verdict.p_value <= 1e-2)


def test_worst_case_is_reported() -> None:
    references = np.array([1.5, 0.8, 1.4])
    evidence = Evidence(samples=SHIFTED, reference=references, labels=("a", "b", "c"))
    verdict = _judge("upper", evidence)
    assert verdict.status == "violated"
    assert verdict.case == "b"
    assert verdict.reference == 0.8
    assert verdict.margin == pytest.approx(0.8 - SHIFTED[:, 1].mean())
    holding = Evidence(samples=SHIFTED, reference=np.array([1.5, 1.2, 1.4]), labels=("a", "b", "c"))
    assert _judge("upper", holding).case == "b"


def test_order_is_paired() -> None:
    generator = np.random.default_rng(9)
    common = generator.normal(0, 10, (100, 1))
    small, large = 20 + common, 21 + common + generator.normal(0, 0.1, (100, 1))
    verdict = _judge("order", Evidence(samples=small, compared_with=large))
    assert verdict.status == "holds"
    assert verdict.interval[1] < 0
    assert _judge("order", Evidence(samples=large, compared_with=small)).status == "violated"


def test_rate_fits_an_exponent() -> None:
    generator = np.random.default_rng(10)
    points = np.array([8.0, 16.0, 32.0, 64.0])
    samples = points**-1.0 * (1 + 0.1 * generator.standard_normal((256, 1, 4)))
    right = Evidence(samples=samples, points=points, reference=-1.0)
    assert _judge("rate", right).status == "holds"
    wrong = Evidence(samples=samples, points=points, reference=-0.9)
    assert _judge("rate", wrong).status == "violated"


def test_identity_stands_outside_the_family() -> None:
    exact = Evidence(
        exact=np.array([1.0, 2.0]), reference=np.array([1.0, 2.0 + 1e-9]), tolerance=1e-8
    )
    verdict = _judge("identity", exact)
    assert verdict.status == "holds"
    assert np.isnan(verdict.p_value)
    assert verdict.num_seeds == 0
    off = Evidence(exact=np.array([1.0]), reference=1.1, tolerance=1e-8)
    assert _judge("identity", off).status == "violated"
    # Two statistical claims and one identity: the family has two members.
    barely = Evidence(samples=SHIFTED[:, :1], reference=1.0)
    claims = [
        _claim("a", "equal", barely),
        _claim("b", "identity", exact),
        _claim("c", "equal", barely),
    ]
    checked = [claim.check(None) for claim in claims]
    verdicts = judge(claims, checked, checked, false_alarm_rate=1e-3)
    alone = _judge("equal", barely)
    assert verdicts[0].p_value == pytest.approx(min(1.0, 2 * alone.p_value))


def test_control_that_passes_is_reported() -> None:
    right = Evidence(samples=SHIFTED, reference=1.0)
    wrong = Evidence(samples=SHIFTED, reference=0.9)
    assert _judge("equal", right, wrong).control_rejected
    assert not _judge("equal", right, right).control_rejected


def test_family_rate_of_many_true_claims() -> None:
    generator = np.random.default_rng(11)
    alarms = 0
    for _ in range(400):
        claims = [
            _claim(
                str(i), "equal", Evidence(samples=generator.normal(1, 1, (64, 2)), reference=1.0)
            )
            for i in range(10)
        ]
        checked = [claim.check(None) for claim in claims]
        verdicts = judge(claims, checked, checked, false_alarm_rate=0.05)
        alarms += any(v.status == "violated" for v in verdicts)
    # 20 expected at the declared rate of .05; 40 is 4.6 standard deviations above.
    assert alarms < 40


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"samples": np.array([[np.nan]])}, "samples"),
        ({"samples": np.zeros((0, 2))}, "samples"),
        ({"samples": np.ones(3)}, "samples"),
        ({"samples": np.ones((3, 2)), "reference": np.ones(3)}, "reference"),
        ({"samples": np.ones((3, 2)), "reference": np.inf}, "reference"),
        ({"samples": np.ones((3, 2)), "exact": np.ones(2)}, "samples"),
        ({"samples": np.ones((3, 2)), "tolerance": -0.1}, "tolerance"),
        ({"samples": np.ones((3, 2)), "labels": ("a",)}, "labels"),
        ({"samples": np.ones((3, 1, 2)), "points": np.array([1.0, -1.0])}, "points"),
        ({"samples": np.ones((3, 2)), "compared_with": np.ones((3, 1))}, "compared_with"),
    ],
)
def test_bad_evidence_names_the_argument(arguments: dict, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        Evidence(**arguments)


def _study(check: object) -> Study:
    good = Evidence(samples=SHIFTED, reference=1.0)
    claim = _claim("c", "equal", good)
    claim = Claim(**{**claim.__dict__, "check": check})
    presets = {"smoke": 1, "quick": 2, "paper": 3}
    return Study("example", "Example", (), presets, lambda *_: xr.Dataset(), (claim,))


def test_verify_refuses_another_studys_dataset() -> None:
    study = _study(lambda dataset: Evidence(samples=dataset["x"].values))
    with pytest.raises(ValueError, match="dataset"):
        verify(study, xr.Dataset(attrs={"study": "other"}))
    with pytest.raises(ValueError, match=r"dataset: claim 'c'.*needs"):
        verify(study, xr.Dataset())


def test_verify_refuses_a_rate_outside_the_unit_interval() -> None:
    study = _study(lambda _: Evidence(samples=SHIFTED, reference=1.0))
    with pytest.raises(ValueError, match="false_alarm_rate"):
        verify(study, xr.Dataset(), false_alarm_rate=0.0)
