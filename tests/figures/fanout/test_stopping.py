"""The figures of stopping rules show the dataset's numbers on labelled axes."""

import numpy as np
import xarray as xr

from boundlab.figures.fanout import stopping

GRID = (
    "stopping_setting",
    "stopping_grid_seed",
    "stopping_grid_batch_size",
    "stopping_grid_fan_out",
    "stopping_rule",
)


def made_up() -> xr.Dataset:
    rng = np.random.default_rng(0)
    runs = ("stopping_seed", "stopping_batch_size", "stopping_target")
    kept = ("stopping_setting", "stopping_grid_seed", "stopping_rule", "stopping_axis")
    times = {
        f"stopping_{name}_time": (runs, rng.integers(20, 200, (5, 3, 4)).astype(float))
        for name in ("batch", "sampled", "full")
    }
    never = {
        f"stopping_{name}_censored": (runs, rng.integers(0, 2, (5, 3, 4)).astype(float))
        for name in ("batch", "sampled", "full")
    }
    models = {
        f"stopping_{name}": (runs[1:], 20 + 100 * rng.random((3, 4)))
        for name in ("model_time", "model_censored", "noiseless_time", "sampled_model_time")
    }
    censored = np.zeros((2, 5, 3, 2, 4))
    censored[0, :2, 1, 0, 3] = 1.0
    return xr.Dataset(
        {
            **times,
            **never,
            **models,
            "stopping_explained": ("stopping_target", np.array([0.7, 0.68, 0.5, 0.3])),
            "stopping_grid_time": (
                GRID,
                rng.integers(10, 90, (2, 5, 3, 2, 4)).astype(float),
                {"window": 24},
            ),
            "stopping_grid_censored": (GRID, censored),
            "stopping_exponent": (kept, rng.standard_normal((2, 5, 4, 2))),
            "stopping_theorem": (
                ("stopping_setting", "stopping_axis"),
                np.array([[2.5, -0.5], [-1.0, -2.5]]),
            ),
        },
        coords={
            "stopping_batch_size": [20, 60, 240],
            "stopping_target": [0.98, 1.04, 1.5, 2.0],
            "stopping_setting": ["sage mse sgd", "gcn_block cross_entropy adam"],
            "stopping_grid_batch_size": [12, 48, 144],
            "stopping_grid_fan_out": [2, 12],
            "stopping_rule": ["batch", "held", "sampled", "full"],
            "stopping_axis": ["batch_size", "fan_out"],
        },
    )


def test_grids_print_the_means() -> None:
    dataset = made_up()
    figure, caption = stopping.draw(dataset)["E1-stopping-rules"]
    axes = figure.axes
    assert len(axes) == 8
    mean = dataset["stopping_grid_time"].mean("stopping_grid_seed")
    texts = {text.get_position(): text.get_text() for text in axes[3].texts}  # first row, last rule
    assert texts[(1, 2)] == f"{float(mean[0, 2, 1, 3]):.0f}"
    assert texts[(0, 1)] == f"≥ {float(mean[0, 1, 0, 3]):.0f}"
    np.testing.assert_allclose(axes[3].images[0].get_array(), mean[0, :, :, 3])
    assert all(axis.get_xlabel() == "fan-out β" for axis in axes[-4:])
    assert "24 updates" in caption


def test_exponents_stand_beside_the_theorem() -> None:
    dataset = made_up()
    figure, caption = stopping.draw(dataset)["E1c-exponents"]
    first = figure.axes[0]
    crosses = [line for line in first.lines if line.get_marker() == "x"]
    np.testing.assert_array_equal(crosses[0].get_xdata(), [2.5, -1.0])
    found = dataset["stopping_exponent"].sel(stopping_rule="held", stopping_axis="batch_size")
    np.testing.assert_allclose(
        first.containers[1].lines[0].get_xdata(), found.mean("stopping_grid_seed")
    )
    assert len(caption) > 80


def test_targets_show_runs_and_model() -> None:
    dataset = made_up()
    figure, caption = stopping.draw(dataset)["E9-targets"]
    left, _, right = figure.axes
    drawn = [line.get_ydata() for line in left.lines]
    expected = dataset["stopping_model_time"].sel(stopping_batch_size=60).values
    assert any(np.array_equal(expected, values) for values in drawn)
    mean = dataset["stopping_batch_time"].sel(stopping_batch_size=60).mean("stopping_seed")
    assert any(np.allclose(mean, c.lines[0].get_ydata()) for c in left.containers)
    never = dataset["stopping_batch_censored"].sel(stopping_batch_size=240).mean("stopping_seed")
    assert any(np.array_equal(never, line.get_ydata()) for line in right.lines)
    assert all(axis.get_xlabel() and axis.get_ylabel() for axis in figure.axes)
    assert "5 runs" in caption
