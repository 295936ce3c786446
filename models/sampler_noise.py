"""Noise of graph samplers: one draw a pair of nodes, mirrored, with a zero diagonal."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


def graph_noise(
    key: Any, batch: int, num_nodes: int, num_features: int, dtype: Any
) -> tuple[Float[Array, "batch nodes features"], Float[Array, "batch nodes nodes"]]:
    """Standard normal noise of features and of adjacency matrices: N(0, 1) an entry, a pair."""
    numbers = batch * num_nodes * num_features
    pairs = num_nodes * (num_nodes - 1) // 2
    normal = jax.random.normal(key, (numbers + batch * pairs,), dtype)
    features = normal[:numbers].reshape(batch, num_nodes, num_features)
    return features, mirrored(normal[numbers:].reshape(batch, pairs), num_nodes)


def symmetric_noise(key: Any, batch: int, num_nodes: int, dtype: Any) -> jax.Array:
    """Symmetric matrices (batch, n, n) with N(0, 1) a pair of nodes and a zero diagonal."""
    pairs = num_nodes * (num_nodes - 1) // 2
    return mirrored(jax.random.normal(key, (batch, pairs), dtype), num_nodes)


def mirrored(
    values: Float[Array, "batch pairs"], num_nodes: int
) -> Float[Array, "batch nodes nodes"]:
    """Symmetric matrices from the entries above the diagonal, in the order of `numpy.triu_indices`."""
    place = np.full((num_nodes, num_nodes), values.shape[1])
    place[np.triu_indices(num_nodes, 1)] = np.arange(values.shape[1])
    place = np.minimum(place, place.T)
    padded = jnp.concatenate([values, jnp.zeros((values.shape[0], 1), values.dtype)], axis=1)
    return padded[:, place]
