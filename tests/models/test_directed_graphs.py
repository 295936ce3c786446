"""`DirectedGraph`: edges point, repeats count once, conversions agree with networkx."""

import networkx
import numpy as np
import pytest

from boundlab.models import graphs
from boundlab.models.neighborhoods import neighborhoods


@pytest.fixture
def small():
    """0 → 1, 2 → 1, 1 → 2, 3 → 0; node 4 is isolated."""
    return graphs.from_directed_edges([2, 0, 1, 3, 0], [1, 1, 2, 0, 1], 5)


@pytest.mark.smoke
def test_edges_point_and_count_once(small):
    assert small.num_edges == 4
    assert small.edges().tolist() == [[0, 1], [1, 2], [2, 1], [3, 0]]
    assert small.to_edge_index().tolist() == [[3, 0, 2, 1], [0, 1, 1, 2]]
    assert small.degrees().tolist() == [1, 2, 1, 0, 0]
    assert small.out_degrees().tolist() == [1, 1, 1, 1, 0]
    with pytest.raises(ValueError, match="read-only"):
        small.pairs[0, 0] = 3


def test_rows_of_the_table_and_of_the_lists_are_in_neighbors(small):
    table = small.neighbor_table()
    assert table.index.tolist() == [[3, 0], [0, 2], [1, 2], [3, 3], [4, 4]]
    assert table.mask.sum(axis=1).tolist() == [1, 2, 1, 0, 0]
    lists = neighborhoods(small)
    assert lists.indptr.tolist() == [0, 1, 3, 4, 4, 4]
    assert lists.indices.tolist() == [3, 0, 2, 1]


def test_networkx_has_the_same_edges(small):
    theirs = small.to_networkx()
    assert isinstance(theirs, networkx.DiGraph)
    assert sorted(theirs.edges()) == [tuple(e) for e in small.edges().tolist()]
    np.testing.assert_array_equal(small.adjacency().T, networkx.to_numpy_array(theirs))
    assert [d for _, d in theirs.in_degree()] == small.degrees().tolist()


def test_both_directions_are_the_undirected_graph():
    undirected = graphs.from_edges([(0, 3), (1, 2), (1, 3), (0, 1)], 5)
    both = graphs.from_directed_edges(*undirected.to_edge_index(), 5)
    np.testing.assert_array_equal(both.to_edge_index(), undirected.to_edge_index())
    np.testing.assert_array_equal(both.degrees(), undirected.degrees())
    np.testing.assert_array_equal(undirected.out_degrees(), undirected.degrees())
    np.testing.assert_array_equal(both.adjacency(), undirected.adjacency())


def test_node_data_are_checked_as_in_graph(small):
    data = graphs.DirectedGraph(
        5,
        small.edges(),
        features=np.ones((5, 2)),
        labels=np.array([0, 1, -1, 0, 0]),
        class_names=("a", "b"),
        splits={"train": np.array([0, 1])},
    )
    assert data.splits["train"].tolist() == [0, 1]
    assert data.to_graphs_tuple().receivers.tolist() == [0, 1, 1, 2]
    with pytest.raises(ValueError, match="features: got nan"):
        graphs.DirectedGraph(5, small.edges(), features=np.full((5, 2), np.nan))
    with pytest.raises(ValueError, match="pairs: got a self-loop at node 2"):
        graphs.DirectedGraph(5, np.array([[2, 2]]))


def test_no_edges():
    graph = graphs.from_directed_edges([], [], 2)
    assert (graph.num_edges, graph.degrees().tolist()) == (0, [0, 0])
    assert graph.neighbor_table().index.shape == (2, 0)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("senders", "receivers", "num_nodes", "match"),
    [
        ([0, 2], [1, 2], 3, "^receivers: got a self-loop at node 2"),
        ([0], [3], 3, "^receivers: got 3"),
        ([-1], [0], 3, "^senders: got -1"),
        ([0], [1, 2], 3, "^receivers: got 2 nodes, expected as many as senders, 1"),
        ([0.5], [1], 3, "^senders: got float64"),
        (None, [1], 3, "^senders"),
        ([0], [[1]], 3, "^receivers"),
        ([0], [1], 0, "^num_nodes"),
        ([0], [1], 10**30, "^num_nodes: got 1000"),
    ],
)
def test_bad_edges_are_refused(senders, receivers, num_nodes, match):
    with pytest.raises(ValueError, match=match):
        graphs.from_directed_edges(senders, receivers, num_nodes)
