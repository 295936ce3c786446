"""Layout of the part on bounds, and its tables against published values."""

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.team_learning.config import PRESETS


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("team_learning", "bounds_")


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("bounds_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    seeds = PRESETS["smoke"].bounds_seeds
    assert dataset["bounds_failure_one"].shape == (seeds, dataset.sizes["bounds_cell"])
    simulated = [v for v in dataset.data_vars.values() if "bounds_seed" in v.dims]
    assert all(v.dims[0] == "bounds_seed" for v in simulated)
    assert all(((v >= 0) & (v <= 1)).all() for v in simulated)


def test_tables(dataset: xr.Dataset) -> None:
    """Cells published on the page of the study: ρ_F, κ, x*², α* and the sizes of discovery."""
    at = {"bounds_action_count": 16}
    ratio, bounds = (dataset[f"bounds_{name}"].sel(at) for name in ("ratio", "ratio_bounds"))
    np.testing.assert_allclose(ratio, [0.7531, 0.5196, 0.3359], atol=1e-4)
    np.testing.assert_allclose(bounds, [0.7748, 0.5310, 0.3302], atol=1e-4)
    exact = dataset["bounds_exact"].sel(bounds_delta_allowed=0.05)
    np.testing.assert_allclose(exact, [8.504, 17.267, 28.726, 43.170, 77.382], atol=6e-4)
    crossover = dataset["bounds_class_crossover"]
    np.testing.assert_allclose(crossover, [0.01721, 0.03478, 0.05035], atol=5e-6)
    sizes = [dataset[f"bounds_discovery_{who}_size"].values[:, 0] for who in ("one", "team")]
    np.testing.assert_array_equal(sizes, [[18, 62], [5, 9]])


def test_cells_match_the_ratios(dataset: xr.Dataset) -> None:
    """The simulated sizes are those of the table of ratios."""
    ratio = dataset["bounds_size_team"] / dataset["bounds_size_one"]
    for cell in dataset["bounds_cell"].values:
        actions, agents = (int(part.split("=")[1]) for part in str(cell).split(","))
        expected = dataset["bounds_ratio"].sel(bounds_action_count=actions, bounds_team_size=agents)
        np.testing.assert_allclose(ratio.sel(bounds_cell=cell), expected, rtol=1e-9)
