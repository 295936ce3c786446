"""Stale policy gradients of a softmax bandit, and what gradient alignment control does to a gradient.

Symbols: θ logits, π = softmax(θ), R (K,) expected rewards, β ≥ 0 the weight of the entropy,
J(θ) = Σ_a π(a)(R_a − β log π(a)); μ the policy that acted. g a gradient, p the one before, c the cosine
between them, g_∥ and g_⊥ the parts of g along p and across; with alignment control the update is
g_⊥ + κ g_∥ where c > c_low. L is the smoothness of a loss, η the step size, s the largest delay.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_choice, check_integer, check_number, check_shape, fail, shown
from boundlab.precision import float64, is_traced
from boundlab.theory.policy_optimization.staleness import delayed_sgd_limit
from boundlab.typing import Count, Numbers, Scalar

KAPPAS = ("ratio", "exact", "zero")
# Rounding of the theorem's condition, which holds with equality at the longest step.
ROUNDING = 1e-12


class EntropicOptimum(NamedTuple):
    """Where a bandit with an entropy bonus is best."""

    policy: Float[Array, " K"]
    """π* = softmax(R/β)."""
    value: Float[Array, ""]
    """J* = β log Σ_a exp(R_a/β), in units of reward."""


@float64
def stale_policy_gradient(
    behavior_logits: Numbers, reward: Numbers, entropy_weight: Scalar
) -> Float[Array, " K"]:
    """The uncorrected policy gradient from actions of an older policy μ, whatever the policy is now:

        μ ⊙ (r − μ·r),    r_a = R_a − β log μ(a),

    which is ∇J at the *old* logits: asynchronous policy gradient is ascent on delayed gradients. The
    baseline must be the behaviour's own mean. Weighted by π/μ, and with β = 0, it is ∇J at the new
    logits instead, π ⊙ (R − π·R): nothing is stale.

    Args:
        behavior_logits: (K,), logits of μ. May be traced, as all arguments.
        reward: R (K,).
        entropy_weight: β ≥ 0.

    Returns:
        The gradient (K,), reward a unit of logit.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/policy_optimization.md#stale-policy-gradient.

    """
    rewards, weight = _bandit(reward, entropy_weight, positive=False)
    check_number("behavior_logits", behavior_logits)
    check_shape("behavior_logits", behavior_logits, rewards.shape, "that of reward")
    log_policy = _log_softmax(jnp.asarray(behavior_logits).astype(jnp.float64))
    paid = rewards - weight * log_policy
    policy = jnp.exp(log_policy)
    return policy * (paid - jnp.sum(policy * paid))


@float64
def entropic_optimum(reward: Numbers, entropy_weight: Scalar) -> EntropicOptimum:
    """The best policy with an entropy bonus, softmax(R/β), and its value β log Σ exp(R_a/β).

    Any other π is worse by β KL(π‖π*).

    Args:
        reward: R (K,). May be traced, as all arguments.
        entropy_weight: β > 0.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/policy_optimization.md#stale-policy-gradient.

    """
    rewards, weight = _bandit(reward, entropy_weight)
    scaled = rewards / weight
    log_policy = _log_softmax(scaled)
    best = jnp.max(scaled)
    return EntropicOptimum(
        jnp.exp(log_policy), weight * (best + jnp.log(jnp.sum(jnp.exp(scaled - best))))
    )


@float64
def bandit_step_limit(reward: Numbers, entropy_weight: Scalar, delay: Count) -> Float[Array, ""]:
    """Step size from which delayed ascent on J moves away from π* = softmax(R/β):

        η_c = a_c(τ)/(β λ_max(diag π* − π*π*ᵀ)),    a_c(τ) = 2 sin(π/(2(2τ + 1))).

    Local: the Hessian at the optimum is −β(diag π* − π*π*ᵀ). Above η_c iterates leave every
    neighbourhood of it, but logits stay bounded where the policy saturates.

    Args:
        reward: R (K,), K ≥ 2. May be traced.
        entropy_weight: β > 0. May be traced.
        delay: τ ≥ 0, how many updates old the logits of the gradient are; static.

    Returns:
        η_c, logits a unit of gradient.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/policy_optimization.md#stale-policy-gradient.

    """
    rewards, weight = _bandit(reward, entropy_weight)
    if rewards.size < 2:
        raise fail("reward", f"shape {rewards.shape}", "(K,) with K ≥ 2")
    return delayed_sgd_limit(delay) / _steepest(rewards, weight)


@float64
def kept_share(cosine: Numbers, low: Scalar, kappa: str) -> Float[Array, "..."]:
    """κ(c), the share of g_∥ that alignment control keeps: 1 up to c_low, above it

        ratio  c_low/c,    exact  (c_low/c)√((1 − c²)/(1 − c_low²)),    zero  0.

    `ratio` never falls below c_low; the others have no floor.

    Args:
        cosine: c in [−1, 1], any shape. May be traced.
        low: c_low, 0 ≤ c_low < 1. May be traced.
        kappa: `ratio`, `exact` or `zero`.

    Returns:
        κ, of the shape of `cosine`.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/policy_optimization.md#gradient-alignment-control.

    """
    return _share(*_cosine(cosine, low, kappa), kappa)


@float64
def projected_norm(cosine: Numbers, low: Scalar, kappa: str) -> Float[Array, "..."]:
    """‖g̃‖/‖g‖ = √(1 − c² + κ²c²) of the update g̃ that alignment control emits; never above 1.

    Arguments and errors as in `kept_share`.

    Source: derived, docs/policy_optimization.md#gradient-alignment-control.

    """
    return _norm(*_cosine(cosine, low, kappa), kappa)


@float64
def projected_cosine(cosine: Numbers, low: Scalar, kappa: str) -> Float[Array, "..."]:
    """Cosine of the emitted update with the gradient before, κc/√(1 − c² + κ²c²). Where c > c_low,

        ratio  c_low/√(1 − c² + c_low²), between c_low and c,    exact  c_low,    zero  0.

    At c = 1 `exact` leaves nothing of the gradient: c_low is the limit from below.

    Arguments and errors as in `kept_share`.

    Source: derived, docs/policy_optimization.md#gradient-alignment-control.

    """
    return _left(*_cosine(cosine, low, kappa), kappa)


@float64
def drift_length(cosine: Scalar, num_steps: Count, step_length: Scalar = 1.0) -> Float[Array, ""]:
    """How far s steps of equal length move whose cosines in pairs are all c: G√(s + c s(s − 1)).

    s·G where they are aligned, √s·G where they are orthogonal: why aligned stale steps overshoot.

    Args:
        cosine: −1/(s − 1) ≤ c ≤ 1, which s vectors can have in pairs. May be traced.
        num_steps: s ≥ 1.
        step_length: G ≥ 0. May be traced.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/policy_optimization.md#gradient-alignment-control.

    """
    steps = check_integer("num_steps", num_steps, 1)
    _scalars(cosine=cosine, step_length=step_length)
    check_number("cosine", cosine, -1.0 / max(steps - 1, 1), 1)
    check_number("step_length", step_length, 0)
    c, length = (jnp.asarray(value).astype(jnp.float64) for value in (cosine, step_length))
    square = steps * (1.0 + c * (steps - 1))
    some = square > 0.0
    return length * jnp.where(some, jnp.sqrt(jnp.where(some, square, 1.0)), 0.0)


@float64
def projection_bound(
    initial_gap: Scalar,
    step_size: Scalar,
    smoothness: Scalar,
    delay: Count,
    kappa: Scalar,
    num_steps: Count,
) -> Float[Array, ""]:
    """Bound on the least squared gradient of descent on projected, delayed gradients:

        min_{t<T} ‖∇f(x_t)‖² ≤ 2(f₀ − f*)/(κηT),    if ηL + (ηLs)² ≤ 1.

    For any L-smooth f, convex or not, x_{t+1} = x_t − ηP_t∇f(x_{t−τ_t}), 0 ≤ τ_t ≤ s, exact gradients and
    symmetric P_t with κI ⪯ P_t ⪯ I: without control (κ = 1), with `ratio` (κ = c_low), not with the other
    κ, which have no floor, nor with skips. η ≤ 1/(L(1 + s)) is always short enough.

    Args:
        initial_gap: f₀ − f* ≥ 0 at the start. May be traced.
        step_size: η > 0, within the condition. May be traced: then it isn't checked.
        smoothness: L > 0. May be traced.
        delay: s ≥ 0, the largest delay; static.
        kappa: 0 < κ ≤ 1, the smallest share kept. May be traced.
        num_steps: T ≥ 1.

    Returns:
        The bound, squared gradient.

    Raises:
        ValueError: an argument is out of range, or the step too long; it is named.

    Source: derived, docs/policy_optimization.md#projection-bound.

    """
    numbers = {
        "initial_gap": initial_gap,
        "step_size": step_size,
        "smoothness": smoothness,
        "kappa": kappa,
    }
    _scalars(**numbers)
    check_number("initial_gap", initial_gap, 0)
    check_number("step_size", step_size, 0, low_open=True)
    check_number("smoothness", smoothness, 0, low_open=True)
    check_number("kappa", kappa, 0, 1, low_open=True)
    most = check_integer("delay", delay, 0)
    steps = check_integer("num_steps", num_steps, 1)
    gap, eta, _, share = (jnp.asarray(v).astype(jnp.float64) for v in numbers.values())
    if not is_traced(step_size, smoothness):
        scaled = float(np.asarray(step_size)) * float(np.asarray(smoothness))
        condition = scaled + (scaled * most) * (
            scaled * most
        )  # a power would raise where it overflows
        if condition > 1.0 + ROUNDING:
            accepted = (
                f"ηL + (ηLs)² ≤ 1 (here {condition!r}) at L = {smoothness}, s = {shown(most)}"
            )
            raise fail("step_size", step_size, accepted)
    return 2.0 * gap / (share * eta * steps)


@jax.jit
def _steepest(reward: Float[Array, " K"], weight: Float[Array, ""]) -> Float[Array, ""]:
    """β λ_max(diag π* − π*π*ᵀ)."""
    policy = jnp.exp(_log_softmax(reward / weight))
    hessian = jnp.diag(policy) - policy[:, None] * policy[None, :]
    return weight * jnp.linalg.eigvalsh(hessian)[-1]


@functools.partial(jax.jit, static_argnames="kappa")
def _share(c: Float[Array, "..."], low: Float[Array, ""], kappa: str) -> Float[Array, "..."]:
    above = c > low
    safe = jnp.where(above, c, 1.0)
    share = jnp.zeros_like(c) if kappa == "zero" else low / safe
    if kappa == "exact":
        share = share * jnp.sqrt((1.0 - safe) * (1.0 + safe) / ((1.0 - low) * (1.0 + low)))
    return jnp.where(above, share, 1.0)


@functools.partial(jax.jit, static_argnames="kappa")
def _norm(c: Float[Array, "..."], low: Float[Array, ""], kappa: str) -> Float[Array, "..."]:
    return jnp.sqrt((1.0 - c) * (1.0 + c) + (_share(c, low, kappa) * c) ** 2)


@functools.partial(jax.jit, static_argnames="kappa")
def _left(c: Float[Array, "..."], low: Float[Array, ""], kappa: str) -> Float[Array, "..."]:
    if kappa == "exact":
        return jnp.where(c > low, low, c)
    norm = _norm(c, low, kappa)
    some = norm > 0.0
    return jnp.where(some, _share(c, low, kappa) * c / jnp.where(some, norm, 1.0), 0.0)


def _log_softmax(values: Float[Array, " K"]) -> Float[Array, " K"]:
    shifted = values - jnp.max(values)
    return shifted - jnp.log(jnp.sum(jnp.exp(shifted)))


def _bandit(
    reward: Any, entropy_weight: Any, *, positive: bool = True
) -> tuple[Float[Array, " K"], Float[Array, ""]]:
    check_number("reward", reward)
    check_shape("reward", reward, (None,), "one expected reward an action")
    _scalars(entropy_weight=entropy_weight)
    check_number("entropy_weight", entropy_weight, 0, low_open=positive)
    rewards, weight = (jnp.asarray(v).astype(jnp.float64) for v in (reward, entropy_weight))
    return rewards, weight


def _cosine(cosine: Any, low: Any, kappa: Any) -> tuple[Float[Array, "..."], Float[Array, ""]]:
    check_number("cosine", cosine, -1, 1)
    _scalars(low=low)
    check_number("low", low, 0, 1, high_open=True)
    check_choice("kappa", kappa, KAPPAS)
    least: jax.Array = jnp.asarray(low).astype(jnp.float64)
    return jnp.asarray(cosine).astype(jnp.float64), least


def _scalars(**numbers: Any) -> None:
    for name, value in numbers.items():
        check_shape(name, value, (), "one number: map over more by jax.vmap")
