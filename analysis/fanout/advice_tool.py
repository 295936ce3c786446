"""`boundlab run fanout --advise GRAPH.npz`: the advice of `advise` for a user's file, printed."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr

from boundlab.analysis.fanout.advice import Advice, advise
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
    labels (n,) with -1 for unlabelled, or targets (n, K);
    train, the nodes to train on (optional)."""
    memory_budget: str = "1GiB"
    """With --advise: memory that a training step may take, in bytes or like 64MB or 2GiB."""


def parse_bytes(text: str) -> int:
    """Bytes of a text like 65536, 64MB (10⁶) or 2GiB (2³⁰)."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-zA-Z]*)\s*", text)
    if not found or found[2].upper() not in UNITS:
        raise fail("memory_budget", repr(text), "bytes > 0, as 65536, 64MB or 2GiB")
    size = int(float(found[1]) * UNITS[found[2].upper()])
    if size < 1:
        raise fail("memory_budget", repr(text), "bytes > 0, as 65536, 64MB or 2GiB")
    return size


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

    table, b, beta = advice.table, advice.batch_size, advice.fan_out
    cells = [(b, int(other)) for other in table["fan_out"].values]
    cells = [(int(other), beta) for other in table["batch_size"].values if other < b] + cells
    cells += [(int(other), beta) for other in table["batch_size"].values if other > b]
    shown = Table(box=box.SIMPLE, pad_edge=False)
    names = ("b", "β", "floor", "evaluation", "noise", "touched", "memory", "flops", "cost")
    for name in names:
        shown.add_column(name, justify="right")
    for size, fan_out in cells:
        cell = table.sel(batch_size=size, fan_out=fan_out)
        chosen = (size, fan_out) == (b, beta)
        shown.add_row(
            f"{size}{' *' if chosen else ''}",
            str(fan_out),
            f"{float(cell['floor']):.4g}",
            f"{float(cell['evaluation_loss']):.4g}",
            f"{float(cell['gradient_noise']):.3g}",
            f"{float(cell['touched_nodes']):,.0f}",
            f"{int(cell['memory']):,}",
            f"{float(cell['flops']):.3g}",
            f"{float(cell['relative_cost']):.3g}",
            style="bold" if chosen else None,
        )
    console.print(shown)
    console.print(f"batch size {b}, fan-out {beta} (* in the table):", highlight=False)
    for reason in advice.reasons:
        console.print(f"- {reason}", highlight=False, markup=False, soft_wrap=True)
    console.print(
        "floor, evaluation: sampled and full loss, mean of ½‖·‖²; noise: tr Cov of the gradient; "
        "touched: nodes a step; memory: bytes a step; flops: a step; cost: of training, relative",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


TOOL = Tool(name="advise", options=AdviceOptions(), apply=apply, figures="advice")
