"""Every claim of the excess-risk study, with its control, at the smoke preset."""

import base64
import json
import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from boundlab import Claim, results, study, verify
from boundlab.figures.excess_risk import draw
from boundlab.publish import mathtext

STUDY = study("excess_risk")


@pytest.fixture(scope="module")
def verdicts(excess_risk_smoke: xr.Dataset) -> dict:
    return {verdict.claim: verdict for verdict in verify(STUDY, excess_risk_smoke)}


@pytest.mark.parametrize("claim", [claim.id for claim in STUDY.claims])
def test_claim(verdicts: dict, claim: str) -> None:
    assert verdicts[claim].status != "violated", verdicts[claim]
    assert verdicts[claim].control_rejected, "its control passes: the check has no power"


def test_half_of_the_theory_is_rejected(excess_risk_smoke: xr.Dataset) -> None:
    """The claims look at the data: simulated risks that are 30 % off violate them."""
    off = excess_risk_smoke.assign(
        {name: 1.3 * excess_risk_smoke[name] for name in ("curves_sgd_risk", "curves_ridge_risk")}
    )
    changed = {verdict.claim: verdict for verdict in verify(STUDY, off)}
    for claim in ("sgd-exact", "ridge-equivalent", "least-squares"):
        assert changed[claim].status == "violated"


def test_dataset_survives_the_disk(excess_risk_smoke: xr.Dataset, tmp_path: Path) -> None:
    provenance = {results.PROVENANCE: json.dumps({"seed": 0})}
    results.save(excess_risk_smoke.assign_attrs(provenance), tmp_path / "r.nc")
    loaded = results.load(tmp_path / "r.nc")
    before, after = verify(STUDY, excess_risk_smoke), verify(STUDY, loaded)
    np.testing.assert_equal([v.measured for v in before], [v.measured for v in after])
    assert [v.status for v in before] == [v.status for v in after]


def test_every_variable_says_what_it_is(excess_risk_smoke: xr.Dataset) -> None:
    for name, variable in excess_risk_smoke.data_vars.items():
        assert variable.attrs.get("long_name"), name
        assert variable.attrs.get("units"), name


def test_no_simulated_value_is_missing(excess_risk_smoke: xr.Dataset) -> None:
    for name, variable in excess_risk_smoke.data_vars.items():
        if any(str(dim).endswith(("seed", "design")) for dim in variable.dims):
            assert np.isfinite(variable).all(), name


def test_figures_are_labelled(excess_risk_smoke: xr.Dataset) -> None:
    drawn = draw(excess_risk_smoke)
    assert [name.split("-")[0] for name in drawn] == [f"F{i}" for i in range(1, 12)]
    for name, (figure, caption) in drawn.items():
        assert len(caption) > 80, name
        axes = [axis for axis in figure.axes if axis.has_data()]
        assert axes, name
        assert any(axis.get_xlabel() for axis in axes), name
        assert any(axis.get_ylabel() for axis in axes), name


@pytest.mark.parametrize("claim", STUDY.claims, ids=lambda claim: claim.id)
def test_statements_can_be_drawn(claim: Claim) -> None:
    image = mathtext(claim.statement)
    assert image.startswith("data:image/svg+xml")
    picture = base64.b64decode(image.split(",")[1]).decode()
    width = float(re.search(r'width="([0-9.]+)pt"', picture)[1])
    assert width < 340, "too long for one line of the report"
