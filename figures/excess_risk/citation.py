"""Figure of Cora: its spectra, and the learning curves of SGD and tuned ridge on it."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style

NAMES = {
    "laplacian": "L + I",
    "normalized_adjacency": "(I + S)/2",
    "adjacency": "A + (ρ + 1) I",
    "personalized_pagerank": "PageRank",
}


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """Figure and caption by name."""
    with style():
        return {"F-Cora": (_cora(dataset), _caption(dataset))}


def _caption(dataset: xr.Dataset) -> str:
    nodes = dataset.sizes["citation_direction"]
    return (
        f"Cora, {nodes:,} papers. Left: eigenvalues of M = G² for each operator, scaled to sum 1. "
        "Right two: excess risk against the number of samples; SGD exact and tuned ridge by its "
        "deterministic equivalent (lines), both simulated through the dense G (dots, ±2 s.e.). "
        "Crosses: the exact risk of SGD on a random regular graph of the same mean degree, which the "
        "simulation rejects for L + I. Cora's hubs give L + I a decaying spectrum, and both "
        "algorithms learn faster there than behind the normalised operator."
    )


def _cora(dataset: xr.Dataset) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(9.5, 3.8))
    for kind in dataset["citation_kind"].values:
        axes[0].loglog(
            dataset["citation_direction"].values,
            dataset["citation_spectrum"].sel(citation_kind=kind).values,
            label=NAMES[kind],
        )
    axes[0].set_xlabel("direction i")
    axes[0].set_ylabel("eigenvalue $\\mu_i$ (sum 1)")
    axes[0].set_title("spectra")
    axes[0].legend(loc="lower left")
    curve, counts = dataset["citation_curve"].values, dataset["citation_samples"].values
    for axis, operator in zip(axes[1:], dataset["citation_operator"].values, strict=True):
        part = dataset.sel(citation_operator=operator)
        for color, name, algorithm in zip(COLORS, ("sgd", "ridge"), ("SGD", "ridge"), strict=False):
            axis.loglog(curve, part[f"citation_{name}_exact"].values, color=color, label=algorithm)
        mean, error = mean_and_error(part["citation_sgd_simulated"], "citation_seed")
        axis.errorbar(
            counts, mean.values, error.values, fmt="o", color=COLORS[0], label="SGD, simulated"
        )
        mean, error = mean_and_error(part["citation_ridge_simulated"], "citation_design")
        axis.errorbar(
            dataset["citation_ridge_samples"].values,
            mean.values,
            error.values,
            fmt="s",
            color=COLORS[1],
            label="ridge, simulated",
        )
        axis.loglog(
            counts,
            part["citation_sgd_blind"].values,
            "kx",
            zorder=5,
            label="SGD on a regular graph (exact)",
        )
        axis.set_xlabel("samples N")
        axis.set_ylabel("excess risk R (unit of $y^2$)")
        axis.set_title(f"learning behind {NAMES[operator]}")
    axes[1].sharey(axes[2])
    low, high = axes[1].get_ylim()
    ticks = [d * 10.0**e for e in range(-6, 2) for d in (1, 2, 3, 5) if low <= d * 10.0**e <= high]
    powers = 2 ** np.arange(4, int(np.log2(curve[-1])) + 1)
    for axis in axes[1:]:
        axis.minorticks_off()
        axis.set_xticks(powers, [str(power) for power in powers])
        axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    handles, labels = axes[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5)
    return figure
