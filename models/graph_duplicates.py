"""Graphs that occur twice: within a set, or across a training and a test set."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Bool

from boundlab.checks import check_number, fail


def duplicates(train: Any, test: Any) -> Bool[np.ndarray, " test"]:
    """Whether each graph of `test` equals some graph of `train`, entry for entry.

    Graphs are compared as labelled ones: the same graph with its nodes in another order is another
    one, and so is one with more places for nodes. Trim padded graphs, or pad all alike.

    Args:
        train: Adjacency matrices, a sequence or an array (m, n, n); real numbers or bool.
        test: The same; sizes may vary in both.

    Returns:
        (len(test),) bool.

    Raises:
        ValueError: naming `train` or `test`.

    """
    known = set(_labels("train", train))
    return np.array([label in known for label in _labels("test", test)], bool)


def count_distinct(graphs: Any) -> int:
    """Number of different labelled graphs among `graphs`, compared as in `duplicates`."""
    return len(set(_labels("graphs", graphs)))


def _labels(name: str, graphs: Any) -> list[tuple[int, bytes]]:
    """Size and entries of each matrix, as something that can be looked up."""
    if not isinstance(graphs, Iterable) or isinstance(graphs, str | bytes | dict):
        raise fail(name, f"a {type(graphs).__name__}", "a sequence of adjacency matrices")
    found = []
    for place, graph in enumerate(graphs):
        shape = np.shape(graph)
        if len(shape) != 2 or shape[0] != shape[1]:
            raise fail(f"{name}[{place}]", f"shape {shape}", "a square adjacency matrix")
        matrix = np.asarray(graph)
        if matrix.dtype.kind not in "bui" and not (
            matrix.dtype.kind == "f" and np.isfinite(matrix).all()
        ):
            check_number(f"{name}[{place}]", matrix)  # says what is wrong
        # Adding 0 makes −0 a 0, which the bytes would tell apart.
        found.append((shape[0], (matrix.astype(np.float64) + 0.0).tobytes()))
    return found
