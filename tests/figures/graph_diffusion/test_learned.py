"""The figure of learned scores shows the dataset's numbers on labelled axes."""

import numpy as np
import xarray as xr

from boundlab.figures.graph_diffusion import learned


def _dataset() -> xr.Dataset:
    rng = np.random.default_rng(0)
    networks = ["linear, 1 in time", "linear, 2 in time", "perceptron, width 4"]
    linear, run = "learned_linear", "learned_run"

    def drawn(*shape: int) -> np.ndarray:
        return rng.random(shape) + 0.5

    time, block, pair = "learned_time", "learned_block", "learned_pair"
    variables = {
        "learned_error": ((run, time, "learned_network", block), drawn(5, 3, 3, 2)),
        "learned_error_theory": ((linear, time, block), drawn(2, 3, 2)),
        "learned_bound": ((run, "learned_network"), drawn(5, 3)),
        "learned_discretization": ((), 0.1),
        "learned_initialization": ((), 0.01),
        "learned_kl": (linear, drawn(2)),
        "learned_lower": (("learned_seed", "learned_perceptron"), drawn(5, 1)),
        "learned_training_loss": (("learned_window", "learned_network"), drawn(4, 3)),
        "learned_training_floor": ((), 0.4),
        "learned_variance": ((run, linear, pair), drawn(5, 2, 6)),
        "learned_variance_theory": ((linear, pair), drawn(2, 6)),
        "learned_variance_exact_score": ((linear, pair), drawn(2, 6)),
    }
    coords = {
        "learned_network": networks,
        linear: networks[:2],
        "learned_perceptron": networks[2:],
        time: [0.1, 0.2, 0.4],
        block: ["features", "structure"],
        pair: np.arange(1, 7),
        "learned_window": [10.0, 20.0, 30.0, 40.0],
    }
    return xr.Dataset(variables, coords=coords)


def test_figure_holds_the_numbers() -> None:
    dataset = _dataset()
    figures = learned.draw(dataset)
    assert list(figures) == ["E8-learned"]
    figure, caption = figures["E8-learned"]
    assert len(caption) > 80
    drawn = [[line.get_ydata() for line in axis.lines] for axis in figure.axes]
    exact = dataset["learned_error_theory"].sel(learned_block="structure")
    assert any(np.array_equal(y, exact[1]) for y in drawn[0])
    assert any(np.array_equal(y, dataset["learned_kl"]) for y in drawn[1])
    bars = [patch.get_height() for patch in figure.axes[1].patches]
    np.testing.assert_allclose(bars[:3], dataset["learned_bound"].mean("learned_run"))
    assert any(np.array_equal(y, dataset["learned_training_loss"][:, 2]) for y in drawn[2])
    assert any(np.array_equal(y, dataset["learned_variance_theory"][0]) for y in drawn[3])
    assert all(axis.get_ylabel() and axis.get_title() for axis in figure.axes)
