"""Figures of the implicit ridge: test error (E2) and test accuracy (E2b) against fan-out."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """Figure and caption by name."""
    with style():
        return {
            "E2-u-curves": (_errors(dataset), _errors_caption(dataset)),
            "E2b-accuracy": (_accuracies(dataset), _ACCURACIES),
        }


def _errors_caption(dataset: xr.Dataset) -> str:
    splits = dataset.sizes["ridge_seed"]
    small = int(dataset["ridge_num_train"][0])
    return (
        "Test error with all neighbours of the weights that training with β sampled neighbours aims at "
        f"(lines: closed form, mean over {splits} or {dataset.sizes['ridge_graph_seed']} random training "
        "sets; ring: its minimum). On few training nodes the curve is a U: sampling acts as a ridge, and "
        "a fan-out well below the degree beats all neighbours; the minimum moves to the degree as "
        "training nodes are added. Dots (±2 s.e.): least squares on drawn neighbourhoods; triangles: SGD "
        f"on {small} nodes, fresh batches of all of them. Bottom right: the same SGD against batch size "
        "b, with the closed form (lines): b moves the noise about the aim, not the aim."
    )


_ACCURACIES = (
    "Test accuracy with all neighbours against the fan-out β of training (closed form, mean; band: "
    "± 2 s.e. over random training sets), for different numbers of training nodes. It first rises and "
    "then falls "
    "with β, as published; the fewer the training nodes, the earlier. On the sparse citation graphs with "
    "140 papers it falls from β = 1 on: there all neighbours are the worst choice."
)


def _errors(dataset: xr.Dataset) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(10.0, 6.2))
    flat = axes.ravel()
    _fixed_mix(flat[0], dataset)
    for axis, graph in zip(flat[1:5], dataset["ridge_graph"].values, strict=True):
        part = dataset.sel(ridge_graph=graph)
        for color, size in zip((COLORS[0], COLORS[3]), part["ridge_size"].values, strict=True):
            mean = part["ridge_graph_error"].sel(ridge_size=size).mean("ridge_graph_seed")
            count = int(part["ridge_graph_num_train"].sel(ridge_size=size))
            _curve(axis, mean.values, color, f"{count} training nodes")
        _ticks(axis, dataset["ridge_graph_fan_out"].values)
        axis.set_title(str(graph))
        axis.legend()
    _batch_sizes(flat[5], dataset)
    for axis in flat[:5]:
        axis.set_yscale("log")
        _plain_ticks(axis)
    for row in axes:
        row[0].set_ylabel("test error, mean square")
    _marks(figure)
    return figure


def _marks(figure: Any) -> None:
    from matplotlib.lines import Line2D

    dot: Any = {"linestyle": "", "color": "#555555"}
    marks = {
        "closed form": Line2D([], [], color="#555555"),
        "its minimum": Line2D([], [], marker="o", markersize=9, markerfacecolor="none", **dot),
        "least squares on drawn neighbourhoods": Line2D([], [], marker="o", markersize=4, **dot),
        "SGD, fresh batches": Line2D([], [], marker="^", markersize=5, **dot),
    }
    figure.legend(list(marks.values()), list(marks), loc="outside lower center", ncols=4)


def _fixed_mix(axis: Any, dataset: xr.Dataset) -> None:
    grid = dataset["ridge_fan_out"].values
    for color, size in zip(COLORS, dataset["ridge_num_train"].values, strict=False):
        error = dataset["ridge_error"].sel(ridge_num_train=size).mean("ridge_seed")
        _curve(axis, error.values, color, f"{size} training nodes")
        if size in dataset["ridge_simulated_num_train"].values:
            simulated = dataset["ridge_simulated_error"].sel(ridge_simulated_num_train=size)
            _dots(axis, grid, simulated, "ridge_simulated_fan_out", color, "o")
    trained = dataset["ridge_trained_error"].isel(ridge_batch_size=-1)
    _dots(axis, grid, trained, "ridge_trained_fan_out", "black", "^")
    _ticks(axis, grid)
    axis.set_title("fixed mix of classes")
    axis.legend()


def _batch_sizes(axis: Any, dataset: xr.Dataset) -> None:
    trained = dataset["ridge_trained_error"]
    sizes = dataset["ridge_batch_size"].values
    few = dataset["ridge_error"].isel(ridge_num_train=0)
    for color, fan_out in zip(COLORS, dataset["ridge_trained_fan_out"].values, strict=False):
        mean, error = mean_and_error(trained.sel(ridge_trained_fan_out=fan_out), "ridge_seed")
        axis.errorbar(sizes, mean.values, error.values, fmt="^", color=color, markersize=5)
        aim = float(few.sel(ridge_fan_out=fan_out).mean("ridge_seed"))
        axis.axhline(aim, color=color, label=f"β = {fan_out}")
    axis.set_xscale("log")
    axis.set_xticks(sizes, [str(size) for size in sizes])
    axis.minorticks_off()
    axis.set_ylim(bottom=0.0)
    axis.set_xlabel("batch size b")
    axis.set_title(f"fixed mix, {int(dataset['ridge_num_train'][0])} training nodes, SGD")
    axis.legend()


def _curve(axis: Any, values: np.ndarray, color: str, label: str) -> None:
    """A line over the places of the fan-outs, with a ring at its minimum."""
    axis.plot(values, color=color, label=label)
    least = int(np.argmin(values))
    ring = {"markerfacecolor": "none", "markeredgewidth": 1.4}
    axis.plot([least], values[[least]], "o", color=color, markersize=9, **ring)


def _dots(axis: Any, grid: Any, samples: xr.DataArray, dim: str, color: str, marker: str) -> None:
    mean, error = mean_and_error(samples, "ridge_seed")
    places = np.searchsorted(grid, samples[dim].values)
    axis.errorbar(
        places, mean.values, error.values, fmt=marker, color=color, markersize=4, zorder=4
    )


def _accuracies(dataset: xr.Dataset) -> Any:
    import matplotlib.pyplot as plt

    citations = dataset["ridge_citation"].values
    shown = ["regular", "digits"]
    columns = 1 + len(shown)
    rows = 1 + -(-len(citations) // columns)
    size = (3.3 * columns, 3.0 * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False)
    flat = list(axes.ravel())
    mix = dataset["ridge_accuracy"]
    _accuracy(flat[0], mix, "ridge_num_train", "ridge_fan_out", "ridge_seed", mix.ridge_num_train)
    flat[0].set_title("fixed mix of classes")
    for axis, graph in zip(flat[1:], shown, strict=False):
        part = dataset.sel(ridge_graph=graph)
        counts = part["ridge_graph_num_train"]
        found = part["ridge_graph_accuracy"]
        _accuracy(axis, found, "ridge_size", "ridge_graph_fan_out", "ridge_graph_seed", counts)
        axis.set_title(graph)
    names = ("ridge_citation_num_train", "ridge_citation_fan_out", "ridge_citation_seed")
    for axis, name in zip(flat[columns:], citations, strict=False):
        found = dataset["ridge_citation_accuracy"].sel(ridge_citation=name)
        _accuracy(axis, found, *names, found["ridge_citation_num_train"])
        axis.set_title({"cora": "Cora", "citeseer": "Citeseer", "pubmed": "PubMed"}[name])
    for axis in flat[columns + len(citations) :]:
        axis.remove()
    for row in axes:
        row[0].set_ylabel("test accuracy")
    band = plt.Rectangle((0, 0), 1, 1, color="#555555", alpha=0.25)
    words = "mean ± 2 standard errors over random training sets"
    figure.legend([band], [words], loc="outside lower center")
    return figure


def _accuracy(
    axis: Any, accuracy: xr.DataArray, size_dim: str, dim: str, seed: str, counts: xr.DataArray
) -> None:
    mean, error = mean_and_error(accuracy, seed)
    for place, (color, count) in enumerate(zip(COLORS, counts.values, strict=False)):
        one = {size_dim: place}
        values = mean.isel(one).transpose(dim).values
        width = error.isel(one).values
        axis.plot(values, "o-", color=color, markersize=3.5, label=f"{count} training nodes")
        axis.fill_between(
            range(len(values)), values - width, values + width, color=color, alpha=0.15
        )
    _ticks(axis, accuracy[dim].values)
    axis.legend()


def _ticks(axis: Any, grid: Any) -> None:
    words = ["all" if np.isinf(value) else f"{value:g}" for value in grid]
    axis.set_xticks(range(len(grid)), words)
    axis.set_xlabel("fan-out β")


def _plain_ticks(axis: Any) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0)))
    axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())
