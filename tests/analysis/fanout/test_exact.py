"""The part on exact limits: its claims, their controls and its layout."""

import jax
import numpy as np
import pytest
import xarray as xr

import boundlab
from boundlab.analysis.fanout import exact
from boundlab.analysis.fanout.config import Config
from boundlab.verdicts import Status, judge


@pytest.fixture(scope="module")
def dataset() -> xr.Dataset:
    def repeat(name: str, *args: object, **kwargs: object) -> xr.Dataset:
        return boundlab.sweep(*args, progress=False, **kwargs)

    return exact.run(Config(), jax.random.key(5, impl="threefry2x32"), repeat)


def test_claims_hold_and_controls_are_rejected(dataset: xr.Dataset) -> None:
    claims = exact.CLAIMS
    checks = [[check(dataset) for check in (c.check, c.control)] for c in claims]
    verdicts = judge(claims, *zip(*checks, strict=True), false_alarm_rate=1e-3)
    for verdict in verdicts:
        assert verdict.status == Status.HOLDS, verdict
        assert verdict.control_rejected, verdict


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("exact_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    assert dataset["exact_sampled"].shape == (3, exact.STEPS)


def test_graph_is_ragged() -> None:
    graph = exact._graph(np.random.default_rng(0))
    degrees = graph.degrees()
    assert degrees.max() == degrees[0] == exact.LARGEST
    assert degrees[exact.NODES - 1] == 0
    assert exact.NODES - 1 in exact.TRAIN
