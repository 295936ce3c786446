"""Layout of the part on the ladder, and its grids."""

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.graph_diffusion.config import PRESETS
from boundlab.analysis.graph_diffusion.padded_grids import padded_grid


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("graph_diffusion", "ladder_")


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("ladder_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    assert dataset["ladder_variance"].shape == (PRESETS["smoke"].ladder_seeds, 4, 6)
    assert (dataset["ladder_path"].isel(ladder_bounded=0) <= dataset["ladder_lipschitz"]).all()


def test_padded_grids_end_in_repetitions() -> None:
    equal = padded_grid(2.0, 0.5, 3, 5)
    np.testing.assert_allclose(equal, [2.0, 1.5, 1.0, 0.5, 0.5, 0.5])
    ratio = np.asarray(padded_grid(2.0, 0.25, 3, 5, True))
    np.testing.assert_allclose(ratio, [2.0, 1.0, 0.5, 0.25, 0.25, 0.25], rtol=1e-15)
    assert (ratio[3:] == 0.25).all()
