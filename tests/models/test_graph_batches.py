"""Padded batches of small graphs: layout, laws by exact means and variances, bad input."""

import jax
import networkx as nx
import numpy as np
import pytest

from boundlab.models import graphs
from boundlab.models.benchmark_graphs import community_small, ego_graphs
from boundlab.models.graph_batches import GraphBatch, block_graphs, erdos_renyi, pad_graphs
from boundlab.models.planetoid import planetoid


def _well_formed(batch: GraphBatch) -> None:
    adjacency, mask = batch.adjacency, batch.mask
    assert set(np.unique(adjacency)) <= {0.0, 1.0}
    np.testing.assert_array_equal(adjacency, np.swapaxes(adjacency, 1, 2))
    assert not np.diagonal(adjacency, axis1=1, axis2=2).any()
    assert not adjacency[~mask].any()
    assert mask.any(axis=1).all()


def _score(edges: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> float:
    return float((edges - mean).sum() / np.sqrt(variance.sum()))


def test_padding_keeps_graphs_and_features() -> None:
    rng = np.random.default_rng(0)
    small = graphs.cycle(4)
    large = graphs.star(6)
    batch = pad_graphs([small, large], 7)
    _well_formed(batch)
    np.testing.assert_array_equal(batch.adjacency[0, :4, :4], small.adjacency())
    np.testing.assert_array_equal(batch.adjacency[1, :6, :6], large.adjacency())
    np.testing.assert_array_equal(batch.mask.sum(axis=1), [4, 6])
    assert batch.features is None
    assert pad_graphs([small, large]).adjacency.shape == (2, 6, 6)
    first, other = (
        graphs.Graph(g.num_nodes, g.edges(), features=rng.standard_normal((g.num_nodes, 3)))
        for g in (small, large)
    )
    features = pad_graphs([first, other]).features
    np.testing.assert_array_equal(features[0, :4], first.features)
    np.testing.assert_array_equal(features[1], other.features)
    assert not features[0, 4:].any()
    assert pad_graphs([first, large]).features is None


def test_erdos_renyi_has_its_law(key: jax.Array) -> None:
    sizes = np.arange(1, 401) % 12 + 1
    probability = np.linspace(0.0, 1.0, 400)
    batch = erdos_renyi(jax.random.fold_in(key, 1), sizes, probability, 14)
    _well_formed(batch)
    assert batch.adjacency.shape == (400, 14, 14)
    np.testing.assert_array_equal(batch.mask.sum(axis=1), sizes)
    pairs, edges = sizes * (sizes - 1) / 2, batch.adjacency.sum(axis=(1, 2)) / 2
    assert edges[0] == 0
    assert edges[-1] == pairs[-1]
    variance = pairs * probability * (1 - probability)
    assert abs(_score(edges, pairs * probability, variance)) < 4.9
    again = erdos_renyi(jax.random.fold_in(key, 1), sizes, probability, 14)
    np.testing.assert_array_equal(again.adjacency, batch.adjacency)


def test_block_graphs_have_their_law(key: jax.Array) -> None:
    blocks = np.array([[4, 3, 0], [2, 0, 5]] * 300)
    p = np.array([[0.9, 0.1, 0.4], [0.1, 0.5, 0.3], [0.4, 0.3, 0.2]])
    batch = block_graphs(jax.random.fold_in(key, 2), blocks, p)
    _well_formed(batch)
    assert batch.adjacency.shape == (600, 7, 7)
    for row, labels in ((0, [0] * 4 + [1] * 3), (1, [0] * 2 + [2] * 5)):
        joined = p[np.ix_(labels, labels)]
        mean = batch.adjacency[row::2].mean(axis=0)
        score = (mean - joined) / np.sqrt(joined * (1 - joined) / 300)
        assert np.abs(score[np.triu_indices(7, 1)]).max() < 4.9


def test_community_graphs_have_their_law(key: jax.Array) -> None:
    batch = community_small(jax.random.fold_in(key, 3), 2000)
    _well_formed(batch)
    size = batch.mask.sum(axis=1) // 2
    np.testing.assert_array_equal(batch.mask.sum(axis=1), 2 * size)
    assert (np.sort(batch.mask, axis=1)[:, ::-1] == batch.mask).all()
    # M = 12 … 20 halved: 6, 7, 8 and 9 twice each, 10 once.
    share = np.array([2, 2, 2, 2, 1]) / 9
    found = np.bincount(size, minlength=11)[6:] / 2000
    assert np.abs((found - share) / np.sqrt(share * (1 - share) / 2000)).max() < 4.9
    places = np.arange(20)
    first = places < size[:, None]
    inside = (batch.adjacency * (first[:, :, None] & first[:, None, :])).sum(axis=(1, 2)) / 2
    crossing = (batch.adjacency * (first[:, :, None] & ~first[:, None, :])).sum(axis=(1, 2))
    connected = np.array(
        [
            nx.is_connected(nx.from_numpy_array(a[np.ix_(m, m)]))
            for a, m in zip(batch.adjacency, batch.mask, strict=True)
        ]
    )
    assert connected.all()
    whole = np.array(
        [
            nx.is_connected(nx.from_numpy_array(a[:c, :c]))
            and nx.is_connected(nx.from_numpy_array(a[c : 2 * c, c : 2 * c]))
            for a, c in zip(batch.adjacency, size, strict=True)
        ]
    )
    assert whole.mean() > 0.9
    pairs = size * (size - 1) / 2
    # Cross pairs of connected communities: binomial, and one where that is none.
    p = 0.1 / size
    none = (1 - p) ** size**2
    mean = size**2 * p + none
    variance = size**2 * p * (1 - p) + none * (1 - none) - 2 * none * size**2 * p
    assert abs(_score(crossing[whole], mean[whole], variance[whole])) < 4.9
    # Ten nodes are in one piece but for 2 in 10,000: no edge within is due to anything else.
    large = size == 10
    assert abs(_score(inside[large], 0.7 * pairs[large], 0.21 * pairs[large])) < 4.9


def test_shared_seeds_repeat_the_communities(key: jax.Array) -> None:
    batch = community_small(jax.random.fold_in(key, 4), 300, shared_seeds=True)
    _well_formed(batch)
    size = batch.mask.sum(axis=1) // 2
    for c in range(6, 11):
        chosen = batch.adjacency[size == c]
        for part in (slice(0, c), slice(c, 2 * c)):
            assert len(np.unique(chosen[:, part, part], axis=0)) == 1
            assert nx.is_connected(nx.from_numpy_array(chosen[0, part, part]))
        assert len(np.unique(chosen, axis=0)) > 1
        assert chosen[:, :c, c:].any(axis=(1, 2)).all()


def test_ego_graphs_are_those_of_networkx() -> None:
    graph = planetoid("citeseer")
    egos = ego_graphs(graph, num_graphs=200, num_features=24)
    assert len(egos) == 200
    whole = graph.to_networkx()
    centres = [v for v in range(graph.num_nodes) if 4 <= whole.degree(v) + 1 <= 18][:200]
    for ego, centre in zip(egos, centres, strict=True):
        expected = nx.ego_graph(whole, centre, radius=1)
        nodes = [centre, *sorted(set(expected) - {centre})]
        np.testing.assert_array_equal(ego.adjacency(), nx.to_numpy_array(expected, nodes))
        assert ego.labels[0] == graph.labels[centre]
        assert ego.features.shape == (len(nodes), 24)
    used = sum(np.count_nonzero(graph.features[[v, *whole[v]]], axis=0) for v in centres)
    kept = np.concatenate([ego.features for ego in egos])
    np.testing.assert_array_equal(np.sort(np.count_nonzero(kept, axis=0)), np.sort(used)[-24:])
    batch = pad_graphs(egos)
    _well_formed(batch)
    assert batch.features.shape == (*batch.mask.shape, 24)
    assert batch.mask.shape[1] <= 18


@pytest.mark.usefixtures("as_users_call")
def test_bad_input_is_named(key: jax.Array) -> None:
    square = np.full((2, 2), 0.5)
    star = graphs.star(6)
    wide = graphs.Graph(2, [(0, 1)], features=np.zeros((2, 3)))
    narrow = graphs.Graph(2, [(0, 1)], features=np.zeros((2, 2)))
    cases = [
        ("graphs", lambda: pad_graphs([])),
        ("graphs", lambda: pad_graphs([star, "graph"])),
        ("graphs", lambda: pad_graphs(3)),
        ("graphs", lambda: pad_graphs([wide, narrow])),
        ("num_places", lambda: pad_graphs([star], 5)),
        ("key", lambda: erdos_renyi(0, [3], 0.5)),
        ("num_nodes", lambda: erdos_renyi(key, [], 0.5)),
        ("num_nodes", lambda: erdos_renyi(key, [0], 0.5)),
        ("num_nodes", lambda: erdos_renyi(key, [2.5], 0.5)),
        ("num_nodes", lambda: jax.jit(lambda n: erdos_renyi(key, n, 0.5))(np.array([3]))),
        ("probability", lambda: erdos_renyi(key, [3], 1.5)),
        ("probability", lambda: erdos_renyi(key, [3], [0.5, 0.5])),
        ("probability", lambda: jax.jit(lambda p: erdos_renyi(key, [3], p))(0.5)),
        ("num_places", lambda: erdos_renyi(key, [3], 0.5, 2)),
        ("probabilities", lambda: block_graphs(key, [[1, 1]], np.triu(square))),
        ("probabilities", lambda: block_graphs(key, [[1, 1]], 2 * square + 1)),
        ("probabilities", lambda: block_graphs(key, [[1, 1]], square[:1])),
        ("block_sizes", lambda: block_graphs(key, [[1, 1, 1]], square)),
        ("block_sizes", lambda: block_graphs(key, [[-1, 1]], square)),
        ("block_sizes", lambda: block_graphs(key, [[0, 0]], square)),
        ("num_graphs", lambda: community_small(key, 0)),
        ("shared_seeds", lambda: community_small(key, 1, shared_seeds=1)),
        ("key", lambda: community_small(1)),
        ("graph", lambda: ego_graphs("cora")),
        ("min_nodes", lambda: ego_graphs(star, min_nodes=0)),
        ("max_nodes", lambda: ego_graphs(star, max_nodes=3)),
        ("min_nodes, max_nodes", lambda: ego_graphs(star, min_nodes=7)),
        ("num_graphs", lambda: ego_graphs(star, num_graphs=2)),
        ("num_features", lambda: ego_graphs(star, num_features=2)),
        ("num_features", lambda: ego_graphs(wide, min_nodes=1, num_features=4)),
    ]
    for name, call in cases:
        with pytest.raises(ValueError, match=f"^{name}"):
            call()
