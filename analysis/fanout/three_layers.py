"""The paper's main network, GraphSAGE of three layers, over the grid of (b, β) and seeds.

Mean aggregator, LayerNorm and ReLU between layers, Adam, softmax cross-entropy; accuracies with all
neighbours. A run's test accuracy is that at the look with the best validation accuracy, as in the
paper; its iterations are those to a target batch loss that all cells share. The grid's best cell is
chosen by test accuracy, as reported maxima are, and looked at again on other seeds. float32.
Variables start with `sage_`. Symbols: b batch size, β fan-out of every layer, T iterations.
"""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.fanout import problems
from boundlab.analysis.fanout.config import Config
from boundlab.analysis.fanout.problems import Problem
from boundlab.analysis.fanout.three_layers_choice import CELL, RULES, choice, hits, quiet_target
from boundlab.analysis.fanout.three_layers_claims import CLAIMS as CLAIMS
from boundlab.experiment import Repeat
from boundlab.models import graphs
from boundlab.models.gnn import GraphSAGE
from boundlab.models.random_graphs import generator
from boundlab.models.training import train
from boundlab.theory.fanout import expected_maximum

LAYERS = 3
CLASS_GAP = 0.5


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Accuracy, iterations to the target and the choice of the best cell, a graph after another."""
    parts = []
    for number, name in enumerate(config.sage_graphs):
        own = jax.random.fold_in(key, number)
        problem = _problem(config, name, jax.random.fold_in(own, 0))
        runs = _runs(config, problem, jax.random.fold_in(own, 1), repeat)
        parts.append(runs.merge(choice(runs)).expand_dims(sage_graph=[name]))
    return xr.concat(parts, "sage_graph")


def _problem(config: Config, name: str, key: jax.Array) -> Problem:
    """A subset of the digits on its own nearest neighbours, a fixed mix, or a citation graph."""
    if name in ("cora", "pubmed"):
        return problems.citation_problem(name)
    if name == "digits":
        digits = problems.digits_problem()
        chosen = generator(key).permutation(len(digits.labels))[: config.sage_nodes]
        features, labels = digits.features[chosen], digits.labels[chosen]
        graph = graphs.nearest_neighbors(features, config.sage_neighbors)
        return Problem(name, graph, features, digits.targets[chosen], labels)
    graph = graphs.fixed_mix(
        jax.random.fold_in(key, 0),
        config.sage_nodes,
        config.sage_neighbors,
        config.num_classes,
        config.homophily,
    )
    labels = np.asarray(graph.labels)
    features = graphs.class_features(
        jax.random.fold_in(key, 1), labels, config.num_features, CLASS_GAP
    )
    return Problem(name, graph, features, np.eye(config.num_classes)[labels], labels)


def _runs(config: Config, problem: Problem, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Accuracy at the best look and iterations to the target, in every cell and for every seed."""
    known = generator(jax.random.fold_in(key, 0)).permutation(np.flatnonzero(problem.labels >= 0))
    quarter = len(known) // 4
    nodes, validation, test = np.split(known, [quarter, 2 * quarter])
    sizes = np.array([quarter // divisor for divisor in config.sage_batch_divisors])
    fan_outs = np.array(config.sage_fan_outs)
    network = GraphSAGE(problem.targets.shape[1], num_layers=LAYERS, hidden=config.sage_hidden)
    features, labels = problem.features.astype(np.float32), jnp.asarray(problem.labels)

    def accuracy(outputs: jax.Array) -> jax.Array:
        right = (jnp.argmax(outputs, axis=1) == labels).astype(outputs.dtype)
        return jnp.stack([right[validation].mean(), right[test].mean()])

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        trained = train(
            key,
            problem.graph,
            features,
            problem.targets,
            nodes,
            network=network,
            loss="cross_entropy",
            optimizer="adam",
            step_size=config.sage_step_size,
            batch_size=params["batch_size"],
            fan_out=params["fan_out"],
            num_steps=config.sage_steps,
            max_batch_size=int(sizes[-1]),
            max_fan_out=int(fan_outs[-1]),
            record=("batch",),
            record_every=config.sage_every,
            measure=accuracy,
        )
        assert trained.batch_loss is not None
        return {"loss": trained.batch_loss, "accuracy": trained.measured}

    keys = jax.random.split(jax.random.fold_in(key, 1), config.sage_seeds)
    grid = {"batch_size": sizes, "fan_out": fan_outs}
    # One run at a time: as fast as a vmap here, and a smaller program to compile.
    found = repeat(f"sage-{problem.label}", one, grid, keys, batch_size=1)
    looks, losses = found["accuracy"].values.astype(float), found["loss"].values.astype(float)
    best = looks[..., 0].argmax(axis=-1)[..., None]  # the first of equally good ones
    at_best = np.take_along_axis(looks, best[..., None], axis=-2)[..., 0, :]
    binomial = np.sqrt(at_best[..., 1] * (1 - at_best[..., 1]) / len(test))
    target = quiet_target(losses[0, 0], config.sage_window)
    iterations, censored = hits(losses, target, config.sage_window)
    runs, ruled = (*CELL, "sage_seed"), (*CELL, "sage_seed", "sage_rule")
    share = {"units": "dimensionless"}
    return xr.Dataset(
        {
            "sage_batch_size": (
                CELL[:1],
                sizes,
                {"long_name": "batch size b = n_train/divisor", "units": "nodes"},
            ),
            "sage_test_accuracy": (
                runs,
                at_best[..., 1],
                {"long_name": "test accuracy at the best validation accuracy"} | share,
            ),
            "sage_validation_accuracy": (
                runs,
                at_best[..., 0],
                {"long_name": "best validation accuracy of the run"} | share,
            ),
            "sage_largest_accuracy": (
                runs,
                looks[..., 1].max(axis=-1),
                {"long_name": "largest test accuracy of the run"} | share,
            ),
            "sage_maximum_of_looks": (
                runs,
                binomial * float(expected_maximum(looks.shape[-2])),
                {"long_name": "expected maximum of independent binomial errors, one a look"}
                | share,
            ),
            "sage_iterations": (
                ruled,
                iterations,
                {"long_name": "iterations to the target batch loss", "units": "iterations"},
            ),
            "sage_censored": (
                ruled,
                censored,
                {"long_name": "target not reached: iterations are a lower bound"} | share,
            ),
            "sage_target": (
                (),
                target,
                {"long_name": "target batch loss of every cell", "units": "nats"},
            ),
        },
        coords={
            "sage_divisor": list(config.sage_batch_divisors),
            "sage_fan_out": fan_outs,
            "sage_seed": np.arange(config.sage_seeds),
            "sage_rule": list(RULES),
        },
    )
