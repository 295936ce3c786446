"""Figure of the advice on one team task: failure against budget, and what each agent's actions earn."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, style

MOST_LABELS = 12


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """Figure and caption by name."""
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.0))
        _failures(axes[0], dataset)
        _marginals(axes[1], dataset)
        return {"advice": (figure, _caption(dataset))}


def _caption(dataset: xr.Dataset) -> str:
    told = dataset.attrs
    verdict = str(told["reasons"]).split("\n", 1)[0]
    return (
        "Predictions for one team task. Left: probability that the regret of the final choice exceeds "
        f"the accuracy {told['accuracy']:g}, against trajectories, for one agent that ranks all joint "
        "actions and for a team whose agents rank their own by the shared reward; dots where it is "
        f"{told['failure_probability']:g}. Right: mean team reward of each agent's actions over uniform "
        "teammates" + (", ±2 standard errors" if told["logged"] else "") + "; each agent of a team "
        f"takes its highest. Alignment {told['alignment']:.3g} ({told['alignment_low']:.3g} to "
        f"{told['alignment_high']:.3g}), floor {told['floor']:.3g}. Verdict: {verdict}."
    )


def _failures(axis: Any, dataset: xr.Dataset) -> None:
    delta = float(dataset.attrs["failure_probability"])
    budgets = dataset["trajectories"].values
    ends = zip(dataset["learner"].values, ("sarl_samples", "marl_samples"), strict=True)
    for color, (learner, answer) in zip(COLORS, ends, strict=False):
        axis.plot(budgets, dataset["failure"].sel(learner=learner), color=color, label=str(learner))
        samples = float(dataset.attrs[answer])
        if 0.0 < samples < np.inf:
            axis.plot([samples], [delta], "o", color=color)
    axis.axhline(delta, color="black", linestyle=":", label="failure probability asked for")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_ylim(1e-3 * delta, 1.5)
    axis.set_title("failure against budget")
    axis.set_xlabel("trajectories $N$ (all agents act in each)")
    axis.set_ylabel("P(regret > accuracy)")
    axis.legend(loc="lower left")


def _marginals(axis: Any, dataset: xr.Dataset) -> None:
    place, ticks, labels = 0, [], []
    for k, agent in enumerate(dataset["agent"].values):
        mean = dataset["marginal_mean"].values[k]
        kept = ~np.isnan(mean)
        where = place + np.arange(kept.sum())
        axis.errorbar(
            where,
            mean[kept],
            2.0 * dataset["marginal_error"].values[k][kept],
            fmt="os^Dv"[k % 5],
            color=COLORS[k % len(COLORS)],
            markersize=5,
            label=str(agent),
        )
        ticks += where.tolist()
        labels += dataset["label"].values[k][kept].tolist()
        place = where[-1] + 2
    step = max(1, -(-len(ticks) // (2 * MOST_LABELS)))
    long = max(len(str(label)) for label in labels) > 3
    axis.set_xticks(
        ticks[::step], [str(label) for label in labels[::step]], rotation=60 if long else 0
    )
    axis.set_title("what each agent sees of its actions")
    axis.set_xlabel("action")
    axis.set_ylabel("mean team reward, teammates uniform")
    low, high = axis.get_ylim()
    axis.set_ylim(low, high + 0.25 * (high - low))  # room for the legend
    if len(dataset["agent"]) <= MOST_LABELS:
        axis.legend(ncols=3, loc="upper center")
