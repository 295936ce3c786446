"""The figures of moments show the dataset's numbers on labelled axes."""

import numpy as np
import pytest
import xarray as xr

from boundlab.figures.fanout import moments


@pytest.fixture(scope="module")
def made_up() -> xr.Dataset:
    rng = np.random.default_rng(0)
    sizes, fan_outs, curve = [2, 6, 12], [1, 2, 4], [1, 2, 6, 12]
    seed, cell = "moments_seed", ("moments_batch_size", "moments_fan_out")
    grid, line = ("moments_curve_batch_size", "moments_curve_fan_out"), ("moments_curve_fan_out",)
    drawn = ("drawn_noise", "drawn_batch_part", "drawn_fan_out_part", "batch_loss")
    parts = ("noise", "batch_part", "fan_out_part", "uncorrected_fan_out_part")
    runs = ("moments_run_seed", "moments_run_batch_size", "moments_step")
    positive = 0.5 + rng.random((4, 4))
    positive[:, -1] = 0.0  # β = d leaves nothing to draw
    return xr.Dataset(
        {
            **{f"moments_{n}": ((seed, *cell), 0.5 + rng.random((5, 3, 3))) for n in drawn},
            **{f"moments_{n}": (grid, positive) for n in parts},
            "moments_sampled_loss": (line, 1 + rng.random(4)),
            "moments_full_loss": (line, np.ones(4)),
            "moments_iterate": (runs, rng.random((5, 2, 4))),
            "moments_excess": (runs, 0.1 + rng.random((5, 2, 4))),
            "moments_ridgeless_iterate": ("moments_step", rng.random(4)),
            "moments_floor": (
                "moments_run_curve",
                [0.4, 0.2, 0.1],
                {"step_size": 0.02, "fan_out": 2},
            ),
            "moments_enumerated_loss": (
                ("moments_loss", "moments_weights", "moments_small_fan_out"),
                np.sort(rng.random((2, 3, 4)))[..., ::-1],
            ),
        },
        coords={
            "moments_batch_size": sizes,
            "moments_fan_out": fan_outs,
            "moments_curve_batch_size": curve,
            "moments_curve_fan_out": [1, 2, 3, 4],
            "moments_run_batch_size": [8, 16],
            "moments_run_curve": [4, 8, 16],
            "moments_step": [10, 20, 30, 40],
            "moments_loss": ["squared", "cross-entropy"],
            "moments_small_fan_out": [1, 2, 3, 4],
        },
    )


def test_figures_are_labelled(made_up: xr.Dataset) -> None:
    drawn = moments.draw(made_up)
    assert list(drawn) == ["E3-gradient-noise", "E3b-noise-floor"]
    for name, (figure, caption) in drawn.items():
        assert len(caption) > 80, name
        for axis in figure.axes:
            assert axis.get_xlabel(), name
            assert axis.get_ylabel(), name
            assert axis.get_title(), name
            assert axis.get_legend() is not None, name


def test_lines_are_the_theory_and_zeros_stay_off_logarithmic_axes(made_up: xr.Dataset) -> None:
    figure, _ = moments.draw(made_up)["E3-gradient-noise"]
    noise = made_up["moments_noise"].sel(moments_curve_fan_out=2)
    line = figure.axes[0].get_lines()
    shown = [entry for entry in line if entry.get_label() == "β = 2"]
    np.testing.assert_array_equal(shown[0].get_ydata(), noise)
    for entry in (*line, *figure.axes[1].get_lines()):
        values = np.asarray(entry.get_ydata(), dtype=float)
        assert (values > 0).all()


def test_dots_are_means_over_runs(made_up: xr.Dataset) -> None:
    figure, _ = moments.draw(made_up)["E3b-noise-floor"]
    late = made_up["moments_excess"].isel(moments_step=slice(2, None))
    expected = late.mean(["moments_step", "moments_run_seed"])
    dots = figure.axes[2].containers[0].lines[0]
    np.testing.assert_allclose(dots.get_ydata(), expected, rtol=1e-12)
