"""What a training step costs and what a target costs: nodes, samples, edges, operations, seconds.

Touched nodes: a batch and what it samples, hop by hop, on four graphs of n nodes against the exact
one-hop count. Cost to a target: one-layer GraphSAGE trained by SGD over the grid of (b, β), iterations
to a target of the validation nodes (all neighbours), turned into other units by the cost of a step.
Seconds are read from a table of measured step times (`step_times`), so that two runs agree.
Symbols: b batch size, β fan-out, d_i degree, m_i = min(β, d_i), T iterations.
"""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.fanout import cost_touched
from boundlab.analysis.fanout.config import Config
from boundlab.analysis.fanout.cost_claims import CLAIMS as CLAIMS
from boundlab.analysis.fanout.problems import Problem, split
from boundlab.analysis.fanout.step_times import step_seconds_at
from boundlab.experiment import Repeat
from boundlab.models import graphs
from boundlab.models.gnn import node_losses
from boundlab.models.random_graphs import generator
from boundlab.models.training import first_hit, train
from boundlab.theory.fanout import training_flops

TARGETS = ("accuracy", "loss")
# Reached by a fan-out of 1 as well (the accuracy), and not below the floor that β = 1 has (the loss).
TARGET_ACCURACY = 0.8
TARGET_LOSS = 0.8
CLASS_GAP = 0.6
STEP_SIZE = 0.5
START_STD = 0.5
CELL = ("cost_batch_size", "cost_fan_out")
# Unit of a cost to a target, and the variable that holds the cost of a step in it.
UNITS = {
    "samples": "cost_samples",
    "edges": "cost_edges",
    "operations": "cost_operations",
    "seconds": "cost_seconds",
}


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Touched nodes, simulated and counted, and the cost of two targets over the grid of (b, β)."""
    problem = training_problem(config, jax.random.fold_in(key, 0))
    parts = [
        cost_touched.run(config, problem.graph, jax.random.fold_in(key, 1), repeat),
        _targets(config, problem, jax.random.fold_in(key, 2), repeat),
    ]
    return xr.merge(parts)


def training_problem(config: Config, key: jax.Array) -> Problem:
    """Fixed mix with classes so close that few iterations don't tell them apart."""
    graph = graphs.fixed_mix(
        jax.random.fold_in(key, 0),
        config.cost_nodes,
        config.cost_degree,
        config.num_classes,
        config.homophily,
    )
    labels = np.asarray(graph.labels)
    features = graphs.class_features(
        jax.random.fold_in(key, 1), labels, config.num_features, CLASS_GAP
    )
    targets = np.eye(config.num_classes)[labels]
    return Problem("fixed mix", graph, features, targets, labels)


def _targets(config: Config, problem: Problem, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Iterations to both targets in every cell, and their worth in samples, edges, operations, time."""
    train_nodes, validation = split(
        jax.random.fold_in(key, 0), problem.labels, config.cost_nodes // 2
    )
    features = problem.features.astype(config.dtype)
    # One random start for all runs: from zero weights the first step alone is a good classifier.
    shape = (features.shape[1], problem.targets.shape[1])
    start = START_STD * generator(jax.random.fold_in(key, 1)).standard_normal(shape)
    wanted = jnp.asarray(problem.targets[validation], dtype=config.dtype)

    def errors(outputs: jax.Array) -> jax.Array:
        """Misclassified share and mean loss of the validation nodes, all neighbours used."""
        found = outputs[validation]
        wrong = jnp.argmax(found, axis=1) != jnp.argmax(wanted, axis=1)
        loss = node_losses("cross_entropy", found, wanted).mean()
        return jnp.stack([jnp.mean(wrong, dtype=loss.dtype), loss])

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        traces = train(
            key,
            problem.graph,
            features,
            problem.targets,
            train_nodes,
            loss="cross_entropy",
            step_size=STEP_SIZE,
            batch_size=params["batch_size"],
            fan_out=params["fan_out"],
            num_steps=config.cost_steps,
            max_batch_size=config.cost_batch_sizes[-1],
            max_fan_out=config.cost_fan_outs[-1],
            initial_params=start,
            record=(),
            measure=errors,
        ).measured
        targets = (1 - TARGET_ACCURACY, TARGET_LOSS)
        hits = [first_hit(traces[:, i], target) for i, target in enumerate(targets)]
        return {
            "iterations": jnp.stack([hit.iterations for hit in hits]),
            "censored": jnp.stack([hit.censored for hit in hits]),
        }

    grid = {
        "batch_size": np.array(config.cost_batch_sizes),
        "fan_out": np.array(config.cost_fan_outs),
    }
    found = repeat(
        "cost-targets", one, grid, jax.random.split(jax.random.fold_in(key, 2), config.cost_seeds)
    )
    table = xr.Dataset(
        {
            "cost_iterations": (
                (*CELL, "cost_seed", "cost_target"),
                found["iterations"].values.astype(np.float64),
                {
                    "long_name": f"iterations T to the target, at most {config.cost_steps}",
                    "units": "iterations",
                },
            ),
            "cost_censored": (
                (*CELL, "cost_seed", "cost_target"),
                found["censored"].values,
                {"long_name": "target not reached: T is a lower bound", "units": "dimensionless"},
            ),
        },
        coords={
            "cost_batch_size": list(config.cost_batch_sizes),
            "cost_fan_out": list(config.cost_fan_outs),
            "cost_seed": np.arange(config.cost_seeds),
            "cost_target": list(TARGETS),
        },
    )
    table = table.merge(_step_costs(config, problem))
    for unit, cost in UNITS.items():
        worth = table["cost_iterations"] * table[cost]
        described = f"{unit} to the target: iterations × {table[cost].attrs['long_name']}"
        table[f"cost_to_{unit}"] = worth.assign_attrs(
            long_name=described, units=table[cost].attrs["units"]
        )
    return table


def _step_costs(config: Config, problem: Problem) -> xr.Dataset:
    """Samples, edges, operations and measured seconds of one step in every cell."""
    b, fan_outs = np.array(config.cost_batch_sizes), np.array(config.cost_fan_outs)
    sampled = np.minimum(problem.graph.degrees()[:, None], fan_outs).mean(axis=0)
    edges = b[:, None] * sampled
    widths = (problem.features.shape[1], problem.targets.shape[1])
    operations = [
        [float(training_flops([count], [size], widths)) for count in row]
        for size, row in zip(b.tolist(), edges.tolist(), strict=True)
    ]
    measured = step_seconds_at(config.cost_nodes, config.cost_batch_sizes, config.cost_fan_outs)
    timed = ("cost_device", *CELL)
    return xr.Dataset(
        {
            "cost_samples": (CELL[:1], b.astype(float), {"long_name": "b", "units": "nodes"}),
            "cost_edges": (
                CELL,
                edges,
                {"long_name": "sampled edges a step, b·mean min(β, d)", "units": "edges"},
            ),
            "cost_operations": (
                CELL,
                np.array(operations),
                {"long_name": "floating-point operations a step", "units": "operations"},
            ),
            "cost_seconds": (
                timed,
                measured["seconds"].values,
                {"long_name": "measured seconds a step", "units": "s"},
            ),
            "cost_seconds_spread": (
                timed,
                measured["spread"].values,
                {"long_name": "distance of the quartiles of the measured rounds", "units": "s"},
            ),
            "cost_throughput": (
                timed,
                b[:, None] / measured["seconds"].values,
                {"long_name": "training nodes a second", "units": "nodes/s"},
            ),
        },
        coords={"cost_device": measured["device"].values},
    )
