"""Checks of the arguments of `boundlab.models.training.train`, and the form its program takes them in."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from boundlab.checks import (
    check_choice,
    check_integer,
    check_key,
    check_number,
    check_range_of,
    check_shape,
    fail,
)
from boundlab.models.aggregation import check_features, node_ids
from boundlab.models.batch_sampling import clamped
from boundlab.models.gnn import full_blocks, make_network
from boundlab.models.graph_layout import graph_layout
from boundlab.models.neighborhoods import neighborhoods
from boundlab.precision import is_traced

LOSSES = ("batch", "sampled", "full", "validation")


class Settings(NamedTuple):
    """What is static in a program."""

    network: Any
    loss: str
    optimizer: str
    batches: str
    num_steps: int
    record: tuple[str, ...]
    record_every: int
    max_batch_size: int
    max_fan_out: int
    whole_graph: bool
    """All neighbours are taken, and through the whole graph."""
    measure: Any
    """What else to record of the outputs of all nodes, or None."""


def prepare(
    *,
    key: Any,
    graph: Any,
    features: Any,
    targets: Any,
    train_nodes: Any,
    network: Any,
    loss: str,
    optimizer: str,
    step_size: Any,
    batch_size: Any,
    fan_out: Any,
    num_steps: Any,
    batches: str,
    validation_nodes: Any,
    initial_params: Any,
    max_batch_size: Any,
    max_fan_out: Any,
    record: Any,
    record_every: Any,
    measure: Any,
) -> dict[str, Any]:
    """Checked arguments of the compiled loop, or a `ValueError` that names the bad one."""
    check_key("key", key)
    layout, lists = graph_layout(graph), neighborhoods(graph)
    num_nodes = graph.num_nodes
    features = check_features(features, num_nodes)
    dtype = features.dtype
    train_nodes = _nodes("train_nodes", train_nodes, num_nodes)
    if validation_nodes is not None:
        validation_nodes = _nodes("validation_nodes", validation_nodes, num_nodes)
    check_choice("loss", loss, ("mse", "cross_entropy"))
    targets = _targets(targets, num_nodes, (train_nodes, validation_nodes), loss, dtype)
    module = make_network(network, targets.shape[1])
    check_choice("optimizer", optimizer, ("sgd", "adam"))
    check_choice("batches", batches, ("fresh", "epoch"))
    check_shape("step_size", step_size, ())
    check_number("step_size", step_size, 0, low_open=True)
    check_range_of("step_size", step_size, dtype, positive=True)
    num_steps = check_integer("num_steps", num_steps, 1, 2**31 - 1)
    record_every = check_integer("record_every", record_every, 1, num_steps)
    if num_steps % record_every:
        raise fail("record_every", record_every, f"a divisor of num_steps = {num_steps}")
    if isinstance(record, str) or not isinstance(record, Iterable):
        raise fail("record", repr(record), "a tuple of names of losses")
    record = tuple(record)
    for name in record:
        check_choice("record", name, LOSSES)
    if not (measure is None or callable(measure)):
        raise fail("measure", f"a {type(measure).__name__}", "a function of the outputs, or None")
    num_train, largest = train_nodes.shape[0], int(layout.in_degrees.max())
    why = f"{num_train} train nodes"
    batch_size, most = _size(
        "batch_size", batch_size, "max_batch_size", max_batch_size, 1, num_train, why
    )
    # More slots than the largest degree would stay empty.
    if not is_traced(fan_out):
        fan_out = min(check_integer("fan_out", fan_out, 0), largest)
    if max_fan_out is not None:
        max_fan_out = min(check_integer("max_fan_out", max_fan_out, 0), largest)
    fan_out, widest = _size("fan_out", fan_out, "max_fan_out", max_fan_out, 0, None, "")
    all_neighbors = max_fan_out is None and widest == largest
    whole_graph = all_neighbors and getattr(module, "whole_graph_limit", False)
    if getattr(module, "first_aggregation", None) is None or module.num_layers > 1:
        # Little is known beforehand: only where the batches' own neighbourhoods are no smaller.
        rows = most * (1 + largest) ** (module.num_layers - 1)
        whole_graph = whole_graph and rows * largest >= lists.indices.shape[0]
    wanted = _wanted_params(module, layout, features, targets.shape[1])
    settings = Settings(
        network=module,
        loss=loss,
        optimizer=optimizer,
        batches=batches,
        num_steps=num_steps,
        record=record,
        record_every=record_every,
        max_batch_size=most,
        max_fan_out=widest,
        whole_graph=bool(whole_graph),
        measure=measure,
    )
    return {
        "key": key,
        "lists": lists,
        "layout": layout,
        "features": features,
        "targets": targets,
        "train_nodes": train_nodes,
        "validation_nodes": validation_nodes,
        "step_size": jnp.asarray(step_size).astype(dtype),
        "batch_size": clamped(batch_size, 1, most),
        "fan_out": clamped(fan_out, 0, widest),
        "initial_params": _params(initial_params, wanted, dtype),
        "settings": settings,
    }


def _nodes(name: str, value: Any, num_nodes: int) -> jax.Array:
    """Distinct node ids, at least one."""
    nodes = node_ids(name, value, (None,), num_nodes - 1)
    if nodes.shape[0] == 0:
        raise fail(name, "none", "at least one node")
    if not is_traced(nodes) and len(np.unique(np.asarray(nodes))) < nodes.shape[0]:
        raise fail(name, "repeated nodes", "distinct nodes")
    return nodes


def _targets(
    targets: Any, num_nodes: int, used: tuple[jax.Array | None, ...], loss: str, dtype: Any
) -> jax.Array:
    """Targets (n, K) in the features' dtype, of which only the rows `used` are looked at."""
    check_shape("targets", targets, (num_nodes, None), "one row a node")
    if loss == "cross_entropy" and np.shape(targets)[1] < 2:
        raise fail("targets", "one column", "at least two, for the cross-entropy of classes")
    if is_traced(targets):
        check_number("targets", targets)
        return jnp.asarray(targets).astype(dtype)
    array = np.asarray(targets)
    for nodes in used:
        if nodes is not None and not is_traced(nodes):
            rows = array[np.asarray(nodes)]
            check_number("targets", rows, 0 if loss == "cross_entropy" else -np.inf)
            check_range_of("targets", rows, dtype)
            if loss == "cross_entropy":
                _check_sums(rows.astype(np.float64).sum(axis=1), np.asarray(nodes))
    with np.errstate(over="ignore"):  # in rows that are never read
        return jnp.asarray(array.astype(dtype))


