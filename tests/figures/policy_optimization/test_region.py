"""The figures of trust regions show the dataset's numbers on labelled axes."""

import numpy as np
import xarray as xr

from boundlab.figures.policy_optimization import region


def _dataset() -> xr.Dataset:
    rng = np.random.default_rng(0)
    names = ("trpo", "achiam", "mixture", "gain", "mixture_gain", "step_gain")
    variables = {f"region_{n}": ("region_process", rng.standard_normal(6)) for n in names}
    tree_names = ("bound", "gain", "step_gain")
    variables |= {f"region_tree_{n}": ("region_tree", rng.standard_normal(5)) for n in tree_names}
    variables |= {
        "region_guarantee": ("region_process", rng.random(6) + 0.5),
        "region_feasible": ("region_process", np.array([1.0, 1, 1, 0, 1, 1])),
        "region_tree_guarantee": ("region_tree", rng.random(5) + 0.5),
        "region_tree_proper": ("region_tree", np.array([0.0, 1, 1, 1, 1])),
        "region_radius_finite": ("region_length", np.array([1.0, 0.1, 0.01])),
        "region_radius_discounted": ("region_length", np.array([0.125, 0.0125, 0.00125])),
    }
    coords = {
        "region_kind": ("region_process", ["random"] * 4 + ["mixture", "small step"]),
        "region_discount": ("region_process", np.resize([0.5, 0.8], 6)),
        "region_tree_kind": ("region_tree", ["random"] * 4 + ["worst"]),
        "region_horizon": ("region_tree", [1, 2, 3, 2, 3]),
        "region_length": [2.0, 11.0, 101.0],
    }
    return xr.Dataset(variables, coords=coords)


def _drawn(axis) -> np.ndarray:
    return np.concatenate([np.asarray(line.get_ydata()) for line in axis.lines])


def test_figures_hold_the_numbers() -> None:
    dataset = _dataset()
    figures = region.draw(dataset)
    assert list(figures) == ["F7-bounds", "F7b-step"]
    bounds, step = (figure for figure, _ in figures.values())
    assert all(len(caption) > 80 for _, caption in figures.values())
    for name in ("region_gain", "region_mixture_gain"):
        assert np.isin(dataset[name], _drawn(bounds.axes[0])).all()
    assert np.isin(dataset["region_tree_gain"], _drawn(bounds.axes[1])).all()
    ratio = (dataset["region_step_gain"] / dataset["region_guarantee"]).values
    shown = dataset["region_feasible"].values > 0
    assert np.isin(ratio[shown], _drawn(step.axes[0])).all()
    assert not np.isin(ratio[~shown], _drawn(step.axes[0])).any()
    for name in ("finite", "discounted"):
        assert np.isin(dataset[f"region_radius_{name}"], _drawn(step.axes[2])).all()
    for figure in (bounds, step):
        assert all(axis.get_xlabel() and axis.get_ylabel() for axis in figure.axes)
