"""Figures of FiberPO's gate: what it passes, its regimes, a sweep beside GRPO's clip, its Jacobian."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, style

BASE_REGIMES = (
    "both channels pass",
    "one in rollback",
    "one zeroed",
    "none passes, one in rollback",
    "both zeroed",
)
REGIME_COLORS = ("#ffffff", "#F5C98B", "#9CC9E8", "#D55E00", "#4A6FA5")


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`F1-gate`, `F2-regimes`, `F3-sweep` and `F4-jacobian`."""
    return {
        "F1-gate": _gate(dataset),
        "F2-regimes": _regimes(dataset),
        "F3-sweep": _sweep(dataset),
        "F4-jacobian": _jacobian(dataset),
    }


def _gate(dataset: xr.Dataset) -> tuple[Any, str]:
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.9))
        x = dataset["gates_x"].values
        for color, count in zip(COLORS, dataset["gates_count"].values, strict=False):
            curve = dataset["gates_curve"].sel(gates_count=count)
            axes[0].plot(x, curve, color=color, label=f"$k={count}$ tokens")
        axes[0].plot(
            x, dataset["gates_curve_limit"], ":", color="black", label=r"$k\rightarrow\infty$"
        )
        axes[0].set_title("gate of one aggregate")
        axes[0].set_xlabel("aggregate $x$")
        axes[0].set_ylabel("gated, $g(x; C, k)$")
        axes[0].legend(loc="upper left")
        _base_weights(figure, axes[1], dataset)
    plus, minus = dataset["gates_base_budget"].values
    count = float(dataset["gates_base_tokens"])
    caption = (
        f"What becomes of a sequence's aggregate. Left: the gate at a budget of {plus:g}: it passes up "
        "to the budget, comes back to 0 within a k-th of it, and is 0 beyond; for long sequences the way "
        "back becomes a cut to 0, not a clip at the budget. Right: log of the base weight over the "
        f"aggregates of tokens made likelier and less likely, budgets {plus:g} and {minus:g}, "
        f"{count:g} tokens. Full lines: budgets; dashed: where a channel has reached 0."
    )
    return figure, caption


def _base_weights(figure: Any, axis: Any, dataset: xr.Dataset) -> None:
    plus, minus = dataset["gates_s_plus"].values, dataset["gates_s_minus"].values
    weights = dataset["gates_base_weight"].values
    limit = np.abs(weights).max()
    mesh = axis.pcolormesh(plus, minus, weights, cmap="RdBu_r", vmin=-limit, vmax=limit)
    mesh.set_rasterized(True)
    figure.colorbar(mesh, ax=axis, label=r"$\log w$")
    widening = 1 + 1 / float(dataset["gates_base_tokens"])
    for line, budget in zip(
        (axis.axvline, axis.axhline), dataset["gates_base_budget"].values, strict=True
    ):
        line(budget, color="black", linewidth=1.0)
        line(widening * budget, color="black", linewidth=1.0, linestyle="--")
    axis.grid(visible=False)
    axis.set_title("log of the base weight")
    axis.set_xlabel(r"$\log s^+$")
    axis.set_ylabel(r"$\log s^-$")


