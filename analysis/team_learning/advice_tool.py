"""`boundlab run team_learning --advise FILE`: the advice of `advise` for a user's file, printed."""

import functools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from boundlab.analysis.team_learning.advice import Advice, decide, known_task, laws_of
from boundlab.analysis.team_learning.advice_estimates import TeamTask, main_effects
from boundlab.analysis.team_learning.advice_files import TeamFile, load_team_file
from boundlab.analysis.team_learning.advice_laws import Laws
from boundlab.experiment import Tool

BUDGETS = 25
"""Points of the curves of failure against N."""
BEYOND = 30.0
"""How far the curves go beyond the smallest and the largest answer, as a factor."""


@dataclass(frozen=True)
class AdviceOptions:
    """Options of the advice; --advise asks for it."""

    advise: Path | None = None
    """Instead of running the study, say whether to decompose the team task in this file.

    .npz: reward (A_1, …, A_K), mean rewards with axis k for agent k; or actions (n, K), integers from 0,
    and rewards (n,), the team's, of n logged episodes. .csv: a header, one line an episode, the column
    `reward` (else the last one), all other columns an agent's action under any label. Every joint action
    must be there at least once."""
    accuracy: float = 0.1
    """With --advise: the regret that may be left, in units of reward."""
    failure_probability: float = 0.1
    """With --advise: the chance that more is left."""
    noise_std: float | None = None
    """With --advise: noise of one episode's reward; by default 1 for a tensor, estimated from logs."""


def apply(options: AdviceOptions, console: Any) -> xr.Dataset:
    """Read the file, print the advice and what it rests on, return it with curves and marginal means."""
    assert options.advise is not None
    file = load_team_file(options.advise)
    task = known_task(file.reward, file.actions, file.rewards, options.noise_std)
    laws = laws_of(task, options.accuracy, options.failure_probability)
    advice = decide(task, laws)
    sentences = _sentences(advice, task, options)
    _print(advice, task, options, sentences, console)
    return _dataset(advice, task, laws, file, options, sentences)


def _sentences(advice: Advice, task: TeamTask, options: AdviceOptions) -> list[str]:
    """The verdict, then what to know besides."""
    sarl, marl = advice.sarl_samples, advice.marl_samples
    cells = task.reward.size
    if math.isinf(marl) and advice.floor > options.accuracy:
        verdict = (
            f"don't decompose: the team's regret tends to {advice.floor:.4g}, "
            f"{advice.floor / options.accuracy:.3g} times the accuracy {options.accuracy:g}; from that "
            "accuracy on it would be within reach"
        )
    elif math.isinf(marl):
        verdict = (
            "don't decompose: agents can't tell tied actions apart, which depend on the others'"
        )
    elif sarl == marl:
        verdict = "no crossover to be on a side of: one agent and the team need the same"
    else:
        word, more, fewer, factor = (
            ("decompose", "one agent", "the team", sarl / marl if marl else math.inf)
            if advice.decompose
            else ("don't decompose", "the team", "one agent", marl / sarl if sarl else math.inf)
        )
        verdict = f"{word}: {more} needs {factor:.3g} times as many trajectories as {fewer}"
    notes = [verdict]
    if 0.0 < sarl < cells:
        notes.append(
            f"one agent tries every joint action once in {cells:,} trajectories at the least"
        )
    if task.visits is not None:
        error = task.noise_std * math.sqrt(float(np.mean(1.0 / task.visits)))
        note = f"means of joint actions are known to ±{error:.2g} (standard error)"
        if 2.0 * error > options.accuracy:
            note += (
                f", too little for the accuracy {options.accuracy:g}: floor and numbers are rough"
            )
        notes.append(note)
    return notes


