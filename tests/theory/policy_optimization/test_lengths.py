"""Length weights by automatic differentiation over all sequences; single visits by enumeration."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.theory.policy_optimization import expected_single_visits, length_weighted_gradient

RNG = np.random.default_rng(2)
LOGITS = RNG.standard_normal((3, 2))
POLICY = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
# Token 1 ends; prefixes (), (0,), (0, 0); sequences 1, 01, 000, 001.
SEQUENCES = ((1,), (0, 1), (0, 0, 0), (0, 0, 1))
REWARD = RNG.standard_normal(4)


def solution():
    """Reach, Q and mean 1/T of the four sequences, written out."""
    p = POLICY
    reach = np.array([1.0, p[0, 0], p[0, 0] * p[1, 0]])

    def action_values(paid):
        last = np.array([paid[2], paid[3]])
        middle = np.array([p[2] @ last, paid[1]])
        return np.stack([[p[1] @ middle, paid[0]], middle, last])

    inverse = np.array([1, 1 / 2, 1 / 3, 1 / 3])
    return reach, action_values(REWARD), action_values(inverse), action_values(REWARD * inverse)


def test_token_advantages_by_differentiation():
    """E over sequences of the mean over tokens of ∇log π A, sequence by sequence."""
    reach, values, weight, _ = solution()
    advantage = values - (POLICY * values).sum(axis=1, keepdims=True)

    def weighted(logits, lengths):
        log_policy = jax.nn.log_softmax(logits)
        total = 0.0
        for s in SEQUENCES:
            law = np.prod([POLICY[t, a] for t, a in enumerate(s)])
            for t, a in enumerate(s):
                scale = len(s) if lengths else 1
                total += law / scale * advantage[t, a] * log_policy[t, a]
        return total

    expected = jax.grad(weighted)(jnp.asarray(LOGITS), True)
    found = length_weighted_gradient(POLICY, reach, advantage, weight)
    np.testing.assert_allclose(found, expected, atol=1e-15)
    expected = jax.grad(weighted)(jnp.asarray(LOGITS), False)
    found = length_weighted_gradient(POLICY, reach, advantage, np.ones((3, 2)))
    np.testing.assert_allclose(found, expected, atol=1e-15)
    np.testing.assert_allclose(found, reach[:, None] * POLICY * advantage, atol=1e-15)


def test_rewards_over_lengths():
    """With the sequence's reward for its tokens' advantage it is the gradient of E[R/T]."""
    reach, _, _, shares = solution()

    def objective(logits):
        policy = jax.nn.softmax(logits)
        laws = [jnp.prod(jnp.stack([policy[t, a] for t, a in enumerate(s)])) for s in SEQUENCES]
        lengths = np.array([float(len(s)) for s in SEQUENCES])
        return jnp.sum(jnp.stack(laws) * REWARD / lengths)

    expected = jax.grad(objective)(jnp.asarray(LOGITS))
    found = length_weighted_gradient(POLICY, reach, shares, np.ones((3, 2)))
    np.testing.assert_allclose(found, expected, atol=1e-15)


def test_single_visits_by_enumeration():
    """All ways in which three sequences can be drawn."""
    reach = solution()[0]
    laws = [np.prod([POLICY[t, a] for t, a in enumerate(s)]) for s in SEQUENCES]
    expected = np.zeros(3)
    for drawn in itertools.product(range(4), repeat=3):
        visits = [sum(len(SEQUENCES[i]) > t for i in drawn) for t in range(3)]
        expected += np.prod([laws[i] for i in drawn]) * (np.array(visits) == 1)
    np.testing.assert_allclose(expected_single_visits(reach, 3), expected, rtol=1e-13)
    np.testing.assert_array_equal(expected_single_visits([0.0, 1.0], 1), [0.0, 1.0])
    np.testing.assert_array_equal(expected_single_visits([0.0, 1.0], 2), [0.0, 0.0])


GOOD = (POLICY, np.ones(3), np.zeros((3, 2)), np.ones((3, 2)))


def changed(place, value):
    return (*GOOD[:place], value, *GOOD[place + 1 :])


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "function", "arguments"),
    [
        ("policy", length_weighted_gradient, changed(0, LOGITS)),
        ("policy", length_weighted_gradient, changed(0, np.full((3, 2), 0.6))),
        ("policy", length_weighted_gradient, changed(0, np.ones(3))),
        ("reach", length_weighted_gradient, changed(1, np.ones(2))),
        ("reach", length_weighted_gradient, changed(1, np.array([1, -0.1, 0]))),
        ("advantage", length_weighted_gradient, changed(2, np.full((3, 2), np.nan))),
        ("advantage", length_weighted_gradient, changed(2, np.zeros(3))),
        ("weight", length_weighted_gradient, changed(3, np.full((3, 2), -1.0))),
        ("weight", length_weighted_gradient, changed(3, np.ones((2, 2)))),
        ("reach", expected_single_visits, ([1.5], 2)),
        ("reach", expected_single_visits, ([np.nan], 2)),
        ("num_sequences", expected_single_visits, ([0.5], 0)),
        ("num_sequences", expected_single_visits, ([0.5], 1.5)),
    ],
)
def test_bad_input_is_named(named, function, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        function(*arguments)
