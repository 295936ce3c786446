"""Figures of ReLU teachers, correlated rows and SGD against ridge show the dataset's numbers."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from boundlab.figures.excess_risk import comparison, correlated_rows, relu_teachers

RNG = np.random.default_rng(0)
GRAPHS = ["regular", "power law"]


def positive(*shape: int) -> np.ndarray:
    return RNG.gamma(9.0, size=shape) / 9


def lines(axes: Axes) -> list[np.ndarray]:
    return [np.asarray(line.get_ydata(), dtype=float) for line in axes.lines]


def shows(axes: Axes, values: xr.DataArray) -> bool:
    wanted = values.values
    return any(found.shape == wanted.shape and np.allclose(found, wanted) for found in lines(axes))


def drawn(module: object, dataset: xr.Dataset) -> tuple[Figure, str]:
    ((figure, caption),) = module.draw(dataset).values()
    for axes in figure.axes:
        assert axes.get_xlabel() or axes.get_ylabel()
    assert len(caption) > 200
    return figure, caption


@pytest.fixture
def relu() -> xr.Dataset:
    line, points = ("relu_graph", "relu_fraction"), ("relu_graph", "relu_simulated_fraction")
    names = ("glmtron_theory", "glmtron_linear", "sgd_theory", "sgd_ungated")
    runs = ("glmtron_risk", "sgd_risk", "dead_risk")
    return xr.Dataset(
        {f"relu_{name}": (line, positive(2, 5)) for name in names}
        | {f"relu_{name}": ((*points, "relu_seed"), positive(2, 3, 7)) for name in runs}
        | {
            "relu_dead_theory": 0.5,
            "relu_ridge_theory": (("relu_graph", "relu_ridge"), positive(2, 4)),
            "relu_ridge_quiet": (("relu_graph", "relu_ridge"), positive(2, 4)),
            "relu_ridge_risk": (
                ("relu_graph", "relu_simulated_ridge", "relu_seed"),
                positive(2, 2, 7),
            ),
        },
        coords={
            "relu_graph": GRAPHS,
            "relu_fraction": np.linspace(0.1, 0.5, 5),
            "relu_simulated_fraction": [0.1, 0.3, 0.5],
            "relu_ridge": [0.1, 1.0, 10.0, 100.0],
            "relu_simulated_ridge": [0.1, 10.0],
        },
        attrs={"relu_dim": 31, "relu_num_samples": 17, "relu_ridge_num_samples": 19},
    )


def test_relu(relu: xr.Dataset) -> None:
    figure, caption = drawn(relu_teachers, relu)
    for axes, name in zip(figure.axes, GRAPHS, strict=False):
        at = relu.sel(relu_graph=name)
        assert name in axes.get_title()
        for variable in ("relu_glmtron_theory", "relu_sgd_theory", "relu_sgd_ungated"):
            assert shows(axes, at[variable]), variable
        for variable in ("relu_glmtron_risk", "relu_sgd_risk", "relu_dead_risk"):
            assert shows(axes, at[variable].mean("relu_seed")), variable
        assert shows(figure.axes[2], at.relu_ridge_theory)
        assert shows(figure.axes[2], at.relu_ridge_risk.mean("relu_seed"))
    assert "31 nodes" in caption
    assert "N = 17" in caption


def test_correlated_rows() -> None:
    line = ("correlated_graph", "correlated_ridge")
    dataset = xr.Dataset(
        {
            "correlated_theory": (line, positive(2, 5)),
            "correlated_naive": (line, positive(2, 5)),
            "correlated_no_graph": ("correlated_ridge", positive(5)),
            "correlated_risk": (
                ("correlated_graph", "design", "correlated_simulated_ridge"),
                positive(2, 6, 3),
            ),
        },
        coords={
            "correlated_graph": GRAPHS,
            "correlated_ridge": [0.01, 0.1, 1.0, 10.0, 100.0],
            "correlated_simulated_ridge": [0.01, 1.0, 100.0],
        },
        attrs={"correlated_nodes": 23, "correlated_features": 7},
    )
    figure, caption = drawn(correlated_rows, dataset)
    for axes, name in zip(figure.axes, GRAPHS, strict=True):
        at = dataset.sel(correlated_graph=name)
        for variable in ("correlated_theory", "correlated_naive", "correlated_no_graph"):
            assert shows(axes, at[variable]), variable
        assert shows(axes, at.correlated_risk.mean("design"))
    assert "23 nodes" in caption


def test_comparison() -> None:
    points = ("comparison_teacher", "comparison_seed", "comparison_simulated_samples")
    line = ("comparison_teacher", "comparison_samples")
    dataset = xr.Dataset(
        {
            "comparison_spiked_sgd_theory": (line, positive(2, 4)),
            "comparison_spiked_ridge_theory": (line, positive(2, 4)),
            "comparison_spiked_sgd": (points, positive(2, 9, 2)),
            "comparison_spiked_ridge": (points, positive(2, 9, 2)),
            "comparison_phase": (
                ("comparison_tail", "comparison_teacher", "comparison_noise"),
                positive(3, 2, 5),
            ),
        },
        coords={
            "comparison_teacher": ["head", "even"],
            "comparison_samples": [8, 16, 32, 64],
            "comparison_simulated_samples": [16, 64],
            "comparison_tail": [0.1, 1.0, 10.0],
            "comparison_noise": [1e-4, 1e-3, 1e-2, 0.1, 1.0],
        },
        attrs={
            "comparison_spiked_dim": 41,
            "comparison_phase_dim": 43,
            "comparison_phase_samples": 5,
        },
    )
    figure, caption = drawn(comparison, dataset)
    for column, teacher in enumerate(("head", "even")):
        at = dataset.sel(comparison_teacher=teacher)
        for name in ("sgd", "ridge"):
            assert shows(figure.axes[column], at[f"comparison_spiked_{name}_theory"])
            mean = at[f"comparison_spiked_{name}"].mean("comparison_seed")
            assert shows(figure.axes[column], mean)
        mesh = figure.axes[2 + column].collections[0].get_array()
        ratio = 2 ** np.asarray(mesh).reshape(5, 3)
        np.testing.assert_allclose(ratio, 1 / at.comparison_phase.T, rtol=1e-12)
    assert "41 directions" in caption
