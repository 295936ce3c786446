"""How far the reward of a team is from a sum over its agents: floor, variance share, sup-distance.

Symbols: R (A, …, A) the team's mean reward, axis k the action of agent k of K; R* its maximum; ā the
joint action that separate learners tend to; A₁ the first-order share of the variance of R under uniform
actions; α₀ the sup-distance of R from the additive functions Σ_k f_k(a_k). All in units of reward but A₁.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_choice, check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.theory.team_learning._reward import reward_tensor
from boundlab.typing import Numbers

FLOOR_LEARNERS = ("shared", "own", "joint")
# Joint actions up to which the linear program of `sup_alignment` is solved.
MOST_CELLS = 4096
# Means closer than this, relative to the spread of the rewards, are tied: their sums round differently.
TIE = 1e-12


@float64
def bias_floor(
    reward: Numbers, learner: str = "shared", own_rewards: Numbers | None = None
) -> Float[Array, ""]:
    """Regret that is left with infinitely many trajectories: R* − R(ā).

    ā_k is the action of the highest mean of R over uniform teammates (`shared`), or of the highest own
    mean reward (`own`); the lowest index among ties. A `joint` learner finds R*.

    Args:
        reward: R (A, …, A), the team's mean reward. May be traced.
        learner: `shared` (paid the team's reward), `own` (each paid its own) or `joint`.
        own_rewards: (K, A) mean rewards of each agent's actions, for `own` alone. May be traced.

    Returns:
        The floor ≥ 0, in units of reward. Means that differ by less than 1e-12 of the spread of the
        rewards count as tied.

    Raises:
        ValueError: an argument is out of range, or `own_rewards` is missing or not asked for.

    Source: derived, docs/team_learning.md#alignment.

    """
    tensor = reward_tensor(reward)
    check_choice("learner", learner, FLOOR_LEARNERS)
    if (own_rewards is not None) != (learner == "own"):
        got = "None" if own_rewards is None else f"rewards for the learner {learner!r}"
        raise fail("own_rewards", got, "(K, A) rewards for the learner 'own', None for others")
    if learner == "joint":
        return jnp.zeros((), jnp.float64)
    if own_rewards is None:
        return _shared_floor(tensor)
    shape = (tensor.ndim, tensor.shape[0])
    check_shape("own_rewards", own_rewards, shape, "(agents, actions)")
    check_number("own_rewards", own_rewards)
    return _floor(tensor, jnp.asarray(own_rewards).astype(jnp.float64))


@float64
def anova_alignment(reward: Numbers) -> Float[Array, ""]:
    """First-order share of the variance under uniform actions (the sum of first-order Sobol indices):

        A₁ = Σ_k Var(E[R | a_k]) / Var(R).

    Args:
        reward: R (A, …, A), the team's mean reward, without noise. May be traced.

    Returns:
        A₁ in [0, 1]: 1 for sums over agents and for a constant, 0 where no single action matters.

    Raises:
        ValueError: `reward` is no tensor of finite numbers with equal axes.

    Source: derived, docs/team_learning.md#alignment.

    """
    return _share(reward_tensor(reward))


@float64
def sup_alignment(reward: Numbers) -> Float[Array, ""]:
    """Sup-distance from the additive functions, α₀ = min over f of max_a |R(a) − Σ_k f_k(a_k)|.

    A linear program, solved on the host. Constants are additive: an offset of R changes nothing. The
    floor of separate learners whose own rewards are the best f is at most 2α₀.

    Args:
        reward: R (A_1, …, A_K) of at most 4096 joint actions, the team's mean reward; not traced.

    Returns:
        α₀ ≥ 0, in units of reward (not 2α₀); 0 for one agent. To about 1e-9 of the spread of R.

    Raises:
        ValueError: `reward` is traced, too large, or no tensor of finite numbers.

    Source: derived, docs/team_learning.md#alignment.

    """
    if is_traced(reward):
        raise fail("reward", "a traced value", "a concrete tensor: a linear program is solved")
    tensor = np.asarray(reward_tensor(reward, equal=False))
    # Brought to size 1 by an exact power of 2: neither the spread nor sums overflow.
    power = int(np.frexp(np.abs(tensor).max())[1])
    tensor = np.ldexp(tensor, -power)
    tensor = tensor - tensor.flat[0]
    if tensor.size > MOST_CELLS:
        accepted = f"at most {MOST_CELLS} joint actions (a linear program is solved)"
        raise fail("reward", f"{tensor.size} joint actions", accepted)
    # The best additive fit in mean square is taken off first: what is left is the program's scale.
    centred = tensor - tensor.mean()
    agents = range(tensor.ndim)
    for others in (tuple(j for j in agents if j != k) for k in agents):
        centred = centred - centred.mean(axis=others, keepdims=True)
    scale = float(np.abs(centred).max())
    if tensor.ndim == 1 or scale <= TIE * float(np.abs(tensor).max(initial=0.0)):
        return jnp.zeros((), jnp.float64)
    least = np.ldexp(scale * _least_error(centred / scale), power)
    return jnp.asarray(least, jnp.float64)


def _least_error(target: np.ndarray) -> float:
    """The program's optimum: variables f_k(a) and t, constraints ±(target − Σf) ≤ t."""
    import scipy.sparse
    from scipy.optimize import linprog

    agents, last = target.ndim, np.cumsum(target.shape)
    cells = np.arange(target.size)
    places = np.stack(np.unravel_index(cells, target.shape)) + (last - target.shape)[:, None]
    shape = (target.size, int(last[-1]))
    ones = np.ones(places.size)
    design = scipy.sparse.csr_array((ones, (np.tile(cells, agents), places.ravel())), shape=shape)
    slack = np.ones((target.size, 1))
    constraints = scipy.sparse.vstack(
        [scipy.sparse.hstack([sign * design, -slack]) for sign in (1.0, -1.0)], format="csr"
    )
    values = target.ravel()
    found = linprog(
        np.r_[np.zeros(shape[1]), 1.0],
        A_ub=constraints,
        b_ub=np.r_[values, -values],
        bounds=[(None, None)] * shape[1] + [(0.0, None)],
        method="highs",
    )
    if found.status != 0:
        raise RuntimeError(f"the linear program of sup_alignment failed: {found.message}")
    return float(found.fun)


@jax.jit
def _shared_floor(tensor: Float[Array, "*actions"]) -> Float[Array, ""]:
    centred = _centred(tensor)
    return _floor(tensor, jnp.stack(_marginal_means(centred)), jnp.max(jnp.abs(centred)))


@jax.jit
def _floor(
    tensor: Float[Array, "*actions"],
    means: Float[Array, "agents actions"],
    spread: Float[Array, ""] | None = None,
) -> Float[Array, ""]:
    """R* − R(ā) where ā_k is the first action whose mean is the highest but for rounding."""
    means = means - means[:, :1]
    slack = TIE * (jnp.max(jnp.abs(means)) if spread is None else spread)
    chosen = jnp.argmax(means >= jnp.max(means, axis=1, keepdims=True) - slack, axis=1)
    return jnp.max(tensor) - tensor[tuple(chosen)]


@jax.jit
def _share(tensor: Float[Array, "*actions"]) -> Float[Array, ""]:
    centred = _centred(tensor)
    size = jnp.max(jnp.abs(centred))
    some = size > 0.0
    centred = centred / jnp.where(some, size, 1.0)
    centred = centred - jnp.mean(centred)
    means = jnp.stack(_marginal_means(centred))
    explained = jnp.sum(jnp.mean(means**2, axis=1))
    return jnp.where(some, explained / jnp.where(some, jnp.mean(centred**2), 1.0), 1.0)


def _centred(tensor: Float[Array, "*actions"]) -> Float[Array, "*actions"]:
    """R − R(0, …, 0): a constant becomes 0 exactly, and a large offset costs no digits later.

    Rewards near the largest float are scaled by a power of 2 first, or spread and sums would overflow.
    """
    scaled = tensor * jnp.where(jnp.max(jnp.abs(tensor)) > 1e290, 2.0**-60, 1.0)
    return scaled - scaled.ravel()[0]


def _marginal_means(tensor: Float[Array, "*actions"]) -> list[Float[Array, " actions"]]:
    """Means over uniform teammates, an array (A,) an agent."""
    axes = range(tensor.ndim)
    return [jnp.mean(tensor, axis=tuple(j for j in axes if j != k)) for k in axes]
