"""Figures of trust regions: improvements against their bounds, and what a step is sure to gain."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, style

# Both axes are linear up to here, logarithmic beyond.
LINEAR = 0.1
BOUNDS = (
    ("trpo", "gain", "TRPO: largest variation", "o"),
    ("achiam", "gain", "Achiam et al.: mean variation", "^"),
    ("mixture", "mixture_gain", "Kakade–Langford: mixture", "s"),
)


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`F7-bounds` and `F7b-step`."""
    return {"F7-bounds": _bounds(dataset), "F7b-step": _step(dataset)}


def _bounds(dataset: xr.Dataset) -> tuple[Any, str]:
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.2))
        worst = dataset["region_kind"].values != "random"
        for color, (bound, gain, label, marker) in zip(COLORS, BOUNDS, strict=False):
            x, y = dataset[f"region_{bound}"].values, dataset[f"region_{gain}"].values
            _scatter(axes[0], x, y, worst, color, marker, label)
        tree_worst = dataset["region_tree_kind"].values != "random"
        horizon = dataset["region_horizon"].values
        x, y = dataset["region_tree_bound"].values, dataset["region_tree_gain"].values
        for color, steps in zip(COLORS, np.unique(horizon), strict=False):
            at = horizon == steps
            label = f"$H={steps}$" + (": exact" if steps == 1 else "")
            _scatter(axes[1], x[at], y[at], tree_worst[at], color, "o", label)
        titles = ("discounted processes", "sequences of $H$ steps, no discount")
        for axis, title in zip(axes, titles, strict=True):
            _frame(axis)
            axis.set_title(title)
    caption = (
        "Exact improvement of a policy against lower bounds of it, both in units of the return (axes "
        "are linear within ±0.1, logarithmic outside). A dot is a process and a pair of policies; on "
        "the line a bound is attained, in the shaded region it would be violated. Markers with a dark "
        "edge are the worst cases, where what the new policy prefers leads astray. Left: 5 states, 3 "
        "actions, discounts .5, .8 and .95; bounds by the largest total variation over states (TRPO), "
        "by its mean (Achiam et al.), and for mixtures of two policies (Kakade and Langford). Right: "
        "trees of 3 tokens, nothing is discounted. For one step the bound is the improvement, for "
        "more it still isn't empty."
    )
    return figure, caption


def _scatter(
    axis: Any, x: np.ndarray, y: np.ndarray, worst: np.ndarray, color: str, marker: str, label: str
) -> None:
    axis.plot(x[~worst], y[~worst], marker, color=color, markersize=2.5, alpha=0.5, linewidth=0)
    axis.plot(
        x[worst],
        y[worst],
        marker,
        color=color,
        markeredgecolor="black",
        markersize=5,
        linewidth=0,
        label=label,
    )


def _frame(axis: Any) -> None:
    """Symmetric-logarithmic axes, the line y = x, and the region below it shaded."""
    axis.set_xscale("symlog", linthresh=LINEAR)
    axis.set_yscale("symlog", linthresh=LINEAR)
    low, high = axis.get_xlim()
    bottom, top = axis.get_ylim()
    ends = np.array([min(low, bottom), max(high, top)])
    # Straight on both scales alike, so that two points are enough.
    axis.plot(ends, ends, color="black", linewidth=0.9)
    axis.fill_between(ends, ends, ends[0], color="#bbbbbb", alpha=0.35, linewidth=0)
    axis.set_xlim(low, high)
    axis.set_ylim(bottom, top)
    axis.set_xlabel("lower bound of the improvement (return)")
    axis.set_ylabel("exact improvement (return)")
    axis.text(0.97, 0.03, "violated", transform=axis.transAxes, ha="right", color="#555555")
    axis.legend(loc="lower right", bbox_to_anchor=(1.0, 0.08))


def _step(dataset: xr.Dataset) -> tuple[Any, str]:
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(1, 3, figsize=(10.8, 3.6))
        _ratios(
            axes[0],
            dataset["region_step_gain"].values / dataset["region_guarantee"].values,
            dataset["region_discount"].values,
            dataset["region_feasible"].values > 0,
            dataset["region_kind"].values != "random",
            (15 / 8, 17 / 8),
        )
        axes[0].set_xlabel(r"discount $\gamma$")
        axes[0].set_title("discounted")
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = (
                dataset["region_tree_step_gain"].values / dataset["region_tree_guarantee"].values
            )
        _ratios(
            axes[1],
            ratio,
            dataset["region_horizon"].values,
            dataset["region_tree_proper"].values > 0,
            dataset["region_tree_kind"].values != "random",
            (3 / 2, 5 / 2),
        )
        axes[1].set_xlabel("steps $H$")
        axes[1].set_title("no discount")
        for axis in axes[:2]:
            axis.set_ylabel("gain of the step / guaranteed gain")
        _radii(axes[2], dataset)
    caption = (
        "What the trust-region step gains. Left and middle: its exact gain over the gain that is "
        "guaranteed to it, for random processes or trees in which the worst actions have enough to "
        "give (dots; black: worst cases). Dotted are the derived limits; at the line 1 lies the "
        "guarantee itself, about half of what is gained: the step is so short that the surrogate is "
        "nearly exact. Right: radius of the step for M/ε = 1 a step, against the horizon, which is "
        "1/(1−γ) steps on average or exactly H. Both fall as 1/horizon; what vanishes at γ = 1 does "
        "so because the horizon is infinite there. They are 8 apart: 4 for the ½ of the total "
        "variation, squared, which the published radius lacks, and 2 since a sum stops at H."
    )
    return figure, caption


def _ratios(
    axis: Any,
    ratio: np.ndarray,
    places: np.ndarray,
    shown: np.ndarray,
    worst: np.ndarray,
    limits: tuple[float, float],
) -> None:
    levels = np.unique(places[shown])
    for at, level in enumerate(levels):
        here = shown & (places == level) & ~worst
        spread = np.linspace(-0.3, 0.3, here.sum()) if here.sum() > 1 else np.zeros(here.sum())
        axis.plot(at + spread, ratio[here], ".", color=COLORS[0], markersize=3, alpha=0.6)
        hard = shown & (places == level) & worst
        axis.plot(np.full(hard.sum(), float(at)), ratio[hard], "D", color="black", markersize=4)
    for limit in limits:
        axis.axhline(limit, color=COLORS[1], linestyle=":")
    axis.axhline(1.0, color="black", linewidth=0.9)
    axis.set_xticks(np.arange(len(levels)), [f"{level:g}" for level in levels])
    axis.set_ylim(0.9, None)


def _radii(axis: Any, dataset: xr.Dataset) -> None:
    length = dataset["region_length"].values
    axis.plot(length, dataset["region_radius_finite"], color=COLORS[2], label="exactly $H$ steps")
    axis.plot(
        length,
        dataset["region_radius_discounted"],
        color=COLORS[1],
        label=r"discount, $1/(1-\gamma)=H$",
    )
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("horizon $H$ (steps)")
    axis.set_ylabel(r"radius $t^*$ for $M/\epsilon=1$ a step")
    axis.set_title("where the radius vanishes")
    axis.legend()
