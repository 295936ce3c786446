"""The figures of gates show the dataset's numbers on labelled axes."""

import numpy as np
import pytest
import xarray as xr

from boundlab.figures.policy_optimization import gates

REGIMES = ["on policy", "fiber clip", "rollback of +", "rollback of −", "+ zeroed", "both zeroed"]


@pytest.fixture(scope="module")
def dataset() -> xr.Dataset:
    rng = np.random.default_rng(0)
    side = np.linspace(-1, 1, 5)
    near = [f"gates_near_{axis}" for axis in "yx"]
    far = [f"gates_far_{axis}" for axis in "yx"]
    regimes = np.arange(25.0).reshape(5, 5) % 5
    regimes[0, 0] = np.nan
    variables = {
        "gates_curve": (("gates_count", "gates_x"), rng.random((2, 7))),
        "gates_curve_limit": ("gates_x", rng.random(7)),
        "gates_base_weight": (("gates_s_minus", "gates_s_plus"), rng.standard_normal((4, 5))),
        "gates_base_budget": ("gates_channel", [0.23, 0.11]),
        "gates_base_tokens": ((), 3.0),
        "gates_far_regime": (far, regimes),
        "gates_near_regime": (near, np.arange(25.0).reshape(5, 5) % 4),
        "gates_fiber": (("gates_step", "gates_token"), 1 + rng.random((6, 3))),
        "gates_grpo": (("gates_step", "gates_token"), 1 + rng.random((6, 3))),
        "gates_s_plus_sweep": ("gates_step", rng.random(6)),
        "gates_s_minus_sweep": ("gates_step", rng.random(6)),
        "gates_budgets": ("gates_channel", [0.12, 0.05]),
        "gates_jacobian": (
            ("gates_regime", "gates_row", "gates_column"),
            rng.standard_normal((6, 4, 4)),
        ),
    }
    coords = {
        "gates_count": [2, 10],
        "gates_x": np.linspace(-0.4, 0.4, 7),
        "gates_s_plus": np.linspace(0, 0.35, 5),
        "gates_s_minus": np.linspace(0, 0.35, 4),
        "gates_step": np.linspace(0, 0.6, 6),
        "gates_token": [1.0, 0.2, -1.2],
        "gates_regime": REGIMES,
        **dict.fromkeys([*near, *far], side),
    }
    return xr.Dataset(variables, coords=coords)


def test_figures_hold_the_numbers(dataset: xr.Dataset) -> None:
    figures = gates.draw(dataset)
    assert list(figures) == ["F1-gate", "F2-regimes", "F3-sweep", "F4-jacobian"]
    gate, caption = figures["F1-gate"]
    assert "0.23 and 0.11, 3 tokens" in caption
    drawn = [line.get_ydata() for line in gate.axes[0].lines]
    for curve in dataset["gates_curve"].values:
        assert any(np.array_equal(y, curve) for y in drawn)
    shown = gate.axes[1].collections[0].get_array().reshape(4, 5)
    np.testing.assert_array_equal(shown, dataset["gates_base_weight"])
    lines = sorted({float(np.ravel(line.get_xdata())[0]) for line in gate.axes[1].lines})
    np.testing.assert_allclose(lines, [0.0, 0.23, 0.23 * 4 / 3])
    sweep, _ = figures["F3-sweep"]
    drawn = [line.get_ydata() for line in sweep.axes[0].lines]
    for token in range(3):
        expected = dataset["gates_fiber"].values[:, token]
        assert any(np.array_equal(y, expected) for y in drawn)
    assert sweep.axes[0].get_ylim() == sweep.axes[1].get_ylim()
    jacobian, _ = figures["F4-jacobian"]
    assert [axis.get_title() for axis in jacobian.axes[:6]] == REGIMES
    for axis, block in zip(jacobian.axes, dataset["gates_jacobian"].values, strict=False):
        np.testing.assert_array_equal(axis.images[0].get_array(), block)


def test_regimes_are_the_colours_of_the_legend(dataset: xr.Dataset) -> None:
    figure, _ = gates.draw(dataset)["F2-regimes"]
    for axis, name, count in zip(figure.axes, ("far", "near"), (5, 4), strict=True):
        mesh = axis.collections[0]
        shown = np.ma.filled(mesh.get_array().reshape(5, 5).astype(float), np.nan)
        np.testing.assert_array_equal(shown, dataset[f"gates_{name}_regime"])
        patches = axis.get_legend().get_patches()
        assert len(patches) == count
        for place, patch in enumerate(patches):
            np.testing.assert_allclose(mesh.cmap(mesh.norm(place)), patch.get_facecolor())


def test_captions_and_axes(dataset: xr.Dataset) -> None:
    for figure, caption in gates.draw(dataset).values():
        assert len(caption) > 80
        panels = [axis for axis in figure.axes if axis.get_title()]
        assert all(axis.get_xlabel() and axis.get_ylabel() for axis in panels)
