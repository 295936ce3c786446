"""Figure of trained scores: their error over time, the bound it makes, their training, their samples."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style

MARKERS = ("o", "s", "^", "D", "v")


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`E8-learned`."""
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(2, 2, figsize=(10.0, 7.4))
        _errors(axes[0, 0], dataset)
        _bounds(axes[0, 1], dataset)
        _training(axes[1, 0], dataset)
        _variances(axes[1, 1], dataset)
    caption = (
        "Scores of a Gaussian law learned by denoising: networks linear in the vector, with 1, 2 or 4 "
        "coefficients in time, and perceptrons. Top left: score error of the structure measured from the "
        "loss minus its floor (dots, ±2 standard errors), on the exact error of the linear networks "
        "(lines). Top right: the bound with that measured error, stacked from its terms, against the "
        "exact KL of the sampler's output (diamonds; of perceptrons a lower bound from samples, "
        "triangles); the dotted line is the bound for exact scores, which the coarsest networks' KL "
        "exceeds. Bottom left: the denoising loss in training, above its least value (dashed). Bottom "
        "right: variances of samples drawn with the linear networks (dots) on the recursion's lines, and "
        "with the exact score (dashed)."
    )
    return {"E8-learned": (figure, caption)}


def _look(dataset: xr.Dataset) -> dict[str, tuple[str, str]]:
    """Colour and marker of each network."""
    names = [str(name) for name in dataset["learned_network"].values]
    return {name: (COLORS[i], MARKERS[i]) for i, name in enumerate(names)}


def _errors(axis: Any, dataset: xr.Dataset) -> None:
    times = dataset["learned_time"].values
    linear = dataset["learned_linear"].values
    for name, (color, marker) in _look(dataset).items():
        part = dataset["learned_error"].sel(learned_network=name, learned_block="structure")
        mean, error = mean_and_error(part, "learned_run")
        axis.errorbar(times, mean, error, fmt=marker, color=color, markersize=4, label=name)
        if name in linear:
            exact = dataset["learned_error_theory"].sel(
                learned_linear=name, learned_block="structure"
            )
            axis.plot(times, exact, color=color)
    axis.set_xscale("log")
    axis.set_yscale("symlog", linthresh=0.1)
    axis.set_ylim(bottom=-0.1)
    axis.set_xticks(times, [f"{time:.2g}" for time in times])
    axis.minorticks_off()
    axis.set_title("score error of the structure")
    axis.set_xlabel("time $t$")
    axis.set_ylabel(r"$\varepsilon_A^2(t)$")
    axis.legend()


def _bounds(axis: Any, dataset: xr.Dataset) -> None:
    look = _look(dataset)
    place = np.arange(len(look))
    mean, error = mean_and_error(dataset["learned_bound"], "learned_run")
    discretization = float(dataset["learned_discretization"])
    initialization = float(dataset["learned_initialization"])
    known = 2 * discretization + initialization
    axis.bar(
        place, mean, 0.6, color=COLORS[0], alpha=0.35, label=r"score error $\sum B\,\varepsilon^2$"
    )
    axis.bar(place, known, 0.6, color=COLORS[1], alpha=0.6, label="initialisation and $2D$")
    axis.errorbar(place, mean, error, fmt="none", color="black", capsize=3)
    names = list(look)
    linear = [names.index(str(name)) for name in dataset["learned_linear"].values]
    axis.plot(linear, dataset["learned_kl"], "D", color="black", markersize=5, label="exact KL")
    other = [names.index(str(name)) for name in dataset["learned_perceptron"].values]
    lower, spread = mean_and_error(dataset["learned_lower"], "learned_seed")
    axis.errorbar(
        other, lower, spread, fmt="^", color="black", markersize=5, label="lower bound of KL"
    )
    axis.axhline(
        discretization + initialization,
        color="black",
        linestyle=":",
        label="bound for exact scores",
    )
    axis.set_yscale("log")
    axis.set_ylim(top=30 * float(np.max(mean)))
    axis.set_xticks(place, [name.replace(", ", "\n") for name in names])
    axis.set_title("measured bound and error of the sampler")
    axis.set_ylabel("nats")
    axis.legend(loc="upper center", ncols=2)


def _training(axis: Any, dataset: xr.Dataset) -> None:
    steps = dataset["learned_window"]
    for name, (color, marker) in _look(dataset).items():
        loss = dataset["learned_training_loss"].sel(learned_network=name)
        axis.plot(steps, loss, f"{marker}-", color=color, markersize=3, label=name)
    axis.axhline(
        float(dataset["learned_training_floor"]), color="black", linestyle="--", label="least"
    )
    axis.set_yscale("log")
    axis.set_yticks([2, 3, 4, 5, 6], ["2", "3", "4", "5", "6"])
    axis.minorticks_off()
    axis.set_title("denoising loss in training")
    axis.set_xlabel("step")
    axis.set_ylabel(r"$\frac{1}{2}\mathrm{E}\|\sigma s+\xi\|^2$")
    axis.legend()


def _variances(axis: Any, dataset: xr.Dataset) -> None:
    pairs = dataset["learned_pair"].values
    look = _look(dataset)
    for name in dataset["learned_linear"].values:
        color, marker = look[str(name)]
        part = dataset.sel(learned_linear=name)
        mean, error = mean_and_error(part["learned_variance"], "learned_run")
        axis.errorbar(pairs, mean, error, fmt=marker, color=color, markersize=4, label=str(name))
        axis.plot(pairs, part["learned_variance_theory"], color=color)
    axis.plot(
        pairs,
        dataset["learned_variance_exact_score"].isel(learned_linear=0),
        "--",
        color="black",
        label="exact score",
    )
    axis.set_ylim(bottom=0.0)
    axis.set_xticks(pairs)
    axis.set_title("variance along differences of canonical pairs")
    axis.set_xlabel("canonical pair")
    axis.set_ylabel("variance")
    axis.legend()
