"""The figure of the regression task shows the dataset's numbers on labelled axes."""

import numpy as np
import xarray as xr

from boundlab.figures.team_learning import regression


def _dataset() -> xr.Dataset:
    rng = np.random.default_rng(0)
    runs = ("regression_seed", "regression_coupling", "regression_samples")
    subtasks = ("regression_coupling", "regression_subtask")
    by_coupling = ("regression_agents", "regression_coupled")
    variables = {
        "regression_subtask_wrong": (subtasks, 0.1 + rng.random((3, 4))),
        "regression_crossover": ("regression_coupled", [61.3, 31.7]),
        "regression_crossover_curve": ("regression_strength", [300.0, 50.0, 20.0]),
        "regression_crossover_curve_paper": ("regression_strength", [80.0, 30.0, 15.0]),
        "regression_misalignment": (by_coupling, [[0.4, 0.9]]),
        "regression_paper_ratio": (by_coupling, [[3.25, 3.25]]),
    }
    for learner in ("sarl", "aware", "blind"):
        variables |= {
            f"regression_risk_{learner}": (runs, 0.1 + rng.random((5, 3, 3))),
            f"regression_curve_{learner}": (
                ("regression_coupling", "regression_fine"),
                0.1 + rng.random((3, 6)),
            ),
            f"regression_subtask_theory_{learner}": (subtasks, 0.1 + rng.random((3, 4))),
            f"regression_subtask_{learner}": (
                ("regression_seed", *subtasks),
                0.1 + rng.random((5, 3, 4)),
            ),
        }
    coords = {
        "regression_coupling": [0.0, 0.5, 1.0],
        "regression_coupled": [0.5, 1.0],
        "regression_samples": [24, 40, 93],
        "regression_fine": np.geomspace(20, 100, 6),
        "regression_subtask": [1, 2, 3, 4],
        "regression_strength": [0.2, 0.6, 2.0],
        "regression_agents": [4],
    }
    return xr.Dataset(variables, coords=coords)


def test_figure_holds_the_numbers() -> None:
    dataset = _dataset()
    figures = regression.draw(dataset)
    assert list(figures) == ["F8-regression"]
    figure, caption = figures["F8-regression"]
    assert "n* = 61.3" in caption
    assert "31.7 at λ = 1" in caption
    assert "3.25 times" in caption
    coupled = [line.get_ydata() for line in figure.axes[1].lines]
    curve = dataset["regression_curve_blind"].sel(regression_coupling=0.5)
    assert any(np.array_equal(y, curve) for y in coupled)
    mean = dataset["regression_risk_aware"].sel(regression_coupling=0.5).mean("regression_seed")
    assert any(np.array_equal(y, mean) for y in coupled)
    subtask = (
        dataset["regression_subtask_sarl"].sel(regression_coupling=1.0).mean("regression_seed")
    )
    assert any(np.array_equal(line.get_ydata(), subtask) for line in figure.axes[2].lines)
    drawn = [line.get_ydata() for line in figure.axes[3].lines]
    assert any(np.array_equal(y, dataset["regression_crossover_curve"]) for y in drawn)
    assert all(axis.get_xlabel() and axis.get_title() for axis in figure.axes)
    assert "blind team" not in [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
