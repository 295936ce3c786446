"""Figures of gradient alignment: cosines of consecutive gradients, and what control recovers."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, style

COLOR = {"fresh": COLORS[0], "stale": COLORS[1], "controlled": COLORS[2], "short": COLORS[3]}
NAMED = {
    "fresh": "fresh",
    "stale": "stale",
    "controlled": "stale, controlled",
    "short": "stale, half the limit",
}


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`F9-alignment` and `F10-recovery`."""
    return {"F9-alignment": _cosines(dataset), "F10-recovery": _recovery(dataset)}


def _cosines(dataset: xr.Dataset) -> tuple[Any, str]:
    import matplotlib.pyplot as plt

    delays = dataset["alignment_delay"].values
    with style():
        figure, axes = plt.subplots(1, len(delays) + 1, figsize=(3.6 * (len(delays) + 1), 3.6))
        for axis, delay in zip(axes, delays, strict=False):
            part = dataset.sel(alignment_delay=delay)
            _histograms(axis, part["alignment_histogram"], "alignment_kind")
            for age, predicted in zip(
                ("fresh", "stale"), part["alignment_mixture"].values, strict=True
            ):
                axis.axvline(predicted, color=COLOR[age], linestyle="--", linewidth=1.2)
            axis.set_title(f"quadratic, delay {delay}, 0.9 $\\eta_c$")
            axis.set_xlim(-0.75, 0.75)
        axes[0].plot([], [], "--", color="black", linewidth=1.2, label="predicted mean")
        axes[0].plot([], [], ":", color="black", linewidth=1.0, label="$c_{low}$")
        axes[0].legend(loc="upper left")
        bandit = dataset["alignment_bandit_histogram"]
        kept = [name for name in bandit["alignment_learner"].values if name != "short"]
        _histograms(axes[-1], bandit.sel(alignment_learner=kept), "alignment_learner")
        axes[-1].set_title(r"bandit, delay 8, 1.5 $\eta_c$")
        for axis in axes:
            axis.axvline(
                float(dataset["alignment_low"]), color="black", linestyle=":", linewidth=1.0
            )
            axis.set_xlabel("cosine of consecutive gradients")
        axes[0].set_ylabel("share of steps (%)")
    caption = (
        "Cosine of each gradient with the one before. Noisy quadratic at a stable step (64 modes, noise "
        "alike in all): slightly below 0 with fresh gradients, above 0 with stale ones, both around the "
        "closed form (dashed). Control projects whatever is right of c_low (dotted); shown are the "
        "cosines of its incoming gradients, which it shifts only a little here. Right: the entropic "
        "bandit past its limit, first steps of all runs. Its noise vanishes at the optimum, so fresh "
        "gradients align there, too: a high cosine alone doesn't show that gradients are stale."
    )
    return figure, caption


def _histograms(axis: Any, shares: xr.DataArray, dim: str) -> None:
    centres = shares["alignment_bin"].values
    for name in shares[dim].values:
        values = 100.0 * shares.sel({dim: name}).values
        axis.fill_between(centres, values, step="mid", color=COLOR[name], alpha=0.25, linewidth=0)
        axis.step(centres, values, where="mid", color=COLOR[name], label=NAMED[name], linewidth=1.2)
    # Room for the legend.
    axis.set_ylim(0.0, 1.3 * 100.0 * float(shares.max()))


def _recovery(dataset: xr.Dataset) -> tuple[Any, str]:
    import matplotlib.pyplot as plt

    delays = dataset["alignment_delay"].values
    with style():
        figure, axes = plt.subplots(1, len(delays) + 1, figsize=(3.6 * (len(delays) + 1), 3.6))
        _curves(axes[0], dataset["alignment_gap"], "alignment_bandit_seed")
        axes[0].set_title(r"bandit, delay 8, 1.5 $\eta_c$")
        axes[0].set_ylabel(r"gap $\beta\,\mathrm{KL}(\pi\,\|\,\pi^*)$ (reward)")
        axes[0].set_ylim(1e-16, 1e2)
        axes[0].legend(loc="lower left")
        for axis, delay in zip(axes[1:], delays, strict=True):
            _curves(axis, dataset["alignment_loss"].sel(alignment_delay=delay), "alignment_seed")
            axis.set_title(f"noisy quadratic, delay {delay}, 1.3 $\\eta_c$")
            axis.set_ylabel("loss")
            axis.set_ylim(0.05, 1e6)
        for axis in axes:
            axis.set_xlabel("update")
    caption = (
        "Learning at a step too long for the delay, in units of its limit η_c: median of runs, band "
        "from least to largest. With stale gradients the bandit never settles and the quadratic "
        "diverges; fresh ones bear the same step. With alignment control (c_low = .05) the bandit "
        "reaches its optimum nearly as with fresh gradients; the quadratic stays bounded, at several "
        "times the loss. Half of η_c without control is stable, too: slower on the bandit, and lower "
        "at the end on the quadratic than control at 1.3 η_c."
    )
    return figure, caption


def _curves(axis: Any, values: xr.DataArray, seed: str) -> None:
    steps = values["alignment_step"].values
    for name in values["alignment_learner"].values:
        runs = values.sel(alignment_learner=name)
        # Gaps may be 0 where logits are exact.
        runs = runs.clip(min=np.finfo(np.float64).tiny)
        axis.plot(steps, runs.median(seed), color=COLOR[name], label=NAMED[name])
        axis.fill_between(
            steps, runs.min(seed), runs.max(seed), color=COLOR[name], alpha=0.13, linewidth=0
        )
    axis.set_yscale("log")
