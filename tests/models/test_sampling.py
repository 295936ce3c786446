"""Samplers: uniform over subsets, independent where promised, equal where promised, static in shape."""

import functools
import itertools
import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry2x32_p
from scipy import stats

from boundlab.models import batch_sampling, graphs
from boundlab.models.counter_bits import below, threefry
from boundlab.models.neighborhoods import Neighborhoods, neighborhoods
from boundlab.models.sampling import sample_batch, sample_neighbors


@pytest.fixture(scope="module")
def wheel():
    """Hub 0 with neighbours 1 … 6, hub 7 with 8 … 11, an edge 12 – 13 and the isolated node 14."""
    edges = [(0, j) for j in range(1, 7)] + [(7, j) for j in range(8, 12)] + [(12, 13)]
    return graphs.from_edges(edges, 15)


@functools.partial(jax.jit, static_argnames=("max_fan_out", "replace"))
def draws_of(keys, graph, nodes, fan_out, max_fan_out, replace=False):
    def one(key):
        return sample_neighbors(key, graph, nodes, fan_out, max_fan_out, replace=replace)

    return jax.vmap(one)(keys)


@pytest.fixture(scope="module")
def many(wheel):
    """2e5 samples of three neighbours at the hubs 0 (twice), 7 and at the isolated node 14."""
    keys = jax.random.split(jax.random.key(71, impl="threefry2x32"), 200_000)
    index, mask = draws_of(keys, neighborhoods(wheel), np.array([0, 7, 0, 14]), 3, 3)
    return np.asarray(index), np.asarray(mask)


def subset_codes(index, first):
    """A sample of distinct nodes as one number, the sum of 2^(node − first)."""
    return np.sum(1 << (index - first), axis=1)


def uniform_p_value(codes, subsets):
    """p-value of χ² for equally likely `subsets` (the codes that can occur)."""
    values, counts = np.unique(codes, return_counts=True)
    assert set(values.tolist()) == set(subsets)
    return stats.chisquare(counts).pvalue


@pytest.mark.smoke
def test_threefry_is_the_generator_of_jax(key):
    first, second = (jnp.asarray(np.arange(50) * s, dtype=jnp.uint32) for s in (7919, 104729))
    words = tuple(jax.random.key_data(key))
    theirs = threefry2x32_p.bind(*words, first, second)
    for ours, reference in zip(threefry(words, first, second), theirs, strict=True):
        np.testing.assert_array_equal(ours, reference)


