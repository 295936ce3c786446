"""Figure of the family of losses: how each pulls on a token, and on the tokens of one small batch."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, style

TITLES = {
    "ppo": "PPO",
    "dual_clip": "PPO, dual clip 1.1",
    "dapo": "DAPO",
    "bnpo": "BNPO",
    "grpo": "GRPO",
    "dr_grpo": "Dr.GRPO",
    "luspo": "LUSPO",
    "gspo": "GSPO",
    "gmpo": "GMPO",
    "cispo": "CISPO",
    "sapo": "SAPO",
    "vespo": "VESPO",
    "dppo": "DPPO",
    "dro": "DRO",
    "apc": "APC",
    "fiberpo": "FiberPO",
    "fiberpo_pessimistic": "FiberPO, pessimistic",
    "fiberpo_domain": "FiberPO-Domain",
}
# Pulls beyond this are cut in the panels: a rollback is as steep as the sequence is long.
LARGEST_PULL = 3.0


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """`F5-losses`."""
    import matplotlib.pyplot as plt

    with style():
        figure = plt.figure(figsize=(12.4, 6.4))
        halves: Any = figure.subfigures(1, 2, width_ratios=(1.5, 1))
        left, right = halves
        _pulls(left, dataset)
        _shares(right, right.subplots(), dataset)
    caption = (
        "What each loss does to a token. Left: its pull on log π of one token of eight whose ratio is r, "
        "the others at r = 1, in units of the pull on policy. It is 1 at r = 1 for every loss, 0 where a "
        "gate has shut, and below 0 where the loss pushes against the advantage (cut at ±3). GSPO, GMPO "
        "and VESPO see the whole sequence: one token alone matters less to them. Right: the same number "
        "for the nine tokens of a batch of three sequences, by the token's ratio and the sign of its "
        "advantage; white is no gradient, blue is against the advantage. Limits: .2 for PPO's rows (DAPO "
        ".28 above), .05 for GSPO, .4 for GMPO, κ = .05 for DPPO, δ = .1 for APC, budgets .13 and .06 "
        "and ε = .04 for FiberPO."
    )
    return {"F5-losses": (figure, caption)}


def _pulls(figure: Any, dataset: xr.Dataset) -> None:
    rows = dataset["losses_shown"].values.tolist()
    columns = 4
    axes = figure.subplots(-(-len(rows) // columns), columns, sharex=True, sharey=True)
    ratio = dataset["losses_ratio"].values
    for axis, row in zip(axes.flat, rows, strict=False):
        for color, sign, line in zip(
            COLORS, dataset["losses_sign"].values, ("-", "--"), strict=False
        ):
            pull = dataset["losses_pull"].sel(losses_shown=row, losses_sign=sign).values
            axis.plot(
                ratio,
                np.clip(pull, -LARGEST_PULL, LARGEST_PULL),
                color=color,
                linestyle=line,
                label=f"${sign}$",
            )
        axis.axhline(0.0, color="black", linewidth=0.6)
        axis.axvline(1.0, color="black", linewidth=0.6, linestyle=":")
        axis.set_title(TITLES.get(row, row))
        axis.set_ylim(-LARGEST_PULL - 0.1, LARGEST_PULL + 0.1)
    for axis in axes.flat[len(rows) :]:
        axis.set_visible(False)
    axes.flat[0].legend(loc="lower left")
    figure.supxlabel("ratio $r$ of the token", fontsize=9)
    figure.supylabel("pull / pull on policy", fontsize=9)


def _shares(figure: Any, axis: Any, dataset: xr.Dataset) -> None:
    share = dataset["losses_share"]
    rows = [TITLES.get(row, row) for row in share["losses_row"].values.tolist()]
    image = axis.imshow(share.values, cmap="RdBu_r", vmin=-2.0, vmax=2.0, aspect="auto")
    for (row, token), value in np.ndenumerate(share.values):
        color = "white" if abs(value) > 1.4 else "black"
        # No minus sign before a zero.
        text = f"{value:.2f}".replace("-0.00", "0") if abs(value) > 5e-3 else "0"
        axis.text(token, row, text, ha="center", va="center", fontsize=6.5, color=color)
    signs = ["A>0" if a > 0 else "A<0" for a in dataset["losses_token_advantage"].values]
    ratios = dataset["losses_token_ratio"].values
    axis.set_xticks(
        range(len(signs)), [f"{r:.2f}\n{s}" for r, s in zip(ratios, signs, strict=True)]
    )
    axis.set_yticks(range(len(rows)), rows)
    axis.tick_params(labelsize=7)
    axis.grid(False)
    sequences = [str(name).split(".")[0] for name in share["losses_token"].values]
    for at in range(1, len(sequences)):
        if sequences[at] != sequences[at - 1]:
            axis.axvline(at - 0.5, color="black", linewidth=1.2)
    axis.set_title("gradient / gradient on policy, token by token")
    axis.set_xlabel("ratio of the token and sign of its advantage")
    axis.set_ylabel("loss")
    figure.colorbar(image, ax=axis, shrink=0.7, extend="both")
