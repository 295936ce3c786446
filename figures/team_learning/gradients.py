"""Figures of policy gradients: speed at the start, and what symmetry and the reward cost later."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style

NAMED = {"needle": "v", "additive": "s", "parity": "D", "two together": "^"}


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`F6-speed` and `F10-symmetry`."""
    return {"F6-speed": _speed(dataset), "F10-symmetry": _symmetry(dataset)}


def _speed(dataset: xr.Dataset) -> tuple[Any, str]:
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.8), width_ratios=(1.6, 1))
        _ratios(axes[0], dataset)
        _signals(axes[1], dataset)
    caption = (
        "Who starts faster. Left: squared gradient at uniform policies, that of a team over that of one "
        "agent with a logit for each joint action (markers, by automatic differentiation), against the "
        "alignment of the reward: on the line A^(K−1) times the alignment for any reward, random ones "
        "(dots) too. A team starts faster to the right of the dotted threshold A^−(K−1). Right: squared "
        "mean over mean square of a REINFORCE estimate from one trajectory (dots, ±2 standard errors) "
        "where each agent has a score of its own or all share the mean score with the mean noise: "
        "K = 3 times apart (lines)."
    )
    return figure, caption


def _ratios(axis: Any, dataset: xr.Dataset) -> None:
    sizes = dataset["gradients_size"].values
    for color, size in zip(COLORS, dict.fromkeys(sizes), strict=False):
        part = dataset.isel(gradients_reward=np.flatnonzero(sizes == size))
        part = part.sortby("gradients_alignment")
        x = part["gradients_alignment"].values
        axis.plot(
            x, part["gradients_theory"], color=color, linewidth=1.0, label=f"theory, ${size}$"
        )
        names = [str(name).split(", ")[-1] for name in part["gradients_reward"].values]
        for kind, marker in {"random": ".", **NAMED}.items():
            at = np.array([name.startswith(kind) for name in names])
            axis.plot(
                x[at],
                part["gradients_ratio"].values[at],
                marker,
                color=color,
                markersize=4 if kind == "random" else 5.5,
                markerfacecolor=color if kind == "random" else "white",
            )
        axis.axvline(
            1 / float(part["gradients_additive"][0]), color=color, linestyle=":", linewidth=1.0
        )
    for kind, marker in {"random": ".", **NAMED}.items():
        axis.plot([], [], marker, color="black", markerfacecolor="white", markersize=5, label=kind)
    axis.axhline(1.0, color="black", linewidth=0.8)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_title("slope at uniform policies, team / one agent")
    axis.set_xlabel("alignment $A_1$ of the reward")
    axis.set_ylabel("ratio of slopes")
    axis.legend(ncols=2)


def _signals(axis: Any, dataset: xr.Dataset) -> None:
    place = np.arange(dataset.sizes["gradients_reinforce"])
    mean, error = mean_and_error(dataset["gradients_signal"], "gradients_seed")
    for at, level in zip(place, dataset["gradients_signal_theory"].values, strict=True):
        axis.plot([at - 0.3, at + 0.3], [level, level], color=COLORS[0])
    axis.plot([], [], color=COLORS[0], label="theory")
    axis.errorbar(place, mean, error, fmt="o", color="black", markersize=4, label="drawn")
    labels = [f"{name} reward" for name in dataset["gradients_reinforce"].values]
    axis.set_xticks(place, labels)
    axis.set_xlim(-0.6, len(place) - 0.4)
    axis.set_ylim(bottom=0.0)
    axis.set_title("signal to noise of REINFORCE")
    axis.set_xlabel("what agents are paid")
    axis.set_ylabel(r"$\|\mathrm{E}\hat g\|^2/\mathrm{E}\|\hat g\|^2$ (1/trajectory)")
    axis.legend()


def _symmetry(dataset: xr.Dataset) -> tuple[Any, str]:
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.8))
        _trap(axes[0], dataset)
        _hitting(axes[1], dataset)
    trap, level = float(dataset["gradients_trap"]), float(dataset["gradients_level"][-1])
    caption = (
        "What exact gradients reach, and when. Left: regret under parity (A = 4, K = 3) along gradient "
        "flow. A team whose agents start alike follows the equation of one of them (line; crosses by "
        f"Runge–Kutta steps) to the symmetric maximiser, regret {trap:.4f} (dotted); noise on the first "
        "logits frees it if it differs between agents (mean of runs, band from least to largest), not if "
        "it is the same for all (square). One agent with a logit for each joint action starts slower and "
        f"isn't trapped. Right: time until the best action has probability {level:g}, against the number "
        "of agents: closed forms (lines) and flows at K = 3 (dots)."
    )
    return figure, caption


def _trap(axis: Any, dataset: xr.Dataset) -> None:
    times = dataset["gradients_time"].values
    axis.plot(
        times,
        dataset["gradients_symmetric_theory"],
        color=COLORS[0],
        label="team, all alike (theory)",
    )
    axis.plot(
        times,
        dataset["gradients_symmetric"],
        "x",
        color="black",
        markersize=4,
        label="team, all alike",
    )
    free = dataset["gradients_noisy"]
    axis.plot(times, free.mean("gradients_seed"), color=COLORS[1], label="noise .01 on each")
    axis.fill_between(
        times,
        free.min("gradients_seed"),
        free.max("gradients_seed"),
        color=COLORS[1],
        alpha=0.25,
        linewidth=0,
    )
    axis.plot(
        [1000.0],
        [float(dataset["gradients_escaped_tied"].mean())],
        "s",
        color=COLORS[4],
        label="noise .01, the same for all",
    )
    axis.plot(times, dataset["gradients_joint"], color=COLORS[2], label="one agent, all actions")
    axis.axhline(float(dataset["gradients_trap"]), color="black", linestyle=":", linewidth=1.0)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_title("regret under parity, exact gradients")
    axis.set_xlabel("flow time $t$")
    axis.set_ylabel("regret (reward)")
    axis.legend(loc="lower left")


def _hitting(axis: Any, dataset: xr.Dataset) -> None:
    labels = ("own reward", "team's mean", "one agent, needle")
    agents = dataset["gradients_agents"].values
    for color, label, learner in zip(
        COLORS, labels, dataset["gradients_learner"].values, strict=False
    ):
        part = dataset.sel(gradients_learner=learner)
        axis.plot(agents, part["gradients_hitting_growth"], color=color, label=label)
        axis.plot([3], part["gradients_hitting"].values[-1:], "o", color=color, markersize=5)
    axis.set_yscale("log")
    axis.set_xticks(agents)
    axis.set_title(f"time to probability {float(dataset['gradients_level'][-1]):g}, $A=4$")
    axis.set_xlabel("agents $K$")
    axis.set_ylabel("flow time")
    axis.legend()
