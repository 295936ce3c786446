"""Layout of the part on the three paradigms, and its helpers."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
import xarray as xr

from boundlab.analysis.graph_diffusion import block_model_draws, paradigms_samples
from boundlab.analysis.graph_diffusion.config import PRESETS


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("graph_diffusion", "paradigms_")


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("paradigms_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    assert dataset["paradigms_fisher"].sizes["paradigms_seed"] == PRESETS["smoke"].paradigms_seeds
    assert dataset["paradigms_sbm_lower"].shape == (PRESETS["smoke"].paradigms_runs // 2, 3)


def test_bound_of_the_block_model_is_unbiased(dataset: xr.Dataset) -> None:
    """Two blocks together cost less than both conditionally, and at least what either does."""
    bound = dataset["paradigms_sbm_bound"].mean("paradigms_run_seed").values
    assert max(bound[:2]) < bound[2] < bound[0] + bound[1]


def test_draws_have_the_model_s_moments(key: jax.Array) -> None:
    """Means of edges and squares of features, and of their products through the labels."""
    draws = block_model_draws.draw_pairs(key, 4096, 5)
    first, second = np.triu_indices(5, 1)
    x, edges = np.asarray(draws.features), np.asarray(draws.edges)
    assert set(np.unique(edges)) == {0.0, 1.0}
    both = edges * x[:, first] * x[:, second]
    samples = {0.4: edges.mean(axis=1), 1.25: (x**2).mean(axis=1), 0.3: both.mean(axis=1)}
    for expected, values in samples.items():  # E a X_i X_j = μ²(p_in − p_out)/2
        assert abs(values.mean() - expected) < 4.9 * scipy.stats.sem(values)


def test_lower_bound_of_two_binary_laws() -> None:
    """Held-out draws give what the bound's two means say of the fitted ratio; equal laws give 0."""
    rng = np.random.default_rng(0)
    true = (rng.random((400, 64)) < 0.5).astype(int)
    sampled = (rng.random((400, 64)) < 0.2).astype(int)
    found = paradigms_samples._lower_bound(true, sampled, 200)
    assert found.shape == (200,)
    divergence = 0.5 * np.log(0.5 / 0.2) + 0.5 * np.log(0.5 / 0.8)
    # The fitted ratio is off by about 1 %, which costs its square.
    assert abs(found.mean() - divergence) < 4.9 * scipy.stats.sem(found) + 1e-3
    other = paradigms_samples._lower_bound(true, true[:, ::-1], 200)
    np.testing.assert_allclose(other, 0.0, atol=1e-12)


def test_conditions() -> None:
    """None follows the time, a number stays."""
    rule = block_model_draws.conditions((None, 1.0), (0.0, None))
    mean_x, mean_a = rule.means(jnp.asarray(0.5))
    np.testing.assert_allclose(mean_x, [np.exp(-0.5), 0.0])
    np.testing.assert_allclose(mean_a, [1.0, np.exp(-0.5)])
