"""Layout of the part on coupling, and the law of its data."""

from collections.abc import Callable

import numpy as np
import pytest
import scipy.linalg
import xarray as xr

from boundlab.analysis.graph_diffusion import coupled_system
from boundlab.analysis.graph_diffusion.config import PRESETS


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("graph_diffusion", "coupling_")


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("coupling_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    assert dataset["coupling_variance_jacobi"].shape == (PRESETS["smoke"].coupling_seeds, 7)
    assert (np.diff(dataset["coupling_price_theory"]) > 0).all()


def test_the_law_has_the_stated_correlations() -> None:
    """Canonical correlations by the generalised eigenproblem, variances along their differences."""
    system = coupled_system.coupled_system(0.5)
    size = coupled_system.DIM_FEATURES
    inside, across = system.covariance.copy(), system.covariance.copy()
    inside[:size, size:] = inside[size:, :size] = 0.0
    across -= inside
    values = scipy.linalg.eigh(across, inside, eigvals_only=True)
    rho = 0.5 * coupled_system.CORRELATIONS
    np.testing.assert_allclose(np.sort(values)[-6:], np.sort(rho), rtol=1e-12)
    rows = system.differences
    np.testing.assert_allclose(rows @ system.covariance @ rows.T, np.diag(1 - rho), atol=1e-12)
