"""Figure of the regression task: risks against samples, the crossovers, risks by subtask."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style

LEARNERS = {
    "sarl": ("one agent", COLORS[0], "o"),
    "aware": ("team that knows the coupling", COLORS[2], "s"),
    "blind": ("blind team", COLORS[1], "^"),
}


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`F8-regression`."""
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(2, 2, figsize=(9.6, 7.0))
        _risks(axes[0, 0], dataset, 0.0)
        _risks(axes[0, 1], dataset, float(dataset["regression_coupled"][0]))
        _subtasks(axes[1, 0], dataset)
        _crossovers(axes[1, 1], dataset)
    stars = dataset["regression_crossover"].values
    ratio = dataset["regression_paper_ratio"].sel(regression_agents=4).values.flat[0]
    caption = (
        "The paper's regression task: four subtasks of three inputs, labels with noise of variance 2. "
        "Top: mean excess risk over runs (dots, ±2 standard errors) on the exact curves. Left, "
        "independent subtasks: a team with n samples does what one agent does with K(n − 1) + 1. Right, "
        "labels coupled by the mean of earlier ones, λ = 0.5: a team that knows it keeps its whole lead; "
        "a blind one levels off at what it misses (dotted) and falls behind one agent at "
        f"n* = {stars[0]:.1f}. Bottom left: at λ = 1 noise handed down raises the risk of later "
        "subtasks; crosses show the team's if earlier labels were independent. Bottom right: n* over λ, "
        f"{stars[-1]:.1f} at λ = 1; markers show who had the smaller mean risk at the simulated sizes. "
        "The paper's condition for teams (dashes; as its reviews give it, with equal logarithms) is "
        f"sufficient, but admits them only at {ratio:.2f} times the root mean square error."
    )
    return {"F8-regression": (figure, caption)}


def _risks(axis: Any, dataset: xr.Dataset, coupling: float) -> None:
    part = dataset.sel(regression_coupling=coupling)
    shown = dict(LEARNERS)
    if coupling == 0.0:  # the two teams are one
        del shown["blind"]
    for learner, (label, color, marker) in shown.items():
        if coupling == 0.0 and learner == "aware":
            label = "team"
        axis.plot(part["regression_fine"], part[f"regression_curve_{learner}"], color=color)
        mean, error = mean_and_error(part[f"regression_risk_{learner}"], "regression_seed")
        axis.errorbar(
            part["regression_samples"],
            mean,
            error,
            fmt=marker,
            color=color,
            markersize=4,
            label=label,
        )
    if coupling > 0.0:
        star = float(dataset["regression_crossover"].sel(regression_coupled=coupling))
        missed = float(
            dataset["regression_misalignment"].sel(regression_agents=4, regression_coupled=coupling)
        )
        axis.axvline(star, color="black", linewidth=1.0, linestyle="--")
        axis.text(star * 0.97, 2.0, "$n^*$", ha="right", va="center")
        axis.axhline(missed**2, color=COLORS[1], linewidth=1.0, linestyle=":")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_ylim(0.02, 4.0)
    ticks = (20, 40, 80, 160)
    axis.set_xticks(ticks, [str(tick) for tick in ticks])
    axis.minorticks_off()
    name = (
        "independent subtasks" if coupling == 0.0 else f"coupled subtasks, $\\lambda={coupling:g}$"
    )
    axis.set_title(name)
    axis.set_xlabel("samples $n$ (trajectories)")
    axis.set_ylabel("mean excess risk (own labels)")
    axis.legend(loc="lower left")


def _subtasks(axis: Any, dataset: xr.Dataset) -> None:
    coupling = float(dataset["regression_coupled"][-1])
    part = dataset.sel(regression_coupling=coupling)
    place = part["regression_subtask"].values
    for shift, (learner, (label, color, marker)) in enumerate(LEARNERS.items()):
        axis.plot(place, part[f"regression_subtask_theory_{learner}"], color=color, linewidth=1.0)
        mean, error = mean_and_error(part[f"regression_subtask_{learner}"], "regression_seed")
        axis.errorbar(
            place + 0.05 * (shift - 1),
            mean,
            error,
            fmt=marker,
            color=color,
            markersize=4,
            label=label,
        )
    axis.plot(
        place,
        part["regression_subtask_wrong"],
        "x",
        color="black",
        markersize=5,
        label="team, earlier labels independent",
    )
    axis.set_yscale("log")
    axis.set_ylim(0.08, 30.0)
    axis.set_xticks(place)
    axis.set_title(f"by subtask, $n=60$, $\\lambda={coupling:g}$")
    axis.set_xlabel("subtask $i$")
    axis.set_ylabel("excess risk (own labels)")
    axis.legend(loc="upper left")


def _crossovers(axis: Any, dataset: xr.Dataset) -> None:
    strength = dataset["regression_strength"]
    axis.plot(strength, dataset["regression_crossover_curve"], color="black", label="$n^*$, exact")
    axis.plot(
        strength,
        dataset["regression_crossover_curve_paper"],
        "--",
        color=COLORS[3],
        label="the paper's condition for teams",
    )
    means = {
        learner: dataset[f"regression_risk_{learner}"].mean("regression_seed")
        for learner in LEARNERS
    }
    for coupling in dataset["regression_coupled"].values:
        blind, single = (
            means[who].sel(regression_coupling=coupling).values for who in ("blind", "sarl")
        )
        sizes = dataset["regression_samples"].values
        for ahead, (label, color, marker) in (
            (blind < single, LEARNERS["blind"]),
            (blind >= single, LEARNERS["sarl"]),
        ):
            first = coupling == dataset["regression_coupled"].values[0]
            axis.plot(
                np.full(ahead.sum(), coupling),
                sizes[ahead],
                marker,
                color=color,
                markersize=4.5,
                label=f"{label} ahead" if first else None,
            )
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks((0.2, 0.5, 1.0, 3.0), ("0.2", "0.5", "1", "3"))
    axis.set_yticks((20, 50, 100, 200, 500, 1000), ("20", "50", "100", "200", "500", "1000"))
    axis.minorticks_off()
    axis.set_title("who is ahead: blind team or one agent")
    axis.set_xlabel(r"coupling $\lambda$")
    axis.set_ylabel("samples $n$ (trajectories)")
    axis.legend(loc="upper right")
