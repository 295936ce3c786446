"""Layout of the part on topology, and its numbers by hand."""

import itertools
from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.graph_diffusion import topology, topology_simulation
from boundlab.models import graphs


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("graph_diffusion", "topology_")


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("topology_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    assert (dataset["topology_kl"] > 0).all()
    assert (dataset["topology_case_w2_error"] > 0).all()
    # Both routes to the spectra of the features, edge by edge and by the theory's matrices.
    assert dataset["topology_eigenvalue"].dims == ("topology_case", "topology_mode")


def _recursion(eigenvalues: np.ndarray, horizon: float, steps: int) -> tuple[np.ndarray, ...]:
    """Variances of output and noised data, step by step in NumPy."""
    grid = np.linspace(horizon, 0.01, steps + 1)
    u = np.ones_like(eigenvalues)
    for tau, t in itertools.pairwise(grid):
        grown = np.exp(tau - t)
        score = 1 / (1 + (eigenvalues - 1) * np.exp(-2 * tau))
        u = (grown - 2 * (grown - 1) * score) ** 2 * u + grown**2 - 1
    return u, 1 + (eigenvalues - 1) * np.exp(-0.02)


def test_recursion_by_hand() -> None:
    eigenvalues = np.array([[0.09, 1.0, 30.0], [0.5, 2.0, 5.0]])
    (found,) = topology.errors([eigenvalues], 1.5, 25, 7)
    for i, values in enumerate(eigenvalues):
        u, v = _recursion(values, 1.5, 25)
        np.testing.assert_allclose(found.kl[i], 3.5 * np.sum(v / u - 1 - np.log(v / u)), rtol=1e-8)
        np.testing.assert_allclose(
            found.w2[i], np.sqrt(7 * np.sum((np.sqrt(u) - np.sqrt(v)) ** 2)), rtol=1e-8
        )
        assert found.kl[i] < found.bound[i]


def test_published_sizes() -> None:
    """At n = 256, F = 50, T = 2, N = 200: power-law above regular graphs under the sum alone."""
    regular = nx.to_numpy_array(nx.random_regular_graph(4, 256, seed=1))
    power = nx.to_numpy_array(nx.barabasi_albert_graph(256, 2, seed=1))
    star = nx.to_numpy_array(nx.star_graph(255))
    found = {}
    for kind in ("sum", "symmetric"):
        spectra = topology._spectra([regular, power, star], kind, 0.3)
        (found[kind],) = topology.errors([spectra], 2.0, 200, 50)
    w2 = found["sum"].w2
    assert w2[1] / w2[0] > 2.5
    np.testing.assert_allclose(w2[2], 69.4, rtol=1e-3)
    np.testing.assert_allclose(w2[0], 4.85, rtol=0.03)  # its draws differ little
    symmetric = found["symmetric"].w2
    np.testing.assert_allclose(symmetric[1] / symmetric[0], 1, atol=0.05)
    np.testing.assert_allclose(symmetric[2], 0.960, rtol=1e-3)
    np.testing.assert_allclose(found["sum"].kl[0], 3.56, rtol=0.02)
    np.testing.assert_allclose(found["symmetric"].kl[0], 9.70, rtol=0.02)


def test_features_are_aggregated_edge_by_edge() -> None:
    graph = graphs.from_networkx(nx.karate_club_graph())
    adjacency = np.array(nx.to_numpy_array(nx.karate_club_graph(), weight=None))
    looped = adjacency + np.eye(34)
    size = looped.sum(axis=1)
    signal = np.random.default_rng(0).standard_normal((34, 3))
    expected = {
        "sum": looped,
        "row": looped / size[:, None],
        "symmetric": looped / np.sqrt(np.outer(size, size)),
    }
    for kind, matrix in expected.items():
        found = topology_simulation._aggregate(graph, signal, kind)
        np.testing.assert_allclose(found, matrix @ signal, rtol=1e-12)


def test_distance_of_pooled_variances() -> None:
    """Chi-square squares about u: the corrected distance is unbiased, its error honest."""
    rng = np.random.default_rng(3)
    target, true = np.array([[1.0, 4.0]]), np.array([1.5, 3.0])
    exact = np.sqrt(10 * np.sum((np.sqrt(target[0]) - np.sqrt(true)) ** 2))
    scores = []
    for _ in range(200):
        squares = true * rng.chisquare(10, (1, 64, 1, 2)) / 10
        value, error = topology_simulation._distances(squares, target, np.array([10]))
        scores.append((value.item() - exact) / error.item())
    assert abs(np.mean(scores)) < 4.9 / np.sqrt(200)
    assert 0.7 < np.std(scores) < 1.4
