"""A user's graph with features and targets, read from one .npz file.

Fields: `edges` (E, 2) of an undirected graph, or `senders` and `receivers` (E,) of a directed one (a
receiver aggregates its senders); `features` (n, r), or sparse rows as `feat_indptr` (n + 1,),
`feat_indices`, `num_features` and, unless they are all 1, `feat_values`; `labels` (n,), integers from 0
with −1 for unlabelled, or `targets` (n,) or (n, K), NaN for unlabelled; and, if wanted, `num_nodes` and
`train`, the nodes to train on (`planetoid_train` too, as in the citation graphs that ship with the
package). Others are ignored.
"""

import dataclasses
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from boundlab.checks import fail
from boundlab.models.graphs import DirectedGraph, Graph, from_directed_edges, from_edges

LARGEST = 2**29
"""Numbers in an array that is made dense (4 GiB)."""


class GraphFile(NamedTuple):
    """What `advise` needs to know of a graph."""

    graph: Graph | DirectedGraph
    features: Float[np.ndarray, "n r"]
    targets: Float[np.ndarray, "n K"]
    train_nodes: Int[np.ndarray, " train"] | None


def load_graph_file(path: Path) -> GraphFile:
    """Graph, features, targets and training nodes of an .npz file; nothing is unpickled.

    Labels become one-hot targets, unlabelled nodes zeros. Raises `ValueError` that names the file and
    the field.
    """
    fields = _read(path)
    try:
        features = _features(fields)
        num_nodes = len(features)
        if "num_nodes" in fields:
            given = _array(fields, "num_nodes", "iu", 0)
            if int(given) != num_nodes:
                raise fail("num_nodes", int(given), f"{num_nodes}, the rows of features")
        graph = _graph(fields, num_nodes)
        labels, targets = _targets(fields, num_nodes)
        if labels is not None:
            graph = dataclasses.replace(graph, labels=labels)
        train = next((name for name in ("train", "planetoid_train") if name in fields), None)
        nodes = None if train is None else _array(fields, train, "iu", 1).astype(np.int64)
        if nodes is not None and (nodes.size == 0 or nodes.min() < 0 or nodes.max() >= num_nodes):
            raise fail(str(train), nodes, f"nodes from 0 to {num_nodes - 1}, at least one")
    except ValueError as error:
        raise ValueError(f"{path}: field {error}") from error
    return GraphFile(graph, features, targets, nodes)


def _read(path: Path) -> dict[str, np.ndarray]:
    accepted = "an .npz file of plain arrays, as numpy.savez writes it"
    if not path.is_file():
        raise fail("advise", f"{path}, which is no file", accepted)
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            raise ValueError("a single array")
        with loaded as arrays:
            return {name: arrays[name] for name in arrays}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise fail("advise", f"{path}, which is none", accepted) from error


def _array(fields: Mapping[str, np.ndarray], name: str, kinds: str, dims: int) -> np.ndarray:
    """One field, of the wanted kinds and number of dimensions."""
    if name not in fields:
        raise fail(name, f"none among {', '.join(sorted(fields)) or 'no fields'}", "an array")
    array = fields[name]
    if array.dtype.kind not in kinds or array.ndim != dims:
        number = "integers" if kinds == "iu" else "numbers"
        raise fail(name, f"{array.dtype} of shape {array.shape}", f"{number}, {dims} dimensions")
    return array


def _features(fields: Mapping[str, np.ndarray]) -> Float[np.ndarray, "n r"]:
    if "features" in fields or "feat_indptr" not in fields:
        features = _array(fields, "features", "iuf", 2).astype(np.float64)
        if 0 in features.shape:
            raise fail("features", f"shape {features.shape}", "one row a node, one column or more")
        return features
    start = _array(fields, "feat_indptr", "iu", 1).astype(np.int64)
    column = _array(fields, "feat_indices", "iu", 1).astype(np.int64)
    width = int(_array(fields, "num_features", "iu", 0))
    rows = max(1, len(start) - 1)
    if not 1 <= width <= LARGEST // rows:
        accepted = f"from 1 to {LARGEST // rows} columns, as they are made dense"
        raise fail("num_features", width, accepted)
    if len(start) < 2 or start[0] != 0 or start[-1] != len(column) or (np.diff(start) < 0).any():
        raise fail("feat_indptr", f"{len(start)} entries", f"0 … {len(column)}, never decreasing")
    if column.size and not 0 <= column.min() <= column.max() < width:
        raise fail("feat_indices", f"{column.min()} … {column.max()}", f"columns below {width}")
    value: Any = 1.0
    if "feat_values" in fields:
        value = _array(fields, "feat_values", "iuf", 1).astype(np.float64)
        if len(value) != len(column):
            raise fail("feat_values", f"{len(value)} entries", f"{len(column)}, as feat_indices")
    features = np.zeros((len(start) - 1, width))
    features[np.repeat(np.arange(len(features)), np.diff(start)), column] = value
    return features


def _graph(fields: Mapping[str, np.ndarray], num_nodes: int) -> Graph | DirectedGraph:
    if "edges" in fields or "senders" not in fields:
        return from_edges(_array(fields, "edges", "iu", 2), num_nodes)
    senders, receivers = (_array(fields, name, "iu", 1) for name in ("senders", "receivers"))
    return from_directed_edges(senders, receivers, num_nodes)


def _targets(
    fields: Mapping[str, np.ndarray], num_nodes: int
) -> tuple[Int[np.ndarray, " n"] | None, Float[np.ndarray, "n K"]]:
    """Labels if there are any, and targets: those given, or the labels one-hot."""
    labels = None
    if "labels" in fields or "targets" not in fields:
        labels = _array(fields, "labels", "iu", 1).astype(np.int64)
        if len(labels) != num_nodes or labels.min() < -1 or labels.max() < 0:
            got = f"{len(labels)} entries from {labels.min()} to {labels.max()}"
            raise fail("labels", got, f"{num_nodes} integers ≥ −1, one of them ≥ 0")
    if "targets" not in fields:
        assert labels is not None
        if labels.max() >= LARGEST // num_nodes:
            accepted = f"integers from −1 to {LARGEST // num_nodes - 1}, as classes become columns"
            raise fail("labels", labels.max(), accepted)
        return labels, (labels[:, None] == np.arange(labels.max() + 1)).astype(np.float64)
    given = fields["targets"]
    targets = _array(fields, "targets", "iuf", 1 if given.ndim == 1 else 2).astype(np.float64)
    if given.shape[0] != num_nodes or 0 in given.shape:
        raise fail("targets", f"shape {given.shape}", f"one row for each of {num_nodes} nodes")
    return labels, targets.reshape(num_nodes, -1)
