"""Every claim of every study, with its control, at the smoke preset; and what is drawn of it."""

import base64
import functools
import json
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from boundlab import Claim, Evidence, Verdict, results, studies, study, verify
from boundlab.publish import mathtext

STUDIES = {item.name: item for item in studies()}
every_study = pytest.mark.parametrize("study_name", STUDIES)
CLAIMS = [(name, claim) for name, item in STUDIES.items() for claim in item.claims]
every_claim = pytest.mark.parametrize(
    ("study_name", "claim"), CLAIMS, ids=[f"{name}-{claim.id}" for name, claim in CLAIMS]
)


@pytest.fixture(scope="module")
def judged(smoke_of: Callable[..., xr.Dataset]) -> Callable[[str], dict[str, Verdict]]:
    """Function of a study's name: verdicts by claim on its smoke dataset, computed once."""

    @functools.cache
    def verdicts_of(name: str) -> dict[str, Verdict]:
        return {verdict.claim: verdict for verdict in verify(study(name), smoke_of(name))}

    return verdicts_of


@pytest.fixture
def verdicts(study_name: str, judged: Callable[[str], dict[str, Verdict]]) -> dict[str, Verdict]:
    return judged(study_name)


@every_study
def test_no_claim_is_violated_and_every_control_is_rejected(verdicts: dict) -> None:
    assert not [v for v in verdicts.values() if v.status == "violated"]
    passed = [v.claim for v in verdicts.values() if not v.control_rejected]
    assert not passed, "these checks have no power"


@pytest.mark.parametrize(
    "study_name", ["excess_risk", "fanout", "policy_optimization", "team_learning"]
)
def test_no_control_is_its_claim_turned_round(study_name: str, smoke: xr.Dataset) -> None:
    """The opposite of a claim is rejected wherever the claim holds, and says nothing of its power."""

    def sides(evidence: Evidence) -> list:
        values = evidence.samples if evidence.exact is None else evidence.exact
        other = evidence.compared_with if evidence.compared_with is not None else evidence.reference
        return [np.asarray(values), np.asarray(other)]

    for claim in study(study_name).claims:
        if claim.kind not in ("order", "upper", "lower"):
            continue
        checked, control = (sides(check(smoke)) for check in (claim.check, claim.control))
        turned = [np.array_equal(a, b) for a, b in zip(checked, control[::-1], strict=True)]
        negated = [np.array_equal(a, -b) for a, b in zip(checked, control, strict=True)]
        assert not all(turned), claim.id
        assert not all(negated), claim.id


@pytest.mark.parametrize("study_name", ["excess_risk"])
def test_half_of_the_theory_is_rejected(smoke: xr.Dataset) -> None:
    """The claims look at the data: simulated risks that are 30 % off violate them."""
    off = smoke.assign(
        {name: 1.3 * smoke[name] for name in ("curves_sgd_risk", "curves_ridge_risk")}
    )
    changed = {verdict.claim: verdict for verdict in verify(study("excess_risk"), off)}
    for claim in ("sgd-exact", "ridge-equivalent", "least-squares"):
        assert changed[claim].status == "violated"


@every_study
def test_dataset_survives_the_disk(
    study_name: str, smoke: xr.Dataset, verdicts: dict, tmp_path: Path
) -> None:
    provenance = {results.PROVENANCE: json.dumps({"seed": 0})}
    results.save(smoke.assign_attrs(provenance), tmp_path / "r.nc")
    loaded = results.load(tmp_path / "r.nc")
    before, after = verdicts.values(), verify(study(study_name), loaded)
    np.testing.assert_allclose(
        [v.measured for v in before], [v.measured for v in after], rtol=1e-12
    )
    assert [v.status for v in before] == [v.status for v in after]


@every_study
def test_every_variable_says_what_it_is(smoke: xr.Dataset) -> None:
    for name, variable in smoke.data_vars.items():
        assert variable.attrs.get("long_name"), name
        assert variable.attrs.get("units"), name


@every_study
def test_no_simulated_value_is_missing(smoke: xr.Dataset) -> None:
    for name, variable in smoke.data_vars.items():
        if any(str(dim).endswith(("seed", "design")) for dim in variable.dims):
            assert np.isfinite(variable).all(), name


@every_study
def test_figures_are_labelled(study_name: str, smoke: xr.Dataset) -> None:
    drawn = import_module(f"boundlab.figures.{study_name}").draw(smoke)
    letter, last = {
        "excess_risk": ("F", 11),
        "fanout": ("E", 9),
        "graph_diffusion": ("E", 10),
        "policy_optimization": ("F", 11),
        "team_learning": ("F", 11),
    }[study_name]
    numbers = sorted({int(re.match(rf"{letter}(\d+)", name)[1]) for name in drawn})
    assert numbers == list(range(1, last + 1))
    for name, (figure, caption) in drawn.items():
        assert len(caption) > 80, name
        axes = [axis for axis in figure.axes if axis.has_data()]
        assert axes, name
        assert any(axis.get_xlabel() for axis in axes), name
        assert any(axis.get_ylabel() for axis in axes), name
        plt.close(figure)


@every_claim
def test_statements_can_be_drawn(study_name: str, claim: Claim) -> None:
    image = mathtext(claim.statement)
    assert image.startswith("data:image/svg+xml")
    picture = base64.b64decode(image.split(",")[1]).decode()
    width = float(re.search(r'width="([0-9.]+)pt"', picture)[1])
    assert width < 340, "too long for one line of the report"
