"""Figure of the advice for one graph: predictions over (b, β), the recommended cell marked."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, style

PANELS = (
    ("floor", "floor of the sampled loss", False),
    ("gradient_noise", "gradient noise tr Cov", True),
    ("relative_cost", "operations to the same loss,\ntimes the cheapest", True),
    ("touched_nodes", "touched nodes a step", True),
    ("memory", "memory a step (bytes)", True),
)


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """Figure and caption by name."""
    with style():
        return {"advice": (_heat_maps(dataset), _caption(dataset))}


def _caption(dataset: xr.Dataset) -> str:
    budget = float(dataset.attrs["memory_budget"])
    return (
        "Predictions for one training step of the linear one-layer network with mean aggregation, over "
        "batch size b and fan-out β. The floor depends on β alone and falls with it; gradient noise "
        "falls with both; touched nodes and memory grow. The square marks the recommended cell, "
        f"b = {dataset.attrs['recommended_batch_size']}, β = {dataset.attrs['recommended_fan_out']}; "
        f"cells crossed out exceed the budget of {budget:,.0f} bytes. Last panel: the loss with all "
        "neighbours at the weights that each fan-out aims at, beside the floor."
    )


def _heat_maps(dataset: xr.Dataset) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(10.0, 6.4))
    for axis, (name, title, logarithmic) in zip(axes.flat, PANELS, strict=False):
        _heat_map(figure, axis, dataset, name, logarithmic)
        axis.set_title(title)
    _losses(axes[1, 2], dataset)
    crosses, square = axes[0, 0].lines
    figure.legend(
        [square, crosses],
        ["recommended cell", "over the memory budget"],
        loc="outside lower center",
        ncols=2,
    )
    return figure


def _heat_map(figure: Any, axis: Any, dataset: xr.Dataset, name: str, logarithmic: bool) -> None:
    from matplotlib.colors import LogNorm, Normalize

    values = dataset[name].transpose("batch_size", "fan_out").values
    positive = values[(values > 0.0) & np.isfinite(values)]
    norm: Any = Normalize()
    if logarithmic and positive.size and positive.max() > positive.min():
        # Noise is exactly 0 at full batch and full fan-out: no colour there spoils the scale.
        norm = LogNorm(max(positive.min(), 1e-6 * positive.max()), positive.max(), clip=True)
    image = axis.imshow(values, norm=norm, cmap="viridis", origin="lower", aspect="auto")
    figure.colorbar(image, ax=axis)
    rows, columns = dataset["batch_size"].values, dataset["fan_out"].values
    axis.set_xticks(range(len(columns)), [str(value) for value in columns])
    axis.set_yticks(range(len(rows)), [str(value) for value in rows], fontsize=7)
    axis.grid(False)
    exceeded = np.argwhere(dataset["memory"].values > float(dataset.attrs["memory_budget"]))
    axis.plot(
        exceeded[:, 1],
        exceeded[:, 0],
        "X",
        markersize=6,
        markerfacecolor="white",
        markeredgecolor="black",  # seen on dark cells and on light ones
        markeredgewidth=0.6,
    )
    row = int(np.flatnonzero(rows == dataset.attrs["recommended_batch_size"])[0])
    column = int(np.flatnonzero(columns == dataset.attrs["recommended_fan_out"])[0])
    axis.plot(
        column, row, "s", markersize=11, markerfacecolor="none", color=COLORS[1], markeredgewidth=2
    )
    axis.set_xlabel("fan-out β")
    axis.set_ylabel("batch size b")


def _losses(axis: Any, dataset: xr.Dataset) -> None:
    place = np.arange(dataset.sizes["fan_out"])
    floor = dataset["floor"].isel(batch_size=0).values
    name = str(dataset["evaluation_loss"].attrs["long_name"]).replace(" (", "\n(")
    axis.plot(place, dataset["evaluation_loss"].values, "o-", color=COLORS[0], label=name)
    axis.plot(place, floor, "s--", color=COLORS[4], label="floor of the sampled loss")
    chosen = np.flatnonzero(dataset["fan_out"].values == dataset.attrs["recommended_fan_out"])
    axis.axvline(int(chosen[0]), color=COLORS[1], lw=1.2, label="recommended fan-out")
    axis.set_xticks(place, [str(value) for value in dataset["fan_out"].values])
    axis.set_xlabel("fan-out β")
    axis.set_ylabel("loss, mean of ½‖·‖²")
    axis.set_title("losses against the fan-out")
    low, high = axis.get_ylim()
    axis.set_ylim(low, high + 0.45 * (high - low))  # room for the legend
    axis.legend(loc="upper right")
