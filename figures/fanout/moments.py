"""Figures of moments: the gradient noise and its two parts (E3), the floor that it leaves (E3b)."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """Figure and caption by name."""
    with style():
        return {
            "E3-gradient-noise": (_noise(dataset), _noise_caption(dataset)),
            "E3b-noise-floor": (_floor(dataset), _floor_caption(dataset)),
        }


def _noise_caption(dataset: xr.Dataset) -> str:
    nodes = int(dataset["moments_batch_size"][-1])
    return (
        f"Noise of the mini-batch gradient on a graph of {nodes} nodes, at fixed weights: exact (lines) "
        "and simulated (dots, ±2 s.e.). Left: its trace falls with the batch size b; at b = n what is "
        "left is the fan-out's part (dotted), which only the fan-out β removes: with all neighbours the "
        "noise ends at exactly 0. Middle: the two parts against β. The fan-out's part vanishes at β = d; "
        "without the finite-population correction (dashed) it would not. Right: the expected loss of a "
        "batch does not depend on b (greys), but lies above the loss with all neighbours (dashed) by "
        "the implicit ridge ½ tr W V̄ Wᵀ."
    )


def _floor_caption(dataset: xr.Dataset) -> str:
    floor = dataset["moments_floor"].attrs
    return (
        f"SGD with fresh batches (η = {floor['step_size']:g}, β = {floor['fan_out']}; dots, ±2 s.e.). "
        "Top left: its weights lie on the exact mean iterate; the recursion without the implicit ridge "
        "V̄ (dashed) leaves it. Top right: the excess sampled loss about the mean iterate settles on the "
        "first-order floor (η/4) tr Cov(ĝ), a few percent above it. Bottom left: the floor halves when b "
        "doubles. Bottom right: expected loss over every sample of a small graph at random weights, less "
        "the loss with all neighbours: whatever the weights it falls with each neighbour more, for the "
        "squared loss (solid) and the cross-entropy (dashed)."
    )


def _noise(dataset: xr.Dataset) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10.0, 3.7))
    _against_batch_size(axes[0], dataset)
    _against_fan_out(axes[1], dataset)
    _loss(axes[2], dataset)
    return figure


def _against_batch_size(axis: Any, dataset: xr.Dataset) -> None:
    sizes, curve = (
        dataset["moments_batch_size"].values,
        dataset["moments_curve_batch_size"].values,
    )
    for color, fan_out in zip(COLORS, dataset["moments_fan_out"].values, strict=False):
        theory = dataset.sel(moments_curve_fan_out=fan_out)
        noise = theory["moments_noise"].values
        part = theory["moments_fan_out_part"].values
        axis.loglog(curve[noise > 0], noise[noise > 0], color=color, label=f"β = {fan_out}")
        if (part > 0).all():
            axis.loglog(curve, part, ":", color=color, linewidth=1.2)
        mean, error = mean_and_error(
            dataset["moments_drawn_noise"].sel(moments_fan_out=fan_out), "moments_seed"
        )
        seen = noise[np.searchsorted(curve, sizes)] > 0  # at (n, d) nothing is left to draw
        axis.errorbar(
            sizes[seen], mean.values[seen], error.values[seen], fmt="o", color=color, markersize=4
        )
    axis.plot([], [], "k:", linewidth=1.2, label="fan-out's part, same colour")
    axis.set_title("noise against batch size")
    axis.set_xlabel("batch size b")
    axis.set_ylabel("tr Cov of the batch gradient")
    axis.legend(loc="lower left")


def _against_fan_out(axis: Any, dataset: xr.Dataset) -> None:
    size = int(dataset["moments_batch_size"][1])
    theory = dataset.sel(moments_curve_batch_size=size)
    fan_outs, drawn = dataset["moments_curve_fan_out"].values, dataset["moments_fan_out"].values
    for color, name, words in (
        (COLORS[4], "batch_part", "batch's part"),
        (COLORS[5], "fan_out_part", "fan-out's part"),
    ):
        part = theory[f"moments_{name}"].values
        axis.plot(fan_outs[part > 0], part[part > 0], color=color, label=words)
        mean, error = mean_and_error(
            dataset[f"moments_drawn_{name}"].sel(moments_batch_size=size), "moments_seed"
        )
        seen = part[np.searchsorted(fan_outs, drawn)] > 0  # at β = d the fan-out's part is 0
        axis.errorbar(
            drawn[seen], mean.values[seen], error.values[seen], fmt="o", color=color, markersize=4
        )
    axis.plot(
        fan_outs[:-1],
        theory["moments_uncorrected_fan_out_part"].values[:-1],
        "--",
        color=COLORS[5],
        linewidth=1.0,
        label="the same with 1/m, not 1/m − 1/d",
    )
    axis.set_yscale("log")
    axis.set_title(f"its parts at b = {size}")
    axis.set_xlabel("fan-out β")
    axis.set_ylabel("trace")
    axis.set_xticks(fan_outs)
    axis.legend(loc="upper right")


def _loss(axis: Any, dataset: xr.Dataset) -> None:
    fan_outs, drawn = dataset["moments_curve_fan_out"].values, dataset["moments_fan_out"].values
    axis.plot(fan_outs, dataset["moments_sampled_loss"].values, "k", label="$L_β(W)$, exact")
    axis.plot(
        fan_outs, dataset["moments_full_loss"].values, "k--", linewidth=1.0, label="$L_{full}(W)$"
    )
    sizes = dataset["moments_batch_size"].values
    shifts = 0.12 * (np.arange(len(sizes)) - (len(sizes) - 1) / 2)
    greys = ("#bbbbbb", "#777777", "#222222")
    for color, marker, size, shift in zip(greys, "os^", sizes, shifts, strict=True):
        mean, error = mean_and_error(
            dataset["moments_batch_loss"].sel(moments_batch_size=size), "moments_seed"
        )
        label = f"batch loss, b = {size}"
        axis.errorbar(
            drawn + shift,
            mean.values,
            error.values,
            fmt=marker,
            color=color,
            markersize=4,
            label=label,
        )
    axis.set_title("sampled loss")
    axis.set_xlabel("fan-out β")
    axis.set_ylabel("loss, mean of ½‖error‖²")
    axis.set_xticks(fan_outs)
    axis.legend()


def _floor(dataset: xr.Dataset) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(8.0, 6.4))
    _iterates(axes[0], dataset)
    _against_size(axes[1, 0], dataset)
    _order(axes[1, 1], dataset)
    return figure


def _iterates(axes: Any, dataset: xr.Dataset) -> None:
    """Weights along the mean iterate, and the distance from it in units of the floor."""
    steps, sizes = dataset["moments_step"].values, dataset["moments_run_batch_size"].values
    levels = dataset["moments_floor"].sel(moments_run_curve=sizes).values
    axes[0].axhline(1.0, color="black")
    axes[0].plot(
        steps, dataset["moments_ridgeless_iterate"].values, "k--", linewidth=1.0, label="without V̄"
    )
    axes[1].axhline(1.0, color="black", label="(η/4) tr Cov")
    shifts = 0.12 * (steps[1] - steps[0]) * (np.arange(len(sizes)) - (len(sizes) - 1) / 2)
    for color, size, level, shift in zip(COLORS, sizes, levels, shifts, strict=False):
        for axis, samples in (
            (axes[0], dataset["moments_iterate"]),
            (axes[1], dataset["moments_excess"] / level),
        ):
            mean, error = mean_and_error(
                samples.sel(moments_run_batch_size=size), "moments_run_seed"
            )
            axis.errorbar(
                steps + shift,
                mean.values,
                error.values,
                fmt="o",
                color=color,
                markersize=3.5,
                label=f"b = {size}",
            )
            axis.set_xlabel("updates")
    axes[0].set_title("SGD against its mean iterate")
    axes[0].set_ylabel("$⟨W_t, EW_t⟩/‖EW_t‖²$")
    axes[1].set_title("excess loss about it")
    axes[1].set_ylabel("in units of the floor")
    axes[1].set_ylim(0.0, None)
    axes[0].legend()
    axes[1].legend(loc="lower right")


def _against_size(axis: Any, dataset: xr.Dataset) -> None:
    floor, sizes = dataset["moments_floor"], dataset["moments_run_batch_size"].values
    steps = dataset["moments_step"].values
    late = dataset["moments_excess"].sel(moments_step=steps[len(steps) // 2 :])
    mean, error = mean_and_error(late.mean("moments_step"), "moments_run_seed")
    axis.loglog(floor["moments_run_curve"].values, floor.values, "k", label="(η/4) tr Cov")
    axis.errorbar(
        sizes, mean.values, error.values, fmt="o", color=COLORS[0], markersize=5, label="simulated"
    )
    axis.set_title("noise floor")
    axis.set_xlabel("batch size b")
    axis.set_xticks(sizes, [str(size) for size in sizes])
    axis.xaxis.minorticks_off()
    axis.set_ylabel("excess sampled loss")
    axis.legend()


def _order(axis: Any, dataset: xr.Dataset) -> None:
    losses = dataset["moments_enumerated_loss"]
    above = losses - losses.isel(moments_small_fan_out=-1)
    fan_outs = dataset["moments_small_fan_out"].values
    for name, line, color in (("squared", "-", COLORS[0]), ("cross-entropy", "--", COLORS[1])):
        rows = above.sel(moments_loss=name).transpose("moments_small_fan_out", ...).values[:-1]
        lines = axis.semilogy(fan_outs[:-1], rows, line, color=color, linewidth=0.9)
        lines[0].set_label(name)
    axis.set_title("convex order, every sample")
    axis.set_xlabel("fan-out β (degree 7)")
    axis.set_ylabel("$L_β(W) − L_{full}(W)$")
    axis.legend()
