"""The figures of policy gradients show the dataset's numbers on labelled axes."""

import numpy as np
import xarray as xr

from boundlab.figures.team_learning import gradients


def _dataset() -> xr.Dataset:
    rng = np.random.default_rng(0)
    curves = ("symmetric", "symmetric_theory", "joint")
    variables = {
        f"gradients_{name}": ("gradients_reward", rng.random(6) + 0.1)
        for name in ("alignment", "ratio", "theory")
    }
    variables |= {f"gradients_{name}": ("gradients_time", rng.random(4) + 0.1) for name in curves}
    variables |= {
        "gradients_additive": ("gradients_reward", np.array([16.0, 16, 16, 3, 3, 3])),
        "gradients_signal": (("gradients_seed", "gradients_reinforce"), rng.random((5, 2))),
        "gradients_signal_theory": ("gradients_reinforce", rng.random(2)),
        "gradients_noisy": (("gradients_seed", "gradients_time"), rng.random((5, 4)) + 0.1),
        "gradients_escaped_tied": ("gradients_seed", rng.random(5) + 0.1),
        "gradients_trap": ((), 0.1875),
        "gradients_hitting": (("gradients_learner", "gradients_level"), rng.random((3, 2)) + 1),
        "gradients_hitting_growth": (
            ("gradients_learner", "gradients_agents"),
            rng.random((3, 4)) + 1,
        ),
    }
    sizes = ["A=4, K=3"] * 3 + ["A=3, K=2"] * 3
    names = ["additive", "parity 0.1", "random 0.5"] * 2
    coords = {
        "gradients_reward": [f"{s}, {n}" for s, n in zip(sizes, names, strict=True)],
        "gradients_size": ("gradients_reward", sizes),
        "gradients_time": [1.0, 10.0, 100.0, 1000.0],
        "gradients_reinforce": ["own", "shared"],
        "gradients_learner": ["own", "team", "joint, needle"],
        "gradients_level": [0.5, 0.9],
        "gradients_agents": [1, 2, 3, 4],
    }
    return xr.Dataset(variables, coords=coords)


def test_figures_hold_the_numbers() -> None:
    dataset = _dataset()
    figures = gradients.draw(dataset)
    assert list(figures) == ["F6-speed", "F10-symmetry"]
    speed, caption = figures["F6-speed"]
    assert len(caption) > 80
    drawn = np.concatenate([line.get_ydata() for line in speed.axes[0].lines])
    assert np.isin(dataset["gradients_ratio"], drawn).all()
    symmetry, caption = figures["F10-symmetry"]
    assert "0.1875" in caption
    assert "probability 0.9" in caption
    drawn = [line.get_ydata() for line in symmetry.axes[0].lines]
    assert any(np.array_equal(y, dataset["gradients_joint"]) for y in drawn)
    mean = dataset["gradients_noisy"].mean("gradients_seed")
    assert any(np.array_equal(y, mean) for y in drawn)
    drawn = [line.get_ydata() for line in symmetry.axes[1].lines]
    assert any(np.array_equal(y, dataset["gradients_hitting_growth"][1]) for y in drawn)
    for figure in (speed, symmetry):
        assert all(axis.get_xlabel() and axis.get_ylabel() for axis in figure.axes)
