"""`Graph`: constructors, conversions and refusals, against networkx and hand counts."""

import jax.numpy as jnp
import networkx
import numpy as np
import pytest

from boundlab.models import graphs

FAMILIES = {
    "cycle": (graphs.cycle(7), networkx.cycle_graph(7)),
    "path": (graphs.path(6), networkx.path_graph(6)),
    "star": (graphs.star(5), networkx.star_graph(4)),
    "complete": (graphs.complete(5), networkx.complete_graph(5)),
    "single": (graphs.path(1), networkx.empty_graph(1)),
}


@pytest.mark.smoke
@pytest.mark.parametrize("name", FAMILIES)
def test_family_has_the_edges_of_networkx(name):
    graph, reference = FAMILIES[name]
    assert graph.num_nodes == reference.number_of_nodes()
    assert [tuple(e) for e in graph.edges().tolist()] == sorted(
        tuple(sorted(e)) for e in reference.edges()
    )
    np.testing.assert_array_equal(graph.adjacency(), networkx.to_numpy_array(reference))
    assert graph.is_connected()


def test_hypercube_is_a_product_of_edges():
    graph = graphs.hypercube(4)
    assert (graph.num_nodes, graph.num_edges) == (16, 32)
    assert networkx.is_isomorphic(graph.to_networkx(), networkx.hypercube_graph(4))
    assert graphs.hypercube(np.int64(0)).num_nodes == 1


def test_edges_are_sorted_unique_and_read_only():
    graph = graphs.from_edges([(3, 1), (0, 2), (1, 3), (0, 1), (0, 1)], 5)
    assert graph.edges().tolist() == [[0, 1], [0, 2], [1, 3]]
    assert graph.degrees().tolist() == [2, 2, 1, 1, 0]
    with pytest.raises(ValueError, match="read-only"):
        graph.edges()[0, 0] = 4
    assert graphs.from_edges([], 3).adjacency().sum() == 0
    assert graphs.from_edges(np.zeros((0, 2), np.int32), 3).num_edges == 0


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("edges", "num_nodes", "match"),
    [
        ([(0, 1), (2, 2)], 3, "edges: got a self-loop at node 2"),
        ([(0, 3)], 3, "edges: got node 3"),
        ([(-1, 0)], 3, "edges: got node -1"),
        ([(0.0, 1.0)], 3, "edges"),
        ([(0, 1, 2)], 3, "edges"),
        ([(0, 1)], 0, "num_nodes"),
        ([(0, 1)], True, "num_nodes"),
        (None, 3, "edges: got a NoneType"),
        (5, 3, "edges: got a int"),
        ([(0, 1), (2,)], 3, "edges: got a list of something else"),
        ("ab", 3, "edges"),
        ([("a", "b")], 3, "edges"),
        ([[], [], []], 3, "edges: got float64 of shape"),
        (np.zeros((2, 0), np.int64), 3, "edges"),
        (np.array([[1, 2]], "timedelta64[s]"), 3, "edges"),
        (np.array([[0, 2**64 - 1]], np.uint64), 3, "edges: got node 18446744073709551615"),
        (networkx.path_graph(3), 3, "edges"),
    ],
)
def test_bad_edges_are_refused(edges, num_nodes, match):
    with pytest.raises(ValueError, match=match):
        graphs.from_edges(edges, num_nodes)


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: graphs.cycle(2), "n: got 2"),
        (lambda: graphs.path(0), "n: got 0"),
        (lambda: graphs.star(-1), "n: got -1"),
        (lambda: graphs.complete(True), "n: got True"),
        (lambda: graphs.hypercube(-1), "q: got -1"),
    ],
)
def test_bad_sizes_are_refused(build, match):
    with pytest.raises(ValueError, match=match):
        build()


