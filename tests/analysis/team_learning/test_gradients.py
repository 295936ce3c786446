"""Layout of the part on policy gradients, and the rewards it makes."""

from collections.abc import Callable

import jax
import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.team_learning import gradients
from boundlab.analysis.team_learning.config import PRESETS, Config


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("team_learning", "gradients_")


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("gradients_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    assert dataset["gradients_signal"].shape == (PRESETS["smoke"].gradients_seeds, 2)


def test_rewards_lie_on_both_sides_of_the_threshold(dataset: xr.Dataset) -> None:
    for size in ("A=4, K=3", "A=3, K=2"):
        faster = dataset["gradients_faster"][dataset["gradients_size"].values == size]
        assert 5 <= faster.sum() <= len(faster) - 5


def test_published_regrets(dataset: xr.Dataset) -> None:
    """Of the exact ODE with other solvers, to the three digits given; one agent and a team."""
    at = {"gradients_time": [1, 1000, 3000]}
    team = dataset["gradients_symmetric"].sel(at)
    np.testing.assert_allclose(team, [0.507, 0.128, 0.125], atol=6e-4)
    joint = dataset["gradients_joint"].sel(at)
    np.testing.assert_allclose(joint, [0.512, 0.004, 0.001], atol=6e-4)


def test_random_rewards_have_the_alignment_of_their_name(key: jax.Array) -> None:
    config = Config(gradients_tensors=3)
    for name, reward in gradients._rewards(config, key, 3, 2).items():
        main = reward.mean(axis=1)[:, None] + reward.mean(axis=0)[None, :] - reward.mean()
        share = main.var() / reward.var()
        if name.startswith("random"):
            np.testing.assert_allclose(share, float(name.split()[1]), rtol=1e-3)
        if name == "parity 0.35":
            np.testing.assert_allclose(share, 1 / (1 + 2 * 0.35**2 / 0.36), rtol=1e-12)


def test_signal_to_noise_is_unbiased_above(key: jax.Array) -> None:
    """Pairs of different draws, by hand."""
    drawn = np.random.default_rng(0).standard_normal((5, 3)) + 1.0
    pairs = [drawn[i] @ drawn[j] for i in range(5) for j in range(5) if i != j]
    expected = np.mean(pairs) / np.mean((drawn**2).sum(axis=1))
    found = gradients._signal_to_noise(jax.numpy.asarray(drawn))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
