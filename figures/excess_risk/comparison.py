"""Figure F9, SGD against tuned ridge: a spiked spectrum with two teachers, and where either wins."""

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from boundlab.figures.style import COLORS, mean_and_error, style

TITLES = {"head": "teacher on the spike", "even": "teacher without direction"}


def draw(dataset: xr.Dataset) -> dict[str, tuple[Figure, str]]:
    """Risk along N (above) and the ratio of the two risks over T and σ² (below), a column a teacher."""
    with style():
        figure, axes = plt.subplots(2, 2, figsize=(8, 6.2), layout="constrained")
        for column, name in enumerate(dataset.comparison_teacher.values):
            at = dataset.sel(comparison_teacher=name)
            _curves(axes[0, column], at)
            axes[0, column].set_title(TITLES[str(name)])
            mesh = _phase(axes[1, column], at)
        # The risk on the spike falls over four decades; without direction it barely falls.
        axes[0, 0].set(yscale="log", ylabel="excess risk $R$")
        axes[0, 1].set_ylim(0, None)
        axes[0, 0].legend(loc="upper right")
        axes[1, 0].set_ylabel(r"noise variance $\sigma^2$")
        bar = figure.colorbar(
            mesh, ax=axes[1], label="risk of best SGD / best ridge", extend="both"
        )
        ticks = [0.5, 0.7, 1.0, 1.4, 2.0]
        bar.set_ticks(np.log2(ticks).tolist(), labels=[f"{value:g}" for value in ticks])
    caption = (
        "SGD at its best step size against ridge at its best λ ≥ 0, on one eigenvalue 1 above a flat "
        "tail of total mass T; risks R without ½, signal power 1. Above: risk over N at T = 1, "
        f"σ² = 0.001, {dataset.attrs['comparison_spiked_dim']} directions. Lines: exact risk of SGD, "
        "deterministic equivalent of ridge. Dots: simulated, ±2 standard errors. At the best step size "
        "single runs of SGD are heavy-tailed: few of them carry much of the mean, so that its bars are "
        "too short. Below: risk of the best SGD over that of the best ridge, theory, "
        f"{dataset.attrs['comparison_phase_dim']} directions, "
        f"N = {dataset.attrs['comparison_phase_samples']}; blue: SGD wins, red: ridge wins. With the "
        "teacher on the spike SGD wins where the tail is heavy: ridge can't undo the tail's own "
        "shrinkage. With θ*_i² equal in all directions tuned ridge is the posterior mean, and SGD "
        "never wins (the Bayes floor)."
    )
    return {"F9-comparison": (figure, caption)}


def _curves(axes: Axes, at: xr.Dataset) -> None:
    for color, label, name in ((COLORS[0], "best SGD", "sgd"), (COLORS[1], "best ridge", "ridge")):
        axes.plot(
            at.comparison_samples, at[f"comparison_spiked_{name}_theory"], color=color, label=label
        )
        mean, error = mean_and_error(at[f"comparison_spiked_{name}"], "comparison_seed")
        axes.errorbar(
            at.comparison_simulated_samples, mean, error, fmt="o", ms=4, color=color, zorder=5
        )
    axes.set(xscale="log", xlabel="samples $N$")
    axes.set_xticks(at.comparison_samples.values, [str(n) for n in at.comparison_samples.values])
    axes.xaxis.minorticks_off()


def _phase(axes: Axes, at: xr.Dataset) -> QuadMesh:
    """log2 of SGD over ridge, one scale for all panels, white where the two are equal."""
    ratio = -np.log2(at.comparison_phase.transpose("comparison_noise", "comparison_tail"))
    tail, noise = at.comparison_tail.values, at.comparison_noise.values
    mesh = axes.pcolormesh(
        tail, noise, ratio, cmap="RdBu_r", vmin=-1, vmax=1, shading="nearest", rasterized=True
    )
    if float(ratio.min()) < 0 < float(ratio.max()):
        axes.contour(tail, noise, ratio, levels=[0.0], colors="black")
    axes.set(xscale="log", yscale="log", xlabel="mass of the tail $T$")
    axes.set(xlim=(tail[0], tail[-1]), ylim=(noise[0], noise[-1]))
    axes.grid(False)
    return mesh
