"""Aggregations and spectra against hand calculation, networkx, SciPy and edge by edge sums."""

import jax
import networkx as nx
import numpy as np
import pytest
import scipy.linalg

from boundlab.theory.graph_diffusion import spectrum as sp

# A triangle with a tail, and an isolated node.
EDGES = ((0, 1), (1, 2), (0, 2), (2, 3))
ADJACENCY = np.zeros((5, 5))
for i, j in EDGES:
    ADJACENCY[i, j] = ADJACENCY[j, i] = 1.0


def test_aggregations_edge_by_edge() -> None:
    neighbors = [[0, 1, 2], [0, 1, 2], [0, 1, 2, 3], [2, 3], [4]]
    sizes = [3, 3, 4, 2, 1]
    for kind, weight in {
        "sum": lambda i, j: 1.0,
        "row": lambda i, j: 1 / sizes[i],
        "symmetric": lambda i, j: (sizes[i] * sizes[j]) ** -0.5,
    }.items():
        expected = np.zeros((5, 5))
        for i, near in enumerate(neighbors):
            for j in near:
                expected[i, j] = weight(i, j)
        found = sp.aggregation_matrix(ADJACENCY, kind)
        np.testing.assert_allclose(found, expected, rtol=1e-14)
        np.testing.assert_allclose(
            sp.aggregation_frobenius(ADJACENCY, kind), (expected**2).sum(), rtol=1e-13
        )


def test_diffusions() -> None:
    smoothing = np.asarray(sp.aggregation_matrix(ADJACENCY, "symmetric"))
    heat = sp.aggregation_matrix(ADJACENCY, "heat", diffusion_time=0.7)
    np.testing.assert_allclose(heat, scipy.linalg.expm(-0.7 * (np.eye(5) - smoothing)), atol=1e-13)
    pagerank = sp.aggregation_matrix(ADJACENCY, "personalized_pagerank", teleport=0.2)
    expected = 0.2 * np.linalg.inv(np.eye(5) - 0.8 * smoothing)
    np.testing.assert_allclose(pagerank, expected, atol=1e-13)
    np.testing.assert_allclose(
        sp.aggregation_matrix(ADJACENCY, "heat", diffusion_time=0), np.eye(5), atol=1e-13
    )


def test_norms_of_named_graphs() -> None:
    """Sum: (λ_max + 1)² and 2|E| + n; symmetric: 1; row of a star: 2 × 2 by SVD of the whole."""
    for graph in (nx.star_graph(6), nx.petersen_graph(), nx.path_graph(7)):
        adjacency = nx.to_numpy_array(graph)
        norm = lambda kind, a=adjacency: np.linalg.norm(sp.aggregation_matrix(a, kind), 2)  # noqa: E731
        largest = np.linalg.eigvalsh(adjacency)[-1]
        np.testing.assert_allclose(norm("sum") ** 2, (largest + 1) ** 2, rtol=1e-12)
        np.testing.assert_allclose(norm("symmetric"), 1, rtol=1e-12)
        total = 2 * graph.number_of_edges() + len(graph)
        np.testing.assert_allclose(sp.aggregation_frobenius(adjacency, "sum"), total)
    for n in (2, 3, 10, 256):
        star = nx.to_numpy_array(nx.star_graph(n - 1))
        row = np.linalg.norm(sp.aggregation_matrix(star, "row"), 2)
        np.testing.assert_allclose(sp.star_row_norm(n), row**2, rtol=1e-12)
    np.testing.assert_allclose(sp.star_row_norm(256), 64.0, rtol=1e-3)


