"""Layout of the part on block degrees."""

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.fanout.config import PRESETS


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("fanout", "blocks_")


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("blocks_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    assert dataset["blocks_simulated_row_sum"].shape == (4, 4, PRESETS["smoke"].block_seeds)
    assert float(dataset["blocks_censored"].max()) == 0.0
    np.testing.assert_array_equal(dataset["blocks_updates"], [220, 440, 881, 2205])
