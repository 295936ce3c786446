"""Figures of stopping rules: iterations over (b, β) (E1), their exponents (E1c), targets (E9)."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style

RULES = {
    "batch": "batch's own loss,\nfirst hit",
    "held": "batch's own loss,\nheld",
    "sampled": "sampled loss\nof all nodes",
    "full": "loss with all\nneighbours",
}
NETWORKS = {"sage": "mean", "gcn": "GCN, full degrees", "gcn_block": "GCN, block degrees"}
LOSSES = {"mse": "squared loss", "cross_entropy": "cross-entropy"}
OPTIMIZERS = {"sgd": "SGD", "adam": "Adam"}
MARKERS = ("o", "s", "^", "D")


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """Figure and caption by name."""
    with style():
        return {
            "E1-stopping-rules": (_grids(dataset), _grids_caption(dataset)),
            "E1c-exponents": (_exponents(dataset), _EXPONENTS),
            "E9-targets": (_targets(dataset), _targets_caption(dataset)),
        }


def _grids_caption(dataset: xr.Dataset) -> str:
    window = dataset["stopping_grid_time"].attrs["window"]
    return (
        "Iterations T to one target loss over batch size b and fan-out β, the same runs under four "
        "stopping rules (columns) for network, loss and optimiser (rows); mean over "
        f"{dataset.sizes['stopping_grid_seed']} runs. The darker a cell, the more iterations "
        "(logarithmic, from the fewest to the most in its row). ≥ (at least): some runs of the cell "
        "were never stopped; they count their whole length, so that the mean is a lower bound. "
        "With SGD the first hit of the batch's own loss "
        f"makes T grow with b; if it must hold for {window} updates, T falls with b; on a loss without "
        "batch noise T is flat in b. Squared loss and cross-entropy agree in this; block degrees do "
        "slow large batches down. More fan-out helps on sampled losses, hardly on the one with all "
        "neighbours."
    )


_EXPONENTS = (
    "Exponents of T ∝ b^p β^q fitted to the tables of E1 (dots: mean of the runs' fits ±2 s.e., one "
    "colour a rule; T is restricted to the runs' length) beside those of the published theorems "
    "(crosses: 5/2 and −1/2 for squared loss, −1 and −5/2 for cross-entropy). The rule moves the "
    "exponent of b, and its sign; the loss does not, and no rule comes near the theorems. In β the "
    "sampled losses are near the −1/2 of squared loss, but nowhere near the −5/2 of cross-entropy, and "
    "the loss with all neighbours barely depends on β."
)


def _targets_caption(dataset: xr.Dataset) -> str:
    runs = dataset.sizes["stopping_seed"]
    return (
        "Left: iterations until the batch's own loss first explains the share ρ of the zero predictor's "
        f"loss, one colour a batch size (dots: {runs} runs ±2 s.e.; lines: model with the noise of the "
        "batch; black: without noise). The harder the target, the more the small batch's noise stops "
        "early. Middle: the same runs on the sampled loss of all nodes (filled) and on the loss with all "
        "neighbours (open): b has no effect, but the choice of loss has. Right: runs that are never "
        "stopped. Past the dotted line lies what no weights reach on sampled neighbours; small batches "
        "stop there nevertheless."
    )


def _words(setting: str) -> str:
    network, loss, optimizer = setting.split()
    return f"{NETWORKS[network]}\n{LOSSES[loss]}\n{OPTIMIZERS[optimizer]}"


def _grids(dataset: xr.Dataset) -> Any:
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    settings = dataset["stopping_setting"].values
    mean = dataset["stopping_grid_time"].mean("stopping_grid_seed")
    censored = dataset["stopping_grid_censored"].mean("stopping_grid_seed")
    sizes = dataset["stopping_grid_batch_size"].values
    fan_outs = dataset["stopping_grid_fan_out"].values
    figure, axes = plt.subplots(
        len(settings),
        len(RULES),
        figsize=(8.6, 0.6 + 0.42 * (len(sizes) + 1) * len(settings)),
        squeeze=False,
        sharex=True,
        sharey=True,
    )
    for row, setting in zip(axes, settings, strict=True):
        part = mean.sel(stopping_setting=setting)
        norm = mpl.colors.LogNorm(float(part.min()), float(part.max()))
        for axis, rule in zip(row, RULES, strict=True):
            place = {"stopping_setting": setting, "stopping_rule": rule}
            order = ("stopping_grid_batch_size", "stopping_grid_fan_out")
            values = mean.sel(place).transpose(*order).values
            never = censored.sel(place).transpose(*order).values
            axis.imshow(values, norm=norm, cmap="viridis_r", aspect="auto", origin="lower")
            for (i, j), value in np.ndenumerate(values):
                sign = "≥ " if never[i, j] > 0 else ""
                color = "white" if norm(value) > 0.5 else "black"
                axis.text(
                    j, i, f"{sign}{value:.0f}", ha="center", va="center", color=color, fontsize=8
                )
            axis.grid(visible=False)
        row[0].set_yticks(range(len(sizes)), [str(size) for size in sizes])
        row[0].set_ylabel(f"{_words(setting)}\n\nbatch size b", fontsize=8)
    for axis, title in zip(axes[0], RULES.values(), strict=True):
        axis.set_title(title)
    for axis in axes[-1]:
        axis.set_xticks(range(len(fan_outs)), [str(fan_out) for fan_out in fan_outs])
        axis.set_xlabel("fan-out β")
    figure.supxlabel(
        "mean iterations (darker: more, logarithmic within a row; ≥: a lower bound, as some runs were "
        "never stopped)",
        fontsize=8,
    )
    return figure


def _exponents(dataset: xr.Dataset) -> Any:
    import matplotlib.pyplot as plt

    settings = dataset["stopping_setting"].values
    places = np.arange(len(settings))
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 0.9 + 0.62 * len(settings)), sharey=True)
    titles = ("exponent of the batch size b", "exponent of the fan-out β")
    for axis, along, title in zip(axes, dataset["stopping_axis"].values, titles, strict=True):
        for i, (color, rule) in enumerate(zip(COLORS, RULES, strict=False)):
            samples = dataset["stopping_exponent"].sel(stopping_axis=along, stopping_rule=rule)
            mean, error = mean_and_error(samples, "stopping_grid_seed")
            axis.errorbar(
                mean.values,
                places + 0.16 * (i - 1.5),
                xerr=error.values,
                fmt=MARKERS[i],
                color=color,
                markersize=4,
                label=RULES[rule].replace("\n", " "),
            )
        stated = dataset["stopping_theorem"].sel(stopping_axis=along)
        axis.plot(stated.values, places, "x", color="black", markersize=8, label="theorem")
        axis.axvline(0.0, color="black", linewidth=0.8)
        axis.set_xlabel(title)
    axes[0].set_ylabel("network, loss, optimiser")
    axes[0].set_yticks(places, [_words(s).replace("\n", ", ") for s in settings])
    axes[0].invert_yaxis()
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    return figure


def _targets(dataset: xr.Dataset) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10.0, 3.6))
    explained = dataset["stopping_explained"].values
    reachable = float(np.interp(1.0, dataset["stopping_target"].values, explained))
    for axis in axes:
        axis.axvline(reachable, color="black", linestyle=":", linewidth=1.0)
        axis.set_xlabel("explained share ρ of the target")
    sizes = dataset["stopping_batch_size"].values
    for color, marker, size in zip(COLORS, MARKERS, sizes, strict=False):
        part = dataset.sel(stopping_batch_size=size)
        label = f"b = {size}"
        _dots(axes[0], explained, part["stopping_batch_time"], color, marker, label)
        axes[0].plot(explained, part["stopping_model_time"].values, color=color)
        _dots(axes[1], explained, part["stopping_sampled_time"], color, marker, label)
        _dots(axes[1], explained, part["stopping_full_time"], color, marker, None, hollow=True)
        never = part["stopping_batch_censored"].mean("stopping_seed")
        axes[2].plot(explained, never.values, marker, color=color, label=label)
        axes[2].plot(explained, part["stopping_model_censored"].values, color=color)
    first = dataset.isel(stopping_batch_size=0)
    quiet = {"color": "black", "linestyle": "--", "linewidth": 1.0}
    axes[0].plot(explained, first["stopping_noiseless_time"].values, label="no noise", **quiet)
    axes[1].plot(explained, first["stopping_sampled_model_time"].values, label="model", **quiet)
    for face, words in (("black", "sampled loss"), ("none", "all neighbours")):
        axes[1].plot([], [], "ko", markerfacecolor=face, markersize=4, label=words)
    axes[2].plot(
        explained,
        dataset["stopping_sampled_censored"].mean(("stopping_seed", "stopping_batch_size")).values,
        label="sampled loss",
        **quiet,
    )
    for axis, title in zip(
        axes,
        ("stop on the batch's own loss", "stop without batch noise", "never stopped"),
        strict=True,
    ):
        axis.set_title(title)
        axis.legend()
    for axis in axes[:2]:
        axis.set_yscale("log")
        ticks = [tick for tick in (20, 30, 50, 100, 200, 400) if _inside(axis, tick)]
        axis.set_yticks(ticks, [str(tick) for tick in ticks])
        axis.minorticks_off()
        axis.set_ylabel("iterations T")
    axes[2].set_ylabel("share of runs")
    return figure


def _inside(axis: Any, value: int) -> bool:
    low, high = axis.get_ylim()
    return bool(low <= value <= high)


def _dots(
    axis: Any,
    places: np.ndarray,
    samples: xr.DataArray,
    color: str,
    marker: str,
    label: str | None,
    *,
    hollow: bool = False,
) -> None:
    mean, error = mean_and_error(samples, "stopping_seed")
    axis.errorbar(
        places,
        mean.values,
        error.values,
        fmt=marker,
        color=color,
        markersize=4,
        label=label,
        markerfacecolor="none" if hollow else color,
    )
