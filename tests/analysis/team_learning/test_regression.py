"""Layout of the part on regression; its NumPy side by hand."""

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.team_learning import regression_curves
from boundlab.analysis.team_learning.config import PRESETS


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("team_learning", "regression_")


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("regression_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    seeds = PRESETS["smoke"].regression_seeds
    for learner in ("sarl", "aware", "blind"):
        assert dataset[f"regression_risk_{learner}"].shape == (seeds, 3, 8)
        assert (dataset[f"regression_risk_{learner}"] > 0).all()
    assert dataset["regression_single"].shape == (seeds, 5, 2)
    assert dataset["regression_failure"].shape == (PRESETS["smoke"].regression_pac_seeds, 4)


def test_learners_share_their_draws(dataset: xr.Dataset) -> None:
    """Without coupling the two teams are one; a task without coupling is among the pairs."""
    free = dataset.sel(regression_coupling=0.0)
    np.testing.assert_allclose(free["regression_risk_aware"], free["regression_risk_blind"])
    pairs = dataset["regression_pair"].values
    partners = free["regression_risk_sarl"].sel(regression_samples=4 * (pairs - 1) + 1)
    single = dataset["regression_single"].sel(regression_task="independent")
    np.testing.assert_allclose(single, partners, rtol=1e-14)


def test_sizes_of_the_trials(dataset: xr.Dataset) -> None:
    """E15 at ε = ½, K = 4, d = 5, σ = 1: ε = .3's 283.00, 87.25, 407.68 and 161.08 times .36."""
    expected = 0.36 * np.array([282.9985, 87.2512, 407.6760, 161.0797])
    np.testing.assert_allclose(dataset["regression_pac_samples"], expected, rtol=1e-6)
    assert (dataset["regression_failure_before"] > 0.05).all()
    assert (dataset["regression_failure_theory"] <= 0.05).all()


def test_mixing_by_hand() -> None:
    """At λ = 1: y₂ = u₂ + u₁, y₃ = u₃ + u₂/2 + u₁."""
    found = regression_curves.mixing(1.0, 3)
    np.testing.assert_allclose(found, [[1, 0, 0], [1, 1, 0], [1, 0.5, 1]], atol=1e-15)
