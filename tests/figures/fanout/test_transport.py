"""The figure of transport distances shows the dataset's numbers on labelled axes."""

import numpy as np
import xarray as xr

from boundlab.figures.fanout import transport


def _dataset() -> xr.Dataset:
    rng = np.random.default_rng(0)
    delta = ("transport_graph", "transport_kind", "transport_fan_out", "transport_batch_size")
    case = ("transport_case", "transport_case_fan_out", "transport_seed")
    law = ("transport_law_fan_out", "transport_law_seed")
    bound = ("transport_bound_fan_out", "transport_label_seed")
    bounds = ("train_loss", "test_loss", "bound", "bound_without")
    variables = {
        f"transport_{name}": (delta, rng.random((2, 2, 3, 2)))
        for name in ("whole", "delta", "delta_full")
    }
    variables |= {f"transport_{name}": (bound, rng.random((2, 9))) for name in bounds}
    variables |= {
        "transport_gap": (case, rng.standard_normal((3, 4, 5))),
        "transport_case_delta": (case, rng.random((3, 4, 5))),
        "transport_rank_correlation": ("transport_seed", -rng.random(5)),
        "transport_w2_squared": (law, rng.random((3, 5)) + 0.1),
        "transport_mean_trace": (law[:1], rng.random(3) + 0.1),
        "transport_gelbrich_squared": (law[:1], rng.random(3) + 0.1),
    }
    coords = {
        "transport_graph": ["power law", "regular"],
        "transport_kind": ["trace", "sqnorm"],
        "transport_fan_out": [1, 2, 9],
        "transport_batch_size": [4, 8],
        "transport_case": ["a", "b", "power law"],
        "transport_case_fan_out": ["1", "2", "4", "all"],
        "transport_law_fan_out": [1, 3, 6],
        "transport_bound_fan_out": [1, 6],
    }
    return xr.Dataset(variables, coords=coords)


def test_figure_holds_the_numbers() -> None:
    dataset = _dataset()
    figures = transport.draw(dataset)
    assert list(figures) == ["E4-wasserstein"]
    figure, caption = figures["E4-wasserstein"]
    assert f"{float(dataset['transport_rank_correlation'].mean()):.2f}" in caption
    drawn = [line.get_ydata() for line in figure.axes[0].lines]
    assert any(np.array_equal(y, dataset["transport_whole"][0, 0, :, 1]) for y in drawn)
    drawn = [line.get_ydata() for line in figure.axes[1].lines]
    mean = dataset["transport_gap"].mean("transport_seed")
    assert any(np.array_equal(y, mean[2]) for y in drawn)
    assert all(axis.get_xlabel() and axis.get_title() for axis in figure.axes)