@pytest.mark.usefixtures("as_users_call")
def test_a_graph_made_directly_is_checked_and_sorted():
    given = np.array([[2, 1], [1, 0], [1, 2]])
    features = np.ones((3, 2))
    graph = graphs.Graph(np.int64(3), given, features, labels=[0, 1, -1], splits={"train": [2]})
    assert graph.pairs.tolist() == [[0, 1], [1, 2]]
    assert type(graph.num_nodes) is int
    given[:], features[:] = 0, 7.0
    assert graph.pairs.tolist() == [[0, 1], [1, 2]]
    assert graph.features.tolist() == [[1.0, 1.0]] * 3
    for array in (graph.pairs, graph.features, graph.labels, graph.splits["train"]):
        assert not array.flags.writeable


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"pairs": [[2, 1], [0, 0]]}, "pairs: got a self-loop at node 0"),
        ({"pairs": [[0, 3]]}, "pairs: got node 3"),
        ({"pairs": None}, "pairs: got a NoneType"),
        ({"num_nodes": 0}, "num_nodes: got 0"),
        ({"features": np.ones((2, 4))}, r"features: got shape \(2, 4\)"),
        ({"features": np.full((3, 1), np.nan)}, "features: got nan"),
        ({"labels": np.arange(2)}, "labels: got shape"),
        ({"labels": np.array([0, 1, -2])}, "labels: got -2"),
        ({"labels": np.ones(3)}, "labels: got float64"),
        ({"splits": {"train": np.array([3])}}, r"splits\['train'\]: got 3"),
        ({"splits": {"train": [[1], [1, 2]]}}, r"splits\['train'\]: got a list"),
        ({"splits": [1]}, "splits: got a list"),
        ({"class_names": None}, "class_names: got a NoneType"),
    ],
)
def test_a_graph_made_wrongly_is_refused(fields, match):
    with pytest.raises(ValueError, match=match):
        graphs.Graph(**({"num_nodes": 3, "pairs": [[0, 1]]} | fields))


@pytest.mark.parametrize("bad", [None, np.eye(3), networkx.path_graph(3), [(0, 1)]])
def test_what_is_no_graph_is_refused(bad):
    for call in (graphs.largest_component, lambda graph: graphs.breadth_first_piece(graph, 1)):
        with pytest.raises(ValueError, match=r"graph: got a .*from_networkx"):
            call(bad)


def test_neighbor_table_lists_neighbours_and_pads_with_the_node():
    graph = graphs.from_edges([(0, 1), (0, 2), (0, 4), (1, 2)], 5)
    index, mask = graph.neighbor_table()
    assert index.tolist() == [[1, 2, 4], [0, 2, 1], [0, 1, 2], [3, 3, 3], [0, 4, 4]]
    assert mask.sum(axis=1).tolist() == [3, 2, 2, 0, 1]
    signal = np.arange(5.0) + 1
    np.testing.assert_allclose((signal[index] * mask).sum(axis=1), graph.adjacency() @ signal)
    assert graphs.from_edges([], 2).neighbor_table().index.shape == (2, 0)


def test_edge_index_and_graphs_tuple_hold_both_directions():
    graph = graphs.star(4)
    assert graph.to_edge_index().tolist() == [[1, 2, 3, 0, 0, 0], [0, 0, 0, 1, 2, 3]]
    packed = graph.to_graphs_tuple()
    assert (packed.n_node.tolist(), packed.n_edge.tolist()) == ([4], [6])
    received = jnp.zeros(4, jnp.int32).at[packed.receivers].add(1)
    np.testing.assert_array_equal(received, graph.degrees())
    assert packed.nodes is None


def test_networkx_round_trip_keeps_node_numbers():
    reference = networkx.Graph([(2, 0), (1, 2), (4, 3)])  # met in the order 2, 0, 1, 4, 3
    graph = graphs.from_networkx(reference)
    assert graph.edges().tolist() == [[0, 2], [1, 2], [3, 4]]
    back = graph.to_networkx()
    assert set(map(frozenset, back.edges)) == set(map(frozenset, reference.edges))
    named = graphs.from_networkx(networkx.Graph([("b", "a"), ("a", "c")]))
    assert named.edges().tolist() == [[0, 1], [1, 2]]
    assert graphs.from_networkx(networkx.MultiGraph([(0, 1), (0, 1)])).num_edges == 1


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.float64, bool])
def test_networkx_nodes_of_every_type_of_number_keep_their_numbers(dtype):
    pairs = [(1, 0)] if dtype is bool else [(2, 0), (0, 1), (4, 3)]
    reference = networkx.Graph([(dtype(u), dtype(v)) for u, v in pairs])
    expected = [[0, 1]] if dtype is bool else [[0, 1], [0, 2], [3, 4]]
    assert graphs.from_networkx(reference).edges().tolist() == expected


