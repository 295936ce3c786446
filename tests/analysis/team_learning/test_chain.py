"""Layout of the part on chains and search, known numbers, and the chains it draws."""

from collections.abc import Callable

import jax
import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.team_learning import chain_exact as chain
from boundlab.analysis.team_learning.config import PRESETS


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("team_learning", "chain_")


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("chain_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    assert dataset["chain_return"].shape == (PRESETS["smoke"].chain_seeds, len(chain.PROFILES))
    units = {str(name): v.attrs["units"] for name, v in dataset.data_vars.items()}
    assert units["chain_response"] == units["chain_joint_curve"] == "reward"
    assert units["chain_ratio"] == units["chain_attrition"] == units["chain_failure"] == "1"
    assert units["chain_samples_dependent"] == "samples per arm of one stage"


def test_known_numbers(dataset: xr.Dataset) -> None:
    at = {"chain_agents": [1, 2, 3, 4, 6, 8, 10, 12]}
    ratios = [1.00, 2.47, 4.73, 6.42, 10.96, 18.46, 27.80, 38.67]
    np.testing.assert_allclose(dataset["chain_ratio"].sel(at), ratios, atol=0.011)
    np.testing.assert_allclose(dataset["chain_response_theory"], [0.25, 0.18], rtol=1e-12)
    solved = dataset[["chain_tokens_process_theory", "chain_tokens_outcome_theory"]]
    found = [float(v) for v in solved.sel(chain_trajectories=50).data_vars.values()]
    np.testing.assert_allclose(found, [0.9871, 0.2942], atol=5e-5)


def test_profiles_have_one_mean_error(dataset: xr.Dataset) -> None:
    np.testing.assert_allclose(dataset["chain_return_independent"], 0.9, rtol=1e-12)
    np.testing.assert_allclose(
        dataset["chain_return_theory"], [0.5, np.mean(0.9 ** np.arange(1, 6)), 0.9], rtol=1e-12
    )


def test_random_chains_are_of_all_sizes(key: jax.Array) -> None:
    errors = chain.random_chains(key)
    assert errors.shape == (chain.CHAINS, chain.STAGES)
    assert (errors > 0).all()
    assert (errors <= 1).all()
    assert errors.max(axis=1).min() < 1e-5
    share = errors.max(axis=1) / errors.sum(axis=1)
    assert share.min() < 0.3
    assert share.max() > 0.9
    np.testing.assert_array_equal(errors, chain.random_chains(key))


def test_phases_cost_what_theory_says(dataset: xr.Dataset) -> None:
    """Per arm, team over own phase: K²σ_o²/σ_s² = K at outcome noise 1/√K; K·A arms to A."""
    own, team = dataset["chain_phases_cost"].transpose("chain_phase", "chain_team").values
    agents = np.array([k for _, k in chain.TEAMS])
    np.testing.assert_allclose(team / own, agents**2, rtol=1e-9)
