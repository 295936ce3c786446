"""The figure of the advice shows the dataset's numbers and marks the budgets."""

import numpy as np
import xarray as xr

from boundlab.figures.team_learning import advice


def _dataset(**attrs: object) -> xr.Dataset:
    rng = np.random.default_rng(0)
    means = np.array([[0.1, 0.4, 0.2], [0.3, 0.0, np.nan]])
    told = {
        "alignment": 0.6,
        "alignment_low": 0.5,
        "alignment_high": 0.7,
        "floor": 0.05,
        "sarl_samples": 200.0,
        "marl_samples": 40.0,
        "accuracy": 0.1,
        "failure_probability": 0.2,
        "logged": 1,
        "reasons": "decompose: it takes fewer\nmore",
    }
    return xr.Dataset(
        {
            "failure": (("learner", "trajectories"), rng.random((2, 5))),
            "marginal_mean": (("agent", "action"), means),
            "marginal_error": (("agent", "action"), 0.1 * means),
            "label": (("agent", "action"), [["a", "b", "c"], ["left", "right", ""]]),
        },
        coords={
            "learner": ["one agent", "team"],
            "trajectories": np.geomspace(1.0, 1e3, 5),
            "agent": ["planner", "coder"],
        },
        attrs={**told, **attrs},
    )


def test_figure_holds_the_numbers() -> None:
    dataset = _dataset()
    figure, caption = advice.draw(dataset)["advice"]
    assert "decompose: it takes fewer." in caption
    assert "0.5 to 0.7" in caption
    curves, marginals = figure.axes
    drawn = [np.asarray(line.get_ydata()) for line in curves.lines]
    for learner in ("one agent", "team"):
        assert any(np.array_equal(y, dataset["failure"].sel(learner=learner)) for y in drawn)
    dots = [line.get_xdata()[0] for line in curves.lines if line.get_marker() == "o"]
    assert dots == [200.0, 40.0]
    drawn = [np.asarray(line.get_ydata()) for line in marginals.lines]
    np.testing.assert_array_equal(drawn[0], [0.1, 0.4, 0.2])
    np.testing.assert_array_equal(drawn[1], [0.3, 0.0])
    assert [text.get_text() for text in marginals.get_xticklabels()][-1] == "right"
    assert all(axis.get_xlabel() and axis.get_ylabel() for axis in figure.axes)
    figure.canvas.draw()


def test_what_is_never_reached_has_no_mark() -> None:
    figure, _ = advice.draw(_dataset(marl_samples=np.inf, sarl_samples=0.0, logged=0))["advice"]
    assert all(line.get_marker() != "o" for line in figure.axes[0].lines)
    figure.canvas.draw()
