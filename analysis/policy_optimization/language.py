"""A small language model trained by several losses on stale samples, with and without alignment control.

Models learn to close brackets, first from right answers up to a middling reward, then by reinforcement.
Every cell of the grid (loss, delay, control) of one seed has the same start, prompts and noise. It runs
where `language_updates` is set, as in the paper preset.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.policy_optimization.config import Config
from boundlab.claims import Claim
from boundlab.models.character_model import CharacterModel
from boundlab.models.character_tasks import CharacterTask, addition_task, bracket_task
from boundlab.models.policy_training import (
    PolicyTraining,
    held_out_reward,
    optimize_policy,
    supervised_start,
)

# What is found has error bars, not verdicts.
CLAIMS: tuple[Claim, ...] = ()

CONTROLS = ("plain", "gac")
DIMS = ("language_loss", "language_delay", "language_control", "language_seed")
# Loss and options behind a name, where these aren't the loss's defaults. The published clips of GSPO and
# LUSPO are meant for texts of thousands of tokens: that of GRPO is taken.
VARIANTS: Mapping[str, tuple[str, tuple[tuple[str, Any], ...]]] = {
    "gspo": ("gspo", (("epsilon_low", 0.2), ("epsilon_high", 0.2))),
    "luspo": ("luspo", (("epsilon_low", 0.2), ("epsilon_high", 0.2))),
    "fiberpo_pessimistic": ("fiberpo", (("pessimistic", True),)),
    "fiberpo_wide": (
        "fiberpo",
        (("budget_plus", 0.6), ("budget_minus", 0.25), ("epsilon", 0.2)),
    ),
}
WORDS = {
    "held_out_reward": "reward of samples to held-out prompts",
    "reward": "reward of the samples trained on",
    "entropy": "entropy of the policy a token",
    "mean_ratio": "mean ratio of policy to behaviour",
    "drift": "mean distance of the ratio from 1",
    "clip_fraction": "share of tokens on which the loss's gate acts",
    "cosine": "cosine of consecutive gradients",
    "gradient_norm": "norm of the gradient",
    "response_length": "tokens of a response",
    "controlled": "share of gradients changed by alignment control",
}


class Setting(NamedTuple):
    """A task, its model, how it starts and learns; chosen on one seed, before the grid ran."""

    task: CharacterTask
    model: CharacterModel
    start_steps: int
    """Steps of the supervised start, after which a half to two thirds of the responses are right."""
    step_size: float
    """Of Adam, in policy optimisation: samples of the current policy improve it, samples 16 updates old
    are near the limit."""


class Grid(NamedTuple):
    """What is compared."""

    losses: Sequence[str]
    delays: Sequence[int]
    controls: Sequence[str]
    num_seeds: int
    num_updates: int
    chunk: int
    """Updates between two looks."""
    step_size: float


def setting(name: str) -> Setting:
    """The task called `brackets` or `addition`; which prompts are held out is fixed."""
    key = jax.random.key(0)
    addition = name == "addition"
    task = addition_task(key) if addition else bracket_task(key, length=8)
    model = CharacterModel(task.vocabulary, task.prompts.shape[1] + task.answers.shape[1])
    return Setting(task, model, 500 if addition else 90, 3e-4)


def run(config: Config, key: jax.Array, repeat: Any) -> xr.Dataset:
    """Part `language` of the study's dataset; nothing where no updates are asked for."""
    if config.language_updates == 0:
        return xr.Dataset()
    chosen = setting("brackets")
    chunk = next(n for n in (10, 5, 2, 1) if config.language_updates % n == 0)
    grid = Grid(
        config.language_losses,
        config.language_delays,
        CONTROLS,
        config.language_seeds,
        config.language_updates,
        chunk,
        chosen.step_size,
    )
    return train(key, chosen, grid, repeat.advance)


def train(key: jax.Array, chosen: Setting, grid: Grid, advance: Any) -> xr.Dataset:
    """Train every cell of the grid; `advance` takes a name, then the arguments of `long_runs.advance`."""
    task, model, start_steps = chosen.task, chosen.model, chosen.start_steps
    keys = [jax.random.split(jax.random.fold_in(key, i), grid.num_seeds) for i in range(2)]
    chunk = next(n for n in range(min(start_steps, 50), 0, -1) if start_steps % n == 0)
    params, _ = supervised_start(
        keys[0],
        model,
        task,
        num_steps=start_steps,
        chunk_steps=chunk,
        advance=partial(advance, "language-start"),
    )
    cells = [(d, c == "gac") for d in grid.delays for c in grid.controls]
    # Entries in the order delay, control, seed.
    seeds = np.tile(np.arange(grid.num_seeds), len(cells))
    delays = np.repeat(np.array([d for d, _ in cells], np.int32), grid.num_seeds)
    aligned = np.repeat(np.array([c for _, c in cells], bool), grid.num_seeds)
    start = jax.tree.map(lambda leaf: np.asarray(leaf)[seeds], params)
    found = []
    for loss in grid.losses:
        name, options = VARIANTS.get(loss, (loss, ()))
        training = PolicyTraining(name, options, optimizer="adam", max_delay=max(grid.delays))
        done = optimize_policy(
            keys[1][seeds],
            model,
            task,
            start,
            training,
            num_updates=grid.num_updates,
            step_size=grid.step_size,
            delay=delays,
            aligned=aligned,
            chunk_updates=grid.chunk,
            advance=partial(advance, f"language-{loss}"),
        )
        found.append(done.records)
    shape = (len(grid.losses), grid.num_updates // grid.chunk, len(grid.delays), len(grid.controls))
    variables: dict[str, Any] = {
        f"language_{name}": (
            (*DIMS, "language_update"),
            np.moveaxis(
                np.stack([getattr(records, name) for records in found]).reshape(*shape, -1), 1, -1
            ).astype(np.float64),
            {"long_name": words},
        )
        for name, words in WORDS.items()
    }
    first = held_out_reward(keys[1], model, task, params)
    variables["language_start_reward"] = (
        "language_seed",
        np.asarray(first, np.float64),
        {"long_name": "reward of samples to held-out prompts after the supervised start"},
    )
    coords = {
        "language_loss": list(grid.losses),
        "language_delay": list(grid.delays),
        "language_control": list(grid.controls),
        "language_seed": np.arange(grid.num_seeds),
        "language_update": np.arange(grid.chunk, grid.num_updates + 1, grid.chunk),
    }
    units = {"language_entropy": "nat/token", "language_response_length": "tokens"}
    return describe(xr.Dataset(variables, coords=coords), "1", **units)
