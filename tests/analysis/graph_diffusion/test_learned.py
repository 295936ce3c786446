"""The part on learned scores: claims and controls on the smoke run, and its pieces by hand."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.graph_diffusion import learned, learned_networks
from boundlab.analysis.graph_diffusion.config import PRESETS
from boundlab.analysis.graph_diffusion.coupled_system import (
    DIM_FEATURES,
    SCHEDULES,
    coupled_system,
    uniform_times,
)
from boundlab.theory import graph_diffusion as theory
from boundlab.verdicts import Status, judge


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("graph_diffusion", "learned_")


def test_claims_hold_and_controls_are_rejected(dataset: xr.Dataset) -> None:
    checks = [[check(dataset) for check in (c.check, c.control)] for c in learned.CLAIMS]
    verdicts = judge(learned.CLAIMS, *zip(*checks, strict=True), false_alarm_rate=1e-3)
    for verdict in verdicts:
        assert verdict.status != Status.VIOLATED, verdict
        assert verdict.control_rejected, verdict


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("learned_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    config = PRESETS["smoke"]
    runs, networks = 2 * config.learned_seeds, len(learned_networks.NETWORKS)
    assert dataset["learned_bound"].shape == (runs, networks)
    assert dataset["learned_error"].shape == (runs, len(learned.SHOWN), networks, 2)
    assert dataset["learned_lower"].shape == (config.learned_seeds, 2)


def test_bounds_are_ordered(dataset: xr.Dataset) -> None:
    """The sharp bound is below init + 2D + ΣBε² and above KL, with exact errors of the networks."""
    known = float(dataset["learned_initialization"] + 2 * dataset["learned_discretization"])
    crude = known + dataset["learned_linear_cost_theory"].sum("learned_block")
    assert (dataset["learned_sharp_bound"] < crude).all()
    assert (dataset["learned_kl"] < dataset["learned_sharp_bound"]).all()


def test_matrices_are_the_networks_scores() -> None:
    """Score of drawn parameters at drawn vectors, by the matrices and by the network."""
    rng = np.random.default_rng(0)
    times, z = np.array([0.7, 0.05]), rng.standard_normal((3, 14))
    for name, count in learned_networks.LINEAR.items():
        params = {name: {"params": {"kernel": rng.standard_normal((count, 14, 14))}}}
        matrices = learned_networks.linear_matrices(name, params, times)
        for t, matrix in zip(times, matrices, strict=True):
            found = learned_networks.network_scores(name, params, jnp.asarray(z), jnp.asarray(t))
            np.testing.assert_allclose(found, z @ matrix.T, rtol=1e-10, atol=1e-12)


def test_precisions_and_floors_by_theory() -> None:
    """Inverse of the noised covariance, and d_b − σ_b² J_b as the least loss."""
    setting = (coupled_system().covariance, DIM_FEATURES, SCHEDULES)
    times = uniform_times(3)
    precisions, floors = learned._precisions(times), learned._floors(times)
    sigma_sq = learned._variances(times)
    for k, t in enumerate(times):
        noised = theory.noised_covariance(*setting, t)
        np.testing.assert_allclose(precisions[k] @ np.asarray(noised), np.eye(14), atol=1e-10)
        fisher = np.array([float(part) for part in theory.block_fisher(*setting, t)])
        np.testing.assert_allclose(floors[k], np.array([8, 6]) - sigma_sq[k] * fisher, rtol=1e-8)


def test_lower_bound_of_a_known_divergence() -> None:
    """N(0, 1) against N(1, 1), KL = ½: below it, and not far."""
    rng = np.random.default_rng(1)
    true, drawn = rng.standard_normal((400, 200)), 1 + rng.standard_normal((400, 200))
    found = learned._witness(true, drawn, 200)
    assert found.shape == (200,)
    error = found.std(ddof=1) / np.sqrt(len(found))
    assert 0.45 < found.mean() < 0.5 + 4.9 * error
    same = learned._witness(true, rng.standard_normal((400, 200)), 200)
    assert same.mean() < 4.9 * same.std(ddof=1) / np.sqrt(len(same))
