"""Figure F7: gradient methods and ridge that learn one ReLU neuron, mean field and simulation."""

import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from boundlab.figures.style import COLORS, mean_and_error, style

ALGORITHMS = (("GLM-tron", "relu_glmtron"), (r"SGD, $\theta_0\neq 0$", "relu_sgd"))


def draw(dataset: xr.Dataset) -> dict[str, tuple[Figure, str]]:
    """F7: risk over the step size (one panel a graph), and of ridge over λ."""
    with style():
        figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.7), layout="constrained")
        for panel, name in zip(axes, dataset.relu_graph.values, strict=False):
            _gradient(panel, dataset.sel(relu_graph=name))
            panel.set_title(f"{name} graph")
            panel.set(xlabel=r"step size $\gamma/\gamma_{\max}$", ylim=(0, None))
        axes[1].sharey(axes[0])
        axes[0].set_ylabel(r"excess risk $R=2\Delta$")
        _ridge(axes[2], dataset)
        handles = axes[0].get_legend_handles_labels()[0]
        handles += [
            Line2D([], [], ls="--", color="gray", lw=1, label="wrong theory, rejected"),
            Line2D([], [], ls="", marker="o", ms=4, color="gray", label="simulated"),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=5)
    caption = (
        "Learning one ReLU neuron, R = E(ReLU(mᵀθ) − ReLU(mᵀθ*))², signal power 1. Left and middle: "
        f"tail average of GLM-tron and of SGD, {dataset.attrs['relu_dim']} nodes, "
        f"N = {dataset.attrs['relu_num_samples']}, over the step size as a fraction of linear SGD's "
        f"stability limit. Right: ridge on 2y, "
        f"N = {dataset.attrs['relu_ridge_num_samples']}, over λ. Lines: mean field and deterministic "
        "equivalent (approximate); dashed: the wrong theories that the data reject (linear SGD, "
        "GLM-tron taken for SGD, ridge without the noise that the teacher itself adds). Dots: means "
        "of simulated runs, ±2 standard errors. The dots lie on the full lines; SGD from 0 stays "
        "at the dotted b²/2."
    )
    return {"F7-relu": (figure, caption)}


def _gradient(axes: Axes, at: xr.Dataset) -> None:
    wrong = {"relu_glmtron": "relu_glmtron_linear", "relu_sgd": "relu_sgd_ungated"}
    for color, (label, name) in zip(COLORS, ALGORITHMS, strict=False):
        axes.plot(at.relu_fraction, at[f"{name}_theory"], color=color, label=label)
        axes.plot(at.relu_fraction, at[wrong[name]], "--", color=color, lw=1, alpha=0.7)
        _dots(axes, at.relu_simulated_fraction, at[f"{name}_risk"], color)
    axes.axhline(at.relu_dead_theory, ls=":", color=COLORS[2], label=r"SGD, $\theta_0=0$")
    _dots(axes, at.relu_simulated_fraction, at.relu_dead_risk, COLORS[2])


def _ridge(axes: Axes, dataset: xr.Dataset) -> None:
    for color, name in zip(COLORS[3:], dataset.relu_graph.values, strict=False):
        at = dataset.sel(relu_graph=name)
        axes.plot(at.relu_ridge, at.relu_ridge_theory, color=color, label=f"{name} graph")
        axes.plot(at.relu_ridge, at.relu_ridge_quiet, "--", color=color, lw=1, alpha=0.7)
        _dots(axes, at.relu_simulated_ridge, at.relu_ridge_risk, color)
    axes.set(xscale="log", xlabel=r"ridge $\lambda$", ylim=(0, None))
    axes.set_title("ridge on $2y$")
    axes.legend(loc="lower right")


def _dots(axes: Axes, x: xr.DataArray, samples: xr.DataArray, color: str) -> None:
    mean, error = mean_and_error(samples, "relu_seed")
    axes.errorbar(x, mean, error, fmt="o", ms=4, color=color, zorder=5)
