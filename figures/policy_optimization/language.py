"""Figure of the trained example: reward, entropy, ratio and cosine along training on stale samples."""

import itertools
from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style

SHOWN = {
    "held_out_reward": "held-out reward",
    "entropy": "entropy (nat/token)",
    "mean_ratio": "mean ratio $r$",
    "cosine": "cosine of gradients",
}
LINES: dict[str, Any] = {"plain": "-", "gac": "--"}


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`F12-training`, of a dataset in which models were trained."""
    if "language_reward" not in dataset:
        return {}
    import matplotlib.pyplot as plt

    delays = dataset["language_delay"].values
    with style():
        figure, axes = plt.subplots(
            len(delays),
            len(SHOWN),
            figsize=(11.0, 1.0 + 2.1 * len(delays)),
            sharex=True,
            sharey="col",
            squeeze=False,
        )
        for row, delay in zip(axes, delays, strict=True):
            for axis, (name, words) in zip(row, SHOWN.items(), strict=True):
                _curves(axis, dataset.sel(language_delay=delay), f"language_{name}")
                if axis is row[0]:
                    _start(axis, dataset)
                    axis.set_ylabel(f"samples {delay} updates old")
                if delay == delays[0]:
                    axis.set_title(words)
                if delay == delays[-1]:
                    axis.set_xlabel("updates")
        for axis in axes[:, 2]:
            axis.axhline(1.0, color="black", linewidth=0.8, zorder=0)
        for axis in axes[:, 3]:
            axis.axhline(0.0, color="black", linewidth=0.8, zorder=0)
        _legend(figure, dataset)
    return {"F12-training": (figure, _caption(dataset))}


def _curves(axis: Any, dataset: xr.Dataset, name: str) -> None:
    updates = dataset["language_update"].values
    several = dataset.sizes["language_seed"] > 1
    for color, loss in zip(itertools.cycle(COLORS), dataset["language_loss"].values):
        for control in dataset["language_control"].values:
            values = dataset[name].sel(language_loss=loss, language_control=control)
            mean = values.mean("language_seed").values
            axis.plot(updates, mean, color=color, linestyle=LINES[str(control)], linewidth=1.3)
            if several:
                _, error = mean_and_error(values, "language_seed")
                low, high = mean - error.values, mean + error.values
                axis.fill_between(updates, low, high, color=color, alpha=0.1, linewidth=0)


def _start(axis: Any, dataset: xr.Dataset) -> None:
    """Reward after the supervised start."""
    level = float(dataset["language_start_reward"].mean())
    axis.axhline(level, color="black", linestyle=":", linewidth=1.0, zorder=0)
    axis.set_ylim(0.0, 1.0)


def _legend(figure: Any, dataset: xr.Dataset) -> None:
    from matplotlib.lines import Line2D

    losses, controls = dataset["language_loss"].values, dataset["language_control"].values
    handles = [
        Line2D([], [], color=color, label=str(loss).replace("_", " "))
        for color, loss in zip(itertools.cycle(COLORS), losses)
    ]
    words = {"plain": "without alignment control", "gac": "with alignment control"}
    handles += [
        Line2D([], [], color="black", linestyle=LINES[str(c)], label=words[str(c)])
        for c in controls
    ]
    handles.append(Line2D([], [], color="black", linestyle=":", label="after the supervised start"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def _caption(dataset: xr.Dataset) -> str:
    reward = dataset["language_held_out_reward"].isel(language_update=-1)
    seeds = dataset.sizes["language_seed"]
    ends = []
    for delay in dataset["language_delay"].values:
        values = reward.sel(language_delay=delay)
        means = np.array([values.mean("language_seed").min(), values.mean("language_seed").max()])
        ends.append(f"{means[0]:.2f} to {means[1]:.2f} with samples {delay} updates old")
    task = dataset.attrs.get("task", "brackets")
    what = "closing brackets" if task == "brackets" else "adding two numbers"
    return (
        f"A small language model trained on {what} by policy losses (colours), with and without gradient "
        "alignment control (dashed, full lines); rows: how many updates old the parameters are that draw "
        "the samples. Reward is that of samples to prompts that no training saw; the ratio is that of "
        "the policy to the one that drew the samples, the cosine that of consecutive gradients. Means of "
        f"{seeds} model{'s' if seeds > 1 else ''} with two standard errors (bands). Mean rewards at the "
        f"end, over losses and controls: {'; '.join(ends)}."
    )
