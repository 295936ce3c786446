"""The figure of delayed gradients shows the dataset's numbers on labelled axes."""

import numpy as np
import xarray as xr

from boundlab.figures.policy_optimization import delays


def _dataset() -> xr.Dataset:
    rng = np.random.default_rng(0)
    every, stale, simulated = "delays_delay", "delays_stale", "delays_simulated"
    curve = (every, "delays_share")
    runs = ("delays_seed", simulated, "delays_mode")
    variables = {
        "delays_limit_theory": (every, rng.random(3) + 0.1),
        "delays_turn_theory": (stale, rng.random(2) + 0.1),
        "delays_boundary": (simulated, rng.random(2) + 0.1),
        "delays_edge_theory": (stale, rng.random(2)),
        "delays_correlation_theory": (curve, rng.random((3, 4))),
        "delays_second_theory": (curve, 1 + rng.random((3, 4))),
        "delays_mode_share": ((simulated, "delays_mode"), 0.75 * rng.random((2, 16))),
        "delays_mode_correlation": (runs, rng.random((5, 2, 16))),
        "delays_square": (runs, 1 + rng.random((5, 2, 16))),
    }
    coords = {
        every: [0, 1, 8],
        stale: [1, 8],
        simulated: [0, 8],
        "delays_share": [0.1, 0.4, 0.7, 0.9],
    }
    return xr.Dataset(variables, coords=coords)


def test_figure_holds_the_numbers() -> None:
    dataset = _dataset()
    figures = delays.draw(dataset)
    assert list(figures) == ["F8-delays"]
    figure, caption = figures["F8-delays"]
    assert len(caption) > 80
    assert "delays of 0, 8 with" in caption
    left, middle, right = figure.axes
    assert all(axis.get_xlabel() and axis.get_ylabel() for axis in figure.axes)
    drawn = [line.get_ydata() for line in left.lines]
    assert any(np.array_equal(y, dataset["delays_boundary"]) for y in drawn)
    for axis, theory, simulated in (
        (middle, "delays_correlation_theory", "delays_mode_correlation"),
        (right, "delays_second_theory", "delays_square"),
    ):
        drawn = [np.asarray(line.get_ydata()) for line in axis.lines]
        for curve in dataset[theory].values:
            assert any(np.array_equal(y, curve) for y in drawn)
        for mean in dataset[simulated].mean("delays_seed").values:
            assert any(np.array_equal(y, mean[7::8]) for y in drawn)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["τ = 0", "τ = 1", "τ = 8"]
