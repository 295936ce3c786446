"""Sequences that one token ends, at different lengths, as a decision process solved exactly.

Symbols: V tokens of which the last, V − 1, ends the sequence; every sequence ends by H tokens, the end
token counted. W = V − 1 tokens go on, so there are P = Σ_{t<H} W^t prefixes that haven't ended, by
length, then in lexicographic order. Of the N = P + W^H sequences the shorter come first; within a
length they stand in lexicographic order. T(τ) is the number of tokens of a sequence. γ = 1.

All are computed in the floating-point type of their arguments.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from boundlab.checks import check_integer, check_key, check_number, check_shape, fail
from boundlab.models.tabular_trees import (
    MOST_DRAWN,
    MOST_SEQUENCES,
    check_log_policy,
    check_prefixes,
    drawn_tokens,
    same_type,
)
from boundlab.typing import Count


class EndedTreeSolution(NamedTuple):
    """A policy on a tree whose sequences end at different lengths."""

    objective: Float[Array, ""]
    """J = E R(τ)."""
    advantage: Float[Array, "prefixes tokens"]
    """A(s, a) = E[R | s, a] − E[R | s]; also at prefixes that are never reached."""
    reach: Float[Array, " prefixes"]
    """Probability that a sequence begins with the prefix and goes on; over all P it sums to E T."""
    inverse_length: Float[Array, "prefixes tokens"]
    """E[1/T | s, a], by which a mean over each sequence's tokens weighs a token."""


class EndedSequences(NamedTuple):
    """All sequences of a tree, padded to H tokens; NumPy, for indexing."""

    prefix: Int[np.ndarray, "sequences steps"]
    """Index of the prefix before each token; 0 where there is none."""
    token: Int[np.ndarray, "sequences steps"]
    """Token taken there; 0 where there is none."""
    mask: Bool[np.ndarray, "sequences steps"]
    """Which positions are tokens; row sums are the lengths T."""


def solve_ended_tree(log_policy: Any, reward: Any) -> EndedTreeSolution:
    """Objective, advantages, reach and mean 1/T of a policy on a tree with an end token, exactly.

    V and H are inferred from the shapes. Differentiable in both arguments.

    Args:
        log_policy: (P, V) log π(a|s), the end token last, −inf where a token is impossible. May be
            traced; then it isn't checked that the probabilities of each prefix sum to 1.
        reward: (N,) R of each sequence, in the order of `ended_sequences`. May be traced.

    Raises:
        ValueError: shapes that belong to no tree, values that are no log-probabilities or not finite;
            the argument is named.

    Source: derived, docs/policy_optimization.md#variable-lengths.

    """
    tokens, horizon = _tree_shape(log_policy, reward)
    check_log_policy("log_policy", log_policy)
    check_number("reward", reward)
    policy, paid = same_type(log_policy, reward)
    return _solved(policy, paid, tokens, horizon)


def ended_sequences(num_tokens: Count, horizon: Count) -> EndedSequences:
    """Prefixes and tokens of every sequence of the tree, in the order of its rewards.

    Args:
        num_tokens: V ≥ 1, the end token counted.
        horizon: H ≥ 1 (1 if V = 1: the first token ends); at most ten million sequences.

    Raises:
        ValueError: an argument is out of range; it is named.
    """
    tokens = check_integer("num_tokens", num_tokens, 1, MOST_SEQUENCES)
    steps = check_integer("horizon", horizon, 1, MOST_SEQUENCES)
    going_on = tokens - 1
    if going_on == 0 and steps > 1:
        raise fail("horizon", steps, "1 with one token, which ends the sequence")
    if steps * np.log(max(going_on, 1)) > np.log(MOST_SEQUENCES):
        raise fail("horizon", steps, f"(num_tokens − 1)^horizon ≤ {MOST_SEQUENCES:,}")
    first = np.cumsum([0, *(going_on**t for t in range(steps))])
    blocks = [_block(t, steps, going_on, first) for t in range(1, steps + 1)]
    prefix, token, mask = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return EndedSequences(prefix, token, mask)


def sample_ended_sequences(
    key: Any, log_policy: Any, horizon: Count, num_sequences: Count
) -> tuple[Int[Array, "samples steps"], Bool[Array, "samples steps"]]:
    """Tokens and mask of sequences drawn token by token from the policy, padded with 0.

    Args:
        key: one typed key.
        log_policy: (P, V) of a tree of H steps, the end token last. May be traced.
        horizon: H ≥ 1.
        num_sequences: how many are drawn, ≥ 1, independently.

    Raises:
        ValueError: an argument is out of range or belongs to another tree; it is named.
    """
    check_key("key", key)
    steps = check_integer("horizon", horizon, 1, MOST_SEQUENCES)
    count = check_integer("num_sequences", num_sequences, 1, MOST_DRAWN)
    check_shape("log_policy", log_policy, (None, None), "prefixes and tokens")
    check_prefixes(log_policy, np.shape(log_policy)[1] - 1, steps)
    check_log_policy("log_policy", log_policy)
    (policy,) = same_type(log_policy)
    return _drawn(key, policy, steps, count)


