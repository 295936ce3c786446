"""`boundlab run policy_optimization --train TASK`: the trained example on its own, with any losses."""

import functools
import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np
import xarray as xr

from boundlab.analysis.policy_optimization.language import CONTROLS, VARIANTS, Grid, setting, train
from boundlab.checks import check_choice, check_integer, check_number, fail
from boundlab.experiment import Runner, Tool
from boundlab.models.policy_losses import LOSSES

FOLDER = Path("results") / "training"


@dataclass(frozen=True)
class TrainingOptions:
    """Options of the training; --train asks for it."""

    train: Literal["addition", "brackets"] | None = None
    """Instead of running the study, train small language models on this task.

    addition: "12+7=" is answered by "19$"; brackets: "(()[" by "])$". Models learn from right answers up
    to a middling reward, then by reinforcement on stale samples. About a minute by default; for a first
    look --runs 1 --updates 20 --control off. Interrupted or killed, the same command continues where it
    stopped, to the same bits."""
    losses: tuple[str, ...] = ("grpo", "fiberpo")
    """With --train: policy losses to compare, by their names in `boundlab.models.policy_losses`;
    fiberpo_pessimistic and fiberpo_wide (budgets five times as wide) besides."""
    delays: tuple[int, ...] = (0, 4, 16)
    """With --train: how many updates old the parameters are that draw the samples."""
    control: Literal["off", "on", "both"] = "both"
    """With --train: gradient alignment control."""
    runs: int = 2
    """With --train: models of each loss and delay; error bars need two."""
    updates: int = 100
    """With --train: updates of policy optimisation. More than before prolong a finished training."""
    every: int = 10
    """With --train: updates between two looks at held-out prompts, a divisor of --updates."""
    step_size: float | None = None
    """With --train: of Adam in policy optimisation; by default the task's."""
    start_steps: int | None = None
    """With --train: steps of the supervised start; by default the task's."""
    key: int = 0
    """With --train: everything random follows from it."""
    checkpoint: Path | None = None
    """With --train: folder from which the training resumes; by default one in results/training."""


def apply(options: TrainingOptions, console: Any, progress: bool = True) -> xr.Dataset:
    """Train, print the table, return the dataset of all curves."""
    assert options.train is not None
    chosen = setting(options.train)
    _check(options)
    step_size = chosen.step_size if options.step_size is None else options.step_size
    check_number("step_size", step_size, 0, low_open=True)
    start_steps = chosen.start_steps if options.start_steps is None else options.start_steps
    check_integer("start_steps", start_steps, 1)
    grid = Grid(
        options.losses,
        options.delays,
        {"off": CONTROLS[:1], "on": CONTROLS[1:], "both": CONTROLS}[options.control],
        options.runs,
        options.updates,
        options.every,
        step_size,
    )
    folder = options.checkpoint if options.checkpoint is not None else _folder(options)
    say = functools.partial(console.print, highlight=False, markup=False, soft_wrap=True)
    say(f"checkpoints: {folder}")
    runner = Runner(folder, progress=progress)
    key = jax.random.key(options.key)
    try:
        dataset = train(key, chosen._replace(start_steps=start_steps), grid, runner.advance)
    except ValueError as error:
        if not str(error).startswith("checkpoint"):
            raise
        hint = "after a change of boundlab start anew, with another --checkpoint"
        raise ValueError(f"{error}; {hint}") from error
    dataset = dataset.assign_attrs(
        task=options.train, step_size=step_size, start_steps=start_steps, key=options.key
    )
    _print(dataset, console)
    say(
        "reward: of one sample to each of up to 256 held-out prompts, at the end; entropy in nats a "
        "token, ratio of policy to behaviour and cosine of consecutive gradients: means over the last "
        "quarter; ± two standard errors over models"
    )
    return dataset


def _check(options: TrainingOptions) -> None:
    for name in ("losses", "delays"):
        values = getattr(options, name)
        if not values or len(set(values)) < len(values):
            raise fail(name, values, "different ones, one at least")
    for loss in options.losses:
        check_choice("losses", loss, (*LOSSES, *(name for name in VARIANTS if name not in LOSSES)))
    for delay in options.delays:
        check_integer("delays", delay, 0, 1000)
    check_integer("runs", options.runs, 1)
    check_integer("every", options.every, 1)
    check_integer("updates", options.updates, 1)
    if options.updates % options.every:
        raise fail("updates", options.updates, f"a multiple of every = {options.every}")
    check_integer("key", options.key, 0, 2**32 - 1)
    taken = options.checkpoint
    if taken is not None and taken.is_file():
        raise fail("checkpoint", f"the file {taken}", "a folder")


def _folder(options: TrainingOptions) -> Path:
    """A folder for exactly this training, however long."""
    told = {k: v for k, v in asdict(options).items() if k not in ("updates", "checkpoint")}
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:10]
    return FOLDER / f"{options.train}-{digest}"


def _print(dataset: xr.Dataset, console: Any) -> None:
    from rich import box
    from rich.table import Table

    shown = Table(box=box.SIMPLE, pad_edge=False)
    for title in ("loss", "delay", "control", "reward", "entropy", "ratio", "cosine"):
        shown.add_column(
            title, justify="left" if title in ("loss", "control") else "right", no_wrap=True
        )
    last = dataset.isel(language_update=slice(-max(dataset.sizes["language_update"] // 4, 1), None))
    end = dataset["language_held_out_reward"].isel(language_update=-1)
    names = ("entropy", "mean_ratio", "cosine")
    later = [last[f"language_{name}"].mean("language_update") for name in names]
    first = dataset["language_start_reward"].values
    shown.add_row("start", "", "", _mean_and_error(first), "", "", "")
    for loss in dataset["language_loss"].values:
        for delay in dataset["language_delay"].values:
            for control in dataset["language_control"].values:
                place = {
                    "language_loss": loss,
                    "language_delay": delay,
                    "language_control": control,
                }
                cells = [_mean_and_error(values.sel(place).values) for values in (end, *later)]
                shown.add_row(str(loss), str(delay), str(control), *cells)
    console.print(shown)


def _mean_and_error(values: np.ndarray) -> str:
    mean = f"{values.mean():.2f}"
    if len(values) < 2:
        return mean
    return f"{mean} ± {2 * values.std(ddof=1) / len(values) ** 0.5:.2f}"


TOOL = Tool(name="train", options=TrainingOptions(), apply=apply, figures="language", progress=True)
