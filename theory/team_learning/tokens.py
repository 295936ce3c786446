"""A tabular stand-in for text written token by token: what exploration without noise solves.

Symbols: K steps, one an agent; step k has a context x_k, uniform on S, and writes one of A tokens, of
which one is right for its context; a *dependent* step's context is (x_k, a_{k−1}). Policies explore
uniformly. With `process` rewards every step is told whether its token was right, with `outcome` reward
only whether all K were. N counts trajectories, in each of which all K steps act once.
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_choice, check_integer, check_number, check_shape
from boundlab.precision import float64
from boundlab.typing import Count, Scalar

REWARDS = ("process", "outcome")


@float64
def solved_fraction(
    num_trajectories: Scalar,
    num_steps: Count,
    num_contexts: Count,
    num_actions: Count,
    reward: str,
    *,
    dependent: bool = False,
) -> Float[Array, ""]:
    """Expected share of contexts whose right answer was seen rewarded within N trajectories:

        process  1 − (1 − 1/(SA))^N      of a step's S contexts,
        outcome  1 − (1 − (SA)^{−K})^N   of the S^K joint contexts.

    A dependent step (any but the first) has S·A contexts, and 1/(SA²) takes the place of 1/(SA); the
    outcome's share is the same, since one of A^K texts is right for each joint context.

    Args:
        num_trajectories: N ≥ 0, real. May be traced.
        num_steps: K ≥ 1.
        num_contexts: S ≥ 1 of each step.
        num_actions: A ≥ 1 tokens.
        reward: `process` or `outcome`.
        dependent: whether steps see the token before theirs.

    Returns:
        The share, in [0, 1].

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#tokens.

    """
    check_shape("num_trajectories", num_trajectories, ())
    check_number("num_trajectories", num_trajectories, 0)
    trials = jnp.asarray(num_trajectories).astype(jnp.float64)
    missed = _log_missed(num_steps, num_contexts, num_actions, reward, dependent)
    if missed == -math.inf:
        return jnp.where(trials > 0.0, 1.0, 0.0)
    return -jnp.expm1(trials * missed)


@float64
def solving_trajectories(
    fraction: Scalar,
    num_steps: Count,
    num_contexts: Count,
    num_actions: Count,
    reward: str,
    *,
    dependent: bool = False,
) -> Float[Array, ""]:
    """N at which `solved_fraction` is f: ln(1 − f)/ln(1 − 1/cells), cells SA, SA² or (SA)^K.

    So an outcome reward costs about (SA)^{K−1} times the trajectories of step rewards.

    Args:
        fraction: f in [0, 1). May be traced.
        num_steps: K ≥ 1.
        num_contexts: S ≥ 1 of each step.
        num_actions: A ≥ 1 tokens.
        reward: `process` or `outcome`.
        dependent: whether steps see the token before theirs.

    Returns:
        N in trajectories, real; +inf where 1/cells is below the range of float64.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#tokens.

    """
    check_shape("fraction", fraction, ())
    check_number("fraction", fraction, 0, 1, high_open=True)
    left = jnp.log1p(-jnp.asarray(fraction).astype(jnp.float64))
    missed = _log_missed(num_steps, num_contexts, num_actions, reward, dependent)
    if missed == 0.0:
        return jnp.where(left < 0.0, jnp.inf, 0.0)
    return left / missed


def _log_missed(
    num_steps: Count, num_contexts: Count, num_actions: Count, reward: str, dependent: bool
) -> float:
    """ln(1 − 1/cells): the chance that a trajectory misses one cell."""
    steps = check_integer("num_steps", num_steps, 1, 10**6)
    contexts = check_integer("num_contexts", num_contexts, 1, 10**300)
    actions = check_integer("num_actions", num_actions, 1, 10**300)
    check_choice("reward", reward, REWARDS)
    log_cells = math.log(contexts) + math.log(actions)
    if reward == "outcome":
        log_cells *= steps
    elif dependent:
        log_cells += math.log(actions)
    return math.log1p(-math.exp(-log_cells)) if log_cells > 0.0 else -math.inf
