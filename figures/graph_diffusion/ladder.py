"""Figure of the ladder of errors: exact, path bound, Lipschitz bound, shapes; orders; drawn variances."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style

SCHEMES = {
    "exponential_integrator": ("exponential integrator", "o", COLORS[0]),
    "euler_maruyama": ("Euler–Maruyama", "s", COLORS[1]),
    "ancestral": ("ancestral", "^", COLORS[2]),
    "probability_flow": ("probability flow", "D", COLORS[3]),
}
EIGENVALUE = 3.0


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`E4-ladder`."""
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(2, 2, figsize=(9.8, 7.4))
        part = dataset.sel(ladder_eigenvalue=EIGENVALUE)
        _rungs(axes[0, 0], part)
        _schemes(axes[0, 1], part)
        _cases(axes[1, 0], dataset)
        _drawn(axes[1, 1], dataset)
    caption = (
        "The ladder of a sampler's error on Gaussian data. Top left: for the exponential integrator at "
        "λ = 3, T = 4 the exact KL falls as the square of the step, the path bound above it as the "
        "step, with the Lipschitz bound above that; grey curves are shapes of bounds whose constants "
        "aren't known (set to 1), whose height means nothing (KL on a geometric grid, total variation). "
        "Top right: exact KL of four schemes (dots) with the path bounds of two (dashed). Bottom left: "
        "the largest ratio of exact KL to bound over a grid of horizons, steps and kinds of grid: below "
        "1 with a scheme's own bound, but above it at large λ if the exponential integrator's is "
        "claimed of Euler–Maruyama. Bottom right: variances of drawn samples after 8 steps (dots, ±2 "
        "standard errors, smaller than the dots) over those of the recursion; crosses: over those of "
        "another scheme."
    )
    return {"E4-ladder": (figure, caption)}


def _rungs(axis: Any, part: xr.Dataset) -> None:
    steps = part["ladder_steps"].values
    first = "exponential_integrator"
    start = float(part["ladder_start"])
    lines = {
        "Lipschitz bound": (start + part["ladder_lipschitz"], "v--", COLORS[3]),
        "path bound": (part["ladder_bound"].sel(ladder_bounded=first), "s--", COLORS[1]),
        "exact KL": (part["ladder_kl"].sel(ladder_scheme=first), "o-", COLORS[0]),
    }
    axis.plot(
        steps, part["ladder_benton"], ":", color="grey", label="shape of a KL bound, constant 1"
    )
    axis.plot(
        steps,
        part["ladder_chen"],
        "-.",
        color="grey",
        label="shape of a TV bound, constant 1",
    )
    for label, (values, look, color) in lines.items():
        axis.plot(steps, values, look, color=color, markersize=4, label=label)
    _log_log(axis, steps)
    axis.set_title(rf"exponential integrator, $\lambda={EIGENVALUE:g}$")
    axis.set_ylabel("KL (nats); TV for its shape")
    axis.set_ylim(bottom=1e-9)
    axis.legend(fontsize=7, loc="lower left")


def _schemes(axis: Any, part: xr.Dataset) -> None:
    steps = part["ladder_steps"].values
    for name in part["ladder_scheme"].values:
        label, marker, color = SCHEMES[str(name)]
        values = part["ladder_kl"].sel(ladder_scheme=name)
        axis.plot(steps, values, f"{marker}-", color=color, markersize=4, label=label)
    for name in part["ladder_bounded"].values:
        label, _, color = SCHEMES[str(name)]
        axis.plot(
            steps,
            part["ladder_bound"].sel(ladder_bounded=name),
            "--",
            color=color,
            label=f"bound, {label}",
        )
    axis.axhline(float(part["ladder_start"]), color="black", linewidth=0.8, label="start alone")
    _log_log(axis, steps)
    axis.set_title(rf"four schemes, $\lambda={EIGENVALUE:g}$")
    axis.set_ylabel("KL (nats)")
    axis.set_ylim(bottom=1e-10)
    axis.legend(fontsize=7, loc="lower left", ncols=2)


def _cases(axis: Any, dataset: xr.Dataset) -> None:
    own = dataset["ladder_case_kl"] / dataset["ladder_case_bound"]
    second = dataset["ladder_case_kl"].sel(ladder_bounded="euler_maruyama")
    shown = {
        "exponential integrator": (own.sel(ladder_bounded="exponential_integrator"), "o-"),
        "Euler–Maruyama": (own.sel(ladder_bounded="euler_maruyama"), "s-"),
        "score off, its bound": (dataset["ladder_error_kl"] / dataset["ladder_error_bound"], "^-"),
        "Euler–Maruyama, the other's bound": (second / dataset["ladder_case_swapped"], "x--"),
    }
    for (label, (ratio, look)), color in zip(shown.items(), COLORS, strict=False):
        worst = ratio.max([dim for dim in ratio.dims if dim != "ladder_case_eigenvalue"])
        cases = dataset["ladder_case_eigenvalue"]
        axis.plot(cases, worst, look, color=color, markersize=4, label=label)
    axis.axhline(1.0, color="black", linewidth=1.0)
    axis.set_xscale("log")
    axis.set_ylim(bottom=0.0)
    axis.set_title("largest ratio over horizons, steps and grids")
    axis.set_xlabel(r"eigenvalue $\lambda$")
    axis.set_ylabel("exact KL / bound")
    axis.legend(fontsize=7)


def _drawn(axis: Any, dataset: xr.Dataset) -> None:
    modes = dataset["ladder_mode"].values
    for shift, name in zip(
        (-0.24, -0.08, 0.08, 0.24), dataset["ladder_scheme"].values, strict=True
    ):
        label, marker, color = SCHEMES[str(name)]
        part = dataset.sel(ladder_scheme=name)
        place = np.arange(len(modes)) + shift
        mean, error = mean_and_error(
            part["ladder_variance"] / part["ladder_variance_theory"], "ladder_seed"
        )
        axis.errorbar(place, mean, error, fmt=marker, color=color, markersize=4, label=label)
        wrong = part["ladder_variance"].mean("ladder_seed") / part["ladder_variance_other"]
        axis.plot(place, wrong, "x", color=color, markersize=4)
    axis.axhline(1.0, color="black", linewidth=1.0)
    axis.set_yscale("log")
    axis.set_yticks([0.25, 0.5, 1.0, 2.0, 4.0], ["1/4", "1/2", "1", "2", "4"])
    axis.minorticks_off()
    names = [
        str(mode).replace(", ", "\n").replace("score 30 % too large", "score +30 %")
        for mode in modes
    ]
    axis.set_xticks(np.arange(len(modes)), names, fontsize=7)
    axis.set_title("variance of drawn samples over theory, $N=8$")
    axis.set_xlabel("mode")
    axis.set_ylabel("ratio")
    axis.legend(fontsize=7, ncols=2)


def _log_log(axis: Any, steps: np.ndarray) -> None:
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(steps, [f"{value:g}" for value in steps])
    axis.minorticks_off()
    axis.set_xlabel("steps $N$")
