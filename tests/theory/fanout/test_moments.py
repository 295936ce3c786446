"""Moments of sampled neighbour means and the distances of aggregation rows, by enumeration."""

import itertools

import jax
import numpy as np
import pytest

from boundlab.models import graphs
from boundlab.theory import fanout


def covariance(values):
    """Covariance (divisor: their number) of equally likely rows."""
    centred = values - values.mean(axis=0)
    return centred.T @ centred / len(values)


@pytest.mark.smoke
@pytest.mark.parametrize("fan_out", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("nodes", [None, [5, 0, 3]])
def test_every_sample_of_a_ragged_graph(ragged, fan_out, nodes):
    got = fanout.neighbor_mean_moments(ragged, ragged.features, fan_out, nodes)
    means = [ragged.sampled_means(i, fan_out) for i in (range(6) if nodes is None else nodes)]
    spread = np.array([covariance(m) for m in means])
    np.testing.assert_allclose(got.mean, [m.mean(axis=0) for m in means], atol=1e-14)
    np.testing.assert_allclose(got.covariance_trace, np.trace(spread, 0, 1, 2), atol=1e-14)
    np.testing.assert_allclose(got.average_covariance, spread.mean(axis=0), atol=1e-14)
    if fan_out >= 5:
        assert not got.average_covariance.any()
        assert not got.covariance_trace.any()


@pytest.mark.parametrize("nodes", [None, [5, 0, 3]])
def test_several_fan_outs_at_once(ragged, nodes, monkeypatch):
    from boundlab.theory.fanout import _graph

    fan_outs = (3, 1, 9, 2)
    rows = range(6) if nodes is None else nodes
    expected = [
        np.mean([covariance(ragged.sampled_means(i, fan_out)) for i in rows], axis=0)
        for fan_out in fan_outs
    ]
    got = fanout.average_covariances(ragged, ragged.features, fan_outs, nodes)
    np.testing.assert_allclose(got, expected, atol=1e-14)
    assert not got[2].any()  # as many neighbours as there are
    monkeypatch.setattr(_graph, "CHUNK", 5)
    piece_by_piece = fanout.average_covariances(ragged, ragged.features, fan_outs, nodes)
    np.testing.assert_allclose(piece_by_piece, expected, atol=1e-14)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fan_outs", ()),
        ("fan_out", (1, 0)),
        ("nodes", [1, 1]),
        ("features", np.full((6, 2), 1e200)),
        ("features", np.ones((5, 2))),
        ("graph", "a graph"),
    ],
)
def test_several_fan_outs_of_bad_input(ragged, name, value):
    x = np.array(ragged.features)
    good = {"graph": ragged, "features": x, "fan_outs": (1, 2), "nodes": None}
    if name == "features" and len(value) == 6:
        value = value * np.arange(6)[:, None]
    with pytest.raises(ValueError, match=name):
        fanout.average_covariances(**good | {"fan_outs" if name == "fan_out" else name: value})


