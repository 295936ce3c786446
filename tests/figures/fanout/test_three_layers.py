"""The figures of the three-layer network show the dataset's numbers."""

import numpy as np
import pytest
import xarray as xr

from boundlab.figures.fanout import three_layers

GRAPHS, DIVISORS, BETA, SEEDS = ["digits", "fixed mix"], [8, 1], [1, 4, 8], 5
CHOSEN = ("chosen", "chosen_again", "validated", "validated_again", "full_graph")


@pytest.fixture(scope="module")
def dataset() -> xr.Dataset:
    rng = np.random.default_rng(2)
    runs = ("sage_graph", "sage_divisor", "sage_fan_out", "sage_seed")
    cut = np.zeros((2, 2, 3, SEEDS, 2), bool)
    cut[0, 0, 0, 0, 1] = True
    values = {
        "sage_batch_size": (runs[:2], [[5, 40], [6, 48]]),
        "sage_test_accuracy": (runs, rng.uniform(0.8, 0.9, (2, 2, 3, SEEDS))),
        "sage_iterations": ((*runs, "sage_rule"), 1 + rng.integers(20, size=cut.shape) * 1.0),
        "sage_censored": ((*runs, "sage_rule"), cut),
        "sage_exponent": (("sage_graph", "sage_seed", "sage_axis"), np.full((2, SEEDS, 2), -0.25)),
        "sage_by_chance": ("sage_graph", [0.01, 0.02]),
    }
    for i, name in enumerate(CHOSEN):
        accuracy = 0.9 - 0.01 * i + 0.001 * np.arange(SEEDS)
        values[f"sage_{name}"] = (("sage_graph", "sage_seed"), np.tile(accuracy, (2, 1)))
    coords = {"sage_graph": GRAPHS, "sage_divisor": DIVISORS, "sage_fan_out": BETA}
    return xr.Dataset(values, coords={**coords, "sage_rule": ["first hit", "held"]})


def test_maps_hold_the_numbers(dataset: xr.Dataset) -> None:
    figure, caption = three_layers.draw(dataset)["E1d-three-layers"]
    panels = figure.axes
    assert len(panels) == 8
    accuracy = 100 * dataset["sage_test_accuracy"].mean("sage_seed")
    np.testing.assert_allclose(panels[4].images[0].get_array(), accuracy[1])
    assert panels[2].texts[0].get_text().startswith("≥")
    assert not panels[1].texts[0].get_text().startswith("≥")
    assert "b^{-0.25}" in panels[1].get_title()
    assert [label.get_text() for label in panels[4].get_yticklabels()] == ["6", "48"]
    assert f"{SEEDS} seeds" in caption
    gap = accuracy[0, 0] - accuracy[0, -1, -1]
    np.testing.assert_allclose(panels[3].lines[0].get_ydata(), gap)


def test_choices_hold_the_numbers(dataset: xr.Dataset) -> None:
    figure, caption = three_layers.draw(dataset)["E8b-seeds"]
    left, right = figure.axes[:2]
    assert len(caption) > 80
    dots = left.lines[0].get_ydata().reshape(6, SEEDS)
    assert (np.diff(dots.mean(axis=1)) >= 0).all()
    expected = 100 * dataset["sage_test_accuracy"][0].values
    np.testing.assert_allclose(np.sort(dots.ravel()), np.sort(expected.ravel()))
    line = next(line for line in right.lines if line.get_label() == "bias by chance")
    np.testing.assert_allclose(line.get_ydata(), 100 * (0.892 + 0.01))
    worst = np.argmin(dataset["sage_test_accuracy"][0].mean("sage_seed").values)
    divisor, beta = np.divmod(worst, 3)
    shown = left.get_xticklabels()[0].get_text()
    assert shown == f"{[5, 40][divisor]}, {BETA[beta]}"


def test_axes_are_labelled(dataset: xr.Dataset) -> None:
    for figure, _ in three_layers.draw(dataset.isel(sage_graph=[0])).values():
        assert figure.axes[0].get_ylabel()
        assert all(axis.get_xlabel() for axis in figure.axes)
