"""The figure of the ladder shows the dataset's numbers on labelled axes."""

import numpy as np
import xarray as xr

from boundlab.figures.graph_diffusion import ladder


def _dataset() -> xr.Dataset:
    rng = np.random.default_rng(0)
    schemes, bounded = list(ladder.SCHEMES), list(ladder.SCHEMES)[:2]
    sizes = {
        "ladder_steps": [25, 50, 100],
        "ladder_scheme": schemes,
        "ladder_bounded": bounded,
        "ladder_eigenvalue": [1.0, 3.0],
        "ladder_case": ["a", "b"],
        "ladder_case_eigenvalue": [0.1, 1.0, 10.0],
        "ladder_error": ["e", "b"],
        "ladder_mode": ["first", "second, mean 3"],
        "ladder_seed": np.arange(5),
    }
    steps, modes = "ladder_steps", "ladder_eigenvalue"
    case, of_case = "ladder_case", "ladder_case_eigenvalue"
    drawn = ("ladder_scheme", "ladder_mode")
    dims = {
        "kl": (steps, "ladder_scheme", modes),
        "bound": (steps, "ladder_bounded", modes),
        "lipschitz": (steps, modes),
        "chen": (steps, modes),
        "benton": (steps,),
        "start": (modes,),
        "case_kl": (case, "ladder_bounded", of_case),
        "case_bound": (case, "ladder_bounded", of_case),
        "case_swapped": (case, of_case),
        "error_kl": (case, "ladder_error", of_case),
        "error_bound": (case, "ladder_error", of_case),
        "variance": ("ladder_seed", *drawn),
        "variance_theory": drawn,
        "variance_other": drawn,
    }
    variables = {
        f"ladder_{name}": (of, rng.random([len(sizes[dim]) for dim in of]) + 0.1)
        for name, of in dims.items()
    }
    return xr.Dataset(variables, coords=sizes)


def test_figure_holds_the_numbers() -> None:
    dataset = _dataset()
    figures = ladder.draw(dataset)
    assert list(figures) == ["E4-ladder"]
    figure, caption = figures["E4-ladder"]
    assert len(caption) > 80
    part = dataset.sel(ladder_eigenvalue=ladder.EIGENVALUE)
    exact = part["ladder_kl"].sel(ladder_scheme="exponential_integrator")
    drawn = [line.get_ydata() for line in figure.axes[0].lines]
    assert any(np.array_equal(y, exact) for y in drawn)
    ratio = (dataset["ladder_case_kl"] / dataset["ladder_case_bound"]).max("ladder_case")
    drawn = [line.get_ydata() for line in figure.axes[2].lines]
    assert any(np.array_equal(y, ratio[1]) for y in drawn)
    assert all(axis.get_xlabel() and axis.get_title() for axis in figure.axes)
