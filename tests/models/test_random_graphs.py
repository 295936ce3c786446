"""Random graphs: simple and of the promised shape, deterministic in the key, right in law."""

import itertools
import math

import jax
import networkx
import numpy as np
import pytest

from boundlab.models import graphs


@pytest.mark.smoke
@pytest.mark.parametrize(("n", "degree"), [(20, 3), (9, 4), (50, 0), (8, 7), (30, 24), (200, 12)])
def test_random_regular_is_simple_and_regular(key, n, degree):
    graph = graphs.random_regular(key, n, np.int64(degree))
    assert graph.num_edges == n * degree // 2
    np.testing.assert_array_equal(graph.degrees(), degree)


def test_the_same_key_gives_the_same_graph(key):
    other = jax.random.fold_in(key, 1)
    for build in (
        lambda k: graphs.random_regular(k, 40, 4),
        lambda k: graphs.barabasi_albert(k, 40, 3),
        lambda k: graphs.chung_lu(k, np.linspace(1, 6, 40)),
    ):
        np.testing.assert_array_equal(build(key).edges(), build(key).edges())
        assert build(key).edges().tolist() != build(other).edges().tolist()


@pytest.mark.parametrize(
    ("n", "degree", "weights"),
    # Labelled counts: 60 hexagons and 10 pairs of triangles; 60 prisms and 10 K(3,3);
    # 7 nodes of degree 2: 360 heptagons and 105 square-and-triangles.
    [(6, 2, (60, 10)), (6, 3, (60, 10)), (7, 2, (360, 105))],
)
def test_random_regular_is_uniform_on_tiny_graphs(keys, n, degree, weights):
    draws = [graphs.random_regular(k, n, degree) for k in keys(n + degree, 1500)]
    rare = np.mean([_is_rare(graph, degree) for graph in draws])
    share = weights[1] / sum(weights)
    assert abs(rare - share) / math.sqrt(share * (1 - share) / len(draws)) < 4.5


def _is_rare(graph, degree):
    if degree == 2:
        return not graph.is_connected()
    adjacency = graph.adjacency()
    return np.trace(adjacency @ adjacency @ adjacency) == 0  # K(3,3) has no triangle


def test_random_regular_draws_every_labelled_graph_equally_often(keys):
    """All 70 labelled 2-regular graphs on 6 nodes: a chi-square statistic of 69 degrees."""
    draws = 3500
    counts = {}
    for k in keys(5, draws):
        code = graphs.random_regular(k, 6, 2).edges().tobytes()
        counts[code] = counts.get(code, 0) + 1
    assert len(counts) == 70
    statistic = sum((c - draws / 70) ** 2 / (draws / 70) for c in counts.values())
    assert abs(statistic - 69) / math.sqrt(2 * 69) < 4.5


def test_random_regular_graphs_have_the_limiting_number_of_triangles(keys):
    """Triangles in a random 4-regular graph are Poisson with mean (k − 1)³/6 = 4.5 (Bollobás)."""
    counts = []
    for k in keys(11, 200):
        adjacency = graphs.random_regular(k, 80, 4).adjacency().astype(np.float32)
        counts.append(np.sum(adjacency * (adjacency @ adjacency)) / 6)
    assert abs(np.mean(counts) - 4.5) / math.sqrt(4.5 / len(counts)) < 4.5


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda k: graphs.random_regular(k, 5, 3), "degree: got 3, expected n·degree even"),
        (lambda k: graphs.random_regular(k, 5, 5), "degree: got 5"),
        (lambda k: graphs.random_regular(k, 5, -1), "degree: got -1"),
        (lambda k: graphs.random_regular(k, 0, 0), "n: got 0"),
        (lambda k: graphs.barabasi_albert(k, 3, 3), "n: got 3"),
        (lambda k: graphs.barabasi_albert(k, 5, 0), "edges_per_node: got 0"),
        (lambda k: graphs.chung_lu(k, [1.0, -1.0]), "expected_degrees: got -1"),
        (lambda k: graphs.chung_lu(k, [1.0, np.nan]), "expected_degrees: got nan"),
        (lambda k: graphs.chung_lu(k, 3.0), "expected_degrees: got shape"),
        (lambda k: graphs.chung_lu(k, [1e308] * 3), "expected_degrees: got 1e.308.*overflow"),
        (lambda k: graphs.chung_lu(k, [[1.0], [1.0, 2.0]]), "expected_degrees: got a list"),
        (lambda k: graphs.chung_lu(k, np.array([1.0, 2j])), "expected_degrees: got .*complex"),
        (
            lambda k: jax.jit(lambda w: graphs.chung_lu(k, w))(np.ones(3)),
            "expected_degrees.*traced",
        ),
        (lambda k: jax.jit(lambda k: graphs.path(graphs.chung_lu(k, [1.0])))(k), "key.*traced"),
    ],
)
def test_bad_arguments_are_refused(key, build, match):
    with pytest.raises(ValueError, match=match):
        build(key)


BAD_KEYS = {
    "int": lambda key: 0,
    "None": lambda key: None,
    "text": lambda key: "a",
    "raw": jax.random.key_data,
    "NumPy": lambda key: np.zeros(2, np.uint32),
    "batch": jax.random.split,
}


