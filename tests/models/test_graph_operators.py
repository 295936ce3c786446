"""Graph operators and their spectra: known eigenvalues, positive definiteness, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.models import graphs
from boundlab.models.graph_operators import aggregation_covariance, graph_operator, spectrum
from boundlab.precision import x64

GRAPH = graphs.from_edges([(0, 1), (0, 2), (0, 4), (1, 2), (4, 5)], 7)  # nodes 3 and 6 isolated
KINDS = ("laplacian", "normalized_adjacency", "adjacency", "personalized_pagerank")


def by_hand(kind, shift, teleport):
    """The definitions, entry by entry."""
    n = GRAPH.num_nodes
    A = np.zeros((n, n))
    for u, v in GRAPH.edges():
        A[u, v] = A[v, u] = 1
    d = A.sum(axis=1)
    S = np.array(
        [
            [(A[i, j] + (i == j)) / np.sqrt((d[i] + 1) * (d[j] + 1)) for j in range(n)]
            for i in range(n)
        ]
    )
    if kind == "laplacian":
        return np.diag(d) - A + shift * np.eye(n)
    if kind == "adjacency":
        return A + (np.linalg.norm(A, 2) + shift) * np.eye(n)
    if kind == "normalized_adjacency":
        return (np.eye(n) + S) / 2
    # The Neumann series of teleport·(I − (1 − teleport)S)^{-1}.
    total, power = np.zeros((n, n)), np.eye(n)
    for _ in range(2000):
        total, power = total + teleport * power, (1 - teleport) * power @ S
    return total


@pytest.mark.smoke
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("shift", "teleport"), [(1.0, 0.1), (0.25, 0.5)])
def test_operator_is_its_definition_and_positive_definite(kind, shift, teleport):
    operator = graph_operator(GRAPH, kind, shift, teleport=teleport)
    assert operator.dtype == np.float64
    np.testing.assert_allclose(operator, by_hand(kind, shift, teleport), atol=1e-12)
    np.testing.assert_array_equal(operator, operator.T)
    assert np.linalg.eigvalsh(operator).min() > 1e-3


def test_operator_is_float64_with_x64_off():
    with jax.enable_x64(False):
        operator = graph_operator(GRAPH, "laplacian", 0.1)
    assert operator.dtype == np.float64
    assert float(operator[3, 3]) == 0.1


def test_operator_can_be_traced_in_shift_and_teleport():
    shifts = np.array([0.5, 2.0])
    batch = jax.vmap(lambda s: graph_operator(GRAPH, "laplacian", s))(shifts)
    np.testing.assert_allclose(batch[1] - batch[0], 1.5 * np.eye(7), atol=1e-14)

    def trace(teleport):
        return jnp.trace(graph_operator(GRAPH, "personalized_pagerank", teleport=teleport))

    h = 1e-5
    slope = (trace(0.3 + h) - trace(0.3 - h)) / (2 * h)
    np.testing.assert_allclose(jax.grad(trace)(0.3), slope, rtol=1e-7)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("kind", "shift", "teleport", "match"),
    [
        ("laplace", 1.0, 0.1, "kind: got 'laplace'.*did you mean 'laplacian'"),
        ("laplacian", 0.0, 0.1, "shift: got 0"),
        ("adjacency", -1.0, 0.1, "shift: got -1"),
        ("laplacian", np.nan, 0.1, "shift: got nan"),
        ("personalized_pagerank", 1.0, 0.0, "teleport: got 0"),
        ("personalized_pagerank", 1.0, 1.5, "teleport: got 1.5"),
        ("personalized_pagerank", 1.0, 1e-17, "teleport: got 1e-17, expected .* ≥ 1e-06"),
        ("personalized_pagerank", 1.0, np.array([0.1, 0.2]), "teleport: got shape"),
        ("laplacian", np.array([1.0, 2.0]), 0.1, "shift: got shape"),
        ("laplacian", 1e-17, 0.1, "shift: got 1e-17, expected .*rounding"),
        ("adjacency", 1e-17, 0.1, "shift: got 1e-17, expected .*rounding"),
        ("laplacian", np.array(1j), 0.1, "shift: got values of type complex"),
        (None, 1.0, 0.1, "kind: got None"),
    ],
)
def test_bad_operator_arguments_are_refused(kind, shift, teleport, match):
    with pytest.raises(ValueError, match=match):
        graph_operator(GRAPH, kind, shift, teleport=teleport)


@pytest.mark.parametrize("bad", [None, np.eye(3), GRAPH.to_networkx()])
def test_what_is_no_graph_is_refused(bad):
    with pytest.raises(ValueError, match=r"graph: got a .*from_networkx"):
        graph_operator(bad, "laplacian")


def test_the_least_shift_and_teleport_give_positive_definite_operators(key):
    """Where rounding is worst: hubs, bipartite graphs, dense ones; a factorisation must exist."""
    for graph in (
        graphs.complete(150),
        graphs.star(200),
        graphs.hypercube(7),
        graphs.path(150),
        graphs.chung_lu(key, np.linspace(0.1, 60, 200)),
    ):
        least = 8 * graph.num_nodes * np.finfo(float).eps * (1 + graph.degrees().max())
        for operator in (
            graph_operator(graph, "laplacian", least),
            graph_operator(graph, "adjacency", least),
            graph_operator(graph, "personalized_pagerank", teleport=1e-6),
            graph_operator(graph, "normalized_adjacency"),
        ):
            np.linalg.cholesky(operator)
            assert np.linalg.eigvalsh(operator)[0] > 0


LAPLACIANS = {
    "complete": (graphs.complete(9), [0] + [9] * 8),
    "star": (graphs.star(9), [0] + [1] * 7 + [9]),
    "cycle": (graphs.cycle(9), 2 - 2 * np.cos(2 * np.pi * np.arange(9) / 9)),
    "path": (graphs.path(9), 2 - 2 * np.cos(np.pi * np.arange(9) / 9)),
    "hypercube": (graphs.hypercube(3), [0, 2, 2, 2, 4, 4, 4, 6]),
}


@pytest.mark.parametrize("family", LAPLACIANS)
def test_laplacian_spectra_are_the_textbook_ones(family):
    graph, expected = LAPLACIANS[family]
    values = np.sort(np.linalg.eigvalsh(graph_operator(graph, "laplacian", 1.0))) - 1
    np.testing.assert_allclose(values, np.sort(expected), atol=1e-10)


def test_largest_laplacian_eigenvalue_lies_between_the_degree_bounds(key):
    for i in range(10):
        graph = graphs.chung_lu(jax.random.fold_in(key, i), np.linspace(1, 12, 60))
        degrees = graph.degrees()
        top = np.linalg.eigvalsh(graph_operator(graph, "laplacian", 1.0)).max() - 1
        assert degrees.max() + 1 <= top + 1e-9
        assert top <= degrees[graph.edges()].sum(axis=1).max() + 1e-9


def test_traces_of_powers_count_edges_cherries_and_four_cycles(key):
    """Exact integers: tr A² = 2E and tr A⁴ = 2E + 4Σ C(d, 2) + 8·(number of 4-cycles)."""
    for graph in (graphs.hypercube(3), graphs.barabasi_albert(key, 40, 3), GRAPH):
        A = graph.adjacency()
        common = (A @ A)[np.triu_indices(graph.num_nodes, 1)]
        four_cycles = (common * (common - 1) / 2).sum() / 2
        d, edges = graph.degrees(), graph.num_edges
        assert np.trace(A @ A) == 2 * edges
        assert np.trace(A @ A @ A @ A) == 2 * edges + 2 * (d * (d - 1)).sum() + 8 * four_cycles
    assert graphs.hypercube(3).num_edges == 12


@pytest.mark.parametrize("depth", [0, 1, 2, 5])
def test_aggregation_covariance_by_repeated_multiplication(operator, depth):
    root = np.random.default_rng(1).standard_normal((6, 6))
    features = root @ root.T
    mixed = operator @ np.triu(np.ones((6, 6)))  # not symmetric
    expected, expected_plain = features, np.eye(6)
    for _ in range(depth):
        expected = mixed @ expected @ mixed.T
        expected_plain = mixed @ expected_plain @ mixed.T
    np.testing.assert_allclose(
        aggregation_covariance(mixed, features, np.int64(depth)), expected, rtol=1e-11
    )
    np.testing.assert_allclose(
        aggregation_covariance(mixed, None, depth), expected_plain, rtol=1e-11, atol=1e-14
    )


@pytest.mark.smoke
def test_spectrum_reconstructs_the_matrix_in_descending_order(operator):
    covariance = aggregation_covariance(operator, None, 2)
    values, vectors = spectrum(covariance)
    np.testing.assert_allclose(values, np.array([0.7, 0.5, 0.4, 0.25, 0.15, 0.1]) ** 4, rtol=1e-10)
    np.testing.assert_allclose((vectors * values[None, :]) @ vectors.T, covariance, atol=1e-14)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(6), atol=1e-13)
    jitted = jax.jit(spectrum)(covariance)
    np.testing.assert_allclose(jitted.eigenvalues, values, rtol=1e-12)


def test_spectrum_clips_rounding_and_refuses_negative_eigenvalues():
    vector = np.random.default_rng(2).standard_normal((30, 3))
    values = spectrum(vector @ vector.T).eigenvalues  # rank 3: 27 zeros up to rounding
    assert values.min() >= 0
    np.testing.assert_allclose(values[3:], 0, atol=1e-12)
    with pytest.raises(ValueError, match=r"covariance: got an eigenvalue of -0\.5"):
        spectrum(np.diag([1.0, -0.5]))


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: spectrum(np.ones((2, 3))), "covariance: got shape"),
        (lambda: spectrum(np.ones(3)), "covariance: got shape"),
        (
            lambda: spectrum(np.array([[1.0, 0.2], [0.1, 1.0]])),
            "covariance: got a matrix that is not",
        ),
        (lambda: spectrum(np.array([[1.0, np.nan], [np.nan, 1.0]])), "covariance: got nan"),
        (lambda: aggregation_covariance(np.eye(3), np.eye(2)), "feature_covariance: got shape"),
        (lambda: aggregation_covariance(np.ones((3, 2)), None), "operator: got shape"),
        (lambda: aggregation_covariance(np.full((2, 2), np.inf), None), "operator: got inf"),
        (lambda: aggregation_covariance(np.eye(3), None, -1), "depth: got -1"),
        (lambda: aggregation_covariance(np.eye(3), -np.eye(3)), "feature_cov.*eigenvalue of -1"),
        (lambda: aggregation_covariance(np.eye(2), [[0, 1], [1, 0]]), "feature_cov.*eigenvalue"),
        (lambda: aggregation_covariance(1e80 * np.eye(2), None, 2), "operator.*overflows"),
        (lambda: aggregation_covariance(np.full((2, 2), 1e308), None, 3), "operator.*overflows"),
        (lambda: aggregation_covariance(1e80 * np.eye(2), 1e150 * np.eye(2)), "operator.*overfl"),
        (lambda: aggregation_covariance(1j * np.eye(2), None), "operator: got values of type comp"),
        (lambda: spectrum(np.full((2, 2), 1e308)), "covariance.*overflow"),
        (lambda: aggregation_covariance(np.eye(2), np.array([[1.0, 2], [0, 1]])), "feature_cov"),
    ],
)
def test_bad_matrices_are_refused(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_traced_matrices_are_refused_with_x64_off():
    with jax.enable_x64(False), pytest.raises(ValueError, match="float64"):
        jax.jit(spectrum)(np.eye(2))
    with x64():
        assert jax.jit(spectrum)(np.eye(2)).eigenvalues.dtype == np.float64
