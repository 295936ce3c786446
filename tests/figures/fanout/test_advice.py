"""The figure of the advice shows the table's numbers and marks the recommended cell."""

import numpy as np
import pytest
import xarray as xr

from boundlab.figures.fanout import advice


@pytest.fixture(scope="module")
def dataset() -> xr.Dataset:
    rng = np.random.default_rng(0)
    cells = ("batch_size", "fan_out")
    names = ("floor", "gradient_noise", "relative_cost", "touched_nodes", "memory")
    table = xr.Dataset(
        {name: (cells, rng.gamma(2.0, size=(3, 4))) for name in names},
        coords={"batch_size": [1, 8, 20], "fan_out": [1, 2, 5, 9]},
        attrs={"memory_budget": 2.0, "recommended_batch_size": 8, "recommended_fan_out": 5},
    )
    table["gradient_noise"][2, 3] = 0.0  # full batch, all neighbours
    table["evaluation_loss"] = ("fan_out", rng.random(4), {"long_name": "loss (held out)"})
    return table


def test_heat_maps_hold_the_numbers(dataset: xr.Dataset) -> None:
    figure, caption = advice.draw(dataset)["advice"]
    panels = [axis for axis in figure.axes if axis.get_xlabel() == "fan-out β"]
    assert len(panels) == 6
    for axis, (name, *_) in zip(panels, advice.PANELS, strict=False):
        np.testing.assert_array_equal(axis.images[0].get_array(), dataset[name])
        crosses, square = axis.lines
        assert len(crosses.get_xdata()) == int((dataset["memory"] > 2.0).sum())
        assert (square.get_xdata()[0], square.get_ydata()[0]) == (2, 1)
        assert axis.get_ylabel() == "batch size b"
    np.testing.assert_array_equal(panels[-1].lines[0].get_ydata(), dataset["evaluation_loss"])
    (legend,) = figure.legends
    words = [text.get_text() for text in legend.get_texts()]
    assert words == ["recommended cell", "over the memory budget"]
    assert "b = 8, β = 5" in caption
    assert len(caption) > 80
    figure.canvas.draw()


def test_a_grid_of_one_cell_can_be_drawn(dataset: xr.Dataset) -> None:
    one = dataset.isel(batch_size=[1], fan_out=[2])
    figure, _ = advice.draw(one)["advice"]
    figure.canvas.draw()
