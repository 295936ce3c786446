"""Moments: what sampling neighbours and batches does to estimates, gradients and the floor of SGD.

One linear layer, squared loss ½‖·‖². Draws of one batch at fixed weights W give the covariance of the
sampled neighbour mean, the implicit ridge, and the batch's and the fan-out's part of the gradient noise;
runs of SGD give its mean iterate and noise floor; enumeration of every sample of a small graph gives the
convex order. Symbols: n nodes, b batch size, β fan-out, d degree, η step size, V̄ mean covariance of the
sampled neighbour mean, L_β expected sampled loss.
"""

import jax
import numpy as np
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.fanout import moments_exact as exact
from boundlab.analysis.fanout import moments_simulation as simulation
from boundlab.analysis.fanout.config import Config
from boundlab.analysis.fanout.moments_claims import CLAIMS as CLAIMS
from boundlab.analysis.fanout.problems import Problem
from boundlab.experiment import Repeat
from boundlab.theory import fanout

FEATURES = 8
"""Features r: the first-order floor wants b ≥ r."""
RUN_BATCH_SIZES = (8, 16, 32)
RUN_FAN_OUT = 2
STEP_SIZE = 0.02
MARKS, STEPS_BETWEEN = 10, 40
"""A run is looked at after 40, 80, … steps."""


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Theory and simulation at fixed weights, of runs of SGD, and every sample of a small graph."""
    keys = [jax.random.fold_in(key, i) for i in range(5)]
    small, large = (
        exact.mixed(config, part, num_nodes, degree, config.num_classes, FEATURES)
        for part, num_nodes, degree in (
            (keys[0], config.moment_nodes, config.moment_degree),
            (keys[1], config.num_nodes, config.degree),
        )
    )
    pieces = [
        _fixed_weights(config, small, keys[2], repeat),
        _descent(config, large, keys[3], repeat),
        exact.enumerated(config, keys[4]),
    ]
    return describe(xr.merge(pieces, join="exact"), "dimensionless")


def batch_sizes(num_nodes: int) -> tuple[int, ...]:
    """Simulated batch sizes: a twelfth and a third of the nodes, and all of them."""
    return (num_nodes // 12, num_nodes // 3, num_nodes)


def fan_outs(degree: int) -> tuple[int, ...]:
    """Simulated fan-outs: 1, 2, half of the neighbours, and all."""
    return (1, 2, degree // 2, degree)


def _fixed_weights(config: Config, problem: Problem, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    weights = exact.normal(jax.random.fold_in(key, 0), (problem.targets.shape[1], FEATURES))
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
    theory = exact.at_fan_outs(problem, moments, mean_loss)
    return found.merge(theory).merge(exact.at_cells(problem, batch_sizes(n), w))


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
    path, ridgeless = path[1:], ridgeless[1:]  # the start is zero
    along = np.sum(ridgeless * path, axis=(1, 2)) / np.sum(path**2, axis=(1, 2))
    curve = np.array([4, 8, 12, 16, 24, 32, 48, 64])
    floors = [float(fanout.noise_floor(graph, x, y, int(b), RUN_FAN_OUT, STEP_SIZE)) for b in curve]
    theory = xr.Dataset(
        {
            "moments_ridgeless_iterate": (
                "moments_step",
                along,
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
