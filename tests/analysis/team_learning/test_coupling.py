"""Layout of the part on coupling, and its numbers against published ones."""

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.team_learning.config import PRESETS


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("team_learning", "coupling_")


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("coupling_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    assert (
        dataset["coupling_regret_joint"].sizes["coupling_seed"] == PRESETS["smoke"].coupling_seeds
    )


def test_published_curves(dataset: xr.Dataset) -> None:
    """Regrets of the default task at 64 and 256 trajectories, and its crossovers."""
    curves = dataset["coupling_regret_theory"].sel(coupling_budget=[64.0, 256.0])
    published = {
        0.0: [[0.3459, 0.2451], [0.0644, 0.0006], [0.2035, 0.0413]],
        0.35: [[0.3044, 0.1516], [0.1819, 0.1502], [0.2866, 0.1723]],
    }
    for weight, row in published.items():
        np.testing.assert_allclose(curves.sel(coupling_weight=weight), row, atol=6e-5)
    crossing = dataset["coupling_crossover"].sel(coupling_weight=[0.2, 0.25, 0.35, 0.6])
    np.testing.assert_allclose(crossing, [np.inf, 944.9, 259.5, 64.0], rtol=5e-4)


def test_crossovers_fall_with_coupling(dataset: xr.Dataset) -> None:
    crossing = dataset["coupling_crossover"].values
    weights = dataset["coupling_weight"].values
    assert np.isinf(crossing[weights <= 0.2]).all()
    assert np.isfinite(crossing[weights > 0.2]).all()
    assert (np.diff(crossing[weights > 0.2]) <= 0).all()


def test_control_of_the_clt_is_apart(dataset: xr.Dataset) -> None:
    """The variance of teammates moves the regret by more than the approximation's error."""
    at = {"coupling_weight": 0.25}
    ratio = dataset["coupling_judged_alone"].sel(at) / dataset["coupling_judged_theory"].sel(at)
    assert float(ratio) < 0.9
