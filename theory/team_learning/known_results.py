"""Rates of earlier work, to set beside exact sizes: up to constants and, where it says so, logarithms.

Symbols: S states, A_k actions of agent k of K, H horizon (steps), γ discount, ε accuracy, δ failure
probability. `constant` stands for all that a rate leaves open; 1 is a choice, not a result. Sizes are in
episodes (all agents act at once) unless a function says otherwise. Recalled, not read again.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_choice, check_integer, check_number, check_shape
from boundlab.precision import float64
from boundlab.typing import Count, Numbers, Scalar

SOLUTIONS = ("cce", "ce", "potential")


@float64
def bandit_samples(
    num_arms: Scalar, accuracy: Scalar, failure_probability: Scalar, constant: Scalar = 1.0
) -> Float[Array, ""]:
    """Rate Θ((M/ε²) ln(1/δ)) of finding an ε-best of M arms, which no algorithm beats but by a constant.

    Args:
        num_arms: M ≥ 1, A^K for one agent without structure. May be traced.
        accuracy: ε > 0. May be traced.
        failure_probability: δ in (0, 1). May be traced.
        constant: > 0, left open by the rate. May be traced.

    Returns:
        Samples of all arms together (rewards of the one who chooses).

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: mannor2004sample, up to constants.

    """
    arms, level = _positive("num_arms", num_arms, 1), _positive("accuracy", accuracy)
    return _positive("constant", constant) * arms / level**2 * -jnp.log(_delta(failure_probability))


@float64
def generative_samples(
    num_states: Count,
    action_counts: Numbers,
    discount: Scalar,
    accuracy: Scalar,
    failure_probability: Scalar,
    constant: Scalar = 1.0,
) -> Float[Array, ""]:
    """Rate Θ(S·ΠA_k ln(S·ΠA_k/δ)/((1 − γ)³ε²)) of one agent that plans for all, with a generative model.

    Args:
        num_states: S ≥ 1.
        action_counts: A_k ≥ 1 (K,); one agent sees their product.
        discount: γ in [0, 1). May be traced.
        accuracy: ε > 0 of the optimal action values. May be traced.
        failure_probability: δ in (0, 1). May be traced.
        constant: > 0, left open by the rate. May be traced.

    Returns:
        Draws of the generative model.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: azar2013minimax, up to constants.

    """
    states, counts = _states_and_actions(num_states, action_counts)
    check_shape("discount", discount, ())
    check_number("discount", discount, 0, 1, high_open=True)
    left = 1.0 - jnp.asarray(discount).astype(jnp.float64)
    pairs = states * jnp.prod(counts)
    logs = jnp.log(pairs) - jnp.log(_delta(failure_probability))
    level = _positive("accuracy", accuracy)
    return _positive("constant", constant) * pairs * logs / (left**3 * level**2)


@float64
def equilibrium_episodes(
    solution: str,
    num_states: Count,
    action_counts: Numbers,
    horizon: Scalar,
    accuracy: Scalar,
    constant: Scalar = 1.0,
) -> Float[Array, ""]:
    """Rates of decentralised learning in Markov games: an agent's actions count, not their product.

        cce        H⁵ S max_k A_k/ε²      coarse correlated equilibrium
        ce         H⁶ S (max_k A_k)²/ε²   correlated equilibrium
        potential  S Σ_k A_k/ε³           Nash equilibrium of a potential game (shared reward is one), its
                                          powers of H in the constant

    An equilibrium needn't be the team's optimum: under parity, agents that each best respond stay at a
    joint action below it.

    Args:
        solution: `cce`, `ce` or `potential`.
        num_states: S ≥ 1.
        action_counts: A_k ≥ 1 (K,). May be traced.
        horizon: H ≥ 1 steps. May be traced.
        accuracy: ε > 0. May be traced.
        constant: > 0, left open by the rate, with the logarithms. May be traced.

    Returns:
        Episodes.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: song2022when, up to constants and logarithms; `cce` also jin2024vlearning.

    """
    check_choice("solution", solution, SOLUTIONS)
    states, counts = _states_and_actions(num_states, action_counts)
    h, level = _positive("horizon", horizon, 1), _positive("accuracy", accuracy)
    size = {
        "cce": h**5 * jnp.max(counts) / level**2,
        "ce": h**6 * jnp.max(counts) ** 2 / level**2,
        "potential": jnp.sum(counts) / level**3,
    }[solution]
    return _positive("constant", constant) * states * size


@float64
def logged_samples(
    log_class_size: Scalar, num_arms: Scalar, accuracy: Scalar, constant: Scalar = 1.0
) -> Float[Array, ""]:
    """Rate M ln|Π|/ε² of choosing from a finite class by logged data of uniform play over M actions.

    Importance weights reach M: A^K for one agent, A for each agent of a team with own rewards.

    Args:
        log_class_size: ln|Π| ≥ 0. May be traced.
        num_arms: M ≥ 1. May be traced.
        accuracy: ε > 0. May be traced.
        constant: > 0, left open by the rate. May be traced.

    Returns:
        Logged trajectories.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived (Bernstein's inequality with weights of variance at most M), up to constants,
    docs/team_learning.md#bandit-feedback.

    """
    check_shape("log_class_size", log_class_size, ())
    check_number("log_class_size", log_class_size, 0)
    size = jnp.asarray(log_class_size).astype(jnp.float64)
    arms, level = _positive("num_arms", num_arms, 1), _positive("accuracy", accuracy)
    return _positive("constant", constant) * arms * size / level**2


def _states_and_actions(
    num_states: Count, action_counts: Any
) -> tuple[float, Float[Array, " agents"]]:
    states = float(check_integer("num_states", num_states, 1))
    check_shape("action_counts", action_counts, (None,))
    check_number("action_counts", action_counts, 1)
    return states, jnp.asarray(action_counts).astype(jnp.float64)


def _positive(name: str, value: Any, least: int = 0) -> Float[Array, ""]:
    if type(value) is int and abs(value) < 10**300:
        value = float(value)  # A^K may pass every integer type
    check_shape(name, value, ())
    check_number(name, value, least, low_open=least == 0)
    return jnp.asarray(value).astype(jnp.float64)


def _delta(value: Any) -> Float[Array, ""]:
    check_shape("failure_probability", value, ())
    check_number("failure_probability", value, 0, 1, low_open=True, high_open=True)
    return jnp.asarray(value).astype(jnp.float64)
