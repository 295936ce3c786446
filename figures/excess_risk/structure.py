"""Figures of graph structure: spectra (F1), who wins where (F3), samples that SGD needs (F4)."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.excess_risk.names import OPERATORS
from boundlab.figures.style import COLORS, style


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """Figure and caption by name."""
    with style():
        return {
            "F1-spectra": (_spectra(dataset), _SPECTRA),
            "F3-phase": (_phase(dataset), _phase_caption(dataset)),
            "F4-inflation": (_inflation(dataset), _INFLATION),
        }


_SPECTRA = (
    "Eigenvalues of M = G², scaled to sum 1, of a regular, a power-law and a star graph with as many "
    "nodes, for each operator (exact; in brackets the effective rank (Σμ)²/Σμ²). Degrees show in the "
    "spectrum of D − A + I: the power-law graph has a few large eigenvalues, the regular one none. "
    "After normalisation, (I + S)/2, regular and power-law graph look alike. PageRank keeps one "
    "large eigenvalue whatever the graph."
)
_INFLATION = (
    "Samples that the best SGD needs, relative to the best ridge at equal risk (dots: best SGD exact, "
    "ridge its equivalent), against the sufficient factor (1 + snr) cond max(1, log a) of Zou et al. "
    "with constant 1 (lines; reconstructed). The factor knows a teacher by its power alone, so that "
    "the line of the head teacher (dashed) lies on that of the isotropic one and hides it in part. "
    "It is never exceeded, and is loose by one to several orders of magnitude: the true factor stays "
    "near 1 to 2."
)


def _phase_caption(dataset: xr.Dataset) -> str:
    lowest = float((dataset["structure_sgd_risk"] / dataset["structure_ridge_risk"]).min())
    return (
        "Risk of the best SGD over that of the best ridge (exact SGD, deterministic "
        f"equivalent; N = {dataset['structure_sgd_risk'].attrs['samples']}) against the alignment α "
        "of the teacher, θ*² ∝ μ^α, and the noise σ²; signal power 1. Blue: SGD wins, at best with "
        f"a ratio of {lowest:.2f}; red: ridge wins; black line: equal. At α = 0 (an isotropic teacher) "
        "SGD can't win, since ridge is then Bayes-optimal; it wins where the teacher follows the head of "
        "a decaying spectrum and noise is large. Regular and power-law graph differ for D − A + I "
        "and look alike for (I + S)/2."
    )


def _spectra(dataset: xr.Dataset) -> Any:
    import matplotlib.pyplot as plt

    spectrum, rank = dataset["structure_spectrum"], dataset["structure_effective_rank"]
    figure, axes = plt.subplots(2, 2, figsize=(8.0, 6.0), sharex=True)
    for axis, operator in zip(axes.flat, dataset["structure_operator"].values, strict=True):
        for graph in dataset["structure_shown"].values:
            case = {"structure_operator": operator, "structure_shown": graph}
            axis.loglog(
                dataset["structure_direction"].values,
                spectrum.sel(case).values,
                label=f"{graph} ({float(rank.sel(case)):.3g})",
            )
        axis.set_title(OPERATORS[operator])
        place = "upper right" if operator == "laplacian" else "lower left"
        axis.legend(title="graph (effective rank)", loc=place, title_fontsize=8)
    for axis in axes[-1]:
        axis.set_xlabel("direction i")
    for axis in axes[:, 0]:
        axis.set_ylabel("eigenvalue $\\mu_i$ (sum 1)")
    return figure


def _phase(dataset: xr.Dataset) -> Any:
    import matplotlib.pyplot as plt
    from matplotlib.colors import TwoSlopeNorm

    risks = dataset["structure_sgd_risk"] / dataset["structure_ridge_risk"]
    ratio = risks.copy(data=np.log2(risks.values))
    alignment, noise = dataset["structure_alignment"].values, dataset["structure_noise"].values
    # SGD wins by little and loses by much: each side gets half of the colours.
    lowest, highest = min(float(ratio.min()), -0.1), max(float(ratio.max()), 0.1)
    norm = TwoSlopeNorm(0.0, lowest, highest)
    operators, graphs = dataset["structure_operator"].values, dataset["structure_pair"].values
    figure, axes = plt.subplots(
        len(graphs), len(operators), figsize=(9.0, 4.6), sharex=True, sharey=True
    )
    for row, graph in zip(axes, graphs, strict=True):
        for axis, operator in zip(row, operators, strict=True):
            shown = ratio.sel(structure_pair=graph, structure_operator=operator)
            values = shown.transpose("structure_noise", "structure_alignment").values
            mesh = axis.pcolormesh(alignment, noise, values, cmap="RdBu_r", norm=norm)
            axis.contour(alignment, noise, values, levels=[0.0], colors="black", linewidths=1.0)
            axis.set_yscale("log")
            axis.set_xticks([-1, 0, 1, 2])
            axis.set_title(f"{graph}, {OPERATORS[operator]}")
            axis.grid(False)
    for axis in axes[-1]:
        axis.set_xlabel("teacher alignment α")
    for axis in axes[:, 0]:
        axis.set_ylabel("noise $\\sigma^2$")
    bar = figure.colorbar(mesh, ax=axes, label="risk of best SGD / best ridge")
    ticks = [lowest, *range(0, int(highest) + 1, max(1, int(highest) // 4))]
    bar.set_ticks(
        ticks, labels=[f"{2.0**tick:.2g}" if tick < 0 else f"{2**tick}" for tick in ticks]
    )
    return figure


def _inflation(dataset: xr.Dataset) -> Any:
    import matplotlib.pyplot as plt

    counts = dataset["structure_samples"].values
    figure, axis = plt.subplots(figsize=(8.0, 4.6))
    cases = dataset["structure_case"].values
    for color, marker, case in zip(COLORS, "osv^d*P", cases, strict=False):
        graph, operator, teacher = case.split(", ")
        label = f"{graph}, {OPERATORS[operator]}, {teacher} teacher"
        bound = dataset["structure_inflation_bound"].sel(structure_case=case).values
        exact = dataset["structure_inflation"].sel(structure_case=case).values
        # The bound knows the teacher by its power alone: those of two teachers coincide.
        line = "--" if teacher == "head" else "-"
        axis.loglog(counts, bound, line, color=color)
        axis.loglog(counts, exact, marker, color=color, markerfacecolor="none", markersize=7)
        axis.plot([], [], line, marker=marker, markerfacecolor="none", color=color, label=label)
    axis.axhline(1.0, color="black", linewidth=1.0)
    axis.set_xticks(counts, [str(count) for count in counts])
    axis.minorticks_off()
    axis.set_xlabel("samples of ridge $N_{ridge}$")
    axis.set_ylabel("$N_{sgd}/N_{ridge}$ at equal risk")
    figure.legend(
        title="lines: Zou et al.'s sufficient factor; dots: SGD exact, ridge its equivalent",
        loc="outside lower center",
        ncols=2,
    )
    return figure
