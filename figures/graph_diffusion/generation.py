"""Figure of generated graphs beside training graphs, with their discrepancies from test graphs."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style

MARKERS = ("o", "s", "^")
KERNELS = ("degree", "clustering", "orbits", "spectrum")
TITLES = {
    "communities": "pairs of communities",
    "neighbourhoods": "neighbourhoods of Cora and Citeseer",
}


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`E10-generation`."""
    import matplotlib.pyplot as plt

    sets = dataset["generation_set"].values
    with style():
        figure: Any = plt.figure(figsize=(9.6, 2.6 * len(sets) + 2.7))
        graphs, charts = figure.subfigures(2, 1, height_ratios=[2.6 * len(sets), 2.9])
        blocks = graphs.subfigures(len(sets), 1, squeeze=False)[:, 0]
        for block, name in zip(blocks, sets, strict=True):
            block.suptitle(TITLES[str(name)], fontsize="medium")
            _graphs(block, dataset.sel(generation_set=name))
        panels = charts.subplots(1, len(sets), squeeze=False)[0]
        for axis, name in zip(panels, sets, strict=True):
            _discrepancies(axis, dataset.sel(generation_set=name))
            axis.set_title(TITLES[str(name)])
        panels[0].set_ylabel("squared discrepancy, mean of $V$")
        panels[-1].legend(loc="upper right")
    caption = (
        "Graphs from networks trained within the preset, beside graphs that they were trained on "
        "(the first ones of each, not chosen). Bottom: squared discrepancy from 64 test graphs of "
        "samples of generated graphs (dots), of other graphs of the same law (squares: the floor that "
        "a perfect model has), and of random edges with the sizes and densities of such graphs "
        "(triangles); means over samples, ±2 standard errors. On communities a short training finds "
        "triangles and small patterns but stays far above the floor; in neighbourhoods it leaves too "
        "few edges. The spectral kernel tells nothing apart."
    )
    return {"E10-generation": (figure, caption)}


def _graphs(block: Any, part: xr.Dataset) -> None:
    """A row of training graphs and one of generated graphs."""
    rows, columns = part.sizes["generation_row"], part.sizes["generation_graph"]
    axes = block.subplots(rows, columns, squeeze=False)
    for row, name in enumerate(part["generation_row"].values):
        for graph, axis in enumerate(axes[row]):
            _graph(axis, part.isel(generation_row=row, generation_graph=graph))
        axes[row, 0].set_title(str(name), loc="left", fontsize="small")


def _graph(axis: Any, graph: xr.Dataset) -> None:
    places = graph["generation_position"].transpose("generation_node", ...).values
    edges = graph["generation_edges"].transpose("generation_node", ...).values
    for i, j in np.argwhere(np.triu(edges)):
        axis.plot(*places[[i, j]].T, color="#777777", linewidth=0.7, zorder=1)
    axis.plot(*places.T, "o", color=COLORS[0], markersize=2.8, zorder=2)
    axis.set_xlim(-1.1, 1.1)
    axis.set_ylim(-1.1, 1.1)
    axis.set_aspect("equal")
    axis.axis("off")


def _discrepancies(axis: Any, part: xr.Dataset) -> None:
    for row, (color, marker, source) in enumerate(
        zip(COLORS, MARKERS, part["generation_source"].values, strict=False)
    ):
        chosen = part["generation_mmd"].sel(
            generation_source=source, generation_kernel=list(KERNELS)
        )
        mean, error = mean_and_error(chosen, "generation_seed")
        place = np.arange(len(KERNELS)) + 0.18 * (row - 1)
        axis.errorbar(place, mean, error, fmt=marker, color=color, markersize=4, label=str(source))
    axis.set_yscale("log")
    axis.set_ylim(top=5.0)
    axis.set_xticks(range(len(KERNELS)), KERNELS)
    axis.set_xlabel("statistic")
    axis.grid(visible=False, axis="x")
