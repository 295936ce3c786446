"""Floors of agents that respond one after another, and of agents that see only their own context.

Symbols: the parity task, R(a) = (1/K) Σ_k μ_k(a_k) + λ·1{Σ_k a_k ≡ 1 modulo A} with μ_k(0) = 0 and
μ_k(a) = −Δ otherwise; K agents of A actions; ā = (0, …, 0), each agent's own best action. In the
information task agent 1 must name agent 2's context, R = λ·1{a_1 = x_2}, x uniform on {1, …, A}^K.
Rewards are the team's (outcome) unless they are called the agents' own.
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_choice, check_integer, check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.theory.team_learning.selection import slippage_root
from boundlab.typing import Count, Scalar

STARTS = ("random", "own")
LEARNERS = ("joint", "local")
# A lead of λ over Δ/K below this, relative to λ, is rounding.
ROUNDING = 1e-12


@float64
def best_response_floor(
    num_actions: Count, num_agents: Count, gap: Scalar, coupling: Scalar, start: str = "random"
) -> Float[Array, ""]:
    """Expected regret of exact sequential best response to the team's reward under parity, λ ≠ Δ/K:

        (Δ/K)(K(1 − 1/A) − 1)  from uniformly random actions if λ > Δ/K,    0  from ā.

    From a random start the first agent repairs parity, after which nobody gains by moving: all agents
    stay uniform given parity, K(1 − 1/A) of them away from action 0 where one would do. For λ < Δ/K (all
    return to ā), one agent or one action there is no floor.

    Args:
        num_actions: A ≥ 1.
        num_agents: K ≥ 1.
        gap: Δ ≥ 0, in units of reward. May be traced.
        coupling: λ ≥ 0, in units of reward. May be traced.
        start: `random`, or `own`: ā, where agents that learn their own rewards first begin.

    Returns:
        The floor, in units of the team's reward, after one or more rounds.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#best-response.

    """
    actions, agents = _sizes(num_actions, num_agents)
    check_choice("start", start, STARTS)
    delta, weight = _scalar("gap", gap), _scalar("coupling", coupling)
    if start == "own" or actions == 1 or agents == 1:
        return jnp.zeros((), jnp.float64)
    floor = delta * ((1.0 - 1.0 / actions) - 1.0 / agents)
    return jnp.where(_lead(weight, delta, agents) > 0.0, floor, 0.0)


@float64
def two_phase_samples(
    num_actions: Count,
    num_agents: Count,
    gap: Scalar,
    coupling: Scalar,
    own_noise_std: Scalar,
    outcome_noise_std: Scalar,
    failure_probability: Scalar,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Trajectories of two phases after which the team is optimal under parity but with probability δ:

        own phase    A (σ_s/Δ)² x*²(A, δ'),            all agents at once, by their own rewards;
        team phase   K·A (σ_o/(λ − Δ/K))² x*²(A, δ'),  one agent after another, by the team's,

    with δ' = 1 − (1 − δ/2)^{1/K} and x* the root of (E2). The own phase must find ā: an error of it
    stays, since the first response freezes the others. Then the first agent's best action leads by
    λ − Δ/K, the least gap of all responses. At λ = 2Δ/K the team phase is K·A·K²(σ_o/Δ)²x*², the
    K²Σd_i of bounds on dependent agents.

    Args:
        num_actions: A ≥ 1.
        num_agents: K ≥ 1.
        gap: Δ ≥ 0, in units of reward. May be traced.
        coupling: λ > Δ/K, in units of reward. May be traced.
        own_noise_std: σ_s ≥ 0. May be traced.
        outcome_noise_std: σ_o ≥ 0. May be traced.
        failure_probability: δ in (0, 1). May be traced.

    Returns:
        Trajectories of each phase, real numbers: enough, but the second more than needed, since not all
        agents meet the least gap. +inf for gap 0, and for a traced λ ≤ Δ/K.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#best-response.

    """
    actions, agents = _sizes(num_actions, num_agents)
    delta, weight = _scalar("gap", gap), _scalar("coupling", coupling)
    lead = _lead(weight, delta, agents)
    if not is_traced(lead) and lead <= 0.0:
        raise fail(
            "coupling", float(weight), f"a number > {float(delta) / agents:g}, gap/num_agents"
        )
    own = _scalar("own_noise_std", own_noise_std)
    outcome = _scalar("outcome_noise_std", outcome_noise_std)
    check_number("failure_probability", failure_probability, 0, 1, low_open=True, high_open=True)
    each = -jnp.expm1(jnp.log1p(-_scalar("failure_probability", failure_probability) / 2) / agents)
    root = slippage_root(actions, each)
    first, response = _samples(root, own, delta), _samples(root, outcome, lead)
    return actions * first, agents * actions * response


