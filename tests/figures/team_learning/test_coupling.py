"""The figures of coupled teams show the dataset's numbers on labelled axes."""

import numpy as np
import xarray as xr

from boundlab.figures.team_learning import coupling


def _dataset() -> xr.Dataset:
    rng = np.random.default_rng(0)
    weights, budgets = np.array([0.0, 0.25, 0.35, 0.6]), np.array([64.0, 256.0, 1024.0])
    strength = np.linspace(0.0, 1.0, 5)
    cells = ("coupling_simulated_weight", "coupling_seed", "coupling_simulated_budget")
    variables = {
        "coupling_regret_theory": (
            ("coupling_learner", "coupling_weight", "coupling_budget"),
            rng.random((3, 4, 3)),
        ),
        "coupling_crossover": ("coupling_weight", [np.inf, 900.0, 250.0, 64.0]),
        "coupling_regret_joint": (cells, rng.random((4, 5, 3))),
        "coupling_regret_own": (cells, rng.random((4, 5, 3))),
        "coupling_regret_shared": (cells[:2], rng.random((4, 5))),
        "coupling_feasible": ("coupling_accuracy", [0.3]),
        "coupling_feasible_rule": ("coupling_accuracy", [0.1]),
        "coupling_order_regret": (
            ("coupling_order_simulated", "coupling_seed"),
            rng.random((2, 5)),
        ),
    }
    kinds = ("coupling_strength", "coupling_kind", "coupling_signal")
    variables |= {name: (kinds, rng.random((5, 2, 2))) for name in _names("floor", "floor_theory")}
    programmed = ("coupling_programmed", "coupling_kind")
    variables |= {name: (programmed, rng.random((2, 2))) for name in _names("sup", "sup_raw")}
    coords = {
        "coupling_learner": ["joint", "own", "shared"],
        "coupling_weight": weights,
        "coupling_budget": budgets,
        "coupling_simulated_weight": weights,
        "coupling_simulated_budget": budgets,
        "coupling_accuracy": [0.1],
        "coupling_order_simulated": [0.5, 0.9],
        "coupling_strength": strength,
        "coupling_kind": ["parity", "order"],
        "coupling_signal": ["own", "shared"],
        "coupling_programmed": [0.2, 0.6],
    }
    return xr.Dataset(variables, coords=coords)


def _names(*names: str) -> list[str]:
    return [f"coupling_{name}" for name in names]


def test_figures_hold_the_numbers() -> None:
    dataset = _dataset()
    figures = coupling.draw(dataset)
    assert list(figures) == ["F3-regret", "F4-phases", "F5-floors"]
    assert all(len(caption) > 80 for _, caption in figures.values())
    regrets = figures["F3-regret"][0].axes
    drawn = [line.get_ydata() for line in regrets[1].lines]
    curve = dataset["coupling_regret_theory"].sel(coupling_learner="own", coupling_weight=0.25)
    assert any(np.array_equal(y, curve) for y in drawn)
    mean = (
        dataset["coupling_regret_joint"].sel(coupling_simulated_weight=0.25).mean("coupling_seed")
    )
    assert any(np.shape(y) == (3,) and np.allclose(y, mean) for y in drawn)
    assert any(text.get_text() == "$N^*=900$" for text in regrets[1].texts)
    phases = [line.get_ydata() for line in figures["F4-phases"][0].axes[0].lines]
    assert any(np.array_equal(y, dataset["coupling_crossover"]) for y in phases)
    left, right = figures["F5-floors"][0].axes
    bound = 2 * dataset["coupling_sup"].sel(coupling_kind="parity")
    assert any(np.array_equal(line.get_ydata(), bound) for line in right.lines)
    assert all(axis.get_xlabel() and axis.get_title() for axis in (*regrets, left, right))
