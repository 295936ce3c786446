"""Layout of the part on metrics, its counts, and its pools."""

from collections.abc import Callable

import jax
import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats
import xarray as xr

from boundlab.analysis.graph_diffusion import metrics
from boundlab.analysis.graph_diffusion.config import PRESETS


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("graph_diffusion", "metrics_")


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("metrics_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    assert dataset["metrics_v"].sizes["metrics_seed"] == PRESETS["smoke"].metrics_seeds
    assert (dataset["metrics_v"] > 0).all()
    diagonals = dataset["metrics_v_theory"] - dataset["metrics_u_theory"]
    size = dataset["metrics_size"]
    assert (diagonals < 2 / size).all()
    np.testing.assert_allclose(dataset["metrics_saturated"], 2 / size)
    assert (dataset["metrics_floor"].diff("metrics_quantile") > 0).all()
    spectral = dataset["metrics_floor"].sel(metrics_kernel="spectrum")
    assert ((spectral > 0.09) & (spectral < 0.12)).all()


def test_counts_are_those_of_the_public_recipe(dataset: xr.Dataset) -> None:
    """100 draws by the public generator: 55.8 ± 4.5 graphs differ, 10.1 ± 2.2 of the test occur twice."""
    assert abs(float(dataset["metrics_distinct_theory"]) - 55.8) < 3 * 0.45
    assert abs(float(dataset["metrics_duplicates_theory"]) - 10.1) < 3 * 0.22


def test_short_schedule_has_its_densities() -> None:
    """Posterior probability of an edge under the standard normal, by quadrature."""
    sizes = np.repeat([6, 10], 400)
    batch = metrics._short_schedule(jax.random.key(3), sizes)
    mean, variance = np.exp(-0.55 / 2), 1 - np.exp(-0.55)

    def density(p: float) -> float:
        def integrand(x: float) -> float:
            odds = scipy.special.logit(p) + (mean * x - mean**2 / 2) / variance
            return float(scipy.stats.norm.pdf(x) * scipy.special.expit(odds))

        return float(scipy.integrate.quad(integrand, -12, 12)[0])

    for row, c in ((slice(0, 400), 6), (slice(400, 800), 10)):
        graphs = batch.adjacency[row]
        assert (batch.mask[row].sum(axis=1) == 2 * c).all()
        within = graphs[:, :c, :c].sum(axis=(1, 2)) / 2
        across = graphs[:, :c, c : 2 * c].sum(axis=(1, 2))
        for edges, pairs, p in ((within, c * (c - 1) / 2, 0.7), (across, c * c, 0.1 / c)):
            expected = density(p)
            error = np.sqrt(pairs * expected * (1 - expected) / 400)
            assert abs(edges.mean() - pairs * expected) < 4.9 * error
