"""Aggregation against dense matrices and plain loops; degenerate rows; derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.models import gnn, graphs
from boundlab.models.aggregation import KINDS, aggregate, aggregate_full
from boundlab.models.graph_layout import graph_layout

N, R = 40, 3


class Directed:
    """A directed graph with a hub of in-degree 12 and two isolated nodes."""

    def __init__(self):
        rng = np.random.default_rng(1)
        wanted = np.zeros((N, N), bool)  # [receiver, sender]
        wanted[1:, :] = rng.random((N - 1, N)) < 0.1
        wanted[0, 1:13] = True
        wanted[:, N - 1] = wanted[N - 1, :] = wanted[5, :] = False
        np.fill_diagonal(wanted, False)
        self.num_nodes = N
        self.matrix = wanted.astype(np.float64)
        receivers, senders = np.nonzero(wanted)
        self._edges = np.stack([senders, receivers])

    def to_edge_index(self):
        """As the graphs of the package."""
        return self._edges

    def degrees(self):
        """In-degrees."""
        return self.matrix.sum(axis=1).astype(int)


@pytest.fixture(scope="module")
def graph():
    return Directed()


@pytest.fixture(scope="module")
def features():
    return np.random.default_rng(2).standard_normal((N, R))


@pytest.fixture(scope="module")
def sample(graph):
    """Rows with a repeated node, a hub, an isolated node, and 0 to 4 of their neighbours each."""
    rng = np.random.default_rng(3)
    nodes = np.array([0, 3, 3, 5, 7, N - 1, 11, 12])
    index, mask = np.full((8, 4), N), np.zeros((8, 4), bool)
    for row, node in enumerate(nodes):
        neighbours = np.flatnonzero(graph.matrix[node])
        count = min(len(neighbours), 4 if row < 6 else row - 6)
        slots = rng.permutation(4)[:count]
        index[row, slots] = rng.choice(neighbours, count, replace=False)
        mask[row, slots] = True
    return nodes, index, mask


def by_loop(graph, nodes, index, mask, x, kind):
    """The table of the module's head, one term after another."""
    degrees, out = graph.degrees(), graph.matrix.sum(axis=0)
    result = np.zeros((len(nodes), x.shape[1]))
    chosen = index[mask]
    for row, node in enumerate(nodes):
        sampled = index[row][mask[row]]
        m, d = len(sampled), degrees[node]
        for j in sampled:
            result[row] += {
                "mean": x[j] / m,
                "mean_self": d / (d + 1) * x[j] / m,
                "sum": x[j],
                "gcn_full_ht": d / m * x[j] / np.sqrt(d * out[j]),
                "gcn_block": x[j] / np.sqrt(m * np.sum(chosen == j)),
            }[kind]
        if kind == "mean_self":
            result[row] += x[node] / (d + 1)
    return result


def dense(matrix, x, kind):
    degrees, out = matrix.sum(axis=1), matrix.sum(axis=0)
    inverse = np.divide(1, degrees, out=np.zeros(N), where=degrees > 0)
    inverse_out = np.divide(1, out, out=np.zeros(N), where=out > 0)
    if kind == "mean":
        return inverse[:, None] * (matrix @ x)
    if kind == "mean_self":
        return (x + matrix @ x) / (degrees + 1)[:, None]
    if kind == "sum":
        return matrix @ x
    return np.sqrt(inverse)[:, None] * (matrix @ (np.sqrt(inverse_out)[:, None] * x))


