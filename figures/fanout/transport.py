"""Figure of transport distances: Δ(β, b), measured gaps against it, laws of means, and a valid bound."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style

MARKERS = ("o", "s", "^", "D", "v")
KIND = "trace"


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`E4-wasserstein`."""
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(2, 2, figsize=(9.6, 6.8))
        _delta(axes[0, 0], dataset)
        _gap(axes[0, 1], dataset)
        _laws(axes[1, 0], dataset)
        _bound(axes[1, 1], dataset)
    correlation = float(dataset["transport_rank_correlation"].mean())
    caption = (
        "What the published graph distance Δ says. Top left: Δ of a power-law graph for the mean "
        "aggregator against the fan-out, lines by optimal transport plus the mean row distance, dots one "
        "transport on drawn rows, one symbol a batch size: all batch sizes coincide. Top right: the "
        "generalisation gap of models trained on sampled neighbours against Δ (dots: means over splits, "
        "±2 standard errors; along a line β grows from right to left): where Δ falls the gap rises, mean "
        f"rank correlation {correlation:.2f}. Bottom left: squared Wasserstein-2 distance of sampled and "
        "full means (dots) between its Gaussian lower bound and the cost of the sampling coupling. "
        "Bottom right: test loss, its PAC-Bayes bound, and the bound with its divergence read as 0; the "
        "boxes hold half of the labellings and the whiskers 95 %."
    )
    return {"E4-wasserstein": (figure, caption)}


def _delta(axis: Any, dataset: xr.Dataset) -> None:
    part = dataset.sel(transport_kind=KIND, transport_graph="power law")
    fan_outs = part["transport_fan_out"].values
    axis.plot(
        fan_outs,
        part["transport_delta"].isel(transport_batch_size=0),
        color=COLORS[0],
        label="optimal transport + mean row distance",
    )
    axis.plot(
        fan_outs,
        part["transport_delta_full"].isel(transport_batch_size=0),
        color="black",
        linestyle=":",
        linewidth=1.0,
        label="its part that stays with all neighbours",
    )
    for size, marker, width in zip(
        part["transport_batch_size"].values, MARKERS, (10, 7, 4), strict=False
    ):
        axis.plot(
            fan_outs,
            part["transport_whole"].sel(transport_batch_size=size),
            marker,
            color=COLORS[1],
            markersize=width,
            fillstyle="none",
            label=f"one transport on drawn rows, $b={size}$",
        )
    axis.set_xscale("log")
    axis.set_xticks(fan_outs, [str(value) for value in fan_outs])
    axis.minorticks_off()
    axis.set_ylim(bottom=0.0)
    axis.set_title("graph distance $\\Delta(\\beta,b)$, power-law graph")
    axis.set_xlabel("fan-out $\\beta$")
    axis.set_ylabel("$\\Delta$ (trace)")
    axis.legend()


def _gap(axis: Any, dataset: xr.Dataset) -> None:
    for color, marker, case in zip(COLORS, MARKERS, dataset["transport_case"].values, strict=False):
        part = dataset.sel(transport_case=case)
        mean, error = mean_and_error(part["transport_gap"], "transport_seed")
        axis.errorbar(
            part["transport_case_delta"].mean("transport_seed"),
            mean,
            error,
            fmt=f"{marker}-",
            color=color,
            markersize=4,
            linewidth=0.9,
            label=str(case),
        )
    axis.axhline(0.0, color="black", linewidth=0.8)
    axis.set_title("generalisation gap against $\\Delta$")
    axis.set_xlabel("$\\Delta$ (trace) of the split")
    axis.set_ylabel("test minus training loss (½ mean square)")
    axis.legend()


def _laws(axis: Any, dataset: xr.Dataset) -> None:
    fan_outs = dataset["transport_law_fan_out"].values
    axis.plot(
        fan_outs,
        dataset["transport_mean_trace"],
        color=COLORS[1],
        label="upper bound: sampling coupling, mean tr V",
    )
    axis.plot(
        fan_outs,
        dataset["transport_gelbrich_squared"],
        color=COLORS[0],
        label="lower bound: Gaussians of the same moments",
    )
    mean, error = mean_and_error(dataset["transport_w2_squared"], "transport_law_seed")
    axis.errorbar(
        fan_outs,
        mean,
        error,
        fmt="o",
        color="black",
        markersize=4,
        label="simulated, features of two classes",
    )
    axis.set_yscale("log")
    axis.set_xticks(fan_outs)
    axis.set_ylim(top=6.0 * float(dataset["transport_mean_trace"].max()))  # room for the legend
    axis.set_title("distance of sampled means from full means")
    axis.set_xlabel("fan-out $\\beta$")
    axis.set_ylabel("squared Wasserstein-2 distance")
    axis.legend()


def _bound(axis: Any, dataset: xr.Dataset) -> None:
    fan_outs = dataset["transport_bound_fan_out"].values
    shown = {
        "transport_train_loss": "training loss",
        "transport_test_loss": "test loss",
        "transport_bound_without": "PAC-Bayes, divergence read as 0",
        "transport_bound": "PAC-Bayes bound",
    }
    for place, (name, label) in enumerate(shown.items()):
        quantiles = dataset[name].quantile([0.025, 0.25, 0.5, 0.75, 0.975], "transport_label_seed")
        columns = quantiles.transpose("transport_bound_fan_out", "quantile").values
        boxes = [
            {"whislo": low, "q1": first, "med": middle, "q3": third, "whishi": high}
            for low, first, middle, third, high in columns
        ]
        drawn = axis.bxp(
            boxes,
            positions=np.arange(len(fan_outs)) + 0.2 * (place - 1.5),
            widths=0.16,
            showfliers=False,
            patch_artist=True,
            boxprops={"facecolor": COLORS[place], "alpha": 0.6},
            medianprops={"color": "black"},
        )
        drawn["boxes"][0].set_label(label)
    axis.set_xticks(range(len(fan_outs)), [str(value) for value in fan_outs])
    axis.set_ylim(0.0, 1.19)
    axis.set_title("0-1 loss and its bound")
    axis.set_xlabel("fan-out $\\beta$ in training")
    axis.set_ylabel("loss")
    axis.legend(ncols=2, loc="upper center")
