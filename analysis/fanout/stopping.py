"""Stopping rules: how the count of iterations to a loss depends on what is looked at.

Two experiments on the fixed mix of classes. The *contrast*: one setting (mean aggregator, squared loss,
SGD) at many targets, with the model of the stopping time through it. The *grid*: iterations over (b, β)
in several settings of network, loss and optimiser, under four rules, and the exponents fitted to them.
Symbols: b batch size, β fan-out, ε target, ρ explained share, T iterations counted from 1; a run that is
never stopped counts its whole length (restricted mean) and as censored.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float

from boundlab.analysis.datasets import describe
from boundlab.analysis.fanout.config import Config
from boundlab.analysis.fanout.problems import Problem
from boundlab.analysis.fanout.published_tables import fit_elasticities
from boundlab.analysis.fanout.stopping_claims import CLAIMS as CLAIMS
from boundlab.analysis.fanout.stopping_runs import (
    RULES,
    Setting,
    parse,
    record_runs,
    stop,
    stop_by_rules,
)
from boundlab.experiment import Repeat
from boundlab.models import graphs
from boundlab.theory.fanout import (
    hitting_time,
    implicit_ridge,
    mean_iterate,
    neighbor_mean_moments,
    paper_elasticities,
    sampled_loss_moments,
)

FAN_OUT = 6
"""Fan-out of the contrast."""
TARGETS = (0.98, 1.04, 1.08, 1.2, 1.5, 2.0)
"""Targets of the contrast in units of the floor L_β(W_β), which no weights go below."""
EVERY = 4
"""Updates between two looks at the losses without batch noise, in the contrast."""
INITIAL_STD = 0.1
EXPLAINED = {"mse": 0.28, "cross_entropy": 0.13}
"""Explained shares of the grid's targets: of the zero predictor's 1/K and of ln K."""


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Simulated and modelled stopping times, and the grid of iterations with its fitted exponents."""
    part = jax.random.fold_in
    parts = [_contrast(config, part(key, 0), repeat), _grid(config, part(key, 1), repeat)]
    return describe(xr.merge(parts), "updates")


def step_size(setting: Setting, num_classes: int) -> float:
    """Step size in units of the mean of ½‖·‖²; for squared loss and SGD the authors' .05, times 2/K."""
    if setting.optimizer == "adam":
        return 0.003
    return 2 * 0.05 / num_classes if setting.loss == "mse" else 0.05


def _problem(config: Config, key: jax.Array, num_nodes: int, degree: int) -> tuple[Problem, Any]:
    """The fixed mix at another size, and the weights that every run starts from."""
    keys = jax.random.split(key, 3)
    graph = graphs.fixed_mix(keys[0], num_nodes, degree, config.num_classes, config.homophily)
    features = graphs.class_features(keys[1], graph.labels, config.num_features, config.class_gap)
    labels = np.asarray(graph.labels)
    targets = np.eye(config.num_classes)[labels]
    shape = (config.num_features, config.num_classes)
    start = INITIAL_STD * jax.random.normal(keys[2], shape, jnp.float64)
    return Problem("fixed mix", graph, features, targets, labels), np.asarray(start)


