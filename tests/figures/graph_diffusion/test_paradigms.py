"""The figure of the three paradigms shows the dataset's numbers on labelled axes."""

import numpy as np
import xarray as xr

from boundlab.figures.graph_diffusion import paradigms


def _dataset() -> xr.Dataset:
    rng = np.random.default_rng(0)
    exact = ("paradigms_paradigm", "paradigms_steps")
    runs = ("paradigms_run_seed", "paradigms_paradigm")
    by_block = ("paradigms_block", "paradigms_partner")
    fisher = ("paradigms_time", "paradigms_seed", *by_block)
    names = ("bound", "lower", "marginal", "information")
    variables = {f"paradigms_sbm_{name}": (runs, rng.random((4, 3))) for name in names}
    variables |= {
        "paradigms_kl": (exact, np.full((3, 2), 0.5)),
        "paradigms_bound": (exact, np.array([[2.0, 5.0], [3.0, 6.0], [4.0, 7.0]])),
        "paradigms_two_stage": ("paradigms_steps", rng.random(2) + 0.1),
        "paradigms_gauss_fisher": ((*by_block, "paradigms_gauss_time"), rng.random((2, 3, 4)) + 1),
        "paradigms_fisher_posterior": (fisher, rng.random((2, 5, 2, 3)) + 1),
        "paradigms_fisher_labels": (("paradigms_time", "paradigms_block"), np.full((2, 2), 2.0)),
        "paradigms_fisher_alone": ("paradigms_time", rng.random(2) + 1),
    }
    coords = {
        "paradigms_paradigm": ["features | structure", "structure | features", "joint"],
        "paradigms_steps": [10, 20],
        "paradigms_block": ["features", "structure"],
        "paradigms_partner": ["clean", "noisy", "absent"],
        "paradigms_time": [0.1, 0.4],
        "paradigms_gauss_time": [0.1, 0.2, 0.4, 0.8],
    }
    return xr.Dataset(variables, coords=coords)


def test_figure_holds_the_numbers() -> None:
    dataset = _dataset()
    figures = paradigms.draw(dataset)
    assert list(figures) == ["E5-paradigms"]
    figure, caption = figures["E5-paradigms"]
    assert "4 to 8 times" in caption
    assert "10 to 14 times" in caption
    drawn = [line.get_ydata() for line in figure.axes[0].lines]
    assert any(np.array_equal(y, dataset["paradigms_bound"][1]) for y in drawn)
    drawn = [line.get_ydata() for line in figure.axes[2].lines]
    mean = dataset["paradigms_fisher_posterior"].mean("paradigms_seed")[:, 1, 0] / 2
    assert any(np.allclose(y, mean) for y in drawn)
    drawn = [line.get_ydata() for line in figure.axes[3].lines]
    mean = dataset["paradigms_sbm_lower"].mean("paradigms_run_seed")
    assert any(np.array_equal(y, mean) for y in drawn)
    assert all(axis.get_xlabel() and axis.get_title() for axis in figure.axes)
