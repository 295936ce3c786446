"""The figure of the trained example shows means and bands by delay; nothing where none was trained."""

import numpy as np
import pytest
import xarray as xr

from boundlab.figures.policy_optimization import language

NAMES = ("held_out_reward", "reward", "entropy", "mean_ratio", "cosine")


def _dataset(num_seeds: int) -> xr.Dataset:
    rng = np.random.default_rng(0)
    dims = ("loss", "delay", "control", "seed", "update")
    dims = tuple(f"language_{name}" for name in dims)
    variables = {f"language_{name}": (dims, rng.random((2, 3, 2, num_seeds, 4))) for name in NAMES}
    variables["language_start_reward"] = ("language_seed", rng.random(num_seeds))
    coords = {
        "language_loss": ["grpo", "fiberpo"],
        "language_delay": [0, 4, 16],
        "language_control": ["plain", "gac"],
        "language_update": [10, 20, 30, 40],
    }
    return xr.Dataset(variables, coords=coords)


@pytest.mark.parametrize("num_seeds", [1, 3])
def test_the_figure_holds_the_numbers(num_seeds: int) -> None:
    dataset = _dataset(num_seeds)
    figure, caption = language.draw(dataset)["F12-training"]
    assert len(caption) > 80
    assert f"{num_seeds} model" in caption
    axes = np.array(figure.axes).reshape(3, 4)
    columns = ("held_out_reward", "entropy", "mean_ratio", "cosine")
    for row, delay in zip(axes, (0, 4, 16), strict=True):
        for axis, name in zip(row, columns, strict=True):
            shown = dataset[f"language_{name}"].sel(language_delay=delay).mean("language_seed")
            drawn = [line for line in axis.lines if len(line.get_xdata()) == 4]
            expected = shown.values.reshape(4, 4)
            assert len(drawn) == 4
            for line, values in zip(drawn, expected, strict=True):
                np.testing.assert_allclose(line.get_ydata(), values)
            assert [line.get_linestyle() for line in drawn] == ["-", "--", "-", "--"]
            assert len(axis.collections) == (4 if num_seeds > 1 else 0)
        assert str(delay) in row[0].get_ylabel()
    assert all(axis.get_title() for axis in axes[0])
    assert all(axis.get_xlabel() for axis in axes[-1])
    figure.canvas.draw()


def test_nothing_is_drawn_of_a_study_without_training() -> None:
    assert language.draw(xr.Dataset({"gates_x": ((), 1.0)})) == {}
