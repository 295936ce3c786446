"""Figure F10, ridge with nodes as samples: theory of dependent and of independent rows, simulation."""

import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.figure import Figure

from boundlab.figures.style import COLORS, mean_and_error, style


def draw(dataset: xr.Dataset) -> dict[str, tuple[Figure, str]]:
    """Risk over λ, one panel a graph."""
    with style():
        figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True, layout="constrained")
        for panel, name in zip(axes, dataset.correlated_graph.values, strict=True):
            at = dataset.sel(correlated_graph=name)
            panel.plot(at.correlated_ridge, at.correlated_theory, label="rows as they are")
            panel.plot(
                at.correlated_ridge,
                at.correlated_naive,
                "--",
                color=COLORS[1],
                label="rows taken for independent",
            )
            panel.plot(
                at.correlated_ridge,
                at.correlated_no_graph,
                ":",
                color=COLORS[2],
                label="no graph, $G=I$",
            )
            mean, error = mean_and_error(at.correlated_risk, "design")
            panel.errorbar(
                at.correlated_simulated_ridge,
                mean,
                error,
                fmt="o",
                ms=4,
                color="black",
                zorder=5,
                label="simulated",
            )
            panel.set(xscale="log", xlabel=r"ridge $\lambda$", ylim=(0, None))
            panel.set_title(f"{name} graph")
        axes[0].set_ylabel(r"excess risk $R=\|\hat\theta-\theta^*\|_H^2$")
        axes[-1].legend(loc="upper right", ncols=1)
    nodes, features = (dataset.attrs[f"correlated_{name}"] for name in ("nodes", "features"))
    caption = (
        f"Ridge regression with the {nodes} nodes of a graph as samples of {features} features, each "
        "averaged over a node and its neighbours; risk R without ½, signal power 1, over λ "
        "(un-normalised). Full line: deterministic equivalent for the rows' covariance GGᵀ; dashed: "
        "the formula for independent rows of the same total power; dotted: no aggregation (exact in "
        "the same limit). Dots: drawn designs, label noise averaged exactly, ±2 standard errors. "
        "The dots follow the full line: neighbours share what they average, so that n nodes are "
        "worth fewer than n samples."
    )
    return {"F10-dependent-rows": (figure, caption)}
