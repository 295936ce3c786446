"""Figures of bounds: a team's share of one agent's samples, and bounds beside exact sizes."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style

MARKERS = ("o", "s", "^", "D")


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`F2-ratio` and `F9-tightness`."""
    import matplotlib.pyplot as plt

    with style():
        ratio, axes = plt.subplots(1, 2, figsize=(9.6, 4.0))
        _ratios(axes[0], dataset)
        _failures(axes[1], dataset)
        tightness, axes = plt.subplots(1, 3, figsize=(12.6, 4.0))
        _sizes(axes[0], dataset)
        _excess(axes[1], dataset)
        _variation(axes[2], dataset)
    delta = float(dataset["bounds_delta"])
    return {
        "F2-ratio": (
            ratio,
            "What a team of K agents saves when every candidate is scored on the same prompts. Left: the "
            "exact share of one agent's samples that a team needs (lines) against the actions of an "
            "agent, the same share by the bounds (dashed) and the 1/K that both approach (dotted), as "
            "slowly as 1/ln A falls. Right: simulated failures (dots, ±2 standard errors) of a team and "
            "of one agent with their exact samples, which lie on the allowed "
            f"{delta:g} (line), and of one agent with K times a team's samples, which lie below: it "
            "doesn't need that many.",
        ),
        "F9-tightness": (
            tightness,
            "Bounds beside exact sizes. Left: normalised samples per arm nΔ²/σ² at which the best of M "
            f"arms is missed with probability {delta:g}: exact (solid), with the union and Fano's bounds "
            "and uniform convergence at the worst noise. Middle: bounds over exact sizes; shades are "
            "failure probabilities. Absolute sizes are off by factors of 1.3 to 8, while their ratios "
            "(previous figure) are nearly right. Right: total variation between linear-softmax policies "
            "per unit of parameter (dots; crosses: two tokens of opposite features), against the length "
            "of their texts, with its bounds T/2 and √T/2.",
        ),
    }


def _ratios(axis: Any, dataset: xr.Dataset) -> None:
    actions = dataset["bounds_action_count"].values
    sizes = dataset["bounds_team_size"].values
    for color, marker, size in zip(COLORS, MARKERS, sizes, strict=False):
        part = dataset.sel(bounds_team_size=size)
        axis.plot(
            actions,
            part["bounds_ratio"],
            f"{marker}-",
            color=color,
            markersize=4,
            label=f"$K={size}$",
        )
        axis.plot(actions, part["bounds_ratio_bounds"], "--", color=color, linewidth=1.1)
        axis.plot(actions, part["bounds_ratio_inverse"], ":", color=color)
    axis.plot([], [], "--", color="black", linewidth=1.1, label="by the bounds, $\\kappa$")
    axis.plot([], [], ":", color="black", label="$1/K$")
    axis.set_xscale("log", base=2)
    axis.set_ylim(0.0, 1.12)
    axis.set_title("a team's samples over one agent's")
    axis.set_xlabel("actions $A$ of an agent")
    axis.set_ylabel("ratio of samples per arm $\\rho_F$")
    axis.legend(ncols=2)


def _failures(axis: Any, dataset: xr.Dataset) -> None:
    names = {
        "team": "a team, its exact samples",
        "one": "one agent, its exact samples",
        "k_times_team": "one agent, $K$ times a team's",
    }
    cells = dataset["bounds_cell"].values
    place = np.arange(len(cells))
    axis.axhline(float(dataset["bounds_delta"]), color="black", label="allowed, $\\delta$")
    for shift, (name, label) in enumerate(names.items()):
        mean, error = mean_and_error(dataset[f"bounds_failure_{name}"], "bounds_seed")
        axis.errorbar(
            place + 0.16 * (shift - 1),
            mean,
            error,
            fmt=MARKERS[shift],
            color=COLORS[shift],
            markersize=4,
            label=label,
        )
    axis.set_xticks(place, [str(cell).replace(", ", "\n") for cell in cells])
    axis.set_ylim(bottom=0.0, top=1.7 * float(dataset["bounds_delta"]))
    axis.set_title("failures of both with these samples")
    axis.set_xlabel("actions and agents")
    axis.set_ylabel("probability of missing the best")
    axis.legend(loc="upper right", fontsize=7.5)


def _sizes(axis: Any, dataset: xr.Dataset) -> None:
    part = dataset.sel(bounds_delta_allowed=float(dataset["bounds_delta"]))
    arms = dataset["bounds_arms"].values
    lines = {
        "uniform": ("uniform convergence", COLORS[1], "s--"),
        "union": ("union bound", COLORS[2], "^--"),
        "exact": ("exact, $x_*^2$", COLORS[0], "o-"),
        "fano": ("Fano", COLORS[3], "D:"),
    }
    for name, (label, color, form) in lines.items():
        axis.plot(arms, part[f"bounds_{name}"], form, color=color, markersize=4, label=label)
    axis.set_xscale("log", base=2)
    axis.set_ylim(bottom=0.0)
    axis.set_title(f"samples per arm, $\\delta={float(dataset['bounds_delta']):g}$")
    axis.set_xlabel("arms $M$ (candidate policies)")
    axis.set_ylabel("$n\\Delta^2/\\sigma^2$ (samples per arm, normalised)")
    axis.legend()


def _excess(axis: Any, dataset: xr.Dataset) -> None:
    arms = dataset["bounds_arms"].values
    deltas = dataset["bounds_delta_allowed"].values
    lines = {
        "uniform_excess": ("uniform convergence", COLORS[1], "s--"),
        "union_excess": ("union bound", COLORS[2], "^--"),
        "fano_excess": ("Fano", COLORS[3], "D:"),
    }
    for name, (label, color, form) in lines.items():
        for shade, delta in zip(np.linspace(0.4, 1.0, len(deltas)), deltas, strict=True):
            axis.plot(
                arms,
                dataset[f"bounds_{name}"].sel(bounds_delta_allowed=delta),
                form,
                color=color,
                alpha=shade,
                markersize=4,
                label=label if delta == deltas[-1] else None,
            )
    axis.axhline(1.0, color="black", linewidth=1.0)
    axis.set_xscale("log", base=2)
    axis.set_ylim(bottom=0.0)
    shown = ", ".join(f"{delta:g}" for delta in deltas)
    axis.set_title(f"bound over exact, $\\delta$ = {shown} (dark)")
    axis.set_xlabel("arms $M$ (candidate policies)")
    axis.set_ylabel("bound / exact samples")
    axis.legend()


def _variation(axis: Any, dataset: xr.Dataset) -> None:
    tokens = dataset["bounds_tokens"].values
    axis.plot(
        tokens, dataset["bounds_variation_hybrid"], "--", color=COLORS[1], label="$T/2$, per token"
    )
    axis.plot(
        tokens,
        dataset["bounds_variation_pinsker"],
        color=COLORS[0],
        label="$\\sqrt{T}/2$, KL and Pinsker",
    )
    slopes = dataset["bounds_variation"].transpose("bounds_policy", "bounds_tokens").values
    axis.plot(tokens, slopes[1:].T, "o", color="#999999", markersize=3)
    axis.plot([], [], "o", color="#999999", markersize=3, label="random policies")
    axis.plot(tokens, slopes[0], "x", color="black", label="opposite features")
    axis.set_ylim(0.0, 1.15 * float(dataset["bounds_variation_hybrid"][-1]))
    axis.set_title("total variation of token policies")
    axis.set_xlabel("tokens $T$")
    axis.set_ylabel("TV per $\\|\\Delta\\theta\\|$")
    axis.legend(loc="upper left")
