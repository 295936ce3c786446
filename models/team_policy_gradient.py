"""Softmax policy gradient of one agent and of teams: exact gradients, and REINFORCE from trajectories.

Symbols: R (A, …, A) the expected reward of a team, axis k the action of agent k of K. A policy is

    joint      one softmax over all A^K joint actions, logits of R's shape;
    factored   a softmax over A actions for each agent, logits (K, A);
    symmetric  one softmax over A actions that all agents share, logits (A,), for R that doesn't tell
               agents apart: where factored learners are that start alike.

Flow time t is t/η steps of exact gradients of a small size η. Rewards are the team's unless they are
called the agents' own.
"""

import functools
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from boundlab.checks import (
    check_choice,
    check_integer,
    check_key,
    check_number,
    check_shape,
    fail,
)
from boundlab.precision import is_traced
from boundlab.typing import Count, Numbers, Scalar

POLICIES = ("joint", "factored", "symmetric")
LEARNERS = ("joint", "shared", "own")


class LearningPath(NamedTuple):
    """What a learner earns along its path, and where it ends."""

    value: Float[Array, " times"]
    """Expected reward of the team at each time, that of the start first."""
    logits: Float[Array, "..."]
    """The last logits, of the policy's shape."""


def initial_logits(
    key: Any, reward: Numbers, policy: str, noise_std: Scalar
) -> Float[Array, "..."]:
    """Logits around uniform policies: independent N(0, noise_std²), of the policy's shape.

    Args:
        key: one typed key.
        reward: R (A, …, A), for its shape and type.
        policy: `joint`, `factored` or `symmetric`.
        noise_std: ≥ 0; 0 is exactly uniform. May be traced.

    Raises:
        ValueError: an argument is out of range; it is named.
    """
    check_key("key", key)
    tensor = _tensor(reward, policy)
    _check_noise(noise_std)
    noise = jax.random.normal(key, _shape(tensor, policy), tensor.dtype)
    return jnp.asarray(noise_std).astype(tensor.dtype) * noise


def expected_reward(logits: Numbers, reward: Numbers, policy: str) -> Float[Array, ""]:
    """E[R] when joint actions are drawn from the policy with these logits.

    Args:
        logits: of the policy's shape, see the module. May be traced.
        reward: R (A, …, A), K ≥ 1 axes. May be traced.
        policy: `joint`, `factored` or `symmetric`.

    Raises:
        ValueError: an argument is out of range; it is named.
    """
    tensor = _tensor(reward, policy)
    return _value(_start(logits, tensor, policy), tensor, policy)


def policy_gradient(logits: Numbers, reward: Numbers, policy: str) -> Float[Array, "..."]:
    """∇E[R] with respect to the logits, by automatic differentiation.

    Of `symmetric` logits it is one agent's gradient with the others held fixed, a K-th of the derivative
    along all of them together. Arguments and errors as in `expected_reward`.

    Returns:
        The gradient, of the logits' shape.

    """
    tensor = _tensor(reward, policy)
    return _value_and_gradient(_start(logits, tensor, policy), tensor, policy)[1]


def gradient_flow(
    reward: Numbers, times: Numbers, policy: str = "factored", logits: Numbers | None = None
) -> LearningPath:
    """Softmax policy gradient with exact gradients: the flow logits' = ∇E[R].

    Runge and Kutta's method of order 4, one step from each time to the next: steps of 1/(max R − min R)
    keep the value to about 1e-6 of that range (K ≤ 3). Agents with rewards of their own follow the flow
    of these rewards' sum.

    Args:
        reward: R (A, …, A), K ≥ 1 axes, in the floating-point type of the computation. May be traced.
        times: (T,) increasing, T ≥ 1; only differences matter. May be traced.
        policy: `joint`, `factored` or `symmetric`.
        logits: where to start, of the policy's shape; None for exactly uniform policies.

    Returns:
        Expected rewards (T,) at `times` and the last logits.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#policy-gradient.

    """
    tensor = _tensor(reward, policy)
    check_shape("times", times, (None,))
    check_number("times", times)
    if not is_traced(times) and (np.diff(np.asarray(times, np.float64)) <= 0).any():
        raise fail("times", "times that don't increase", "strictly increasing numbers")
    return _flow(_start(logits, tensor, policy), tensor, jnp.asarray(times, tensor.dtype), policy)


