"""Figure F8: risk against the step size, up to the exact limit of stability."""

import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.figure import Figure

from boundlab.figures.excess_risk.names import with_operator
from boundlab.figures.style import COLORS, mean_and_error, style


def draw(dataset: xr.Dataset) -> dict[str, tuple[Figure, str]]:
    """F8, a panel a problem."""
    with style():
        figure, axes = plt.subplots(
            1, dataset.sizes["stability_problem"], figsize=(9, 3.4), sharey=True
        )
        for panel, name in zip(axes, dataset.stability_problem.values, strict=True):
            at = dataset.sel(stability_problem=name)
            limit = float(at.stability_limit)
            step = at.stability_fraction * limit
            panel.plot(step, at.stability_exact.sum("stability_part"), label="exact")
            for part, line in (("bias", "--"), ("variance", ":")):
                panel.plot(
                    step,
                    at.stability_exact.sel(stability_part=part),
                    line,
                    color=COLORS[0],
                    lw=1.1,
                    label=part,
                )
            mean, error = mean_and_error(at.stability_risk)
            panel.errorbar(
                at.stability_simulated * limit,
                mean,
                error,
                fmt="o",
                ms=4,
                color="black",
                label="simulated",
                zorder=5,
            )
            panel.axvline(limit, color=COLORS[1], label=r"limit $\gamma_{max}$")
            panel.axvline(2.0, color="0.5", ls="-.", lw=1.1, label=r"$2/\mathrm{tr}\,M$")
            panel.set(
                title=with_operator(str(name)),
                xlabel=r"step size $\gamma$ (tr $M=1$)",
                yscale="log",
                xlim=(0, 2.1),
            )
        axes[0].set_ylabel("excess risk $R$ of the tail average")
        axes[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    caption = (
        "Risk of tail-averaged SGD (N = 128) against the step size. Lines: exact, up to 0.98 of the "
        "limit; dashed its bias, dotted its variance. Dots: simulated, to half of the limit, ±2 "
        "standard errors (nearer the limit single runs are so heavy-tailed that a mean says little). "
        "The exact limit, where the mean-square recursion has spectral radius 1, lies below the "
        "familiar 2/tr M."
    )
    return {"F8-step-size": (figure, caption)}
