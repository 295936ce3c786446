"""Figures of the paper's own numbers: its tables of iterations (E1b) and the best of many cells (E8)."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style

_EXPONENTS = (
    "Iterations to the target loss as the paper reports them (dots; its numbers, not measured here) "
    "against the batch size b, one colour a fan-out β, with the least-squares power law (lines, their "
    "exponents in the titles; β = all has no line). Black: the theorem's exponent of b, through the "
    "middle of the smallest fan-out. The signs agree; the slopes are 3.6 to 250 times flatter than the "
    "theorems' 5/2 (b) and −1/2 (β) for the squared error (MSE), −1 and −5/2 for the cross-entropy (CE)."
)
_SELECTION = (
    "Left: the score of the best of m equally good cells, in standard deviations of a score (simulated, "
    "dots ±2 s.e.) lies on E max (line), not on √(2 ln m) (dashed), and falls to 0 when the same cell is "
    "scored on other nodes. Right: what the paper's best sampled cell gains over its full-graph cell "
    "(diamonds), and what the spread of the sampled cells alone would give the best of them: E max times "
    "their standard deviation, with a 95 % bootstrap interval (bars). In brackets the share of all cells "
    "that are no better than the full-graph cell: single runs don't show a gain. On papers100M the "
    "full-graph cell is the best of all."
)

TICKS = (200, 250, 300, 400, 500, 600, 700, 800, 900, 1000, 1100, 1200, 1300, 1400, 1500)


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """Figure and caption by name."""
    with style():
        return {
            "E1b-published": (_exponents(dataset), _EXPONENTS),
            "E8-selection": (_selection(dataset), _SELECTION),
        }


def _exponents(dataset: xr.Dataset) -> Any:
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullLocator

    cases = dataset["published_case"].values
    figure, axes = plt.subplots(2, 3, figsize=(9.5, 7.0))
    for axis, case in zip(axes.flat, cases, strict=True):
        shown = dataset.sel(published_case=case)
        batch_size = shown["published_batch_size"].values
        for j, fan_out in enumerate(shown["published_fan_out"].values):
            if np.isnan(fan_out):
                continue
            label = "all" if np.isinf(fan_out) else f"{fan_out:g}"
            color = COLORS[j]
            axis.plot(
                batch_size,
                shown["published_iterations"].values[:, j],
                "o",
                color=color,
                markersize=4,
                label=label,
            )
            axis.plot(batch_size, shown["published_fitted"].values[:, j], color=color, lw=1.0)
        theorem = shown["published_theorem"].values[:, 0]
        axis.plot(batch_size, theorem, color="black", lw=1.2, label="theorem")
        iterations = shown["published_iterations"].values
        axis.set_xscale("log")
        axis.set_yscale("log")
        low, high = np.nanmin(iterations), np.nanmax(iterations)
        axis.set_ylim(0.9 * low, 1.1 * high)
        exponent = shown["published_exponent"].values
        name, loss = str(case).split(", ")
        short = {"mse": "MSE", "cross-entropy": "CE"}[loss]
        axis.set_title(f"{name}, {short}: $b^{{{exponent[0]:+.3f}}}\\beta^{{{exponent[1]:+.3f}}}$")
        ticks = [tick for tick in TICKS if 0.9 * low <= tick <= 1.1 * high]
        axis.set_yticks(ticks, [str(tick) for tick in ticks])
        axis.yaxis.set_minor_locator(NullLocator())
        axis.set_xlabel("batch size b")
        axis.legend(  # below its panel, where it hides nothing
            title="fan-out β",
            ncols=4,
            fontsize=7,
            title_fontsize=7,
            loc="upper center",
            bbox_to_anchor=(0.5, -0.2),
        )
    for axis in axes[:, 0]:
        axis.set_ylabel("iterations to the target loss")
    return figure


def _selection(dataset: xr.Dataset) -> Any:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8))
    cells = dataset["published_num_cells"].values
    expected = dataset["published_expected_maximum"].values
    left.plot(cells, expected, color=COLORS[0], label="E max")
    left.plot(
        cells,
        dataset["published_extreme_value"].values,
        "--",
        color=COLORS[6],
        label="$\\sqrt{2\\,\\ln m}$",
    )
    for color, name, label in (
        (COLORS[0], "published_chosen", "on the nodes that chose it"),
        (COLORS[1], "published_retested", "on other nodes"),
    ):
        mean, error = mean_and_error(dataset[name], "published_seed")
        left.errorbar(cells, mean, error, fmt="o", color=color, markersize=5, label=label)
    left.set_xlabel("number of cells m")
    left.set_ylabel("score of the best cell (standard deviations)")
    left.legend(loc="center right")

    names = dataset["published_dataset"].values
    place = np.arange(len(names))
    chance = dataset["published_by_chance"].values
    interval = np.abs(
        np.stack([dataset["published_chance_low"], dataset["published_chance_high"]]) - chance
    )
    right.errorbar(
        place, chance, interval, fmt="_", markersize=14, capsize=5, color=COLORS[0], label="chance"
    )
    right.plot(
        place,
        dataset["published_gain"].values,
        "D",
        color=COLORS[1],
        markersize=6,
        label="reported gain",
    )
    right.axhline(0.0, color="black", lw=0.8)
    shares = dataset["published_no_better"].values
    right.set_xticks(
        place, [f"{name}\n({share:.0%})" for name, share in zip(names, shares, strict=True)]
    )
    right.set_xlim(-0.5, len(names) - 0.5)
    right.set_ylabel("test accuracy minus that of the full graph (points)")
    right.set_xlabel("data set (share of cells no better than the full graph)")
    right.legend(loc="upper left")
    return figure
