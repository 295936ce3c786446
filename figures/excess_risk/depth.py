"""Figures of depth: the risk profile a direction (F5), effective rank and risk against depth (F6)."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.excess_risk.names import OPERATORS
from boundlab.figures.style import COLORS, mean_and_error, style

TEACHERS = {"function": "function kept", "weights": "weights kept"}


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """Figure and caption by name."""
    with style():
        return {
            "F5-profiles": (_profiles(dataset), _PROFILES),
            "F6-depth": (_depth(dataset), _depth_caption(dataset)),
        }


_PROFILES = (
    "Excess risk of SGD a direction, e_i = bias_i + variance_i, after L rounds of the normalised "
    "operator (I + S)/2 (exact). Kept function (left): directions beyond the first few are unlearnt "
    "with depth and keep their whole signal power (dashed), so that the profile climbs to it. Kept "
    "weights (right): the function itself gets smoother, and the risk of the tail vanishes. "
    "Directions are in descending order of their eigenvalue."
)


def _depth_caption(dataset: xr.Dataset) -> str:
    count = dataset["depth_sgd_risk"].attrs["samples"]
    few, most = (int(samples) for samples in dataset["depth_ridge_samples"].values)
    return (
        "Effective rank of G^L (left) and excess risk (right two) against depth L, on a regular and "
        f"a power-law graph. SGD at N = {count}: exact (lines), simulated through the real G^L (dots "
        "with ±2 s.e.). The effective rank falls to 1. With a kept function SGD over-smooths: its "
        "risk rises to nearly the whole signal power. Ridge tuned anew at each depth (dotted; "
        "deterministic equivalent) never exceeds least squares, σ²d/(N − d − 1), at "
        f"N = 2d = {most} (thin line): with N > d over-smoothing of a fixed function is an effect of "
        f"conditioning, not of lost information. At N = d/2 = {few} no algorithm sees all directions, "
        "and tuned ridge degrades with depth too. With kept weights there is less to learn and the "
        "risk falls (for D − A + I of some power-law graphs not at every step)."
    )


def _profiles(dataset: xr.Dataset) -> Any:
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    profile = (dataset["depth_bias"] + dataset["depth_variance"]).sel(
        depth_operator="normalized_adjacency"
    )
    rounds, direction = dataset["depth_rounds"].values, dataset["depth_direction"].values
    colors = mpl.colormaps["viridis_r"](np.linspace(0.08, 1.0, len(rounds)))
    figure, axes = plt.subplots(2, 2, figsize=(8.0, 6.0), sharex=True, sharey=True)
    for row, graph in zip(axes, dataset["depth_graph"].values, strict=True):
        for axis, teacher in zip(row, dataset["depth_teacher"].values, strict=True):
            for color, depth in zip(colors, rounds, strict=True):
                values = profile.sel(depth_graph=graph, depth_teacher=teacher, depth_rounds=depth)
                axis.loglog(direction, values.values, color=color, label=f"L = {depth}")
            if teacher == "function":
                power = dataset["depth_power"].sel(
                    depth_graph=graph, depth_operator="normalized_adjacency"
                )
                axis.loglog(direction, power.values, "k--", linewidth=1.0, label="signal power")
            axis.set_title(f"{graph}, {TEACHERS[teacher]}")
    kept = profile.sel(depth_teacher="function")
    axes[0, 0].set_ylim(float(kept.min()) / 100, 3 * float(kept.max()))
    for axis in axes[-1]:
        axis.set_xlabel("direction i")
    for axis in axes[:, 0]:
        axis.set_ylabel("excess risk $e_i$ (unit of $y^2$)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center")
    return figure


def _depth(dataset: xr.Dataset) -> Any:
    import matplotlib.pyplot as plt

    rounds = dataset["depth_rounds"].values
    simulated = dataset["depth_simulated_risk"]
    figure, axes = plt.subplots(2, 3, figsize=(9.5, 5.8), sharex=True)
    for row, operator in zip(axes, dataset["depth_operator"].values, strict=True):
        for color, graph in zip(COLORS, dataset["depth_graph"].values, strict=False):
            case = {"depth_graph": graph, "depth_operator": operator}
            rank, risk = (
                dataset["depth_effective_rank"].sel(case),
                dataset["depth_sgd_risk"].sel(case),
            )
            row[0].loglog(rounds, rank.values, color=color, label=graph)
            for axis, teacher in zip(row[1:], TEACHERS, strict=True):
                axis.semilogx(
                    rounds,
                    risk.sel(depth_teacher=teacher).values,
                    color=color,
                    label=f"{graph}, SGD",
                )
            tuned = dataset["depth_ridge_risk"].sel(case)
            for marker, count in zip("^s", dataset["depth_ridge_samples"].values, strict=True):
                row[1].semilogx(
                    rounds,
                    tuned.sel(depth_ridge_samples=count).values,
                    ":",
                    marker=marker,
                    markersize=3.5,
                    color=color,
                    label=f"{graph}, tuned ridge, N = {count}",
                )
            if (graph, operator) == (simulated.attrs["graph"], simulated.attrs["operator"]):
                mean, error = mean_and_error(simulated, "depth_seed")
                row[1].errorbar(
                    dataset["depth_simulated_rounds"].values,
                    mean.values,
                    error.values,
                    fmt="o",
                    color="black",
                    markersize=4,
                    label=f"{graph}, SGD simulated",
                    zorder=5,
                )
        row[1].axhline(
            float(dataset["depth_least_squares_risk"]),
            color="black",
            linewidth=0.8,
            label=f"least squares, N = {int(dataset['depth_ridge_samples'][-1])}",
        )
        row[0].set_title(f"{OPERATORS[operator]}: effective rank")
        row[0].set_ylabel("$(\\Sigma\\mu)^2/\\Sigma\\mu^2$")
        for axis, teacher in zip(row[1:], TEACHERS, strict=True):
            axis.set_title(f"{OPERATORS[operator]}: {TEACHERS[teacher]}")
            axis.set_ylabel("excess risk R (unit of $y^2$)")
            axis.set_ylim(bottom=0.0)
    for axis in axes[-1]:
        axis.set_xlabel("depth L")
        axis.set_xticks(rounds, [str(depth) for depth in rounds])
        axis.minorticks_off()
    handles, labels = axes[-1, 1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure
