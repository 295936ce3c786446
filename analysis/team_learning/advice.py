"""Whether to decompose a team task: alignment, floor and sample complexities from a reward or from logs.

Symbols: K agents, agent k with A_k actions; C = ΠA_k joint actions; R(a) the team's mean reward; N
trajectories, in each of which all agents act at once and the *team's* reward (outcome) is seen with noise
σ; regret R* − R(a) of the joint action that is chosen in the end.
"""

from typing import Any, NamedTuple

import numpy as np

from boundlab.analysis.team_learning.advice_estimates import (
    LARGEST,
    TeamTask,
    task_of_logs,
    task_of_tensor,
)
from boundlab.analysis.team_learning.advice_laws import LEAST, Laws
from boundlab.checks import check_number, check_shape, fail
from boundlab.typing import Numbers, Scalar


class Advice(NamedTuple):
    """What `advise` found; N in trajectories, rewards in the units of the input."""

    alignment: float
    """A₁, the share of Var R that single agents' actions explain: 1 for a sum over agents."""
    alignment_interval: tuple[float, float]
    """95 % interval of A₁ from logs; the point twice where the mean reward is given."""
    floor: float
    """Regret of the team with infinitely many trajectories."""
    sarl_samples: float
    """N at which one agent that ranks joint actions fails with the failure probability."""
    marl_samples: float
    """N from which on a team does, each agent on the shared reward; +inf if it never does."""
    decompose: bool
    """Whether the team takes fewer."""


def advise(
    reward: Numbers | None = None,
    *,
    actions: Any = None,
    rewards: Any = None,
    accuracy: Scalar,
    failure_probability: Scalar,
    noise_std: Scalar | None = None,
) -> Advice:
    """Alignment, floor, and how many trajectories one agent and a team need: P(regret > ε) = δ.

    One agent tries all joint actions equally often, m = N/C each, and takes the best mean: exact, for
    Gaussian noise. In a team each agent takes the action of its own with the best mean of the shared
    reward over uniform teammates, m = N/A_k each: by the central limit theorem, with
    σ_k² = σ² + mean Var(R | a_k) and independent errors. `floor` is what the team's regret tends to.

    With logs, σ² is the pooled variance of the rewards within joint actions (those seen once add
    nothing to it). A₁ is that of R under *uniform* actions whatever the logs' policy, its sums of squares
    with the noise taken off without bias; the interval inverts a test of the ratio (Fieller) and covers
    about 95 %. For floor and budgets, R is the mean of each joint action's episodes, each agent's main
    effect and their interaction scaled to the same unbiased sums of squares: the largest of noisy means
    is too large. They are plug-in estimates: trust them if the standard errors of the cell means are
    below the accuracy.

    Args:
        reward: mean rewards (A_1, …, A_K), axis k agent k; or None, and logs instead.
        actions: (n, K) integers from 0, the agents' actions of n logged episodes; every joint action at
            least once.
        rewards: (n,) the team's rewards of these episodes.
        accuracy: ε > 0, in units of reward.
        failure_probability: δ in (0, 1), at least 1e-300.
        noise_std: σ ≥ 0 of one episode's reward about R; by default 1 with `reward`, estimated from
            logs.

    Returns:
        Advice. N is real, as the laws interpolate between designs that fit: below C one agent can't try
        every joint action once. 0 where chance alone, or one look without noise, is good enough.

    Raises:
        ValueError: an argument is out of range, not finite, of another shape, or missing; it is named.
            At most 2^20 joint actions and 4,096 distinct rewards.

    Source: derived, docs/team_learning.md#advice.

    """
    task = known_task(reward, actions, rewards, noise_std)
    return decide(task, laws_of(task, accuracy, failure_probability))


def known_task(reward: Any, actions: Any, rewards: Any, noise_std: Any) -> TeamTask:
    """The task of a tensor or of logs, whichever is given; errors name the argument."""
    noise = None
    if noise_std is not None:
        check_shape("noise_std", noise_std, ())
        check_number("noise_std", noise_std, 0, LARGEST)
        noise = float(np.asarray(noise_std))
    if reward is not None:
        for name, given in (("actions", actions), ("rewards", rewards)):
            if given is not None:
                raise fail(name, "logs beside a reward tensor", "either reward, or both logs")
        return task_of_tensor(reward, 1.0 if noise is None else noise)
    if actions is None and rewards is None:
        raise fail("reward", "None, and no logs", "a reward tensor, or actions and rewards")
    for name, given in (("actions", actions), ("rewards", rewards)):
        if given is None:
            raise fail(name, "None", "both actions and rewards of the logged episodes")
    return task_of_logs(actions, rewards, noise)


def laws_of(task: TeamTask, accuracy: Any, failure_probability: Any) -> Laws:
    """The laws at ε and δ; errors name `accuracy` or `failure_probability`."""
    check_shape("accuracy", accuracy, ())
    check_number("accuracy", accuracy, 0, low_open=True)
    check_shape("failure_probability", failure_probability, ())
    check_number("failure_probability", failure_probability, LEAST, 1, high_open=True)
    return Laws(task, float(np.asarray(accuracy)), float(np.asarray(failure_probability)))


def decide(task: TeamTask, laws: Laws) -> Advice:
    """The advice on a task whose laws are known."""
    sarl, marl = laws.joint_samples(), laws.shared_samples()
    return Advice(task.alignment, task.interval, laws.floor, sarl, marl, marl < sarl)
