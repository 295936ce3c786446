"""The figure of Cora shows the dataset's numbers on labelled axes."""

import numpy as np
import xarray as xr

from boundlab.figures.excess_risk import citation


def test_figure_holds_the_numbers() -> None:
    rng = np.random.default_rng(0)
    operators, kinds = ["laplacian", "normalized_adjacency"], ["laplacian", "adjacency"]
    dims = {
        "citation_sgd_exact": ("citation_operator", "citation_curve"),
        "citation_ridge_exact": ("citation_operator", "citation_curve"),
        "citation_sgd_blind": ("citation_operator", "citation_samples"),
        "citation_sgd_simulated": ("citation_operator", "citation_samples", "citation_seed"),
        "citation_ridge_simulated": (
            "citation_operator",
            "citation_ridge_samples",
            "citation_design",
        ),
        "citation_spectrum": ("citation_kind", "citation_direction"),
    }
    coords = {
        "citation_operator": operators,
        "citation_kind": kinds,
        "citation_curve": [16, 32, 64],
        "citation_samples": [32, 64],
        "citation_ridge_samples": [32],
        "citation_seed": np.arange(9),
        "citation_design": np.arange(9),
        "citation_direction": np.arange(1, 8),
    }
    sizes = {name: len(values) for name, values in coords.items()}
    dataset = xr.Dataset(
        {n: (d, 0.5 + rng.random([sizes[dim] for dim in d])) for n, d in dims.items()}, coords
    )
    figure, caption = citation.draw(dataset)["F11-cora"]
    spectra, first, second = figure.axes
    assert "7 papers" in caption
    assert "up to N = 32 only" in caption
    assert all(axis.get_xlabel() and axis.get_ylabel() for axis in figure.axes)
    np.testing.assert_array_equal(spectra.lines[1].get_ydata(), dataset["citation_spectrum"][1])
    for axis, part in (
        (first, dataset.isel(citation_operator=0)),
        (second, dataset.isel(citation_operator=1)),
    ):
        np.testing.assert_array_equal(axis.lines[0].get_ydata(), part["citation_sgd_exact"])
        np.testing.assert_array_equal(axis.lines[1].get_ydata(), part["citation_ridge_exact"])
        sgd, ridge = axis.containers
        mean = part["citation_sgd_simulated"].mean("citation_seed")
        np.testing.assert_allclose(sgd.lines[0].get_ydata(), mean)
        mean = part["citation_ridge_simulated"].mean("citation_design")
        np.testing.assert_allclose(ridge.lines[0].get_ydata(), mean)
