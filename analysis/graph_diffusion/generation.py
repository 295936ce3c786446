"""Both networks trained on small graphs, sampled, and held against graphs that they weren't trained on.

Sets: pairs of communities, and one-hop neighbourhoods of citation graphs. Features are one-hot degrees,
as in the model analysed; a generated graph has an edge where its adjacency is at least ½, and as many
nodes as a random training graph. Nodes without an edge stay.
"""

import dataclasses
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.graph_diffusion.config import Config
from boundlab.analysis.graph_diffusion.generation_claims import CLAIMS as CLAIMS
from boundlab.analysis.graph_diffusion.generation_equivariance import relabelled
from boundlab.analysis.graph_diffusion.graph_drawing import positions
from boundlab.experiment import Repeat
from boundlab.models import samplers, sde
from boundlab.models.benchmark_graphs import MOST_NODES, community_small, ego_graphs
from boundlab.models.graph_batches import GraphBatch, erdos_renyi, pad_graphs
from boundlab.models.graph_metrics import KERNELS, graph_statistics, mmd_squared
from boundlab.models.planetoid import planetoid
from boundlab.models.score_networks import (
    FeatureScore,
    GraphModel,
    StructureScore,
    graph_score,
)
from boundlab.models.score_training import Descent, ScoreTraining, train_scores

CITATIONS = ("cora", "citeseer")
SOURCES = ("networks", "other graphs of the law", "random edges, same density")
# Longer than the published schedule, whose start is biased: ∫β = 5.05.
SCHEDULE = (0.1, 10.0)
LAST_TIME = 1e-3
TEST_GRAPHS = 64
# Degrees from this one on share a feature.
NUM_FEATURES = 10
SHOWN = 8
# Of the running mean of parameters: the published .999 is for trainings of many thousand steps.
AVERAGE = 0.99