def _regimes(dataset: xr.Dataset) -> tuple[Any, str]:
    import matplotlib.pyplot as plt
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    with style():
        figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.9))
        maps = (
            ("far", REGIME_COLORS, BASE_REGIMES, "channels of the sequence"),
            (
                "near",
                ("#ffffff", "#CFE8DC", "#7CC3A6", "#009E73"),
                ("no token clipped", "one", "two", "all three"),
                "tokens that are clipped",
            ),
        )
        for axis, (name, colors, labels, title) in zip(axes, maps, strict=True):
            mesh = axis.pcolormesh(
                dataset[f"gates_{name}_x"].values,
                dataset[f"gates_{name}_y"].values,
                dataset[f"gates_{name}_regime"].values,
                cmap=ListedColormap(colors),
                vmin=-0.5,
                vmax=len(colors) - 0.5,
            )
            mesh.set_rasterized(True)
            axis.plot(0, 0, "+", color="black", markersize=8)
            axis.set_aspect("equal")
            axis.grid(visible=False)
            axis.set_title(title)
            axis.set_xlabel(r"$(r_1-r_2)/\sqrt{2}$")
            axis.set_ylabel(r"$(r_1+r_2-2r_3)/\sqrt{6}$")
            patches = [
                Patch(facecolor=color, edgecolor="#888888", label=label)
                for color, label in zip(colors, labels, strict=True)
            ]
            axis.legend(handles=patches, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    caption = (
        "Regimes of a sequence of three tokens whose ratios add up to three, in the plane of ratios as "
        "far as all are positive (cross: the old policy). Left: both channels pass in the white region; "
        "in the ring around it one is in rollback, a third of its budget wide, and further out it counts "
        "no more. Right, closer to the old policy: how many tokens the fiber gate clips; where none is, "
        "the gate changes nothing at all."
    )
    return figure, caption


def _sweep(dataset: xr.Dataset) -> tuple[Any, str]:
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(1, 3, figsize=(11.4, 3.7))
        step = dataset["gates_step"].values
        moves = dataset["gates_token"].values
        titles = {"fiber": "FiberPO", "grpo": "GRPO's clip, without the minimum"}
        colors = plt.get_cmap("coolwarm_r")((moves - moves.min()) / (moves.max() - moves.min()))
        for axis, (name, title) in zip(axes, titles.items(), strict=False):
            for token, color in enumerate(colors):
                axis.plot(
                    step,
                    dataset[f"gates_{name}"].values[:, token],
                    color=color,
                    linewidth=1.2,
                    label=f"$\\Delta={moves[token]:g}$" if token in (0, len(moves) - 1) else None,
                )
            axis.set_title(title)
            axis.set_ylabel("gated ratio")
            axis.legend(loc="upper left")
        low = min(axis.get_ylim()[0] for axis in axes[:2])
        high = max(axis.get_ylim()[1] for axis in axes[:2])
        for axis in axes[:2]:
            axis.set_ylim(low, high)
        budgets = dataset["gates_budgets"].values
        for color, name, sign, budget in zip(
            COLORS, ("plus", "minus"), ("+", "-"), budgets, strict=False
        ):
            axes[2].plot(
                step, dataset[f"gates_s_{name}_sweep"], color=color, label=rf"$\log s^{sign}$"
            )
            axes[2].axhline(budget, color=color, linestyle="--", linewidth=1.0)
            axes[2].plot([], [], "--", color=color, linewidth=1.0, label=f"budget $C^{sign}$")
        axes[2].set_title("aggregates of the sequence")
        axes[2].set_ylabel("log-ratio")
        axes[2].legend(loc="upper left")
        for axis in axes:
            axis.set_xlabel("step $t$, ratios $1+t\\Delta$")
    caption = (
        "One sequence of ten tokens whose ratios leave 1 in fixed proportion; one line a token, red to "
        "blue from the most reduced to the most raised. FiberPO's tokens keep together, and the whole "
        "sequence jumps when an aggregate (right) crosses its budget and is zeroed; GRPO's clip holds "
        "each token at its own limit for ever, whatever the others do."
    )
    return figure, caption


def _jacobian(dataset: xr.Dataset) -> tuple[Any, str]:
    import matplotlib.pyplot as plt
    from matplotlib.colors import SymLogNorm

    with style():
        figure, axes = plt.subplots(2, 3, figsize=(8.6, 5.6))
        values = dataset["gates_jacobian"]
        limit = float(np.abs(values).max())
        norm = SymLogNorm(0.1, vmin=-limit, vmax=limit)
        for axis, regime in zip(axes.flat, dataset["gates_regime"].values, strict=True):
            block = values.sel(gates_regime=regime).values
            image = axis.imshow(block, cmap="RdBu_r", norm=norm)
            axis.grid(visible=False)
            axis.set_title(str(regime))
            ticks = range(len(block))
            axis.set_xticks(ticks, [str(tick + 1) for tick in ticks])
            axis.set_yticks(ticks, [str(tick + 1) for tick in ticks])
            axis.set_xlabel("ratio $r_j$")
            axis.set_ylabel("gated $G_i$")
        bar = figure.colorbar(image, ax=axes, label=r"$\partial G_i/\partial r_j$", shrink=0.9)
        bar.set_ticks([-1, -0.1, 0, 0.1, 1], labels=["−1", "−0.1", "0", "0.1", "1"])
    caption = (
        "Jacobian of the gate within one sequence of six tokens, three made likelier and three less so "
        "(1 to 3, 4 to 6), by regime. On policy each ratio passes alone; beyond it a token's own entry "
        "vanishes once it is clipped, and its channel couples it to all others: with a positive sign "
        "while the channel passes, with a negative one as large as the diagonal in rollback, and once it "
        "is zeroed only through the residuals of tokens that aren't clipped. Colours "
        "are linear up to .1 and logarithmic beyond."
    )
    return figure, caption
