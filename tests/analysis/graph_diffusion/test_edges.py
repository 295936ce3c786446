"""Layout of the part on edges, its published numbers, and the score of its simulation."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
import xarray as xr

import boundlab
from boundlab.analysis.graph_diffusion import edges_simulation
from boundlab.analysis.graph_diffusion.config import PRESETS, Config


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("graph_diffusion", "edges_")


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("edges_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    seeds = PRESETS["smoke"].edges_seeds
    assert dataset["edges_short"].shape == (seeds, 3, 4)
    assert dataset["edges_share"].shape == (seeds, 5, 2)
    assert not any(v.isnull().any() for v in dataset.data_vars.values())


def test_published_numbers(dataset: xr.Dataset) -> None:
    """Bounds, shape ratio and shares of the specification, to their printed digits."""
    bound = dataset["edges_bound"].values
    np.testing.assert_allclose(
        bound[:3], [[0.426, 0.176], [0.438, 0.181], [0.481, 0.199]], atol=6e-4
    )
    np.testing.assert_allclose(dataset["edges_shape_ratio"][-1], 0.134, rtol=5e-3)
    first = dataset["edges_first_theory"]
    np.testing.assert_allclose(first, [0.52663, 0.28775, 0.02466], atol=6e-6)
    start = dataset["edges_start_kl"].isel(edges_beta=0)
    np.testing.assert_allclose(start, [0.219, 0.106, 0.137], atol=6e-4)


def test_score_of_the_simulation() -> None:
    """Derivative of the log-density of two atoms, by central differences in float64."""
    with boundlab.precision.x64():
        law = edges_simulation.Atoms(0.2, -0.5, 1.0)
        x, mean, variance, step = np.linspace(-2, 2, 9), 0.8, 0.36, 1e-5

        def log_density(x: np.ndarray) -> np.ndarray:
            low, high = (scipy.stats.norm.pdf(x, mean * a, variance**0.5) for a in (-0.5, 1.0))
            return np.log(0.8 * low + 0.2 * high)

        slope = (log_density(x + step) - log_density(x - step)) / (2 * step)
        found = law.score(*(jnp.asarray(v) for v in (x, mean, variance)))
    np.testing.assert_allclose(found, slope, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("ladder", [(40,), (1, 40, 100)])
def test_bad_ladder(ladder: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"^edges_ladder:"):
        Config(edges_ladder=ladder)
