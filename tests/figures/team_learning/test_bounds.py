"""The figures of bounds show the dataset's numbers on labelled axes."""

import numpy as np
import xarray as xr

from boundlab.figures.team_learning import bounds

TABLE = ("bounds_arms", "bounds_delta_allowed")
RATIO = ("bounds_action_count", "bounds_team_size")


def _dataset() -> xr.Dataset:
    rng = np.random.default_rng(0)
    names = {
        RATIO: ("ratio", "ratio_bounds", "ratio_inverse"),
        TABLE: (
            "exact",
            "union",
            "fano",
            "uniform",
            "uniform_excess",
            "union_excess",
            "fano_excess",
        ),
        ("bounds_seed", "bounds_cell"): ("failure_one", "failure_team", "failure_k_times_team"),
        ("bounds_tokens",): ("variation_hybrid", "variation_pinsker"),
        ("bounds_policy", "bounds_tokens"): ("variation",),
    }
    sizes = {
        "bounds_action_count": 4,
        "bounds_team_size": 2,
        "bounds_arms": 3,
        "bounds_delta_allowed": 2,
        "bounds_seed": 5,
        "bounds_cell": 2,
        "bounds_tokens": 3,
        "bounds_policy": 4,
    }
    variables = {
        f"bounds_{name}": (dims, rng.random([sizes[dim] for dim in dims]) + 0.1)
        for dims, group in names.items()
        for name in group
    }
    coords = {
        "bounds_action_count": [2, 4, 16, 256],
        "bounds_team_size": [2, 8],
        "bounds_arms": [4.0, 64.0, 4096.0],
        "bounds_delta_allowed": [0.2, 0.05],
        "bounds_cell": ["A = 4, K = 2", "A = 16, K = 2"],
        "bounds_tokens": [1, 2, 3],
    }
    return xr.Dataset(variables | {"bounds_delta": ((), 0.05)}, coords=coords)


def test_figures_hold_the_numbers() -> None:
    dataset = _dataset()
    figures = bounds.draw(dataset)
    assert list(figures) == ["F2-ratio", "F9-tightness"]
    ratio, caption = figures["F2-ratio"]
    assert "0.05" in caption
    drawn = [line.get_ydata() for line in ratio.axes[0].lines]
    for name in ("ratio", "ratio_bounds", "ratio_inverse"):
        assert any(np.array_equal(y, dataset[f"bounds_{name}"][:, 1]) for y in drawn)
    drawn = [line.get_ydata() for line in ratio.axes[1].lines]
    mean = dataset["bounds_failure_k_times_team"].mean("bounds_seed")
    assert any(np.array_equal(y, mean) for y in drawn)
    tightness, caption = figures["F9-tightness"]
    assert len(caption) > 80
    wanted = (("exact", 0), ("union_excess", 1), ("variation_pinsker", 2))
    for name, place in wanted:
        drawn = [line.get_ydata() for line in tightness.axes[place].lines]
        values = dataset[f"bounds_{name}"]
        values = values[:, 1] if values.ndim == 2 else values
        assert any(np.array_equal(y, values) for y in drawn)
    assert all(axis.get_xlabel() and axis.get_title() for axis in (*ratio.axes, *tightness.axes))
