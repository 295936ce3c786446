"""Sequences of different lengths: what a weight of 1/T does to the policy gradient; states seen once.

Symbols: π(a|s) a softmax policy with a logit for each prefix s and token a, d(s) the probability that a
sequence passes through s (over all prefixes it sums to the mean length), A(s, a) its advantage, T the
number of tokens of a sequence, m(s, a) = E[1/T | s, a].
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_integer, check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.typing import Count, Numbers

# How far the probabilities of a prefix may be from 1 in all.
NORMALISED = 1e-8


@float64
def length_weighted_gradient(
    policy: Numbers, reach: Numbers, advantage: Numbers, weight: Numbers
) -> Float[Array, "prefixes tokens"]:
    """Ascent direction in the logits of a loss that weighs each token's advantage:

        d(s) π(a|s) (m(s,a)A(s,a) − Σ_b π(b|s) m(s,b)A(s,b)).

    With m = E[1/T | s, a] it is where losses go, on policy and in expectation, that take the mean over
    each sequence's tokens (GRPO, GSPO, FiberPO). With m = 1 it is ∇J; with m = 1/H, all sequences of
    length H, ∇J/H. In between the direction differs from that of ∇J.

    Args:
        policy: π (P, V), rows sum to 1. May be traced.
        reach: d (P,) ≥ 0. May be traced.
        advantage: A (P, V), in units of reward; an offset that is the same for all tokens of a prefix
            matters unless m doesn't depend on the token. May be traced.
        weight: m (P, V) ≥ 0. May be traced.

    Returns:
        The direction (P, V), in units of reward.

    Raises:
        ValueError: an argument is out of range or of another shape; it is named.

    Source: derived, docs/policy_optimization.md#variable-lengths.

    """
    check_shape("policy", policy, (None, None), "prefixes and tokens")
    shape = np.shape(policy)
    check_number("policy", policy, 0, 1)
    if not is_traced(policy):
        total = np.asarray(policy).sum(axis=1)
        if (np.abs(total - 1) > NORMALISED).any():
            raise fail("policy", f"a row that sums to {total[np.argmax(abs(total - 1))]:g}", "1")
    check_shape("reach", reach, shape[:1], "one a prefix")
    check_number("reach", reach, 0)
    check_shape("advantage", advantage, shape, "as policy")
    check_number("advantage", advantage)
    check_shape("weight", weight, shape, "as policy")
    check_number("weight", weight, 0)
    pi, visited, paid, weights = (_wide(x) for x in (policy, reach, advantage, weight))
    weighted = weights * paid
    centred = weighted - jnp.sum(pi * weighted, axis=1, keepdims=True)
    return visited[:, None] * pi * centred


@float64
def expected_single_visits(reach: Numbers, num_sequences: Count) -> Float[Array, "..."]:
    """How many prefixes exactly one of n independent sequences passes through, in the mean:

        Σ_s n d(s) (1 − d(s))^{n−1},  here one term a prefix: add those of interest.

    At such a prefix the centring identities Σ(r − 1) = 0 and ΣÂ = 0 leave r = 1 and Â = 0 alone: a
    trust region on samples of one state says nothing there.

    Args:
        reach: d, any shape, in [0, 1]. May be traced.
        num_sequences: n ≥ 1.

    Returns:
        The terms, of the shape of `reach`: each the probability that the prefix is such a one.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/policy_optimization.md#variable-lengths.

    """
    check_number("reach", reach, 0, 1)
    count = check_integer("num_sequences", num_sequences, 1)
    visited = _wide(reach)
    number = jnp.asarray(float(count), jnp.float64)
    return number * visited * (1.0 - visited) ** (number - 1.0)


def _wide(value: Any) -> Float[Array, "..."]:
    return jnp.asarray(value).astype(jnp.float64)
