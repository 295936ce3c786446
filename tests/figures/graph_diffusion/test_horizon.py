"""The figure of the horizon shows the dataset's numbers on labelled axes."""

import numpy as np
import xarray as xr

from boundlab.figures.graph_diffusion import horizon


def test_figure_holds_the_numbers() -> None:
    rng = np.random.default_rng(0)
    coords = {
        "horizon_data": list(horizon.SHOWN),
        "horizon_steps": [50, 100, 200],
        "horizon_time": np.geomspace(0.3, 4.0, 6),
    }
    table = ("horizon_data", "horizon_steps")
    variables = {name: (table, rng.random((3, 3)) + 0.5) for name in horizon.CURVES}
    variables["horizon_kl"] = ((*table, "horizon_time"), rng.random((3, 3, 6)) + 0.1)
    dataset = xr.Dataset(variables, coords=coords)
    figures = horizon.draw(dataset)
    assert list(figures) == ["E3-horizon"]
    figure, caption = figures["E3-horizon"]
    assert len(caption) > 80
    for axis, name in zip(figure.axes[:3], horizon.SHOWN, strict=True):
        drawn = [line.get_ydata() for line in axis.lines]
        for curve in horizon.CURVES:
            assert any(np.array_equal(y, dataset[curve].sel(horizon_data=name)) for y in drawn)
        assert axis.get_xlabel()
        assert axis.get_title()
