"""The part on the three-layer network: its layout, and its target and its choice of a cell by hand."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.fanout import three_layers, three_layers_choice
from boundlab.analysis.fanout.config import Config


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("fanout", "sage_")


def test_layout(dataset: xr.Dataset) -> None:
    for name in (*dataset.variables, *dataset.dims):
        assert str(name).startswith("sage_")
    for variable in dataset.data_vars.values():
        assert variable.attrs["long_name"]
        assert variable.attrs["units"]
    assert list(dataset["sage_batch_size"].values[0]) == [7, 20, 60]
    shares = ("sage_test_accuracy", "sage_validation_accuracy", "sage_largest_accuracy")
    for name in shares:
        # Of a quarter of the nodes to validate and half of them to test.
        counts = dataset[name] * (60 if name == "sage_validation_accuracy" else 120)
        np.testing.assert_allclose(counts, np.round(counts), atol=1e-4)
    # Best cells learn something: ten classes.
    assert dataset["sage_chosen"].min() > 0.5
    assert (dataset["sage_largest_accuracy"] >= dataset["sage_test_accuracy"]).all()
    assert (dataset["sage_chosen"] >= dataset["sage_validated"]).all()


def test_target_of_the_first_quiet_window() -> None:
    falling = np.array([3.0, 2.0, 1.0, 0.51, 0.50, 0.52, 0.51, 0.1])
    # Windows of three: the first one below the limit is (.51, .50, .52).
    assert three_layers_choice.quiet_target(falling[None], 3) == 0.52
    loud = np.array([3.0, 1.0, 2.0, 0.7, 0.6, 0.3, 0.1, 0.8])
    assert (
        three_layers_choice.quiet_target(loud[None], 3) == 0.7
    )  # none is quiet: (.7, .6, .3) varies least
    both = np.stack([falling, loud, loud + 1])
    assert three_layers_choice.quiet_target(both, 3) == 0.7  # of .52, .7 and 1.7


def runs_by_hand() -> xr.Dataset:
    """Two batch sizes, two fan-outs, three seeds."""
    test = np.array([[[0.5, 0.6, 0.7], [0.9, 0.1, 0.2]], [[0.4, 0.8, 0.3], [0.6, 0.6, 0.6]]])
    validation = test[::-1]
    b, beta = np.array([8, 64]), np.array([1, 4])
    exponents = [(-1.0, 0.5), (0.0, -2.0), (0.25, 0.0)]
    iterations = [3.0 * (b[:, None] ** p) * (beta**q) for p, q in exponents]
    dims = (*three_layers_choice.CELL, "sage_seed")
    return xr.Dataset(
        {
            "sage_test_accuracy": (dims, test),
            "sage_validation_accuracy": (dims, validation),
            "sage_batch_size": (dims[:1], b),
            "sage_iterations": ((*dims, "sage_rule"), np.stack(iterations, axis=-1)[..., None]),
        },
        coords={"sage_fan_out": beta, "sage_rule": ["first hit"]},
    )


def test_choice_by_hand() -> None:
    found = three_layers_choice.choice(runs_by_hand())
    np.testing.assert_allclose(found["sage_chosen"], [0.9, 0.8, 0.7])
    # The mean of the same cell on the two other seeds.
    np.testing.assert_allclose(found["sage_chosen_again"], [0.15, 0.35, 0.55])
    # Means of the seeds' grids: .6, .525, .45.
    np.testing.assert_allclose(found["sage_lead"], [0.3, 0.275, 0.25])
    again = [-0.3375, 0.35 - 0.525, 0.55 - 0.5625]
    np.testing.assert_allclose(found["sage_lead_again"], again)
    # By validation: cells (64, 4), (8, 1), (64, 1).
    np.testing.assert_allclose(found["sage_validated"], [0.6, 0.6, 0.3])
    np.testing.assert_allclose(found["sage_validated_again"], [0.6, 0.6, 0.6])
    np.testing.assert_allclose(found["sage_full_graph"], 0.6)
    np.testing.assert_allclose(found["sage_exponent"], [[-1, 0.5], [0, -2], [0.25, 0]], atol=1e-12)
    variances = [0.01, 0.57 / 3, 0.07, 0.0]
    largest = 1.029375373003964  # of four normal numbers
    expected = np.sqrt(np.mean(variances)) * largest
    np.testing.assert_allclose(found["sage_by_chance"], expected, rtol=1e-6)


def test_hits_by_a_loop() -> None:
    losses = np.random.default_rng(0).random((2, 3, 12))
    iterations, censored = three_layers_choice.hits(losses, 0.55, 3)
    for place in np.ndindex(2, 3):
        below = losses[place] <= 0.55
        for rule, window in enumerate((1, 3)):
            starts = [t + 1 for t in range(13 - window) if below[t : t + window].all()]
            assert censored[(*place, rule)] == (not starts)
            assert iterations[(*place, rule)] == (starts[0] if starts else 12)
    assert censored.any()
    assert not censored.all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sage_graphs", ()),
        ("sage_graphs", ("reddit",)),
        ("sage_graphs", ("cora", "cora")),
        ("sage_nodes", 2000),
        ("sage_neighbors", 0),
        ("sage_neighbors", 200),
        ("sage_hidden", 0),
        ("sage_step_size", 0.0),
        ("sage_batch_divisors", (1, 8)),
        ("sage_batch_divisors", (100, 1)),
        ("sage_fan_outs", (1,)),
        ("sage_fan_outs", (0, 1)),
        ("sage_steps", 1),
        ("sage_every", 7),
        ("sage_window", 61),
        ("sage_seeds", 2),
    ],
)
def test_settings_out_of_range_are_named(name: str, value: Any, as_users_call: None) -> None:
    with pytest.raises(ValueError, match=name):
        dataclasses.replace(Config(), **{name: value})


def test_problems_of_every_name() -> None:
    key = jax.random.key(0)
    for name, classes in (("digits", 10), ("fixed mix", 6), ("cora", 7)):
        problem = three_layers._problem(Config(), name, key)
        assert problem.targets.shape == (problem.graph.num_nodes, classes)
        assert len(problem.features) == problem.graph.num_nodes
        np.testing.assert_array_equal(problem.targets.argmax(axis=1), problem.labels)
    digits = three_layers._problem(Config(), "digits", key)
    assert (digits.graph.degrees() == Config().sage_neighbors).all()
