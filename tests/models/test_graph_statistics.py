"""Statistics of small graphs against networkx and against induced subgraphs counted one by one."""

import itertools

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

from boundlab.models.graph_metrics import graph_statistics, orbit_counts

NODES = 9
# Degree of a node, degrees in its subgraph in descending order, number of the orbit: the order of
# ORCA. On up to four nodes the degrees tell all connected graphs and all orbits apart.
ORBITS = {
    (1, (1, 1)): 0,
    (1, (2, 1, 1)): 1,
    (2, (2, 1, 1)): 2,
    (2, (2, 2, 2)): 3,
    (1, (2, 2, 1, 1)): 4,
    (2, (2, 2, 1, 1)): 5,
    (1, (3, 1, 1, 1)): 6,
    (3, (3, 1, 1, 1)): 7,
    (2, (2, 2, 2, 2)): 8,
    (1, (3, 2, 2, 1)): 9,
    (2, (3, 2, 2, 1)): 10,
    (3, (3, 2, 2, 1)): 11,
    (2, (3, 3, 2, 2)): 12,
    (3, (3, 3, 2, 2)): 13,
    (3, (3, 3, 3, 3)): 14,
}


@pytest.fixture(scope="module")
def batch() -> np.ndarray:
    """Graphs of every density on nine nodes, with special ones first."""
    rng = np.random.default_rng(0)
    special = [nx.empty_graph(NODES), nx.complete_graph(NODES), nx.star_graph(NODES - 1)]
    special += [nx.cycle_graph(NODES), nx.complete_bipartite_graph(4, 5), nx.path_graph(NODES)]
    upper = np.triu(rng.random((18, NODES, NODES)) < np.linspace(0.1, 0.95, 18)[:, None, None], 1)
    drawn = upper | np.swapaxes(upper, 1, 2)
    known = np.array([nx.to_numpy_array(graph) for graph in special])
    return np.concatenate([known, drawn.astype(np.float64)])


def _by_enumeration(matrix: np.ndarray) -> np.ndarray:
    n = len(matrix)
    counts = np.zeros((n, 15))
    for size in (2, 3, 4):
        for nodes in itertools.combinations(range(n), size):
            degrees = matrix[np.ix_(nodes, nodes)].sum(axis=0).astype(int).tolist()
            found = tuple(sorted(degrees, reverse=True))
            for node, degree in zip(nodes, degrees, strict=True):
                if (degree, found) in ORBITS:  # no disconnected one has such degrees
                    counts[node, ORBITS[degree, found]] += 1
    return counts


