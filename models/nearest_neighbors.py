"""Neighbourhood graphs of points, and the handwritten digits with theirs.

Source of the digits: the test part of [alpaydin1998cascading], as scikit-learn ships it.
"""

import dataclasses
from importlib import resources
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from boundlab.checks import check_integer, check_number, check_shape, fail
from boundlab.models.directed_graphs import DirectedGraph, from_directed_edges
from boundlab.precision import is_traced
from boundlab.typing import Count

_BLOCK = 512  # rows of the distance matrix at a time


def nearest_neighbors(points: Any, num_neighbors: Count) -> DirectedGraph:
    """Directed graph: the in-neighbours of each point are its k nearest others, Euclidean.

    Exact; of equally near points the ones of lower number are taken. Time grows with n².

    Args:
        points: (n, r).
        num_neighbors: k in 0 … n − 1, the in-degree of every node.

    Raises:
        ValueError: Naming the argument.
    """
    if is_traced(points):
        raise fail("points", "traced values", "concrete numbers: build graphs outside jit")
    check_shape("points", points, (None, None), "one row a point")
    check_number("points", points)
    points = np.asarray(points, dtype=np.float64)
    n = len(points)
    k = check_integer("num_neighbors", num_neighbors, 0, n - 1)
    senders = np.empty((n, k), np.int64)
    for first in range(0, n, _BLOCK):
        rows = np.arange(first, min(first + _BLOCK, n))
        distance = cdist(points[rows], points, "sqeuclidean")
        distance[rows - first, rows] = np.inf
        senders[rows] = np.argsort(distance, axis=1, kind="stable")[:, :k]
    return from_directed_edges(senders.ravel(), np.repeat(np.arange(n), k), n)


def digits(num_neighbors: Count = 24) -> DirectedGraph:
    """1,797 handwritten digits (8 × 8 pixels) with their nearest neighbours in pixel space.

    `features` (1797, 64) float32 in [0, 1] (pixels / 16), `labels` the ten digits. The graph is made
    from the pixels alone. Share of neighbours of the same digit: .979, .965, .927 for k = 5, 10, 24.

    Raises:
        ValueError: Naming `num_neighbors`.
    """
    source = resources.files("boundlab.models").joinpath("data", "digits.npz")
    with source.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        images, labels = arrays["images"], arrays["labels"]
    pixels = images.reshape(len(images), -1).astype(np.float32)
    return dataclasses.replace(
        nearest_neighbors(pixels, num_neighbors),
        features=pixels / np.float32(16),
        labels=labels.astype(np.int64),
        class_names=tuple(str(digit) for digit in range(10)),
    )
