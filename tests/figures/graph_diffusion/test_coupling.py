"""The figure of coupled systems shows the dataset's numbers on labelled axes."""

import numpy as np
import xarray as xr

from boundlab.figures.graph_diffusion import coupling


def _dataset() -> xr.Dataset:
    rng = np.random.default_rng(0)
    samples = ("coupling_seed", "coupling_direction")
    theories = ("joint_jacobi", "joint_gauss_seidel", "marginal_jacobi")
    prices = ("price", "price_theory", "price_weak")
    variables = {
        f"coupling_variance_{order}": (samples, rng.random((5, 3)))
        for order in ("jacobi", "gauss_seidel")
    }
    variables |= {
        f"coupling_theory_{name}": ("coupling_direction", rng.random(3)) for name in theories
    }
    variables |= {f"coupling_{name}": ("coupling_strength", rng.random(4)) for name in prices}
    variables |= {
        "coupling_kl": (("coupling_steps", "coupling_sampler"), rng.random((3, 3)) + 0.1),
        "coupling_bound": ("coupling_steps", rng.random(3) + 0.1),
        "coupling_information": ((), 1.25),
        "coupling_distance": (("coupling_drift", "coupling_horizon"), rng.random((2, 6)) + 0.1),
    }
    coords = {
        "coupling_steps": [10, 20, 40],
        "coupling_sampler": ["joint, Jacobi", "joint, Gauss-Seidel", "marginal"],
        "coupling_strength": [0.1, 0.4, 0.7, 1.0],
        "coupling_direction": ["canonical pair 1", "canonical pair 2", "order"],
        "coupling_drift": [0.0, 0.5],
        "coupling_horizon": np.arange(1.0, 7.0),
    }
    return xr.Dataset(variables, coords=coords)


def test_figure_holds_the_numbers() -> None:
    dataset = _dataset()
    figures = coupling.draw(dataset)
    assert list(figures) == ["E7-coupling"]
    figure, caption = figures["E7-coupling"]
    assert "1.25 nats" in caption
    drawn = [line.get_ydata() for line in figure.axes[0].lines]
    assert any(np.array_equal(y, dataset["coupling_kl"][:, 1]) for y in drawn)
    drawn = [line.get_ydata() for line in figure.axes[2].lines]
    mean = dataset["coupling_variance_jacobi"].mean("coupling_seed")
    assert any(np.array_equal(y, mean[:2]) for y in drawn)
    drawn = [line.get_ydata() for line in figure.axes[3].lines]
    assert any(np.array_equal(y, dataset["coupling_distance"][1]) for y in drawn)
    assert all(axis.get_xlabel() and axis.get_title() for axis in figure.axes)