@pytest.mark.parametrize("case", BAD_KEYS)
def test_bad_keys_are_refused(key, case):
    bad = BAD_KEYS[case](key)
    for build in (
        lambda k: graphs.random_regular(k, 4, 2),
        lambda k: graphs.barabasi_albert(k, 4, 2),
        lambda k: graphs.chung_lu(k, [1.0, 1.0]),
    ):
        with pytest.raises(ValueError, match=r"^key: got .*, expected one key"):
            build(bad)


def test_a_concrete_key_inside_jit_gives_the_same_graph(key):
    def inside(x):
        return x + graphs.random_regular(key, 8, 3).adjacency()

    np.testing.assert_array_equal(
        jax.jit(inside)(0.0), graphs.random_regular(key, 8, 3).adjacency()
    )


def test_huge_weights_join_everything(key):
    assert graphs.chung_lu(key, [1e153] * 3).num_edges == 3


@pytest.mark.parametrize(("n", "m"), [(2, 1), (4, 3), (200, 1), (200, 3)])
def test_barabasi_albert_counts(key, n, m):
    graph = graphs.barabasi_albert(key, n, m)
    assert graph.num_edges == (n - m) * m
    assert graph.is_connected()
    assert graph.degrees().min() == (m if n > m + 1 else 1)
    if n == m + 1:
        assert graph.degrees()[0] == m


def test_barabasi_albert_attaches_in_proportion_to_degree(keys):
    """Enumerated for m = 2, n = 5: node 3, then node 4, each picks two without replacement."""

    def pairs(degrees):
        total = sum(degrees)
        for i, j in itertools.permutations(range(len(degrees)), 2):
            yield {i, j}, degrees[i] / total * degrees[j] / (total - degrees[i])

    expected = {}
    for third, p in pairs([2, 1, 1]):
        degrees = [d + (v in third) for v, d in enumerate([2, 1, 1])] + [2]
        for fourth, q in pairs(degrees):
            edges = {(0, 1), (0, 2), *((v, 3) for v in third), *((v, 4) for v in fourth)}
            expected[frozenset(edges)] = expected.get(frozenset(edges), 0.0) + p * q
    draws = 3000
    counts = dict.fromkeys(expected, 0)
    for k in keys(21, draws):
        counts[frozenset(map(tuple, graphs.barabasi_albert(k, 5, 2).edges().tolist()))] += 1
    assert math.isclose(sum(expected.values()), 1.0, rel_tol=1e-12)
    for edges, p in expected.items():
        assert abs(counts[edges] - draws * p) / math.sqrt(draws * p * (1 - p)) < 4.5


def test_chung_lu_draws_each_edge_with_its_probability(keys):
    """Every pair of a small graph, with probabilities cut at 1 and a node of weight 0."""
    weights = np.array([1.0, 6.0, 0.0, 3.0, 0.5, 2.0, 6.0])
    exact = np.minimum(1.0, np.outer(weights, weights) / weights.sum())
    np.fill_diagonal(exact, 0.0)
    draws = 2000
    total = sum(graphs.chung_lu(k, weights).adjacency() for k in keys(31, draws))
    certain = (exact == 0) | (exact == 1)
    np.testing.assert_array_equal(total[certain], draws * exact[certain])
    p = exact[~certain]
    assert np.max(np.abs(total[~certain] - draws * p) / np.sqrt(draws * p * (1 - p))) < 4.5


def test_chung_lu_edges_are_independent(keys):
    """The number of edges is a Poisson-binomial variable: mean and variance by hand."""
    weights = np.linspace(0.5, 8, 30)
    p = (np.outer(weights, weights) / weights.sum())[np.triu_indices(30, 1)]
    assert p.max() < 1
    counts = np.array([graphs.chung_lu(k, weights).num_edges for k in keys(41, 1000)])
    variance = np.sum(p * (1 - p))
    assert abs(counts.mean() - p.sum()) / math.sqrt(variance / 1000) < 4.5
    assert abs(counts.var() / variance - 1) / math.sqrt(2 / 1000) < 4.5


def test_chung_lu_is_fast_enough_for_a_large_heavy_tailed_graph(key):
    n = 20_000
    weights = 350.0 * (np.arange(n) + 1.0) ** -0.5
    graph = graphs.chung_lu(key, weights)
    degrees, total = graph.degrees(), weights.sum()
    mean = weights * (1 - weights / total)  # no probability is cut: 350² < total
    assert weights[0] * weights[1] < total
    # Degrees are close to Poisson; the top ones, and the sum of all.
    assert np.max(np.abs(degrees[:50] - mean[:50]) / np.sqrt(mean[:50])) < 4.5
    assert abs(graph.num_edges - mean.sum() / 2) / math.sqrt(mean.sum() / 2) < 4.5


def test_chung_lu_without_weight_has_no_edges(key):
    assert graphs.chung_lu(key, np.zeros(4)).num_edges == 0
    assert graphs.chung_lu(key, [5.0]).num_edges == 0


def test_degree_three_or_more_is_connected_almost_always(keys):
    assert all(graphs.random_regular(k, 300, 3).is_connected() for k in keys(51, 20))


def test_preferential_attachment_has_the_hubs_of_networkx(keys):
    """Largest degree against the generator of networkx with the same start, Welch's z."""
    ours = [graphs.barabasi_albert(k, 150, 2).degrees().max() for k in keys(61, 200)]
    theirs = [
        max(d for _, d in networkx.barabasi_albert_graph(150, 2, seed=s).degree())
        for s in range(200)
    ]
    z = (np.mean(ours) - np.mean(theirs)) / math.sqrt((np.var(ours) + np.var(theirs)) / 200)
    assert abs(z) < 4.5
