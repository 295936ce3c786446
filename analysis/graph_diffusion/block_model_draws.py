"""Draws of the block model whose joint score is enumerated, and what its scores say of them.

Labels z uniform on {−1, 1}ⁿ, features X_i = μ z_i + s ξ_i, edges Bernoulli within and across the two
blocks; OU noise, m = e^{−t}, σ² = 1 − m², v = m²s² + σ².
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

P_IN, P_OUT = 0.7, 0.1
MU, NOISE_STD = 1.0, 0.5
MODEL = {"p_in": P_IN, "p_out": P_OUT, "mu": MU, "noise_std": NOISE_STD}


class Draws(NamedTuple):
    """Clean pairs, and one standard noise for each that serves all times."""

    features: jax.Array
    """(draws, n)."""
    edges: jax.Array
    """(draws, n(n−1)/2) of 0 and 1."""
    noise_features: jax.Array
    noise_edges: jax.Array

    def noised(self, t: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Features and edges at time t."""
        mean, deviation = jnp.exp(-t), jnp.sqrt(-jnp.expm1(-2 * t))
        return (
            mean * self.features + deviation * self.noise_features,
            mean * self.edges + deviation * self.noise_edges,
        )


class Condition(NamedTuple):
    """How a block's score sees the two blocks: noised to the time in question, or at a fixed mean.

    A fixed mean of 1 is a clean block, one of 0 a block without information.
    """

    features_noised: jax.Array
    features_mean: jax.Array
    structure_noised: jax.Array
    structure_mean: jax.Array

    def means(self, t: jax.Array) -> tuple[jax.Array, jax.Array]:
        """m_X and m_A at time t."""
        mean = jnp.exp(-t)
        return (
            jnp.where(self.features_noised, mean, self.features_mean),
            jnp.where(self.structure_noised, mean, self.structure_mean),
        )


def conditions(*rules: tuple[float | None, float | None]) -> Condition:
    """Stacked conditions; None for a block at the time in question, else its fixed mean."""
    columns = []
    for values in zip(*rules, strict=True):
        columns += [
            jnp.asarray(np.array([value is None for value in values])),
            jnp.asarray(np.array([0.0 if value is None else value for value in values])),
        ]
    return Condition(*columns)


def num_pairs(nodes: int) -> int:
    """n(n − 1)/2."""
    return nodes * (nodes - 1) // 2


def flat_normal(key: jax.Array, shape: tuple[int, ...], dtype: Any = jnp.float64) -> jax.Array:
    """Standard normals; drawn as a vector, whose generator compiles ten times faster."""
    return jax.random.normal(key, (math.prod(shape),), dtype).reshape(shape)


def draw_pairs(key: jax.Array, draws: int, nodes: int) -> Draws:
    """`draws` independent pairs of features and edges."""
    first, second = np.triu_indices(nodes, 1)
    size = nodes + num_pairs(nodes)
    uniform = jax.random.uniform(jax.random.fold_in(key, 0), (draws * size,), jnp.float64)
    uniform = uniform.reshape(draws, size)
    labels = jnp.where(uniform[:, :nodes] < 0.5, 1.0, -1.0)
    probability = jnp.where(labels[:, first] == labels[:, second], P_IN, P_OUT)
    present = uniform[:, nodes:] < probability
    normal = flat_normal(jax.random.fold_in(key, 1), (draws, size + nodes))
    return Draws(
        MU * labels + NOISE_STD * normal[:, size:],
        present.astype(jnp.float64),
        normal[:, :nodes],
        normal[:, nodes:size],
    )


def fisher_by_posterior(
    x: jax.Array, edges: jax.Array, scores: tuple[jax.Array, jax.Array], t: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Fisher information of both blocks from posterior variances, one value a draw.

    n/v − (m μ/v)² Σ Var(z_i | seen) and |pairs|/σ² − (m/σ²)² Σ Var(a_ij | seen). Their means are those
    of the squared scores; their spread is smaller, and vanishes as t → 0.
    """
    mean, sigma_sq = jnp.exp(-t), -jnp.expm1(-2 * t)
    variance = (mean * NOISE_STD) ** 2 + sigma_sq
    label = (variance * scores[0] + x) / (mean * MU)
    present = (sigma_sq * scores[1] + edges) / mean
    of_features = x.shape[-1] / variance - (mean * MU / variance) ** 2 * jnp.sum(
        1 - label**2, axis=-1
    )
    of_edges = edges.shape[-1] / sigma_sq - (mean / sigma_sq) ** 2 * jnp.sum(
        present * (1 - present), axis=-1
    )
    return of_features, of_edges
