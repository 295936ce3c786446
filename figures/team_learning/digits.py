"""Figure of the digits with a carry: held-out risk of three learners against the number of examples."""

from typing import Any

import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style

LEARNERS = {"sarl": "one agent", "aware": "team, knows the carry", "blind": "team, blind to it"}
MARKERS = ("o", "s", "^")


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`F11-digits` and `F11-episodes`."""
    import matplotlib.pyplot as plt

    dims, couplings = dataset["digits_dim"].values, dataset["digits_coupling"].values
    with style():
        figure, axes = plt.subplots(
            len(dims), len(couplings), figsize=(9.6, 5.6), sharex=True, sharey=True, squeeze=False
        )
        for row, dim in zip(axes, dims, strict=True):
            for axis, coupling in zip(row, couplings, strict=True):
                _risks(axis, dataset.sel(digits_dim=dim, digits_coupling=coupling))
                axis.set_title(f"$d={dim}$ components an image, $\\lambda={coupling:g}$")
        for axis in axes[-1]:
            axis.set_xlabel("training examples $n$")
        for axis in axes[:, 0]:
            axis.set_ylabel("held-out squared error")
        handles, labels = axes[0, -1].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    caption = (
        "Handwritten digits as three subtasks whose labels carry into the next with weight λ: held-out "
        "squared error (mean over subtasks, with what nobody can predict) of one agent on all images, of "
        "a team that knows the carry and rolls it out on its own predictions, and of a team that "
        "neglects it. Dots: means over shuffles of the images, ±2 standard errors. Lines: the theory of "
        "Gaussian inputs and linear labels at the measured residual variances; dashes join the dots of "
        "the aware team. Dotted: the predicted n* beyond which one agent beats the blind team. With "
        "d = 8 the aware team rounds too many carries wrongly, and one agent passes it."
    )
    return {"F11-digits": (figure, caption), "F11-episodes": _episodes(dataset)}


def _episodes(dataset: xr.Dataset) -> tuple[Any, str]:
    import matplotlib.pyplot as plt

    budgets = dataset["digits_budget"].values
    with style():
        figure, axis = plt.subplots(figsize=(4.8, 3.6))
        for color, marker, learner in zip(
            COLORS, MARKERS, dataset["digits_learner"].values, strict=False
        ):
            part = dataset.sel(digits_learner=learner)
            axis.plot(budgets, part["digits_failure"], color=color)
            mean, error = mean_and_error(part["digits_failed"], "digits_trial")
            axis.errorbar(
                budgets, mean, error, fmt=marker, color=color, markersize=4, label=str(learner)
            )
        axis.plot(
            budgets,
            dataset["digits_failure_alone"],
            ":",
            color=COLORS[1],
            label="team, teammates without variance",
        )
        axis.plot(
            budgets,
            dataset["digits_failure_unequal"],
            "--",
            color=COLORS[0],
            linewidth=1.0,
            label="one agent, unequal noise",
        )
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xticks(budgets, [str(value) for value in budgets])
        axis.minorticks_off()
        axis.set_xlabel("trajectories $N$ (trainings)")
        axis.set_ylabel("P(regret > accuracy)")
        axis.set_title("choosing three model sizes for digits")
        axis.legend(loc="lower left")
    needed = dataset["digits_needed"].values
    caption = (
        "The advice on a real team task: three agents choose how many components of a digit their models "
        "see, an episode is one training, the team's reward the share of held-out examples on which all "
        "three are right. Dots: how often the choice made from N episodes is worse than the best by more "
        "than the accuracy, ±2 standard errors; lines: the laws behind the advice, told the mean rewards "
        "and one noise for all. One agent fails more often than its line, as models that are too large "
        "are noisier, but less often than with Gaussian noise of each joint action's own size (dashes); "
        "a team's means average that out. Dotted: a team's line without the variance that teammates "
        "add. By the advice one agent needs "
        f"{needed[0]:.0f} trajectories, the team {needed[1]:.0f}; "
        f"alignment {float(dataset['digits_alignment']):.3f}."
    )
    return figure, caption


def _risks(axis: Any, cell: xr.Dataset) -> None:
    n = cell["digits_samples"].values
    for (learner, label), color, marker in zip(LEARNERS.items(), COLORS, MARKERS, strict=False):
        mean, error = mean_and_error(cell[f"digits_{learner}"], "digits_seed")
        axis.errorbar(n, mean, error, fmt=marker, color=color, markersize=4, label=label)
        if learner == "aware":
            axis.plot(n, mean, "--", color=color, linewidth=1.0)
        else:
            axis.plot(n, cell[f"digits_{learner}_theory"], color=color)
    crossover = float(cell["digits_crossover"])
    low, high = 0.9 * n.min(), 1.1 * n.max()
    if low < crossover < high:
        axis.axvline(crossover, color="black", linestyle=":", linewidth=1.0)
    axis.set_xlim(low, high)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(n, [str(value) for value in n])
    axis.minorticks_off()
    axis.set_yticks((0.1, 0.2, 0.4), ("0.1", "0.2", "0.4"))
