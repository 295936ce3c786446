"""Closed forms behind the part on moments, wrong ones beside them, and losses over every sample.

Symbols: n nodes, b batch size, β fan-out, m = min(β, d) of d neighbours, W weights, V_i covariance of the
sampled neighbour mean.
"""

import itertools
from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.special import logsumexp

from boundlab.analysis.fanout.config import Config
from boundlab.analysis.fanout.problems import Problem
from boundlab.models import graphs
from boundlab.models.random_graphs import generator
from boundlab.theory import fanout

SMALL_NODES, SMALL_DEGREE, SMALL_CLASSES, SMALL_FEATURES = 24, 7, 3, 4
NUM_WEIGHTS = 12
"""Weights at which losses are enumerated on the small graph."""
CURVE_BATCH, CURVE_FAN_OUT = "moments_curve_batch_size", "moments_curve_fan_out"


def mixed(
    config: Config,
    key: jax.Array,
    num_nodes: int,
    degree: int,
    num_classes: int,
    num_features: int,
) -> Problem:
    """The study's fixed mix in another size."""
    graph = graphs.fixed_mix(
        jax.random.fold_in(key, 0), num_nodes, degree, num_classes, config.homophily
    )
    x = graphs.class_features(
        jax.random.fold_in(key, 1), graph.labels, num_features, config.class_gap
    )
    labels = np.asarray(graph.labels)
    y = (labels[:, None] == np.arange(num_classes)).astype(np.float64)
    return Problem("fixed mix", graph, x, y, labels)


