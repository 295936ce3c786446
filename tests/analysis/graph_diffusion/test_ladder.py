"""The part on the ladder at a small size: its claims, controls and layout."""

import jax
import numpy as np
import pytest
import xarray as xr

import boundlab
from boundlab.analysis.graph_diffusion import ladder
from boundlab.analysis.graph_diffusion.config import Config
from boundlab.analysis.graph_diffusion.padded_grids import padded_grid
from boundlab.verdicts import Status, judge

TINY = Config(
    ladder_steps=(50, 200, 400),
    ladder_case_steps=(5, 100),
    ladder_fine_steps=5_000,
    ladder_seeds=96,
    ladder_draws=128,
)


@pytest.fixture(scope="module")
def dataset() -> xr.Dataset:
    def repeat(name: str, *args: object, **kwargs: object) -> xr.Dataset:
        return boundlab.sweep(*args, progress=False, **kwargs)

    return ladder.run(TINY, jax.random.key(7, impl="threefry2x32"), repeat)


def test_claims_hold_and_controls_are_rejected(dataset: xr.Dataset) -> None:
    claims = ladder.CLAIMS
    checks = [[check(dataset) for check in (c.check, c.control)] for c in claims]
    verdicts = judge(claims, *zip(*checks, strict=True), false_alarm_rate=1e-3)
    for verdict in verdicts:
        assert verdict.status != Status.VIOLATED, verdict
        assert verdict.control_rejected, verdict


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("ladder_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    assert dataset["ladder_variance"].shape == (96, 4, 6)
    assert (dataset["ladder_path"].isel(ladder_bounded=0) <= dataset["ladder_lipschitz"]).all()


def test_padded_grids_end_in_repetitions() -> None:
    equal = padded_grid(2.0, 0.5, 3, 5)
    np.testing.assert_allclose(equal, [2.0, 1.5, 1.0, 0.5, 0.5, 0.5])
    ratio = np.asarray(padded_grid(2.0, 0.25, 3, 5, True))
    np.testing.assert_allclose(ratio, [2.0, 1.0, 0.5, 0.25, 0.25, 0.25], rtol=1e-15)
    assert (ratio[3:] == 0.25).all()