@float64
def information_floor(num_actions: Count, coupling: Scalar) -> Float[Array, ""]:
    """Regret λ(1 − 1/A) that no number of trajectories removes if agent 1 doesn't see x_2.

    Every policy of agent 1's own context names x_2 with probability 1/A.

    Args:
        num_actions: A ≥ 1, of actions and of each agent's contexts.
        coupling: λ ≥ 0, in units of the team's reward. May be traced.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#information-floor.

    """
    actions, _ = _sizes(num_actions, 1)
    return _scalar("coupling", coupling) * (1.0 - 1.0 / actions)


@float64
def information_regret(
    num_trajectories: Scalar, num_actions: Count, num_agents: Count, coupling: Scalar, learner: str
) -> Float[Array, ""]:
    """Expected regret after N trajectories of uniform exploration without noise, by tables of rewards:

        local  λ(1 − 1/A),    joint  λ(1 − 1/A)(1 − A^{−(K+1)})^N.

    A `joint` learner keeps a table of the A^K joint contexts and agent 1's actions, and picks at random
    where it has seen no reward; a `local` one sees x_1.

    Args:
        num_trajectories: N ≥ 0, real. May be traced.
        num_actions: A ≥ 1.
        num_agents: K ≥ 2.
        coupling: λ ≥ 0, in units of the team's reward. May be traced.
        learner: `joint` or `local`.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#information-floor.

    """
    actions, agents = _sizes(num_actions, num_agents, fewest_agents=2)
    check_choice("learner", learner, LEARNERS)
    trials, weight = _scalar("num_trajectories", num_trajectories), _scalar("coupling", coupling)
    floor = weight * (1.0 - 1.0 / actions)
    if learner == "local" or actions == 1:
        return floor
    return floor * jnp.exp(trials * math.log1p(-math.exp(-(agents + 1) * math.log(actions))))


def information_class_sizes(num_actions: Count, num_agents: Count) -> tuple[float, float]:
    """Natural logs of how many policies agent 1 has: (joint A^K·ln A, local A·ln A).

    Policies map contexts to actions: all A^K joint contexts, or the A of its own.

    Args:
        num_actions: A ≥ 1.
        num_agents: K ≥ 1, A^K ≤ 1e300.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#information-floor.

    """
    actions, agents = _sizes(num_actions, num_agents)
    if agents * math.log10(actions) > 300:
        raise fail("num_agents", f"{agents} with {actions} actions", "A and K with A^K ≤ 1e300")
    return float(actions) ** agents * math.log(actions), actions * math.log(actions)


def _lead(coupling: Float[Array, ""], gap: Float[Array, ""], agents: int) -> Float[Array, ""]:
    """λ − Δ/K, 0 where that is rounding."""
    lead = coupling - gap / agents
    return jnp.where(lead > ROUNDING * coupling, lead, jnp.minimum(lead, 0.0))


def _samples(
    root: Float[Array, ""], noise_std: Float[Array, ""], gap: Float[Array, ""]
) -> Float[Array, ""]:
    """(x*σ/Δ)² per arm; +inf without a gap unless a uniform choice does."""
    some = gap > 0.0
    count = (root * noise_std / jnp.where(some, gap, 1.0)) ** 2
    return jnp.where(some, count, jnp.where(root > 0.0, jnp.inf, 0.0))


def _sizes(num_actions: Count, num_agents: Count, *, fewest_agents: int = 1) -> tuple[int, int]:
    actions = check_integer("num_actions", num_actions, 1, 10**300)
    return actions, check_integer("num_agents", num_agents, fewest_agents, 10**6)


def _scalar(name: str, value: Scalar) -> Float[Array, ""]:
    check_shape(name, value, ())
    check_number(name, value, 0)
    return jnp.asarray(value).astype(jnp.float64)
