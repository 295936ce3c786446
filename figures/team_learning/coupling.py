"""Figures of coupled teams: regret against budget, the phase diagram, floors and what rules allow."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style

SHOWN = (0.0, 0.25, 0.35, 0.6)
LEARNERS = {
    "joint": ("one agent, outcome reward", COLORS[0], "o"),
    "own": ("team, own rewards", COLORS[1], "s"),
    "shared": ("team, shared reward", COLORS[2], "^"),
}
SEED = "coupling_seed"
ACCURACY = 0.1


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`F3-regret`, `F4-phases` and `F5-floors`."""
    return {
        "F3-regret": _regrets(dataset),
        "F4-phases": _phases(dataset),
        "F5-floors": _floors(dataset),
    }


def _regrets(dataset: xr.Dataset) -> tuple[Any, str]:
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(1, len(SHOWN), figsize=(11.6, 3.7), sharex=True, sharey=True)
        for axis, weight in zip(axes, SHOWN, strict=True):
            _regret_of(axis, dataset, weight)
        axes[0].set_ylabel("expected regret (team's reward)")
        handles, labels = axes[2].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    caption = (
        "Regret against budget for three agents of four actions whose rewards are coupled by a parity "
        "that pays λ (gap .6, own noise 1, outcome the mean score). Lines: exact laws; dots: simulated "
        "learners, ±2 standard errors. Without coupling the team is far ahead at every budget. With λ "
        "above Δ/K = .2 it stops at its floor λ − Δ/K (dotted), and one agent that compares all 64 joint "
        "actions passes it at the crossover N* (dashed; at λ = .6 it is ahead from N = 64 on)."
    )
    return figure, caption


def _regret_of(axis: Any, dataset: xr.Dataset, weight: float) -> None:
    budgets = dataset["coupling_budget"].values
    theory = dataset["coupling_regret_theory"].sel(coupling_weight=weight)
    simulated = dataset.sel(coupling_simulated_weight=weight)
    for name, (label, color, marker) in LEARNERS.items():
        axis.plot(budgets, theory.sel(coupling_learner=name), color=color, label=label)
        samples = simulated[f"coupling_regret_{name}"]
        places = dataset["coupling_simulated_budget"].values
        mean, error = mean_and_error(samples, SEED)
        few = np.atleast_1d(mean)
        axis.errorbar(
            places[: len(few)],
            few,
            np.atleast_1d(error),
            fmt=marker,
            color=color,
            markersize=4.5,
            markeredgecolor="black",
            markeredgewidth=0.5,
        )
    floor = float(theory.sel(coupling_learner="own")[-1])
    axis.axhline(
        floor if floor > 1e-6 else np.nan, color="black", linestyle=":", label="floor of the team"
    )
    crossing = float(dataset["coupling_crossover"].sel(coupling_weight=weight))
    if np.isfinite(crossing):
        axis.axvline(
            crossing, color="black", linestyle="--", linewidth=1.0, label="crossover $N^*$"
        )
        axis.text(crossing * 1.12, 0.49, f"$N^*={crossing:.0f}$", fontsize=8)
    axis.set_xscale("log")
    axis.set_ylim(-0.015, 0.52)
    axis.set_title(rf"$\lambda={weight:g}$")
    axis.set_xlabel("budget $N$ (trajectories)")


