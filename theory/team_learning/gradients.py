"""Softmax policy gradients of one agent and of a team: speeds at the start, and hitting times.

Symbols: R (A, …, A) the expected reward of a team, axis k the action of agent k of K; R̄ its mean over
uniform actions; V_k = Var(E[R | a_k]) the variance that agent k's action explains, and Var(R), both under
uniform actions; A₁ = ΣV_k/Var(R) the alignment. A *joint* learner has one logit for each of the A^K joint
actions, *factored* learners have A logits each. Time is that of gradient flow, logits' = ∇E[R]: a
time of t is t/η steps of exact gradients with a small step size η. Every reward here is what all learners
are paid (the team's); for agents with rewards of their own, R is the sum of these.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_choice, check_integer, check_number, fail
from boundlab.precision import float64
from boundlab.theory.team_learning._reward import reward_tensor
from boundlab.typing import Count, Numbers, Scalar

POLICIES = ("joint", "factored")
# A^K of a needle may be passed for the number of actions; beyond this A·p/(1 − p) can overflow.
MOST_ACTIONS = 10**290


class _Variances(NamedTuple):
    """Variances of a reward tensor after division by `scale`², so that squares don't overflow."""

    scale: Float[Array, ""]
    total: Float[Array, ""]
    explained: Float[Array, " agents"]


@float64
def initial_slope(reward: Numbers, policy: str) -> Float[Array, ""]:
    """dE[R]/dt of softmax gradient flow at uniform policies: the squared norm of the gradient.

        joint: Var(R)/A^K,    factored: (1/A) Σ_k V_k.

    Args:
        reward: R (A, …, A), K ≥ 1 axes, in units of reward. May be traced.
        policy: `joint`, one softmax over A^K actions, or `factored`, one over A actions an agent.

    Returns:
        The slope, reward² a unit of flow time; 0 for a constant reward.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#policy-gradient.

    """
    tensor = reward_tensor(reward)
    check_choice("policy", policy, POLICIES)
    variances = _variances(tensor)
    if policy == "joint":
        scaled = variances.total / tensor.size
    else:
        scaled = jnp.sum(variances.explained) / tensor.shape[0]
    return scaled * variances.scale**2


@float64
def gradient_speed_ratio(reward: Numbers) -> Float[Array, ""]:
    """Slope of factored learners over that of a joint learner at uniform policies, for any reward:

        A^{K−1} A₁,    A₁ = Σ_k V_k / Var(R).

    So factored learners start faster iff A₁ > A^{−(K−1)}. Additive rewards give A^{K−1}; a single best
    joint action K(1 − 1/A)/(1 − A^{−K}).

    Args:
        reward: R (A, …, A), K ≥ 1 axes, in any unit. May be traced.

    Returns:
        The ratio, in [0, A^{K−1}]. A constant reward, on which both slopes are 0, counts as additive:
        A₁ = 1.

    Raises:
        ValueError: `reward` is no tensor of finite numbers with equal axes.

    Source: derived, docs/team_learning.md#policy-gradient.

    """
    tensor = reward_tensor(reward)
    variances = _variances(tensor)
    some = variances.total > 0.0
    share = jnp.sum(variances.explained) / jnp.where(some, variances.total, 1.0)
    return jnp.where(some, share, 1.0) * float(tensor.shape[0]) ** (tensor.ndim - 1)


@float64
def hitting_time(num_actions: Count, gap: Scalar, probability: Scalar) -> Float[Array, ""]:
    """Time at which softmax gradient flow from uniform plays the best of A actions with probability p:

        T = [e^ξ − 1 + 2(A−1)ξ + (A−1)²(1 − e^{−ξ})]/(AΔ),    ξ = ln(p(A−1)/(1−p)),

    for one best action and A − 1 others lower by Δ, all paid by exact expectations. Agents with rewards
    of their own take T(A, Δ, p) whatever their number; paid the team's mean, T(A, Δ/K, p) = K·T(A, Δ, p)
    if the mean is additive; a joint learner whose one best joint action leads by Δ, T(A^K, Δ, p).

    Args:
        num_actions: A ≥ 1, up to 1e290 (A^K for a joint learner).
        gap: Δ ≥ 0, in units of reward. May be traced.
        probability: p, 1/A ≤ p < 1 (with one action 0 < p ≤ 1). May be traced.

    Returns:
        T, flow time (logits a unit of reward); 0 where p is reached from the start, p = 1/A or A = 1,
        +inf where it isn't and the gap is 0.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#hitting-times.

    """
    actions = check_integer("num_actions", num_actions, 1)
    if actions > MOST_ACTIONS:
        raise fail("num_actions", f"about 2^{actions.bit_length()}", "an integer ≥ 1 and ≤ 1e290")
    for name, value in (("gap", gap), ("probability", probability)):
        if np.ndim(value):
            raise fail(name, f"shape {np.shape(value)}", "one number: map over more by jax.vmap")
    check_number("gap", gap, 0)
    one = actions == 1
    check_number(
        "probability", probability, 0 if one else 1 / actions, 1, low_open=one, high_open=not one
    )
    if one:
        return jnp.zeros((), jnp.float64)
    level, delta = (jnp.asarray(value).astype(jnp.float64) for value in (probability, gap))
    return _time(float(actions), delta, level)