def _check_sums(sums: np.ndarray, nodes: np.ndarray) -> None:
    """Refuse rows of targets whose sum is not 1, to the rounding of a coarse type."""
    bad = np.abs(sums - 1) > 1e-3
    if bad.any():
        got, node = sums[bad][0], nodes[bad][0]
        what = "zeros only (unlabelled?)" if got == 0 else f"sum {got:g}"
        accepted = "rows of sum 1, with loss 'cross_entropy'"
        raise fail("targets", f"a row with {what} at node {node}", accepted)


def _size(
    name: str, value: Any, bound: str, most: Any, low: int, high: int | None, why: str
) -> tuple[Any, int]:
    """A size and its static bound."""
    if most is not None:
        most = check_integer(bound, most, max(low, 1) if name == "batch_size" else 0)
        most = most if high is None else min(most, high)
    if not is_traced(value):
        limit = high if most is None else most
        value = check_integer(name, value, low, limit, why=why if most is None else bound)
        return value, value if most is None else most
    if most is None:
        raise fail(name, "a traced value", f"an integer, or {bound} besides")
    if value.shape or not jnp.issubdtype(value.dtype, jnp.integer):
        raise fail(name, f"a traced {value}", "one integer")
    return value, most


def _wanted_params(module: Any, layout: Any, features: jax.Array, num_outputs: int) -> Any:
    """Shapes of the network's parameters; refuses one that has not one output a column of targets."""
    key = jax.ShapeDtypeStruct((), jax.random.key(0, impl="threefry2x32").dtype)
    blocks = full_blocks(layout, module.num_layers)
    outputs, params = jax.eval_shape(module.init_with_output, key, blocks, features)
    expected = (features.shape[0], num_outputs)
    if getattr(outputs, "shape", None) != expected:
        got = getattr(outputs, "shape", f"a {type(outputs).__name__}")
        accepted = f"{expected}, one column for each of targets"
        raise fail("network", f"outputs of shape {got} on the whole graph", accepted)
    return params


def _params(params: Any, wanted: Any, dtype: Any) -> Any:
    """Initial parameters in the structure and shapes `wanted`, of type `dtype`; None stays None."""
    if params is None:
        return None
    given, shapes = jax.tree.leaves(params), jax.tree.leaves(wanted)
    structure: Any = jax.tree.structure(wanted)
    bare = len(shapes) == 1 and jax.tree_util.treedef_is_leaf(jax.tree.structure(params))
    same = bare or jax.tree.structure(params) == structure
    if not same or any(np.shape(g) != s.shape for g, s in zip(given, shapes, strict=True)):
        got = jax.tree.map(np.shape, params)
        raise fail("initial_params", got, str(jax.tree.map(lambda s: s.shape, wanted)))
    for leaf in given:
        check_number("initial_params", leaf)
        check_range_of("initial_params", leaf, dtype)
    leaves = [jnp.asarray(leaf).astype(dtype) for leaf in given]
    return jax.tree.unflatten(structure, leaves)
