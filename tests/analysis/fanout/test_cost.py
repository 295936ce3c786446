"""The part on cost: units, counts, and the measured times that ship as data."""

import csv
import dataclasses
import json
from collections.abc import Callable
from importlib import resources
from typing import Any

import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.fanout import step_times
from boundlab.analysis.fanout.config import PRESETS, Config
from boundlab.theory.fanout import training_flops

SMOKE = PRESETS["smoke"]


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("fanout", "cost_")


def test_costs_are_iterations_times_a_step(dataset: xr.Dataset) -> None:
    """One cell by hand: b = 25, β = 3, every node of degree 12."""
    cell = dataset.sel(cost_batch_size=25, cost_fan_out=3, cost_target="accuracy")
    iterations = cell["cost_iterations"].values
    np.testing.assert_array_equal(cell["cost_to_samples"], 25 * iterations)
    np.testing.assert_array_equal(cell["cost_to_edges"], 75 * iterations)
    operations = float(training_flops([75], [25], [SMOKE.num_features, SMOKE.num_classes]))
    assert operations == 3 * (2 * 75 * 16 + 2 * 25 * 16 * 6)
    np.testing.assert_array_equal(cell["cost_to_operations"], operations * iterations)
    for device in dataset["cost_device"].values:
        one = cell.sel(cost_device=device)
        seconds = float(one["cost_seconds"])
        np.testing.assert_allclose(one["cost_to_seconds"], seconds * iterations, rtol=1e-12)
        np.testing.assert_allclose(one["cost_throughput"], 25 / seconds, rtol=1e-12)


def test_counts_that_need_no_theory(dataset: xr.Dataset) -> None:
    touched = dataset["cost_touched"]
    np.testing.assert_array_equal(
        touched.isel(cost_hop=0),
        np.broadcast_to(
            dataset["cost_touched_batch_size"].values[:, None, None],
            touched.isel(cost_hop=0, cost_graph=0).shape,
        )[None].repeat(4, axis=0),
    )
    assert (touched.diff("cost_hop") >= 0).all()
    assert touched.max() == SMOKE.cost_nodes
    # A run that is cut off has the length of the run; the others are shorter or end in a hit.
    cut = dataset["cost_censored"]
    assert (dataset["cost_iterations"].where(cut, SMOKE.cost_steps) == SMOKE.cost_steps).all()
    assert (dataset["cost_iterations"] >= 1).all()


def test_layout(dataset: xr.Dataset) -> None:
    for name in (*dataset.variables, *dataset.dims):
        assert str(name).startswith("cost_")
    for variable in dataset.data_vars.values():
        assert variable.attrs["long_name"]
        assert variable.attrs["units"]


@pytest.mark.smoke
def test_measured_times_ship_with_the_package() -> None:
    """The table is complete for the grid of every preset, and says where it was measured."""
    source = resources.files("boundlab.analysis.fanout") / "data" / "step_seconds.csv"
    lines = source.read_text(encoding="utf-8").splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    comments = [line for line in lines if line.startswith("#")]
    for device in {row["device"] for row in rows}:
        assert any(line.startswith(f"# {device}") and "jax" in line for line in comments)
    table = step_times.step_seconds()
    for config in PRESETS.values():
        cells = table.sel(
            num_nodes=config.cost_nodes,
            batch_size=list(config.cost_batch_sizes),
            fan_out=list(config.cost_fan_outs),
        )
        assert (cells["seconds"].max("device") > 0).all()
    assert json.dumps(sorted(rows[0])) == json.dumps(
        ["batch_size", "device", "fan_out", "network", "num_nodes", "seconds", "spread"]
    )


def test_times_between_measured_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two devices: a power law of b and β on one size, and a constant on two others."""
    b, beta = np.array([1, 10, 100]), np.array([1, 8])
    seconds = np.full((2, 3, 3, 2), np.nan)
    seconds[0, 1] = 1e-6 * b[:, None] ** 0.5 * beta ** (1 / 3)
    seconds[1, 0], seconds[1, 2] = 1e-3, 2e-3
    coords = {"device": ["CPU", "GPU"], "num_nodes": [100, 200, 900]}
    coords |= {"batch_size": b, "fan_out": beta}
    measured = xr.Dataset(
        {name: (step_times.AXES, seconds) for name in ("seconds", "spread")}, coords=coords
    )
    monkeypatch.setattr(step_times, "step_seconds", lambda: measured)
    found = step_times.step_seconds_at(120, (4, 10, 1000), (1, 4, 50))["seconds"]
    law = 1e-6 * np.array([2.0, 10**0.5, 10.0])[:, None] * np.array([1.0, 4 ** (1 / 3), 2.0])
    np.testing.assert_allclose(found.sel(device="CPU"), law, rtol=1e-12)
    np.testing.assert_allclose(found.sel(device="GPU"), 1e-3, rtol=1e-12)
    far = step_times.step_seconds_at(2000, (4, 10), (1, 4))["seconds"]
    np.testing.assert_allclose(far.sel(device="GPU"), 2e-3, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cost_nodes", 2490),
        ("cost_nodes", 1201),
        ("cost_degree", 7),
        ("cost_degree", 400),
        ("cost_batch_sizes", (5, 601)),
        ("cost_batch_sizes", (5,)),
        ("cost_fan_outs", (3, 1)),
        ("cost_fan_outs", (0, 1)),
        ("cost_steps", 0),
        ("cost_seeds", 1),
        ("cost_batches", 1),
    ],
)
def test_settings_out_of_range_are_named(name: str, value: Any, as_users_call: None) -> None:
    with pytest.raises(ValueError, match=name):
        dataclasses.replace(Config(), **{name: value})
