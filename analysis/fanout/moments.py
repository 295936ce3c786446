"""Moments: what sampling neighbours and batches does to estimates, gradients and the floor of SGD.

One linear layer, squared loss ½‖·‖². Draws of one batch at fixed weights W give the covariance of the
sampled neighbour mean, the implicit ridge, and the batch's and the fan-out's part of the gradient noise;
runs of SGD give its mean iterate and noise floor; enumeration of every sample of a small graph gives the
convex order. Symbols: n nodes, b batch size, β fan-out, d degree, η step size, V̄ mean covariance of the
sampled neighbour mean, L_β expected sampled loss.
"""

import itertools
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.special import logsumexp

from boundlab.analysis.datasets import describe
from boundlab.analysis.fanout import moments_simulation as simulation
from boundlab.analysis.fanout.config import Config
from boundlab.analysis.fanout.moments_claims import CLAIMS as CLAIMS
from boundlab.analysis.fanout.problems import Problem, mixed_problem
from boundlab.experiment import Repeat
from boundlab.models import graphs
from boundlab.models.random_graphs import generator
from boundlab.theory import fanout

FEATURES = 8
"""Features r: the first-order floor wants b ≥ r."""
RUN_BATCH_SIZES = (8, 16, 32)
RUN_FAN_OUT = 2
STEP_SIZE = 0.02
MARKS, STEPS_BETWEEN = 10, 40
"""A run is looked at after 40, 80, … steps."""
SMALL_NODES, SMALL_DEGREE, SMALL_CLASSES = 24, 7, 3
NUM_WEIGHTS = 12
"""Weights at which losses are enumerated on the small graph."""

