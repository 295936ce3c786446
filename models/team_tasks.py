"""Tasks of a team of agents that each pick one of A actions at once: parity, order-q coupling, needle.

Symbols: K agents, A actions each, a joint action a = (a_1, …, a_K) ∈ {0, …, A−1}^K, the team's
expected reward R(a), agent k's own expected reward μ_k(a_k). In all tasks μ_k(0) = 0 and μ_k(a) = −Δ
otherwise; Δ is the gap, λ the coupling. What is observed: an agent's own signal μ_k(a_k) + σ_s·N(0, 1)
(process reward), or the outcome R(a) + σ_o·N(0, 1) (team reward). σ_o = σ_s/√K unless said: the outcome
is then the mean of noisy subtask scores.
"""

from dataclasses import dataclass
from math import comb
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from boundlab.checks import check_integer, check_number, check_shape, fail
from boundlab.precision import is_traced
from boundlab.typing import Count, Scalar

# Joint actions that are held in memory one by one; sizes beyond go by groups.
MOST_JOINT_ACTIONS = 2**24


@dataclass(frozen=True)
class ParityTask:
    """R(a) = (1/K) Σ_k μ_k(a_k) + λ·1{Σ_k a_k ≡ 1 modulo A}; coupling 0 is the additive task.

    Parity is invisible in every K − 1 agents' marginal rewards (K ≥ 2), so that agents that learn one by
    one end at (0, …, 0), max(0, λ − Δ/K) below the best.

    Raises `ValueError` naming the argument. Source: derived, docs/team_learning.md#parity.
    """

    num_actions: Count
    """A ≥ 1, of each agent."""
    num_agents: Count
    """K ≥ 1."""
    gap: Scalar
    """Δ ≥ 0. May be traced."""
    coupling: Scalar = 0.0
    """λ ≥ 0. May be traced."""
    own_noise_std: Scalar = 1.0
    """σ_s ≥ 0, of an agent's own signal. May be traced."""
    outcome_noise_std: Scalar | None = None
    """σ_o ≥ 0, of the team's reward; None for σ_s/√K. May be traced."""

    def __post_init__(self) -> None:
        _check(self)
        _check_scalar("coupling", self.coupling)


@dataclass(frozen=True)
class OrderTask:
    """R(a) = (1/K) Σ_k μ_k(a_k) + λ·1{a_1 = … = a_q = 1}: q agents must switch together.

    Raises `ValueError` naming the argument. Source: derived, docs/team_learning.md#order-q-coupling.
    """

    num_actions: Count
    """A ≥ 1; with A = 1 no agent can switch."""
    num_agents: Count
    """K ≥ 1."""
    gap: Scalar
    """Δ ≥ 0. May be traced."""
    coupling: Scalar
    """λ ≥ 0. May be traced."""
    order: Count
    """q, from 1 to K: the first q agents are coupled."""
    own_noise_std: Scalar = 1.0
    """As in `ParityTask`."""
    outcome_noise_std: Scalar | None = None
    """As in `ParityTask`."""

    def __post_init__(self) -> None:
        _check(self)
        _check_scalar("coupling", self.coupling)
        check_integer("order", self.order, 1, int(self.num_agents), why="the number of agents")


@dataclass(frozen=True)
class NeedleTask:
    """R(a) = Δ·1{a = (0, …, 0)}: one joint action is better by Δ; own rewards as in the other tasks.

    Raises `ValueError` naming the argument. Source: derived, docs/team_learning.md#bandit-feedback.
    """

    num_actions: Count
    """A ≥ 1."""
    num_agents: Count
    """K ≥ 1."""
    gap: Scalar
    """Δ ≥ 0, of the team's reward and of each agent's own. May be traced."""
    own_noise_std: Scalar = 1.0
    """As in `ParityTask`."""
    outcome_noise_std: Scalar | None = None
    """As in `ParityTask`."""

    def __post_init__(self) -> None:
        _check(self)


TeamTask = ParityTask | OrderTask | NeedleTask


class Pattern(NamedTuple):
    """The static half of a task: which joint actions earn the bonus."""

    num_actions: int
    num_agents: int
    kind: str
    """`parity`, `order` or `needle`."""
    order: int
    """q of `order`, else 0."""


class Payoffs(NamedTuple):
    """The traced half of a task: R(a) = bonus·1{a in the pattern} − cost·#{k : a_k ≠ 0}."""

    cost: Float[Array, ""]
    bonus: Float[Array, ""]
    gap: Float[Array, ""]
    own_noise_std: Float[Array, ""]
    outcome_noise_std: Float[Array, ""]