@pytest.mark.parametrize(
    "bad",
    [
        networkx.DiGraph([(0, 1)]),
        networkx.Graph([(0, 0)]),
        networkx.Graph(),
        None,
        np.eye(3),
        [(0, 1)],
        graphs.cycle(3),
    ],
)
def test_networkx_graphs_that_are_not_simple_are_refused(bad):
    with pytest.raises(ValueError, match=r"^g:"):
        graphs.from_networkx(bad)


def test_largest_component_and_piece_agree_with_networkx():
    reference = networkx.gnm_random_graph(60, 55, seed=1)
    graph = graphs.from_networkx(reference)
    assert not graph.is_connected()
    nodes = sorted(max(networkx.connected_components(reference), key=len))
    component = graphs.largest_component(graph)
    np.testing.assert_array_equal(
        component.adjacency(), networkx.to_numpy_array(reference, nodelist=nodes)
    )
    piece = graphs.breadth_first_piece(component, 12, root=3)
    order = [
        3,
        *(v for _, v in networkx.bfs_edges(component.to_networkx(), 3, sort_neighbors=sorted)),
    ]
    np.testing.assert_array_equal(
        piece.adjacency(), component.adjacency()[np.ix_(order[:12], order[:12])]
    )
    assert piece.is_connected()
    with pytest.raises(ValueError, match="num_nodes"):
        graphs.breadth_first_piece(graph, 60, root=nodes[0])
    with pytest.raises(ValueError, match="root"):
        graphs.breadth_first_piece(graph, 2, root=60)


def test_equally_large_components_give_the_one_with_the_smallest_node():
    graph = graphs.from_edges([(1, 3), (0, 2), (4, 5)], 7)
    labelled = graphs.Graph(
        7, graph.edges(), labels=np.arange(7), splits={"train": np.array([2, 4])}
    )
    component = graphs.largest_component(labelled)
    assert component.labels.tolist() == [0, 2]
    assert component.splits["train"].tolist() == [1]
    with pytest.raises(ValueError, match="nodes"):
        graph.induced([0, 0])
    for bad in ([7], [-1], [], [[1], [1, 2]], [0.5], 3, None):
        with pytest.raises(ValueError, match="nodes: got"):
            graph.induced(bad)


def test_cora():
    graph = graphs.planetoid("cora")
    assert (graph.num_nodes, graph.num_edges) == (2708, 5278)
    assert graph.features.shape == (2708, 1433)
    assert graph.features.dtype == np.float32
    assert set(np.unique(graph.features)) == {0.0, 1.0}
    assert graph.features.sum() == 49216
    assert graph.splits == {}
    assert len(graph.class_names) == 7
    first, second = graph.labels[graph.edges().T]
    assert round(float((first == second).mean()), 2) == 0.81  # edge homophily, as published
    component = graphs.largest_component(graph)
    assert (component.num_nodes, component.num_edges) == (2485, 5069)
    assert component.is_connected()
    piece = graphs.breadth_first_piece(component, 512)
    assert piece.is_connected()
    assert piece.features.shape == (512, 1433)


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "features", "largest", "isolated", "homophily"),
    [
        ("citeseer", 3327, 4552, 3703, 99, 48, 0.74),
        ("pubmed", 19717, 44324, 500, 171, 0, 0.80),
    ],
)
def test_citeseer_and_pubmed(name, nodes, edges, features, largest, isolated, homophily):
    graph = graphs.planetoid(name)
    assert (graph.num_nodes, graph.num_edges) == (nodes, edges)
    assert graph.features.shape == (nodes, features)
    degrees = graph.degrees()
    assert (degrees.max(), (degrees == 0).sum()) == (largest, isolated)
    first, second = graph.labels[graph.edges().T]
    assert round(float((first == second).mean()), 2) == homophily
    classes = len(graph.class_names)
    assert {k: len(v) for k, v in graph.splits.items()} == {
        "train": 20 * classes,
        "val": 500,
        "test": 1000,
    }
    assert len(np.unique(np.concatenate(list(graph.splits.values())))) == 20 * classes + 1500
    np.testing.assert_array_equal(np.bincount(graph.labels[graph.splits["train"]]), 20)


def test_unknown_citation_graph_is_refused_with_the_near_name():
    with pytest.raises(ValueError, match=r"name: got 'core'.*did you mean 'cora'"):
        graphs.planetoid("core")