def _phases(dataset: xr.Dataset) -> tuple[Any, str]:
    import matplotlib.pyplot as plt

    weights, budgets = dataset["coupling_weight"].values, dataset["coupling_budget"].values
    regret = dataset["coupling_regret_theory"].transpose(
        "coupling_learner", "coupling_budget", "coupling_weight"
    )
    # Regrets below 1e-6 count as none.
    joint, own = (np.maximum(regret.sel(coupling_learner=n).values, 1e-6) for n in ("joint", "own"))
    with style():
        figure, axis = plt.subplots(figsize=(7.2, 4.4))
        mesh = axis.pcolormesh(
            weights,
            budgets,
            np.clip(np.log10(joint / own), -2.0, 2.0),
            cmap="RdBu",
            vmin=-2.0,
            vmax=2.0,
            shading="gouraud",
            rasterized=True,
        )
        bar = figure.colorbar(mesh, ax=axis, pad=0.02)
        bar.set_label(r"$\log_{10}$(regret of one agent / of the team)")
        crossing = dataset["coupling_crossover"].values
        axis.plot(weights, crossing, color="black", label="budget crossover $N^*$")
        exact = float(dataset["coupling_feasible"].sel(coupling_accuracy=ACCURACY))
        rule = float(dataset["coupling_feasible_rule"].sel(coupling_accuracy=ACCURACY))
        axis.axvline(
            exact,
            color=COLORS[4],
            linewidth=2.2,
            linestyle="--",
            label=rf"team reaches $\varepsilon={ACCURACY:g}$ up to $\lambda^*=\varepsilon+\Delta/K$",
        )
        axis.axvline(
            rule,
            color=COLORS[4],
            linewidth=2.2,
            linestyle=":",
            label=r"the rule $2\alpha<\varepsilon$ stops at $\lambda=\varepsilon$",
        )
        axis.grid(False)
        axis.set_yscale("log")
        axis.set_ylim(budgets[0], budgets[-1])
        axis.set_xlim(weights[0], weights[-1])
        axis.set_xlabel(r"coupling $\lambda$ (reward)")
        axis.set_ylabel("budget $N$ (trajectories)")
        axis.set_title("who is ahead: blue the team, red one agent")
        axis.legend(loc="upper right", frameon=True, framealpha=0.9)
    caption = (
        "Who is ahead by the exact laws, over coupling and budget: blue where the team with own rewards "
        "has the smaller expected regret, red where one agent has (colours end at a factor of 100; "
        "regrets below 1e-6 count as none). Below λ = Δ/K = .2 there is no crossover; above, N* "
        "(solid) falls to the least budget, one sample of each of the 64 joint actions. At accuracy "
        "ε = .1 a team can do the task up to λ* = ε + Δ/K (dashed); the rule of twice the misalignment "
        "(dotted), which third parties report of the paper, is sufficient but gives up at λ = ε."
    )
    return figure, caption


def _floors(dataset: xr.Dataset) -> tuple[Any, str]:
    import matplotlib.pyplot as plt

    strength = dataset["coupling_strength"].values
    with style():
        figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.9), sharey=True)
        left, right = axes
        order = dataset["coupling_floor_theory"].sel(coupling_kind="order")
        for signal, color, dashes in (("own", COLORS[1], "-"), ("shared", COLORS[2], "--")):
            left.plot(
                strength,
                order.sel(coupling_signal=signal),
                dashes,
                color=color,
                label=f"{signal} reward{'s' if signal == 'own' else ''}",
            )
        mean, error = mean_and_error(dataset["coupling_order_regret"], SEED)
        left.errorbar(
            dataset["coupling_order_simulated"],
            mean,
            error,
            fmt="o",
            color="black",
            markersize=4.5,
            label="simulated, shared reward",
        )
        left.set_title("two agents must switch together ($q=2$)")
        left.set_ylabel("regret that no budget removes (reward)")
        parity = dataset["coupling_floor"].sel(coupling_kind="parity", coupling_signal="own")
        right.plot(strength, parity, color=COLORS[1], label="floor of the team")
        programmed = dataset["coupling_programmed"].values
        sup = dataset["coupling_sup"].sel(coupling_kind="parity")
        raw = dataset["coupling_sup_raw"].sel(coupling_kind="parity")
        right.plot(
            programmed, 2 * sup, "o--", color="black", label=r"$2\alpha_0$, constant removed"
        )
        right.plot(programmed, 2 * raw, "s:", color=COLORS[0], label=r"$2\alpha$, not removed")
        right.set_ylim(-0.03, 1.15)
        right.set_title("parity, and twice its sup-distance")
        for axis in axes:
            axis.set_xlabel(r"coupling $\lambda$ (reward)")
            axis.legend(loc="upper left")
    caption = (
        "What is left with any number of trajectories, three agents of four actions, gap .6. Left: a "
        "coupling that pays λ if agents 1 and 2 both switch. Own rewards never find it and leave "
        "λ − 2Δ/K from .4 on; a shared reward shows it with weight λ/4 and finds it above λ = AΔ/K = .8. "
        "Dots: simulated learners whose noise is too small for errors. Right: parity's floor λ − Δ/K "
        "under twice the sup-distance from additive rewards, by linear programs (circles): a bound that "
        "is Δ/K = .2 too high. If no constant is taken off (squares) it doubles."
    )
    return figure, caption