def reward_tensor(task: TeamTask) -> Float[Array, "..."]:
    """R (A, …, A), axis k the action of agent k, for at most 2²⁴ joint actions.

    Raises `ValueError` naming `task`.
    """
    pattern, payoffs = halves(task)
    check_joint_actions(pattern)
    shape = (pattern.num_actions,) * pattern.num_agents
    return joint_rewards(pattern, payoffs).reshape(shape)


def team_reward(task: TeamTask, actions: Any) -> Float[Array, "..."]:
    """R(a) of joint actions: (…, K) integers from 0 to A − 1, may be traced; of shape (…).

    Raises `ValueError` naming the argument.
    """
    pattern, payoffs = halves(task)
    check_number("actions", actions, 0, pattern.num_actions - 1)
    shape = np.shape(actions)
    check_shape("actions", actions, (*shape[:-1], pattern.num_agents), "one action an agent")
    array = jnp.asarray(actions)
    if not jnp.issubdtype(array.dtype, jnp.integer):
        raise fail("actions", f"values of type {array.dtype}", "integers")
    return rewards_of(pattern, payoffs, array)


def reward_groups(task: TeamTask) -> tuple[Float[Array, " groups"], Float[Array, " groups"]]:
    """Different rewards and how many of the A^K joint actions earn each; groups may share a value.

    Sizes are counted in integers and given as floating-point numbers, A^K beyond 2⁶³ included.
    Raises `ValueError` naming `task`.
    """
    pattern, payoffs = halves(task)
    values, counts = group_rewards(pattern, payoffs)
    return values, jnp.asarray(counts, values.dtype)


def own_rewards(task: TeamTask) -> Float[Array, "agents actions"]:
    """μ_k(a) (K, A): 0 for action 0, −Δ for the others. Raises `ValueError` naming `task`."""
    pattern, payoffs = halves(task)
    return own_table(pattern, payoffs, pattern.num_actions)


def marginal_rewards(task: TeamTask) -> Float[Array, "agents actions"]:
    """E[R(a) | a_k] (K, A) with the other agents uniform: what shared rewards let an agent see.

    Raises `ValueError` naming `task`.
    """
    pattern, payoffs = halves(task)
    return marginal_table(pattern, payoffs, pattern.num_actions)


def halves(task: Any) -> tuple[Pattern, Payoffs]:
    """A task's static pattern and its traced payoffs, in the working precision."""
    if not isinstance(task, ParityTask | OrderTask | NeedleTask):
        raise fail("task", f"a {type(task).__name__}", "a ParityTask, OrderTask or NeedleTask")
    dtype = jnp.result_type(float)
    agents = int(task.num_agents)
    gap, own = (jnp.asarray(value).astype(dtype) for value in (task.gap, task.own_noise_std))
    if task.outcome_noise_std is None:
        outcome = own / np.sqrt(agents)
    else:
        outcome = jnp.asarray(task.outcome_noise_std).astype(dtype)
    if isinstance(task, NeedleTask):
        kind, order, cost, bonus = "needle", 0, jnp.zeros_like(gap), gap
    else:
        order = int(task.order) if isinstance(task, OrderTask) else 0
        kind = "order" if order else "parity"
        cost, bonus = gap / agents, jnp.asarray(task.coupling).astype(dtype)
    return Pattern(int(task.num_actions), agents, kind, order), Payoffs(
        cost, bonus, gap, own, outcome.astype(dtype)
    )


def rewards_of(
    pattern: Pattern, payoffs: Payoffs, actions: Integer[Array, "*trials agents"]
) -> Float[Array, "*trials"]:
    """R of joint actions that are known to be in range."""
    if pattern.kind == "parity":
        hit = (jnp.sum(actions, axis=-1) - 1) % pattern.num_actions == 0
    elif pattern.kind == "order":
        hit = jnp.all(actions[..., : pattern.order] == 1, axis=-1)
    else:
        hit = jnp.all(actions == 0, axis=-1)
    dtype = payoffs.cost.dtype
    away = jnp.sum(actions != 0, axis=-1, dtype=jnp.int32).astype(dtype)
    return payoffs.bonus * hit.astype(dtype) - payoffs.cost * away


def joint_rewards(pattern: Pattern, payoffs: Payoffs) -> Float[Array, " arms"]:
    """R of all A^K joint actions, the last agent's action fastest."""
    places = pattern.num_actions ** np.arange(pattern.num_agents - 1, -1, -1)
    arms = jnp.arange(pattern.num_actions**pattern.num_agents, dtype=jnp.int32)
    actions = arms[:, None] // jnp.asarray(places, jnp.int32)[None, :] % pattern.num_actions
    return rewards_of(pattern, payoffs, actions)


