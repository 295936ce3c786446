"""Sequences as a decision process solved exactly: every prefix is a state, every token an action.

Symbols: V tokens, sequences of H tokens, N = V^H of them, P = (V^H − 1)/(V − 1) prefixes shorter than H
(V = 1: H). Prefixes stand by length, the empty one first, and within a length in lexicographic order,
the first token most significant; so do the leaves. The reward is paid at the leaf, nothing is
discounted: γ = 1. Trees whose sequences end at different lengths are in `tabular_ended_trees`.

All are computed in the floating-point type of their arguments.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from boundlab.checks import check_integer, check_key, check_number, check_shape, fail
from boundlab.precision import is_traced, standard_promotion
from boundlab.typing import Count, Numbers

# How far the probabilities of a prefix may be from 1 in all; logarithms in bfloat16 keep it.
NORMALISED = 1e-2
# Most sequences of a tree: it is for exact work on small ones.
MOST_SEQUENCES = 10**7
# Most that are drawn: they are counted in int32.
MOST_DRAWN = 2**31 - 1


class TreeSolution(NamedTuple):
    """A policy on a tree: what it earns, and what each token changes."""

    objective: Float[Array, ""]
    """J = E R(τ)."""
    advantage: Float[Array, "prefixes tokens"]
    """A(s, a) = E[R | s, a] − E[R | s]; also at prefixes that are never reached."""
    reach: Float[Array, " prefixes"]
    """Probability that a sequence begins with the prefix; the P of a length sum to 1."""


class SequenceTable(NamedTuple):
    """Which prefix each sequence is at, and which token it takes there; NumPy, for indexing."""

    prefix: Int[np.ndarray, "sequences steps"]
    """Index of the prefix before each step."""
    token: Int[np.ndarray, "sequences steps"]
    """Token taken there."""


def solve_tree(log_policy: Any, leaf_reward: Any) -> TreeSolution:
    """Objective, advantages and reach of a policy on the tree of all sequences, exactly:

        Q(s, a) = E[R | s, a],   A = Q − Σ_b π(b|s) Q(s, b),   J = E[R | empty prefix].

    V and H are inferred from the shapes. Differentiable in both arguments: for the policy gradient,
    differentiate through the log_softmax of logits.

    Args:
        log_policy: (P, V) log π(a|s), −inf where a token is impossible. May be traced; then it isn't
            checked that the probabilities of each prefix sum to 1.
        leaf_reward: (V^H,) R of each sequence, any unit. May be traced.

    Raises:
        ValueError: shapes that belong to no tree, values that are no log-probabilities or not finite;
            the argument is named.

    Source: derived, docs/policy_optimization.md#finite-horizon.

    """
    tokens, horizon = _tree_shape(log_policy, leaf_reward)
    check_log_policy("log_policy", log_policy)
    check_number("leaf_reward", leaf_reward)
    policy, reward = same_type(log_policy, leaf_reward)
    return _solved(policy, reward, tokens, horizon)


def tree_surrogate_gain(log_policy: Any, new_log_policy: Any, leaf_reward: Any) -> Float[Array, ""]:
    """Σ_t E_{s_t∼π} Σ_a π′(a|s_t) A_π(s_t, a): what π′ would gain if it visited prefixes as π does.

    `log_policy` and `leaf_reward` as in `solve_tree`, `new_log_policy` (P, V) log π′. May be traced.

    Raises:
        ValueError: as `solve_tree`.
    """
    solution = solve_tree(log_policy, leaf_reward)
    check_shape("new_log_policy", new_log_policy, np.shape(log_policy), "as log_policy")
    check_log_policy("new_log_policy", new_log_policy)
    new, advantage, reach = same_type(new_log_policy, solution.advantage, solution.reach)
    return jnp.sum(reach[:, None] * jnp.exp(new) * advantage)


def prefix_total_variation(log_policy: Any, new_log_policy: Any) -> Float[Array, " prefixes"]:
    """½ Σ_a |π′(a|s) − π(a|s)| at each prefix; for trees of either kind.

    Args:
        log_policy: (P, V) log π. May be traced.
        new_log_policy: (P, V) log π′. May be traced.

    Raises:
        ValueError: an argument is no table of log-probabilities; it is named.
    """
    check_shape("log_policy", log_policy, (None, None), "prefixes and tokens")
    check_shape("new_log_policy", new_log_policy, np.shape(log_policy), "as log_policy")
    check_log_policy("log_policy", log_policy)
    check_log_policy("new_log_policy", new_log_policy)
    old, new = same_type(log_policy, new_log_policy)
    return jnp.sum(jnp.abs(jnp.exp(new) - jnp.exp(old)), axis=1) / 2


def sequence_table(num_tokens: Count, horizon: Count) -> SequenceTable:
    """Prefix and token of every step of all V^H sequences, in the order of the leaves.

    Args:
        num_tokens: V ≥ 1.
        horizon: H ≥ 1, V^H at most ten million.

    Raises:
        ValueError: an argument is out of range; it is named.
    """
    tokens = check_integer("num_tokens", num_tokens, 1, MOST_SEQUENCES)
    steps = check_integer("horizon", horizon, 1, MOST_SEQUENCES)
    if steps * np.log(tokens) > np.log(MOST_SEQUENCES):
        raise fail("horizon", steps, f"num_tokens^horizon ≤ {MOST_SEQUENCES:,}")
    index = np.arange(tokens**steps)
    lengths = np.arange(steps)
    # The first t tokens are the sequence's number without its last H − t digits.
    within = index[:, None] // tokens ** (steps - lengths)
    first = np.cumsum(np.append(0, tokens**lengths))[:-1]
    token = index[:, None] // tokens ** (steps - 1 - lengths) % tokens
    return SequenceTable(first + within, token)


def sequence_log_probs(log_policy: Any, horizon: Count) -> Float[Array, "sequences steps"]:
    """Logarithms of π for every token of all V^H sequences, in the order of the leaves.

    Row sums are the logarithms of the sequences' probabilities. The transpose sums, without a scatter.

    Args:
        log_policy: (P, V) of a tree of H steps. May be traced.
        horizon: H ≥ 1.

    Raises:
        ValueError: an argument is out of range or belongs to another tree; it is named.
    """
    steps = check_integer("horizon", horizon, 1, MOST_SEQUENCES)
    check_shape("log_policy", log_policy, (None, None), "prefixes and tokens")
    tokens = np.shape(log_policy)[1]
    check_prefixes(log_policy, tokens, steps)
    check_log_policy("log_policy", log_policy)
    (policy,) = same_type(log_policy)
    columns, first = [], 0
    for length in range(steps):
        rows = tokens**length
        level = policy[first : first + rows].reshape(-1, 1)
        after = tokens ** (steps - 1 - length)
        columns.append(jnp.broadcast_to(level, (level.size, after)).reshape(-1))
        first += rows
    return jnp.stack(columns, axis=1)


def sample_sequences(
    key: Any, log_policy: Any, horizon: Count, num_sequences: Count
) -> Int[Array, " samples"]:
    """Indices, in the order of the leaves, of sequences drawn token by token from the policy.

    Args:
        key: one typed key.
        log_policy: (P, V) of a tree of H steps. May be traced.
        horizon: H ≥ 1.
        num_sequences: how many are drawn, ≥ 1, independently.

    Raises:
        ValueError: an argument is out of range or belongs to another tree; it is named.
    """
    check_key("key", key)
    steps = check_integer("horizon", horizon, 1, MOST_SEQUENCES)
    count = check_integer("num_sequences", num_sequences, 1, MOST_DRAWN)
    check_shape("log_policy", log_policy, (None, None), "prefixes and tokens")
    check_prefixes(log_policy, np.shape(log_policy)[1], steps)
    check_log_policy("log_policy", log_policy)
    (policy,) = same_type(log_policy)
    return _drawn(key, policy, steps, count)


def check_prefixes(log_policy: Any, going_on: int, steps: int) -> None:
    """Refuse a table of another number of prefixes than a tree of so many steps has."""
    rows, tokens = np.shape(log_policy)
    prefixes, level = 0, 1
    for _ in range(steps):
        if prefixes > rows:
            raise fail("log_policy", f"{rows} prefixes", f"those of {steps} steps")
        prefixes, level = prefixes + level, level * going_on
    check_shape("log_policy", log_policy, (prefixes, tokens), f"of {steps} steps")


def check_log_policy(name: str, value: Any) -> None:
    """Refuse anything but finite or −inf numbers whose exponentials sum to 1 in each row."""
    if is_traced(value):
        return
    array = np.asarray(value)
    check_number(name, value, where=array != -np.inf)
    total = np.exp(array.astype(np.float64)).sum(axis=1)
    wrong = np.abs(total - 1) > NORMALISED
    if wrong.any():
        at = int(np.argmax(wrong))
        raise fail(name, f"probabilities that sum to {total[at]:.6g} in row {at}", "a sum of 1")


def drawn_tokens(
    chance: Float[Array, " samples"], log_policy: Float[Array, "samples tokens"]
) -> Int[Array, " samples"]:
    """Tokens by their cumulative probabilities, `chance` uniform in [0, 1)."""
    below = jnp.cumsum(jnp.exp(log_policy), axis=1)
    # The last sum is 1 but for rounding. An impossible token adds nothing and is never drawn.
    passed = chance[:, None] * below[:, -1:] >= below[:, :-1]
    return jnp.sum(passed, axis=1, dtype=jnp.int32)


def same_type(*values: Any) -> tuple[Array, ...]:
    """The arguments as arrays of their common floating-point type; integers have none of their own."""
    arrays = [jnp.asarray(value) for value in values]
    floating = [a.dtype for a in arrays if jnp.issubdtype(a.dtype, jnp.floating)]
    with standard_promotion():
        kind = jnp.result_type(*floating) if floating else jnp.result_type(float)
    return tuple(array.astype(kind) for array in arrays)


def _tree_shape(log_policy: Numbers, leaf_reward: Numbers) -> tuple[int, int]:
    """V and H of the tree that both shapes belong to."""
    check_shape("log_policy", log_policy, (None, None), "prefixes and tokens")
    check_shape("leaf_reward", leaf_reward, (None,), "one a sequence")
    prefixes, tokens = np.shape(log_policy)
    horizon, levels = 1, 1
    while levels < prefixes:
        levels += tokens**horizon
        horizon += 1
    if levels != prefixes:
        raise fail("log_policy", f"{prefixes} prefixes", f"1 + {tokens} + {tokens}² + … of them")
    check_shape("leaf_reward", leaf_reward, (tokens**horizon,), f"{tokens} tokens, {horizon} steps")
    return tokens, horizon


@functools.partial(jax.jit, static_argnums=(2, 3))
def _solved(
    log_policy: Float[Array, "prefixes tokens"],
    leaf_reward: Float[Array, " sequences"],
    tokens: int,
    horizon: int,
) -> TreeSolution:
    sizes = [tokens**t for t in range(horizon)]
    ends = np.cumsum(sizes)
    policy = jnp.exp(log_policy)
    levels = [policy[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    value, advantages = leaf_reward, []
    for level in reversed(levels):
        action_value = value.reshape(level.shape)
        value = jnp.sum(level * action_value, axis=1)
        advantages.append(action_value - value[:, None])
    reached = [jnp.ones(1, policy.dtype)]
    for level in levels[:-1]:
        reached.append((reached[-1][:, None] * level).reshape(-1))
    return TreeSolution(value[0], jnp.concatenate(advantages[::-1]), jnp.concatenate(reached))


@functools.partial(jax.jit, static_argnums=(2, 3))
def _drawn(
    key: Any, log_policy: Float[Array, "prefixes tokens"], steps: int, count: int
) -> Int[Array, " samples"]:
    tokens = log_policy.shape[1]
    chance = jax.random.uniform(key, (steps, count), log_policy.dtype)
    within, first = jnp.zeros(count, jnp.int32), 0
    for length in range(steps):
        token = drawn_tokens(chance[length], log_policy[first + within])
        within, first = within * tokens + token, first + tokens**length
    return within
