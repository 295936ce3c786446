"""The argument `task` of the theory of teams, and the laws of its learners at one budget.

Symbols: K agents of A actions; Δ gap, λ coupling, σ_s noise of an agent's own reward, σ_o of the team's
outcome; N budget in trajectories; q an agent's chance of a wrong action; ε accuracy; j deviations from ā.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from boundlab.checks import check_choice, check_number, check_shape, fail
from boundlab.theory.team_learning._winners import winners_loss
from boundlab.theory.team_learning.spectra import parity_counts, team_size
from boundlab.typing import Scalar

LEARNERS = ("joint", "own", "shared", "orthogonal")
# Differences of rewards below this, relative to Δ + λ, are rounding.
ROUNDING = 1e-12
# Groups are filled up to a multiple of this.
GROUPS = 8

Value = Float[Array, ""]
Groups = Float[Array, " groups"]


class Task(NamedTuple):
    """A checked parity task as arrays: one program serves all sizes with as many groups."""

    num_actions: Value
    num_agents: Value
    num_joint: Value
    """A^K."""
    gap: Value
    coupling: Value
    own_noise_std: Value
    outcome_noise_std: Value
    deviations: Groups
    """j of each group of joint actions; groups of count 0 fill up a multiple of 8."""
    paid: Groups
    """1 where the coupling pays, else 0."""
    counts: Groups
    shares: Groups
    """Chance of the pattern, given which j agents err: counts/(A−1)^j."""

    @property
    def values(self) -> Groups:
        """Mean reward of each group."""
        return self.coupling * self.paid - self.gap * self.deviations / self.num_agents

    @property
    def losses(self) -> Groups:
        """Regret of each group; 0 for empty ones."""
        return losses_of(self.values, self.counts)

    @property
    def floor(self) -> Value:
        """R* − R(ā) = max(0, λ − Δ/K); none with one action."""
        floor = jnp.maximum(0.0, self.coupling - self.gap / self.num_agents)
        return jnp.where(self.num_actions > 1.0, floor, 0.0)


class Signal(NamedTuple):
    """What one agent of a team compares its actions by, per trajectory."""

    gap: Value
    noise_std: Value


def read_task(task: Any) -> Task:
    """The attributes of `task`, checked; errors name the attribute."""
    names = ("num_actions", "num_agents", "gap", "coupling", "own_noise_std", "outcome_noise_std")
    if missing := [name for name in names if not hasattr(task, name)]:
        raise fail("task", f"a {type(task).__name__} without {missing[0]}", "a ParityTask")
    actions, agents = team_size(task.num_actions, task.num_agents)
    numbers = {name: getattr(task, name) for name in names[2:]}
    if numbers["outcome_noise_std"] is None:
        own = checked("own_noise_std", numbers["own_noise_std"])
        numbers["outcome_noise_std"] = own / agents**0.5
    read = {name: checked(name, value) for name, value in numbers.items()}
    read |= {name: jnp.asarray(row) for name, row in _groups(actions, agents).items()}
    sizes = {"num_actions": actions, "num_agents": agents, "num_joint": actions**agents}
    read |= {name: jnp.asarray(float(size), jnp.float64) for name, size in sizes.items()}
    return Task(**read)


def checked(name: str, value: Scalar, minimum: float = 0.0) -> Value:
    """One number ≥ `minimum` as a float64 scalar."""
    check_shape(name, value, ())
    check_number(name, value, minimum)
    return jnp.asarray(value).astype(jnp.float64)


@functools.lru_cache(maxsize=256)
def _groups(actions: int, agents: int) -> dict[str, np.ndarray]:
    """The groups of `parity_spectrum` that aren't empty, filled up so that few shapes are compiled."""
    rows = [
        (j, paid, float(count), count / max((actions - 1) ** j, 1))
        for paid, counts in zip((1.0, 0.0), parity_counts(actions, agents), strict=True)
        for j, count in enumerate(counts)
        if count
    ]
    rows += [(0, 0.0, 0.0, 0.0)] * (-len(rows) % GROUPS)
    names = ("deviations", "paid", "counts", "shares")
    return dict(zip(names, np.array(rows, dtype=np.float64).T, strict=True))


