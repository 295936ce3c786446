"""Figures of the three-layer network: heat maps over (b, β) (E1d) and the choice of a cell (E8b)."""

from typing import Any

import numpy as np
import xarray as xr

from boundlab.figures.style import COLORS, mean_and_error, style

CHOICES = {
    "sage_chosen": "test,\nsame seed",
    "sage_chosen_again": "test,\nother seeds",
    "sage_validated": "validation,\nsame seed",
    "sage_validated_again": "validation,\nother seeds",
    "sage_full_graph": "none:\nfull graph",
}
CELL = ("sage_divisor", "sage_fan_out")


def draw(dataset: xr.Dataset) -> dict[str, tuple[Any, str]]:
    """Figure and caption by name."""
    seeds = dataset.sizes["sage_seed"]
    maps = (
        "Three-layer GraphSAGE (Adam, softmax cross-entropy, LayerNorm) over batch size b and fan-out β, "
        f"{seeds} seeds a cell, a row a graph; the top row of a map is b = n_train. Left: test "
        "accuracy at the best validation accuracy, in % ± 2 s.e. Middle: iterations until the batch loss "
        "first is at the target, with their fitted exponents of b and β, and until it stays there for a "
        "window (≥: some runs never did). The signs are those of the theorem for cross-entropy, whose "
        "exponents are −1 and −5/2. Right: test accuracy minus that of the full graph on the same seeds "
        "(±2 s.e.); all cells have the same number of iterations."
    )
    choice = (
        "Left: mean test accuracy of every cell (grey, ±2 s.e., sorted) beside its single runs (dots): "
        "runs of a cell differ as much as the better cells do. Right: accuracy of the cell that is best "
        "in one seed's grid, by test or by validation accuracy (±2 s.e.), on the seed that chose it "
        "(filled) and on all others (hollow). What is lost is the bias of reporting a maximum; the line "
        "is the other seeds' mean plus the bias that independent normal noise of this size would give "
        "if all cells were equally good (spread × E max)."
    )
    with style():
        return {
            "E1d-three-layers": (_maps(dataset), maps),
            "E8b-seeds": (_choice(dataset), choice),
        }


def _maps(dataset: xr.Dataset) -> Any:
    import matplotlib.pyplot as plt

    names = dataset["sage_graph"].values
    figure, axes = plt.subplots(
        len(names), 4, figsize=(11.0, 0.6 + 2.6 * len(names)), squeeze=False, layout="constrained"
    )
    for row, name in zip(axes, names, strict=True):
        part = dataset.sel(sage_graph=name)
        mean, error = (
            100 * value for value in mean_and_error(part["sage_test_accuracy"], "sage_seed")
        )
        texts = np.vectorize("{:.1f}\n±{:.1f}".format)(mean.values, error.values)
        _heat_map(row[0], part, mean.values, texts, f"{name}: test accuracy (%)", "Blues")
        slopes = part["sage_exponent"].mean("sage_seed").values
        fitted = f"$b^{{{slopes[0]:+.2f}}}\\beta^{{{slopes[1]:+.2f}}}$"
        for axis, rule, end in zip(
            row[1:], ("first hit", "held"), (f", {fitted}", ""), strict=False
        ):
            runs = part.sel(sage_rule=rule)
            counts = runs["sage_iterations"].mean("sage_seed").values
            cut = runs["sage_censored"].any("sage_seed").values
            texts = np.vectorize("{}{:.3g}".format)(np.where(cut, "≥", ""), counts)
            title = f"iterations, {rule}{end}"
            _heat_map(axis, part, np.log(counts), texts, title, "Oranges")
        full = part["sage_test_accuracy"].isel(sage_divisor=-1, sage_fan_out=-1)
        gap = 100 * (part["sage_test_accuracy"] - full)
        place = np.arange(part.sizes["sage_fan_out"])
        for color, divisor in zip(COLORS, part["sage_divisor"].values, strict=False):
            middle, width = mean_and_error(gap.sel(sage_divisor=divisor), "sage_seed")
            size = int(part["sage_batch_size"].sel(sage_divisor=divisor))
            row[3].errorbar(
                place, middle.values, width.values, fmt="o-", color=color, ms=4, label=f"b = {size}"
            )
        row[3].axhline(0.0, color="black", lw=0.8)
        row[3].set_xticks(place, [str(beta) for beta in part["sage_fan_out"].values])
        row[3].set_title("accuracy minus that\nof the full graph")
        row[3].set_ylabel("percentage points")
        row[3].legend(fontsize=7)
        row[0].set_ylabel("batch size b")
    for axis in axes[-1]:
        axis.set_xlabel("fan-out β of each layer")
    return figure


