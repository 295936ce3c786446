"""The figure of block degrees shows the dataset's numbers on labelled axes."""

import numpy as np
import xarray as xr

from boundlab.figures.fanout import blocks


def _dataset() -> xr.Dataset:
    rng = np.random.default_rng(0)
    law = ("blocks_curve", "blocks_fan_out")
    rows = ("blocks_batch_size", "blocks_fan_out", "blocks_seed")
    names = ("row_sum", "squared_norm", "distance")
    theory = {f"blocks_{name}": (law, rng.random((5, 2))) for name in names}
    simulated = {f"blocks_simulated_{name}": (rows, rng.random((3, 2, 6))) for name in names}
    cells = ("blocks_cell", "blocks_aggregator")
    other = {
        "blocks_mean_squared_norm": ("blocks_fan_out", [1.0, 0.5]),
        "blocks_mean_distance": ("blocks_fan_out", [0.9, 0.4]),
        "blocks_simulated_updates": (
            ("blocks_cell", "blocks_teacher_seed", "blocks_aggregator"),
            10 + rng.random((4, 6, 3)),
        ),
        "blocks_expected_updates": (cells, 10 + rng.random((4, 3))),
        "blocks_cell_norm": (cells, rng.random((4, 3)) + 0.1),
        "blocks_step_size": ("blocks_aggregator", [0.2, 0.1, 0.2]),
        "blocks_cell_batch_size": ("blocks_cell", [8, 8, 4, 2]),
        "blocks_cell_fan_out": ("blocks_cell", [1, 2, 2, 2]),
    }
    coords = {
        "blocks_curve": [1, 2, 3, 5, 8],
        "blocks_fan_out": [1, 2],
        "blocks_batch_size": [1, 3, 8],
        "blocks_aggregator": ["mean", "sum", "gcn_block"],
    }
    return xr.Dataset(theory | simulated | other, coords=coords)


def test_figure_holds_the_numbers() -> None:
    dataset = _dataset()
    figures = blocks.draw(dataset)
    assert list(figures) == ["E5-block-degrees"]
    figure, caption = figures["E5-block-degrees"]
    assert len(caption) > 80
    drawn = [line.get_ydata() for line in figure.axes[1].lines]
    assert any(np.array_equal(y, dataset["blocks_squared_norm"][:, 1]) for y in drawn)
    drawn = [line.get_ydata() for line in figure.axes[3].lines]
    assert any(np.array_equal(y, dataset["blocks_expected_updates"][:2, 0]) for y in drawn)
    assert all(axis.get_xlabel() and axis.get_title() for axis in figure.axes)
