"""The figure of metrics shows the dataset's numbers on labelled axes."""

import numpy as np
import xarray as xr

from boundlab.figures.graph_diffusion import metrics


def _dataset() -> xr.Dataset:
    rng = np.random.default_rng(0)
    kernels = ["degree", "clustering", "orbits", "spectrum"]
    case = ("metrics_kernel", "metrics_reference", "metrics_law", "metrics_size")
    variables = {
        "metrics_distinct": ("metrics_draw_seed", rng.integers(40, 60, 30).astype(float)),
        "metrics_duplicates": ("metrics_draw_seed", rng.integers(5, 15, 30).astype(float)),
        "metrics_distinct_theory": ((), 52.0),
        "metrics_duplicates_theory": ((), 9.5),
        "metrics_v": ((*case, "metrics_seed"), 0.1 + rng.random((4, 2, 4, 3, 5))),
        "metrics_v_theory": (case, 0.1 + rng.random((4, 2, 4, 3))),
        "metrics_saturated": ("metrics_size", [0.4, 0.2, 0.1]),
        "metrics_floor": (
            ("metrics_kernel", "metrics_quantile"),
            np.sort(0.01 + rng.random((4, 3)), axis=1),
        ),
        "metrics_published": (("metrics_method", "metrics_published_kernel"), rng.random((2, 3))),
    }
    coords = {
        "metrics_kernel": kernels,
        "metrics_reference": ["shared seeds", "fresh seeds"],
        "metrics_law": list(metrics.NAMES),
        "metrics_size": [5, 10, 20],
        "metrics_quantile": [0.1, 0.5, 0.9],
        "metrics_method": ["one", "other"],
        "metrics_published_kernel": kernels[:3],
        "metrics_standing": ("metrics_method", ["quoted", "from memory"]),
    }
    return xr.Dataset(variables, coords=coords)


def test_figure_holds_the_numbers() -> None:
    dataset = _dataset()
    figures = metrics.draw(dataset)
    assert list(figures) == ["E9-metrics"]
    figure, caption = figures["E9-metrics"]
    assert len(caption) > 80
    chosen = dataset.sel(metrics_reference="fresh seeds", metrics_law="fresh seeds")
    drawn = [line.get_ydata() for line in figure.axes[1].lines]
    for kernel in dataset["metrics_kernel"].values:
        theory = chosen["metrics_v_theory"].sel(metrics_kernel=kernel)
        assert any(np.array_equal(y, theory) for y in drawn)
    mean = dataset["metrics_v"].mean("metrics_seed").sel(metrics_size=20)
    for axis, reference in ((2, "shared seeds"), (3, "fresh seeds")):
        drawn = [line.get_ydata() for line in figure.axes[axis].lines]
        law = mean.sel(metrics_reference=reference, metrics_law="short schedule")
        assert any(np.array_equal(y, law) for y in drawn)
    printed = [line.get_ydata() for line in figure.axes[2].lines]
    assert any(np.array_equal(y, dataset["metrics_published"][1]) for y in printed)
    bars = [(bar.get_y(), bar.get_y() + bar.get_height()) for bar in figure.axes[3].patches]
    np.testing.assert_allclose(bars, dataset["metrics_floor"][:, [0, 2]])
    assert all(axis.get_xlabel() and axis.get_ylabel() and axis.get_title() for axis in figure.axes)