def test_bounded_integers_are_the_high_word_of_the_product():
    rng = np.random.default_rng(2)
    bits = rng.integers(2**32, size=4000, dtype=np.uint64)
    bound = np.concatenate(
        [rng.integers(2**31, size=3994, dtype=np.uint64), [0, 1, 2, 3, 1, 2**31]]
    )
    bits[-3:] = 2**32 - 1
    ours = below(jnp.asarray(bits, dtype=np.uint32), jnp.asarray(bound, dtype=np.uint32))
    np.testing.assert_array_equal(ours, (bits * bound) // np.uint64(2**32))


@pytest.mark.smoke
def test_every_subset_is_equally_likely(many):
    index, mask = many
    assert mask[:, :2].all()
    subsets = [sum(1 << j for j in s) for s in itertools.combinations(range(6), 3)]
    assert uniform_p_value(subset_codes(index[:, 0], 1), subsets) > 1e-4
    subsets = [sum(1 << j for j in s) for s in itertools.combinations(range(4), 3)]
    assert uniform_p_value(subset_codes(index[:, 1], 8), subsets) > 1e-4


def test_distinct_nodes_are_independent_and_repeated_ones_equal(many):
    index, _ = many
    one, other = subset_codes(index[:, 0], 1), subset_codes(index[:, 1], 8)
    _, cells = np.unique(np.stack([one, other]), axis=1, return_counts=True)
    assert len(cells) == 20 * 4
    assert stats.chisquare(cells).pvalue > 1e-4
    np.testing.assert_array_equal(index[:, 0], index[:, 2])


def test_isolated_nodes_have_no_sample(many, wheel):
    index, mask = many
    assert not mask[:, 3].any()
    assert ((index >= 0) & (index <= wheel.num_nodes)).all()


@pytest.mark.parametrize("fan_out", [0, 1, 2, 4, 6, 9])
def test_mask_counts_and_neighbors_are_distinct(key, wheel, fan_out):
    nodes = np.arange(15)
    index, mask = sample_neighbors(key, wheel, nodes, fan_out, 9)
    assert index.shape == mask.shape == (15, 9)
    assert (index.dtype, mask.dtype) == (jnp.int32, jnp.bool)
    index, mask = np.asarray(index), np.asarray(mask)
    table, adjacency = wheel.neighbor_table(), wheel.adjacency()
    counts = np.minimum(fan_out, wheel.degrees())
    np.testing.assert_array_equal(mask, np.arange(9) < counts[:, None])
    for node in nodes:
        chosen = index[node][mask[node]]
        assert len(set(chosen.tolist())) == len(chosen)
        assert adjacency[node, chosen].all()
        if fan_out >= wheel.degrees()[node]:
            assert chosen.tolist() == table.index[node][table.mask[node]].tolist()


def test_nothing_depends_on_width_layout_or_tracing(key, wheel):
    """20 slots take the loop, 4 the comparisons that are written out."""
    nodes = np.array([0, 7, 12])
    index, mask = map(np.asarray, sample_neighbors(key, wheel, nodes, 3, 4))
    wide, wide_mask = map(np.asarray, sample_neighbors(key, wheel, nodes, 3, 20))
    np.testing.assert_array_equal(wide[:, :4], index)
    np.testing.assert_array_equal(wide_mask, np.pad(mask, ((0, 0), (0, 16))))
    alone, _ = sample_neighbors(key, neighborhoods(wheel), [7], np.int64(3), 4)
    np.testing.assert_array_equal(np.asarray(alone)[0], index[1])
    traced = jax.jit(lambda k, b, v: sample_neighbors(k, wheel, v, b, 4)[0])
    np.testing.assert_array_equal(traced(key, jnp.int32(3), jnp.asarray(nodes)), index)
    outside, outside_mask = map(np.asarray, sample_neighbors(key, wheel, [15, 0], 3, 4))
    np.testing.assert_array_equal(outside[1], index[0])
    assert not outside_mask[0].any()


def test_the_same_with_x64_off(key, wheel):
    with jax.enable_x64(False):
        single = sample_neighbors(key, wheel, [0, 7], 3, 4), sample_batch(key, range(300), 9, 9)
    double = sample_neighbors(key, wheel, [0, 7], 3, 4), sample_batch(key, range(300), 9, 9)
    chex.assert_trees_all_equal(single, double)


def test_one_compilation_serves_the_grid(key, wheel):
    chex.clear_trace_counter()

    @jax.jit
    @chex.assert_max_traces(n=1)
    def counts(key, lists, fan_out, batch_size):
        nodes, kept = sample_batch(key, jnp.arange(15, dtype=jnp.int32), batch_size, 9)
        _, mask = sample_neighbors(key, lists, nodes, fan_out, 5)
        return jnp.sum(mask & kept[:, None]), jnp.sum(kept)

    lists = neighborhoods(wheel)
    for fan_out, batch_size in itertools.product((0, 1, 4), (1, 9)):
        edges, rows = counts(key, lists, jnp.int32(fan_out), jnp.int32(batch_size))
        assert rows == batch_size
        assert edges <= batch_size * fan_out


def test_with_replacement_draws_are_independent(wheel):
    keys = jax.random.split(jax.random.key(73, impl="threefry2x32"), 60_000)
    lists = neighborhoods(wheel)
    found = draws_of(keys, lists, np.array([7, 14]), 6, 6, replace=True)
    index, mask = map(np.asarray, found)
    assert mask[:, 0].all()  # more draws than the degree 4
    assert not mask[:, 1].any()
    _, counts = np.unique(index[:, 0, :3] - 8, axis=0, return_counts=True)
    assert len(counts) == 4**3
    assert stats.chisquare(counts).pvalue > 1e-4


def test_a_large_heavy_tailed_graph(key):
    """PubMed, both ends of each edge: 88,648 rows against NumPy's sets of neighbours."""
    graph = graphs.planetoid("pubmed")
    neighbors, nodes = graph.to_edge_index()
    index, mask = (np.asarray(a) for a in sample_neighbors(key, graph, nodes, 4, 4))
    np.testing.assert_array_equal(mask.sum(axis=1), np.minimum(graph.degrees()[nodes], 4))
    known = np.sort(nodes * graph.num_nodes + neighbors)
    sampled = (nodes[:, None] * graph.num_nodes + index)[mask]
    np.testing.assert_array_equal(known[np.searchsorted(known, sampled)], sampled)
    repeats = np.diff(np.sort(np.where(mask, index, -1 - np.arange(4)), axis=1), axis=1) == 0
    assert not repeats.any()
    # Rows of one node are equal, and each neighbour of a node of degree ≥ 4 has chance 4/d.
    first = np.unique(nodes, return_index=True)[1]
    np.testing.assert_array_equal(index, index[first][nodes])
    degrees = graph.degrees()
    ends = np.cumsum(degrees)
    smallest = neighbors[ends - degrees]  # no node of PubMed is isolated
    hit = ((index[first] == smallest[:, None]) & mask[first]).any(axis=1)[degrees > 4]
    p = 4 / degrees[degrees > 4]
    assert abs(np.sum(hit - p)) / math.sqrt(np.sum(p * (1 - p))) < 4.9


def test_an_edgeless_graph(key):
    index, mask = sample_neighbors(key, graphs.path(1), [0, 0], 2, 3)
    assert index.shape == (2, 3)
    assert not mask.any()
    assert sample_neighbors(key, graphs.path(3), [], 2, 3)[0].shape == (0, 3)


def test_neighbor_lists_are_built_once_even_inside_a_jit(key):
    graph = graphs.from_edges([(0, 1), (1, 2)], 4)
    assert jax.jit(lambda k: sample_neighbors(k, graph, [1], 2, 2)[1])(key).all()
    lists = neighborhoods(graph)
    assert neighborhoods(graph) is lists
    assert neighborhoods(lists) is lists
    assert lists.indptr.tolist() == [0, 1, 3, 4, 4]
    assert lists.indices.tolist() == [1, 0, 2, 1]
    assert lists.num_nodes == 4
    assert lists.degrees().tolist() == [1, 2, 1, 0]


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"key": 0}, "^key: got a int"),
        ({"graph": None}, "^graph: got a NoneType"),
        ({"nodes": [15 + 1]}, "^nodes: got 16"),
        ({"nodes": [-1]}, "^nodes: got -1"),
        ({"nodes": [0.5]}, "^nodes: got float64"),
        ({"nodes": [[0]]}, "^nodes: got int64 of shape"),
        ({"fan_out": -1}, "^fan_out: got -1"),
        ({"fan_out": 1.5}, "^fan_out: got 1.5"),
        ({"fan_out": True}, "^fan_out: got True"),
        ({"fan_out": 5, "max_fan_out": 4}, "^fan_out: got 5.*max_fan_out = 4.*largest degree is 6"),
        ({"fan_out": 5, "max_fan_out": 4, "replace": True}, "^fan_out: got 5"),
        ({"max_fan_out": -1}, "^max_fan_out: got -1"),
        ({"max_fan_out": 10**30}, "^max_fan_out: got 1000"),
        ({"replace": "no"}, "^replace: got 'no'"),
    ],
)
def test_bad_arguments_of_the_neighbor_sampler(key, wheel, change, match):
    arguments = {"key": key, "graph": wheel, "nodes": [0], "fan_out": 2, "max_fan_out": 6} | change
    with pytest.raises(ValueError, match=match):
        sample_neighbors(**arguments)


