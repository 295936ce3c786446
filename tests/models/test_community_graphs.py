"""Graphs with classes: the promised counts, the right law, and refusals."""

import itertools
import math

import jax
import networkx
import numpy as np
import pytest
from scipy import stats

from boundlab.models import graphs


def same_class_counts(graph):
    senders, receivers = graph.to_edge_index()
    same = graph.labels[senders] == graph.labels[receivers]
    return np.bincount(receivers, weights=same, minlength=graph.num_nodes)


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("n", "degree", "classes", "homophily", "same"),
    [
        (120, 24, 3, 0.7, 17),
        (23, 5, 4, 0.5, 2),
        (30, 6, 5, 1.0, 5),
        (8, 4, 2, 0.0, 0),
        (6, 0, 2, 1, 0),
    ],
)
def test_a_fixed_mix_has_its_counts_at_every_node(key, n, degree, classes, homophily, same):
    if (n, degree) == (30, 6):
        degree = 5  # a class of six nodes, all of it
    graph = graphs.fixed_mix(key, n, degree, classes, homophily)
    assert graph.num_edges == n * degree  # distinct senders, no self-loops
    np.testing.assert_array_equal(graph.degrees(), degree)
    np.testing.assert_array_equal(same_class_counts(graph), same)
    sizes = np.bincount(graph.labels)
    assert (len(sizes), sizes.max() - sizes.min()) in {(classes, 0), (classes, 1)}


def test_in_neighbors_of_a_fixed_mix_are_uniform_subsets(keys):
    """Node 4 of two classes of four: one of 3 own pairs and one of 4 others, 12 equally likely."""
    counts = {}
    for k in keys(81, 600):
        graph = graphs.fixed_mix(k, 8, 3, 2, 2 / 3)
        row = tuple(np.flatnonzero(graph.adjacency()[4]).tolist())
        counts[row] = counts.get(row, 0) + 1
    expected = {(j, *pair) for j in range(4) for pair in itertools.combinations((5, 6, 7), 2)}
    assert set(counts) == expected
    assert stats.chisquare(list(counts.values())).pvalue > 1e-4


def test_stochastic_block_draws_each_edge_with_its_probability(keys):
    labels = np.array([0, 1, 0, 2, 1, 0, 2])
    p = np.array([[0.6, 0.1, 0.0], [0.1, 0.9, 0.3], [0.0, 0.3, 1.0]])
    draws = 800
    total = sum(graphs.stochastic_block(k, labels, p).adjacency() for k in keys(82, draws))
    exact = p[labels][:, labels] * (1 - np.eye(7))
    certain = (exact == 0) | (exact == 1)
    np.testing.assert_array_equal(total[certain], draws * exact[certain])
    q = exact[~certain]
    assert np.max(np.abs(total[~certain] - draws * q) / np.sqrt(draws * q * (1 - q))) < 4.9


def test_edges_of_a_block_model_are_independent(keys):
    """Mean and variance of the number of edges, all classes at once."""
    labels, p = np.arange(30) % 3, np.array([[0.5, 0.1, 0.2], [0.1, 0.4, 0.3], [0.2, 0.3, 0.6]])
    q = p[labels][:, labels][np.triu_indices(30, 1)]
    draws = keys(83, 400)
    counts = np.array([graphs.stochastic_block(k, labels, p).num_edges for k in draws])
    variance = np.sum(q * (1 - q))
    assert abs(counts.mean() - q.sum()) / math.sqrt(variance / 400) < 4.9
    assert abs(counts.var() / variance - 1) / math.sqrt(2 / 400) < 4.9


def test_block_model_limits(key):
    blocks = graphs.stochastic_block(key, [0, 0, 0, 1, 1], np.eye(2))
    assert sorted(map(len, networkx.connected_components(blocks.to_networkx()))) == [2, 3]
    assert blocks.num_edges == 4
    assert graphs.stochastic_block(key, [0, 0], [[0.0]]).num_edges == 0
    assert graphs.stochastic_block(key, [2, 0, 2], np.ones((3, 3))).num_edges == 3


def test_the_papers_blocks(key):
    graph = graphs.power_law_blocks(key, 600, 10, 0.01, 0.5, max_mean_degree=26)
    assert np.bincount(graph.labels).tolist() == [60] * 10
    assert 2 * graph.num_edges / 600 <= 26
    across = same_class_counts(graph)
    outside = graph.degrees().sum() - across.sum()
    mean = 600 * 540 * 0.01
    assert abs(outside - mean) / math.sqrt(2 * mean) < 4.9
    with pytest.raises(ValueError, match="max_mean_degree: got 0"):
        graphs.power_law_blocks(key, 60, 10, 0.01, 0.5, 0.1)


