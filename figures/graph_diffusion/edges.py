"""Figure of edges with exact scores: the published schedule's bias, and what discretisation adds."""

from typing import Any

import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`E6-edges`."""
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(2, 2, figsize=(9.6, 7.0))
        _bias(axes[0, 0], dataset)
        _start(axes[0, 1], dataset)
        _errors(axes[1, 0], dataset)
        _spurious(axes[1, 1], dataset)
    first = dataset.isel(edges_beta=0, edges_p=-1)
    coarse = dataset.isel(edges_case=-1).sel(edges_steps=40)
    caption = (
        "Edges sampled with their exact score. Top left: share of edges in samples over the true P(edge) "
        "against the end of the noise schedule (from .1, over unit time); lines are the reverse SDE "
        "without discretisation, dots Euler-Maruyama samples with ±2 standard errors, crosses the same "
        "started from noised data instead of N(0, 1). The published schedule ends at 1: of an edge with "
        f"p = {float(first['edges_p']):g} it makes {float(first['edges_short_theory']):.4f}. Top right: "
        "KL of the noised edge to N(0, 1), which that start costs, under log(1 + χ²) (dashed). Bottom "
        "left: exact KL of the exponential integrator's output (dots) under its bound (dashed), against "
        "the number of steps. Bottom right: the share of edges of that exact law over p (lines and small "
        "marks), and in samples (dots, ±2 standard errors): steps alone add edges to sparse graphs, "
        f"{float(coarse['edges_probability']):.3f} for p = {float(coarse['edges_truth']):g} at 40 steps."
    )
    return {"E6-edges": (figure, caption)}


def _bias(axis: Any, dataset: xr.Dataset) -> None:
    for color, p in zip(COLORS, dataset["edges_p"].values, strict=False):
        part = dataset.sel(edges_p=p)
        line = part["edges_short_theory_line"] / p
        axis.plot(part["edges_beta_fine"], line, color=color, label=f"p = {p:g}")
        mean, error = mean_and_error(part["edges_short"] / p, "edges_seed")
        axis.errorbar(
            part["edges_beta"], mean, error, fmt="o", markersize=4, color=color, capsize=2
        )
        mean, error = mean_and_error(part["edges_short_noised"] / p, "edges_seed")
        axis.errorbar(
            part["edges_beta"][:1], [mean], [error], fmt="x", markersize=6, color=color, capsize=2
        )
    axis.axhline(1.0, color="black", linewidth=0.8)
    axis.axvline(float(dataset["edges_beta"][0]), color="black", linestyle=":", linewidth=1)
    axis.text(1.06, 0.53, "published", fontsize=8)
    axis.set_xscale("log")
    axis.set_ylim(0.5, 3.0)
    _ticks(axis)
    axis.set_title("bias of short schedules")
    axis.set_xlabel(r"end of the schedule $\beta_{\max}$")
    axis.set_ylabel(r"share of edges $\hat{p}/p$")
    axis.legend()


def _start(axis: Any, dataset: xr.Dataset) -> None:
    for color, p in zip(COLORS, dataset["edges_p"].values, strict=False):
        part = dataset.sel(edges_p=p)
        axis.plot(
            part["edges_beta_fine"], part["edges_start_kl_line"], color=color, label=f"p = {p:g}"
        )
        axis.plot(part["edges_beta_fine"], part["edges_start_bound_line"], "--", color=color)
    axis.axvline(float(dataset["edges_beta"][0]), color="black", linestyle=":", linewidth=1)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_ylim(bottom=1e-8)
    _ticks(axis)
    axis.set_title(r"cost of the start, and $\log(1+\chi^2)$ (dashed)")
    axis.set_xlabel(r"end of the schedule $\beta_{\max}$")
    axis.set_ylabel("KL to the start (nats an edge)")
    axis.legend()


def _errors(axis: Any, dataset: xr.Dataset) -> None:
    steps = dataset["edges_steps"].values
    for color, case in zip(COLORS, dataset["edges_case"].values, strict=False):
        part = dataset.sel(edges_case=case)
        axis.plot(steps, part["edges_bound"], "--", color=color, linewidth=1.2)
        axis.plot(steps, part["edges_kl"], "o-", markersize=4, color=color, label=case)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(steps, [str(value) for value in steps])
    axis.minorticks_off()
    axis.set_title("exact KL (solid) and bound (dashed)")
    axis.set_xlabel("steps $N$")
    axis.set_ylabel("KL (nats an edge)")
    axis.legend()


def _spurious(axis: Any, dataset: xr.Dataset) -> None:
    steps = dataset["edges_steps"].values
    for color, case in zip(COLORS, dataset["edges_case"].values, strict=False):
        part = dataset.sel(edges_case=case)
        p = float(part["edges_truth"])
        axis.plot(steps, part["edges_probability"] / p, ".-", color=color, label=case)
        mean, error = mean_and_error(part["edges_share"] / p, "edges_seed")
        axis.errorbar(
            part["edges_grid"], mean, error, fmt="o", markersize=5, color=color, capsize=3
        )
    axis.axhline(1.0, color="black", linewidth=0.8)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(steps, [str(value) for value in steps])
    ratios = (1, 2, 4, 8)
    axis.set_yticks(ratios, [str(value) for value in ratios])
    axis.minorticks_off()
    axis.set_title("edges that discretisation adds")
    axis.set_xlabel("steps $N$")
    axis.set_ylabel(r"share of edges $\hat{p}/p$")
    axis.legend()


def _ticks(axis: Any) -> None:
    ends = (0.2, 1, 5, 20)
    axis.set_xticks(ends, [f"{value:g}" for value in ends])
    axis.minorticks_off()
