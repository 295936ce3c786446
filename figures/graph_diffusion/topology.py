"""Figures of features on a fixed graph: errors against graph size and feature size, and normalisation."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style

MARKERS = ("o", "s", "^")
TITLES = {
    "sum": "sum $A+I$",
    "row": "row $D^{-1}(A+I)$",
    "symmetric": "symmetric $D^{-1/2}(A+I)D^{-1/2}$",
}


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`E1-topology`, `E1b-normalisation` and `E2-feature-size`."""
    return {
        "E1-topology": _sizes(dataset),
        "E1b-normalisation": _normalisation(dataset),
        "E2-feature-size": _features(dataset),
    }


def _sizes(dataset: xr.Dataset) -> tuple[Any, str]:
    import matplotlib.pyplot as plt

    nodes = dataset["topology_nodes"].values
    with style():
        figure, axes = plt.subplots(2, 3, figsize=(10.2, 6.2), sharex=True, sharey="row")
        for row, (name, label) in enumerate(
            {"topology_w2": "$W_2$ to the noised data", "topology_kl": "KL (nats)"}.items()
        ):
            axes[row, 0].set_ylabel(label)
            for axis, kind in zip(axes[row], dataset["topology_aggregation"].values, strict=True):
                _families(axis, dataset, name, str(kind))
        for axis, kind in zip(axes[0], dataset["topology_aggregation"].values, strict=True):
            axis.set_title(TITLES[str(kind)])
        for axis, kind in ((axes[0, 0], "sum"), (axes[0, 2], "symmetric")):
            _simulated(axis, dataset, kind)
        for axis in axes[1]:
            axis.set_xscale("log")
            axis.set_xticks(nodes, [str(value) for value in nodes])
            axis.minorticks_off()
            axis.set_xlabel("nodes $n$")
        axes[0, 1].legend(*axes[0, 0].get_legend_handles_labels())
    caption = (
        "Error of generated features on a fixed graph (50 features, noise floor .3, T = 2) against "
        "the number of nodes. Lines: exact, means over random graphs, ±2 standard errors; black "
        "symbols: the sampler itself, simulated on the smallest graphs; dotted: the bound of the KL. "
        "Under the sum the error follows the tail of the degrees, star above power law above regular; "
        "under the symmetric normalisation all three are alike; the row normalisation leaves the star "
        "out."
    )
    return figure, caption


def _families(axis: Any, dataset: xr.Dataset, name: str, kind: str) -> None:
    part = dataset.sel(topology_aggregation=kind)
    nodes = part["topology_nodes"].values
    for color, family in zip(COLORS, part["topology_family"].values, strict=False):
        mean, error = mean_and_error(part[name].sel(topology_family=family), "topology_draw")
        axis.errorbar(nodes, mean, error, color=color, label=f"{family}, exact")
        if name == "topology_kl":
            bound = part["topology_bound"].sel(topology_family=family).mean("topology_draw")
            axis.plot(nodes, bound, color=color, linestyle=":", linewidth=1.2)
    axis.set_yscale("log")
    axis.minorticks_off()


def _simulated(axis: Any, dataset: xr.Dataset, kind: str) -> None:
    least = dataset["topology_nodes"].values[0]
    for marker, family in zip(MARKERS, dataset["topology_family"].values, strict=False):
        part = dataset.sel(topology_case=f"{family}, {kind}").isel(topology_size=-1)
        axis.errorbar(
            [least],
            [part["topology_case_w2_simulated"]],
            [2 * part["topology_case_w2_error"]],
            fmt=marker,
            color="black",
            markersize=5,
            fillstyle="none",
            label=f"{family}, simulated",
        )


