"""The figures of the implicit ridge show the dataset's numbers on labelled axes."""

import numpy as np
import pytest
import xarray as xr

from boundlab.figures.fanout import ridge


def made_up(citations: list[str]) -> xr.Dataset:
    rng = np.random.default_rng(0)
    shapes = {
        "error": ("seed", "num_train", "fan_out"),
        "accuracy": ("seed", "num_train", "fan_out"),
        "simulated_error": ("simulated_num_train", "simulated_fan_out", "seed"),
        "trained_error": ("batch_size", "trained_fan_out", "seed"),
        "graph_error": ("graph", "graph_seed", "size", "graph_fan_out"),
        "graph_accuracy": ("graph", "graph_seed", "size", "graph_fan_out"),
        "citation_accuracy": (
            "citation",
            "citation_seed",
            "citation_num_train",
            "citation_fan_out",
        ),
    }
    coordinates: dict[str, list] = {
        "num_train": [5, 10, 20],
        "fan_out": [1, 2, 4],
        "simulated_num_train": [5, 20],
        "simulated_fan_out": [2, 4],
        "batch_size": [1, 5],
        "trained_fan_out": [1, 2],
        "graph": ["block model", "regular", "power law", "digits"],
        "size": ["few", "many"],
        "graph_fan_out": [1.0, 2.0, np.inf],
        "citation": citations,
        "citation_num_train": [140, 400],
        "citation_fan_out": [1.0, np.inf],
    }
    sizes = {name: len(values) for name, values in coordinates.items()}
    sizes |= {"seed": 6, "graph_seed": 4, "citation_seed": 3}
    return xr.Dataset(
        {
            f"ridge_{name}": (
                tuple(f"ridge_{dim}" for dim in dims),
                0.1 + 0.5 * rng.random([sizes[dim] for dim in dims]),
            )
            for name, dims in shapes.items()
        }
        | {"ridge_graph_num_train": (("ridge_graph", "ridge_size"), np.full((4, 2), 7))},
        coords={f"ridge_{name}": values for name, values in coordinates.items()},
    )


@pytest.mark.parametrize("citations", [["cora"], ["cora", "citeseer", "pubmed"]])
def test_figures_are_labelled(citations: list[str]) -> None:
    drawn = ridge.draw(made_up(citations))
    assert list(drawn) == ["E2-u-curves", "E2b-accuracy"]
    for name, (figure, caption) in drawn.items():
        assert len(caption) > 80, name
        for axis in figure.axes:
            assert axis.get_xlabel(), name
            assert axis.get_title(), name
            assert axis.get_legend() is not None, name
    assert len(drawn["E2b-accuracy"][0].axes) == 3 + len(citations)


def test_lines_are_means_and_rings_their_minima() -> None:
    dataset = made_up(["cora"])
    figure, _ = ridge.draw(dataset)["E2-u-curves"]
    first, ring = figure.axes[0].lines[:2]
    mean = dataset["ridge_error"].isel(ridge_num_train=0).mean("ridge_seed").values
    np.testing.assert_allclose(first.get_ydata(), mean)
    assert ring.get_xdata().tolist() == [int(mean.argmin())]
    labels = [tick.get_text() for tick in figure.axes[1].get_xticklabels()]
    assert labels == ["1", "2", "all"]
