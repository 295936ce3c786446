"""Figure F2: risk against the number of samples, for SGD and ridge."""

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

from boundlab.figures.excess_risk.names import with_operator
from boundlab.figures.style import COLORS, mean_and_error, style


def draw(dataset: xr.Dataset) -> dict[str, tuple[Figure, str]]:
    """F2, a column a problem: SGD above, ridge below."""
    with style():
        figure, axes = plt.subplots(
            2, dataset.sizes["curves_problem"], figsize=(11, 5.6), sharex=True, sharey="row"
        )
        for column, name in enumerate(dataset.curves_problem.values):
            at = dataset.sel(curves_problem=name)
            _sgd(axes[0, column], at)
            _ridge(axes[1, column], at)
            axes[0, column].set_title(with_operator(str(name)))
            axes[1, column].xaxis.set_major_locator(LogLocator(4))
            axes[1, column].xaxis.set_major_formatter(ScalarFormatter())
            axes[1, column].xaxis.set_minor_formatter(NullFormatter())
            axes[1, column].set_xlabel("samples $N$")
        axes[0, 0].set_ylabel("excess risk $R$ of SGD")
        axes[1, 0].set_ylabel("excess risk $R$ of ridge")
        for row in axes:
            handles, labels = row[0].get_legend_handles_labels()
            row[-1].legend(handles, labels, loc="center left", bbox_to_anchor=(1.0, 0.5))
    exact = dataset.curves_sgd_line.sum("curves_part")
    above = float((dataset.curves_sgd_line_upper / exact).max())
    below = float((exact / dataset.curves_sgd_line_lower).max())
    caption = (
        "Risk R = ‖θ − θ*‖²_M (no ½, signal power 1) against the number of samples N, "
        f"{dataset.attrs['curves_dim']} nodes, isotropic teacher. Lines: exact risk of tail-averaged "
        "SGD at a fixed fraction of the stability limit (dashed its bias, dotted its variance), and "
        "ridge's deterministic equivalent. Dots: "
        "means of simulated runs with ±2 standard errors. Bands: between the two sides of the bounds "
        "of this suite. The dots lie on the lines. SGD's upper side is up to "
        f"{above:.0f} times the exact risk and its lower side down to 1/{below:.1f} of it; ridge's two "
        "sides are a factor 4 apart."
    )
    return {"F2-learning-curves": (figure, caption)}


def _sgd(axes: Axes, at: xr.Dataset) -> None:
    line = at.curves_line.values
    axes.fill_between(
        line,
        at.curves_sgd_line_lower,
        at.curves_sgd_line_upper,
        color=COLORS[0],
        alpha=0.13,
        lw=0,
        label="bounds",
    )
    axes.plot(line, at.curves_sgd_line.sum("curves_part"), label="exact")
    for part, dashes in (("bias", "--"), ("variance", ":")):
        values = at.curves_sgd_line.sel(curves_part=part)
        axes.plot(line, values, dashes, color=COLORS[0], lw=1.1, label=part)
    mean, error = mean_and_error(at.curves_sgd_risk)
    axes.errorbar(
        at.curves_num_samples.values,
        mean,
        error,
        fmt="o",
        ms=4,
        color="black",
        label="simulated",
        zorder=5,
    )
    axes.set(xscale="log", yscale="log", ylim=(3e-3, 10))


def _ridge(axes: Axes, at: xr.Dataset) -> None:
    line = at.curves_line.values
    samples = at.curves_num_samples.values
    for color, ridge in zip(COLORS[1:], at.curves_ridge.values, strict=False):
        one = at.sel(curves_ridge=ridge)
        label = f"$\\lambda={ridge:g}$" if ridge else r"$\lambda=0$, $N>1.3\,d$"
        if ridge > 0:
            axes.fill_between(
                line,
                one.curves_ridge_line_lower,
                one.curves_ridge_line_upper,
                color=color,
                alpha=0.13,
                lw=0,
            )
        axes.plot(line, one.curves_ridge_line, color=color, label=label)
        mean, error = mean_and_error(one.curves_ridge_risk, "design")
        shown = np.isfinite(one.curves_ridge_equivalent.values)
        axes.errorbar(
            samples[shown],
            mean.values[shown],
            error.values[shown],
            fmt="o",
            ms=4,
            color=color,
            zorder=5,
            label="simulated" if ridge == at.curves_ridge.values[-1] else None,
        )
    axes.set(xscale="log", yscale="log", ylim=(3e-3, 3))