def _contrast(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    n, steps, sizes = config.stopping_nodes, config.stopping_steps, config.stopping_batch_sizes
    problem, start = _problem(config, jax.random.fold_in(key, 0), n, config.degree)
    setting = Setting("sage", "mse", "sgd")
    eta = step_size(setting, config.num_classes)
    mean, _, covariance = neighbor_mean_moments(problem.graph, problem.features, FAN_OUT)
    floor = float(implicit_ridge(mean, covariance, problem.targets).floor)
    targets = floor * np.array(TARGETS)
    keys = jax.random.split(jax.random.fold_in(key, 1), config.stopping_seeds)
    found = record_runs(
        problem,
        setting,
        eta,
        sizes,
        (FAN_OUT,),
        steps,
        EVERY,
        keys,
        repeat,
        start,
        config.dtype,
    )
    dims = ("stopping_seed", "stopping_batch_size", "stopping_target")
    variables: dict[str, Any] = {}
    for name, losses, every in (
        ("batch", found.batch, 1),
        ("sampled", found.sampled, EVERY),
        ("full", found.full, EVERY),
    ):
        stops = stop(losses[:, :, 0, None], targets[None, None, :], every=every)
        words = {"long_name": f"T of the {name} loss, simulated"}
        variables[f"stopping_{name}_time"] = (dims, stops.iterations.astype(np.float64), words)
        censored = {"long_name": f"runs that the {name} loss never stops", "units": "share"}
        variables[f"stopping_{name}_censored"] = (dims, stops.censored.astype(np.float64), censored)
    path = mean_iterate(start.T, mean, covariance, problem.targets, eta, steps - 1)
    model = _model(problem, path, sizes, targets)
    for name, (values, words) in model.items():
        variables[f"stopping_{name}"] = (dims[1:], values, words)
    explained = 1 - 2 * targets  # the zero predictor's loss is ½
    share = {"long_name": "explained share ρ of the target", "units": "1"}
    variables["stopping_explained"] = ("stopping_target", explained, share)
    coords = {
        "stopping_seed": np.arange(config.stopping_seeds),
        "stopping_batch_size": list(sizes),
        "stopping_target": list(TARGETS),
    }
    dataset = xr.Dataset(variables, coords=coords)
    dataset["stopping_target"].attrs = {"long_name": "ε over the floor", "units": "1"}
    return dataset


def _model(
    problem: Problem,
    path: Float[Any, "steps K r"],
    sizes: tuple[int, ...],
    targets: Float[np.ndarray, " targets"],
) -> dict[str, tuple[np.ndarray, dict[str, str]]]:
    """Stopping times along the mean iterate; loss moments at every `EVERY`-th of its steps."""
    marks = np.arange(0, len(path), EVERY)

    def moments(weights: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        found = sampled_loss_moments(
            problem.graph, problem.features, problem.targets, weights, FAN_OUT
        )
        return found.mean.mean(), found.mean.var(ddof=1), found.variance.mean()

    level, spread, within = map(
        np.asarray, jax.lax.map(moments, jnp.asarray(np.asarray(path)[marks]))
    )
    n, steps = problem.graph.num_nodes, np.arange(len(path))
    fine = np.interp(steps, marks, level)

    def deviation(b: int) -> Float[np.ndarray, " marks"]:
        """Standard deviation of the loss of b nodes, at the marks."""
        return np.sqrt(((1 - b / n) * spread + within) / b)

    rows = [
        [hitting_time(fine, np.interp(steps, marks, deviation(b)), target) for target in targets]
        for b in sizes
    ]
    quiet = [hitting_time(fine, np.zeros_like(fine), target) for target in targets]
    # One sample of all nodes is looked at every `EVERY` steps.
    sampled = [hitting_time(level, deviation(n), target) for target in targets]
    shape = (len(sizes), len(targets))
    whole = {
        "model_time": (np.array([[h.mean for h in row] for row in rows]), "T of the batch loss"),
        "model_censored": (
            np.array([[h.censored for h in row] for row in rows]),
            "runs that the batch loss never stops",
        ),
        "noiseless_time": (
            np.broadcast_to([float(h.mean) for h in quiet], shape),
            "T of the loss without noise",
        ),
        "sampled_model_time": (
            np.broadcast_to([(float(h.mean) - 1) * EVERY + 1 for h in sampled], shape),
            "T of the sampled loss",
        ),
    }
    units = {"model_censored": "share"}
    return {
        name: (values, {"long_name": f"{words}, model", "units": units.get(name, "updates")})
        for name, (values, words) in whole.items()
    }


def _grid(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    sizes, fan_outs = config.stopping_grid_batch_sizes, config.stopping_grid_fan_outs
    problem, start = _problem(
        config, jax.random.fold_in(key, 0), config.stopping_grid_nodes, max(fan_outs)
    )
    keys = jax.random.split(jax.random.fold_in(key, 1), config.stopping_grid_seeds)
    settings = [parse(name) for name in config.stopping_settings]
    iterations, censored = [], []
    for setting in settings:
        found = record_runs(
            problem,
            setting,
            step_size(setting, config.num_classes),
            sizes,
            fan_outs,
            config.stopping_grid_steps,
            1,
            keys,
            repeat,
            start,
            config.dtype,
        )
        zero = 0.5 if setting.loss == "mse" else np.log(config.num_classes)
        target = (1 - EXPLAINED[setting.loss]) * zero
        stops = stop_by_rules(found, target, config.stopping_window)
        iterations.append(stops.iterations.astype(np.float64))
        censored.append(stops.censored.astype(np.float64))
    dims = (
        "stopping_setting",
        "stopping_grid_seed",
        "stopping_grid_batch_size",
        "stopping_grid_fan_out",
        "stopping_rule",
    )
    coords = {
        "stopping_setting": [setting.name for setting in settings],
        "stopping_grid_seed": np.arange(len(keys)),
        "stopping_grid_batch_size": list(sizes),
        "stopping_grid_fan_out": list(fan_outs),
        "stopping_rule": list(RULES),
    }
    words = {"long_name": "T over (b, β), simulated", "window": config.stopping_window}
    share = {"long_name": "runs that are never stopped", "units": "share"}
    grid = xr.Dataset(
        {
            "stopping_grid_time": (dims, np.array(iterations), words),
            "stopping_grid_censored": (dims, np.array(censored), share),
        },
        coords=coords,
    )
    return xr.merge([grid, _exponents(grid["stopping_grid_time"], settings)])


def _exponents(times: xr.DataArray, settings: list[Setting]) -> xr.Dataset:
    """Exponents of T in b and β, of each seed's table; and the theorems'."""
    named = times.rename(stopping_grid_batch_size="batch_size", stopping_grid_fan_out="fan_out")
    kept = ("stopping_setting", "stopping_grid_seed", "stopping_rule")
    tables = named.transpose(*kept, "batch_size", "fan_out")
    shape = tables.shape[:3]
    fitted = np.empty((*shape, 2))
    for place in np.ndindex(shape):
        fitted[place] = fit_elasticities(tables[place].reset_coords(drop=True))[:2]
    stated = np.array([paper_elasticities(setting.loss) for setting in settings])
    return xr.Dataset(
        {
            "stopping_exponent": (
                (*kept, "stopping_axis"),
                fitted,
                {"long_name": "fitted exponent of T", "units": "1"},
            ),
            "stopping_theorem": (
                ("stopping_setting", "stopping_axis"),
                stated,
                {"long_name": "exponent of the theorem", "units": "1", "source": "liu2026full"},
            ),
        },
        coords={"stopping_axis": ["batch_size", "fan_out"]},
    )
