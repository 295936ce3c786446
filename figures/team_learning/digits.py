"""Figure of the digits with a carry: held-out risk of three learners against the number of examples."""

from typing import Any

import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style

LEARNERS = {"sarl": "one agent", "aware": "team, knows the carry", "blind": "team, blind to it"}
MARKERS = ("o", "s", "^")


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`F11-digits`."""
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
    return {"F11-digits": (figure, caption)}


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
