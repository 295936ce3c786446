"""Exact limits: where sampled training is full-graph training, number for number, and where it isn't.

A small ragged graph, fifty steps of SGD on the squared loss. With all neighbours (fan-out = largest
degree, through the sampler) and all train nodes in the batch, the losses are those of gradient descent on
the aggregated features, whose iterates are known in closed form. Block degrees need all n nodes.
Symbols: b batch size, β fan-out, H aggregated features, W_t weights before update t.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float

from boundlab.analysis.datasets import describe
from boundlab.analysis.evidence import values_against
from boundlab.analysis.fanout.config import Config
from boundlab.claims import Check, Claim, Evidence, Kind, Source
from boundlab.experiment import Repeat
from boundlab.models import graphs
from boundlab.models.training import train
from boundlab.theory.fanout import mean_iterate

STEPS, STEP_SIZE = 50, 0.1
NODES, FEATURES, OUTPUTS = 40, 3, 3
TRAIN = np.arange(1, NODES, 2)
LARGEST = 5
CELLS = ((4, 1), (10, 2), (20, 5))
"""Batch size and fan-out of the cells that one program runs at once."""


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Losses of sampled runs beside those of full-graph descent; runs alone and together."""
    dtype = config.dtype
    keys = jax.random.split(key, 3)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(keys[0])).tolist())
    graph, largest = _graph(rng), LARGEST
    features = rng.standard_normal((NODES, FEATURES)).astype(dtype)
    targets = np.eye(OUTPUTS)[rng.integers(OUTPUTS, size=NODES)].astype(dtype)
    start = (0.3 * rng.standard_normal((FEATURES, OUTPUTS))).astype(dtype)

    def trained(network: str, **change: Any) -> Any:
        """A run; by default with all train nodes and all neighbours, sampled."""
        arguments: dict[str, Any] = {
            "batch_size": len(TRAIN),
            "fan_out": largest,
            "max_fan_out": largest,
            "train_nodes": TRAIN,
            "record": ("batch",),
            "key": keys[1],
        }
        return train(
            graph=graph,
            features=features,
            targets=targets,
            network=network,
            step_size=STEP_SIZE,
            num_steps=STEPS,
            initial_params=None if network == "gat" else start,
            **arguments | change,
        )

    def losses(network: str, **change: Any) -> Any:
        """Its batch losses, the only ones recorded."""
        return trained(network, record=("batch",), **change).batch_loss

    sizes, fan_outs = (jnp.asarray(column) for column in zip(*CELLS, strict=True))

    def cell(params: dict[str, jax.Array], key: jax.Array) -> jax.Array:
        place = params["cell"]
        return losses(
            "sage",
            key=key,
            batch_size=sizes[place],
            fan_out=fan_outs[place],
            max_batch_size=len(TRAIN),
        )

    together = repeat("exact-cells", cell, {"cell": np.arange(len(CELLS))}, keys[2:])["value"]
    alone = np.stack(
        [
            losses("sage", key=keys[2], batch_size=b, fan_out=f, max_batch_size=len(TRAIN))
            for b, f in CELLS
        ]
    )
    again = losses(
        "sage",
        key=keys[2],
        batch_size=CELLS[0][0],
        fan_out=CELLS[0][1],
        max_batch_size=len(TRAIN),
    )
    attention = trained("gat", record=("batch", "full"))
    everyone = np.arange(NODES)
    mean, normalized = _aggregated(graph, features)

    def descent(rows: Any, nodes: Any) -> Any:
        return _descent(rows, targets, start, nodes)

    columns = {
        "sampled": (
            losses("sage", max_batch_size=len(TRAIN)),
            losses("gcn"),
            losses("gcn_block", train_nodes=everyone, batch_size=NODES),
        ),
        "descent": (
            descent(mean, TRAIN),
            descent(normalized, TRAIN),
            descent(normalized, everyone),
        ),
    }
    step = "exact_step"
    cells = ("exact_cell", step)
    variables: dict[str, Any] = {
        f"exact_{name}": (("exact_network", step), np.array(values), {"long_name": words})
        for (name, values), words in zip(
            columns.items(),
            ("losses with all nodes and all neighbours, sampled", "losses of gradient descent"),
            strict=True,
        )
    }
    variables |= {
        "exact_block_degrees": (
            step,
            np.asarray(losses("gcn_block")),
            {"long_name": "block degrees, batches of the train nodes alone"},
        ),
        "exact_block_descent": (step, descent(normalized, TRAIN)),
        "exact_attention": (step, np.asarray(attention.batch_loss)),
        "exact_whole_attention": (
            step,
            np.asarray(attention.full_loss),
            {"long_name": "attention over the whole graph, same weights"},
        ),
        "exact_together": (cells, together.isel(seed=0).values, {"long_name": "cells of one grid"}),
        "exact_alone": (cells, alone, {"long_name": "the same cells, a run each"}),
        "exact_again": (step, np.asarray(again), {"long_name": "the first cell, run again"}),
    }
    coords = {
        "exact_network": ["sage", "gcn", "gcn_block"],
        "exact_cell": [f"b = {b}, β = {fan_out}" for b, fan_out in CELLS],
        step: np.arange(STEPS),
    }
    return describe(xr.Dataset(variables, coords=coords), "loss")


