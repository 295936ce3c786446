"""Figure of delayed gradients: where SGD stops being stable, and how its gradients correlate."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style

# Every eighth simulated mode is drawn.
DRAWN = slice(7, None, 8)


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`F8-delays`."""
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(1, 3, figsize=(11.0, 3.9), width_ratios=(1, 1.35, 1.15))
        _limits(axes[0], dataset)
        _correlations(axes[1], dataset)
        _squares(axes[2], dataset)
        handles, labels = axes[1].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    simulated = [int(d) for d in dataset["delays_simulated"].values]
    share = float(dataset["delays_mode_share"].max())
    caption = (
        "SGD whose gradients are τ updates old, on quadratics. Left: the step a = ηλ at which it stops "
        "being stable (line), where runs without noise neither grow nor shrink (dots), and the step up "
        "to which it can come in without oscillating. Middle: correlation of two consecutive gradients, "
        "noise included, of one mode against its step: negative without delay, positive with any, and "
        "close to 1 at the limit if the delay is long (open circles: cos(π/(2τ+1))). Right: mean square "
        "of a gradient over that of its noise, which grows without bound. Lines are closed forms; dots, "
        f"with ±2 standard errors, are runs at delays of {', '.join(map(str, simulated))} with 64 modes "
        f"at once, up to {share:g} of the limit."
    )
    return {"F8-delays": (figure, caption)}


def _limits(axis: Any, dataset: xr.Dataset) -> None:
    delays = dataset["delays_delay"].values
    axis.plot(delays, dataset["delays_limit_theory"], color="black", label="limit $a_c$")
    axis.plot(
        dataset["delays_stale"],
        dataset["delays_turn_theory"],
        color="black",
        linestyle="--",
        label="without oscillating",
    )
    axis.plot(
        dataset["delays_simulated"],
        dataset["delays_boundary"],
        "o",
        color=COLORS[1],
        markersize=5,
        label="simulated runs",
    )
    axis.set_xscale("symlog", linthresh=1.0)
    axis.set_yscale("log")
    axis.set_xticks(delays, [str(d) for d in delays])
    axis.set_xlim(-0.15, 1.25 * delays[-1])
    axis.set_title("stability")
    axis.set_xlabel("delay τ (updates)")
    axis.set_ylabel("step $a = \\eta\\lambda$")
    axis.legend(loc="lower left")


def _correlations(axis: Any, dataset: xr.Dataset) -> None:
    axis.axhline(0.0, color="black", linewidth=0.8)
    _curves(axis, dataset, "delays_correlation_theory", "delays_mode_correlation")
    for color, delay in zip(COLORS, dataset["delays_delay"].values, strict=False):
        if delay:
            edge = float(dataset["delays_edge_theory"].sel(delays_stale=delay))
            axis.plot([1.0], [edge], "o", color=color, markerfacecolor="white", clip_on=False)
    axis.set_ylim(-1.05, 1.05)
    axis.set_title("correlation of consecutive gradients")
    axis.set_ylabel(r"$\mathrm{E}\,g_tg_{t-1}/\mathrm{E}\,g_t^2$")


def _squares(axis: Any, dataset: xr.Dataset) -> None:
    _curves(axis, dataset, "delays_second_theory", "delays_square")
    axis.set_yscale("log")
    axis.set_title("mean square of a gradient")
    axis.set_ylabel(r"$\mathrm{E}\,g^2/\sigma^2$")


def _curves(axis: Any, dataset: xr.Dataset, theory: str, simulated: str) -> None:
    """Theory against the step in units of the limit, a colour a delay, with the simulated modes."""
    shares = dataset["delays_share"].values
    for color, delay in zip(COLORS, dataset["delays_delay"].values, strict=False):
        curve = dataset[theory].sel(delays_delay=delay)
        axis.plot(shares, curve, color=color, linewidth=1.3, label=f"τ = {delay}")
        if delay not in dataset["delays_simulated"].values:
            continue
        runs = dataset.sel(delays_simulated=delay).isel(delays_mode=DRAWN)
        mean, error = mean_and_error(runs[simulated], "delays_seed")
        axis.errorbar(
            runs["delays_mode_share"],
            mean,
            error,
            fmt="o",
            color=color,
            markersize=3.5,
            linewidth=1.0,
        )
    axis.set_xlim(0.0, 1.0)
    axis.set_xticks(np.linspace(0.0, 1.0, 6))
    axis.set_xlabel("step / limit $a/a_c$")
