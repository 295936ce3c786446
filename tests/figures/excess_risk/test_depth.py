"""The figures of depth show the dataset's numbers on labelled axes."""

import numpy as np
import xarray as xr

from boundlab.figures.excess_risk import depth

CASES = ("depth_graph", "depth_operator")


def made_up() -> xr.Dataset:
    rng = np.random.default_rng(0)
    risks = (*CASES, "depth_teacher", "depth_rounds")
    return xr.Dataset(
        {
            "depth_effective_rank": ((*CASES, "depth_rounds"), 1 + rng.random((2, 2, 3))),
            "depth_power": ((*CASES, "depth_direction"), rng.random((2, 2, 5))),
            "depth_bias": ((*risks, "depth_direction"), rng.random((2, 2, 2, 3, 5))),
            "depth_variance": ((*risks, "depth_direction"), rng.random((2, 2, 2, 3, 5))),
            "depth_sgd_risk": (risks, rng.random((2, 2, 2, 3)), {"samples": 17}),
            "depth_ridge_risk": (
                ("depth_ridge_samples", *CASES, "depth_rounds"),
                rng.random((2, 2, 2, 3)),
            ),
            "depth_least_squares_risk": 0.25,
            "depth_simulated_risk": (
                ("depth_seed", "depth_simulated_rounds"),
                rng.random((9, 2)),
                {"graph": "power law", "operator": "normalized_adjacency"},
            ),
        },
        coords={
            "depth_graph": ["regular", "power law"],
            "depth_operator": ["laplacian", "normalized_adjacency"],
            "depth_teacher": ["function", "weights"],
            "depth_rounds": [1, 2, 4],
            "depth_direction": np.arange(1, 6),
            "depth_ridge_samples": [3, 12],
            "depth_simulated_rounds": [1, 2],
        },
    )


def test_figures_hold_the_numbers() -> None:
    dataset = made_up()
    figures = depth.draw(dataset)
    profiles, risks = (figures[name][0].axes for name in ("F5-profiles", "F6-depth"))
    total = dataset["depth_bias"] + dataset["depth_variance"]
    # Second row, first column: power-law graph, normalised operator, kept function, L = 4.
    np.testing.assert_array_equal(profiles[2].lines[2].get_ydata(), total[1, 1, 0, 2])
    panel = risks[4]
    simulated = dataset["depth_simulated_risk"]
    (bars,) = panel.containers
    np.testing.assert_allclose(bars.lines[0].get_ydata(), simulated.mean("depth_seed"))
    (segments,) = bars.lines[2]
    lengths = [np.ptp(segment[:, 1]) for segment in segments.get_segments()]
    np.testing.assert_allclose(lengths, 4 * simulated.std("depth_seed", ddof=1) / 3)
    drawn = [line.get_ydata() for line in panel.lines]
    for values in (
        *dataset["depth_sgd_risk"][:, 1, 0].values,
        *dataset["depth_ridge_risk"][1, :, 1],
    ):
        assert any(np.array_equal(values, line) for line in drawn)
    # Least squares is a level across both panels of the kept function, and of no other.
    levels = [
        any(np.array_equal(line.get_ydata(), [0.25, 0.25]) for line in axis.lines) for axis in risks
    ]
    assert levels == [False, True, False] * 2
    assert all(axis.get_ylabel() for axis in risks)
    assert all(axis.get_xlabel() == "depth L" for axis in risks[3:])
    assert "N = 17" in figures["F6-depth"][1]
