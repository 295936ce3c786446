"""Figure of coupled systems: error and bound over steps, the price of marginal scores, coupled drift."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style

ORDERS = {"jacobi": "Jacobi", "gauss_seidel": "Gauss–Seidel"}
MARKERS = ("o", "s", "^", "D")


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`E7-coupling`."""
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(2, 2, figsize=(9.6, 6.8))
        _errors(axes[0, 0], dataset)
        _price(axes[0, 1], dataset)
        _variances(axes[1, 0], dataset)
        _drift(axes[1, 1], dataset)
    information = float(dataset["coupling_information"])
    caption = (
        "What coupling is worth, for a Gaussian law of features and structure. Top left: exact KL of the "
        "sampler's output against the number of steps; with joint scores it falls as the square of the "
        "step, below its bound (dashed), whichever order the blocks step in; with marginal scores it "
        f"stays at the mutual information of the blocks, {information:.2f} nats (dotted). Top right: "
        "that price on a fine grid (dots) as the canonical correlations are scaled, against the mutual "
        "information (line) and its value to first order in the squared correlations. Bottom left: "
        "variances of drawn samples along the difference of each canonical pair after 8 steps (dots, ±2 "
        "standard errors), on the recursion's lines for joint scores, and its line for marginal ones. "
        "Bottom right: distance from the prior when the forward drift couples the blocks with strength "
        "k; dashes have the slope of exp(−4(1−k)t)."
    )
    return {"E7-coupling": (figure, caption)}


def _errors(axis: Any, dataset: xr.Dataset) -> None:
    steps = dataset["coupling_steps"].values
    shown = zip(dataset["coupling_sampler"].values, ("o-", "x:", "s-"), strict=True)
    for color, (sampler, marker) in zip(COLORS, shown, strict=False):
        axis.plot(
            steps,
            dataset["coupling_kl"].sel(coupling_sampler=sampler),
            marker,
            color=color,
            markersize=5,
            label=f"exact KL, {str(sampler).replace('-', '–')}",
        )
    axis.plot(
        steps, dataset["coupling_bound"], "--", color=COLORS[0], label="bound for joint scores"
    )
    axis.axhline(
        float(dataset["coupling_information"]),
        color="black",
        linestyle=":",
        label="mutual information",
    )
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(steps, [str(value) for value in steps])
    axis.minorticks_off()
    axis.set_title("error and bound of the coupled sampler")
    axis.set_xlabel("steps $N$")
    axis.set_ylabel("KL (nats)")
    axis.legend()


def _price(axis: Any, dataset: xr.Dataset) -> None:
    strength = dataset["coupling_strength"]
    axis.plot(
        strength, dataset["coupling_price_theory"], color=COLORS[0], label="mutual information"
    )
    axis.plot(
        strength,
        dataset["coupling_price_weak"],
        "--",
        color=COLORS[1],
        label="first order, $\\frac{1}{2}\\sum\\rho_i^2$",
    )
    axis.plot(
        strength, dataset["coupling_price"], "o", color="black", label="KL with marginal scores"
    )
    axis.set_ylim(bottom=0.0)
    axis.set_title("price of scores that don't see the partner")
    axis.set_xlabel("scale of the canonical correlations")
    axis.set_ylabel("KL (nats)")
    axis.legend()


def _variances(axis: Any, dataset: xr.Dataset) -> None:
    pairs = dataset["coupling_direction"].str.startswith("canonical")
    part = dataset.isel(coupling_direction=np.flatnonzero(pairs.values))
    place = np.arange(1, part.sizes["coupling_direction"] + 1)
    lines = {
        "joint_jacobi": ("Jacobi, joint scores", COLORS[0], "-"),
        "joint_gauss_seidel": ("Gauss–Seidel, joint scores", COLORS[1], "--"),
        "marginal_jacobi": ("marginal scores", COLORS[2], "-"),
    }
    for name, (label, color, dashes) in lines.items():
        axis.plot(place, part[f"coupling_theory_{name}"], dashes, color=color, label=label)
    for order, color, marker in zip(ORDERS, COLORS, MARKERS, strict=False):
        mean, error = mean_and_error(part[f"coupling_variance_{order}"], "coupling_seed")
        axis.errorbar(
            place,
            mean,
            error,
            fmt=marker,
            color=color,
            markersize=4,
            label=f"drawn, {ORDERS[order]}",
        )
    axis.set_ylim(bottom=0.0)
    axis.set_xticks(place)
    axis.set_title("variance along differences of canonical pairs, $N=8$")
    axis.set_xlabel("canonical pair")
    axis.set_ylabel("variance")
    axis.legend(ncols=2)


def _drift(axis: Any, dataset: xr.Dataset) -> None:
    times = dataset["coupling_horizon"].values
    for color, marker, k in zip(COLORS, MARKERS, dataset["coupling_drift"].values, strict=False):
        values = dataset["coupling_distance"].sel(coupling_drift=k).values
        axis.plot(times, values, f"{marker}-", color=color, markersize=3.5, label=f"$k={k:g}$")
        half = len(times) // 2
        slope = values[-1] * np.exp(4 * (1 - k) * (times[-1] - times[half:]))
        axis.plot(times[half:], slope, "--", color="black", linewidth=0.9)
    axis.plot([], [], "--", color="black", linewidth=0.9, label="slope $-4(1-k)$")
    axis.set_yscale("log")
    axis.set_title("forward process with a coupled drift")
    axis.set_xlabel("time $t$")
    axis.set_ylabel("KL from the prior (nats)")
    axis.legend()
