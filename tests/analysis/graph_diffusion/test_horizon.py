"""Layout of the part on the horizon, and its minimisers."""

from collections.abc import Callable

import numpy as np
import pytest
import scipy.optimize
import xarray as xr

from boundlab.analysis.graph_diffusion import horizon
from boundlab.analysis.graph_diffusion.config import PRESETS
from boundlab.verdicts import Status, judge


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("graph_diffusion", "horizon_")


def test_every_claim_is_decided(dataset: xr.Dataset) -> None:
    """Exact values leave nothing open, at the sizes of the smoke preset, too."""
    claims = horizon.CLAIMS
    checks = [[check(dataset) for check in (c.check, c.control)] for c in claims]
    verdicts = judge(claims, *zip(*checks, strict=True), false_alarm_rate=1e-3)
    for verdict in verdicts:
        assert verdict.status == Status.HOLDS, verdict


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("horizon_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    smoke = PRESETS["smoke"]
    assert not any("seed" in name for name in named)  # nothing is drawn
    assert dataset["horizon_kl"].shape == (11, len(smoke.horizon_steps), smoke.horizon_points)
    assert (dataset["horizon_kl"] <= dataset["horizon_bound"]).all()


def exact_kl(t: float, lam: np.ndarray, mean: np.ndarray, steps: int) -> float:
    """The exponential integrator's KL by a plain loop."""
    times = np.linspace(t, horizon.EARLY_STOP, steps + 1)
    m, u = np.zeros_like(lam), np.ones_like(lam)
    for tau, h in zip(times[:-1], -np.diff(times), strict=True):
        v = 1 + (lam - 1) * np.exp(-2 * tau)
        a = np.exp(h) - 2 * np.expm1(h) / v
        m = a * m + 2 * np.expm1(h) * np.exp(-tau) * mean / v
        u = a**2 * u + np.expm1(2 * h)
    x = (1 + (lam - 1) * np.exp(-2 * times[-1])) / u - 1
    gap = m - np.exp(-times[-1]) * mean
    return float(np.sum((x - np.log1p(x)) / 2 + gap**2 / 2 / u))


@pytest.mark.parametrize("name", ["nine modes", "mean dominates", "λ=0.05"])
def test_minimisers_by_another_search(dataset: xr.Dataset, name: str) -> None:
    """Where the exact KL is least: longer than for the bound, also if the mean dominates."""
    found = scipy.optimize.minimize_scalar(
        exact_kl, bounds=(0.2, 6.0), args=(*horizon.DATA[name], 200)
    )
    read = float(dataset["horizon_best_exact"].sel(horizon_data=name, horizon_steps=200))
    np.testing.assert_allclose(read, found.x, rtol=5e-3)


def test_a_minimum_on_the_edge_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^horizons: "):
        horizon._minimisers(np.array([1.0, 2.0, 4.0, 8.0]), np.array([[4.0, 3.0, 2.0, 1.0]]))