def reinforce_gradient(
    key: Any,
    logits: Numbers,
    reward: Numbers,
    learner: str,
    noise_std: Scalar,
    own_rewards: Numbers | None = None,
) -> Float[Array, "..."]:
    """REINFORCE estimate of the gradient from one trajectory, with the exact mean as baseline:

        ĝ_k = (r_k − E r_k) ∇ log π_k(a_k),   r_k = what agent k is paid + noise_std·N(0, 1).

    A `joint` learner is one agent over A^K actions that is paid R; `shared` learners are each paid R,
    with one noise for all (the outcome's); `own` learners their row of `own_rewards`, each with a noise
    of its own.

    Args:
        key: one typed key.
        logits: (A, …, A) for `joint`, else (K, A). May be traced.
        reward: R (A, …, A); not used by `own`, but for its shape. May be traced.
        learner: `joint`, `shared` or `own`.
        noise_std: ≥ 0, of the outcome; for `own` of each agent's score. May be traced.
        own_rewards: (K, A) for `own`, None for the others. May be traced.

    Returns:
        The estimate, of the logits' shape; its mean is the gradient of E[R], for `own` that of
        E[Σ_k r_k].

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#policy-gradient.

    """
    check_key("key", key)
    tensor, own = _payments(reward, learner, own_rewards)
    _check_noise(noise_std)
    start = _start(logits, tensor, _policy(learner))
    return _estimate(key, start, tensor, own, jnp.asarray(noise_std).astype(tensor.dtype), learner)


def reinforce(
    key: Any,
    reward: Numbers,
    learner: str,
    num_steps: Count,
    step_size: Scalar,
    noise_std: Scalar,
    own_rewards: Numbers | None = None,
    logits: Numbers | None = None,
    batch_size: Count = 1,
) -> LearningPath:
    """REINFORCE: `num_steps` steps of stochastic gradient ascent on means of `batch_size` estimates.

    Args:
        key: one typed key; map over keys by jax.vmap.
        reward: R (A, …, A), K ≥ 1 axes, in the floating-point type of the computation. May be traced.
        learner: `joint`, `shared` or `own`, as in `reinforce_gradient`.
        num_steps: ≥ 0.
        step_size: η ≥ 0; a step is η of flow time. May be traced.
        noise_std: as in `reinforce_gradient`.
        own_rewards: as in `reinforce_gradient`.
        logits: where to start; None for exactly uniform policies.
        batch_size: trajectories a step, ≥ 1; N = num_steps·batch_size trajectories in all.

    Returns:
        Expected rewards (num_steps + 1,) of the team, without noise, and the last logits.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#policy-gradient.

    """
    check_key("key", key)
    tensor, own = _payments(reward, learner, own_rewards)
    steps = check_integer("num_steps", num_steps, 0)
    batch = check_integer("batch_size", batch_size, 1)
    check_shape("step_size", step_size, ())
    check_number("step_size", step_size, 0)
    _check_noise(noise_std)
    eta, sigma = (jnp.asarray(value).astype(tensor.dtype) for value in (step_size, noise_std))
    start = _start(logits, tensor, _policy(learner))
    return _ascend(key, start, tensor, own, eta, sigma, learner, steps, batch)


@functools.partial(jax.jit, static_argnames="policy")
def _flow(
    logits: Float[Array, "..."], reward: Float[Array, "..."], times: Float[Array, " t"], policy: str
) -> LearningPath:
    at = functools.partial(_value_and_gradient, reward=reward, policy=policy)

    def step(
        theta: Float[Array, "..."], tau: Float[Array, ""]
    ) -> tuple[Float[Array, "..."], Float[Array, ""]]:
        value, first = at(theta)
        second = at(theta + tau / 2 * first)[1]
        third = at(theta + tau / 2 * second)[1]
        fourth = at(theta + tau * third)[1]
        return theta + tau / 6 * (first + 2 * second + 2 * third + fourth), value

    last, values = jax.lax.scan(step, logits, jnp.diff(times))
    return LearningPath(jnp.append(values, _value(last, reward, policy)), last)


@functools.partial(jax.jit, static_argnames=("learner", "steps", "batch"))
def _ascend(
    key: Any,
    logits: Float[Array, "..."],
    reward: Float[Array, "..."],
    own: Float[Array, "agents actions"] | None,
    eta: Float[Array, ""],
    sigma: Float[Array, ""],
    learner: str,
    steps: int,
    batch: int,
) -> LearningPath:
    policy = _policy(learner)

    def step(theta: Float[Array, "..."], key: Any) -> tuple[Float[Array, "..."], Float[Array, ""]]:
        estimates = jax.vmap(lambda one: _estimate(one, theta, reward, own, sigma, learner))(
            jax.random.split(key, batch)
        )
        return theta + eta * jnp.mean(estimates, axis=0), _value(theta, reward, policy)

    last, values = jax.lax.scan(step, logits, jax.random.split(key, steps))
    return LearningPath(jnp.append(values, _value(last, reward, policy)), last)


