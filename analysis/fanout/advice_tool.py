"""`boundlab run fanout --advise GRAPH.npz`: the advice of `advise` for a user's file, printed."""

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from boundlab.analysis.fanout.advice import Advice, advise
from boundlab.analysis.fanout.advice_arguments import LARGEST_BUDGET
from boundlab.analysis.fanout.graph_files import load_graph_file
from boundlab.checks import fail
from boundlab.experiment import Tool

UNITS = {"": 1, "B": 1}
for power, prefix in enumerate("KMGT", start=1):
    UNITS |= {f"{prefix}B": 1000**power, f"{prefix}IB": 1024**power}


@dataclass(frozen=True)
class AdviceOptions:
    """Options of the advice; --advise asks for it."""

    advise: Path | None = None
    """Instead of running the study, recommend a batch size and a fan-out for this .npz graph.

    Its fields: edges (E, 2), or senders and receivers (E,);
    features (n, r), or feat_indptr, feat_indices, num_features and feat_values;
    labels (n,) with -1 for unlabelled, or targets (n, K), NaN for unlabelled (if K >= 2 and all
    other rows are one-hot, rows of zeros are unlabelled too);
    train, the nodes to train on (optional)."""
    memory_budget: str = "1GiB"
    """With --advise: memory that a training step may take, in bytes or like 64MB or 2GiB."""


def parse_bytes(text: str) -> int:
    """Bytes of a text like 65536, 64MB (10⁶) or 2GiB (2³⁰)."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-zA-Z]*)\s*", text)
    known = found is not None and found[2].upper() in UNITS
    size = float(found[1]) * UNITS[found[2].upper()] if found is not None and known else 0.0
    if not 1.0 <= size < LARGEST_BUDGET:
        got = repr(text if len(text) <= 40 else text[:40] + "…")
        raise fail("memory_budget", got, "bytes > 0 and below 2^63, as 65536, 64MB or 2GiB")
    return int(size)


def apply(options: AdviceOptions, console: Any) -> xr.Dataset:
    """Read the file, print the predictions around the recommended cell and the reasons, return all."""
    budget = parse_bytes(options.memory_budget)
    assert options.advise is not None
    file = load_graph_file(options.advise)
    advice = advise(file.graph, budget, file.features, file.targets, file.train_nodes)
    _print(advice, console)
    return advice.table.assign_attrs(reasons="\n".join(advice.reasons))


def _print(advice: Advice, console: Any) -> None:
    from rich import box
    from rich.table import Table

    say = functools.partial(console.print, highlight=False, markup=False, soft_wrap=True)
    table, b, beta = advice.table, advice.batch_size, advice.fan_out
    cells = [(b, int(other)) for other in table["fan_out"].values]
    cells = [(int(other), beta) for other in table["batch_size"].values if other < b] + cells
    cells += [(int(other), beta) for other in table["batch_size"].values if other > b]
    cost = table["relative_cost"].transpose("batch_size", "fan_out").values
    row, column = np.unravel_index(np.argmin(cost), cost.shape)
    cheapest = (int(table["batch_size"][row]), int(table["fan_out"][column]))
    if cheapest not in cells:
        cells.append(cheapest)
    shown = Table(box=box.SIMPLE, pad_edge=False)
    names = ("b", "β", "floor", "evaluation", "noise", "touched", "memory", "flops", "cost")
    for name in names:
        shown.add_column(name, justify="right")
    for size, fan_out in cells:
        cell = table.sel(batch_size=size, fan_out=fan_out)
        chosen = (size, fan_out) == (b, beta)
        exceeded = float(cell["memory"]) > float(table.attrs["memory_budget"])
        shown.add_row(
            f"{size}{' *' if chosen else ''}",
            str(fan_out),
            f"{float(cell['floor']):.4g}",
            f"{float(cell['evaluation_loss']):.4g}",
            f"{float(cell['gradient_noise']):.3g}",
            f"{float(cell['touched_nodes']):,.0f}",
            f"{int(cell['memory']):,}{' !' if exceeded else ''}",
            f"{float(cell['flops']):.3g}",
            f"{float(cell['relative_cost']):.3g}",
            style="bold" if chosen else None,
        )
    say("predictions for a linear network of one layer with mean aggregation and squared loss:")
    console.print(shown)
    say(f"batch size {b}, fan-out {beta} (* in the table):")
    for reason in advice.reasons:
        say(f"- {reason}")
    say(
        "floor, evaluation: sampled and full loss, mean of ½‖·‖²; noise: tr Cov of the gradient; "
        "touched: nodes a step; memory: bytes a step (! over the budget); flops: a step; cost: "
        "predicted operations to the same loss, in those of the cheapest of all cells, "
        f"b = {cheapest[0]}, β = {cheapest[1]}"
    )


TOOL = Tool(name="advise", options=AdviceOptions(), apply=apply, figures="advice")
