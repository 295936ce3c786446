"""The figure of the digits shows the dataset's numbers on labelled axes."""

import numpy as np
import xarray as xr

from boundlab.figures.team_learning import digits


def _dataset() -> xr.Dataset:
    rng = np.random.default_rng(0)
    cells = ("digits_dim", "digits_coupling")
    learners = ("sarl", "aware", "blind")
    variables = {
        f"digits_{name}": (
            (*cells, "digits_samples", "digits_seed"),
            0.1 + rng.random((2, 3, 4, 5)),
        )
        for name in learners
    }
    variables |= {
        f"digits_{name}_theory": ((*cells, "digits_samples"), 0.1 + rng.random((2, 3, 4)))
        for name in ("sarl", "blind")
    }
    crossover = np.array([[np.inf, 100.0, 20.0], [np.inf, 150.0, 80.0]])
    variables["digits_crossover"] = (cells, crossover)
    variables |= {
        "digits_failed": (
            ("digits_learner", "digits_budget", "digits_trial"),
            rng.random((2, 3, 9)),
        ),
        "digits_failure": (("digits_learner", "digits_budget"), rng.random((2, 3))),
        "digits_failure_alone": ("digits_budget", rng.random(3)),
        "digits_failure_unequal": ("digits_budget", rng.random(3)),
        "digits_needed": ("digits_learner", [322.0, 131.0]),
        "digits_alignment": ((), 0.994),
    }
    coords = {
        "digits_learner": ["one agent", "team"],
        "digits_budget": [64, 128, 256],
        "digits_dim": [8, 16],
        "digits_coupling": [0.0, 0.5, 1.0],
        "digits_samples": [70, 130, 250, 400],
    }
    return xr.Dataset(variables, coords=coords)


def test_figure_holds_the_numbers() -> None:
    dataset = _dataset()
    figures = digits.draw(dataset)
    assert list(figures) == ["F11-digits", "F11-episodes"]
    figure, caption = figures["F11-digits"]
    assert len(caption) > 80
    assert len(figure.axes) == 6
    for place, axis in enumerate(figure.axes):
        cell = dataset.isel(digits_dim=place // 3, digits_coupling=place % 3)
        drawn = [np.asarray(line.get_ydata()) for line in axis.lines]
        for name in ("sarl_theory", "blind_theory"):
            assert any(np.array_equal(y, cell[f"digits_{name}"]) for y in drawn)
        for name in ("sarl", "aware", "blind"):
            mean = cell[f"digits_{name}"].mean("digits_seed")
            assert any(np.array_equal(y, mean) for y in drawn)
        # n* is marked where it lies on the axis.
        marks = [line.get_xdata()[0] for line in axis.lines if line.get_linestyle() == ":"]
        expected = float(cell["digits_crossover"])
        assert marks == ([expected] if 70 < expected < 400 else [])
        assert f"d={dataset['digits_dim'].values[place // 3]}" in axis.get_title()
    assert all(axis.get_xlabel() for axis in figure.axes[3:])
    (legend,) = figure.legends
    assert len(legend.get_texts()) == 3


def test_figure_of_episodes_holds_the_numbers() -> None:
    dataset = _dataset()
    figure, caption = digits.draw(dataset)["F11-episodes"]
    assert "322 trajectories, the team 131" in caption
    (axis,) = figure.axes
    drawn = [np.asarray(line.get_ydata()) for line in axis.lines]
    for learner in ("one agent", "team"):
        part = dataset.sel(digits_learner=learner)
        for values in (part["digits_failure"], part["digits_failed"].mean("digits_trial")):
            assert any(np.array_equal(y, values) for y in drawn)
    assert any(np.array_equal(y, dataset["digits_failure_alone"]) for y in drawn)
    assert axis.get_xlabel()
    assert axis.get_ylabel()
