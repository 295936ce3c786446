"""The smoke dataset of the excess-risk study, computed once."""

import jax
import pytest
import xarray as xr

from boundlab import study


@pytest.fixture(scope="session")
def excess_risk_smoke() -> xr.Dataset:
    """The study's dataset at the smoke preset and seed 0."""
    found = study("excess_risk")
    return found.run(found.presets["smoke"], jax.random.key(0))
