"""Figure F11, Cora: its spectra, and the learning curves of SGD and tuned ridge on it."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.excess_risk.names import OPERATORS
from boundlab.figures.style import COLORS, mean_and_error, style


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """Figure and caption by name."""
    with style():
        return {"F11-cora": (_cora(dataset), _caption(dataset))}


def _caption(dataset: xr.Dataset) -> str:
    nodes = dataset.sizes["citation_direction"]
    largest = int(dataset["citation_ridge_samples"].max())
    return (
        f"Cora, {nodes:,} papers. Left: eigenvalues of M = G² for each operator, scaled to sum 1. "
        "Right two: excess risk against the number of samples; SGD exact and tuned ridge by its "
        "deterministic equivalent (lines), both simulated through the dense G (dots, ±2 s.e.; ridge up "
        f"to N = {largest} only). "
        "Crosses: the exact risk of SGD on a random regular graph of the same mean degree, which the "
        "simulation rejects for D − A + I. Cora's hubs give D − A + I a decaying spectrum, and both "
        "algorithms learn faster there than behind the normalised operator."
    )


def _cora(dataset: xr.Dataset) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(9.5, 3.8))
    # Neither colours nor dashes of the algorithms on the right.
    looks = zip(COLORS[2:], ("-", "--", "-.", ":"), strict=False)
    for kind, (color, dashes) in zip(dataset["citation_kind"].values, looks, strict=False):
        axes[0].loglog(
            dataset["citation_direction"].values,
            dataset["citation_spectrum"].sel(citation_kind=kind).values,
            dashes,
            color=color,
            label=OPERATORS[kind],
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
        axis.set_title(f"learning behind {OPERATORS[operator]}")
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