def _heat_map(
    axis: Any, part: xr.Dataset, values: np.ndarray, texts: np.ndarray, title: str, colors: str
) -> None:
    low, high = values.min(), values.max()
    reach = max(high - low, 1e-12)
    axis.imshow(
        values,
        cmap=colors,
        aspect="auto",
        origin="lower",
        vmin=low - 0.1 * reach,
        vmax=high + 0.4 * reach,
    )
    for row, column in np.ndindex(values.shape):
        axis.text(column, row, texts[row, column], ha="center", va="center", fontsize=7.5)
    axis.set_xticks(range(values.shape[1]), [str(b) for b in part["sage_fan_out"].values])
    axis.set_yticks(range(values.shape[0]), [str(b) for b in part["sage_batch_size"].values])
    axis.set_title(title)
    axis.grid(visible=False)


def _choice(dataset: xr.Dataset) -> Any:
    import matplotlib.pyplot as plt

    names = dataset["sage_graph"].values
    figure, axes = plt.subplots(
        len(names),
        2,
        figsize=(9.5, 0.6 + 2.7 * len(names)),
        squeeze=False,
        width_ratios=(1.4, 1.0),
        layout="constrained",
    )
    for (left, right), name in zip(axes, names, strict=True):
        part = dataset.sel(sage_graph=name)
        cells = 100 * part["sage_test_accuracy"].stack(cell=CELL).transpose("cell", "sage_seed")
        cells = cells.isel(cell=np.argsort(cells.mean("sage_seed").values))
        mean, error = mean_and_error(cells, "sage_seed")
        place = np.arange(cells.sizes["cell"])
        across = place[:, None] + np.linspace(-0.25, 0.25, cells.sizes["sage_seed"])
        left.plot(across.ravel(), cells.values.ravel(), ".", color=COLORS[5], ms=3.5)
        left.errorbar(place, mean.values, error.values, fmt="s", color="#555555", ms=4, capsize=3)
        sizes = part["sage_batch_size"]
        labels = [f"{int(sizes.sel(sage_divisor=d))}, {beta}" for d, beta in cells["cell"].values]
        left.set_xticks(place, labels, fontsize=7)
        left.set_ylabel("test accuracy (%)")
        left.set_title(f"{name}: all cells")
        for x, key in enumerate(CHOICES):
            middle, width = mean_and_error(100 * part[key], "sage_seed")
            color = COLORS[(0, 0, 1, 1, 6)[x]]
            filled = "white" if key.endswith("again") else color
            right.errorbar(x, middle, width, fmt="o", color=color, mfc=filled, ms=6, capsize=3)
        again = 100 * float(part["sage_chosen_again"].mean())
        chance = again + 100 * float(part["sage_by_chance"])
        right.plot([-0.3, 1.3], [chance, chance], color=COLORS[3], lw=1.5, label="bias by chance")
        right.plot([1.0, 1.0], [again, chance], ":", color=COLORS[3], lw=1.2)
        right.set_xticks(range(len(CHOICES)), list(CHOICES.values()), fontsize=7)
        right.set_title(f"{name}: the chosen cell")
        right.set_xlim(-0.5, len(CHOICES) - 0.5)
        right.legend(loc="upper right")
    axes[-1, 0].set_xlabel("cell (b, β)")
    axes[-1, 1].set_xlabel("chosen by")
    return figure
