"""The figure of edges shows the dataset's numbers on labelled axes."""

import numpy as np
import xarray as xr

from boundlab.figures.graph_diffusion import edges


def _dataset() -> xr.Dataset:
    rng = np.random.default_rng(0)
    seeds = "edges_seed"
    variables = {
        f"edges_{name}": (("edges_p", "edges_beta_fine"), rng.random((3, 6)) + 0.1)
        for name in ("short_theory_line", "start_kl_line", "start_bound_line")
    }
    variables |= {
        f"edges_{name}": (("edges_case", "edges_steps"), rng.random((2, 3)) + 0.1)
        for name in ("kl", "bound", "probability")
    }
    variables |= {
        "edges_short": ((seeds, "edges_p", "edges_beta"), rng.random((5, 3, 2))),
        "edges_short_noised": ((seeds, "edges_p"), rng.random((5, 3))),
        "edges_short_theory": (("edges_p", "edges_beta"), rng.random((3, 2))),
        "edges_share": ((seeds, "edges_case", "edges_grid"), rng.random((5, 2, 2))),
        "edges_truth": ("edges_case", [0.5, 0.1]),
    }
    coords = {
        "edges_p": [0.7, 0.33, 0.0125],
        "edges_beta": [1.0, 20.0],
        "edges_beta_fine": np.geomspace(0.5, 20, 6),
        "edges_case": ["p = 0.5, ±1", "p = 0.1, 0/1"],
        "edges_steps": [20, 40, 100],
        "edges_grid": [40, 100],
    }
    return xr.Dataset(variables, coords=coords)


def test_figure_holds_the_numbers() -> None:
    dataset = _dataset()
    figures = edges.draw(dataset)
    assert list(figures) == ["E6-edges"]
    figure, caption = figures["E6-edges"]
    assert f"{float(dataset['edges_short_theory'][-1, 0]):.4f}" in caption
    drawn = [[line.get_ydata() for line in axis.lines] for axis in figure.axes]
    expected = [
        dataset["edges_short_theory_line"][1] / 0.33,
        dataset["edges_start_bound_line"][2],
        dataset["edges_kl"][1],
        dataset["edges_share"].mean("edges_seed")[1] / 0.1,
    ]
    for lines, values in zip(drawn, expected, strict=True):
        assert any(len(y) == len(values) and np.allclose(y, values) for y in lines)
    assert all(axis.get_xlabel() and axis.get_title() for axis in figure.axes)
