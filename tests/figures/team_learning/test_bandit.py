"""The figure of bandit feedback shows the dataset's numbers on labelled axes."""

import numpy as np
import xarray as xr

from boundlab.figures.team_learning import bandit


def _dataset() -> xr.Dataset:
    rng = np.random.default_rng(0)
    cells = ("bandit_cell", "bandit_learner")
    variables = {
        f"bandit_{name}": (cells, rng.random((3, 4)) + 10) for name in ("exact", "above", "below")
    }
    variables |= {
        "bandit_measured": (("bandit_seed", *cells), rng.random((5, 3, 4)) + 10),
        "bandit_shared": ("bandit_cell", rng.random(3) + 10),
        "bandit_actions": ("bandit_cell", [4, 4, 2]),
        "bandit_agents": ("bandit_cell", [2, 3, 2]),
    }
    for name in ("shared_theory", "fitted_theory", "independent"):
        variables[f"bandit_{name}_fine"] = ("bandit_fine", rng.random(4) + 0.1)
    for name in ("shared", "fitted"):
        samples = ("bandit_budget", "bandit_seed")
        variables[f"bandit_{name}_failure"] = (samples, rng.random((2, 5)) + 0.1)
    coords = {
        "bandit_learner": ["joint", "own", "outcome", "judge"],
        "bandit_cell": ["A=4, K=2", "A=4, K=3", "A=2, K=2"],
        "bandit_budget": [48, 64],
        "bandit_fine": np.arange(24.0, 88.0, 16.0),
    }
    return xr.Dataset(variables, coords=coords)


def test_figure_holds_the_numbers() -> None:
    dataset = _dataset()
    figures = bandit.draw(dataset)
    assert list(figures) == ["F1-bandit"]
    figure, caption = figures["F1-bandit"]
    assert len(caption) > 80
    assert all(axis.get_xlabel() and axis.get_title() for axis in figure.axes)
    left, right = ([line.get_ydata() for line in axis.lines] for axis in figure.axes)
    for name in ("bandit_exact", "bandit_above"):
        expected = dataset[name].sel(bandit_learner="own")[:2]
        assert any(np.array_equal(y, expected) for y in left)
    mean = dataset["bandit_measured"].mean("bandit_seed").sel(bandit_learner="judge")[:2]
    assert any(np.array_equal(y, mean) for y in left)
    mean = dataset["bandit_shared_failure"].mean("bandit_seed")
    assert any(np.array_equal(y, mean) for y in right)
    assert any(np.array_equal(y, dataset["bandit_independent_fine"]) for y in right)
