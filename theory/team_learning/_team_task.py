"""The argument `task` of the theory of teams, and the laws of its learners at one budget.

Symbols: K agents of A actions; Δ gap, λ coupling, σ_s noise of an agent's own reward, σ_o of the team's
outcome; N budget in trajectories; q an agent's chance of a wrong action; ε accuracy.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from boundlab.checks import check_choice, check_number, check_shape, fail
from boundlab.theory.team_learning._winners import winners_loss
from boundlab.theory.team_learning.spectra import (
    Spectrum,
    parity_counts,
    parity_spectrum,
    team_size,
)

LEARNERS = ("joint", "own", "shared", "orthogonal")
# Differences of rewards below this, relative to Δ + λ, are rounding.
ROUNDING = 1e-12


class Task(NamedTuple):
    """A parity task whose numbers are checked; the sizes are static."""

    num_actions: int
    num_agents: int
    gap: Float[Array, ""]
    coupling: Float[Array, ""]
    own_noise_std: Float[Array, ""]
    outcome_noise_std: Float[Array, ""]

    @property
    def floor(self) -> Float[Array, ""]:
        """R* − R(ā) = max(0, λ − Δ/K) for A ≥ 2; R(ā) = 0."""
        return jnp.maximum(0.0, self.coupling - self.gap / self.num_agents)

    @property
    def num_joint(self) -> float:
        """A^K."""
        return float(self.num_actions**self.num_agents)


def read_task(task: Any) -> Task:
    """The attributes of `task`, checked; errors name `task.<attribute>`."""
    names = ("num_actions", "num_agents", "gap", "coupling", "own_noise_std", "outcome_noise_std")
    if missing := [name for name in names if not hasattr(task, name)]:
        raise fail("task", f"a {type(task).__name__} without {missing[0]}", "a ParityTask")
    actions, agents = team_size(task.num_actions, task.num_agents)
    numbers = {name: getattr(task, name) for name in names[2:]}
    if numbers["outcome_noise_std"] is None:
        del numbers["outcome_noise_std"]
    for name, value in numbers.items():
        check_shape(name, value, ())
        check_number(name, value, 0)
    read = {name: jnp.asarray(value).astype(jnp.float64) for name, value in numbers.items()}
    default = read["own_noise_std"] / jnp.sqrt(float(agents))
    outcome = read.pop("outcome_noise_std", default)
    return Task(actions, agents, outcome_noise_std=outcome, **read)


def check_learner(learner: object) -> None:
    """Refuse anything but a learner's name."""
    check_choice("learner", learner, LEARNERS)


def sees_all(task: Task, learner: str) -> bool:
    """Whether the learner compares joint actions: the joint one, and one agent paid the outcome."""
    return learner == "joint" or (task.num_agents == 1 and learner != "own")


def team_spectrum(task: Task) -> Spectrum:
    """`parity_spectrum` without its empty groups, filled up so that few shapes are compiled."""
    values, _ = parity_spectrum(task.num_actions, task.num_agents, task.gap, task.coupling)
    paid, other = parity_counts(task.num_actions, task.num_agents)
    kept = [place for place, count in enumerate((*paid, *other)) if count]
    counts = [float((*paid, *other)[place]) for place in kept]
    spare = -len(kept) % 4
    return values[jnp.asarray(kept + kept[:1] * spare)], jnp.asarray(
        counts + [0.0] * spare, jnp.float64
    )


def losses_of(values: Float[Array, " groups"], counts: Float[Array, " groups"]) -> Any:
    """Regret of each group; 0 for empty ones."""
    present = counts > 0.0
    return jnp.where(present, jnp.max(jnp.where(present, values, -jnp.inf)) - values, 0.0)


def fails(losses: Float[Array, "*n"], accuracy: Float[Array, ""], task: Task) -> Bool[Array, "*n"]:
    """Whether a regret exceeds ε, by more than rounding."""
    return losses > accuracy + ROUNDING * (task.gap + task.coupling)


def joint_scale(budget: Float[Array, ""], task: Task) -> Float[Array, ""]:
    """√m/σ_o of the joint learner, m = N/A^K samples per joint action."""
    return per_noise(jnp.sqrt(budget / task.num_joint), task.outcome_noise_std)


def agent_signal(task: Task, learner: str) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Gap and noise of what one agent of a team compares its actions by, per trajectory.

    `shared` has the teammates' exploration in its noise; the last term, of parity, needs K ≥ 3 and is a
    mean over arms for K = 2.
    """
    if learner == "own":
        return task.gap, task.own_noise_std
    gap, noise = task.gap / task.num_agents, task.outcome_noise_std
    if learner == "orthogonal":
        return gap, noise
    explored = (task.num_actions - 1) / task.num_actions**2
    teammates = (task.num_agents - 1) * gap**2 * explored + task.coupling**2 * explored
    return gap, jnp.sqrt(noise**2 + teammates)


def agent_error(budget: Float[Array, ""], task: Task, learner: str) -> Float[Array, ""]:
    """q, the chance that one agent of a team takes a wrong action; m = N/A samples per action."""
    gap, noise = agent_signal(task, learner)
    values = jnp.stack([gap, jnp.zeros_like(gap)])
    counts = jnp.asarray([1.0, task.num_actions - 1.0], jnp.float64)
    # Actions without a gap are tied: all but the first are wrong.
    split = winners_loss(
        values,
        counts,
        jnp.asarray([0.0, 1.0], jnp.float64),
        per_noise(jnp.sqrt(budget / task.num_actions), noise),
    )
    return split


def per_noise(root: Float[Array, ""], noise: Float[Array, ""]) -> Float[Array, ""]:
    """√m/σ: 0 without samples, ∞ without noise."""
    exact = noise <= 0.0
    ratio = root / jnp.where(exact, 1.0, noise)
    return jnp.where(exact & (root > 0.0), jnp.inf, ratio)


def decomposed_regret(error: Float[Array, ""], task: Task) -> Float[Array, ""]:
    """(E8): regret of agents that err independently with chance q, uniformly among wrong actions."""
    if task.num_actions == 1:
        return jnp.zeros_like(error)
    actions, agents = task.num_actions, task.num_agents
    mixed = jnp.minimum(error * (actions / (actions - 1)), 1.0)
    whole = mixed >= 1.0
    # 1 − (1 − y)^K, without cancellation for a small y.
    shuffled = -jnp.expm1(agents * jnp.log1p(-jnp.where(whole, 0.0, mixed)))
    parity = jnp.where(whole, 1.0, shuffled) / actions
    return task.floor + task.gap * error - task.coupling * parity


def pattern_failure(
    error: Float[Array, ""], task: Task, accuracy: Float[Array, ""]
) -> Float[Array, ""]:
    """P(regret > ε) of agents that err independently with chance q, uniformly among wrong actions.

    Patterns of j errors have chance q^j(1−q)^{K−j} times C(K, j), split by the coupling as the joint
    actions of j deviations are.
    """
    if task.num_actions == 1:
        return jnp.zeros_like(error)
    agents = task.num_agents
    values, _ = parity_spectrum(task.num_actions, agents, task.gap, task.coupling)
    chances = []
    for row in parity_counts(task.num_actions, agents):
        for j, count in enumerate(row):
            # A ratio of integers: counts alone may pass the range of a float.
            share = count / max((task.num_actions - 1) ** j, 1)
            chances.append(share * error**j * (1.0 - error) ** (agents - j))
    failing = fails(task.floor - values, accuracy, task)
    return jnp.sum(jnp.where(failing, jnp.stack(chances), 0.0))