def test_features_are_class_means_and_noise(key):
    labels = np.array([0, 1, 2, -1]).repeat(4000)
    x = graphs.class_features(key, labels, 5, 2.0, 0.5)
    means = np.stack([x[labels == k].mean(axis=0) for k in (0, 1, 2, -1)])
    assert np.abs(means[3]).max() < 4.9 * 0.5 / math.sqrt(4000)
    residual = x - means[labels]
    assert abs(residual.std() / 0.5 - 1) < 4.9 / math.sqrt(2 * residual.size)
    many = graphs.class_features(key, np.arange(3000), 4, 2.0, 0.0)
    assert abs(many.std() / 2 - 1) < 4.9 / math.sqrt(2 * many.size)
    np.testing.assert_array_equal(many, graphs.class_features(key, np.arange(3000), 4, 2.0, 0.0))


def test_the_same_key_gives_the_same_graph(key):
    other = jax.random.fold_in(key, 1)
    for build in (
        lambda k: graphs.fixed_mix(k, 40, 6, 4, 0.5),
        lambda k: graphs.stochastic_block(k, np.arange(40) % 2, np.full((2, 2), 0.2)),
    ):
        np.testing.assert_array_equal(build(key).edges(), build(key).edges())
        assert build(key).edges().tolist() != build(other).edges().tolist()


def test_circulants_and_cliques():
    ring = graphs.circulant(7, 3)
    table = ring.neighbor_table().index
    for node in range(7):
        assert sorted(table[node].tolist()) == sorted((node + k) % 7 for k in (1, 2, 3))
    assert ring.out_degrees().tolist() == [3] * 7
    assert graphs.circulant(4, 0).num_edges == 0
    cliques = graphs.two_cliques(4)
    assert cliques.degrees().tolist() == [3] * 8
    np.testing.assert_array_equal(same_class_counts(cliques), 3)
    assert graphs.two_cliques(1).num_edges == 0


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda k: graphs.fixed_mix(k, 12, 5, 3, 1.0), "degree: got 5, 5 of them of the own class"),
        (lambda k: graphs.fixed_mix(k, 12, 9, 3, 0.0), "degree: got 9, 0 of them"),
        (lambda k: graphs.fixed_mix(k, 12, 12, 3, 0.5), "degree: got 12"),
        (lambda k: graphs.fixed_mix(k, 12, 2, 13, 0.5), "num_classes: got 13"),
        (lambda k: graphs.fixed_mix(k, 12, 2, 3, 1.5), "homophily: got 1.5"),
        (lambda k: graphs.fixed_mix(0, 12, 2, 3, 0.5), "key: got a int"),
        (lambda k: graphs.stochastic_block(k, [0, 2], np.eye(2)), "labels: got 2"),
        (lambda k: graphs.stochastic_block(k, [], np.eye(2)), "labels: got none"),
        (lambda k: graphs.stochastic_block(k, [0], [[1.5]]), "probabilities: got 1.5"),
        (lambda k: graphs.stochastic_block(k, [0], [[0.5, 0.1], [0.2, 0.5]]), "not symmetric"),
        (lambda k: graphs.stochastic_block(k, [0], [0.5]), "probabilities: got shape"),
        (lambda k: graphs.power_law_blocks(k, 10, 11), "num_classes: got 11"),
        (lambda k: graphs.power_law_blocks(k, 10, 2, exponent=0), "exponent: got 0"),
        (lambda k: graphs.class_features(k, [0, -2], 3, 1.0), "labels: got -2"),
        (lambda k: graphs.class_features(k, [0], 0, 1.0), "num_features: got 0"),
        (lambda k: graphs.class_features(k, [0], 1, -1.0), "class_gap: got -1"),
        (lambda k: graphs.class_features(k, [0], 1, 1.0, np.nan), "noise_std: got nan"),
        (lambda k: graphs.circulant(4, 4), "degree: got 4"),
        (lambda k: graphs.two_cliques(0), "size: got 0"),
    ],
)
def test_bad_arguments_are_refused(key, build, match):
    with pytest.raises(ValueError, match=match):
        build(key)