def test_seven_neighbours_three_drawn():
    """Spec's size: d = 7, m = 3, r = 4, and the formula (1/m − 1/d)S² beside the enumeration."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(8, 4))
    got = fanout.neighbor_mean_moments(graphs.star(8), x, 3)
    draws = np.array([x[list(s)].mean(axis=0) for s in itertools.combinations(range(1, 8), 3)])
    np.testing.assert_allclose(got.mean[0], draws.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(got.average_covariance * 8, covariance(draws), rtol=1e-12)
    by_hand = (1 / 3 - 1 / 7) * np.cov(x[1:].T)
    np.testing.assert_allclose(got.average_covariance * 8, by_hand, rtol=1e-12)
    np.testing.assert_array_equal(got.covariance_trace[1:], 0.0)  # the leaves have one neighbour


@pytest.mark.smoke
def test_many_rows_in_pieces(monkeypatch):
    """40,000 rows, worked through piece by piece, against a padded table in plain NumPy."""
    rng = np.random.default_rng(4)
    n, d, r = 40_000, 4, 3
    x = rng.normal(size=(n, r))
    table = np.sort((np.arange(n)[:, None] + np.array([1, 2, 5, 9])) % n, axis=1)

    class Table:
        num_nodes = n

        def to_edge_index(self):
            return np.stack([table.ravel(), np.repeat(np.arange(n), d)])

    from boundlab.theory.fanout import _graph

    monkeypatch.setattr(_graph, "CHUNK", 50_000)
    got = fanout.neighbor_mean_moments(Table(), x, 2)
    z = x[table] - x[table].mean(axis=1, keepdims=True)
    each = (1 / 2 - 1 / 4) * np.einsum("idp,idq->ipq", z, z) / 3
    np.testing.assert_allclose(got.mean, x[table].mean(axis=1), atol=1e-14)
    np.testing.assert_allclose(got.average_covariance, each.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(got.covariance_trace, np.trace(each, 0, 1, 2), rtol=1e-12)


@pytest.mark.parametrize("chunk", [2**22, 600])
def test_mostly_empty_features(monkeypatch, chunk):
    """Rows that fill few of 300 features, of both signs, and a hub that fills most of them."""
    from boundlab.theory.fanout import _graph

    monkeypatch.setattr(_graph, "CHUNK", chunk)
    rng = np.random.default_rng(8)
    x = np.zeros((60, 300))
    for row in x:
        row[rng.choice(300, 4, replace=False)] = rng.choice([-1.0, 1.0, 0.5], 4)
    x[1], x[2] = -x[3], x[4]  # entries that vanish in the mean; equal neighbours
    edges = [(0, i) for i in range(1, 60)] + [(5, 1), (5, 3), (6, 2), (6, 4), (7, 8), (8, 9)]
    graph = graphs.from_edges(edges, 60)
    around = [[j for e in edges for j in e if i in e and j != i] for i in range(60)]
    nodes = [7, 0, 5, 6, 8, 20]
    got = fanout.neighbor_mean_moments(graph, x, 2, nodes)
    each = [
        (1 / 2 - 1 / len(around[i])) * np.cov(x[around[i]].T) if len(around[i]) > 2 else 0 * x.T @ x
        for i in nodes
    ]
    np.testing.assert_allclose(got.mean, [x[around[i]].mean(axis=0) for i in nodes], atol=1e-15)
    np.testing.assert_allclose(got.average_covariance, np.mean(each, axis=0), atol=1e-15)
    np.testing.assert_allclose(got.covariance_trace, np.trace(each, 0, 1, 2), rtol=1e-13)
    np.testing.assert_array_equal(got.average_covariance, got.average_covariance.T)
    alike = fanout.neighbor_mean_moments(graph, np.tile(3.0 * np.eye(300)[7], (60, 1)), 1)
    np.testing.assert_array_equal(alike.average_covariance, 0.0)


def test_equal_neighbours_and_no_edges():
    alike = fanout.neighbor_mean_moments(graphs.cycle(6), np.full((6, 2), 3.0), 1)
    np.testing.assert_array_equal(alike.average_covariance, 0.0)
    bare = fanout.neighbor_mean_moments(graphs.from_edges([], 4), np.ones((4, 2)), 1)
    assert not any(np.any(part) for part in bare)


@pytest.mark.parametrize(("outer", "inner"), [(1, 1), (2, 1), (1, 3), (3, 2), (9, 2), (2, 9)])
def test_two_hops_with_one_sample_a_node(ragged, outer, inner):
    """All samples of all nodes at the first hop × all samples of the node at the second."""
    first = list(itertools.product(*[ragged.sampled_means(i, inner) for i in range(6)]))
    expected = []
    for senders in ragged.neighbors:
        size = min(outer, len(senders))
        draws = [
            np.mean([hop[j] for j in subset], axis=0)
            for hop in first
            for subset in itertools.combinations(senders, size)
            if subset
        ]
        expected.append(np.trace(covariance(np.array(draws))) if draws else 0.0)
    got = fanout.two_hop_variance(ragged, ragged.features, outer, inner)
    np.testing.assert_allclose(got, expected, atol=1e-13)
    chosen = fanout.two_hop_variance(ragged, ragged.features, outer, inner, nodes=[4, 2])
    np.testing.assert_array_equal(chosen, got[[4, 2]])


@pytest.mark.parametrize("degree", range(1, 8))
def test_row_distances_of_every_sample(degree):
    full = np.full(degree, 1 / degree)
    for m in range(1, degree + 1):
        got = {k: fanout.row_distance(degree, m, k) for k in ("sqnorm", "trace", "nuclear")}
        for subset in itertools.combinations(range(degree), m):
            row = np.zeros(degree)
            row[list(subset)] = 1 / m
            singular = np.linalg.svd(np.outer(full, full) - np.outer(row, row), compute_uv=False)
            np.testing.assert_allclose(got["sqnorm"], np.sum((full - row) ** 2), atol=1e-12)
            np.testing.assert_allclose(got["trace"], np.sum(np.abs(full**2 - row**2)), atol=1e-12)
            np.testing.assert_allclose(got["nuclear"], singular.sum(), atol=1e-12)
        if m == degree:
            assert all(value == 0.0 for value in got.values())


@pytest.mark.parametrize("kind", ["sqnorm", "trace", "nuclear"])
def test_row_distance_of_arrays_tracers_and_isolated_nodes(kind):
    degrees = np.array([[0, 1, 2], [5, 24, 3]])
    got = fanout.row_distance(degrees, 2, kind)
    assert got.shape == degrees.shape
    one_by_one = [float(fanout.row_distance(int(d), 2, kind)) for d in degrees.ravel()]
    np.testing.assert_array_equal(np.ravel(got), one_by_one)
    np.testing.assert_array_equal(got[0], 0.0)
    traced = jax.jit(lambda d, b: fanout.row_distance(d, b, kind))(degrees, 2)
    np.testing.assert_allclose(traced, got, rtol=1e-15)
    slope = jax.grad(lambda b: fanout.row_distance(degrees, b, kind).sum())(2.0)
    assert np.isfinite(slope)
    assert slope < 0


X = np.arange(12.0).reshape(6, 2)
BAD = [
    ("fan_out", 0),
    ("fan_out", -1),
    ("fan_out", 1.5),
    ("fan_out", True),
    ("features", X[:5]),
    ("features", X[:, 0]),
    ("features", np.where(X == 3, np.nan, X)),
    ("features", np.where(X == 3, np.inf, X)),
    ("features", [["a", "b"]] * 6),
    ("nodes", [0, 6]),
    ("nodes", [-1]),
    ("nodes", [1, 1]),
    ("nodes", []),
    ("nodes", [0.5]),
    ("nodes", np.ones(6, bool)),
    ("graph", "a graph"),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_bad_input_is_named(as_users_call, name, value):
    good = {"graph": graphs.cycle(6), "features": X, "fan_out": 1, "nodes": None}
    with pytest.raises(ValueError, match=f"^{name}: got"):
        fanout.neighbor_mean_moments(**{**good, name: value})
    with pytest.raises(ValueError, match=f"^{name}: got"):
        fanout.two_hop_variance(**{**good, name: value}, inner_fan_out=1)


def test_other_bad_input_is_named(as_users_call):
    for name, value in (("degree", -1), ("degree", 2.5), ("fan_out", 0), ("kind", "frobenius")):
        with pytest.raises(ValueError, match=f"^{name}: got"):
            fanout.row_distance(**{"degree": 3, "fan_out": 2, "kind": "trace", name: value})
    with pytest.raises(ValueError, match="did you mean 'trace'"):
        fanout.row_distance(3, 2, "trase")
    with pytest.raises(ValueError, match=r"^inner_fan_out: got 0"):
        fanout.two_hop_variance(graphs.cycle(6), X, 1, 0)
    with pytest.raises(ValueError, match=r"^features: got traced values"):
        jax.jit(lambda x: fanout.neighbor_mean_moments(graphs.cycle(6), x, 1))(X)
