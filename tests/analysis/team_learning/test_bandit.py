"""Layout of the part on bandit feedback, and its exact numbers against an enumeration."""

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr
from scipy.special import ndtr

from boundlab.analysis.team_learning import bandit_laws
from boundlab.analysis.team_learning.config import PRESETS


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("team_learning", "bandit_")


def _failure(values: np.ndarray, scale: float) -> float:
    """P(the first of independent N(values, scale²) isn't the largest), by the trapezoidal rule."""
    z = np.linspace(-9, 9, 4001)
    steps = z[None, :] + (values[0] - values[1:, None]) / scale
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return float(np.trapezoid(-np.expm1(np.log(ndtr(steps)).sum(axis=0)) * density, z))


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("bandit_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    assert dataset["bandit_measured"].shape == (PRESETS["smoke"].bandit_seeds, 5, 4)


def test_exact_sample_complexities(dataset: xr.Dataset) -> None:
    """Failures at the exact N are δ, joint action by joint action and agent by agent."""
    for cell in dataset["bandit_cell"].values:
        part = dataset.sel(bandit_cell=cell)
        actions, agents = int(part["bandit_actions"]), int(part["bandit_agents"])
        needed = {
            name: float(part["bandit_exact"].sel(bandit_learner=name))
            for name in bandit_laws.LEARNERS
        }
        away = (np.indices((actions,) * agents) != 0).sum(axis=0).ravel()
        scale = np.sqrt(actions**agents / needed["joint"] / agents)
        assert _failure(-bandit_laws.GAP / agents * away, scale) == pytest.approx(0.1, rel=1e-6)
        arms = -(np.arange(actions) != 0).astype(float)
        for name, gap, noise in (
            ("own", bandit_laws.GAP, 1.0),
            ("outcome", bandit_laws.GAP / agents, agents**-0.5),
            ("judge", bandit_laws.GAP / agents, 1.0),
        ):
            miss = _failure(gap * arms, noise * np.sqrt(actions / needed[name]))
            assert 1 - (1 - miss) ** agents == pytest.approx(0.1, rel=1e-6)


def test_values_computed_elsewhere(dataset: xr.Dataset) -> None:
    """One agent, own, shared and full factorial at (A, K) = (2, 2), (4, 3), to a percent."""
    expected = {"A=2, K=2": (159, 42.6, 87.9, 85.3), "A=4, K=3": (6834, 157.7, 487.8, 473.0)}
    for cell, values in expected.items():
        part = dataset.sel(bandit_cell=cell)
        exact = part["bandit_exact"].sel(bandit_learner=["joint", "own", "outcome"]).values
        found = [*exact[:2], float(part["bandit_shared"]), exact[2]]
        np.testing.assert_allclose(found, values, rtol=0.01)
