"""Figure of block degrees: rows of the block-normalised aggregator, and the updates that they cost."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style

AGGREGATORS = {"mean": "mean", "sum": "sum", "gcn_block": "block degrees"}
MARKERS = ("o", "s", "^", "D", "v", "P")


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`E5-block-degrees`."""
    with style():
        figure = _figure(dataset)
    caption = (
        "Degrees counted in the sampled block. Top: mean row sum squared, mean squared norm Γ and "
        "squared distance from the full-graph row of the aggregator's rows against the batch size, one "
        "colour a fan-out β; lines are the exact law, dots means over drawn batches with ±2 standard "
        "errors, dotted lines the mean aggregator, on which b has no effect. Bottom: updates until a "
        "ReLU unit has learnt its ReLU teacher (loss 1 % of Γ) on fresh structure-less features; lines "
        "are descent on the expected loss, dots SGD. More fan-out slows the mean aggregator down and "
        "speeds the sum up; larger batches slow block degrees down; all is one law, T ∝ 1/(ηΓ)."
    )
    return {"E5-block-degrees": (figure, caption)}


def _figure(dataset: xr.Dataset) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(10.0, 6.0))
    _law(axes[0, 0], dataset, "row_sum", "$s^2$, row sum squared", power=2)
    _law(axes[0, 1], dataset, "squared_norm", "$\\Gamma$, squared norm")
    _law(axes[0, 2], dataset, "distance", "$\\delta$, distance from the full row")
    axes[0, 0].legend(title="fan-out", title_fontsize=8)
    _against_fan_out(axes[1, 0], dataset)
    _against_batch(axes[1, 1], dataset)
    _collapse(axes[1, 2], dataset)
    return figure


def _law(axis: Any, dataset: xr.Dataset, name: str, title: str, power: int = 1) -> None:
    for color, fan_out in zip(COLORS, dataset["blocks_fan_out"].values, strict=False):
        theory = dataset[f"blocks_{name}"].sel(blocks_fan_out=fan_out)
        axis.plot(dataset["blocks_curve"], theory**power, color=color, label=f"$\\beta={fan_out}$")
        samples = dataset[f"blocks_simulated_{name}"].sel(blocks_fan_out=fan_out) ** power
        mean, error = mean_and_error(samples, "blocks_seed")
        axis.errorbar(
            dataset["blocks_batch_size"], mean, error, fmt="o", color=color, markersize=3.5
        )
        if name != "row_sum":
            level = dataset[f"blocks_mean_{name}"].sel(blocks_fan_out=fan_out)
            axis.axhline(float(level), color=color, linestyle=":", linewidth=0.9)
    axis.set_xscale("log")
    axis.set_ylim(bottom=0.0)
    axis.set_title(title)
    axis.set_xlabel("batch size b")


def _against_fan_out(axis: Any, dataset: xr.Dataset) -> None:
    """T over β at b = n."""
    sizes = dataset["blocks_cell_batch_size"].values
    part = dataset.isel(blocks_cell=np.flatnonzero(sizes == sizes.max()))
    fan_outs = part["blocks_cell_fan_out"].values
    for color, marker, (kind, label) in zip(COLORS, MARKERS, AGGREGATORS.items(), strict=False):
        _updates(axis, part.sel(blocks_aggregator=kind), fan_outs, color, marker, label)
    first = float(part["blocks_expected_updates"].sel(blocks_aggregator="gcn_block")[0])
    axis.plot(
        fan_outs,
        first * (fan_outs / fan_outs[0]) ** -0.5,
        color="black",
        linestyle="--",
        linewidth=0.9,
        label="$\\beta^{-1/2}$, as published",
    )
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(fan_outs, [str(value) for value in fan_outs])
    axis.set_title(f"updates T against fan-out, b = n = {sizes.max()}")
    axis.set_xlabel("fan-out $\\beta$")
    axis.set_ylabel("updates T")
    axis.minorticks_off()
    low, high = axis.get_ylim()
    axis.set_ylim(low, 3 * high)  # room for the legend above the crossing lines
    axis.legend(loc="upper center", ncols=2)


def _against_batch(axis: Any, dataset: xr.Dataset) -> None:
    """T of block degrees over b at one β, with the mean aggregator for contrast."""
    sizes = dataset["blocks_cell_batch_size"].values
    fan_outs = dataset["blocks_cell_fan_out"].values
    fan_out = fan_outs[np.argmin(sizes)]
    cells = np.flatnonzero(fan_outs == fan_out)
    part = dataset.isel(blocks_cell=cells[np.argsort(sizes[cells])])
    values = part["blocks_cell_batch_size"].values
    for place in (2, 0):
        kind = list(AGGREGATORS)[place]
        rows = part.sel(blocks_aggregator=kind)
        _updates(axis, rows, values, COLORS[place], MARKERS[place], AGGREGATORS[kind])
    axis.set_ylim(bottom=0.0)
    axis.set_xticks(values)
    axis.set_title(f"updates T against batch size, $\\beta={fan_out}$")
    axis.set_xlabel("batch size b")
    axis.set_ylabel("updates T")
    axis.legend()


def _updates(
    axis: Any, part: xr.Dataset, abscissa: np.ndarray, color: str, marker: str, label: str
) -> None:
    axis.plot(abscissa, part["blocks_expected_updates"], color=color)
    mean, error = mean_and_error(part["blocks_simulated_updates"], "blocks_teacher_seed")
    axis.errorbar(abscissa, mean, error, fmt=marker, color=color, markersize=4.5, label=label)


def _collapse(axis: Any, dataset: xr.Dataset) -> None:
    """ηT over Γ: one line for all aggregators, batches and fan-outs."""
    rates = dataset["blocks_step_size"]
    for color, marker, (kind, label) in zip(COLORS, MARKERS, AGGREGATORS.items(), strict=False):
        part = dataset.sel(blocks_aggregator=kind)
        rate = float(rates.sel(blocks_aggregator=kind))
        mean, error = mean_and_error(part["blocks_simulated_updates"], "blocks_teacher_seed")
        axis.errorbar(
            part["blocks_cell_norm"],
            rate * mean,
            rate * error,
            fmt=marker,
            color=color,
            markersize=4.5,
            label=label,
        )
    norms = dataset["blocks_cell_norm"].values.ravel()
    expected = (rates * dataset["blocks_expected_updates"]).transpose(
        *dataset["blocks_cell_norm"].dims
    )
    order = np.argsort(norms)
    axis.plot(norms[order], expected.values.ravel()[order], color="black", linewidth=0.9, zorder=1)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.xaxis.set_minor_formatter("")
    axis.yaxis.set_minor_formatter("")
    axis.set_title("all of them: $\\eta T$ against $\\Gamma$")
    axis.set_xlabel("squared norm $\\Gamma$")
    axis.set_ylabel("$\\eta T$")
    axis.legend()
