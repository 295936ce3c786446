"""The part on exact limits: its claims are decided at any size, and its layout."""

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.fanout import exact
from boundlab.verdicts import Status, judge


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("fanout", "exact_")


def test_every_claim_is_decided(dataset: xr.Dataset) -> None:
    """The run has one size in every preset."""
    checked = [claim.check(dataset) for claim in exact.CLAIMS]
    for verdict in judge(exact.CLAIMS, checked, checked, false_alarm_rate=1e-3):
        assert verdict.status == Status.HOLDS, verdict


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
