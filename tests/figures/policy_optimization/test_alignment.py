"""The figures of gradient alignment show the dataset's numbers on labelled axes."""

import numpy as np
import xarray as xr

from boundlab.figures.policy_optimization import alignment

LEARNERS = ["fresh", "stale", "controlled", "short"]


def _dataset() -> xr.Dataset:
    rng = np.random.default_rng(0)
    learner, step = "alignment_learner", "alignment_step"
    curves = ("alignment_seed", "alignment_delay", learner, step)
    variables = {
        "alignment_gap": (("alignment_bandit_seed", learner, step), rng.random((3, 4, 5))),
        "alignment_loss": (curves, rng.random((2, 2, 4, 5)) + 0.1),
        "alignment_histogram": (
            ("alignment_delay", "alignment_kind", "alignment_bin"),
            rng.random((2, 3, 6)),
        ),
        "alignment_bandit_histogram": ((learner, "alignment_bin"), rng.random((4, 6))),
        "alignment_mixture": (("alignment_delay", "alignment_age"), [[-0.05, 0.2], [-0.02, 0.1]]),
        "alignment_low": ((), 0.05),
    }
    coords = {
        learner: LEARNERS,
        step: np.arange(0, 250, 50),
        "alignment_delay": [8, 16],
        "alignment_kind": LEARNERS[:3],
        "alignment_bin": np.linspace(-0.9, 0.9, 6),
    }
    return xr.Dataset(variables, coords=coords)


def test_figures_hold_the_numbers() -> None:
    dataset = _dataset()
    figures = alignment.draw(dataset)
    assert list(figures) == ["F9-alignment", "F10-recovery"]
    cosines, recovery = (figure for figure, _ in figures.values())
    for (figure, caption), panels in zip(figures.values(), (3, 3), strict=True):
        assert len(caption) > 80
        assert len(figure.axes) == panels
        assert all(axis.get_xlabel() for axis in figure.axes)
    drawn = [line.get_ydata() for line in cosines.axes[0].lines]
    shares = 100 * dataset["alignment_histogram"].values[0]
    assert all(any(np.array_equal(y, row) for y in drawn) for row in shares)
    at = {float(line.get_xdata()[0]) for line in cosines.axes[1].lines if len(line.get_xdata())}
    assert {-0.02, 0.1, 0.05} <= at
    drawn = [line.get_ydata() for line in recovery.axes[0].lines]
    medians = dataset["alignment_gap"].median("alignment_bandit_seed").values
    assert all(any(np.array_equal(y, row) for y in drawn) for row in medians)
    drawn = [line.get_ydata() for line in recovery.axes[2].lines]
    medians = dataset["alignment_loss"].median("alignment_seed").values[1]
    assert all(any(np.array_equal(y, row) for y in drawn) for row in medians)
    assert all(axis.get_ylabel() for axis in recovery.axes)
