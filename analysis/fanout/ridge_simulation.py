"""Simulated minimisers of the sampled loss on one problem: least squares, and training by SGD.

Each key is a random order of the nodes: the first n_train of it train, all others test.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from boundlab.analysis.fanout.config import Config
from boundlab.analysis.fanout.problems import Problem
from boundlab.models.aggregation import aggregate, aggregate_full
from boundlab.models.neighborhoods import neighborhoods
from boundlab.models.sampling import sample_neighbors
from boundlab.models.training import train

STEP_SIZE = 0.15
Simulation = Callable[[Mapping[str, Any], Any], Array]


def node_order(key: Any, num_nodes: int) -> Int[Array, " n"]:
    """A random order of the nodes: one sort, which compiles faster than `jax.random.permutation`."""
    words = jax.random.bits(jax.random.fold_in(key, 0), (num_nodes,), jnp.uint32)
    return jnp.argsort(words).astype(jnp.int32)


def random_orders(keys: Any, num_nodes: int) -> Int[np.ndarray, "splits n"]:
    """The orders that the simulations make of these keys."""
    return np.asarray(jax.jit(jax.vmap(lambda key: node_order(key, num_nodes)))(keys))


def least_squares(config: Config, problem: Problem) -> Simulation:
    """Test error of least squares on drawn neighbourhoods of the training nodes, equally many each."""
    lists, rows = neighborhoods(problem.graph), config.ridge_samples
    features, targets, full = _arrays(config, problem)
    largest = int(problem.graph.degrees().max())

    def simulate(params: Mapping[str, Any], key: Any) -> Array:
        order = node_order(key, len(full))
        num_train = params["num_train"].astype(jnp.int32)
        row = jnp.arange(rows, dtype=jnp.int32)
        nodes = order[row % num_train]
        used = row < rows // num_train * num_train

        def draw(key: Any, node: Array) -> tuple[Array, Array]:
            """A key of its own, since one key gives a node the same sample in all its rows."""
            index, mask = sample_neighbors(key, lists, node[None], params["fan_out"], largest)
            return index[0], mask[0]

        keys = jax.random.split(jax.random.fold_in(key, 1), rows)
        index, mask = jax.vmap(draw)(keys, nodes)
        means = aggregate(problem.graph, nodes, index, mask, features, "mean")
        means = jnp.where(used[:, None], means, jnp.zeros_like(means))
        weights = jnp.linalg.pinv(means.T @ means, hermitian=True) @ (means.T @ targets[nodes])
        return _test_error(full @ weights, targets, order, num_train)

    return simulate


def trained(config: Config, problem: Problem, max_fan_out: int) -> Simulation:
    """Test error after SGD on the smallest training set, fresh batches and samples at every step."""
    features, targets, full = _arrays(config, problem)
    num_train = config.ridge_num_train[0]

    def simulate(params: Mapping[str, Any], key: Any) -> Array:
        order = node_order(key, len(full))
        result = train(
            jax.random.fold_in(key, 2),
            problem.graph,
            features,
            targets,
            order[:num_train],
            network="sage",
            step_size=STEP_SIZE,
            batch_size=params["batch_size"],
            fan_out=params["fan_out"],
            num_steps=config.ridge_steps,
            max_batch_size=num_train,
            max_fan_out=max_fan_out,
            record=(),
        )
        (kernel,) = jax.tree.leaves(result.params)
        return _test_error(full @ kernel, targets, order, jnp.int32(num_train))

    return simulate


def _arrays(
    config: Config, problem: Problem
) -> tuple[Float[Array, "n r"], Float[Array, "n K"], Float[Array, "n r"]]:
    """Features, targets and full neighbour means, in the precision of simulations."""
    features = jnp.asarray(problem.features, dtype=config.dtype)
    full = aggregate_full(problem.graph, features, "mean")
    return features, jnp.asarray(problem.targets, dtype=config.dtype), full


def _test_error(
    outputs: Float[Array, "n K"],
    targets: Float[Array, "n K"],
    order: Int[Array, " n"],
    num_train: Int[Array, ""],
) -> Float[Array, ""]:
    """Squared error, mean over the outputs of the nodes behind the first `num_train` of the order."""
    squared = jnp.mean((outputs - targets) ** 2, axis=1)[order]
    test = jnp.arange(len(order), dtype=jnp.int32) >= num_train
    total = jnp.sum(jnp.where(test, squared, jnp.zeros_like(squared)))
    return total / jnp.sum(test).astype(squared.dtype)
