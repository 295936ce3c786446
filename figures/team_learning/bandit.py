"""Figure of bandit feedback: sample complexity over team size, and failures in shuffled designs."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style

LEARNERS = {
    "joint": ("one agent, $A^K$ joint actions", COLORS[0], "o"),
    "judge": ("team, full factorial, one judge", COLORS[4], "^"),
    "outcome": ("team, full factorial, mean outcome", COLORS[1], "s"),
    "own": ("team, own rewards", COLORS[2], "D"),
}


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`F1-bandit`."""
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.4), width_ratios=(1.35, 1))
        _needed(axes[0], dataset)
        _shuffled(axes[1], dataset)
    caption = (
        "Trajectories until every agent's best action is found (additive task, four actions each, gap "
        "0.5, own noise 1, failure 0.1). Left: exact sample complexities (lines) and measured ones "
        "(dots; two standard errors are smaller). One agent that doesn't know the structure pays A to "
        "the K; a team with own rewards hardly notices its size, and the team's reward costs it K times "
        "as much, or K² if one judge's noise doesn't average. Dashes: shuffled teammates add their "
        "variance, little here. Dotted: bounds from above (finite classes) and from below (change of "
        "measure) for one agent and for own rewards, of the right shape and off by factors. Right: share "
        "of failures when teammates' actions are shuffled and agents have little noise of their own. "
        "Mean outcomes (dots, ±2 standard errors) follow the line with teammates' variance, not the one "
        "without; an additive fit (squares) removes it, at the price of its coefficients."
    )
    return {"F1-bandit": (figure, caption)}


def _needed(axis: Any, dataset: xr.Dataset) -> None:
    four = np.flatnonzero(dataset["bandit_actions"].values == 4)
    part = dataset.isel(bandit_cell=four)
    agents = part["bandit_agents"].values
    for learner, (label, color, marker) in LEARNERS.items():
        one = part.sel(bandit_learner=learner)
        axis.plot(agents, one["bandit_exact"], color=color)
        mean, error = mean_and_error(one["bandit_measured"], "bandit_seed")
        axis.errorbar(agents, mean, error, fmt=marker, color=color, markersize=4.5, label=label)
        if learner in ("joint", "own"):
            for bound in ("above", "below"):
                axis.plot(agents, one[f"bandit_{bound}"], ":", color=color, linewidth=1.1)
    axis.plot(
        agents, part["bandit_shared"], "--", color=COLORS[3], label="team, shared reward, shuffled"
    )
    axis.plot([], [], ":", color="black", linewidth=1.1, label="bounds above and below")
    axis.set_yscale("log")
    axis.set_xticks(agents)
    axis.set_title("sample complexity, four actions an agent")
    axis.set_xlabel("agents $K$")
    axis.set_ylabel("trajectories $N$ (all agents act in each)")
    axis.legend(loc="upper left")


def _shuffled(axis: Any, dataset: xr.Dataset) -> None:
    fine = dataset["bandit_fine"]
    lines = {
        "shared_theory": ("with teammates' variance", COLORS[3], "-"),
        "fitted_theory": ("additive fit, $N$ less its coefficients", COLORS[1], "-"),
        "independent": ("i.i.d. noise alone", "black", ":"),
    }
    for name, (label, color, dashes) in lines.items():
        axis.plot(fine, dataset[f"bandit_{name}_fine"], dashes, color=color, label=label)
    dots = {
        "shared": ("simulated, mean outcomes", COLORS[3], "o"),
        "fitted": ("simulated, additive fit", COLORS[1], "s"),
    }
    for name, (label, color, marker) in dots.items():
        mean, error = mean_and_error(dataset[f"bandit_{name}_failure"], "bandit_seed")
        axis.errorbar(
            dataset["bandit_budget"],
            mean,
            error,
            fmt=marker,
            color=color,
            markersize=5,
            capsize=2,
            label=label,
        )
    axis.set_yscale("log")
    axis.set_yticks([0.02, 0.05, 0.1, 0.2, 0.5], ["0.02", "0.05", "0.1", "0.2", "0.5"])
    axis.minorticks_off()
    axis.set_title("shared rewards, shuffled teammates ($A=4$, $K=3$)")
    axis.set_xlabel("trajectories $N$")
    axis.set_ylabel("share of trials with any agent wrong")
    axis.legend()