class _Split(NamedTuple):
    """Graphs of one set: to train on, to compare with, and others of the same law."""

    train: GraphBatch
    test: GraphBatch
    others: GraphBatch


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Losses, discrepancies of generated graphs and of two comparisons, and graphs to look at."""
    model = _model(config)
    splits, params, losses = [], [], []
    for i, name in enumerate(config.generation_sets):
        split = _split(config, jax.random.fold_in(jax.random.fold_in(key, 0), i), name)
        training = _trained(
            config,
            jax.random.fold_in(jax.random.fold_in(key, 1), i),
            repeat,
            name,
            model,
            split.train,
        )
        splits.append(split)
        params.append(training.average_params)
        losses.append(np.asarray(training.losses, np.float64))
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *params)
    generated = _generated(config, jax.random.fold_in(key, 2), repeat, model, stacked, splits)
    parts = [
        _losses(config, losses),
        _discrepancies(config, jax.random.fold_in(key, 3), splits, generated),
        _shown(config, splits, generated),
        relabelled(jax.random.fold_in(key, 4)),
    ]
    return describe(xr.merge(parts), "1")


def _model(config: Config) -> GraphModel:
    schedule = sde.vp(*SCHEDULE)
    width = config.generation_width
    return GraphModel(
        FeatureScore(NUM_FEATURES, num_layers=2, hidden=width),
        StructureScore(
            num_layers=config.generation_layers,
            hidden=width,
            heads=2,
            hidden_channels=width // 4,
            final_channels=width // 4,
        ),
        schedule,
        schedule,
    )


def _split(config: Config, key: jax.Array, name: str) -> _Split:
    """Three sets of different graphs, drawn without replacement where there is a finite pool."""
    kept = config.generation_seeds * config.generation_graphs
    counts = (config.generation_train_graphs, TEST_GRAPHS, kept)
    if name == "communities":
        whole = community_small(key, sum(counts))
    else:
        papers = [dataclasses.replace(planetoid(name), features=None) for name in CITATIONS]
        cuts = [cut for graph in papers for cut in ego_graphs(graph)]
        order = np.asarray(jax.random.permutation(key, len(cuts)))
        whole = pad_graphs([cuts[i] for i in order[: sum(counts)]], MOST_NODES)
    ends = np.cumsum(counts)[:-1]
    return _Split(
        *(
            GraphBatch(adjacency, mask)
            for adjacency, mask in zip(
                np.split(whole.adjacency, ends), np.split(whole.mask, ends), strict=True
            )
        )
    )


def _trained(
    config: Config, key: jax.Array, repeat: Repeat, name: str, model: GraphModel, graphs: GraphBatch
) -> ScoreTraining:
    """Both networks trained in single precision; a training of its own name, which can be resumed."""
    epoch = max(1, config.generation_train_graphs // config.generation_batch_size)
    return train_scores(
        key,
        model,
        _one_hot_degrees(graphs),
        graphs.adjacency,
        graphs.mask,
        num_steps=config.generation_training_steps,
        batch_size=config.generation_batch_size,
        descent=Descent(steps_per_epoch=epoch, average=AVERAGE),
        first_time=LAST_TIME,
        advance=partial(repeat.advance, f"generation_{name}"),  # type: ignore[attr-defined]
    )


def _one_hot_degrees(graphs: GraphBatch) -> np.ndarray:
    degrees = np.minimum(graphs.adjacency.sum(axis=2).astype(np.int64), NUM_FEATURES - 1)
    rows = np.eye(NUM_FEATURES, dtype=np.float32)[degrees]
    return np.where(graphs.mask[:, :, None], rows, np.float32(0))


def _generated(
    config: Config,
    key: jax.Array,
    repeat: Repeat,
    model: GraphModel,
    params: Any,
    splits: list[_Split],
) -> list[GraphBatch]:
    """(seeds · graphs) generated graphs of each set."""
    masks = jnp.asarray(np.stack([split.train.mask for split in splits]))
    times = np.linspace(1.0, LAST_TIME, config.generation_sampling_steps + 1).astype(np.float32)
    count = config.generation_graphs

    def one(values: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        chosen = jax.random.randint(jax.random.fold_in(key, 0), (count,), 0, masks.shape[1])
        mask = masks[values["set"]][chosen]
        own = jax.tree.map(lambda leaf: leaf[values["set"]], params)
        _, adjacency = samplers.sample_graphs(
            jax.random.fold_in(key, 1),
            model.sde_features,
            model.sde_structure,
            graph_score(model, own, mask),
            times,
            count,
            MOST_NODES,
            NUM_FEATURES,
            mask=mask,
        )
        edges = (adjacency >= 0.5).astype(jnp.int8)
        return {"edges": edges, "mask": mask, "finite": jnp.isfinite(adjacency).all()}

    keys = jax.random.split(key, config.generation_seeds)
    found = repeat("generation", one, {"set": np.arange(len(splits))}, keys, batch_size=4)
    if not found["finite"].values.all():
        raise FloatingPointError("generation: a sampled graph is not finite; train for longer")
    shape = (-1, MOST_NODES, MOST_NODES)
    return [
        GraphBatch(
            found["edges"].values[i].reshape(shape).astype(np.float64),
            found["mask"].values[i].reshape(shape[:2]).astype(bool),
        )
        for i in range(len(splits))
    ]


def _losses(config: Config, losses: list[np.ndarray]) -> xr.Dataset:
    """Means over tenths of the training."""
    parts = [np.stack([p.mean(axis=0) for p in np.array_split(one, 10)]) for one in losses]
    return xr.Dataset(
        {
            "generation_loss": (
                ("generation_set", "generation_tenth", "generation_block"),
                np.stack(parts),
                {"long_name": "denoising loss ½Σ(σs + z)², mean over a tenth of the training"},
            )
        },
        coords={
            "generation_set": list(config.generation_sets),
            "generation_tenth": np.arange(1, 11),
            "generation_block": ["features", "structure"],
        },
    )


def _discrepancies(
    config: Config, key: jax.Array, splits: list[_Split], generated: list[GraphBatch]
) -> xr.Dataset:
    """Squared discrepancies (V) from the test graphs, and edge densities, a sample a seed."""
    shape = (len(splits), len(SOURCES), config.generation_seeds)
    batches = []
    for i, (split, networks) in enumerate(zip(splits, generated, strict=True)):
        random = erdos_renyi(
            jax.random.fold_in(key, i),
            split.others.mask.sum(axis=1),
            _densities(split.others),
            MOST_NODES,
        )
        batches.append((networks, split.others, random))
    density = np.stack([[_densities(batch) for batch in row] for row in batches])
    everything = [batch for row in batches for batch in row] + [split.test for split in splits]
    found = graph_statistics(  # at once: one program
        np.concatenate([batch.adjacency for batch in everything]),
        np.concatenate([batch.mask for batch in everything]),
    )
    mmd = np.empty((*shape, len(KERNELS)))
    for k, kernel in enumerate(KERNELS):
        rows = np.asarray(getattr(found, kernel))
        split_at = len(rows) - len(splits) * TEST_GRAPHS
        samples = rows[:split_at].reshape(*shape, config.generation_graphs, -1)
        tests = rows[split_at:].reshape(len(splits), TEST_GRAPHS, -1)
        distance = partial(mmd_squared, kernel=kernel)
        over_samples = jax.vmap(jax.vmap(distance, (None, 0)), (None, 0))
        mmd[..., k] = jax.jit(jax.vmap(over_samples))(tests, samples)
    dims = ("generation_set", "generation_source", "generation_seed")
    words = "squared discrepancy (V) from test graphs"
    return xr.Dataset(
        {
            "generation_mmd": ((*dims, "generation_kernel"), mmd, {"long_name": words}),
            "generation_density": (
                dims,
                density.reshape(*shape, -1).mean(axis=-1),
                {"long_name": "share of the pairs of nodes with an edge, mean over graphs"},
            ),
            "generation_test_density": (
                dims[:1],
                np.array([_densities(split.test).mean() for split in splits]),
                {"long_name": "share of the pairs of nodes with an edge in the test graphs"},
            ),
        },
        coords={
            "generation_source": list(SOURCES),
            "generation_set": list(config.generation_sets),
            "generation_seed": np.arange(config.generation_seeds),
            "generation_kernel": list(KERNELS),
        },
    )


def _densities(graphs: GraphBatch) -> np.ndarray:
    nodes = graphs.mask.sum(axis=1)
    return np.asarray(graphs.adjacency.sum(axis=(1, 2)) / (nodes * (nodes - 1)))


def _shown(config: Config, splits: list[_Split], generated: list[GraphBatch]) -> xr.Dataset:
    """The first few training and generated graphs of each set, and where to draw their nodes."""
    pairs = [(split.train, networks) for split, networks in zip(splits, generated, strict=True)]
    edges = np.stack([[batch.adjacency[:SHOWN] for batch in pair] for pair in pairs])
    masks = np.stack([[batch.mask[:SHOWN] for batch in pair] for pair in pairs])
    flat = edges.reshape(-1, MOST_NODES, MOST_NODES), masks.reshape(-1, MOST_NODES)
    places = positions(*flat).reshape(*masks.shape, 2)
    dims = ("generation_set", "generation_row", "generation_graph", "generation_node")
    return xr.Dataset(
        {
            "generation_edges": (
                (*dims, "generation_neighbor"),
                edges.astype(np.int8),
                {"long_name": "adjacency of the graphs shown"},
            ),
            "generation_position": (
                (*dims, "generation_axis"),
                places,
                {"long_name": "where a node is drawn, NaN for places without a node"},
            ),
        },
        coords={
            "generation_set": list(config.generation_sets),
            "generation_row": ["training", "generated"],
        },
    )
