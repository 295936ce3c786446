"""Laws of sampled and of full means of one feature, in Wasserstein-2 distance, by sorting.

In one dimension the optimal coupling of two samples matches them in order. Symbols: h̄, h̃ means over
all and over m = min(β, d) sampled neighbours; W₂² the squared distance of their laws over nodes.
"""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.fanout.config import Config
from boundlab.experiment import Repeat
from boundlab.models import graphs
from boundlab.models.aggregation import aggregate
from boundlab.models.graph_layout import graph_layout
from boundlab.models.neighborhoods import neighborhoods
from boundlab.models.random_graphs import generator
from boundlab.models.sampling import sample_neighbors
from boundlab.theory.fanout import gaussian_w2, neighbor_mean_moments

# Columns of independent features whose means are pooled, for one law with many draws.
COLUMNS = 32


def laws(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """W₂ of sampled from full means: of two classes with its two bounds, and of Gaussian features."""
    n, degree = config.transport_nodes, config.transport_degree
    fan_outs = np.array([1, degree // 4, degree // 2])
    graph = graphs.fixed_mix(jax.random.fold_in(key, 0), n, degree, 2, 5 / 6)
    rng = generator(jax.random.fold_in(key, 1))
    feature = (4.0 * np.asarray(graph.labels) - 2.0 + rng.standard_normal(n))[:, None]
    lists, layout = neighborhoods(graph), graph_layout(graph)
    everyone = np.arange(n)
    fixed = jnp.asarray(feature, dtype=config.dtype)
    means = jnp.asarray(graph.adjacency() / degree, dtype=config.dtype)

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        index, mask = sample_neighbors(
            jax.random.fold_in(key, 0), lists, everyone, params["fan_out"], max(fan_outs)
        )
        columns = jax.random.normal(jax.random.fold_in(key, 1), (n, COLUMNS), config.dtype)
        both = jnp.concatenate([fixed, columns], axis=1)
        sampled = aggregate(layout, everyone, index, mask, both, "mean")
        full = means @ both
        return {
            "distance": _squared(sampled[:, 0], full[:, 0]),
            "coupling": jnp.mean((sampled[:, 0] - full[:, 0]) ** 2),
            "gaussian": jnp.sqrt(_squared(sampled[:, 1:].ravel(), full[:, 1:].ravel())),
        }

    keys = jax.random.split(jax.random.fold_in(key, 2), config.transport_seeds)
    found = repeat("transport-laws", one, {"fan_out": fan_outs}, keys)
    theory = np.array([_theory(graph, feature, int(fan_out)) for fan_out in fan_outs])
    gaussian = np.array(
        [float(gaussian_w2([0.0], [[1 / fan_out]], [0.0], [[1 / degree]])) for fan_out in fan_outs]
    )
    dims = ("transport_law_fan_out", "transport_law_seed")
    return xr.Dataset(
        {
            "transport_w2_squared": (
                dims,
                found["distance"].values,
                {"long_name": "squared W₂ of sampled and full means over nodes, two classes"},
            ),
            "transport_coupling": (
                dims,
                found["coupling"].values,
                {"long_name": "mean squared difference of sampled and full mean"},
            ),
            "transport_gelbrich_squared": (
                "transport_law_fan_out",
                theory[:, 0],
                {"long_name": "squared W₂ of the Gaussians with the same moments"},
            ),
            "transport_mean_trace": (
                "transport_law_fan_out",
                theory[:, 1],
                {"long_name": "mean over nodes of tr V"},
            ),
            "transport_gaussian_w2": (
                dims,
                found["gaussian"].values,
                {"long_name": "W₂ of sampled and full means, independent Gaussian features"},
            ),
            "transport_gaussian_theory": (
                "transport_law_fan_out",
                gaussian,
                {"long_name": "W₂ = m^(−1/2) − d^(−1/2)"},
            ),
            "transport_gaussian_coupling": (
                "transport_law_fan_out",
                np.sqrt(1 / fan_outs - 1 / degree),
                {"long_name": "distance under the sampling coupling, (1/m − 1/d)^(1/2)"},
            ),
        },
        coords={"transport_law_fan_out": fan_outs},
    )


def _squared(first: jax.Array, other: jax.Array) -> jax.Array:
    """Squared W₂ of two samples of equal size."""
    return jnp.mean((jnp.sort(first) - jnp.sort(other)) ** 2)


def _theory(graph: graphs.DirectedGraph, feature: np.ndarray, fan_out: int) -> tuple[float, float]:
    """Gelbrich's squared bound from the moments of both laws over nodes, and mean tr V."""
    moments = neighbor_mean_moments(graph, feature, fan_out)
    mean = np.asarray(moments.mean)
    between = np.atleast_2d(np.cov(mean.T, bias=True))
    centre = mean.mean(axis=0)
    within = np.asarray(moments.average_covariance)
    distance = float(gaussian_w2(centre, between + within, centre, between))
    return distance**2, float(np.mean(moments.covariance_trace))
