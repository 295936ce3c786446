"""Neighbourhood graphs against scikit-learn; the digits that ship with the package."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.neighbors import kneighbors_graph

from boundlab.models import graphs


@pytest.fixture(scope="module")
def digits():
    return graphs.digits()


def test_neighbors_of_scikit_learn():
    points = np.random.default_rng(4).standard_normal((700, 3))
    graph = graphs.nearest_neighbors(points, 6)
    theirs = kneighbors_graph(points, 6, include_self=False).toarray()
    np.testing.assert_array_equal(graph.adjacency(), theirs)
    np.testing.assert_array_equal(graph.degrees(), 6)


def test_ties_go_to_the_lower_number():
    """Points 0, 1, 2, 3 on a line, the last one twice."""
    table = graphs.nearest_neighbors([[0.0], [1.0], [2.0], [3.0], [3.0]], 2).neighbor_table()
    assert table.index.tolist() == [[1, 2], [0, 2], [1, 3], [2, 4], [2, 3]]


@pytest.mark.smoke
def test_digits_are_those_of_scikit_learn(digits):
    reference = load_digits()
    np.testing.assert_array_equal(16 * digits.features, reference.data)
    np.testing.assert_array_equal(digits.labels, reference.target)
    assert digits.features.dtype == np.float32
    assert digits.class_names == tuple("0123456789")


def test_neighbors_of_digits_are_mostly_the_same_digit(digits):
    """Shares of the study's page; a neighbour is no farther than any node that is none."""
    senders, receivers = digits.to_edge_index()
    assert round(float(np.mean(digits.labels[senders] == digits.labels[receivers])), 3) == 0.927
    np.testing.assert_array_equal(digits.degrees(), 24)
    node = 1000
    distance = np.sum((digits.features - digits.features[node]) ** 2, axis=1)
    chosen = senders[receivers == node]
    others = np.setdiff1d(np.arange(1797), [*chosen, node])
    assert distance[chosen].max() <= distance[others].min()


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("points", "k", "match"),
    [
        (np.zeros((3, 2)), 3, "num_neighbors: got 3"),
        (np.zeros((3, 2)), -1, "num_neighbors: got -1"),
        (np.zeros(3), 1, "points: got shape"),
        (np.full((3, 2), np.nan), 1, "points: got nan"),
        (None, 1, "points"),
    ],
)
def test_bad_arguments_are_refused(points, k, match):
    with pytest.raises(ValueError, match=match):
        graphs.nearest_neighbors(points, k)