# Batches


@pytest.fixture(scope="module")
def batches():
    """Batches of 3 out of 6 nodes, 1e5 of them; and 4 out of 400 by the rejection of repeats."""
    keys = jax.random.split(jax.random.key(74, impl="threefry2x32"), 100_000)
    few = jax.jit(jax.vmap(lambda k: sample_batch(k, np.arange(10, 16), 3, 4)))(keys)
    many = jax.jit(jax.vmap(lambda k: sample_batch(k, np.arange(400), 4, 4)))(keys)
    return [np.asarray(a) for a in few], [np.asarray(a) for a in many]


@pytest.mark.smoke
def test_every_ordered_choice_of_a_batch_is_equally_likely(batches):
    (nodes, mask), _ = batches
    assert mask.tolist() == [[True, True, True, False]] * len(mask)
    orders, counts = np.unique(nodes[:, :3], axis=0, return_counts=True)
    assert len(orders) == 6 * 5 * 4
    assert stats.chisquare(counts).pvalue > 1e-4


def test_large_batches_are_uniform_too(batches):
    """Without repeats; each node, and each pair of neighbouring ids, as often as it should be."""
    _, (nodes, _) = batches
    assert (np.diff(np.sort(nodes, axis=1), axis=1) > 0).all()
    for slot in range(4):
        assert stats.chisquare(np.bincount(nodes[:, slot], minlength=400)).pvalue > 1e-4
    pairs = np.sum(np.diff(np.sort(nodes, axis=1), axis=1) == 1)
    mean = len(nodes) * 399 * (4 * 3) / (400 * 399)
    assert abs(pairs - mean) / math.sqrt(mean) < 4.9


