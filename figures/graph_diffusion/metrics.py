"""Figure of the metrics of generated graphs: repeats in a benchmark, discrepancies, and their floors."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style

MARKERS = ("o", "s", "^", "D", "v")
PLACES = "degree", "clustering", "orbits", "spectrum"
# Of the laws, in the order of the dataset.
NAMES = {
    "shared seeds": "copies: shared seeds",
    "fresh seeds": "true law: fresh seeds",
    "short schedule": "densities of the short schedule",
    "density matched": "no communities, same density",
}


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`E9-metrics`."""
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(2, 2, figsize=(9.6, 7.0))
        _repeats(axes[0, 0], dataset)
        _sizes(axes[0, 1], dataset)
        _laws(axes[1, 0], dataset, "shared seeds")
        _laws(axes[1, 1], dataset, "fresh seeds")
        _published(axes[1, 0], dataset)
        _floor(axes[1, 1], dataset)
        low = min(axis.get_ylim()[0] for axis in axes[1])
        for axis in axes[1]:
            axis.set_ylim(low, 100.0)  # room for the legend
    caption = (
        "What discrepancies between sets of graphs measure, on community graphs (V-statistic, kernels "
        "of the benchmarks). Top left: how many of the benchmark's 100 graphs differ, and how many of "
        "its 20 test graphs are training graphs, where communities have one seed a size: bars are "
        "repeated draws of the set, lines the expectation. Top right: two samples of m graphs of one "
        "law differ by a multiple of 1/m, not by 0 (lines theory, dots simulated); the spectral kernel "
        "follows 2/m, as it does for any two laws without repeats. Bottom: 20 of each of four laws "
        "against 20 test graphs with shared seeds (left) and with fresh ones (right): dots are means ±2 "
        "standard errors, dashes the theory. Left, copies of the training set beat the true law; "
        "crosses are what others print for trained models on the public file, whose communities are "
        "other ones (quoted, or from memory and unchecked). Right, grey bars hold 80 % of the values "
        "for two samples of the true law."
    )
    return {"E9-metrics": (figure, caption)}


def _repeats(axis: Any, dataset: xr.Dataset) -> None:
    shown = {
        "metrics_duplicates": "test graphs in the training set, of 20",
        "metrics_distinct": "different graphs, of 100",
    }
    for color, (name, label) in zip(COLORS, shown.items(), strict=False):
        counts = dataset[name].values.astype(int)
        values, times = np.unique(counts, return_counts=True)
        axis.bar(values, times / len(counts), width=0.9, color=color, alpha=0.6, label=label)
        axis.axvline(float(dataset[f"{name}_theory"]), color=color)
    axis.set_ylim(top=0.28)
    axis.set_title("repeats in community_small, one seed a size")
    axis.set_xlabel("graphs")
    axis.set_ylabel("share of repeated draws of the set")
    axis.legend(loc="upper center")


def _sizes(axis: Any, dataset: xr.Dataset) -> None:
    part = dataset.sel(metrics_reference="fresh seeds", metrics_law="fresh seeds")
    sizes = part["metrics_size"].values
    for color, marker, kernel in zip(COLORS, MARKERS, PLACES, strict=False):
        chosen = part.sel(metrics_kernel=kernel)
        mean, error = mean_and_error(chosen["metrics_v"], "metrics_seed")
        axis.plot(sizes, chosen["metrics_v_theory"], color=color)
        axis.errorbar(sizes, mean, error, fmt=marker, color=color, markersize=4, label=kernel)
    axis.plot(
        sizes, part["metrics_saturated"], color="black", linestyle=":", label="2/m: nothing alike"
    )
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(sizes, [str(size) for size in sizes])
    axis.minorticks_off()
    axis.set_ylim(top=2.5)
    axis.set_title("two samples of one law")
    axis.set_xlabel("graphs in each sample, $m$")
    axis.set_ylabel("squared discrepancy, mean of $V$")
    axis.legend(ncols=2, loc="upper right")


def _laws(axis: Any, dataset: xr.Dataset, reference: str) -> None:
    part = dataset.sel(metrics_reference=reference, metrics_size=20)
    for row, (color, marker, law) in enumerate(zip(COLORS, MARKERS, NAMES, strict=False)):
        chosen = part.sel(metrics_law=law, metrics_kernel=list(PLACES))
        place = np.arange(len(PLACES)) + 0.17 * (row - 1.5)
        mean, error = mean_and_error(chosen["metrics_v"], "metrics_seed")
        axis.hlines(chosen["metrics_v_theory"], place - 0.07, place + 0.07, color=color)
        axis.errorbar(place, mean, error, fmt=marker, color=color, markersize=4, label=NAMES[law])
    axis.set_yscale("log")
    axis.set_xticks(range(len(PLACES)), PLACES)
    axis.grid(visible=False, axis="x")
    axis.set_xlabel("statistic")
    axis.set_title(f"20 graphs of each law against 20 with {reference}")
    axis.set_ylabel("squared discrepancy, mean of $V$")
    axis.legend(ncols=1, loc="upper left")


def _published(axis: Any, dataset: xr.Dataset) -> None:
    for how, marker in (("quoted", "x"), ("from memory", "+")):
        rows = dataset["metrics_standing"].values == how
        values = dataset["metrics_published"].values[rows]
        place = np.arange(values.shape[1])[None, :] + 0.4 * np.ones_like(values)
        axis.plot(
            place.ravel(),
            values.ravel(),
            marker,
            color="black",
            markersize=5,
            label=f"trained models, as printed ({how})",
        )
    axis.legend(loc="upper left")


def _floor(axis: Any, dataset: xr.Dataset) -> None:
    floor = dataset["metrics_floor"].sel(metrics_kernel=list(PLACES))
    low, high = (floor.isel(metrics_quantile=which).values for which in (0, -1))
    axis.bar(
        np.arange(len(PLACES)),
        high - low,
        0.8,
        low,
        color="#999999",
        alpha=0.35,
        label="two samples of the true law, 10 to 90 %",
    )
    axis.legend(loc="upper left")
