"""Fan-out as an implicit ridge: test error against fan-out, at several numbers of training nodes.

Training with sampled neighbours aims at W_β = C_yh(C_hh + V̄(β))⁺ of the training nodes; its test error
with all neighbours is the mean over test nodes and outputs of (W_β h̄ − y)², no ½. Here it is computed by
the closed form over random training sets; on the fixed-mix graph also from least squares on drawn
neighbourhoods and from runs of SGD. β = ∞ stands for all neighbours.
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from boundlab.analysis.datasets import describe
from boundlab.analysis.fanout import problems
from boundlab.analysis.fanout.config import Config
from boundlab.analysis.fanout.problems import Problem
from boundlab.analysis.fanout.ridge_claims import CLAIMS as CLAIMS
from boundlab.analysis.fanout.ridge_simulation import least_squares, random_orders, trained
from boundlab.experiment import Repeat
from boundlab.models import graphs
from boundlab.theory.fanout import average_covariances, implicit_ridge, neighbor_mean_moments

SHARES = (1 / 3, 1 / 2, 2 / 3, 5 / 6, 1.0)  # of the degree; and 1, 2, 4
DIGITS = (80, 400)  # training nodes, "few" and "many"
CITATIONS = (140, 400)
CITATION_FAN_OUTS = (1.0, 2.0, 3.0, 5.0, np.inf)
Orders = Int[np.ndarray, "splits n"]
Grid = Sequence[int | float]


def fan_outs(degree: int) -> list[int]:
    """Fan-outs of the curves: 1, 2, 4 and shares of the degree up to all of it."""
    return sorted({b for b in (1, 2, 4) if b < degree} | {round(s * degree) for s in SHARES})


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Test errors of the closed form on every graph; simulated ones on the fixed-mix graph."""
    problem = problems.mixed_problem(config, jax.random.fold_in(key, 0))
    keys = jax.random.split(jax.random.fold_in(key, 1), config.ridge_splits)
    found = xr.merge(
        [
            _fixed_mix(config, problem, random_orders(keys, config.num_nodes)),
            _simulations(config, problem, keys, repeat),
            _graphs(config, jax.random.fold_in(key, 2)),
            _citations(config, jax.random.fold_in(key, 3)),
            _degenerate(config, jax.random.fold_in(key, 4)),
        ]
    )
    return describe(found, "squared target, mean over nodes and outputs")


def ridge_errors(
    problem: Problem,
    orders: Orders,
    sizes: Sequence[int],
    grid: Grid,
    *,
    with_replacement: bool = False,
) -> tuple[Float[np.ndarray, "splits sizes grid"], Float[np.ndarray, "splits sizes grid"]]:
    """Test error and test accuracy of W_β: the first nodes of each order train, all others test.

    `with_replacement`: the ridge of β independent draws instead, V̄(1)/β, which never vanishes.
    """
    full = _moments(problem, np.inf, None).mean
    found = np.empty((2, len(orders), len(sizes), len(grid)))
    for j, size in enumerate(sizes):
        means = np.stack([_filled(full[order[:size]], sizes[-1]) for order in orders])
        targets = np.stack([_filled(problem.targets[order[:size]], sizes[-1]) for order in orders])
        drawn = [1] * len(grid) if with_replacement else [_concrete(problem, b) for b in grid]
        ridges = np.stack(
            [
                average_covariances(problem.graph, problem.features, drawn, order[:size])
                for order in orders
            ]
        )
        if with_replacement:
            ridges = ridges / np.array(grid)[:, None, None]
        for k in range(len(grid)):
            weights = _weights(means, ridges[:, k], targets)
            for i, order in enumerate(orders):
                test = order[size:]
                outputs = (full @ weights[i].T)[test]
                found[0, i, j, k] = np.mean((outputs - problem.targets[test]) ** 2)
                found[1, i, j, k] = np.mean(outputs.argmax(axis=1) == problem.labels[test])
    return found[0], found[1]


def _filled(rows: Float[np.ndarray, "size r"], length: int) -> Float[np.ndarray, "length r"]:
    """Rows of zeros added, with the same second moments: one program serves every training size."""
    filled = np.zeros((length, rows.shape[1]))
    filled[: len(rows)] = np.sqrt(length / len(rows)) * rows
    return filled


