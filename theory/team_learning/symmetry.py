"""The symmetry trap: agents that start alike and are paid alike stay alike under exact gradients.

Symbols: K agents with A actions each; all play the same softmax policy π (A,) of logits θ; the team's
reward is R(a) = (1/K)Σ_k μ(a_k) + λ·1{Σ_k a_k ≡ 1 mod A} with μ(0) = 0 and μ(a) = −Δ else: parity, which
asks that one agent act differently from all others.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_integer, check_number, check_shape, fail
from boundlab.precision import float64
from boundlab.typing import Count, Numbers, Scalar

MOST_AGENTS = 2**31 - 1
HALVINGS = 64


@float64
def symmetric_parity_flow(
    logits: Numbers, num_agents: Count, gap: Scalar, coupling: Scalar
) -> Float[Array, " actions"]:
    """Gradient flow of factored learners on parity, reduced to the logits that all of them share:

        θ'_a = π_a (Q_a − ΣπQ),    Q_a = (μ(a) + (K−1)Σπμ)/K + λ P(S_{K−1} ≡ 1 − a mod A),

    S_{K−1} the sum of K − 1 independent actions drawn from π; its law is a power of π's Fourier
    transform. From equal logits the whole team's flow is this one.

    Args:
        logits: θ (A,) of every agent. May be traced.
        num_agents: K ≥ 1.
        gap: Δ ≥ 0, in units of reward. May be traced.
        coupling: λ ≥ 0, in units of reward. May be traced.

    Returns:
        θ' (A,), reward (logits a unit of flow time).

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#symmetry-trap.

    """
    theta, agents, delta, weight = _arguments(logits, num_agents, gap, coupling)
    return _flow(theta, agents, delta, weight)


@float64
def symmetric_parity_regret(
    logits: Numbers, num_agents: Count, gap: Scalar, coupling: Scalar
) -> Float[Array, ""]:
    """Regret R* − E[R] of a team that plays one softmax policy on parity, all agents alike:

        R* = max(0, λ − Δ/K),    E[R] = Σπμ + λ P(S_K ≡ 1 mod A).

    Arguments and errors as in `symmetric_parity_flow`. With one action parity always holds: regret 0.

    Returns:
        The regret of the team's reward, ≥ 0 to rounding.

    Source: derived, docs/team_learning.md#symmetry-trap.

    """
    theta, agents, delta, weight = _arguments(logits, num_agents, gap, coupling)
    if len(theta) == 1:
        return jnp.zeros((), jnp.float64)
    return _regret(theta, agents, delta, weight)


@float64
def symmetric_trap_regret(num_agents: Count, gap: Scalar, coupling: Scalar) -> Float[Array, ""]:
    """Regret at which factored learners end that start from uniform policies on parity, A ≥ K:

        λ − Δ/K + Δx − λKx(1−x)^{K−1},    x the root in (0, 1/K) of Kλ(1−x)^{K−2}(1−Kx) = Δ.

    There every agent plays action 1 with probability x and action 0 otherwise, the symmetric maximiser of
    the reward. It is 0 if λ ≤ Δ/K (action 0 is best) or K = 1. It takes exact gradients: the
    flow leaves this point along any difference between agents.

    Args:
        num_agents: K ≥ 1; at most the number of actions, on which the regret doesn't depend.
        gap: Δ ≥ 0, in units of reward; at 0 a start at uniform doesn't move, and this is only the regret
            of the symmetric maximiser. May be traced.
        coupling: λ ≥ 0, in units of reward. May be traced.

    Returns:
        The regret of the team's reward.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#symmetry-trap.

    """
    agents, delta, weight = _numbers(num_agents, gap, coupling)
    if agents == 1:
        return jnp.zeros((), jnp.float64)
    return _trap(agents, delta, weight)


@functools.partial(jax.jit, static_argnums=1)
def _flow(
    theta: Float[Array, " actions"],
    agents: float,
    delta: Float[Array, ""],
    weight: Float[Array, ""],
) -> Float[Array, " actions"]:
    pi = jax.nn.softmax(theta)
    own = _own_values(delta, len(pi))
    others = _sum_law(pi, agents - 1)
    # 1 − a modulo A, for a = 0, 1, …: backwards from 1.
    parity = others[(1 - np.arange(len(pi))) % len(pi)]
    values = (own + (agents - 1.0) * jnp.sum(pi * own)) / agents + weight * parity
    return pi * (values - jnp.sum(pi * values))


@functools.partial(jax.jit, static_argnums=1)
def _regret(
    theta: Float[Array, " actions"],
    agents: float,
    delta: Float[Array, ""],
    weight: Float[Array, ""],
) -> Float[Array, ""]:
    pi = jax.nn.softmax(theta)
    value = jnp.sum(pi * _own_values(delta, len(pi))) + weight * _sum_law(pi, agents)[1]
    return jnp.maximum(weight - delta / agents, 0.0) - value


@functools.partial(jax.jit, static_argnums=0)
def _trap(agents: float, delta: Float[Array, ""], weight: Float[Array, ""]) -> Float[Array, ""]:
    trapped = agents * weight > delta
    level = delta / jnp.where(trapped, agents * weight, 1.0)

    def halve(
        _: Any, bracket: tuple[Float[Array, ""], Float[Array, ""]]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        low, high = bracket
        middle = 0.5 * (low + high)
        left = jnp.exp((agents - 2.0) * jnp.log1p(-middle)) * (1.0 - agents * middle)
        above = left > level
        return jnp.where(above, middle, low), jnp.where(above, high, middle)

    ends = jnp.zeros((), jnp.float64), jnp.asarray(1.0 / agents, jnp.float64)
    low, _ = jax.lax.fori_loop(0, HALVINGS, halve, ends)
    # At most 1/K: for K = 2 the logarithm of 1 − x is then finite, too.
    gained = weight * agents * low * jnp.exp((agents - 1.0) * jnp.log1p(-low)) - delta * low
    return jnp.where(trapped, weight - delta / agents - gained, 0.0)


def _own_values(gap: Float[Array, ""], num_actions: int) -> Float[Array, " actions"]:
    """μ: 0 for action 0, −Δ for the others."""
    return jnp.where(np.arange(num_actions) == 0, 0.0, -gap)


def _sum_law(policy: Float[Array, " actions"], agents: float) -> Float[Array, " actions"]:
    """Law modulo A of the sum of `agents` independent actions."""
    return jnp.real(jnp.fft.ifft(jnp.fft.fft(policy) ** int(agents)))


def _arguments(
    logits: Any, num_agents: Any, gap: Any, coupling: Any
) -> tuple[Float[Array, " actions"], float, Float[Array, ""], Float[Array, ""]]:
    check_shape("logits", logits, (None,))
    check_number("logits", logits)
    return jnp.asarray(logits).astype(jnp.float64), *_numbers(num_agents, gap, coupling)


def _numbers(
    num_agents: Any, gap: Any, coupling: Any
) -> tuple[float, Float[Array, ""], Float[Array, ""]]:
    agents = check_integer("num_agents", num_agents, 1, MOST_AGENTS)
    for name, value in (("gap", gap), ("coupling", coupling)):
        if np.ndim(value):
            raise fail(name, f"shape {np.shape(value)}", "one number")
        check_number(name, value, 0)
    delta, weight = (jnp.asarray(value).astype(jnp.float64) for value in (gap, coupling))
    return float(agents), delta, weight