BATCH, FAN_OUT = "moments_batch_size", "moments_fan_out"
CURVE_BATCH, CURVE_FAN_OUT = "moments_curve_batch_size", "moments_curve_fan_out"


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Theory and simulation at fixed weights, of runs of SGD, and every sample of a small graph."""
    keys = [jax.random.fold_in(key, i) for i in range(5)]
    sizes = {"num_nodes": config.moment_nodes, "degree": config.moment_degree}
    small = mixed_problem(replace(config, num_features=FEATURES, **sizes), keys[0])
    large = mixed_problem(replace(config, num_features=FEATURES), keys[1])
    pieces = [
        _fixed_weights(config, small, keys[2], repeat),
        _descent(config, large, keys[3], repeat),
        _enumerated(config, keys[4]),
    ]
    return describe(xr.merge(pieces, join="exact"), "dimensionless")


def batch_sizes(num_nodes: int) -> tuple[int, ...]:
    """Simulated batch sizes: a twelfth and a third of the nodes, and all of them."""
    return (num_nodes // 12, num_nodes // 3, num_nodes)


def fan_outs(degree: int) -> tuple[int, ...]:
    """Simulated fan-outs: 1, 2, half of the neighbours, and all."""
    return (1, 2, degree // 2, degree)


def _fixed_weights(config: Config, problem: Problem, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    weights = _random(jax.random.fold_in(key, 0), (problem.targets.shape[1], FEATURES))
    graph, x, y, w = problem.graph, problem.features, problem.targets, 0.3 * weights
    n, degree = config.moment_nodes, config.moment_degree
    simulated = fan_outs(degree)
    moments = {b: fanout.neighbor_mean_moments(graph, x, b) for b in range(1, degree + 1)}
    h = moments[degree].mean
    full_gradient = (h @ w.T - y).T @ h / n
    penalty = np.array([w @ moments[b].average_covariance for b in simulated])
    losses = [fanout.sampled_loss_moments(graph, x, y, w, b) for b in range(1, degree + 1)]
    mean_loss = np.array([np.mean(loss.mean) for loss in losses])
    centre = simulation.Centre(
        simulated,
        full_gradient + penalty,
        full_gradient,
        penalty,
        mean_loss[np.array(simulated) - 1],
    )
    found = simulation.draws(
        problem,
        w,
        centre,
        batch_sizes(n),
        jax.random.split(jax.random.fold_in(key, 1), config.moment_draws),
        repeat,
        config.dtype,
    )
    return found.merge(_at_fan_outs(problem, moments, mean_loss)).merge(_at_cells(problem, w))


def _at_fan_outs(
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


def _at_cells(problem: Problem, w: Float[np.ndarray, "K r"]) -> xr.Dataset:
    """Closed forms over batch sizes and fan-outs, and wrong ones beside them."""
    graph, x, y = problem.graph, problem.features, problem.targets
    n, degree = graph.num_nodes, int(graph.degrees().max())
    sizes = np.unique([*np.geomspace(1, n, 13).astype(int), *batch_sizes(n)])
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


def _descent(config: Config, problem: Problem, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    graph, x, y = problem.graph, problem.features, problem.targets
    moments = fanout.neighbor_mean_moments(graph, x, RUN_FAN_OUT)
    h, v = moments.mean, moments.average_covariance
    start = np.zeros((y.shape[1], FEATURES))
    steps = MARKS * STEPS_BETWEEN
    path, ridgeless = (
        np.asarray(fanout.mean_iterate(start, h, ridge, y, STEP_SIZE, steps))[::STEPS_BETWEEN]
        for ridge in (v, np.zeros_like(v))
    )
    found = simulation.runs(
        problem,
        simulation.Descent(
            start,
            path,
            h.T @ h / len(h) + v,
            RUN_BATCH_SIZES,
            RUN_FAN_OUT,
            STEP_SIZE,
            STEPS_BETWEEN,
        ),
        jax.random.split(key, config.moment_runs),
        repeat,
        config.dtype,
    )
    along = np.sum(ridgeless * path, axis=(1, 2)) / np.sum(path**2, axis=(1, 2))
    curve = np.array([4, 8, 12, 16, 24, 32, 48, 64])
    floors = [float(fanout.noise_floor(graph, x, y, int(b), RUN_FAN_OUT, STEP_SIZE)) for b in curve]
    theory = xr.Dataset(
        {
            "moments_ridgeless_iterate": (
                "moments_step",
                along[1:],
                {"long_name": "mean iterate without V̄, along that with it", "units": "1"},
            ),
            "moments_whole_iterate": (
                "moments_step",
                np.ones(MARKS),
                {"long_name": "mean iterate, along itself", "units": "1"},
            ),
            "moments_floor": (
                "moments_run_curve",
                floors,
                {"long_name": "excess sampled loss, (η/4) tr Cov", "units": "loss"},
            ),
        },
        coords={"moments_step": found["moments_step"], "moments_run_curve": curve},
    )
    theory["moments_floor"].attrs |= {"step_size": STEP_SIZE, "fan_out": RUN_FAN_OUT}
    return found.merge(theory)


def _enumerated(config: Config, key: jax.Array) -> xr.Dataset:
    """Losses over every sample of a small graph, at random weights of several sizes."""
    graph = graphs.fixed_mix(
        jax.random.fold_in(key, 0), SMALL_NODES, SMALL_DEGREE, SMALL_CLASSES, config.homophily
    )
    x = graphs.class_features(jax.random.fold_in(key, 1), graph.labels, 4, config.class_gap)
    y = (graph.labels[:, None] == np.arange(SMALL_CLASSES)).astype(np.float64)
    scale = np.repeat([0.1, 0.2, 0.4], NUM_WEIGHTS // 3)
    unit = _random(jax.random.fold_in(key, 2), (NUM_WEIGHTS, SMALL_CLASSES, 4))
    weights = scale[:, None, None] * unit
    candidates = np.arange(1, SMALL_DEGREE + 1)
    losses = np.array([_every_sample(graph, x, y, weights, int(b)) for b in candidates])
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


def _every_sample(
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


def _random(key: jax.Array, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    return generator(key).standard_normal(shape)


def _dataset(columns: dict[str, Any], dims: tuple[str, ...], coords: dict[str, Any]) -> xr.Dataset:
    variables = {
        f"moments_{name}": (dims, np.asarray(values), {"long_name": words, "units": units})
        for name, (values, words, units) in columns.items()
    }
    return xr.Dataset(variables, coords={dim: coords[dim] for dim in dims})