def check_learner(learner: object) -> None:
    """Refuse anything but a learner's name."""
    check_choice("learner", learner, LEARNERS)


def sees_all(task: Any, learner: str) -> bool:
    """Whether the learner compares joint actions: the joint one, and one agent paid the outcome."""
    return learner == "joint" or (int(task.num_agents) == 1 and learner != "own")


@functools.partial(jax.jit, static_argnames="learner")
def agent_signal(task: Task, learner: str) -> Signal:
    """Gap and noise of one agent's comparison, by the learner's reward and design.

    `shared` has the teammates' exploration in its noise; the last term, of parity, needs K ≥ 3 and is a
    mean over arms for K = 2.
    """
    if learner == "own":
        return Signal(task.gap, task.own_noise_std)
    gap, noise = task.gap / task.num_agents, task.outcome_noise_std
    if learner != "shared":
        return Signal(gap, noise)
    explored = (task.num_actions - 1.0) / task.num_actions**2
    teammates = explored * ((task.num_agents - 1.0) * gap**2 + task.coupling**2)
    return Signal(gap, jnp.sqrt(noise**2 + teammates))


def losses_of(values: Groups, counts: Groups) -> Groups:
    """Distance of each group from the best; 0 for empty ones."""
    present = counts > 0.0
    return jnp.where(present, jnp.max(jnp.where(present, values, -jnp.inf)) - values, 0.0)


def fails(losses: Float[Array, "*n"], accuracy: Value, task: Task) -> Bool[Array, "*n"]:
    """Whether a regret exceeds ε, by more than rounding."""
    return losses > accuracy + ROUNDING * (task.gap + task.coupling)


def joint_scale(budget: Value, task: Task) -> Value:
    """√m/σ_o of the joint learner, m = N/A^K samples per joint action."""
    return _per_noise(jnp.sqrt(budget / task.num_joint), task.outcome_noise_std)


def agent_error(budget: Value, task: Task, signal: Signal) -> Value:
    """q, the chance that one agent of a team takes a wrong action; m = N/A samples per action."""
    scale = _per_noise(jnp.sqrt(budget / task.num_actions), signal.noise_std)
    return winners_loss(*agent_arms(task, signal.gap), jnp.asarray([0.0, 1.0], jnp.float64), scale)


def agent_arms(task: Task, gap: Value) -> tuple[Groups, Groups]:
    """Values and counts of one agent's actions: the best, and the others."""
    return (
        jnp.stack([gap, jnp.zeros_like(gap)]),
        jnp.stack([jnp.ones_like(gap), task.num_actions - 1.0]),
    )


def decomposed_regret(error: Value, task: Task) -> Value:
    """(E8): regret of agents that err independently with chance q, uniformly among wrong actions."""
    several = task.num_actions > 1.0
    odds = task.num_actions / jnp.where(several, task.num_actions - 1.0, 1.0)
    mixed = jnp.where(several, error * odds, 0.0)
    whole = mixed >= 1.0
    # 1 − (1 − y)^K, without cancellation for a small y.
    shuffled = -jnp.expm1(task.num_agents * jnp.log1p(-jnp.where(whole, 0.0, mixed)))
    parity = jnp.where(whole, 1.0, shuffled) / task.num_actions
    return task.floor + task.gap * error - task.coupling * parity


def pattern_failure(error: Value, task: Task, accuracy: Value) -> Value:
    """P(regret > ε) of agents that err independently with chance q, uniformly among wrong actions.

    Patterns of j errors have chance q^j(1−q)^{K−j} times C(K, j), split by the coupling as the joint
    actions of j deviations are.
    """
    right = task.num_agents - task.deviations
    chances = task.shares * error**task.deviations * (1.0 - error) ** right
    return jnp.sum(jnp.where(fails(task.losses, accuracy, task), chances, 0.0))


def _per_noise(root: Value, noise: Value) -> Value:
    """√m/σ: 0 without samples, ∞ without noise."""
    exact = noise <= 0.0
    ratio = root / jnp.where(exact, 1.0, noise)
    return jnp.where(exact & (root > 0.0), jnp.inf, ratio)
