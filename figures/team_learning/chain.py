"""Figures of chains, of agents that respond one after another, of missing contexts and of tokens."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style

SEED = "chain_seed"


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`F7-chain` and `F7b-search`."""
    return {"F7-chain": _chain(dataset), "F7b-search": _search(dataset)}


def _chain(dataset: xr.Dataset) -> tuple[Any, str]:
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(2, 2, figsize=(9.6, 7.0))
        _ratio(axes[0, 0], dataset)
        _samples(axes[0, 1], dataset)
        _amplification(axes[1, 0], dataset)
        _attrition(axes[1, 1], dataset)
    agents = dataset["chain_agents"].values
    last = dataset.isel(chain_agents=-1)
    looser = [float(last[f"chain_union_{k}"] / last[f"chain_samples_{k}"]) for k in KINDS]
    caption = (
        "Dependent subtasks. Top left: exact minimax samples of one stage, dependent over independent, "
        "follow ((K+1)/2)², not the K² of the bounds. Top right: the samples themselves. Independent "
        "stages need ever fewer, since subtasks average; dependent ones grow about as K. Union bounds "
        f"(dashes) are {looser[0]:.0f} and {looser[1]:.0f} times too large at K = {agents[-1]}. Bottom "
        "left: what random errors (dots) and errors in one stage (crosses) cost in a chain over what "
        "they cost independent stages: between 1 and K, at most K + 1 less their mean stage (line). "
        "Bottom right: share of trajectories that reach a stage while all explore (dots, ±2 standard "
        "errors) on the product of mean successes; one minus the sum of failures is too low."
    )
    return figure, caption


KINDS = {"dependent": (COLORS[1], "o"), "independent": (COLORS[0], "s")}


def _ratio(axis: Any, dataset: xr.Dataset) -> None:
    agents = dataset["chain_agents"].values
    axis.plot(agents, dataset["chain_ratio_theory"], color=COLORS[0], label="$((K+1)/2)^2$")
    axis.plot(agents, dataset["chain_ratio_square"], "--", color=COLORS[1], label="$K^2$")
    axis.plot(agents, dataset["chain_ratio"], "o", color="black", markersize=4, label="exact")
    axis.set_yscale("log")
    axis.set_title("samples of a stage, dependent / independent")
    axis.set_xlabel("agents $K$, one a stage")
    axis.set_ylabel("ratio")
    axis.legend()


def _samples(axis: Any, dataset: xr.Dataset) -> None:
    agents = dataset["chain_agents"].values
    for kind, (color, marker) in KINDS.items():
        axis.plot(
            agents,
            dataset[f"chain_samples_{kind}"],
            marker + "-",
            color=color,
            markersize=4,
            label=f"{kind}, exact",
        )
        axis.plot(
            agents, dataset[f"chain_union_{kind}"], "--", color=color, label=f"{kind}, union bound"
        )
    axis.set_yscale("log")
    axis.set_ylim(3e2, 1e8)
    axis.set_title("minimax samples of a stage")
    axis.set_xlabel("agents $K$, one a stage")
    axis.set_ylabel("samples per arm of one stage")
    axis.legend(loc="upper left", ncols=2)


def _amplification(axis: Any, dataset: xr.Dataset) -> None:
    stages = dataset["chain_place"].values
    axis.plot(
        dataset["chain_mean_stage"],
        dataset["chain_amplification"],
        ".",
        color=COLORS[0],
        markersize=3,
        label="random errors",
    )
    axis.plot(
        stages,
        dataset["chain_amplification_single"],
        "x",
        color="black",
        markersize=6,
        label="all in one stage",
    )
    axis.plot(stages, len(stages) + 1 - stages, color=COLORS[1], linewidth=1.0, label="upper bound")
    axis.axhline(1.0, color="black", linewidth=1.0, linestyle=":", label="lower bound")
    axis.set_title(f"loss of a chain / of independent stages, $K={len(stages)}$")
    axis.set_xlabel("mean stage of the error")
    axis.set_ylabel("amplification")
    axis.legend()


def _attrition(axis: Any, dataset: xr.Dataset) -> None:
    stages = dataset["chain_stage"].values
    axis.plot(stages, dataset["chain_attrition_theory"], color=COLORS[0], label="product")
    axis.plot(
        stages,
        dataset["chain_attrition_linear"],
        "--",
        color=COLORS[1],
        label="1 − sum of failures",
    )
    mean, error = mean_and_error(dataset["chain_attrition"], SEED)
    axis.errorbar(stages, mean, error, fmt="o", color="black", markersize=4, label="explored")
    axis.set_xticks(stages)
    axis.set_ylim(0.0, 1.05)
    axis.set_title("trajectories that reach a stage")
    axis.set_xlabel("stage")
    axis.set_ylabel("share of trajectories")
    axis.legend()


