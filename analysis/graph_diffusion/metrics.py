"""What the metrics of generated graphs measure: repeats in a benchmark, and discrepancies with floors.

Pools of graphs of four laws stand for the laws: samples are drawn from them without replacement, so
that the mean of every discrepancy follows exactly from the mean kernels of the pools. Symbols: m graphs
in each of two samples, k a kernel, V and U the estimators of the squared maximum mean discrepancy.
"""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.graph_diffusion.config import Config
from boundlab.analysis.graph_diffusion.metrics_claims import CLAIMS as CLAIMS
from boundlab.experiment import Repeat
from boundlab.models.benchmark_graphs import ACROSS, MOST_NODES, WITHIN, community_small
from boundlab.models.graph_batches import GraphBatch, block_graphs, erdos_renyi
from boundlab.models.graph_discrepancy import (
    ESTIMATORS,
    KERNELS,
    QUANTILES,
    discrepancy,
    kernel_matrix,
    mmd_floor,
)
from boundlab.models.graph_duplicates import count_distinct, duplicates
from boundlab.models.graph_statistics import graph_statistics
from boundlab.theory import graph_diffusion as theory

# The benchmark's set: the first fifth is the test set.
GRAPHS, TEST = 100, 20
# ∫β of the published schedule, β from 0.1 to 1 on [0, 1].
PUBLISHED_BETA = 0.55
# What generated graphs are held against, and what is held against it.
REFERENCES = ("shared seeds", "fresh seeds")
LAWS = (*REFERENCES, "short schedule", "density matched")
SIZES = (5, 10, 20)
FLOOR_RESAMPLES = 400
# Squared discrepancies of degree, clustering and orbits on the benchmark `community_small`, as others
# print them: quoted in a public notebook, or from memory and unchecked.
PUBLISHED = {
    "GraphRNN": ((0.080, 0.120, 0.040), "quoted"),
    "GRAN": ((0.06, 0.11, 0.01), "quoted"),
    "EDP-GNN": ((0.053, 0.144, 0.026), "from memory"),
    "GDSS": ((0.045, 0.086, 0.007), "from memory"),
    "GDSS-seq": ((0.090, 0.123, 0.007), "from memory"),
}


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Repeats, mean discrepancies in theory and simulated, floors, and published figures."""
    kernels, rows = _pools(config, jax.random.fold_in(key, 1))
    parts = [
        _repeats(config, jax.random.fold_in(key, 0)),
        _expected(kernels),
        _simulated(config, jax.random.fold_in(key, 2), repeat, kernels),
        _floors(jax.random.fold_in(key, 3), rows),
        _published(),
    ]
    return describe(xr.merge(parts), "1")


def _repeats(config: Config, key: jax.Array) -> xr.Dataset:
    """Different graphs, and test graphs that are training graphs, in sets drawn with shared seeds."""
    drawn = community_small(key, config.metrics_draws * GRAPHS, shared_seeds=True).adjacency
    sets = drawn.reshape(config.metrics_draws, GRAPHS, MOST_NODES, MOST_NODES)
    counted = {
        "metrics_distinct": ("different graphs in a set", [count_distinct(one) for one in sets]),
        "metrics_duplicates": (
            "test graphs equal to a training graph",
            [duplicates(one[TEST:], one[:TEST]).sum() for one in sets],
        ),
    }
    published = theory.shared_community_law()
    elsewhere = theory.shared_community_law("uniform")
    expected = {
        "metrics_distinct_theory": theory.expected_distinct(*published, GRAPHS),
        "metrics_duplicates_theory": theory.expected_duplicates(*published, TEST, GRAPHS - TEST),
        "metrics_distinct_uniform": theory.expected_distinct(*elsewhere, GRAPHS),
        "metrics_duplicates_uniform": theory.expected_duplicates(*elsewhere, TEST, GRAPHS - TEST),
    }
    units = {"units": "graphs"}
    return xr.Dataset(
        {
            **{
                name: (
                    "metrics_draw_seed",
                    np.asarray(values, np.float64),
                    {"long_name": words} | units,
                )
                for name, (words, values) in counted.items()
            },
            **{name: ((), float(value), units) for name, value in expected.items()},
        }
    )


def _pools(config: Config, key: jax.Array) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Kernel matrices (4, laws · pool, laws · pool) of all pools, and the fresh pool's statistics."""
    keys = jax.random.split(key, len(LAWS))
    shared = community_small(keys[0], config.metrics_pool, shared_seeds=True)
    fresh = community_small(keys[1], config.metrics_pool)
    nodes, edges = fresh.mask.sum(axis=1), fresh.adjacency.sum(axis=(1, 2)) / 2
    density = edges / (nodes * (nodes - 1) / 2)
    batches = (
        shared,
        fresh,
        _short_schedule(keys[2], nodes // 2),
        erdos_renyi(keys[3], nodes, density, MOST_NODES),
    )
    found = [graph_statistics(batch.adjacency, batch.mask) for batch in batches]
    stacked = {name: np.concatenate([getattr(s, name) for s in found]) for name in KERNELS}
    matrices = np.stack([kernel_matrix(rows, rows, name) for name, rows in stacked.items()])
    return matrices, {name: np.asarray(getattr(found[1], name)) for name in KERNELS}


def _short_schedule(key: jax.Array, sizes: np.ndarray) -> GraphBatch:
    """Graphs with the edge densities that the published schedule leaves, exact scores and no steps."""
    found, counts = np.unique(sizes, return_counts=True)
    densities = np.array([WITHIN, *(ACROSS / found)])
    noise = np.full_like(densities, PUBLISHED_BETA)
    within, *across = np.asarray(theory.edge_probability_after_sampling(densities, noise))
    parts = [
        block_graphs(
            jax.random.fold_in(key, int(size)),
            np.full((count, 2), size),
            np.array([[within, p], [p, within]]),
            MOST_NODES,
        )
        for size, count, p in zip(found, counts, across, strict=True)
    ]
    return GraphBatch(
        np.concatenate([part.adjacency for part in parts]),
        np.concatenate([part.mask for part in parts]),
    )


def _expected(kernels: np.ndarray) -> xr.Dataset:
    """Mean discrepancies from the mean kernels within and between pools."""
    pool = kernels.shape[1] // len(LAWS)
    blocks = kernels.reshape(len(KERNELS), len(LAWS), pool, len(LAWS), pool)
    sums = blocks.sum(axis=(2, 4))
    between = sums / pool**2
    own = np.arange(len(LAWS))
    within = (sums[:, own, own] - pool) / (pool * (pool - 1))  # k(x, x) = 1 left out
    between[:, own, own] = within
    references = own[: len(REFERENCES)]
    terms = within[:, references, None], within[:, None, :], between[:, references, :]
    dims = ("metrics_kernel", "metrics_reference", "metrics_law")
    words = "mean squared discrepancy from mean kernels, estimator "
    expected = {
        estimator: np.stack(
            [theory.expected_mmd_squared(*terms, m, m, estimator) for m in SIZES], axis=-1
        )
        for estimator in ESTIMATORS
    }
    saturated = [theory.expected_mmd_squared(0.0, 0.0, 0.0, m, m) for m in SIZES]
    return xr.Dataset(
        {
            "metrics_within": (dims[::2], within, {"long_name": "mean kernel of two graphs"}),
            "metrics_saturated": (
                "metrics_size",
                np.array(saturated),
                {"long_name": "mean of V for a kernel that sees no two graphs as alike"},
            ),
            **{
                f"metrics_{name}_theory": (
                    (*dims, "metrics_size"),
                    values,
                    {"long_name": words + name.upper()},
                )
                for name, values in expected.items()
            },
        },
        coords=_coordinates(),
    )


def _simulated(config: Config, key: jax.Array, repeat: Repeat, kernels: np.ndarray) -> xr.Dataset:
    """Discrepancies of samples drawn from the pools; samples of one pool are disjoint."""
    pool, most = config.metrics_pool, max(SIZES)
    pairs = pool // (2 * most)
    held = jnp.asarray(np.moveaxis(kernels, 0, 2))  # the four kernels of a pair side by side

    def compared(reference: jax.Array, other: jax.Array) -> dict[str, jax.Array]:
        rows = jnp.concatenate([reference, other])
        part = jnp.moveaxis(held[rows[:, None], rows[None, :]], 2, 0)
        return {
            estimator: jnp.stack(
                [
                    jax.vmap(discrepancy, in_axes=(0, 0, 0, None))(
                        part[:, :m, :m],
                        part[:, most : most + m, most : most + m],
                        part[:, :m, most : most + m],
                        estimator,
                    )
                    for m in SIZES
                ],
                axis=1,
            )
            for estimator in ESTIMATORS
        }

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        drawn = [
            jax.random.permutation(jax.random.fold_in(key, i), pool)[: pairs * 2 * most]
            for i in range(2)
        ]
        first, other = (nodes.reshape(pairs, 2, most) for nodes in drawn)
        other = jnp.where(params["reference"] == params["law"], first[:, 1], other[:, 1])
        start = params["reference"] * pool, params["law"] * pool
        found = jax.vmap(compared)(start[0] + first[:, 0], start[1] + other)
        return {name: jnp.mean(values, axis=0) for name, values in found.items()}

    grid = {"reference": np.arange(len(REFERENCES)), "law": np.arange(len(LAWS))}
    found = repeat("metrics", one, grid, jax.random.split(key, config.metrics_seeds))
    dims = ("metrics_reference", "metrics_law", "metrics_seed", "metrics_kernel", "metrics_size")
    words = f"squared discrepancy, mean of {pairs} pairs of samples, estimator "
    return xr.Dataset(
        {
            f"metrics_{name}": (dims, found[name].values, {"long_name": words + name.upper()})
            for name in ESTIMATORS
        },
        coords=_coordinates(),
    )


def _floors(key: jax.Array, rows: dict[str, np.ndarray]) -> xr.Dataset:
    """V of two samples of 20 fresh graphs of one law."""
    floors = [
        mmd_floor(jax.random.fold_in(key, i), rows[name], name, TEST, TEST, FLOOR_RESAMPLES)
        for i, name in enumerate(KERNELS)
    ]
    words = "V between two samples of 20 fresh graphs of one law: "
    return xr.Dataset(
        {
            "metrics_floor_deviation": (
                "metrics_kernel",
                np.array([floor.standard_deviation for floor in floors]),
                {"long_name": words + "standard deviation"},
            ),
            "metrics_floor": (
                ("metrics_kernel", "metrics_quantile"),
                np.array([floor.quantiles for floor in floors]),
                {"long_name": words + "quantiles"},
            ),
        },
        coords={"metrics_kernel": list(KERNELS), "metrics_quantile": list(QUANTILES)},
    )


def _published() -> xr.Dataset:
    values = [figures for figures, _ in PUBLISHED.values()]
    return xr.Dataset(
        {
            "metrics_published": (
                ("metrics_method", "metrics_published_kernel"),
                np.array(values),
                {"long_name": "squared discrepancy on community_small as printed by others"},
            )
        },
        coords={
            "metrics_method": list(PUBLISHED),
            "metrics_published_kernel": list(KERNELS[:3]),
            "metrics_standing": ("metrics_method", [how for _, how in PUBLISHED.values()]),
        },
    )


def _coordinates() -> dict[str, object]:
    return {
        "metrics_kernel": list(KERNELS),
        "metrics_reference": list(REFERENCES),
        "metrics_law": list(LAWS),
        "metrics_size": list(SIZES),
    }
