"""Grids of times: exact ends, constant differences or ratios, and refused input."""

import jax
import numpy as np
import pytest

from boundlab.theory.graph_diffusion import time_grid


def test_uniform_by_hand():
    np.testing.assert_allclose(time_grid(3.0, 1.0, 4, "uniform"), [3.0, 2.5, 2.0, 1.5, 1.0])
    np.testing.assert_array_equal(time_grid(0.7, 0.1, 1, "uniform"), [0.7, 0.1])


def test_geometric_has_a_constant_ratio():
    grid = np.asarray(time_grid(4.0, 1e-8, 7, "geometric"))
    np.testing.assert_allclose(grid[1:] / grid[:-1], (1e-8 / 4.0) ** (1 / 7), rtol=1e-13)
    assert grid[0] == 4.0
    assert grid[-1] == 1e-8


@pytest.mark.parametrize(("steps", "equal"), [(7, 3), (8, 4), (2, 1)])
def test_benton_is_uniform_to_one_and_geometric_below(steps, equal):
    grid = np.asarray(time_grid(3.0, 0.01, steps, "benton"))
    assert grid.shape == (steps + 1,)
    assert grid[equal] == 1.0
    np.testing.assert_allclose(np.diff(grid[: equal + 1]), -2.0 / equal, rtol=1e-13)
    below = grid[equal:]
    np.testing.assert_allclose(below[1:] / below[:-1], 0.01 ** (1 / (steps - equal)), rtol=1e-13)


@pytest.mark.parametrize("kind", ["uniform", "geometric", "benton"])
def test_traced_ends(kind):
    horizons = np.array([2.0, 3.0])
    found = jax.vmap(lambda horizon: time_grid(horizon, 0.01, 5, kind))(horizons)
    for horizon, row in zip(horizons, found, strict=True):
        np.testing.assert_allclose(row, time_grid(horizon, 0.01, 5, kind), rtol=1e-14)
        assert row[-1] == 0.01


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "arguments"),
    [
        ("early_stop", (1.0, 1.0, 4, "uniform")),
        ("early_stop", (1.0, 2.0, 4, "benton")),
        ("early_stop", (1.0, 0.0, 4, "uniform")),
        ("early_stop", (1.0, float("nan"), 4, "uniform")),
        ("early_stop", (3.0, 1.0, 4, "benton")),
        ("horizon", (1.0, 0.01, 4, "benton")),
        ("horizon", (np.inf, 0.01, 4, "uniform")),
        ("horizon", ([1.0, 2.0], 0.01, 4, "uniform")),
        ("num_steps", (1.0, 0.01, 0, "uniform")),
        ("num_steps", (1.0, 0.01, 2.5, "uniform")),
        ("num_steps", (1.0, 0.01, 10**12, "uniform")),
        ("num_steps", (3.0, 0.01, 1, "benton")),
        ("num_steps", (1.0, np.nextafter(1.0, 0.0), 3, "uniform")),
        ("kind", (1.0, 0.01, 4, "linear")),
        ("kind", (1.0, 0.01, 4, None)),
    ],
)
def test_bad_input_is_named(named, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        time_grid(*arguments)
