"""Figures of drift: how far inner loops go under each loss, and where a weight of 1/T points."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, style

LOSS_COLORS = {
    "FiberPO": COLORS[0],
    "GRPO": COLORS[1],
    "GSPO": COLORS[2],
    "FiberPO pessimistic": COLORS[5],
    "APC": COLORS[3],
    "SAPO": COLORS[4],
}
VARIANTS = {
    "sum": "sum over tokens, their own advantages",
    "mean": "mean over tokens, their own advantages",
    "sequence": "sum over tokens, the sequence's advantage",
}
AGGREGATIONS = {
    "mean, own": ("mean, own advantages", "o", COLORS[0]),
    "mean, sequence's": ("mean, the sequence's advantage", "^", COLORS[1]),
    "sum, own": ("sum, own advantages", "s", COLORS[2]),
}


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`F6-drift` and `F11-lengths`."""
    return {"F6-drift": _drift(dataset), "F11-lengths": _lengths(dataset)}


def _drift(dataset: xr.Dataset) -> tuple[Any, str]:
    import matplotlib.pyplot as plt

    part = dataset.sel(drift_variant="sum")
    with style():
        figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.8))
        for axis, name in zip(axes, ("moved", "gained"), strict=True):
            for loss in part["drift_loss"].values:
                values = part[f"drift_{name}"].sel(drift_loss=loss)
                _median_and_range(axis, values, str(loss))
            axis.set_xlabel("steps of gradient ascent")
            axis.set_xlim(0, int(part["drift_step"][-1]))
            axis.set_ylim(bottom=0)
        budget = float(dataset["drift_budget"])
        axes[0].axhline(
            budget, color="black", linestyle=":", linewidth=1.2, label="$C^++C^-$ of FiberPO"
        )
        axes[0].set_ylabel("mean $|r-1|$")
        axes[0].set_title("distance from the old policy")
        axes[1].set_ylabel(r"$\Delta J$, units of reward")
        axes[1].set_title("gain in expected reward")
        axes[0].legend(loc="upper left")
    caption = (
        "An inner loop without noise: all sequences of a small tree, exact token advantages, gradient "
        "ascent on each loss from the policy that drew the data (sum over tokens; median of the "
        f"random trees, range shaded). FiberPO stays below its two budgets together, {budget:g} "
        "(dotted), which nothing guarantees for the mean of |r − 1|: it is what happens. GRPO and GSPO "
        "go further and gain more: on exact advantages the tighter trust region is the slower learner."
    )
    return figure, caption


def _median_and_range(axis: Any, values: xr.DataArray, loss: str) -> None:
    color, steps = LOSS_COLORS[loss], values["drift_step"].values
    low, high = (values.reduce(f, "drift_seed") for f in (np.min, np.max))
    axis.fill_between(steps, low, high, color=color, alpha=0.15, linewidth=0)
    # Nearly the same as FiberPO: dashed, so that both are seen.
    line = "--" if "pessimistic" in loss else "-"
    axis.plot(steps, values.median("drift_seed"), line, color=color, label=loss)


def _lengths(dataset: xr.Dataset) -> tuple[Any, str]:
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.0))
        _cosines(axes[0], dataset)
        _ends(axes[1], dataset)
    caption = (
        "What the choice of a mean or a sum over tokens decides. Left: cosine between ∇J and the "
        "gradient of a loss on policy, one marker a random tree with an end token, against how uneven "
        "the lengths T of its sequences are. The mean over each sequence's tokens, as in GRPO, GSPO "
        "and FiberPO, weighs them by 1/T and points elsewhere unless all lengths are equal; the sum "
        "doesn't. Right: how far each inner loop has gone at its end (median and range over random "
        "trees of one length). The mean is only a shorter loop, yet GRPO and GSPO then overlap, and "
        "with one advantage a sequence GSPO hardly moves. The clamp is a symmetric one of FiberPO's "
        "total budget; dashed, that budget."
    )
    return figure, caption


def _cosines(axis: Any, dataset: xr.Dataset) -> None:
    for name, (label, marker, color) in AGGREGATIONS.items():
        cosine = dataset["drift_cosine"].sel(drift_aggregation=name)
        axis.plot(
            dataset["drift_spread"],
            cosine,
            marker,
            color=color,
            markersize=3.5,
            markerfacecolor="none",
            label=label,
        )
    low = float(dataset["drift_cosine"].min())
    # Room for the legend below the markers.
    axis.set_ylim(low - 0.45 * max(1 - low, 0.05), 1 + 0.08 * max(1 - low, 0.05))
    axis.set_xlabel("spread of lengths, std$(T)/E\\,T$")
    axis.set_ylabel(r"cosine with $\nabla J$")
    axis.set_title("direction of the first step")
    axis.legend(loc="lower left")


def _ends(axis: Any, dataset: xr.Dataset) -> None:
    last = dataset["drift_moved"].isel(drift_step=-1)
    shown = {str(loss): last.sel(drift_loss=loss) for loss in dataset["drift_loss"].values}
    shown["clamp"] = dataset["drift_clamped"]
    for offset, marker, color, (variant, label) in zip(
        (-0.22, 0.0, 0.22), "os^", COLORS, VARIANTS.items(), strict=False
    ):
        places = np.arange(len(shown)) + offset
        values = [ends.sel(drift_variant=variant).values for ends in shown.values()]
        middle = np.array([np.median(x) for x in values])
        reach = np.array([[m - x.min(), x.max() - m] for m, x in zip(middle, values, strict=True)])
        axis.errorbar(
            places, middle, reach.T, fmt=marker, color=color, markersize=4, capsize=2, label=label
        )
    axis.axhline(float(dataset["drift_budget"]), color="black", linestyle="--", linewidth=1.0)
    axis.set_xticks(np.arange(len(shown)), [name.replace(" ", "\n") for name in shown])
    axis.set_yscale("log")
    axis.set_ylim(top=10 * float(last.max()))
    axis.set_xlabel("loss")
    axis.set_ylabel("mean $|r-1|$ at the end")
    axis.set_title("distance from the old policy")
    axis.legend(loc="upper left")
