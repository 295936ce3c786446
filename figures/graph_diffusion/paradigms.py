"""Figure of the three paradigms: exact error and bound, Fisher information by partner, and samples."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style

MARKERS = ("o", "s", "^")
DASHES = {"features": "-", "structure": "--"}


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`E5-paradigms`."""
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(2, 2, figsize=(9.6, 6.8))
        _errors(axes[0, 0], dataset)
        _gaussian(axes[0, 1], dataset)
        _block_model(axes[1, 0], dataset)
        _samples(axes[1, 1], dataset)
    looseness = dataset["paradigms_bound"] / dataset["paradigms_kl"]
    first, last = (looseness.isel(paradigms_steps=place) for place in (0, -1))
    caption = (
        "The three paradigms. Top left: exact KL (solid) and bound (dashed) for a Gaussian system "
        "against the number of steps; crosses: structure first, then features given it. Over the "
        f"paradigms the bound is {float(first.min()):.0f} to {float(first.max()):.0f} times the error at "
        f"the fewest steps, {float(last.min()):.0f} to {float(last.max()):.0f} times at the most. "
        "Top right: "
        "Fisher information of features (solid) and of structure (dashed) in that system with a clean, "
        "a noisy and no partner. Bottom left: the same for a block model whose labels are enumerated, as "
        "a share of what known labels give (dots: means over draws, ±2 standard errors, joined to guide "
        "the eye; circles features, squares structure). Bottom right: in that model, bound and lower "
        "bound of the KL from samples (±2 standard errors) with exact scores, and with scores that don't "
        "see the partner, where samples show the mutual information and refute the bound."
    )
    return {"E5-paradigms": (figure, caption)}


def _errors(axis: Any, dataset: xr.Dataset) -> None:
    steps = dataset["paradigms_steps"].values
    names = dataset["paradigms_paradigm"].values
    for color, marker, name in zip(COLORS, MARKERS, names, strict=False):
        part = dataset.sel(paradigms_paradigm=name)
        axis.plot(
            steps, part["paradigms_kl"], f"{marker}-", color=color, markersize=4, label=str(name)
        )
        axis.plot(steps, part["paradigms_bound"], "--", color=color)
    axis.plot(
        steps,
        dataset["paradigms_two_stage"],
        "x:",
        color="black",
        label="structure, then features | structure",
    )
    axis.plot([], [], "--", color="grey", label="bound")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(steps, [str(value) for value in steps])
    axis.minorticks_off()
    axis.set_ylim(bottom=0.05 * float(dataset["paradigms_kl"].min()))  # room for the legend
    axis.set_title("Gaussian system: error and bound")
    axis.set_xlabel("steps $N$")
    axis.set_ylabel("KL (nats)")
    axis.legend(ncols=2, loc="lower left")


def _gaussian(axis: Any, dataset: xr.Dataset) -> None:
    times = dataset["paradigms_gauss_time"].values
    for color, partner in zip(COLORS, dataset["paradigms_partner"].values, strict=False):
        for block, dashes in DASHES.items():
            axis.plot(
                times,
                dataset["paradigms_gauss_fisher"].sel(
                    paradigms_partner=partner, paradigms_block=block
                ),
                dashes,
                color=color,
                label=f"partner {partner}" if block == "features" else None,
            )
    axis.plot([], [], "--", color="grey", label="structure (solid: features)")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_title("Gaussian system: Fisher information of a block")
    axis.set_xlabel("time $t$")
    axis.set_ylabel("$J_b(t)$")
    axis.legend()


def _block_model(axis: Any, dataset: xr.Dataset) -> None:
    times = dataset["paradigms_time"].values
    share = dataset["paradigms_fisher_posterior"] / dataset["paradigms_fisher_labels"]
    for color, partner in zip(COLORS, dataset["paradigms_partner"].values, strict=False):
        for marker, (block, dashes) in zip(MARKERS, DASHES.items(), strict=False):
            part = share.sel(paradigms_partner=partner, paradigms_block=block)
            mean, error = mean_and_error(part, "paradigms_seed")
            axis.errorbar(
                times,
                mean,
                error,
                fmt=f"{marker}{dashes}",
                color=color,
                markersize=4,
                linewidth=0.9,
                label=f"partner {partner}" if block == "features" else None,
            )
    alone = dataset["paradigms_fisher_alone"] / dataset["paradigms_fisher_labels"].sel(
        paradigms_block="features"
    )
    axis.plot(times, alone, ":", color="black", label="features alone, quadrature")
    axis.set_xscale("log")
    axis.set_xticks(times, [f"{value:g}" for value in times])
    axis.minorticks_off()
    axis.set_ylim(bottom=float(alone.min()) - 0.2)  # room for the legend
    axis.set_title("block model: Fisher information, share of labels'")
    axis.set_xlabel("time $t$")
    axis.set_ylabel("$J_b(t)\\,/\\,J_b(t\\,|\\,$labels$)$")
    axis.legend(ncols=2, loc="lower center")


def _samples(axis: Any, dataset: xr.Dataset) -> None:
    names = dataset["paradigms_paradigm"].values
    shown = {
        "paradigms_sbm_bound": ("bound for exact scores", "_"),
        "paradigms_sbm_lower": ("from samples, exact scores", "o"),
        "paradigms_sbm_marginal": ("from samples, marginal scores", "s"),
    }
    for place, (name, (label, marker)) in enumerate(shown.items()):
        mean, error = mean_and_error(dataset[name], "paradigms_run_seed")
        axis.errorbar(
            np.arange(len(names)) + 0.15 * (place - 1),
            mean,
            error,
            fmt=marker,
            color=COLORS[place],
            markersize=12 if marker == "_" else 5,
            label=label,
        )
    information = dataset["paradigms_sbm_information"].mean("paradigms_run_seed")
    axis.plot(
        np.arange(len(names)),
        information,
        "x",
        color="black",
        label="mutual information",
    )
    axis.axhline(0.0, color="black", linewidth=0.8)
    axis.set_xticks(range(len(names)), [str(name).replace(" | ", "\n| ") for name in names])
    axis.set_xlim(-0.5, len(names) - 0.5)
    axis.set_ylim(top=1.45 * float(information.max()))  # room for the legend
    axis.set_title("block model: what samples show of the error")
    axis.set_xlabel("paradigm")
    axis.set_ylabel("KL (nats)")
    axis.legend(ncols=2, loc="upper center")