def _print(
    advice: Advice, task: TeamTask, options: AdviceOptions, sentences: list[str], console: Any
) -> None:
    from rich import box
    from rich.table import Table

    say = functools.partial(console.print, highlight=False, markup=False, soft_wrap=True)
    logged = task.visits is not None
    sizes = " × ".join(str(a) for a in task.reward.shape)
    source = (
        f"{int(task.visits.sum()):,} logged episodes" if task.visits is not None else "a tensor"
    )
    say(
        f"{task.reward.ndim} agents, {sizes} actions, from {source}; accuracy {options.accuracy:g}, "
        f"failure probability {options.failure_probability:g}:"
    )
    low, high = advice.alignment_interval
    rows = {
        "alignment A₁ (share of single agents)": f"{advice.alignment:.4g}"
        + (f"  (95 %: {low:.3g} … {high:.3g})" if logged else ""),
        "noise of a team reward": f"{task.noise_std:.4g}" + ("" if logged else "  (given)"),
        "floor of the team's regret": f"{advice.floor:.4g}",
        "trajectories, one agent": _count(advice.sarl_samples),
        "trajectories, team": _count(advice.marl_samples),
    }
    shown = Table(box=box.SIMPLE, pad_edge=False, show_header=False)
    for name, value in rows.items():
        shown.add_row(name, value)
    console.print(shown)
    for sentence in sentences:
        say(f"- {sentence}")
    say(
        "one agent: all joint actions equally often, the best mean is taken; team: each agent takes its "
        "own action with the best mean of the shared reward, teammates uniform; trajectories: all "
        "agents act once in each"
    )


def _count(samples: float) -> str:
    if math.isinf(samples):
        return "never"
    return f"{samples:,.0f}" if samples >= 100.0 else f"{samples:.3g}"


def _dataset(
    advice: Advice,
    task: TeamTask,
    laws: Laws,
    file: TeamFile,
    options: AdviceOptions,
    sentences: list[str],
) -> xr.Dataset:
    answers = [n for n in advice[3:5] if 0.0 < n < math.inf] or [float(task.reward.size)]
    budgets = np.geomspace(min(answers) / BEYOND, max(answers) * BEYOND, BUDGETS)
    failures = [
        [law(float(n)) for n in budgets] for law in (laws.joint_failure, laws.shared_failure)
    ]
    shape = task.reward.shape
    means, errors = np.full((2, len(shape), max(shape)), np.nan)
    labels = np.full((len(shape), max(shape)), "", dtype=object)
    for k, effect in enumerate(main_effects(task.reward)):
        means[k, : shape[k]] = effect + task.reward.mean()
        errors[k, : shape[k]] = 0.0
        if task.visits is not None:
            others = tuple(j for j in range(len(shape)) if j != k)
            share = np.sum(1.0 / task.visits, axis=others) / (task.reward.size / shape[k]) ** 2
            errors[k, : shape[k]] = task.noise_std * np.sqrt(share)
        named = file.labels[k] if file.labels is not None else tuple(map(str, range(shape[k])))
        labels[k, : shape[k]] = named
    names = file.agents or tuple(f"agent {k + 1}" for k in range(len(shape)))
    low, high = advice.alignment_interval
    return xr.Dataset(
        {
            "failure": (
                ("learner", "trajectories"),
                np.array(failures),
                {"long_name": "probability of a regret above the accuracy", "units": "1"},
            ),
            "marginal_mean": (
                ("agent", "action"),
                means,
                {"long_name": "mean team reward, teammates uniform", "units": "reward"},
            ),
            "marginal_error": (
                ("agent", "action"),
                errors,
                {"long_name": "its standard error", "units": "reward"},
            ),
            "label": (("agent", "action"), labels.astype(str), {"long_name": "name of the action"}),
            "mean_reward": (
                "joint_action",
                task.reward.ravel(),
                {"long_name": "mean team reward, last agent fastest", "units": "reward"},
            ),
        },
        coords={
            "learner": ["one agent", "team"],
            "trajectories": budgets,
            "agent": list(names),
        },
        attrs={
            "alignment": advice.alignment,
            "alignment_low": low,
            "alignment_high": high,
            "floor": advice.floor,
            "sarl_samples": advice.sarl_samples,
            "marl_samples": advice.marl_samples,
            "decompose": int(advice.decompose),
            "noise_std": task.noise_std,
            "accuracy": options.accuracy,
            "failure_probability": options.failure_probability,
            "logged": int(task.visits is not None),
            "reasons": "\n".join(sentences),
        },
    )


TOOL = Tool(name="advise", options=AdviceOptions(), apply=apply, figures="advice")
