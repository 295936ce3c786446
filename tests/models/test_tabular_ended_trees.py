"""Trees with an end token: by enumeration in plain loops, and sampling by z-tests."""

import functools
import itertools

import jax
import numpy as np
import pytest
from scipy.special import log_softmax
from scipy.stats import norm

from boundlab.models.tabular import ended_sequences, sample_ended_sequences, solve_ended_tree

RNG = np.random.default_rng(1)
LOGITS = RNG.standard_normal((7, 3))
POLICY = log_softmax(LOGITS, axis=1)
REWARD = RNG.random(15)
RATE = 1e-5


def names(tokens, horizon):
    """Prefixes that go on and whole sequences, as tuples, in the order promised."""
    live = [p for t in range(horizon) for p in itertools.product(range(tokens - 1), repeat=t)]
    short = [(*p, tokens - 1) for p in live if len(p) < horizon - 1]
    full = [(*p, a) for p in live if len(p) == horizon - 1 for a in range(tokens)]
    return live, short + full


def by_hand(log_policy, reward, tokens, horizon):
    live, sequences = names(tokens, horizon)
    place = {p: i for i, p in enumerate(live)}
    policy = np.exp(log_policy)

    def follows(prefix):
        """Pairs (sequence's number, its probability given the prefix)."""
        for number, s in enumerate(sequences):
            if s[: len(prefix)] == prefix:
                after = range(len(prefix), len(s))
                yield number, np.prod([policy[place[s[:t]], s[t]] for t in after])

    def mean(prefix, values):
        return sum(values[n] * p for n, p in follows(prefix))

    inverse = [1 / len(s) for s in sequences]
    tokens_of = range(tokens)
    advantage = [[mean((*p, a), reward) - mean(p, reward) for a in tokens_of] for p in live]
    law = dict(follows(()))
    reach = [sum(w for n, w in law.items() if sequences[n][: len(p)] == p) for p in live]
    weights = [[mean((*p, a), inverse) for a in tokens_of] for p in live]
    return mean((), reward), np.array(advantage), np.array(reach), np.array(weights)


@pytest.mark.parametrize(("tokens", "horizon"), [(3, 3), (1, 1), (2, 3), (4, 1)])
def test_solution_by_enumeration(tokens, horizon):
    live, sequences = names(tokens, horizon)
    policy = log_softmax(RNG.standard_normal((len(live), tokens)), axis=1)
    reward = RNG.standard_normal(len(sequences))
    found = solve_ended_tree(policy, reward)
    for value, expected in zip(found, by_hand(policy, reward, tokens, horizon), strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-14)


@pytest.mark.parametrize(("tokens", "horizon"), [(3, 3), (1, 1), (2, 4), (4, 1)])
def test_sequences_by_name(tokens, horizon):
    live, sequences = names(tokens, horizon)
    found = ended_sequences(tokens, horizon)
    assert found.mask.shape == (len(sequences), horizon)
    for row, sequence in enumerate(sequences):
        length = len(sequence)
        assert found.mask[row].tolist() == [t < length for t in range(horizon)]
        assert tuple(found.token[row, :length]) == sequence
        assert [live[i] for i in found.prefix[row, :length]] == [
            sequence[:t] for t in range(length)
        ]
        assert not found.token[row, length:].any()
        assert not found.prefix[row, length:].any()


def test_gradient_and_mean_length():
    """∂J/∂logits = d π A; the prefixes' probabilities sum to the mean length."""

    def objective(logits):
        return solve_ended_tree(jax.nn.log_softmax(logits), REWARD).objective

    slope = jax.grad(objective)(LOGITS)
    _, advantage, reach, _ = by_hand(POLICY, REWARD, 3, 3)
    np.testing.assert_allclose(slope, reach[:, None] * np.exp(POLICY) * advantage, atol=1e-15)
    prefix, token, mask = ended_sequences(3, 3)
    law = np.exp((POLICY[prefix, token] * mask).sum(axis=1))
    np.testing.assert_allclose(law.sum(), 1, rtol=1e-14)
    found = solve_ended_tree(POLICY, REWARD)
    np.testing.assert_allclose(found.reach.sum(), law @ mask.sum(axis=1), rtol=1e-14)
    many = jax.jit(jax.vmap(solve_ended_tree, (0, None)))(np.stack([POLICY, POLICY]), REWARD)
    np.testing.assert_allclose(many.advantage[1], advantage, atol=1e-14)


def test_sequences_that_cannot_end_early():
    """An impossible end token makes a tree of two tokens, but for the last one."""
    policy = POLICY.copy()
    policy[:3, 2] = -np.inf
    policy[:3] -= np.log(np.exp(policy[:3]).sum(axis=1, keepdims=True))
    found = solve_ended_tree(policy, REWARD)
    for value, expected in zip(found, by_hand(policy, REWARD, 3, 3), strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-14)
    np.testing.assert_allclose(found.inverse_length[:3, :2], 1 / 3, rtol=1e-14)
    assert np.isfinite(jax.grad(lambda p: solve_ended_tree(p, REWARD).objective)(policy)).all()


def test_samples_follow_the_policy(key):
    draw = jax.jit(functools.partial(sample_ended_sequences, horizon=3, num_sequences=20_000))
    token, mask = (np.asarray(x) for x in draw(jax.random.fold_in(key, 3), POLICY))
    assert not token[~mask].any()
    drawn = [tuple(t[m]) for t, m in zip(token[:2000], mask[:2000], strict=True)]
    assert set(drawn) <= set(names(3, 3)[1])
    prefix, all_tokens, all_mask = ended_sequences(3, 3)
    law = np.exp((POLICY[prefix, all_tokens] * all_mask).sum(axis=1))
    for row, share in enumerate(law):
        same = (mask == all_mask[row]).all(axis=1) & (token == all_tokens[row]).all(axis=1)
        z = (same.sum() - 20_000 * share) / np.sqrt(20_000 * share * (1 - share))
        assert abs(z) < norm.isf(RATE / 2 / len(law))


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "function", "arguments"),
    [
        ("log_policy", solve_ended_tree, (POLICY[:6], REWARD)),
        ("log_policy", solve_ended_tree, (np.zeros((2, 1)), np.zeros(1))),
        ("log_policy", solve_ended_tree, (LOGITS, REWARD)),
        ("log_policy", solve_ended_tree, (np.full((7, 3), np.nan), REWARD)),
        ("reward", solve_ended_tree, (POLICY, REWARD[:8])),
        ("reward", solve_ended_tree, (POLICY, np.full(15, np.inf))),
        ("num_tokens", ended_sequences, (0, 3)),
        ("horizon", ended_sequences, (3, 0)),
        ("horizon", ended_sequences, (1, 2)),
        ("horizon", ended_sequences, (3, 60)),
        ("key", sample_ended_sequences, (0, POLICY, 3, 5)),
        ("log_policy", sample_ended_sequences, (jax.random.key(0), POLICY, 2, 5)),
        ("num_sequences", sample_ended_sequences, (jax.random.key(0), POLICY, 3, 0)),
    ],
)
def test_bad_input_is_named(named, function, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        function(*arguments)