def _graph(rng: np.random.Generator) -> graphs.Graph:
    """A path with chords, degrees from 0 (the last node, one to train on) to `LARGEST` (node 0)."""
    path = [(i, i + 1) for i in range(NODES - 2)]
    hub = [(0, int(j)) for j in rng.choice(np.arange(2, NODES - 1), LARGEST - 1, replace=False)]
    return graphs.from_edges(path + hub, NODES)


def _aggregated(graph: Any, features: Any) -> tuple[np.ndarray, np.ndarray]:
    """H by dense matrices: mean over neighbours, and D^{-1/2} A D^{-1/2}."""
    adjacency, degrees = graph.adjacency(), np.maximum(graph.degrees(), 1)
    root = 1 / np.sqrt(degrees)
    rows = adjacency @ features
    return rows / degrees[:, None], root[:, None] * (adjacency @ (root[:, None] * features))


def _descent(rows: Any, targets: Any, start: Any, nodes: Any) -> Float[np.ndarray, " steps"]:
    """Losses ½ mean‖H W_t − y‖² of full-graph descent, from the closed form of W_t."""
    h, y = np.asarray(rows, np.float64)[nodes], np.asarray(targets, np.float64)[nodes]
    nothing = np.zeros((h.shape[1], h.shape[1]))
    path = mean_iterate(np.asarray(start).T, h, nothing, y, STEP_SIZE, STEPS - 1)
    errors = np.einsum("tkr,nr->tnk", np.asarray(path), h) - y[None]
    return np.sum(errors**2, axis=2).mean(axis=1) / 2


def _same(value: str, reference: str, tolerance: float) -> Check:
    return values_against(((value, reference),), tolerance=tolerance)


def _cells(shift: int) -> Check:
    """Cells of the grid against single runs, `shift` cells off."""

    def check(dataset: xr.Dataset) -> Evidence:
        return Evidence(
            exact=dataset["exact_together"].values.ravel(),
            reference=np.roll(dataset["exact_alone"].values, shift, axis=0).ravel(),
            tolerance=1e-6,
        )

    return check


def _again(place: int) -> Check:
    def check(dataset: xr.Dataset) -> Evidence:
        reference = dataset["exact_alone"].isel(exact_cell=place).values
        return Evidence(exact=dataset["exact_again"].values, reference=reference)

    return check


ROUNDING = 1e-10
THEORY = "boundlab.theory.fanout.mean_iterate"
DESCENT = "tests/models/test_training.py::"
LIMIT = Source("derived", "docs/fanout.md#full-graph-limit")
CLAIMS = (
    Claim(
        id="exact-limit",
        source=LIMIT,
        statement=r"$b=n_{\mathrm{train}}$, $\beta\geq d_{\max}$ is full-graph descent, step by step",
        kind=Kind.IDENTITY,
        check=_same("exact_sampled", "exact_descent", ROUNDING),
        control=_same("exact_block_degrees", "exact_block_descent", ROUNDING),
        control_statement="so it is for block degrees with batches of the train nodes alone",
        formula=THEORY,
        test=DESCENT + "test_all_neighbours_and_all_nodes_are_full_graph_descent",
    ),
    Claim(
        id="exact-attention",
        source=LIMIT,
        statement=r"attention over all sampled neighbours is attention over the graph",
        kind=Kind.IDENTITY,
        check=_same("exact_attention", "exact_whole_attention", ROUNDING),
        control=_same("exact_attention", "exact_block_descent", ROUNDING),
        control_statement="it is a convolution",
        formula="boundlab.models.gnn.GAT",
        test=DESCENT + "test_all_neighbours_and_all_nodes_are_full_graph_descent",
    ),
    Claim(
        id="exact-bits",
        source=Source("derived", "docs/fanout.md#sampler"),
        statement=r"one key gives one run, bit for bit",
        kind=Kind.IDENTITY,
        check=_again(0),
        control=_again(1),
        control_statement="the run of another cell",
        formula="boundlab.models.training.train",
        test=DESCENT + "test_one_program_serves_the_grid_and_equals_single_runs",
    ),
    Claim(
        id="exact-cells",
        source=Source("derived", "docs/fanout.md#sampler"),
        statement=r"a grid over $(b,\beta)$ gives each cell what a run alone gives",
        kind=Kind.IDENTITY,
        check=_cells(0),
        control=_cells(1),
        control_statement="what its neighbour's run gives",
        formula="boundlab.models.training.train",
        test=DESCENT + "test_one_program_serves_the_grid_and_equals_single_runs",
    ),
)
