"""Checked arguments of `advise`, and the candidates that it tries by default."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from boundlab.checks import check_integer, check_number, check_shape, fail
from boundlab.typing import Numbers, Scalar

SMALL_FAN_OUTS = (1, 2, 3, 5, 10, 15)
MOST_DEGREES = 0.95
LARGEST = 1e60
"""Of features and targets: the noise holds products of four of them."""
LARGEST_BUDGET = 2**63
LARGEST_FAN_OUT = 2**31 - 1


class Problem(NamedTuple):
    """What `advise` was asked, checked; notes say what the caller may not expect."""

    memory_budget: float
    features: Float[np.ndarray, "n r"]
    targets: Float[np.ndarray, "n K"]
    nodes: Int[np.ndarray, " train"]
    degrees: Int[np.ndarray, " train"]
    reachable: int
    """Training nodes and their neighbours, each once."""
    batch_sizes: tuple[int, ...]
    fan_outs: tuple[int, ...]
    notes: tuple[str, ...]


def check_arguments(
    graph: Any,
    memory_budget: Scalar,
    features: Numbers,
    targets: Numbers,
    train_nodes: Any,
    batch_sizes: Sequence[int] | None,
    fan_outs: Sequence[int] | None,
) -> Problem:
    """The arguments of `advise` as arrays, or a `ValueError` that names one."""
    if not (hasattr(graph, "num_nodes") and hasattr(graph, "to_edge_index")):
        accepted = "a Graph or DirectedGraph of boundlab.models.graphs"
        raise fail("graph", f"a {type(graph).__name__}", accepted)
    n = int(graph.num_nodes)
    if isinstance(memory_budget, int) and memory_budget >= LARGEST_BUDGET:
        raise fail("memory_budget", "an integer ≥ 2^63", "bytes > 0 and below 2^63")
    check_shape("memory_budget", memory_budget, ())
    check_number("memory_budget", memory_budget, 0, low_open=True, why="bytes")
    check_shape("features", features, (n, None), "one row a node")
    check_number("features", features, -LARGEST, LARGEST)
    check_shape("targets", targets, (n, None), "one row a node, one column an output")
    y = np.asarray(targets)
    if y.dtype.kind not in "iufb":
        raise fail("targets", f"values of type {y.dtype}", "real numbers")
    y = y.astype(np.float64)
    nodes = _train_nodes(graph, y) if train_nodes is None else _given_nodes(graph, train_nodes)
    check_number("targets", y[nodes], -LARGEST, LARGEST, why="on the training nodes")
    senders, receivers = np.asarray(graph.to_edge_index())
    degrees = np.bincount(receivers, minlength=n)[nodes]
    trained = np.zeros(n, dtype=bool)
    trained[nodes] = True
    reached = trained.copy()
    reached[senders[trained[receivers]]] = True
    return Problem(
        memory_budget=float(np.asarray(memory_budget)),
        features=np.asarray(features, dtype=np.float64),
        targets=y,
        nodes=nodes,
        degrees=degrees,
        reachable=int(reached.sum()),
        batch_sizes=_candidates(
            "batch_sizes",
            batch_sizes,
            len(nodes),
            _powers(len(nodes)),
            why="the number of training nodes",
        ),
        fan_outs=_candidates(
            "fan_outs", fan_outs, LARGEST_FAN_OUT, _default_fan_outs(degrees), why="2^31 − 1"
        ),
        notes=_notes(n, nodes, degrees, train_nodes is None),
    )


def _given_nodes(graph: Any, train_nodes: Any) -> Int[np.ndarray, " train"]:
    accepted = f"a list of distinct nodes from 0 to {graph.num_nodes - 1}, at least one"
    try:
        nodes = np.asarray(train_nodes)
    except (TypeError, ValueError) as error:
        raise fail("train_nodes", f"a {type(train_nodes).__name__}", accepted) from error
    if nodes.ndim != 1 or nodes.size == 0 or nodes.dtype.kind not in "iu":
        raise fail("train_nodes", f"{nodes.dtype} of shape {nodes.shape}", accepted)
    outside = (nodes < 0) | (nodes >= graph.num_nodes)
    if outside.any():
        raise fail("train_nodes", nodes[outside][0], accepted)
    if len(np.unique(nodes)) < len(nodes):
        raise fail("train_nodes", "a repeated node", accepted)
    labels = getattr(graph, "labels", None)
    if labels is not None and (np.asarray(labels)[nodes] < 0).any():
        unlabelled = nodes[np.asarray(labels)[nodes] < 0][0]
        raise fail("train_nodes", f"node {unlabelled}, which has no label", "labelled nodes")
    return nodes.astype(np.int64)


def _train_nodes(graph: Any, targets: Float[np.ndarray, "n K"]) -> Int[np.ndarray, " train"]:
    """All nodes that have a target: rows of zeros have none where all others are one-hot.

    In a single column 0 and 1 are numbers like others: there a zero is a target.
    """
    known = ~np.isnan(targets).any(axis=1)
    labels = getattr(graph, "labels", None)
    if labels is not None:
        known &= np.asarray(labels) >= 0
    one = (targets == 1.0).sum(axis=1) == 1
    zero = targets == 0.0
    one_hot = one & (zero.sum(axis=1) == targets.shape[1] - 1)
    empty = zero.all(axis=1)
    if targets.shape[1] > 1 and one_hot.any() and (one_hot | empty)[known].all():
        known &= one_hot
    if not known.any():
        raise fail("targets", "no node with a target", "at least one labelled node")
    return np.flatnonzero(known)


def _candidates(
    name: str, given: Sequence[int] | None, largest: int, default: tuple[int, ...], *, why: str
) -> tuple[int, ...]:
    if given is None:
        return default
    accepted = "a list of integers, at least one"
    try:
        values = list(given)
    except TypeError as error:
        raise fail(name, f"a {type(given).__name__}", accepted) from error
    if not values:
        raise fail(name, "an empty list", accepted)
    return tuple(sorted({check_integer(name, value, 1, largest, why=why) for value in values}))


def _powers(num_train: int) -> tuple[int, ...]:
    return (*(2**k for k in range((num_train - 1).bit_length())), num_train)


def _default_fan_outs(degrees: Int[np.ndarray, " train"]) -> tuple[int, ...]:
    """None between the degree that most nodes don't exceed and the largest: only hubs would notice."""
    largest = max(1, int(degrees.max()))
    usual = min(largest, float(np.quantile(degrees, MOST_DEGREES)))
    doubled = (25 * 2**k for k in range(largest.bit_length()))
    return (*(step for step in (*SMALL_FAN_OUTS, *doubled) if step < usual), largest)


def _notes(
    num_nodes: int, nodes: np.ndarray, degrees: np.ndarray, chosen_here: bool
) -> tuple[str, ...]:
    notes = []
    if chosen_here and len(nodes) < num_nodes:
        notes.append(f"{num_nodes - len(nodes)} nodes without a target are not trained on")
    isolated = int((degrees == 0).sum())
    if isolated:
        notes.append(
            f"{isolated} training nodes have no neighbours: mean aggregation gives them zeros"
        )
    return tuple(notes)