def _normalisation(dataset: xr.Dataset) -> tuple[Any, str]:
    import matplotlib.pyplot as plt

    stds, filters = (dataset[f"topology_{name}"].values for name in ("noise_std", "filter"))
    families = dataset["topology_family"].values
    with style():
        figure, axes = plt.subplots(
            len(stds), len(families), figsize=(10.2, 5.8), sharex=True, sharey="row"
        )
        for row, std in zip(axes, stds, strict=True):
            row[0].set_ylabel(f"KL (nats), $s_0={std:g}$")
            for axis, family in zip(row, families, strict=True):
                for color, kind in zip(COLORS, filters, strict=False):
                    part = dataset["topology_horizon_kl"].sel(
                        topology_noise_std=std, topology_family=family, topology_filter=kind
                    )
                    mean, error = mean_and_error(part, "topology_draw")
                    axis.errorbar(
                        part["topology_horizon"].values, mean, error, color=color, label=str(kind)
                    )
                axis.set_yscale("log")
        for axis, family in zip(axes[0], families, strict=True):
            axis.set_title(f"{family}, $n={dataset['topology_nodes'].values[-2]}$")
        for axis in axes[-1]:
            axis.set_xlabel("horizon $T$")
        axes[0, 0].legend()
    caption = (
        "Where normalising helps and where it hurts: exact KL of the sampler against the horizon, for "
        "the sum, the symmetric normalisation, and the latter divided by its root mean square. With a "
        "noise floor of 1 (bottom) the symmetric filter is better at its best horizon. With a floor "
        "of .3 (top) it is worse than the sum on regular graphs at T = 2 and beyond: it pushes modes "
        "to variances near .09, which small steps alone resolve. Dividing by the root mean square "
        "undoes that."
    )
    return figure, caption


def _features(dataset: xr.Dataset) -> tuple[Any, str]:
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(1, 3, figsize=(10.8, 3.9))
        for axis, kind in zip(axes, ("sum", "symmetric"), strict=False):
            _over_features(axis, dataset, kind)
        _modes(axes[2], dataset)
        axes[0].set_ylabel("$W_2$ to the noised data")
        axes[0].legend()
    caption = (
        "Left and middle: error against the number of features on the smallest graphs and on a piece "
        "of Cora with its own words as features, exact (lines, of slope ½) and from the simulated "
        "sampler (symbols, ±2 standard errors). Right: variance of the output along each eigenvector "
        "of the features' covariance on Cora, over that of the data: simulated (dots) and exact "
        "(lines). Large modes come out too small, since the sampler starts from variance 1 and T is "
        "finite."
    )
    return figure, caption


def _over_features(axis: Any, dataset: xr.Dataset, kind: str) -> None:
    sizes = dataset["topology_size"].values
    for color, marker, family in zip(
        COLORS, (*MARKERS, "D"), ("regular", "power law", "star", "Cora"), strict=False
    ):
        part = dataset.sel(topology_case=f"{family}, {kind}")
        axis.plot(sizes, part["topology_case_w2"], color=color, linewidth=1.2)
        axis.errorbar(
            sizes,
            part["topology_case_w2_simulated"],
            2 * part["topology_case_w2_error"],
            fmt=marker,
            color=color,
            markersize=5,
            fillstyle="none",
            label=family,
        )
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(sizes, [str(value) for value in sizes])
    axis.minorticks_off()
    axis.set_title(TITLES[kind])
    axis.set_xlabel("features $F$")


def _modes(axis: Any, dataset: xr.Dataset) -> None:
    whole = dataset.isel(topology_size=-1)
    for color, kind in zip(COLORS, ("sum", "symmetric"), strict=False):
        part = whole.sel(topology_case=f"Cora, {kind}")
        data = part["topology_data_variance"]
        mean, error = mean_and_error(part["topology_square"] / data, "topology_seed")
        values = part["topology_eigenvalue"]
        axis.errorbar(
            values, mean, error, fmt="o", color=color, markersize=3, linewidth=0.8, label=kind
        )
        axis.plot(values, part["topology_variance"] / data, color=color, linewidth=1.0)
    axis.axhline(1.0, color="black", linewidth=0.8)
    axis.set_xscale("log")
    axis.set_ylim(bottom=min(0.5, float(np.floor(10 * axis.get_ylim()[0]) / 10)))
    axis.set_title("variances on Cora, output / data")
    axis.set_xlabel("eigenvalue $\\lambda$ of the covariance")
    axis.set_ylabel("variance ratio")
    axis.legend()