def _search(dataset: xr.Dataset) -> tuple[Any, str]:
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(1, 3, figsize=(11.4, 3.8))
        _responses(axes[0], dataset)
        _contexts(axes[1], dataset)
        _tokens(axes[2], dataset)
    failed = dataset["chain_phases_failure"].mean(SEED).values
    allowed = float(dataset["chain_phases_failure_allowed"])
    caption = (
        "Left: sequential best response under parity from random actions (dots, ±2 standard errors) "
        "freezes as soon as one agent has repaired parity; its floor (thick) isn't that of own rewards "
        "alone (dashes). From agents' own best actions it ends at the optimum (crosses). Own rewards "
        "first, then best response with the trajectories that theory asks for, failed in "
        f"{failed.min():.3f} to {failed.max():.3f} of runs, {allowed:g} allowed. Middle: an agent that "
        "must name what another one sees keeps λ(1 − 1/A) however long it explores; one that sees all "
        "contexts doesn't. Right: share of contexts solved by step rewards and, of joint contexts, by "
        "the outcome alone (dots) on the exact curves; solving steps one by one would give the dashes."
    )
    return figure, caption


def _responses(axis: Any, dataset: xr.Dataset) -> None:
    place = np.arange(dataset.sizes["chain_team"])
    mean, error = mean_and_error(dataset["chain_response"], SEED)
    for at in place:
        part = dataset.isel(chain_team=at)
        ends = [at - 0.3, at + 0.3]
        axis.plot(ends, [float(part["chain_response_theory"])] * 2, color=COLORS[0])
        axis.plot(ends, [float(part["chain_response_own_floor"])] * 2, "--", color=COLORS[1])
    axis.plot([], [], color=COLORS[0], label="floor, random start")
    axis.plot([], [], "--", color=COLORS[1], label="floor, own rewards alone")
    axis.errorbar(place, mean, error, fmt="o", color="black", markersize=4, label="random start")
    left = dataset["chain_response_best"] - dataset["chain_response_own"]
    axis.plot(place, left, "x", color="black", markersize=6, label="start at own best")
    axis.set_xticks(place, [f"${name}$" for name in dataset["chain_team"].values])
    axis.set_xlim(-0.6, len(place) - 0.4)
    axis.set_ylim(-0.02, 0.68)
    axis.set_title("best response under parity")
    axis.set_xlabel("team")
    axis.set_ylabel("regret (team's reward)")
    axis.legend(loc="upper left")


def _contexts(axis: Any, dataset: xr.Dataset) -> None:
    axis.plot(
        dataset["chain_fine"],
        dataset["chain_joint_curve"],
        color=COLORS[0],
        label="sees all contexts",
    )
    axis.axhline(float(dataset["chain_local_theory"]), color=COLORS[1], label="sees its own")
    for name, color, marker in (("joint", COLORS[0], "o"), ("local", COLORS[1], "s")):
        mean, error = mean_and_error(dataset[f"chain_{name}"], SEED)
        axis.errorbar(dataset["chain_explored"], mean, error, fmt=marker, color=color, markersize=4)
    axis.set_xscale("log")
    axis.set_ylim(0.0, 0.4)
    axis.set_title("naming what another agent sees")
    axis.set_xlabel("trajectories $N$")
    axis.set_ylabel("regret (team's reward)")
    axis.legend(loc="lower left")


def _tokens(axis: Any, dataset: xr.Dataset) -> None:
    fine, curve = dataset["chain_fine"], dataset["chain_tokens_curve_process"]
    axis.plot(fine, curve, color=COLORS[0], label="step rewards")
    axis.plot(fine, dataset["chain_tokens_curve_outcome"], color=COLORS[1], label="outcome")
    axis.plot(
        dataset["chain_trajectories"],
        dataset["chain_tokens_outcome_separate"],
        "--",
        color="black",
        linewidth=1.0,
        label="steps one by one",
    )
    for name, color, marker in (("process", COLORS[0], "o"), ("outcome", COLORS[1], "s")):
        mean, error = mean_and_error(dataset[f"chain_tokens_{name}"], SEED)
        axis.errorbar(
            dataset["chain_trajectories"], mean, error, fmt=marker, color=color, markersize=4
        )
    axis.set_xscale("log")
    axis.set_ylim(0.0, 1.35)
    axis.set_yticks(np.linspace(0.0, 1.0, 6))
    axis.set_title("tokens: what exploration solves")
    axis.set_xlabel("trajectories $N$")
    axis.set_ylabel("share of contexts")
    axis.legend(loc="upper left")
