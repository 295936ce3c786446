"""Helpers and layout of the part on nodes as samples."""

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.excess_risk import correlated_rows
from boundlab.models.graphs import star


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("excess_risk", "correlated_")


@pytest.mark.smoke
def test_mean_aggregation_averages_the_closed_neighbourhood() -> None:
    operator = correlated_rows.mean_aggregation(star(4))
    expected = np.array(
        [[1 / 4] * 4, [1 / 2, 1 / 2, 0, 0], [1 / 2, 0, 1 / 2, 0], [1 / 2, 0, 0, 1 / 2]]
    )
    np.testing.assert_allclose(operator, expected)


def test_layout(dataset: xr.Dataset) -> None:
    assert set(dataset.correlated_simulated_ridge.values) <= set(dataset.correlated_ridge.values)
    assert dataset.correlated_risk.dims == (
        "correlated_graph",
        "design",
        "correlated_simulated_ridge",
    )
    # The Nλ theory of the identity is the λ theory further along the line.
    normalized = dataset.correlated_no_graph_normalized.values[0]
    along = np.interp(
        np.log(200 * correlated_rows.RIDGES[0]),
        np.log(correlated_rows.RIDGES),
        dataset.correlated_no_graph.values,
    )
    assert normalized == pytest.approx(along, rel=0.01)


def test_dependence_costs_risk(dataset: xr.Dataset) -> None:
    loss = dataset.correlated_theory / dataset.correlated_naive
    assert (loss > 1).all()
    assert (loss.isel(correlated_ridge=0) > 1.3).all()
    assert (loss.isel(correlated_ridge=-1) < 1.01).all()
