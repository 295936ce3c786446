"""The smoke dataset of each study."""

from collections.abc import Callable

import pytest
import xarray as xr


@pytest.fixture
def smoke(study_name: str, smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    """The dataset of the study `study_name` at the smoke preset and seed 0."""
    return smoke_of(study_name)
