"""The part on coupling at a small size: its claims, controls and layout."""

import jax
import numpy as np
import pytest
import scipy.linalg
import xarray as xr

import boundlab
from boundlab.analysis.graph_diffusion import coupled_system, coupling
from boundlab.analysis.graph_diffusion.config import Config
from boundlab.verdicts import Status, judge

TINY = Config(coupling_steps=(25, 100), coupling_seeds=96)


@pytest.fixture(scope="module")
def dataset() -> xr.Dataset:
    def repeat(name: str, *args: object, **kwargs: object) -> xr.Dataset:
        return boundlab.sweep(*args, progress=False, **kwargs)

    return coupling.run(TINY, jax.random.key(7, impl="threefry2x32"), repeat)


def test_claims_hold_and_controls_are_rejected(dataset: xr.Dataset) -> None:
    claims = coupling.CLAIMS
    checks = [[check(dataset) for check in (c.check, c.control)] for c in claims]
    verdicts = judge(claims, *zip(*checks, strict=True), false_alarm_rate=1e-3)
    for verdict in verdicts:
        assert verdict.status != Status.VIOLATED, verdict
        assert verdict.control_rejected, verdict


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("coupling_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    assert dataset["coupling_variance_jacobi"].shape == (96, 7)
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