@pytest.mark.parametrize("kind", KINDS)
def test_sampled_rows_are_their_formula(graph, features, sample, kind):
    found = aggregate(graph, *sample, features, kind)
    np.testing.assert_allclose(
        found, by_loop(graph, *sample, features, kind), rtol=1e-13, atol=1e-14
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_whole_graph_is_the_dense_matrix(graph, features, kind):
    found = aggregate_full(graph, features, kind)
    np.testing.assert_allclose(found, dense(graph.matrix, features, kind), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_all_neighbours_of_all_nodes_are_the_whole_graph(graph, features, kind):
    index, mask = np.full((N, 14), N), np.zeros((N, 14), bool)
    for node in range(N):
        neighbours = np.flatnonzero(graph.matrix[node])
        index[node, : len(neighbours)] = neighbours
        mask[node, : len(neighbours)] = True
    found = aggregate(graph, np.arange(N), index, mask, features, kind)
    np.testing.assert_allclose(found, aggregate_full(graph, features, kind), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", ["mean_self", "gcn_full_ht"])
def test_derivatives_of_the_whole_graph_are_the_transposed_matrix(graph, features, kind):
    cotangent = np.random.default_rng(4).standard_normal((N, R))
    _, pull = jax.vjp(lambda x: aggregate_full(graph, x, kind), jnp.asarray(features))
    matrix = dense(graph.matrix, np.eye(N), kind)
    np.testing.assert_allclose(pull(cotangent)[0], matrix.T @ cotangent, rtol=1e-12, atol=1e-13)


def test_unused_slots_and_other_nodes_play_no_part(graph, features, sample):
    """Not even if their features are huge, in values and in derivatives."""
    nodes, index, mask = sample
    index = np.where(mask, index, 1)
    graph_layout(graph)

    def total(x):
        return aggregate(graph, nodes, index, mask, x, "mean").sum()

    value, slope = jax.jit(jax.value_and_grad(total))(jnp.asarray(features).at[1].set(1e300))
    assert not np.any(index[mask] == 1)
    np.testing.assert_allclose(value, total(jnp.asarray(features)), rtol=1e-14)
    assert np.isfinite(slope).all()
    np.testing.assert_array_equal(slope[1], 0)


@pytest.mark.parametrize("kind", ["mean", "mean_self", "gcn_block"])
def test_nothing_sampled_gives_zero_with_finite_derivatives(graph, features, kind):
    nodes, index, mask = np.array([0, 5, 7]), np.full((3, 2), N), np.zeros((3, 2), bool)

    def total(x):
        value = aggregate(graph, nodes, index, mask, x, kind)
        return value.sum(), value

    slope, value = jax.jit(jax.grad(total, has_aux=True))(jnp.asarray(features))
    expected = np.zeros((3, R))
    if kind == "mean_self":
        expected = features[nodes] / (1 + graph.degrees()[nodes])[:, None]
    np.testing.assert_allclose(value, expected, rtol=1e-14)
    assert np.isfinite(slope).all()


def test_features_beyond_float32_are_refused_there(graph, features, sample):
    with jax.enable_x64(False):
        for call in (
            lambda: aggregate(graph, *sample, 1e300 * features, "mean"),
            lambda: aggregate_full(graph, 1e300 * features, "mean"),
        ):
            with pytest.raises(ValueError, match=r"^features: got .* of float32"):
                call()


def test_fan_out_zero(graph, features):
    found = aggregate(graph, [0, 5], np.zeros((2, 0), int), np.zeros((2, 0), bool), features, "sum")
    np.testing.assert_array_equal(found, np.zeros((2, R)))


def test_degenerate_graphs(features):
    isolated = graphs.from_edges([], 4)
    for kind in ("mean", "sum", "gcn_block"):
        np.testing.assert_array_equal(aggregate_full(isolated, features[:4], kind), 0)
    star = graphs.star(4)
    expected = np.stack([features[1:4].mean(axis=0), *[features[0]] * 3])
    np.testing.assert_allclose(aggregate_full(star, features[:4], "mean"), expected, rtol=1e-14)


@pytest.mark.smoke
def test_hub_wider_than_what_is_unrolled(features):
    """The loop over slots and the unrolled sum, in float32: 40,001 nodes, one of degree 40,000."""
    n = 40_001
    star = graphs.star(n)
    x = np.random.default_rng(5).standard_normal((n, 2)).astype(np.float32)
    expected = np.zeros((n, 2))
    expected[0] = x[1:].astype(np.float64).mean(axis=0)
    expected[1:] = x[0]
    found = aggregate_full(star, x, "mean")
    assert found.dtype == jnp.float32
    # 40,000 terms one after another: rounding grows as their number's root.
    np.testing.assert_allclose(found, expected, atol=200 * np.finfo(np.float32).eps)


def test_layout_is_made_once_and_shared_by_both_directions():
    graph = graphs.cycle(5)
    layout = graph_layout(graph)
    assert graph_layout(graph) is layout
    assert graph_layout(layout) is layout
    assert layout.incoming is layout.outgoing
    assert layout.in_degrees.dtype == np.int32


def test_float32_is_float64_to_its_rounding(graph, features, sample):
    for kind in ("mean_self", "gcn_block"):
        single = aggregate(graph, *sample, features.astype(np.float32), kind)
        assert single.dtype == jnp.float32
        double = aggregate(graph, *sample, features, kind)
        np.testing.assert_allclose(single, double, rtol=1e-5, atol=1e-6)


def test_vmapped_rows_are_single_ones(graph, features, sample):
    stacked = np.stack([features, 2 * features])
    for kind in ("mean", "gcn_block"):
        found = jax.vmap(lambda x, kind=kind: aggregate(graph, *sample, x, kind))(stacked)
        for i in range(2):
            np.testing.assert_allclose(
                found[i], aggregate(graph, *sample, stacked[i], kind), rtol=1e-14
            )


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("graph", {"graph": np.eye(3)}),
        ("nodes", {"nodes": [0, N]}),
        ("nodes", {"nodes": [0.5, 1.0]}),
        ("nodes", {"nodes": 3}),
        ("index", {"index": [[1], [N + 1]]}),
        ("index", {"index": [[1], [-1]]}),
        ("index", {"index": [[1]]}),
        ("mask", {"mask": [[True, True], [True, True]]}),
        ("mask", {"mask": [[1], [0]]}),
        ("features", {"features": np.ones((N - 1, 2))}),
        ("features", {"features": np.full((N, 2), np.nan)}),
        ("features", {"features": np.ones((N, 2), int)}),
        ("features", {"features": np.full((N, 2), np.inf)}),
        ("kind", {"kind": "median"}),
    ],
)
def test_bad_input_names_the_argument(graph, as_users_call, name, change):
    arguments = {
        "graph": graph,
        "nodes": [0, 1],
        "index": [[1], [2]],
        "mask": [[True], [False]],
        "features": np.ones((N, 2)),
        "kind": "mean",
    } | change
    with pytest.raises(ValueError, match=f"^{name}: got "):
        aggregate(**arguments)
    if name in ("graph", "features", "kind"):
        rest = {k: arguments[k] for k in ("graph", "features", "kind")}
        with pytest.raises(ValueError, match=f"^{name}: got "):
            aggregate_full(**rest)


def test_networks_module_offers_the_aggregators():
    assert (gnn.aggregate, gnn.aggregate_full) == (aggregate, aggregate_full)
    assert {"aggregate", "aggregate_full"} <= set(gnn.__all__)