def _tree_shape(log_policy: Any, reward: Any) -> tuple[int, int]:
    """V and H of the tree that both shapes belong to."""
    check_shape("log_policy", log_policy, (None, None), "prefixes and tokens")
    check_shape("reward", reward, (None,), "one a sequence")
    prefixes, tokens = np.shape(log_policy)
    going_on, horizon, levels = tokens - 1, 1, 1
    while levels < prefixes and going_on > 0:
        levels += going_on**horizon
        horizon += 1
    if levels != prefixes:
        accepted = f"1 + {going_on} + {going_on}² + … of them" if going_on > 1 else "1 of them"
        raise fail("log_policy", f"{prefixes} prefixes", accepted)
    shape = (prefixes + going_on**horizon,)
    check_shape("reward", reward, shape, f"{tokens} tokens, at most {horizon} of them")
    return tokens, horizon


def _block(
    length: int, steps: int, going_on: int, first: Int[np.ndarray, " levels"]
) -> tuple[
    Int[np.ndarray, "sequences steps"],
    Int[np.ndarray, "sequences steps"],
    Bool[np.ndarray, "sequences steps"],
]:
    """Sequences of one length: all tokens but the last go on; the last ends, or any at length H."""
    last = np.arange(going_on + 1) if length == steps else np.array([going_on])
    parent = np.repeat(np.arange(going_on ** (length - 1)), len(last))
    prefix, token = np.zeros((2, len(parent), steps), np.int64)
    for place in range(length):
        within = parent // max(going_on, 1) ** (length - 1 - place)
        prefix[:, place] = first[place] + within
        if place > 0:
            token[:, place - 1] = within % max(going_on, 1)
    token[:, length - 1] = np.tile(last, len(parent) // len(last))
    return prefix, token, np.broadcast_to(np.arange(steps) < length, prefix.shape)


@functools.partial(jax.jit, static_argnums=(2, 3))
def _solved(
    log_policy: Float[Array, "prefixes tokens"],
    reward: Float[Array, " sequences"],
    tokens: int,
    horizon: int,
) -> EndedTreeSolution:
    sizes = [(tokens - 1) ** t for t in range(horizon)]
    ends = np.cumsum(sizes)
    policy = jnp.exp(log_policy)
    levels = [policy[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    # Sequences that end early stand by length as their prefixes do; the full ones come last.
    value = reward[ends[-1] - sizes[-1] :]
    inverse = jnp.full(value.shape, 1 / horizon, policy.dtype)
    advantages, inverses = [], []
    for place in reversed(range(horizon)):
        level, size = levels[place], sizes[place]
        if place < horizon - 1:
            ended = reward[ends[place] - size : ends[place], None]
            value = jnp.concatenate([value.reshape(size, -1), ended], axis=1)
            soon = jnp.full((size, 1), 1 / (place + 1), policy.dtype)
            inverse = jnp.concatenate([inverse.reshape(size, -1), soon], axis=1)
        action_value, token_inverse = value.reshape(level.shape), inverse.reshape(level.shape)
        value, inverse = (jnp.sum(level * x, axis=1) for x in (action_value, token_inverse))
        advantages.append(action_value - value[:, None])
        inverses.append(token_inverse)
    reached = [jnp.ones(1, policy.dtype)]
    for level in levels[:-1]:
        reached.append((reached[-1][:, None] * level[:, :-1]).reshape(-1))
    return EndedTreeSolution(
        value[0], *(jnp.concatenate(x) for x in (advantages[::-1], reached, inverses[::-1]))
    )


@functools.partial(jax.jit, static_argnums=(2, 3))
def _drawn(
    key: Any, log_policy: Float[Array, "prefixes tokens"], steps: int, count: int
) -> tuple[Int[Array, "samples steps"], Bool[Array, "samples steps"]]:
    end = log_policy.shape[1] - 1
    chance = jax.random.uniform(key, (steps, count), log_policy.dtype)
    within, first = jnp.zeros(count, jnp.int32), 0
    alive, drawn, kept = jnp.ones(count, bool), [], []
    for place in range(steps):
        token = drawn_tokens(chance[place], log_policy[first + within])
        drawn.append(jnp.where(alive, token, 0))
        kept.append(alive)
        alive = alive & (token < end)
        # Sequences that have ended stay at a prefix that exists, and are masked.
        within, first = jnp.where(alive, within * end + token, 0), first + end**place
    return jnp.stack(drawn, axis=1), jnp.stack(kept, axis=1)
