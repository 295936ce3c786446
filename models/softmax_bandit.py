"""A softmax bandit with an entropy bonus: exact and sampled policy gradients, fresh and stale.

Symbols: θ (K,) logits, π = softmax(θ), R (K,) expected rewards, β ≥ 0 the weight of the entropy:

    J(θ) = Σ_a π(a)(R_a − β log π(a)),    largest at π* = softmax(R/β),    J* − J = β KL(π‖π*).

μ is the policy that acted (the behaviour), of logits some updates old. The reward of an action is what
its own policy makes of it, r_a = R_a − β log μ(a), less the mean over the behaviour's actions.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from boundlab.checks import check_integer, check_key, check_number, check_shape, fail
from boundlab.models.delayed_descent import MOST_STEPS, delayed_descent
from boundlab.typing import Count, Numbers, Scalar


class BanditRun(NamedTuple):
    """A run of `stale_bandit`."""

    gap: Float[Array, " recorded"]
    """β KL(π‖π*) = J* − J at steps 0, every, 2·every, …, in units of reward."""
    cosine: Float[Array, " steps"]
    """Cosine of consecutive gradients, before the transformation."""
    regimes: Int[Array, "recorded 3"]
    """Updates passed, projected and skipped by `gac` in the `every` steps from there; else zeros."""
    logits: Float[Array, " K"]
    """The last ones."""


def bandit_objective(logits: Numbers, reward: Numbers, entropy_weight: Scalar) -> Float[Array, ""]:
    """J(θ) of the module.

    Args:
        logits: θ (K,). May be traced, as all arguments.
        reward: R (K,), floating; its type is that of the computation.
        entropy_weight: β ≥ 0.

    Raises:
        ValueError: an argument is out of range; it is named.
    """
    rewards, weight = _arguments(reward, entropy_weight)
    return _objective(_logits("logits", logits, rewards), rewards, weight)


def surrogate_gradient(
    logits: Numbers,
    behavior_logits: Numbers,
    reward: Numbers,
    entropy_weight: Scalar = 0.0,
    *,
    corrected: bool = False,
) -> Float[Array, " K"]:
    """Expected policy gradient at θ from actions of an older policy, by automatic differentiation:

        ∇_θ Σ_a μ(a) A(a) log π(a),    A(a) = r_a − Σ_b μ(b) r_b,

    or, `corrected`, ∇_θ Σ_a π(a) A(a): each action weighted by the ratio π/μ. A isn't differentiated;
    with β > 0 the corrected one has the old policy's entropy in its rewards.

    Args:
        logits: θ (K,), of the policy that learns. May be traced, as all arrays.
        behavior_logits: (K,), of the policy μ that acted.
        reward: R (K,), floating.
        entropy_weight: β ≥ 0.
        corrected: whether to weight by the ratio; static.

    Raises:
        ValueError: an argument is out of range; it is named.
    """
    rewards, weight = _arguments(reward, entropy_weight)
    theta = _logits("logits", logits, rewards)
    behavior = jax.nn.log_softmax(_logits("behavior_logits", behavior_logits, rewards))
    advantage = rewards - weight * behavior
    advantage = advantage - jnp.sum(jnp.exp(behavior) * advantage)

    def surrogate(x: jax.Array) -> jax.Array:
        log_policy = jax.nn.log_softmax(x)
        if corrected:
            return jnp.sum(jnp.exp(log_policy) * advantage)
        return jnp.sum(jnp.exp(behavior) * advantage * log_policy)

    return jax.grad(surrogate)(theta)


def stale_bandit(
    key: Any,
    reward: Numbers,
    entropy_weight: Scalar,
    step_size: Scalar,
    delay: Any,
    batch_size: Count | None,
    num_steps: Count,
    *,
    transform: optax.GradientTransformation | None = None,
    initial: Numbers | None = None,
    max_delay: Count | None = None,
    every: Count = 1,
) -> BanditRun:
    """Gradient ascent on J from actions of the policy of `delay` updates ago, uncorrected.

    The estimate from a batch of actions is mean_i (r_{a_i} − mean_j r_{a_j}) e_{a_i}, whose mean is
    (1 − 1/batch_size)∇J at the old logits. Its noise vanishes at the optimum, where all r_a are equal.

    Args:
        key: one typed key.
        reward: R (K,), floating; its type is that of the computation. May be traced.
        entropy_weight: β > 0. May be traced.
        step_size: η ≥ 0. May be traced.
        delay: τ ≥ 0, an integer; may be traced if `max_delay` is given.
        batch_size: actions a step ≥ 1; None: the exact gradient at the old logits.
        num_steps: ≥ 1, a multiple of `every`.
        transform: an optax transformation of the gradient (of −J, as optax has it), such as `gac`.
        initial: first logits (K,); None: zeros, the uniform policy.
        max_delay: as in `delayed_descent`.
        every: of how many steps one is recorded; counts of regimes are over all.

    Raises:
        ValueError: an argument is out of range; it is named.

    """
    check_key("key", key)
    rewards, weight = _arguments(reward, entropy_weight, positive=True)
    steps = check_integer("num_steps", num_steps, 1, MOST_STEPS)
    stride = check_integer("every", every, 1)
    if steps % stride:
        raise fail("num_steps", steps, f"a multiple of every = {stride}")
    if batch_size is not None:
        batch_size = check_integer("batch_size", batch_size, 1, MOST_STEPS)
    start = jnp.zeros_like(rewards) if initial is None else _logits("initial", initial, rewards)
    best = jax.nn.log_softmax(rewards / weight)

    def descent(step_key: jax.Array, logits: jax.Array) -> jax.Array:
        if batch_size is None:
            return -jax.grad(_objective)(logits, rewards, weight)
        return -_sampled_gradient(step_key, logits, rewards, weight, batch_size)

    def gap(logits: jax.Array) -> jax.Array:
        log_policy = jax.nn.log_softmax(logits)
        ahead = best - log_policy
        # The mean of e^x − 1 is 0: with it every term is ≥ 0 and small gaps keep their digits.
        return weight * jnp.sum(jnp.exp(log_policy) * (jnp.expm1(ahead) - ahead))

    controlled = transform is not None and hasattr(jax.eval_shape(transform.init, start), "regime")
    run = delayed_descent(
        key,
        descent,
        start,
        step_size,
        delay,
        steps,
        max_delay=max_delay,
        transform=transform,
        observe=gap,
        watch=(lambda state: state.regime) if controlled else None,
    )
    counts = jnp.zeros((steps // stride, 3), jnp.int32)
    if controlled:
        blocks = run.watched.reshape(-1, stride)
        counts = jnp.stack([jnp.sum(blocks == r, axis=1, dtype=jnp.int32) for r in range(3)], 1)
    return BanditRun(run.observed[::stride], run.cosine, counts, run.parameters)


def _objective(
    logits: Float[Array, " K"], reward: Float[Array, " K"], weight: Float[Array, ""]
) -> Float[Array, ""]:
    log_policy = jax.nn.log_softmax(logits)
    return jnp.sum(jnp.exp(log_policy) * (reward - weight * log_policy))


def _sampled_gradient(
    key: jax.Array,
    logits: Float[Array, " K"],
    reward: Float[Array, " K"],
    weight: Float[Array, ""],
    batch_size: int,
) -> Float[Array, " K"]:
    log_policy = jax.nn.log_softmax(logits)
    # Inverse of the distribution function: one uniform number an action.
    edges = jnp.cumsum(jnp.exp(log_policy))[:-1]
    drawn = jax.random.uniform(key, (batch_size, 1), logits.dtype)
    actions = jnp.sum(drawn >= edges[None, :], axis=1)
    counts = jnp.sum(actions[:, None] == jnp.arange(len(logits))[None, :], axis=0)
    share = counts.astype(logits.dtype) / batch_size
    paid = reward - weight * log_policy
    return share * (paid - jnp.sum(share * paid))


def _arguments(
    reward: Any, entropy_weight: Any, *, positive: bool = False
) -> tuple[Float[Array, " K"], Float[Array, ""]]:
    check_number("reward", reward)
    check_shape("reward", reward, (None,), "(K,) with K ≥ 1")
    rewards = jnp.asarray(reward)
    if not jnp.issubdtype(rewards.dtype, jnp.floating):
        raise fail("reward", f"values of type {rewards.dtype}", "floating-point numbers")
    check_shape("entropy_weight", entropy_weight, (), "one number")
    check_number("entropy_weight", entropy_weight, 0, low_open=positive)
    return rewards, jnp.asarray(entropy_weight).astype(rewards.dtype)


def _logits(name: str, logits: Any, reward: Float[Array, " K"]) -> Float[Array, " K"]:
    check_number(name, logits)
    check_shape(name, logits, reward.shape, "that of reward")
    return jnp.asarray(logits).astype(reward.dtype)
