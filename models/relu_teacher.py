"""One ReLU unit that learns a ReLU teacher through sampled neighbourhoods of structure-less features.

Features are independent N(0, I) and drawn anew for every step, so that the mean of a step is a step
on the expected loss. Symbols: w weights, w* = (1, 0, …, 0) the teacher, h̃_i the aggregated features of
row i, σ(x) = √2·max(x, 0).
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from boundlab.checks import check_choice, check_integer, check_key, check_number, check_shape
from boundlab.models.aggregation import KINDS, aggregate
from boundlab.models.graph_layout import graph_layout
from boundlab.models.neighborhoods import neighborhoods
from boundlab.models.sampling import sample_batch, sample_neighbors
from boundlab.typing import Count, Numbers, Scalar

# Angles of the quadrature of `teacher_error`, whose error is then below 1e-3 of the result.
NUM_ANGLES = 192


def teacher_losses(outputs: Float[Array, "rows r"], weights: Float[Array, " r"]) -> Array:
    """Loss ½(σ(h̃w) − σ(h̃w*))² of each row."""
    difference = jax.nn.relu(outputs @ weights) - jax.nn.relu(outputs[:, 0])
    return difference**2


def teacher_error(weights: Numbers) -> Float[Array, "..."]:
    """Expected loss for features of unit squared norm, by quadrature over their direction.

    Args:
        weights: (..., 2), the last axis along and orthogonal to the teacher.

    Returns:
        E ½(σ(xw) − σ(xw*))² for x ~ N(0, I), shape (...).

    Raises:
        ValueError: naming the argument.

    """
    check_number("weights", weights)
    values = jnp.asarray(weights)
    angles = 2 * np.pi * np.arange(NUM_ANGLES) / NUM_ANGLES
    directions = jnp.asarray(np.stack([np.cos(angles), np.sin(angles)]), dtype=values.dtype)
    student = jax.nn.relu(values @ directions)
    teacher = jnp.broadcast_to(jax.nn.relu(directions[0]), student.shape)
    return 2 * jnp.mean((student - teacher) ** 2, axis=-1)  # the squared radius has mean 2


def descend_to_teacher(
    key: Any,
    graph: Any,
    weights: Numbers,
    step_sizes: Mapping[str, Scalar],
    batch_size: Count,
    fan_out: Count,
    num_steps: Count,
    max_batch_size: Count,
    max_fan_out: Count,
) -> dict[str, Float[Array, "num_steps_and_one r"]]:
    """SGD on the squared loss of one ReLU unit against its teacher, fresh features at every step.

    Args:
        key: one typed key; may be traced.
        graph: `Graph` or `DirectedGraph`; batches are drawn from all its nodes.
        weights: (r,) the start.
        step_sizes: η > 0 by aggregator, one of `boundlab.models.aggregation.KINDS` each; η may be
            traced. All run on the same draws, each with weights of its own; the labels are the
            teacher's outputs on the aggregated features.
        batch_size: b; may be traced.
        fan_out: β; may be traced.
        num_steps: updates, static.
        max_batch_size: static bound of `batch_size`.
        max_fan_out: static bound of `fan_out`.

    Returns:
        (num_steps + 1, r) weights by aggregator, entry 0 the start, in the dtype of `weights`.

    Raises:
        ValueError: naming the argument.

    """
    check_key("key", key)
    check_shape("weights", weights, (None,))
    check_number("weights", weights)
    for kind, step_size in step_sizes.items():
        check_choice("step_sizes", kind, KINDS)
        check_shape("step_sizes", step_size, ())
        check_number("step_sizes", step_size, 0.0, low_open=True)
    updates = check_integer("num_steps", num_steps, 1)
    start = jnp.asarray(weights)
    rates = {kind: jnp.asarray(rate).astype(start.dtype) for kind, rate in step_sizes.items()}
    lists, layout = neighborhoods(graph), graph_layout(graph)
    everyone = np.arange(graph.num_nodes)

    def loss(w: Array, outputs: Array, used: Bool[Array, " rows"]) -> Array:
        values = jnp.where(used, teacher_losses(outputs, w), jnp.zeros((), w.dtype))
        return values.sum() / used.sum().astype(w.dtype)

    def step(carry: dict[str, Array], t: Array) -> tuple[dict[str, Array], dict[str, Array]]:
        parts = jax.random.split(jax.random.fold_in(key, t), 3)
        features = jax.random.normal(parts[0], (len(everyone), len(start)), start.dtype)
        nodes, used = sample_batch(parts[1], everyone, batch_size, max_batch_size)
        index, mask = sample_neighbors(parts[2], lists, nodes, fan_out, max_fan_out)
        moved = {}
        for kind, w in carry.items():
            outputs = aggregate(layout, nodes, index, mask & used[:, None], features, kind)
            moved[kind] = w - rates[kind] * jax.grad(loss)(w, outputs, used)
        return moved, carry

    first = dict.fromkeys(rates, start)
    last, before = jax.lax.scan(step, first, jnp.arange(updates, dtype=jnp.int32))
    return {kind: jnp.concatenate([before[kind], last[kind][None]]) for kind in rates}
