"""Closed-form graph spectra and traces against the matrices, and the step from graph to risk."""

import networkx as nx
import numpy as np
import pytest

from boundlab.models import graphs
from boundlab.theory.excess_risk import graph, sgd

BUILD = {
    "cycle": nx.cycle_graph,
    "path": nx.path_graph,
    "star": lambda n: nx.star_graph(n - 1),
    "complete": nx.complete_graph,
    "hypercube": nx.hypercube_graph,
}


def laplacian(g):
    adjacency = nx.to_numpy_array(g)
    return np.diag(adjacency.sum(0)) - adjacency


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("family", "size"),
    [
        ("cycle", 3),
        ("cycle", 12),
        ("cycle", 31),
        ("path", 2),
        ("path", 17),
        ("star", 2),
        ("star", 20),
        ("complete", 2),
        ("complete", 15),
        ("hypercube", 1),
        ("hypercube", 5),
    ],
)
def test_laplacian_spectrum_of_the_matrix(family, size):
    expected = np.linalg.eigvalsh(laplacian(BUILD[family](size)))[::-1]
    np.testing.assert_allclose(graph.laplacian_spectrum(family, size), expected, atol=1e-12)


@pytest.mark.parametrize("family", sorted(BUILD))
def test_laplacian_spectrum_accepts_what_the_constructor_accepts(family):
    for size in range(-1, 5):
        try:
            adjacency = getattr(graphs, family)(size).adjacency()
        except ValueError:
            with pytest.raises(ValueError, match=rf"^size: got {size}, .*cycle 3, path 1.*cube 0"):
                graph.laplacian_spectrum(family, size)
            continue
        expected = np.linalg.eigvalsh(np.diag(adjacency.sum(0)) - adjacency)[::-1]
        np.testing.assert_allclose(graph.laplacian_spectrum(family, size), expected, atol=1e-14)
    if family != "cycle":  # a single node
        least = graph.laplacian_spectrum(family, 0 if family == "hypercube" else 1)
        np.testing.assert_array_equal(least, [0.0])


def test_smallest_eigenvalue_of_a_long_path_has_no_cancellation():
    second = float(graph.laplacian_spectrum("path", 100_000)[-2])
    np.testing.assert_allclose(second, (np.pi / 1e5) ** 2, 1e-9)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_adjacency_traces_of_the_matrix(seed):
    g = nx.gnm_random_graph(24, 70, seed=seed)
    A = nx.to_numpy_array(g, dtype=int)
    # Each 4-cycle has two pairs of opposite corners; a pair with c common neighbours lies on C(c, 2).
    common = (A @ A)[np.triu_indices(24, 1)]
    cycles = int(np.sum(common * (common - 1) // 2)) // 2
    got = graph.adjacency_traces(A.sum(0), cycles)
    assert got == (int(np.trace(A @ A)), int(np.trace(A @ A @ A @ A)))


def test_adjacency_traces_by_hand():
    assert graph.adjacency_traces([2, 2, 2, 2], 1) == (
        8,
        32,
    )  # the 4-cycle: eigenvalues 2, 0, 0, −2
    assert graph.adjacency_traces([1, 1], 0) == (2, 2)
    wide = graph.adjacency_traces([10**4] + [1] * 10**4, 0)  # a star: eigenvalues ±100
    assert wide == (2 * 10**4, 2 * 10**8)


def test_effective_rank():
    np.testing.assert_allclose(graph.effective_rank([3.0, 3.0, 0.0, 3.0]), 3.0, 1e-15)
    np.testing.assert_allclose(graph.effective_rank([4.0, 2.0]), 36 / 20, 1e-15)
    np.testing.assert_allclose(graph.effective_rank([4e-300, 2e-300]), 36 / 20, 1e-15)


@pytest.mark.parametrize(
    ("family", "limit", "rank"),
    [("cycle", 1.814495, 19.85641), ("star", 0.731462, 1.23407), ("complete", 1.878794, 31.00184)],
)
def test_worked_values(family, limit, rank):
    mu = np.square(graph.laplacian_spectrum(family, 32) + 1.0)
    np.testing.assert_allclose(sgd.stability_limit(mu / mu.sum()), limit, 1e-6)
    np.testing.assert_allclose(graph.effective_rank(mu), rank, 3e-6)


def test_uneven_degrees_matter_only_without_normalisation():
    """4-regular against preferential attachment at equal mean degree, n = 256, median of 3 graphs."""
    ratio = {"laplacian": [], "normalised": []}
    for seed in range(3):
        ranks = {}
        for name, g in (
            ("regular", nx.random_regular_graph(4, 256, seed=seed)),
            ("attachment", nx.barabasi_albert_graph(256, 2, seed=seed)),
        ):
            A = nx.to_numpy_array(g)
            looped = A + np.eye(256)
            scale = 1 / np.sqrt(looped.sum(0))
            for kind, operator in (
                ("laplacian", laplacian(g) + np.eye(256)),
                ("normalised", (np.eye(256) + scale[:, None] * looped * scale[None, :]) / 2),
            ):
                ranks[name, kind] = float(graph.effective_rank(np.linalg.eigvalsh(operator) ** 2))
        for kind, values in ratio.items():
            values.append(ranks["regular", kind] / ranks["attachment", kind])
    assert np.median(ratio["laplacian"]) > 4
    assert np.all(np.abs(np.log(ratio["normalised"])) < 0.15)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: graph.effective_rank([0.0, 0.0]), "mu"),
        (lambda: graph.effective_rank([-1.0, 2.0]), "mu"),
        (lambda: graph.laplacian_spectrum("wheel", 8), "family"),
        (lambda: graph.laplacian_spectrum("cycle", 2), "size"),
        (lambda: graph.laplacian_spectrum("star", 0), "size"),
        (lambda: graph.laplacian_spectrum("hypercube", 60), "size"),
        (lambda: graph.adjacency_traces([1, 2], 0), "degrees"),
        (lambda: graph.adjacency_traces([1.5, 0.5], 0), "degrees"),
        (lambda: graph.adjacency_traces([-1, 1], 0), "degrees"),
        (lambda: graph.adjacency_traces([1, 1], -1), "num_four_cycles"),
    ],
)
def test_bad_value_is_named(call, name):
    with pytest.raises(ValueError, match=rf"^{name}: got"):
        call()