def test_spectrum_of_features() -> None:
    for kind in sp.AGGREGATIONS:
        matrix = np.asarray(sp.aggregation_matrix(ADJACENCY, kind))
        covariance = matrix @ matrix.T + 0.09 * np.eye(5)
        expected = np.linalg.eigvalsh(covariance)[::-1]
        np.testing.assert_allclose(sp.feature_spectrum(matrix, 0.3), expected, rtol=1e-12)
        standard = np.asarray(sp.feature_spectrum(matrix, 0.3, True))
        np.testing.assert_allclose(standard, expected / expected.mean(), rtol=1e-12)
    tall = np.arange(6.0).reshape(3, 2)
    expected = np.linalg.eigvalsh(tall @ tall.T + 4 * np.eye(3))[::-1]
    np.testing.assert_allclose(sp.feature_spectrum(tall, 2.0), expected, rtol=1e-12)
    # No digits are lost where the noise is far below the signal.
    np.testing.assert_allclose(sp.feature_spectrum(np.ones((2, 2)), 1e-9)[1], 1e-18, rtol=1e-6)


def test_features_have_that_spectrum() -> None:
    """Draws of X = PZ + s₀ξ: the variance along each eigenvector, in z-scores."""
    rng = np.random.default_rng(5)
    matrix = np.asarray(sp.aggregation_matrix(ADJACENCY, "row"))
    draws = 40_000
    x = matrix @ rng.standard_normal((5, draws)) + 0.3 * rng.standard_normal((5, draws))
    vectors = np.linalg.svd(matrix)[0]
    ratio = np.mean((vectors.T @ x) ** 2, axis=1) / np.asarray(sp.feature_spectrum(matrix, 0.3))
    assert np.abs((ratio - 1) / np.sqrt(2 / draws)).max() < 4.9


def test_lipschitz() -> None:
    """Largest over t of 1/v(t), by a search over t."""
    for values in ([0.09, 3.0], [2.0, 7.0]):
        times = np.linspace(0, 12, 20_001)
        v = 1 + (np.array(values)[:, None] - 1) * np.exp(-2 * times)
        np.testing.assert_allclose(sp.score_lipschitz(values), np.max(1 / v), rtol=1e-9)


def test_traced(key: jax.Array) -> None:
    def fn(a: jax.Array, noise: jax.Array) -> jax.Array:
        return sp.feature_spectrum(sp.aggregation_matrix(a, "symmetric"), noise)

    found = jax.jit(fn)(ADJACENCY, 0.3)
    np.testing.assert_allclose(found, fn(ADJACENCY, 0.3), rtol=1e-13)


BAD = {
    "shape": (lambda: sp.aggregation_matrix(np.ones((2, 3)), "sum"), "adjacency"),
    "loops": (lambda: sp.aggregation_matrix(np.eye(2), "sum"), "adjacency"),
    "asymmetric": (lambda: sp.aggregation_matrix([[0, 1], [0, 0]], "sum"), "adjacency"),
    "negative": (lambda: sp.aggregation_matrix([[0, -1], [-1, 0]], "sum"), "adjacency"),
    "NaN": (lambda: sp.aggregation_matrix([[0, np.nan], [np.nan, 0]], "sum"), "adjacency"),
    "kind": (lambda: sp.aggregation_matrix(ADJACENCY, "mean"), "kind"),
    "time": (lambda: sp.aggregation_matrix(ADJACENCY, "heat", diffusion_time=-1), "diffusion_time"),
    "teleport": (
        lambda: sp.aggregation_matrix(ADJACENCY, "personalized_pagerank", teleport=0),
        "teleport",
    ),
    "noise": (lambda: sp.feature_spectrum(np.eye(2), 0.0), "noise_std"),
    "aggregation": (lambda: sp.feature_spectrum([[np.inf]], 1.0), "aggregation"),
    "standardise": (lambda: sp.feature_spectrum(np.eye(2), 1.0, "yes"), "standardise"),
    "weights": (lambda: sp.aggregation_frobenius([[0, 2], [2, 0]], "sum"), "adjacency"),
    "heat norm": (lambda: sp.aggregation_frobenius(ADJACENCY, "median"), "kind"),
    "one node": (lambda: sp.star_row_norm(1), "num_nodes"),
    "eigenvalues": (lambda: sp.score_lipschitz([1.0, 0.0]), "eigenvalues"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.usefixtures("as_users_call")
def test_bad_input_names_the_argument(case: str) -> None:
    call, name = BAD[case]
    with pytest.raises(ValueError, match=rf"^{name}: got .* expected"):
        call()