def group_rewards(pattern: Pattern, payoffs: Payoffs) -> tuple[Float[Array, " groups"], np.ndarray]:
    """Values and sizes of the groups of joint actions with equal rewards; none is empty."""
    counts = _groups(pattern)[2]
    # The largest of c noises is Φ⁻¹ of 1 − e/c, e no less than a quarter of the type's step.
    limits = jnp.finfo(payoffs.cost.dtype)
    most = int(float(limits.eps) / 4 / float(limits.tiny))
    if sum(counts) > most:
        got = f"{pattern.num_actions}^{pattern.num_agents} joint actions"
        raise fail("task", got, f"at most {most:.1e}, drawn in {payoffs.cost.dtype}")
    return _group_values(pattern, payoffs), np.array([float(count) for count in counts])


def best_reward(pattern: Pattern, payoffs: Payoffs) -> Float[Array, ""]:
    """The largest R."""
    return jnp.max(_group_values(pattern, payoffs))


def own_table(pattern: Pattern, payoffs: Payoffs, columns: int) -> Float[Array, "agents columns"]:
    """μ_k of the first actions."""
    row = -payoffs.gap * jnp.asarray(np.arange(columns) != 0, payoffs.gap.dtype)
    return jnp.broadcast_to(row, (pattern.num_agents, columns))


def marginal_table(
    pattern: Pattern, payoffs: Payoffs, columns: int
) -> Float[Array, "agents columns"]:
    """E[R | a_k] of the first actions, by the pattern's probability given a_k."""
    actions, agents = pattern.num_actions, pattern.num_agents
    chance = np.zeros((agents, columns))
    if pattern.kind == "parity":
        chance[:] = 1 / actions
        if agents == 1:
            chance[:] = (np.arange(columns) - 1) % actions == 0
    elif pattern.kind == "order" and actions > 1:
        chance[: pattern.order, 1] = float(actions) ** (1 - pattern.order)
        chance[pattern.order :] = float(actions) ** -pattern.order
    elif pattern.kind == "needle":
        chance[:, 0] = float(actions) ** (1 - agents)
    dtype = payoffs.cost.dtype
    others = (agents - 1) * (1 - 1 / actions)
    away = np.broadcast_to(others + (np.arange(columns) != 0), chance.shape)
    return payoffs.bonus * jnp.asarray(chance, dtype) - payoffs.cost * jnp.asarray(away, dtype)


def check_joint_actions(pattern: Pattern, name: str = "task", instead: str = "") -> None:
    """Refuse more joint actions than are held one by one."""
    if pattern.num_actions**pattern.num_agents > MOST_JOINT_ACTIONS:
        got = f"{pattern.num_actions}^{pattern.num_agents} joint actions"
        raise fail(name, got, f"at most {MOST_JOINT_ACTIONS}{instead}")


def _group_values(pattern: Pattern, payoffs: Payoffs) -> Float[Array, " groups"]:
    away, hit, _ = _groups(pattern)
    dtype = payoffs.cost.dtype
    return payoffs.bonus * jnp.asarray(hit, dtype) - payoffs.cost * jnp.asarray(away, dtype)


def _groups(pattern: Pattern) -> tuple[list[int], list[bool], list[int]]:
    """Agents away from action 0, whether in the pattern, and the number of such joint actions."""
    actions, agents, kind, order = pattern
    if kind == "needle" and actions > 1:
        return [0, 1], [True, False], [1, actions**agents - 1]
    rows = []
    for j in range(agents + 1):
        total = comb(agents, j) * (actions - 1) ** j
        if actions == 1:
            hits = total if kind != "order" else 0
        elif kind == "parity":
            # Of (A − 1)^j settings, those of j numbers in {1, …, A − 1} whose sum is 1 modulo A.
            hits = comb(agents, j) * ((actions - 1) ** j - (-1) ** j) // actions
        elif kind == "order":
            hits = (
                comb(agents - order, j - order) * (actions - 1) ** (j - order) if j >= order else 0
            )
        else:
            hits = int(j == 0)
        rows += [(j, True, hits), (j, False, total - hits)]
    kept = [row for row in rows if row[2] > 0]
    return [row[0] for row in kept], [row[1] for row in kept], [row[2] for row in kept]


def _check(task: TeamTask) -> None:
    check_integer("num_actions", task.num_actions, 1)
    check_integer("num_agents", task.num_agents, 1)
    _check_scalar("gap", task.gap)
    _check_scalar("own_noise_std", task.own_noise_std)
    if task.outcome_noise_std is not None:
        _check_scalar("outcome_noise_std", task.outcome_noise_std)


def _check_scalar(name: str, value: Any) -> None:
    if value is None:
        raise fail(name, "None", "a finite number ≥ 0")
    check_number(name, value, 0)
    if not is_traced(value) or hasattr(value, "shape"):
        check_shape(name, value, ())
