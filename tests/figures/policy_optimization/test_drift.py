"""The figures of drift show the dataset's numbers on labelled axes."""

import numpy as np
import xarray as xr

from boundlab.figures.policy_optimization import drift


def _dataset() -> xr.Dataset:
    rng = np.random.default_rng(0)
    losses, variants, steps = ["FiberPO", "GRPO", "GSPO"], ["sum", "mean", "sequence"], [0, 25, 50]
    loop = ("drift_loss", "drift_seed", "drift_variant", "drift_step")
    variables = {
        "drift_moved": (loop, rng.random((3, 5, 3, 3)) + 0.1),
        "drift_gained": (loop, rng.random((3, 5, 3, 3))),
        "drift_clamped": (("drift_variant", "drift_seed"), rng.random((3, 5)) + 0.1),
        "drift_budget": ((), 0.17),
        "drift_spread": ("drift_tree", rng.random(4)),
        "drift_cosine": (("drift_tree", "drift_aggregation"), 1 - rng.random((4, 3)) / 5),
    }
    coords = {
        "drift_loss": losses,
        "drift_variant": variants,
        "drift_step": steps,
        "drift_aggregation": ["mean, own", "mean, sequence's", "sum, own"],
    }
    return xr.Dataset(variables, coords=coords)


def test_figures_hold_the_numbers() -> None:
    dataset = _dataset()
    figures = drift.draw(dataset)
    assert list(figures) == ["F6-drift", "F11-lengths"]
    loops, caption = figures["F6-drift"]
    assert "0.17" in caption
    for axis, name in zip(loops.axes, ("moved", "gained"), strict=True):
        for loss in ("FiberPO", "GSPO"):
            part = dataset[f"drift_{name}"].sel(drift_loss=loss, drift_variant="sum")
            middle = part.median("drift_seed")
            assert any(np.array_equal(line.get_ydata(), middle) for line in axis.lines)
    lengths, _ = figures["F11-lengths"]
    drawn = [line.get_ydata() for line in lengths.axes[0].lines]
    for column in dataset["drift_cosine"].values.T:
        assert any(np.array_equal(y, column) for y in drawn)
    drawn = [line.get_ydata() for line in lengths.axes[1].lines]
    ends = dataset["drift_moved"].isel(drift_step=-1, drift_variant=1).median("drift_seed").values
    clamp = np.median(dataset["drift_clamped"][1])
    assert any(np.array_equal(y, [*ends, clamp]) for y in drawn)
    for figure, caption in figures.values():
        assert len(caption) > 80
        assert all(axis.get_xlabel() and axis.get_ylabel() for axis in figure.axes)
