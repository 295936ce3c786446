"""The smoke dataset of each study, computed once in its process."""

import functools

import jax
import pytest
import xarray as xr

from boundlab import study


@functools.cache
def _smoke(name: str) -> xr.Dataset:
    found = study(name)
    return found.run(found.presets["smoke"], jax.random.key(0))


@pytest.fixture
def smoke(study_name: str) -> xr.Dataset:
    """The dataset of the study `study_name` at the smoke preset and seed 0."""
    return _smoke(study_name)