def normal(key: jax.Array, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    return generator(key).standard_normal(shape)


def at_fan_outs(
    problem: Problem, moments: dict[int, fanout.Moments], mean_loss: Float[np.ndarray, " fan_outs"]
) -> xr.Dataset:
    """Closed forms that the batch size does not enter, and wrong ones beside them."""
    candidates = np.array(list(moments))
    trace = np.array([moment.covariance_trace.mean() for moment in moments.values()])
    two_hops = [
        fanout.two_hop_variance(problem.graph, problem.features, int(b), int(b)).mean()
        for b in candidates
    ]
    outer = [
        fanout.neighbor_mean_moments(problem.graph, moment.mean, b).covariance_trace.mean()
        for b, moment in moments.items()
    ]
    columns = {
        "covariance_trace": (trace, "mean over nodes of tr V_i", "features²"),
        # At β = 1 the two laws are one, which gives the trace of S²(1 − 1/d).
        "replacement_trace": (trace[0] / candidates, "the same with replacement", "features²"),
        "two_hop_variance": (two_hops, "mean over nodes of tr Cov, two hops", "features²"),
        "two_hop_sum": (np.array(outer) + trace, "variances of both hops added", "features²"),
        "sampled_loss": (mean_loss, "expected sampled loss, mean of ½‖·‖²", "loss"),
        "full_loss": (
            np.full(len(candidates), mean_loss[-1]),
            "loss with all neighbours, mean of ½‖·‖²",
            "loss",
        ),
        "whole_share": (np.ones(len(candidates)), "gradient moved by all of W V̄", "1"),
    }
    return _dataset(columns, (CURVE_FAN_OUT,), {CURVE_FAN_OUT: candidates})


def at_cells(
    problem: Problem, batch_sizes: tuple[int, ...], w: Float[np.ndarray, "K r"]
) -> xr.Dataset:
    """Closed forms over batch sizes and fan-outs, and wrong ones beside them."""
    graph, x, y = problem.graph, problem.features, problem.targets
    n, degree = graph.num_nodes, int(graph.degrees().max())
    sizes = np.unique([*np.geomspace(1, n, 13).astype(int), *batch_sizes])
    candidates = np.arange(1, degree + 1)
    parts = np.array(
        [[fanout.gradient_noise(graph, x, y, w, int(b), int(f)) for f in candidates] for b in sizes]
    )
    deviations = [
        [float(fanout.batch_loss_std(graph, x, y, w, int(b), int(f))) for f in candidates]
        for b in sizes
    ]
    within, between = n * parts[-1, :, 1], parts[0, :, 0] * n / (n - 1)
    b, f = sizes[:, None], candidates[None, :]
    # d/(d − m) turns 1/m − 1/d into 1/m; the exact zeros at β = d stay out of the claims.
    uncorrected = within[None, :] / b * np.where(f < degree, degree / np.maximum(degree - f, 1), 1)
    # Losses with all neighbours vary over nodes alone.
    nodes_alone = np.array(deviations)[:, -1:] ** 2 * np.ones((1, degree))
    unit = "gradient²"
    columns = {
        "batch_part": (parts[..., 0], "trace of the batch's part of the noise", unit),
        "fan_out_part": (parts[..., 1], "trace of the fan-out's part of the noise", unit),
        "noise": (parts.sum(axis=-1), "trace of the noise of the batch gradient", unit),
        "iid_batch_part": (between[None, :] / b, "batch's part without 1 − b/n", unit),
        "iid_noise": (
            between[None, :] / b + parts[..., 1],
            "noise without 1 − b/n",
            unit,
        ),
        "uncorrected_fan_out_part": (
            uncorrected,
            "fan-out's part with 1/m instead of 1/m − 1/d",
            unit,
        ),
        "batch_loss_variance": (
            np.array(deviations) ** 2,
            "variance of a batch's own loss",
            "loss²",
        ),
        "nodes_alone_variance": (nodes_alone, "the same with all neighbours", "loss²"),
    }
    return _dataset(
        columns, (CURVE_BATCH, CURVE_FAN_OUT), {CURVE_BATCH: sizes, CURVE_FAN_OUT: candidates}
    )


def enumerated(config: Config, key: jax.Array) -> xr.Dataset:
    """Losses over every sample of a small graph, at random weights of several sizes."""
    problem = mixed(config, key, SMALL_NODES, SMALL_DEGREE, SMALL_CLASSES, SMALL_FEATURES)
    graph, x, y = problem.graph, problem.features, problem.targets
    scale = np.repeat([0.1, 0.2, 0.4], NUM_WEIGHTS // 3)
    unit = normal(jax.random.fold_in(key, 2), (NUM_WEIGHTS, SMALL_CLASSES, SMALL_FEATURES))
    weights = scale[:, None, None] * unit
    candidates = np.arange(1, SMALL_DEGREE + 1)
    losses = np.array([every_sample(graph, x, y, weights, int(b)) for b in candidates])
    losses = np.moveaxis(losses, 0, -1)  # (loss, weights, fan_out)
    formula = [
        [np.mean(fanout.sampled_loss_moments(graph, x, y, w, int(b)).mean) for b in candidates]
        for w in weights
    ]
    gap = [
        [float(fanout.cross_entropy_gap(graph, x, w, int(b))) for b in candidates] for w in weights
    ]
    rows = ("moments_weights", "moments_small_fan_out")
    coords = {
        "moments_loss": ["squared", "cross-entropy"],
        "moments_small_fan_out": candidates,
        "moments_weights": np.arange(NUM_WEIGHTS),
    }
    columns = {
        "squared_loss": (np.array(formula), "expected squared loss, closed form", "loss"),
        "entropy_gap": (
            losses[1] - losses[1][:, -1:],
            "cross-entropy that sampling adds, every sample",
            "nats",
        ),
        "entropy_gap_formula": (np.array(gap), "the same, second order", "nats"),
    }
    every = {"enumerated_loss": (losses, "expected loss, every sample", "loss")}
    return _dataset(every, ("moments_loss", *rows), coords).merge(_dataset(columns, rows, coords))


def every_sample(
    graph: Any,
    x: Float[np.ndarray, "n r"],
    y: Float[np.ndarray, "n K"],
    weights: Float[np.ndarray, "cases K r"],
    fan_out: int,
) -> Float[np.ndarray, "2 cases"]:
    """Squared loss and cross-entropy, averaged over all samples of all nodes, equally many a node."""
    table = graph.neighbor_table().index
    subsets = np.array(list(itertools.combinations(range(table.shape[1]), fan_out)))
    means = x[table[:, subsets]].mean(axis=2)  # (nodes, samples, r)
    logits = np.einsum("nsr,ckr->cnsk", means, weights)
    squared = 0.5 * np.sum((logits - y[:, None]) ** 2, axis=-1)
    entropy = logsumexp(logits, axis=-1) - np.sum(logits * y[:, None], axis=-1)
    return np.stack([squared.mean(axis=(1, 2)), entropy.mean(axis=(1, 2))])


def _dataset(columns: dict[str, Any], dims: tuple[str, ...], coords: dict[str, Any]) -> xr.Dataset:
    variables = {
        f"moments_{name}": (dims, np.asarray(values), {"long_name": words, "units": units})
        for name, (values, words, units) in columns.items()
    }
    return xr.Dataset(variables, coords={dim: coords[dim] for dim in dims})