def _padded(matrices: list[np.ndarray], seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """24 graphs on 12 places, nodes in random places in their order, nonsense elsewhere."""
    rng = np.random.default_rng(seed)
    padded = np.where(rng.random((24, 12, 12)) < 0.5, np.nan, 7.0)
    mask = np.zeros((24, 12), bool)
    for row in range(24):
        matrix = matrices[row % len(matrices)]
        nodes = np.sort(rng.permutation(12)[: len(matrix)])
        padded[row][np.ix_(nodes, nodes)] = matrix
        mask[row, nodes] = True
    return padded, mask


def test_orbits_are_those_counted_one_by_one(batch: np.ndarray) -> None:
    expected = np.array([_by_enumeration(matrix) for matrix in batch])
    np.testing.assert_array_equal(jax.jit(orbit_counts)(batch), expected)
    found = graph_statistics(batch).orbits
    np.testing.assert_allclose(found, expected.mean(axis=1), rtol=1e-14)


def test_complete_graph_cycle_of_four_and_one_node() -> None:
    cycle = nx.to_numpy_array(nx.cycle_graph(4))
    found = graph_statistics(*_padded([1 - np.eye(4), cycle, np.zeros((1, 1))]))
    np.testing.assert_array_equal(found.orbits[0], [3, 0, 0, 3, *[0] * 10, 1])
    np.testing.assert_array_equal(found.orbits[1], [2, 2, 1, 0, 0, 0, 0, 0, 1, *[0] * 6])
    assert not found.orbits[2].any()
    assert found.degree[2, 0] == found.clustering[2, 0] == found.spectrum[2, 0] == 1.0


def test_degree_clustering_and_spectrum_are_those_of_networkx(batch: np.ndarray) -> None:
    found = graph_statistics(batch)
    for place, matrix in enumerate(batch):
        graph = nx.from_numpy_array(matrix)
        degree = np.array(nx.degree_histogram(graph)) / NODES
        np.testing.assert_allclose(found.degree[place, : len(degree)], degree, rtol=1e-15)
        assert not found.degree[place, len(degree) :].any()
        clustering = np.histogram(list(nx.clustering(graph).values()), 100, (0.0, 1.0))[0]
        np.testing.assert_allclose(found.clustering[place], clustering / NODES, rtol=1e-15)
        # networkx leaves the row of an isolated node at zero, too.
        values = np.clip(nx.normalized_laplacian_spectrum(graph), 0.0, 2.0)
        spectrum = np.histogram(values, 200, (-1e-5, 2.0))[0]
        np.testing.assert_allclose(found.spectrum[place], spectrum / NODES, rtol=1e-15)
    for histogram in (found.degree, found.clustering, found.spectrum):
        np.testing.assert_allclose(histogram.sum(axis=1), 1.0, rtol=1e-14)


def test_graphs_without_edges_and_bipartite_ones(batch: np.ndarray) -> None:
    found = graph_statistics(batch)
    for field, row in (("degree", found.degree), ("spectrum", found.spectrum)):
        assert row[0, 0] == 1.0, field
    assert found.clustering[0, 0] == 1.0
    assert not found.orbits[0].any()
    star = found.spectrum[2]  # eigenvalues 0, 2 and n − 2 times 1
    assert star[0] == star[199] == 1 / NODES


def test_padding_its_place_and_its_content_change_nothing(batch: np.ndarray) -> None:
    expected = graph_statistics(batch)
    found = graph_statistics(*_padded(list(batch)))
    np.testing.assert_array_equal(found.degree[:, :NODES], expected.degree)
    assert not found.degree[:, NODES:].any()
    for name in ("clustering", "orbits", "spectrum"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_renumbering_changes_nothing(batch: np.ndarray) -> None:
    order = np.random.default_rng(2).permutation(NODES)
    expected, found = graph_statistics(batch), graph_statistics(batch[:, order][:, :, order])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_types_traces_and_precision(batch: np.ndarray) -> None:
    expected = graph_statistics(batch)
    for given in (batch.astype(bool), batch.astype(np.int8), batch.tolist(), jnp.asarray(batch)):
        for one, other in zip(graph_statistics(given), expected, strict=True):
            np.testing.assert_array_equal(one, other)
    traced = jax.jit(graph_statistics)(batch, np.ones(batch.shape[:2], bool))
    with jax.enable_x64(False):
        plain = graph_statistics(batch.astype(np.float32))
    for one, two, other in zip(traced, plain, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
        assert two.dtype == np.float64
        np.testing.assert_allclose(two, other, atol=1e-12)


@pytest.mark.usefixtures("as_users_call")
def test_bad_input_is_named(batch: np.ndarray) -> None:
    few = batch[:2]
    one_way, loop, half = few.copy(), few.copy(), few.copy()
    one_way[1, 0, 1] = 0
    loop[0, 3, 3] = 1
    half[0, 1, 2] = half[0, 2, 1] = 0.5
    broken = few.copy()
    broken[1, 2, 3] = np.nan
    for wrong in (one_way, loop, half, broken, few[0], few[:, :3], few + 1, "graphs", few * 1j):
        with pytest.raises(ValueError, match=r"^adjacency"):
            graph_statistics(wrong)
    nodes = np.ones((2, NODES), bool)
    nobody = nodes.copy()
    nobody[1] = False
    for wrong in (nobody, nodes[:1], nodes.astype(int), nodes[:, :4]):
        with pytest.raises(ValueError, match=r"^mask"):
            graph_statistics(few, wrong)
