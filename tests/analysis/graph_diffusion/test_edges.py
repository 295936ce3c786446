"""The part on edges at a small size: its claims, controls and layout."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
import xarray as xr

import boundlab
from boundlab.analysis.graph_diffusion import edges, edges_simulation
from boundlab.analysis.graph_diffusion.config import Config
from boundlab.verdicts import Status, judge

TINY = Config(edges_ladder=(40, 100), edges_steps=250, edges_seeds=64, edges_draws=256)


@pytest.fixture(scope="module")
def dataset() -> xr.Dataset:
    def repeat(name: str, *args: object, **kwargs: object) -> xr.Dataset:
        return boundlab.sweep(*args, progress=False, **kwargs)

    return edges.run(TINY, jax.random.key(5, impl="threefry2x32"), repeat)


def test_claims_hold_and_controls_are_rejected(dataset: xr.Dataset) -> None:
    claims = edges.CLAIMS
    checks = [[check(dataset) for check in (c.check, c.control)] for c in claims]
    verdicts = judge(claims, *zip(*checks, strict=True), false_alarm_rate=1e-3)
    for verdict in verdicts:
        assert verdict.status != Status.VIOLATED, verdict
        assert verdict.control_rejected, verdict


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("edges_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    assert dataset["edges_short"].shape == (64, 3, 4)
    assert dataset["edges_share"].shape == (64, 5, 2)
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