@functools.partial(jax.jit, static_argnames="learner")
def _estimate(
    key: Any,
    logits: Float[Array, "..."],
    reward: Float[Array, "..."],
    own: Float[Array, "agents actions"] | None,
    sigma: Float[Array, ""],
    learner: str,
) -> Float[Array, "..."]:
    action_key, noise_key = jax.random.split(key)
    # Rows: learners; a joint learner is one with A^K actions.
    rows = logits.reshape(1, -1) if learner == "joint" else logits
    pi = jax.nn.softmax(rows, axis=1)
    actions = _draw(action_key, pi)
    if learner == "own":
        assert own is not None
        paid = jnp.take_along_axis(own, actions[:, None], axis=1)[:, 0]
        mean = jnp.sum(pi * own, axis=1)
        noise = jax.random.normal(noise_key, paid.shape, paid.dtype)
    else:
        table = reward.ravel() if learner == "joint" else reward
        paid = jnp.broadcast_to(table[tuple(actions)], (len(rows),))
        mean = _value(logits, reward, _policy(learner))
        noise = jax.random.normal(noise_key, (), paid.dtype)
    surplus = paid + sigma * noise - mean
    chosen = jax.nn.one_hot(actions, rows.shape[1], dtype=rows.dtype)
    return (surplus[:, None] * (chosen - pi)).reshape(logits.shape)


def _draw(key: Any, policies: Float[Array, "rows actions"]) -> Int[Array, " rows"]:
    """One action a row, by inverting the distribution function: one uniform number a row."""
    below = jnp.cumsum(policies, axis=1)[:, :-1]
    uniform = jax.random.uniform(key, (len(policies),), policies.dtype)
    return jnp.sum(uniform[:, None] >= below, axis=1, dtype=jnp.int32)


@functools.partial(jax.jit, static_argnames="policy")
def _value(
    logits: Float[Array, "..."], reward: Float[Array, "..."], policy: str
) -> Float[Array, ""]:
    if policy == "joint":
        return jnp.sum(jax.nn.softmax(logits.ravel()) * reward.ravel())
    shared = policy == "symmetric"
    policies = jax.nn.softmax(logits, axis=-1)
    value = reward
    for agent in range(reward.ndim):
        # Agents one after another: each contracts the first axis that is left.
        value = jnp.tensordot(policies if shared else policies[agent], value, 1)
    return value


@functools.partial(jax.jit, static_argnames="policy")
def _value_and_gradient(
    logits: Float[Array, "..."], reward: Float[Array, "..."], policy: str
) -> tuple[Float[Array, ""], Float[Array, "..."]]:
    """E[R] and one agent's gradient; all agents together move symmetric logits K times as fast."""
    value, gradient = jax.value_and_grad(_value)(logits, reward, policy)
    return value, gradient / (reward.ndim if policy == "symmetric" else 1)


def _policy(learner: str) -> str:
    return "joint" if learner == "joint" else "factored"


def _shape(tensor: Float[Array, "..."], policy: str) -> tuple[int, ...]:
    actions = tensor.shape[0]
    shapes = {"joint": tensor.shape, "factored": (tensor.ndim, actions), "symmetric": (actions,)}
    return shapes[policy]


def _tensor(reward: Any, policy: str) -> Float[Array, "..."]:
    """The checked reward tensor in a floating-point type."""
    check_choice("policy", policy, POLICIES)
    if is_traced(reward) and not isinstance(reward, jax.Array):
        raise fail("reward", "a list of traced values", "one array of shape (A, …, A)")
    check_number("reward", reward)
    shape = np.shape(reward)
    if not shape or len(set(shape)) != 1 or shape[0] < 1:
        raise fail("reward", f"shape {shape}", "shape (A, …, A), one axis an agent")
    if policy == "symmetric" and not is_traced(reward):
        values, axes = np.asarray(reward, np.float64), range(len(shape))
        scale = np.abs(values).max()
        for pair in itertools.pairwise(axes):
            if np.abs(values - values.swapaxes(*pair)).max() > 1e-6 * scale:
                raise fail("reward", f"one that tells agents {pair} apart", "a symmetric tensor")
    tensor = jnp.asarray(reward)
    return tensor if jnp.issubdtype(tensor.dtype, jnp.floating) else tensor.astype(float)


def _payments(
    reward: Any, learner: str, own_rewards: Any
) -> tuple[Float[Array, "..."], Float[Array, "agents actions"] | None]:
    check_choice("learner", learner, LEARNERS)
    tensor = _tensor(reward, _policy(learner))
    if (own_rewards is None) == (learner == "own"):
        got = "None" if own_rewards is None else f"rewards for {learner!r}"
        raise fail("own_rewards", got, "an array (agents, actions) for 'own', None for others")
    if own_rewards is None:
        return tensor, None
    check_shape("own_rewards", own_rewards, _shape(tensor, "factored"), "one row an agent")
    check_number("own_rewards", own_rewards)
    return tensor, jnp.asarray(own_rewards).astype(tensor.dtype)


def _start(logits: Any, tensor: Float[Array, "..."], policy: str) -> Float[Array, "..."]:
    shape = _shape(tensor, policy)
    if logits is None:
        return jnp.zeros(shape, tensor.dtype)
    check_shape("logits", logits, shape, f"that of a {policy} policy")
    check_number("logits", logits)
    return jnp.asarray(logits).astype(tensor.dtype)


def _check_noise(noise_std: Any) -> None:
    check_shape("noise_std", noise_std, ())
    check_number("noise_std", noise_std, 0)
