"""Alignment and floors of parity, order-q and needle tasks in closed form, for teams of any size.

Symbols as in `alignment`; Δ the gap of an agent's own mean reward (0 for action 0, −Δ for others), λ the
weight of the coupling. The team's reward is the mean of the agents' own plus λ times the coupling.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_integer
from boundlab.precision import float64
from boundlab.theory.team_learning.spectra import nonnegative, team_size
from boundlab.typing import Count, Scalar


class TaskAlignment(NamedTuple):
    """Alignment of one task, in units of reward but for `anova`."""

    anova: Float[Array, ""]
    """A₁, the first-order share of the variance, as of `anova_alignment`."""
    sup: Float[Array, ""]
    """α₀, the sup-distance from additive functions, as of `sup_alignment` (not 2α₀)."""
    own_floor: Float[Array, ""]
    """Regret left to agents paid their own rewards, as of `bias_floor`."""
    shared_floor: Float[Array, ""]
    """Regret left to agents paid the team's reward who average over uniform teammates."""


@float64
def parity_alignment(
    num_actions: Count, num_agents: Count, gap: Scalar, coupling: Scalar
) -> TaskAlignment:
    """Alignment of the parity task (coupling: actions that sum to 1 modulo A).

        A₁ = 1/(1 + Kλ²/Δ²),    α₀ = λ/2,    both floors max(0, λ − Δ/K)        (K ≥ 2, A ≥ 2).

    One agent's parity is additive: A₁ = 1, α₀ = 0, and it sees the coupling in the team's reward.

    Args:
        num_actions: A ≥ 1.
        num_agents: K ≥ 1, A^K ≤ 1e300.
        gap: Δ ≥ 0, in units of reward. May be traced.
        coupling: λ ≥ 0, in units of reward. May be traced.

    Returns:
        The four numbers; those of a constant reward (1, 0, 0, 0) where A = 1.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#parity.

    """
    actions, agents = team_size(num_actions, num_agents)
    delta, weight = nonnegative("gap", gap), nonnegative("coupling", coupling)
    zero, one = jnp.zeros((), jnp.float64), jnp.ones((), jnp.float64)
    floor = jnp.maximum(0.0, weight - delta / agents)
    if actions == 1:
        return TaskAlignment(one, zero, zero, zero)
    if agents == 1:
        return TaskAlignment(one, zero, floor, zero)
    share = _share(delta**2 / agents, delta**2 / agents + weight**2)
    return TaskAlignment(share, weight / 2.0, floor, floor)


@float64
def order_q_alignment(
    num_actions: Count, num_agents: Count, order: Count, gap: Scalar, coupling: Scalar
) -> TaskAlignment:
    """Alignment of the order-q task (coupling: agents 1, …, q all take action 1).

        α₀ = λ(q − 1)/(2q),    own floor max(0, λ − qΔ/K),
        shared floor: the same up to λ = A^{q−1}Δ/K, and 0 above,

    and A₁ = ΣV_k/Var(R) with p = 1/A, d = Δ/K, w = λp^{q−1}:

        V_k = p(1−p)(d² + w²) − 2dwp² for k ≤ q, p(1−p)d² for others;
        Var(R) = Kd²p(1−p) + λ²p^q(1−p^q) − 2dλqp^{q+1}.

    Args:
        num_actions: A ≥ 2.
        num_agents: K ≥ 1, A^K ≤ 1e300.
        order: q, 1 ≤ q ≤ K; q = 1 is additive.
        gap: Δ ≥ 0, in units of reward. May be traced.
        coupling: λ ≥ 0, in units of reward. May be traced.

    Returns:
        The four numbers. At the tie λ = A^{q−1}Δ/K action 0 is taken.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#order-q-coupling.

    """
    actions, agents = team_size(num_actions, num_agents, fewest_actions=2)
    q = check_integer("order", order, 1, agents, why="at most num_agents")
    delta, weight = nonnegative("gap", gap), nonnegative("coupling", coupling)
    d, p = delta / agents, 1.0 / actions
    w = weight * p ** (q - 1)
    own = jnp.maximum(0.0, weight - q * d)
    seen = p * (1.0 - p)
    explained = seen * (agents * d**2 + q * w**2) - 2.0 * q * d * w * p**2
    total = (
        agents * d**2 * seen + weight**2 * p**q * (1.0 - p**q) - 2.0 * d * weight * q * p ** (q + 1)
    )
    # Above the threshold each of the q agents finds action 1 the better on average.
    shared = jnp.where(weight > float(actions) ** (q - 1) * d, 0.0, own)
    share = jnp.ones((), jnp.float64) if q == 1 else _share(explained, total)
    return TaskAlignment(share, weight * (q - 1) / (2.0 * q), own, shared)


@float64
def needle_alignment(num_actions: Count, num_agents: Count, gap: Scalar) -> TaskAlignment:
    """Alignment of the needle (one joint action is paid Δ, the others nothing).

        A₁ = K(A − 1)/(A^K − 1),    α₀ = Δ(K − 1)/(2K),    both floors 0:

    an agent's own reward, or its mean over uniform teammates, points at its part of the needle.

    Args:
        num_actions: A ≥ 1.
        num_agents: K ≥ 1, A^K ≤ 1e300.
        gap: Δ ≥ 0, in units of reward. May be traced.

    Returns:
        The four numbers; those of a constant reward (1, 0, 0, 0) where A = 1 or Δ = 0.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#parity.

    """
    actions, agents = team_size(num_actions, num_agents)
    delta = nonnegative("gap", gap)
    zero = jnp.zeros((), jnp.float64)
    if actions == 1:
        return TaskAlignment(jnp.ones((), jnp.float64), zero, zero, zero)
    share = agents * (actions - 1) / (actions**agents - 1)
    anova = jnp.where(delta > 0.0, share, 1.0)
    return TaskAlignment(anova, delta * (agents - 1) / (2.0 * agents), zero, zero)


def _share(part: Float[Array, ""], whole: Float[Array, ""]) -> Float[Array, ""]:
    """part/whole; 1 for a constant reward, whose whole is 0."""
    some = whole > 0.0
    return jnp.where(some, part / jnp.where(some, whole, 1.0), 1.0)
