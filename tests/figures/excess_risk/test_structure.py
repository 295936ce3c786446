"""The figures of graph structure show the dataset's numbers on labelled axes."""

import numpy as np
import pytest
import xarray as xr

from boundlab.figures.excess_risk import structure

OPERATORS = ["laplacian", "normalized_adjacency", "adjacency", "personalized_pagerank"]


@pytest.fixture(scope="module")
def dataset() -> xr.Dataset:
    rng = np.random.default_rng(0)
    shown, pair = ["regular", "power law", "star"], ["regular", "power law"]
    spectrum = -np.sort(-rng.gamma(1.0, size=(3, 4, 9)))
    risks = ("structure_pair", "structure_operator", "structure_alignment", "structure_noise")
    curves = ("structure_case", "structure_samples")
    return xr.Dataset(
        {
            "structure_spectrum": (
                ("structure_shown", "structure_operator", "structure_direction"),
                spectrum,
            ),
            "structure_effective_rank": (
                ("structure_shown", "structure_operator"),
                rng.gamma(1.0, size=(3, 4)),
            ),
            "structure_sgd_risk": (risks, rng.gamma(9.0, size=(2, 4, 3, 3)), {"samples": 17}),
            "structure_ridge_risk": (risks, rng.gamma(9.0, size=(2, 4, 3, 3))),
            "structure_inflation": (curves, 1 + rng.random((2, 3))),
            "structure_inflation_bound": (curves, 50 + rng.random((2, 3))),
        },
        coords={
            "structure_shown": shown,
            "structure_pair": pair,
            "structure_operator": OPERATORS,
            "structure_direction": np.arange(1, 10),
            "structure_alignment": [-1.0, 0.5, 2.0],
            "structure_noise": [0.01, 0.1, 1.0],
            "structure_case": ["regular, laplacian, head", "power law, adjacency, isotropic"],
            "structure_samples": [8, 16, 32],
        },
    )


def test_figures_hold_the_numbers(dataset: xr.Dataset) -> None:
    figures = structure.draw(dataset)
    assert list(figures) == ["F1-spectra", "F3-phase", "F4-inflation"]
    spectra = figures["F1-spectra"][0].axes
    np.testing.assert_array_equal(
        spectra[1].lines[2].get_ydata(), dataset["structure_spectrum"][2, 1]
    )
    assert "N = 17" in figures["F3-phase"][1]
    ratio = dataset["structure_sgd_risk"] / dataset["structure_ridge_risk"]
    panel = figures["F3-phase"][0].axes[4 + 3]  # power law, PageRank
    np.testing.assert_allclose(2 ** panel.collections[0].get_array(), ratio[1, 3].T, rtol=1e-12)
    drawn = [line.get_ydata() for line in figures["F4-inflation"][0].axes[0].lines]
    for name in ("structure_inflation", "structure_inflation_bound"):
        for values in dataset[name].values:
            assert any(np.array_equal(values, line) for line in drawn)


def test_axes_are_labelled(dataset: xr.Dataset) -> None:
    for figure, caption in structure.draw(dataset).values():
        assert caption.endswith(".")
        assert figure.get_axes()[0].get_ylabel()
        assert any(axis.get_xlabel() for axis in figure.get_axes())