@float64
def reinforce_second_moment(reward: Numbers, noise_std: Scalar) -> Float[Array, ""]:
    """E‖ĝ_k‖² of one agent's REINFORCE estimate at uniform policies, from one trajectory:

        (1 − 1/A)(Var(R) + σ²),    ĝ_k = (r − E r)∇ log π_k(a_k),  r = R(a) + σ·noise.

    The same for every agent; the baseline is the exact mean. Its mean is the gradient whose squares sum
    to the factored `initial_slope`.

    Args:
        reward: R (A, …, A), K ≥ 1 axes: what the agent is paid. Own rewards are a tensor (A,), a joint
            learner's a tensor (A^K,). May be traced.
        noise_std: σ ≥ 0 of the paid reward (outcome noise if that is the team's). May be traced.

    Returns:
        The second moment, reward².

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#policy-gradient.

    """
    tensor, noise = reward_tensor(reward), _noise(noise_std)
    variances = _variances(tensor)
    return (1.0 - 1.0 / tensor.shape[0]) * (variances.total * variances.scale**2 + noise**2)


@float64
def reinforce_signal_to_noise(reward: Numbers, noise_std: Scalar) -> Float[Array, " agents"]:
    """‖Eĝ_k‖²/E‖ĝ_k‖² of REINFORCE with a mean baseline at uniform policies, from one trajectory:

        V_k / ((A − 1)(Var(R) + σ²)).

    For a mean of K equal, independent subtasks and outcome noise σ/√K this is a K-th of what each has
    with its own reward and noise σ: agents paid by the team need K times the trajectories.

    Args:
        reward: R (A, …, A), K ≥ 1 axes: what the agents are paid; (A,) for a reward of one's own, (A^K,)
            for a joint learner. May be traced.
        noise_std: σ ≥ 0 of the paid reward. May be traced.

    Returns:
        The ratio (K,), 1/trajectories; 0 where the estimate is always 0 (constant reward without noise,
        one action).

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#policy-gradient.

    """
    tensor, noise = reward_tensor(reward), _noise(noise_std)
    variances = _variances(tensor)
    spread = variances.total + (noise / variances.scale) ** 2
    some = spread > 0.0
    share = variances.explained / jnp.where(some, spread, 1.0)
    return jnp.where(some, share, 0.0) / max(tensor.shape[0] - 1, 1)


@jax.jit
def _time(
    actions: float | Float[Array, ""], gap: Float[Array, ""], p: Float[Array, ""]
) -> Float[Array, ""]:
    # e^ξ − 1, which vanishes at p = 1/A; with it all terms do, without cancellation.
    excess = jnp.maximum(actions * p - 1.0, 0.0) / (1.0 - p)
    bracket = (
        excess / (actions - 1.0)
        + 2.0 * jnp.log1p(excess)
        + (actions - 1.0) * (excess / (1.0 + excess))
    )
    gained = (1.0 - 1.0 / actions) * bracket
    moving = (gained > 0.0) & (gap > 0.0)
    time = gained / jnp.where(moving, gap, 1.0)
    return jnp.where(moving, time, jnp.where(gained > 0.0, jnp.inf, 0.0))


@jax.jit
def _variances(tensor: Float[Array, "..."]) -> _Variances:
    """Var(R) and V_k under uniform actions, for the tensor scaled to deviations of size 1.

    The first entry is subtracted before the mean, so that a constant has variance 0 exactly.
    """
    size = jnp.max(jnp.abs(tensor))
    unit = jnp.where(size > 0.0, size, 1.0)
    centred = tensor / unit
    centred = centred - centred.ravel()[0]
    centred = centred - jnp.mean(centred)
    spread = jnp.max(jnp.abs(centred))
    spread = jnp.where(spread > 0.0, spread, 1.0)
    centred = centred / spread
    axes = range(tensor.ndim)
    means = [jnp.mean(centred, axis=tuple(j for j in axes if j != k)) for k in axes]
    explained = jnp.stack([jnp.mean(mean**2) for mean in means])
    return _Variances(unit * spread, jnp.mean(centred**2), explained)


def _noise(noise_std: Any) -> Float[Array, ""]:
    if np.ndim(noise_std):
        raise fail("noise_std", f"shape {np.shape(noise_std)}", "one number")
    check_number("noise_std", noise_std, 0)
    return jnp.asarray(noise_std).astype(jnp.float64)
