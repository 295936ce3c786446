"""Noise of samplers: fast standard normals, and graph noise with one mirrored draw a pair of nodes."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.models.counter_bits import counter_key, threefry

# From this many numbers on, bits that XLA fuses pay for the longer compilation of their generator.
MANY = 8192


def normal_noise(key: Any, shape: tuple[int, ...], dtype: Any) -> jax.Array:
    """Standard normals as a pure function of a key, by √2 erf⁻¹ of uniform numbers on (−1, 1).

    Few of them, or in another precision than float32, are those of `jax.random.normal`; many in float32
    are others, of the same law and resolution, in a third to a half of its time on CPU.
    """
    size = math.prod(shape)
    if size < MANY or jnp.dtype(dtype) != jnp.float32:
        return jax.random.normal(key, shape, dtype)
    counters = jnp.arange(size, dtype=jnp.uint32)
    # The second word isn't used: joining the two would cost more, since it keeps XLA from fusing.
    word, _ = threefry(counter_key(key), counters, jnp.zeros_like(counters))
    bits = (word >> np.uint32(9)) | np.uint32(0x7F << 23)
    # Halfway between the multiples of 2⁻²² on (−1, 1), exactly, so that no normal is infinite.
    uniform = (jax.lax.bitcast_convert_type(bits, jnp.float32) - 1.5) * 2 + np.float32(2**-23)
    return (np.float32(np.sqrt(2)) * jax.lax.erf_inv(uniform)).reshape(shape)


def graph_noise(
    key: Any, batch: int, num_nodes: int, num_features: int, dtype: Any
) -> tuple[Float[Array, "batch nodes features"], Float[Array, "batch nodes nodes"]]:
    """Standard normal noise of features and of adjacency matrices: N(0, 1) an entry, a pair."""
    numbers = batch * num_nodes * num_features
    pairs = num_nodes * (num_nodes - 1) // 2
    normal = normal_noise(key, (numbers + batch * pairs,), dtype)
    features = normal[:numbers].reshape(batch, num_nodes, num_features)
    return features, mirrored(normal[numbers:].reshape(batch, pairs), num_nodes)


def symmetric_noise(key: Any, batch: int, num_nodes: int, dtype: Any) -> jax.Array:
    """Symmetric matrices (batch, n, n) with N(0, 1) a pair of nodes and a zero diagonal."""
    pairs = num_nodes * (num_nodes - 1) // 2
    return mirrored(normal_noise(key, (batch, pairs), dtype), num_nodes)


def mirrored(
    values: Float[Array, "batch pairs"], num_nodes: int
) -> Float[Array, "batch nodes nodes"]:
    """Symmetric matrices from the entries above the diagonal, in the order of `numpy.triu_indices`."""
    place = np.full((num_nodes, num_nodes), values.shape[1])
    place[np.triu_indices(num_nodes, 1)] = np.arange(values.shape[1])
    place = np.minimum(place, place.T)
    padded = jnp.concatenate([values, jnp.zeros((values.shape[0], 1), values.dtype)], axis=1)
    return padded[:, place]