@pytest.mark.parametrize("num_train", [1, 5, 1000])
def test_batches_are_nested_whatever_the_maximum(key, num_train):
    train = np.random.default_rng(0).permutation(2 * num_train)[:num_train]
    whole, mask = map(np.asarray, sample_batch(key, train, num_train, num_train))
    assert mask.all()
    assert sorted(whole.tolist()) == sorted(train.tolist())
    for maximum in {max(1, num_train // 7), num_train + 3}:
        found = sample_batch(key, train, min(maximum, num_train), maximum)
        nodes, mask = map(np.asarray, found)
        size = int(mask.sum())
        assert size == min(maximum, num_train)
        np.testing.assert_array_equal(nodes[:size], whole[:size])
        assert np.isin(nodes, train).all()


def test_rare_shortfalls_fall_back_to_the_whole_order(key, monkeypatch):
    whole = np.asarray(sample_batch(key, np.arange(500), 500, 500)[0])
    monkeypatch.setattr(batch_sampling, "_draws_for", lambda num_train, wanted: wanted)
    batch_sampling._sample_batch.clear_cache()
    nodes, _ = jax.vmap(lambda k: sample_batch(k, np.arange(500), 100, 100))(
        jnp.stack([key, jax.random.fold_in(key, 1)])
    )
    batch_sampling._sample_batch.clear_cache()
    nodes = np.asarray(nodes)
    np.testing.assert_array_equal(nodes[0], whole[:100])
    assert len(np.unique(nodes[1])) == 100


def test_traced_sizes_are_clamped(key):
    traced = jax.jit(lambda size: sample_batch(key, np.arange(5), size, 8)[1].sum())
    assert [int(traced(jnp.int32(size))) for size in (-1, 1, 3, 5, 9)] == [1, 1, 3, 5, 5]
    sizes = np.array([-(2**40), 2**32 - 1, 2**40], np.int64)
    assert [int(traced(size)) for size in sizes] == [1, 5, 5]


def test_traced_fan_outs_are_clamped_before_they_are_narrowed(key, wheel):
    traced = jax.jit(lambda size: sample_neighbors(key, wheel, [0], size, 4)[1].sum())
    for sizes in (np.array([-(2**40), 2**32 - 1, 2**40], np.int64), np.array([0, 4, 9], np.uint8)):
        assert [int(traced(size)) for size in sizes] == [0, 4, 4]


@pytest.mark.smoke
def test_a_batch_of_a_large_set(key):
    """40,000 nodes, a batch of 20,000: mean and variance of the ids by sampling theory."""
    nodes = np.asarray(sample_batch(key, np.arange(40_000), 20_000, 20_000)[0], np.float64)
    assert len(np.unique(nodes)) == 20_000
    variance = (40_000**2 / 12) / 20_000 * (1 - 0.5)
    assert abs(nodes.mean() - 39_999 / 2) / math.sqrt(variance) < 4.9


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"key": None}, "^key: got a NoneType"),
        ({"batch_size": 6}, "^batch_size: got 6.*5 train nodes"),
        ({"batch_size": 5, "max_batch_size": 4}, "^batch_size: got 5.*max_batch_size = 4"),
        ({"batch_size": 0}, "^batch_size: got 0"),
        ({"batch_size": 2.0}, "^batch_size: got 2.0"),
        ({"max_batch_size": 0}, "^max_batch_size: got 0"),
        ({"max_batch_size": 10**15}, "^max_batch_size: got 1000"),
        ({"max_batch_size": 10**30}, "^max_batch_size: got 1000"),
        ({"train_nodes": [[1], [2, 3]]}, "^train_nodes: got a list"),
        ({"train_nodes": []}, "^train_nodes: got none"),
        ({"train_nodes": [3, 1, 3]}, "^train_nodes: got repeated nodes"),
        ({"train_nodes": [-1, 2]}, "^train_nodes: got -1"),
        ({"train_nodes": [True]}, "^train_nodes: got bool"),
    ],
)
def test_bad_arguments_of_the_batch_sampler(key, change, match):
    arguments = {"key": key, "train_nodes": range(5), "batch_size": 2, "max_batch_size": 5} | change
    with pytest.raises(ValueError, match=match):
        sample_batch(**arguments)


def test_lists_given_as_arguments_are_a_pytree(key, wheel):
    lists = neighborhoods(wheel)
    found = jax.jit(lambda lists: sample_neighbors(key, lists, [0], 6, 6))(lists)
    index, mask = map(np.asarray, found)
    assert sorted(index[0].tolist()) == [1, 2, 3, 4, 5, 6]
    assert mask.all()
    assert isinstance(jax.tree.map(lambda a: a, lists), Neighborhoods)
