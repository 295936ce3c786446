"""The figures of cost show the dataset's numbers, frame the cheapest cell and mark cut-off runs."""

import numpy as np
import pytest
import xarray as xr

from boundlab.figures.fanout import cost

B, BETA, SEEDS, HOPS = [5, 50], [1, 4], 3, 2


@pytest.fixture(scope="module")
def dataset() -> xr.Dataset:
    """Made by hand: T = 40, 20 at b = 5 and 10, 12 at b = 50; one run of (5, 1) cut off."""
    cell = ("cost_batch_size", "cost_fan_out")
    runs = (*cell, "cost_seed", "cost_target")
    mean = np.array([[40.0, 20.0], [10.0, 12.0]])
    iterations = mean[:, :, None, None] + np.arange(-1.0, 2.0)[:, None]
    cut = np.zeros((2, 2, SEEDS, 1), bool)
    cut[0, 0, 0] = True
    steps = {
        "cost_to_samples": np.array(B)[:, None] * np.ones(2),
        "cost_to_edges": np.outer(B, BETA),
        "cost_to_operations": 1e6 * np.outer(B, BETA),
    }
    seconds = np.array([1e-5 * np.outer(B, BETA), np.full((2, 2), 1e-4)])
    touched = np.ones((2, 3, 2, SEEDS, HOPS)) * np.array([10.0, 60.0, 100.0])[:, None, None, None]
    touched[..., 1] += np.arange(SEEDS)
    pools = ("cost_graph", "cost_touched_batch_size", "cost_fan_out")
    exact = np.ones((2, 3, 2)) * np.array([11.0, 61.0, 100.0])[:, None]
    values = {
        "cost_iterations": (runs, iterations),
        "cost_censored": (runs, cut),
        "cost_to_seconds": (("cost_device", *runs), seconds[..., None, None] * iterations),
        "cost_throughput": (("cost_device", *cell), np.array(B)[:, None] / seconds),
        "cost_touched": ((*pools, "cost_batch", "cost_hop"), touched),
        "cost_touched_exact": (pools, exact),
        "cost_touched_mean_degree": (pools, exact),
    }
    values |= {name: (runs, one[..., None, None] * iterations) for name, one in steps.items()}
    coords = {
        "cost_graph": ["fixed mix", "regular"],
        "cost_touched_batch_size": [10, 50, 100],
        "cost_batch_size": B,
        "cost_fan_out": BETA,
        "cost_target": ["accuracy"],
        "cost_device": ["CPU, 2 cores", "GPU"],
    }
    once = xr.Dataset(values, coords=coords)
    other = once.isel(cost_graph=[0, 1]).assign_coords(cost_graph=["power law", "Cora"])
    return xr.concat([once, other], "cost_graph", data_vars="minimal")


def test_cheapest_cells_are_framed(dataset: xr.Dataset) -> None:
    figure, caption = cost.draw(dataset)["E6-cost"]
    panels = [axis for axis in figure.axes if axis.images]
    places = [panel.patches[0].get_xy() for panel in panels]
    # Not the cell with a run that was cut off, even where its mean is the smallest.
    assert places == [(-0.5, 0.5), (0.5, -0.5), (0.5, -0.5), (0.5, -0.5)]
    texts = [text.get_text() for text in panels[0].texts]
    assert texts == ["≥40", "20", "10", "12"]
    assert panels[3].texts[1].get_text() == "400M"
    assert len(caption) > 80


def test_touched_nodes_are_shares(dataset: xr.Dataset) -> None:
    figure, _ = cost.draw(dataset)["E6-cost"]
    line = figure.axes[0].lines[0]
    np.testing.assert_allclose(line.get_ydata(), [0.11, 0.61, 1.0])
    assert figure.axes[0].get_ylabel()
    assert [axis.get_title() for axis in figure.axes[:4]] == list(dataset["cost_graph"].values)


def test_seconds_by_device(dataset: xr.Dataset) -> None:
    figure, caption = cost.draw(dataset)["E7-time"]
    iterations, seconds, throughput = figure.axes
    hollow = [line for line in iterations.lines if line.get_markerfacecolor() == "white"]
    assert [list(line.get_ydata()) for line in hollow] == [[40.0], []]
    shown = [line.get_ydata() for line in throughput.lines]
    np.testing.assert_allclose(shown[1], [5e4, 5e5])
    assert seconds.get_yscale() == "log"
    assert "CPU, 2 cores, GPU" in caption
    assert all(axis.get_xlabel() and axis.get_ylabel() for axis in figure.axes)


def test_one_device_has_linear_time(dataset: xr.Dataset) -> None:
    figure, _ = cost.draw(dataset.isel(cost_device=[0]))["E7-time"]
    assert figure.axes[1].get_yscale() == "linear"
    np.testing.assert_allclose(figure.axes[1].lines[0].get_ydata(), [2.0, 5.0], rtol=1e-12)
