"""Figures of cost: touched nodes and the worth of a target (E6), iterations beside seconds (E7)."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style

AXES = {
    "cost_iterations": "iterations T",
    "cost_to_samples": "samples T·b",
    "cost_to_edges": "sampled edges",
    "cost_to_operations": "operations",
}
MARKERS = "os^Dv"


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """Figure and caption by name."""
    with style():
        return {
            "E6-cost": (_cost(dataset), _COST),
            "E7-time": (_time(dataset), _time_caption(dataset)),
        }


_COST = (
    "Top: distinct nodes that a batch of b nodes touches after one hop, as a share of all n, a colour a "
    "fan-out β: exact (lines) and sampled (dots ±2 s.e.). Dotted: as if all nodes had the mean degree, "
    "which is wrong where degrees vary. Bottom: mean cost of a target accuracy on the validation nodes "
    "(one-layer GraphSAGE, softmax cross-entropy, SGD with one step size in all cells) in four units; "
    "the darker the cheaper, the cheapest cell framed, ≥ where some runs never got there. The best cell "
    "moves with the unit: large batches need few iterations and many samples."
)


def _time_caption(dataset: xr.Dataset) -> str:
    devices = ", ".join(map(str, dataset["cost_device"].values))
    return (
        "Cost of the target accuracy against the batch size b, a colour a fan-out β, dots ±2 s.e. over "
        "seeds (hollow: some runs never got there, a lower bound). Left: iterations, which fall with b. "
        "Middle: iterations times the measured seconds of a step, which large batches make long. Right: "
        f"training nodes a second. Seconds were measured on: {devices} (a marker a device); they are "
        "data of that machine, not results of this run."
    )


def _cost(dataset: xr.Dataset) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 4, figsize=(10.0, 5.4))
    fan_outs = dataset["cost_fan_out"].values
    sizes = dataset["cost_touched_batch_size"].values
    n = sizes[-1]
    for axis, graph in zip(axes[0], dataset["cost_graph"].values, strict=True):
        part = dataset.sel(cost_graph=graph)
        for color, beta in zip(COLORS, fan_outs, strict=False):
            cell = part.sel(cost_fan_out=beta)
            mean, error = mean_and_error(cell["cost_touched"].isel(cost_hop=1), "cost_batch")
            axis.plot(sizes, cell["cost_touched_exact"] / n, color=color, label=f"β = {beta}")
            axis.plot(sizes, cell["cost_touched_mean_degree"] / n, ":", color=color, lw=1.0)
            axis.errorbar(sizes, mean / n, error / n, fmt="o", color=color, markersize=3.5)
        axis.set_xscale("log")
        axis.set_xticks(sizes, [str(size) for size in sizes])
        axis.minorticks_off()
        axis.set_title(str(graph))
        axis.set_xlabel("batch size b")
        axis.set_ylim(0.0, 1.05)
    axes[0, 0].set_ylabel("touched nodes / n")
    axes[0, 0].legend(loc="lower right")
    for axis, (name, words) in zip(axes[1], AXES.items(), strict=True):
        _heat_map(axis, dataset, name)
        axis.set_title(words)
        axis.set_xlabel("fan-out β")
    axes[1, 0].set_ylabel("batch size b")
    return figure


def _heat_map(axis: Any, dataset: xr.Dataset, name: str) -> None:
    import matplotlib.pyplot as plt

    part = dataset.sel(cost_target="accuracy")
    order = ("cost_batch_size", "cost_fan_out")
    mean = part[name].mean("cost_seed").transpose(*order).values
    cut = part["cost_censored"].any("cost_seed").transpose(*order).values
    relative = np.log10(mean / mean.min())
    axis.imshow(relative, cmap="Blues_r", aspect="auto", vmin=0.0, vmax=1.6 * relative.max())
    for row, column in np.ndindex(mean.shape):
        text = f"{'≥' if cut[row, column] else ''}{_short(float(mean[row, column]))}"
        dark = relative[row, column] < 0.6 * relative.max()
        color = "white" if dark else "black"
        axis.text(column, row, text, ha="center", va="center", color=color, fontsize=8)
    row, column = np.unravel_index(np.argmin(np.where(cut, np.inf, mean)), mean.shape)
    frame = plt.Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, ec=COLORS[1], lw=2.5)
    axis.add_patch(frame)
    axis.set_xticks(range(mean.shape[1]), [str(b) for b in dataset["cost_fan_out"].values])
    axis.set_yticks(range(mean.shape[0]), [str(b) for b in dataset["cost_batch_size"].values])
    axis.grid(visible=False)


def _short(value: float) -> str:
    """Three digits, thousands and millions shortened."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def _time(dataset: xr.Dataset) -> Any:
    import matplotlib.pyplot as plt

    part = dataset.sel(cost_target="accuracy")
    sizes, fan_outs = dataset["cost_batch_size"].values, dataset["cost_fan_out"].values
    devices = dataset["cost_device"].values
    figure, axes = plt.subplots(1, 3, figsize=(9.5, 3.5))
    for color, beta in zip(COLORS, fan_outs, strict=False):
        cell = part.sel(cost_fan_out=beta)
        cut = cell["cost_censored"].any("cost_seed").values
        label = f"β = {beta}"
        _line(axes[0], sizes, cell["cost_iterations"], cut, color, "o", label)
        for marker, device in zip(MARKERS, devices, strict=False):
            on = cell.sel(cost_device=device)
            name = f"{label}, {device}" if len(devices) > 1 else label
            _line(axes[1], sizes, 1e3 * on["cost_to_seconds"], cut, color, marker, name)
            axes[2].plot(sizes, on["cost_throughput"], marker=marker, color=color, label=name)
    words = (
        ("iterations to the target", "iterations"),
        ("time to the target", "milliseconds"),
        ("throughput", "training nodes a second"),
    )
    for axis, (title, label) in zip(axes, words, strict=True):
        axis.set_xscale("log")
        axis.set_xticks(sizes, [str(size) for size in sizes])
        axis.minorticks_off()
        axis.set_xlabel("batch size b")
        axis.set_ylabel(label)
        axis.set_title(title)
    if len(devices) > 1:  # orders of magnitude apart
        axes[1].set_yscale("log")
    for axis in axes[: 1 if len(devices) > 1 else 2]:
        axis.set_ylim(bottom=0.0)
    axes[2].set_yscale("log")
    axes[0].legend()
    return figure


def _line(
    axis: Any, sizes: Any, samples: xr.DataArray, cut: Any, color: str, marker: str, label: str
) -> None:
    """Means with error bars; hollow markers where runs were cut off."""
    mean, error = mean_and_error(samples, "cost_seed")
    axis.errorbar(sizes, mean.values, error.values, color=color, label=label, lw=1.2)
    axis.plot(sizes[~cut], mean.values[~cut], marker, color=color, markersize=5)
    axis.plot(sizes[cut], mean.values[cut], marker, color=color, markersize=5, mfc="white")
