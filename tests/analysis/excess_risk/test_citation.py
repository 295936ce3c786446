"""Helpers and layout of the part on Cora."""

from collections.abc import Callable

import jax
import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.excess_risk import PARTS, citation
from boundlab.analysis.excess_risk.config import PRESETS
from boundlab.analysis.excess_risk.problems import problem
from boundlab.models.linear_gnn import simulate_sgd
from boundlab.theory.excess_risk import sgd

SMOKE = PRESETS["smoke"]


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("excess_risk", "citation_")


@pytest.mark.smoke
def test_graph_and_its_regular_twin(key: jax.Array) -> None:
    whole, piece = citation.cora(0), citation.cora(100)
    assert (whole.num_nodes, whole.num_edges, piece.num_nodes) == (2485, 5069, 100)
    assert piece.is_connected()
    twin = citation.regular_twin(key, whole)  # mean degree 4.08
    assert twin.degrees().tolist() == [4] * 2485


def test_one_simulated_run_by_hand(dataset: xr.Dataset) -> None:
    """Seed 2 at the first N is the mean of two runs; at the largest N it is one run."""
    case = problem("", citation.cora(SMOKE.citation_nodes), "normalized_adjacency")
    step_size = 0.5 * float(sgd.stability_limit(case.mu))
    part_key = jax.random.fold_in(jax.random.key(0), PARTS.index(citation))
    key = jax.random.split(jax.random.fold_in(part_key, 1), SMOKE.citation_seeds)[2]
    found = dataset["citation_sgd_simulated"].sel(
        citation_operator="normalized_adjacency", citation_seed=2
    )

    def risk(key: jax.Array, count: int) -> float:
        return float(simulate_sgd(key, case.operator, case.theta_star, 0.5, step_size, count))

    pair = [risk(key, 32) for key in jax.random.split(key)]
    np.testing.assert_allclose(found.sel(citation_samples=32), np.mean(pair), rtol=1e-10)
    np.testing.assert_allclose(found.sel(citation_samples=128), risk(key, 128), rtol=1e-10)


def test_exact_risk_through_the_dense_operator(dataset: xr.Dataset) -> None:
    """Second moments of all pairs of iterates as full matrices, in the nodes' own basis."""
    case = problem("", citation.cora(SMOKE.citation_nodes), "laplacian")
    covariance = np.asarray(case.operator) @ np.asarray(case.operator)
    step_size = 0.5 * float(sgd.stability_limit(case.mu))
    decay = np.eye(len(covariance)) - step_size * covariance
    moments = [np.outer(case.theta_star, case.theta_star)]  # of θ − θ*, from θ_0 = 0
    for _ in range(15):
        last = moments[-1]
        shared = np.trace(covariance @ last) + SMOKE.noise_variance
        gradient = covariance @ last @ covariance + shared * covariance
        moments.append(decay @ last @ decay + step_size**2 * gradient)
    total = np.zeros_like(covariance)
    for t in range(8, 16):
        for u in range(8, 16):
            ahead = np.linalg.matrix_power(decay, abs(t - u))
            total += ahead @ moments[t] if u > t else moments[u] @ ahead
    exact = dataset["citation_sgd_exact"].sel(citation_operator="laplacian", citation_curve=16)
    np.testing.assert_allclose(exact, np.trace(covariance @ total) / 64, rtol=1e-10)


def test_layout(dataset: xr.Dataset) -> None:
    assert all(str(name).startswith("citation_") for name in (*dataset.variables, *dataset.dims))
    assert set(dataset["citation_samples"].values) <= set(dataset["citation_curve"].values)
    # Ridge is simulated where its Gram matrix is at most half of the graph: 32, but not 128, of 64.
    assert dataset["citation_ridge_samples"].values.tolist() == [32]
    np.testing.assert_allclose(dataset["citation_spectrum"].sum("citation_direction"), 1.0)
    falling = dataset[["citation_sgd_exact", "citation_ridge_exact"]].diff("citation_curve")
    assert all((falling[name] < 0).all() for name in falling)
