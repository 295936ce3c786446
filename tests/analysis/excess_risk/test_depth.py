"""Helpers and layout of the part on depth."""

import dataclasses
from collections.abc import Callable

import jax
import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.excess_risk import depth
from boundlab.analysis.excess_risk.config import PRESETS
from boundlab.models.graph_operators import graph_operator
from boundlab.models.graphs import hypercube
from boundlab.theory.excess_risk import sgd

SMOKE = PRESETS["smoke"]


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("excess_risk", "depth_")


@pytest.mark.smoke
def test_spectrum_at_depth_is_that_of_the_power() -> None:
    operator = np.asarray(graph_operator(hypercube(4), "laplacian"))
    power = np.linalg.matrix_power(operator, 3)
    mu = np.linalg.eigvalsh(power @ power.T)[::-1]
    values = np.linalg.eigvalsh(operator)[::-1]
    np.testing.assert_allclose(depth.spectrum_at(values, 3), mu / mu.sum(), rtol=1e-8, atol=1e-14)
    assert np.isfinite(depth.spectrum_at(values * 1e200, 500)).all()


def test_risk_of_both_teachers_at_depth_four(dataset: xr.Dataset) -> None:
    """From the fixed teachers' weights, not from the powers that the part works with."""
    case = {"depth_graph": "power law", "depth_operator": "laplacian"}
    first = dataset["depth_power"].sel(case).values
    mu = first**4 / np.sum(first**4)
    step_size = 0.5 * float(sgd.stability_limit(mu))
    for teacher, theta_sq in (
        ("function", first / mu),
        ("weights", np.ones(SMOKE.structure_nodes)),
    ):
        profile = sgd.tail_averaged_risk(mu, theta_sq, 0.25, step_size, SMOKE.structure_samples)
        expected = float(profile.bias.sum() + profile.variance.sum())
        found = dataset["depth_sgd_risk"].sel(**case, depth_teacher=teacher, depth_rounds=4)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_simulation_has_its_own_seeds_and_depths(dataset: xr.Dataset) -> None:
    simulated = dataset["depth_simulated_risk"]
    assert simulated.sizes == {"depth_seed": 128, "depth_simulated_rounds": 3}
    assert dataset["depth_simulated_rounds"].values.tolist() == [1, 2, 4]
    assert (simulated.std("depth_seed") > 0).all()
    assert all("seed" not in dataset[name].dims for name in dataset)


def test_a_disconnected_graph_is_refused() -> None:
    """A random graph of degree 2 is a union of cycles."""
    config = dataclasses.replace(SMOKE, structure_nodes=32, degree=2)
    with pytest.raises(ValueError, match="degree: got a disconnected graph"):
        depth.run(config, jax.random.key(3), lambda *_: pytest.fail("no sweep"))
