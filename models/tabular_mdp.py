"""Tabular Markov decision processes: solved exactly, drawn at random, and played.

Symbols: S states, A actions, transition P(s' | s, a), reward r(s, a), policy π(a | s), discount γ, first
state from μ. J(π) = E Σ_t γᵗ r(s_t, a_t) isn't normalised, nor is the occupancy
d_π(s) = Σ_t γᵗ P(s_t = s), which sums to 1/(1 − γ).
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_integer, check_key, check_number, check_shape, fail
from boundlab.precision import is_traced, standard_promotion
from boundlab.typing import Count, Scalar

# How far a row of probabilities may be from summing to 1: rows in float32 are a few 1e-7 off.
SUM_TOLERANCE = 1e-5
# Most of anything counted, in int32.
MOST = 2**31 - 1


class MDPSolution(NamedTuple):
    """What a policy is worth, exactly."""

    value: Float[Array, " states"]
    """V_π(s), in units of reward."""
    action_value: Float[Array, "states actions"]
    """Q_π(s, a)."""
    advantage: Float[Array, "states actions"]
    """A_π = Q_π − V_π; Σ_a π(a | s)A_π(s, a) = 0."""
    occupancy: Float[Array, " states"]
    """d_π(s), which sums to 1/(1 − γ)."""
    objective: Float[Array, ""]
    """J(π) = Σ_s μ(s)V_π(s)."""


class RandomMDP(NamedTuple):
    """A process without policy and discount."""

    transition: Float[Array, "states actions states"]
    """P, each row uniform on the simplex."""
    reward: Float[Array, "states actions"]
    """r, standard normal."""
    initial: Float[Array, " states"]
    """μ, uniform on the simplex."""


def solve_mdp(
    transition: Any, reward: Any, policy: Any, discount: Scalar, initial: Any
) -> MDPSolution:
    """Value, advantage, occupancy and objective of a policy, by one linear solve:

        V = (I − γP_π)⁻¹ r_π,    d = (I − γP_πᵀ)⁻¹ μ,    P_π = Σ_a π P,  r_π = Σ_a π r.

    In the widest floating-point type of the arrays, float32 at least; integers alone: JAX's default.
    Differentiable; S × S matrices, once a call.

    Args:
        transition: P (S, A, S), next state last; rows sum to 1. May be traced, as all others.
        reward: r (S, A), mean rewards.
        policy: π (S, A), rows sum to 1; zeros are allowed.
        discount: γ in [0, 1).
        initial: μ (S,), sums to 1.

    Raises:
        ValueError: an argument has another shape, isn't finite or no probability; it is named.

    Source: the Bellman equation; derived, docs/policy_optimization.md#improvement-bounds.

    """
    return _solve(*_read(transition, reward, policy, discount, initial))


def random_mdp(key: Any, num_states: Count, num_actions: Count) -> RandomMDP:
    """A process with rows of P and μ uniform on the simplex and standard normal rewards.

    In float64 with x64 on, otherwise float32 (other draws).

    Args:
        key: one typed key.
        num_states: S ≥ 1.
        num_actions: A ≥ 1.

    Raises:
        ValueError: an argument is out of range; it is named.

    """
    check_key("key", key)
    states = check_integer("num_states", num_states, 1, MOST)
    actions = check_integer("num_actions", num_actions, 1, MOST)
    keys, dtype = [jax.random.fold_in(key, place) for place in range(3)], jnp.result_type(float)
    transition = jax.random.exponential(keys[0], (states, actions, states), dtype)
    initial = jax.random.exponential(keys[1], (states,), dtype)
    return RandomMDP(
        transition / jnp.sum(transition, axis=-1, keepdims=True),
        jax.random.normal(keys[2], (states, actions), dtype),
        initial / jnp.sum(initial),
    )


def simulate_returns(
    key: Any,
    transition: Any,
    reward: Any,
    policy: Any,
    discount: Scalar,
    initial: Any,
    num_episodes: Count,
    num_steps: Count,
) -> Float[Array, " episodes"]:
    """Discounted returns Σ_{t<T} γᵗ r(s_t, a_t) of independent episodes cut after T steps.

    The mean misses J(π) by at most γᵀ max|r|/(1 − γ). Actions and states are drawn by inverting the
    distribution function: with the same key two policies meet the same uniform numbers, which makes
    the difference of their returns less noisy than either.

    Args:
        key: one typed key.
        transition: P (S, A, S). May be traced, as all but the counts.
        reward: r (S, A).
        policy: π (S, A).
        discount: γ in [0, 1).
        initial: μ (S,).
        num_episodes: ≥ 1.
        num_steps: T ≥ 1.

    Raises:
        ValueError: an argument has another shape, isn't finite or no probability; it is named.

    """
    check_key("key", key)
    arguments = _read(transition, reward, policy, discount, initial)
    episodes = check_integer("num_episodes", num_episodes, 1, MOST)
    steps = check_integer("num_steps", num_steps, 1, MOST)
    return _play(key, *arguments, episodes, steps)


def _read(
    transition: Any, reward: Any, policy: Any, discount: Any, initial: Any
) -> tuple[jax.Array, ...]:
    """The arguments, checked and in one type."""
    check_shape("transition", transition, (None, None, None), "(S, A, S)")
    states, actions, after = np.shape(transition)
    if states != after:
        raise fail("transition", f"shape {(states, actions, after)}", "(S, A, S)")
    check_shape("reward", reward, (states, actions), "(S, A) of transition")
    check_shape("policy", policy, (states, actions), "(S, A) of transition")
    check_shape("discount", discount, ())
    check_shape("initial", initial, (states,), "(S,) of transition")
    check_number("reward", reward)
    check_number("discount", discount, 0, 1, high_open=True)
    for name, rows in (("transition", transition), ("policy", policy), ("initial", initial)):
        _check_probabilities(name, rows)
    with standard_promotion():
        arrays = [_canonical(a) for a in (transition, reward, policy, initial)]
        floating = [a.dtype for a in arrays if jnp.issubdtype(a.dtype, jnp.floating)]
        dtype = jnp.result_type(*(floating or [jnp.result_type(float)]), jnp.float32)
    matrix, rewards, chances, first = (a.astype(dtype) for a in arrays)
    return matrix, rewards, chances, jnp.asarray(discount).astype(dtype), first


def _canonical(values: Any) -> jax.Array:
    """As an array of the widest type that JAX has switched on, without its warning."""
    if isinstance(values, jax.Array) and not is_traced(values):
        values = np.asarray(values)  # float64 of another precision context
    array = values if is_traced(values) else np.asarray(values)
    return jnp.asarray(array, jax.dtypes.canonicalize_dtype(array.dtype))


def _check_probabilities(name: str, rows: Any) -> None:
    check_number(name, rows, 0)
    if is_traced(rows):
        return
    sums = np.asarray(rows).astype(np.float64).sum(axis=-1)
    if not np.allclose(sums, 1.0, rtol=0, atol=SUM_TOLERANCE):
        worst = np.ravel(sums)[np.argmax(np.abs(sums - 1.0))]
        raise fail(name, f"probabilities that sum to {worst:.6g}", "rows that sum to 1")


@jax.jit
def _solve(
    transition: Float[Array, "states actions states"],
    reward: Float[Array, "states actions"],
    policy: Float[Array, "states actions"],
    discount: Float[Array, ""],
    initial: Float[Array, " states"],
) -> MDPSolution:
    product = partial(jnp.einsum, precision="highest")
    identity = jnp.eye(len(initial), dtype=initial.dtype)
    followed = product("sa,sat->st", policy, transition)
    # Both systems have the same matrix, once transposed: one solve gives its inverse.
    resolvent = jnp.linalg.solve(identity - discount * followed, identity)
    value = product("st,t->s", resolvent, jnp.sum(policy * reward, axis=-1))
    action_value = reward + discount * product("sat,t->sa", transition, value)
    return MDPSolution(
        value,
        action_value,
        action_value - value[:, None],
        product("ts,t->s", resolvent, initial),
        product("s,s->", initial, value),
    )


@partial(jax.jit, static_argnames=("episodes", "steps"))
def _play(
    key: jax.Array,
    transition: Float[Array, "states actions states"],
    reward: Float[Array, "states actions"],
    policy: Float[Array, "states actions"],
    discount: Float[Array, ""],
    initial: Float[Array, " states"],
    episodes: int,
    steps: int,
) -> Float[Array, " episodes"]:
    dtype = reward.dtype
    to_action, to_state = jnp.cumsum(policy, axis=-1), jnp.cumsum(transition, axis=-1)
    start_key, step_key = jax.random.fold_in(key, 0), jax.random.fold_in(key, 1)
    draw = jax.random.uniform(start_key, (episodes,), dtype)
    first = _inverted(jnp.broadcast_to(jnp.cumsum(initial), (episodes, len(initial))), draw)

    def step(
        carry: tuple[jax.Array, jax.Array, jax.Array], time: jax.Array
    ) -> tuple[tuple[jax.Array, jax.Array, jax.Array], None]:
        state, total, weight = carry
        draws = jax.random.uniform(jax.random.fold_in(step_key, time), (2, episodes), dtype)
        action = _inverted(to_action[state], draws[0])
        total = total + weight * reward[state, action]
        return (_inverted(to_state[state, action], draws[1]), total, weight * discount), None

    start = (first, jnp.zeros(episodes, dtype), jnp.ones((), dtype))
    (_, total, _), _ = jax.lax.scan(step, start, jnp.arange(steps, dtype=jnp.int32))
    return total


def _inverted(cumulative: Float[Array, "episodes n"], draw: Float[Array, " episodes"]) -> jax.Array:
    """Index drawn from each row of cumulative probabilities; the last is never passed by rounding.

    The draw is stretched to the row's own sum, so that an outcome of probability 0 can't come up.
    """
    reached = (draw * cumulative[:, -1])[:, None] >= cumulative
    last = jnp.asarray(cumulative.shape[-1] - 1, jnp.int32)
    return jnp.minimum(jnp.sum(reached, axis=-1, dtype=jnp.int32), last)
