"""Figure of the diffusion length: exact KL over horizon and steps, with the curves of best horizons."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, style

SHOWN = {
    "nine modes": r"centred, nine modes $\lambda=.5,\dots,8$",
    "λ=0.05": r"one mode, $\lambda=.05$",
    "mean dominates": r"mean $(2,1)$, $\lambda=1.2, .9$",
}
CURVES = {
    "horizon_formula": ("closed form $T^*$", "-", "white"),
    "horizon_best": ("best for the bound", "o", COLORS[1]),
    "horizon_best_exact": ("best for the exact KL", "s", COLORS[4]),
}


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`E3-horizon`."""
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(1, len(SHOWN), figsize=(10.4, 3.9), sharey=True)
        for axis, (data, title) in zip(axes, SHOWN.items(), strict=True):
            _map(figure, axis, dataset.sel(horizon_data=data), title)
        axes[0].set_ylabel("horizon $T$ (OU time)")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=len(CURVES), labelcolor="black"
        )
    caption = (
        "How long to diffuse. Colour: exact KL of the exponential integrator's output from the noised "
        "data over the horizon T and the number of equal steps N, for three Gaussian laws. White: the "
        "closed form that balances start and steps; circles: minimiser of the path bound; squares: that "
        "of the exact KL. The closed form follows the bound where no eigenvalue is small (left, right) "
        "and is too long for λ = .05 (middle). The exact KL is best at longer horizons, since the "
        "sampler forgets its start, but at shorter ones for λ = .05."
    )
    return {"E3-horizon": (figure, caption)}


def _map(figure: Any, axis: Any, part: xr.Dataset, title: str) -> None:
    from matplotlib.patheffects import Normal, Stroke

    steps, horizons = part["horizon_steps"].values, part["horizon_time"].values
    level = np.log10(part["horizon_kl"].transpose("horizon_time", "horizon_steps").values)
    mesh = axis.pcolormesh(
        steps, horizons, level, cmap="viridis", shading="gouraud", rasterized=True
    )
    figure.colorbar(mesh, ax=axis, pad=0.02).ax.set_title(r"$\log_{10}$ KL", fontsize=8)
    for name, (label, look, color) in CURVES.items():
        (drawn,) = axis.plot(
            steps,
            part[name],
            look,
            color=color,
            label=label,
            markersize=5,
            markeredgecolor="black",
            clip_on=False,
        )
        if look == "-":
            drawn.set_path_effects([Stroke(linewidth=3.0, foreground="black"), Normal()])
    axis.grid(False)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(steps, [f"{value:g}" for value in steps])
    ticks = [value for value in (0.2, 0.5, 1.0, 2.0, 4.0) if horizons[0] <= value <= horizons[-1]]
    axis.set_yticks(ticks, [f"{value:g}" for value in ticks])
    axis.minorticks_off()
    axis.set_xlabel("steps $N$")
    axis.set_title(title)
