"""The part on stopping rules: its layout, its targets and its helpers."""

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.fanout import stopping
from boundlab.analysis.fanout.config import PRESETS, Config
from boundlab.analysis.fanout.stopping_runs import Recorded, parse, stop, stop_by_rules

SMOKE = PRESETS["smoke"]


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("fanout", "stopping_")


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("stopping_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    assert dataset["stopping_batch_time"].shape == (SMOKE.stopping_seeds, 3, 6)
    assert dataset["stopping_grid_time"].shape == (3, SMOKE.stopping_grid_seeds, 3, 3, 4)
    # A run that is never stopped counts its whole length.
    for times, never, steps in (
        ("stopping_batch_time", "stopping_batch_censored", SMOKE.stopping_steps),
        ("stopping_grid_time", "stopping_grid_censored", SMOKE.stopping_grid_steps),
    ):
        assert dataset[never].max() == 1.0
        assert (dataset[times].where(dataset[never] == 1.0, steps) == steps).all()


def test_targets_are_shares_of_the_zero_predictor(dataset: xr.Dataset) -> None:
    """At the floor no weights explain more; ρ falls linearly in ε."""
    ratio, explained = dataset["stopping_target"].values, dataset["stopping_explained"].values
    slopes = np.diff(explained) / np.diff(ratio)
    np.testing.assert_allclose(slopes, slopes[0], rtol=1e-9)
    assert 0.5 < 1 + slopes[0] < 0.9


def test_stops_by_a_loop() -> None:
    rng = np.random.default_rng(0)
    losses = rng.random((3, 2, 8))
    recorded = Recorded(losses, losses[..., ::2], 1 - losses[..., ::2], 2)
    found = stop_by_rules(recorded, 0.5, 2)
    for place in np.ndindex(3, 2):
        row = losses[place]
        hits = [t for t in range(8) if row[t] <= 0.5]
        held = [t for t in range(7) if max(row[t], row[t + 1]) <= 0.5]
        sampled = [t for t in range(0, 8, 2) if row[t] <= 0.5]
        full = [t for t in range(0, 8, 2) if 1 - row[t] <= 0.5]
        for i, times in enumerate((hits, held, sampled, full)):
            expected = times[0] + 1 if times else 8
            assert found.iterations[(*place, i)] == expected
            assert found.censored[(*place, i)] == (not times)


def test_targets_broadcast() -> None:
    found = stop(np.array([[3.0, 2.0, 1.0]]), np.array([2.5, 1.0, 0.5]), every=4)
    np.testing.assert_array_equal(found.iterations, [5, 9, 12])
    np.testing.assert_array_equal(found.censored, [False, False, True])


def test_step_sizes_are_the_authors() -> None:
    """Their mean over nodes and outputs is 2/K of ours; Adam does not see the scale."""
    assert stopping.step_size(parse("sage mse sgd"), 4) == 0.025
    assert stopping.step_size(parse("gcn mse adam"), 4) == 0.003


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("stopping_nodes", 241),
        ("stopping_batch_sizes", (20, 60)),
        ("stopping_batch_sizes", (20, 60, 100)),
        ("stopping_grid_batch_sizes", (48, 12, 144)),
        ("stopping_grid_fan_outs", (2, 4, 400)),
        ("stopping_steps", 30),
        ("stopping_window", 1000),
        ("stopping_settings", ("sage mse",)),
        ("stopping_settings", ("sage mse sgd",)),
    ],
)
def test_bad_settings_are_named(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^{name}: got "):
        Config(**{name: value})  # type: ignore[arg-type]
