"""The sampler of graphs on one graph and on the same graph relabelled, with a coupled nonlinear score."""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.models import samplers, sde
from boundlab.models.sampler_noise import graph_noise

NODES, FEATURES, STEPS = 6, 3, 20
# The third of three graphs has the features' noise relabelled and the structure's not.
COPIES = 3


def relabelled(key: jax.Array) -> xr.Dataset:
    """Output of a run, relabelled, and of the run with relabelled noise; in float64."""
    order = np.asarray(jax.random.permutation(jax.random.fold_in(key, 0), NODES))

    def score(x: jax.Array, adjacency: jax.Array, t: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Bounded messages along edges, and bounded products of features: it commutes with labels."""
        del t
        return jnp.tanh(adjacency @ x) - x, jnp.tanh(x @ x.swapaxes(1, 2)) - adjacency

    def draw(
        key: jax.Array, batch: int, nodes: int, features: int, dtype: jnp.dtype
    ) -> tuple[jax.Array, jax.Array]:
        del batch
        x, adjacency = graph_noise(key, 1, nodes, features, dtype)
        moved = adjacency[:, order][:, :, order]
        return (
            jnp.concatenate([x, x[:, order], x[:, order]]),
            jnp.concatenate([adjacency, moved, adjacency]),
        )

    x, adjacency = samplers.sample_graphs(
        jax.random.fold_in(key, 1),
        sde.vp(1.0, 9.0),
        sde.vp(1.0, 9.0),
        score,
        np.linspace(1.0, 0.1, STEPS + 1),
        COPIES,
        NODES,
        FEATURES,
        order="gauss_seidel",
        draw=draw,
    )
    rows = np.triu_indices(NODES, 1)
    flat = np.concatenate(
        [np.asarray(x).reshape(COPIES, -1), np.asarray(adjacency)[:, *rows]], axis=1
    )
    moved = np.asarray(x)[0, order], np.asarray(adjacency)[0][np.ix_(order, order)][rows]
    words = {
        "generation_relabelled": (flat[1], "entries of a sampled pair, noise relabelled"),
        "generation_half_relabelled": (flat[2], "the same, noise of the features alone relabelled"),
        "generation_expected": (
            np.concatenate([moved[0].ravel(), moved[1]]),
            "entries of the first run, relabelled",
        ),
    }
    return xr.Dataset(
        {
            name: ("generation_entry", array, {"long_name": text})
            for name, (array, text) in words.items()
        }
    )
