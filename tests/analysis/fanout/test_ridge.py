"""The part on the implicit ridge: its layout, and its errors by an independent solver."""

import dataclasses
from collections.abc import Callable

import jax
import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.fanout import problems, ridge, ridge_simulation
from boundlab.analysis.fanout.config import PRESETS, Config

SMOKE: Config = PRESETS["smoke"]
SMALL = Config(
    num_nodes=60,
    degree=6,
    num_classes=3,
    num_features=4,
    ridge_num_train=(8, 30),
    ridge_samples=900,
)


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("fanout", "ridge_")


def test_layout(dataset: xr.Dataset) -> None:
    for name in (*dataset.variables, *dataset.dims):
        assert str(name).startswith("ridge_"), name
    for name, variable in dataset.data_vars.items():
        assert variable.attrs["long_name"], name
        assert variable.attrs["units"], name
        assert np.isfinite(variable).all(), name
    assert dataset.sizes["ridge_seed"] == SMOKE.ridge_splits
    assert dataset["ridge_fan_out"].values.tolist() == [1, 2, 4, 8, 12, 16, 20, 24]
    accuracy = dataset["ridge_citation_accuracy"]
    assert ((accuracy > 1 / 7) & (accuracy <= 1)).all()


@pytest.mark.parametrize("fan_out", [1, 3, 6])
@pytest.mark.parametrize("name", ["mixed", "power_law"])
def test_errors_by_augmented_least_squares(key, name, fan_out) -> None:
    """The ridge as extra rows V^{1/2} of an ordinary least-squares problem, V node by node."""
    problem = getattr(problems, f"{name}_problem")(SMALL, key)
    order = np.random.default_rng(1).permutation(60)
    error, accuracy = ridge.ridge_errors(problem, order[None], [8, 30], [fan_out])
    table = problem.graph.neighbor_table()
    rows = [problem.features[index[mask]] for index, mask in zip(*table, strict=True)]
    means = np.stack([row.mean(axis=0) for row in rows])
    for place, size in enumerate((8, 30)):
        train, test = order[:size], order[size:]
        covariance = np.zeros((4, 4))
        for node in train:
            d = len(rows[node])
            if d > fan_out:
                covariance += (1 / fan_out - 1 / d) * np.cov(rows[node].T) / size
        values, basis = np.linalg.eigh(covariance)
        root = np.sqrt(size * np.maximum(values, 0))[:, None] * basis.T
        stacked = np.concatenate([means[train], root])
        right = np.concatenate([problem.targets[train], np.zeros((4, 3))])
        outputs = means[test] @ np.linalg.lstsq(stacked, right, rcond=None)[0]
        expected = np.mean((outputs - problem.targets[test]) ** 2)
        np.testing.assert_allclose(error[0, place, 0], expected, rtol=1e-9)
        share = np.mean(outputs.argmax(axis=1) == problem.labels[test])
        np.testing.assert_allclose(accuracy[0, place, 0], share)


def test_ridge_of_draws_with_replacement(key) -> None:
    """At β = d the variance of independent draws is (1 − 1/d)/d times S², and a scaled ridge of β = 1."""
    problem = problems.mixed_problem(SMALL, key)
    order = np.arange(60)
    replaced, _ = ridge.ridge_errors(problem, order[None], [30], [6], with_replacement=True)
    one, _ = ridge.ridge_errors(problem, order[None], [30], [1])
    full, _ = ridge.ridge_errors(problem, order[None], [30], [np.inf])
    assert full[0, 0, 0] != replaced[0, 0, 0] != one[0, 0, 0]
    same, _ = ridge.ridge_errors(problem, order[None], [30], [1], with_replacement=True)
    np.testing.assert_allclose(same, one, rtol=1e-12)


def test_simulations_train_on_the_first_nodes_of_the_order(key) -> None:
    """Both simulations of one key, with all neighbours: plain least squares, and descent to it."""
    problem = problems.mixed_problem(SMALL, key)
    config = dataclasses.replace(SMALL, ridge_steps=300)
    order = ridge_simulation.random_orders(key[None], 60)[0]
    assert sorted(order.tolist()) == list(range(60))
    full = problem.graph.adjacency() @ problem.features / 6
    train, test = order[:8], order[8:]

    def error(weights):
        return np.mean((full[test] @ weights - problem.targets[test]) ** 2)

    solve = jax.jit(ridge_simulation.least_squares(config, problem))
    found = solve({"num_train": np.int64(8), "fan_out": np.int64(6)}, key)
    exact = np.linalg.lstsq(full[train], problem.targets[train], rcond=None)[0]
    np.testing.assert_allclose(found, error(exact), rtol=1e-9)

    descend = jax.jit(ridge_simulation.trained(config, problem, 6))
    found = descend({"batch_size": np.int64(8), "fan_out": np.int64(6)}, key)
    moment = full[train].T @ full[train] / 8
    # W_t − W* = (W_0 − W*)(I − ηM)^t; the distance that is left bounds what W_0 can do.
    left = np.linalg.norm(
        np.linalg.matrix_power(np.eye(4) - ridge_simulation.STEP_SIZE * moment, 300), 2
    )
    start = np.linalg.norm(exact, 2) + 3.0
    slack = left * start * np.linalg.norm(full, 2) / np.sqrt(len(test) * 3)
    assert abs(np.sqrt(found) - np.sqrt(error(exact))) <= slack


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ridge_num_train", (30, 30)),
        ("ridge_num_train", (30,)),
        ("ridge_num_train", (30, 1200)),
        ("ridge_splits", 1),
        ("ridge_samples", 100),
        ("ridge_steps", 0),
        ("ridge_graph_splits", 1),
        ("ridge_citation_splits", 1),
        ("ridge_citations", ("coral",)),
        ("ridge_citation_features", 0),
    ],
)
def test_bad_settings_are_named(field, value) -> None:
    with pytest.raises(ValueError, match=field):
        Config(**{field: value})