_SOLVE = jax.jit(jax.vmap(lambda *arguments: implicit_ridge(*arguments).weights))
TOGETHER, OUTPUTS = 8, 10
"""Problems that one program solves, and their outputs: it serves all with as many features."""


def _weights(
    means: Float[np.ndarray, "splits size r"],
    ridges: Float[np.ndarray, "splits r r"],
    targets: Float[np.ndarray, "splits size K"],
) -> Float[np.ndarray, "splits K r"]:
    """W_β of every split; outputs of zeros are added, and the last few splits repeated."""
    count, outputs = len(means), targets.shape[2]
    padded = np.pad(targets, ((0, 0), (0, 0), (0, max(0, OUTPUTS - outputs))))
    places = np.minimum(np.arange(-(-count // TOGETHER) * TOGETHER), count - 1)
    found = [
        np.asarray(_SOLVE(means[chosen], ridges[chosen], padded[chosen]))
        for chosen in places.reshape(-1, TOGETHER)
    ]
    return np.concatenate(found)[:count, :outputs]


def _concrete(problem: Problem, fan_out: int | float) -> int:
    """The fan-out as a number; ∞ is the largest degree."""
    most = int(problem.graph.degrees().max())
    return max(1, most if np.isinf(fan_out) else int(fan_out))


def _moments(problem: Problem, fan_out: int | float, nodes: Any) -> Any:
    beta = _concrete(problem, fan_out)
    return neighbor_mean_moments(problem.graph, problem.features, beta, nodes)


def _fixed_mix(config: Config, problem: Problem, orders: Orders) -> xr.Dataset:
    sizes, grid = config.ridge_num_train, fan_outs(config.degree)
    error, accuracy = ridge_errors(problem, orders, sizes, grid)
    replaced, _ = ridge_errors(problem, orders, sizes, [config.degree], with_replacement=True)
    dims = ("ridge_seed", "ridge_num_train")
    return xr.Dataset(
        {
            "ridge_error": (
                (*dims, "ridge_fan_out"),
                error,
                {"long_name": "test error of W_β, fixed mix, closed form"},
            ),
            "ridge_accuracy": (
                (*dims, "ridge_fan_out"),
                accuracy,
                {"long_name": "test accuracy of W_β, fixed mix", "units": "share"},
            ),
            "ridge_replacement_error": (
                dims,
                replaced[..., 0],
                {"long_name": "test error if as many neighbours as there are, with replacement"},
            ),
        },
        coords={
            "ridge_num_train": list(sizes),
            "ridge_fan_out": ("ridge_fan_out", grid, {"degree": config.degree}),
        },
    )


def _simulations(config: Config, problem: Problem, keys: Any, repeat: Repeat) -> xr.Dataset:
    grid = fan_outs(config.degree)
    half = grid[len(grid) // 2]
    ends = [config.ridge_num_train[0], config.ridge_num_train[-1]]
    few = sorted({grid[1], half, grid[-1]})
    solved = repeat(
        "ridge-least-squares",
        least_squares(config, problem),
        {"num_train": np.array(ends), "fan_out": np.array(few)},
        keys,
    )
    batches = sorted({max(1, ends[0] // share) for share in (10, 3, 1)})
    trained_at = [b for b in (grid[1], half) if b < config.degree]
    descended = repeat(
        "ridge-training",
        trained(config, problem, max(trained_at)),
        {"batch_size": np.array(batches), "fan_out": np.array(trained_at)},
        keys,
    )
    return xr.Dataset(
        {
            "ridge_simulated_error": (
                ("ridge_simulated_num_train", "ridge_simulated_fan_out", "ridge_seed"),
                solved["value"].values,
                {"long_name": "test error of least squares on drawn neighbourhoods"},
            ),
            "ridge_trained_error": (
                ("ridge_batch_size", "ridge_trained_fan_out", "ridge_seed"),
                descended["value"].values,
                {"long_name": "test error after SGD with fresh batches and samples"},
            ),
        },
        coords={
            "ridge_simulated_num_train": ends,
            "ridge_simulated_fan_out": few,
            "ridge_batch_size": batches,
            "ridge_trained_fan_out": trained_at,
        },
    )


def _splits(key: jax.Array, problem: Problem, count: int) -> Orders:
    """Random orders of the labelled nodes."""
    keys = jax.random.split(key, count)
    return np.stack([np.concatenate(problems.split(k, problem.labels, 1)) for k in keys])


def _graphs(config: Config, key: jax.Array) -> xr.Dataset:
    part = jax.random.fold_in
    ends = (config.ridge_num_train[0], config.ridge_num_train[-1])
    shown = [
        (problems.sbm_problem(config, part(key, 0)), ends),
        (problems.regular_problem(config, part(key, 1)), ends),
        (problems.power_law_problem(config, part(key, 2)), ends),
        (problems.digits_problem(), DIGITS),
    ]
    grid = [*(float(b) for b in fan_outs(config.degree)[:-1] if b != 2), np.inf]
    found = [
        ridge_errors(
            problem, _splits(part(key, 3), problem, config.ridge_graph_splits), sizes, grid
        )
        for problem, sizes in shown
    ]
    dims = ("ridge_graph", "ridge_graph_seed", "ridge_size", "ridge_graph_fan_out")
    return xr.Dataset(
        {
            "ridge_graph_error": (
                dims,
                np.array([error for error, _ in found]),
                {"long_name": "test error of W_β, closed form"},
            ),
            "ridge_graph_accuracy": (
                dims,
                np.array([accuracy for _, accuracy in found]),
                {"long_name": "test accuracy of W_β", "units": "share"},
            ),
            "ridge_graph_num_train": (
                ("ridge_graph", "ridge_size"),
                np.array([sizes for _, sizes in shown]),
                {"long_name": "training nodes", "units": "nodes"},
            ),
        },
        coords={
            "ridge_graph": [problem.label for problem, _ in shown],
            "ridge_size": ["few", "many"],
            "ridge_graph_fan_out": grid,
        },
    )


def _citations(config: Config, key: jax.Array) -> xr.Dataset:
    accuracy = []
    for name in config.ridge_citations:
        problem = problems.citation_problem(name, config.ridge_citation_features)
        orders = _splits(key, problem, config.ridge_citation_splits)
        accuracy.append(ridge_errors(problem, orders, CITATIONS, CITATION_FAN_OUTS)[1])
    return xr.Dataset(
        {
            "ridge_citation_accuracy": (
                (
                    "ridge_citation",
                    "ridge_citation_seed",
                    "ridge_citation_num_train",
                    "ridge_citation_fan_out",
                ),
                np.array(accuracy),
                {"long_name": "test accuracy of W_β, projected features", "units": "share"},
            )
        },
        coords={
            "ridge_citation": list(config.ridge_citations),
            "ridge_citation_num_train": list(CITATIONS),
            "ridge_citation_fan_out": list(CITATION_FAN_OUTS),
        },
    )


def _degenerate(config: Config, key: jax.Array) -> xr.Dataset:
    """Two cliques and one feature: without noise all neighbours agree, and there is no ridge."""
    graph = graphs.two_cliques(config.degree + 1)
    errors = []
    for noise in (0.0, 1.0):
        features = graphs.class_features(key, graph.labels, 1, config.class_gap, noise)
        targets = np.eye(2)[graph.labels]
        problem = Problem("cliques", graph, features, targets, np.asarray(graph.labels))
        every = np.arange(graph.num_nodes)
        full = _moments(problem, np.inf, None).mean
        row = []
        for fan_out in fan_outs(config.degree):
            moments = _moments(problem, fan_out, every)
            ridge = implicit_ridge(full, moments.average_covariance, targets)
            row.append(float(ridge.floor))
        errors.append(row)
    return xr.Dataset(
        {
            "ridge_clique_floor": (
                ("ridge_noise", "ridge_fan_out"),
                np.array(errors),
                {"long_name": "least sampled loss on two cliques", "units": "½‖·‖², mean"},
            )
        },
        coords={"ridge_noise": [0.0, 1.0]},
    )
