"""Trees of sequences of one length: by enumeration in plain loops, and sampling by z-tests."""

import functools
import itertools

import jax
import numpy as np
import pytest
from scipy.special import log_softmax
from scipy.stats import norm

from boundlab.models.tabular import (
    prefix_total_variation,
    sample_sequences,
    sequence_log_probs,
    sequence_table,
    solve_tree,
    tree_surrogate_gain,
)

TOKENS, HORIZON = 3, 3
PREFIXES = 13
RNG = np.random.default_rng(0)
LOGITS = RNG.standard_normal((3, PREFIXES, TOKENS))
OLD, NEW, OTHER = log_softmax(LOGITS, axis=-1)
REWARD = RNG.random(TOKENS**HORIZON)
RATE = 1e-5


def prefixes(tokens, horizon):
    """All prefixes shorter than the horizon, as tuples, in the order promised."""
    return [p for t in range(horizon) for p in itertools.product(range(tokens), repeat=t)]


def by_hand(log_policy, reward, tokens, horizon):
    """J, A and reach from the probability of every sequence."""
    places = {p: i for i, p in enumerate(prefixes(tokens, horizon))}
    sequences = list(itertools.product(range(tokens), repeat=horizon))
    policy = np.exp(log_policy)
    law = [np.prod([policy[places[s[:t]], s[t]] for t in range(horizon)]) for s in sequences]

    def mean(prefix):
        """E[R | prefix] over what can follow, from the factors behind the prefix."""
        total = 0.0
        for paid, s in zip(reward, sequences, strict=True):
            if s[: len(prefix)] == prefix:
                after = range(len(prefix), horizon)
                total += paid * np.prod([policy[places[s[:t]], s[t]] for t in after])
        return total

    advantage = [[mean((*p, a)) - mean(p) for a in range(tokens)] for p in places]
    reach = [
        sum(w for w, s in zip(law, sequences, strict=True) if s[: len(p)] == p) for p in places
    ]
    return np.dot(law, reward), np.array(advantage), np.array(reach)


@pytest.mark.parametrize(("tokens", "horizon"), [(3, 3), (1, 3), (1, 1), (4, 1)])
def test_solution_by_enumeration(tokens, horizon):
    number = len(prefixes(tokens, horizon))
    policy = log_softmax(RNG.standard_normal((number, tokens)), axis=1)
    reward = RNG.standard_normal(tokens**horizon)
    found = solve_tree(policy, reward)
    for value, expected in zip(found, by_hand(policy, reward, tokens, horizon), strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-14)


def test_impossible_tokens():
    """Prefixes behind them have advantages, and the gradient is finite."""
    policy = OLD.copy()
    policy[0] = [np.log(0.4), -np.inf, np.log(0.6)]
    found = solve_tree(policy, REWARD)
    for value, expected in zip(found, by_hand(policy, REWARD, 3, 3), strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-14)
    slope = jax.grad(lambda p: solve_tree(p, REWARD).objective)(policy)
    assert np.isfinite(slope).all()


def test_gradient_is_the_policy_gradient_theorem():
    """∂J/∂logits = d π A, by differences too; jit and vmap give the same solution."""
    objective = jax.jit(lambda x: solve_tree(jax.nn.log_softmax(x), REWARD).objective)
    slope = np.asarray(jax.grad(objective)(LOGITS[0]))
    _, advantage, reach = by_hand(OLD, REWARD, 3, 3)
    np.testing.assert_allclose(slope, reach[:, None] * np.exp(OLD) * advantage, atol=1e-15)
    step = np.zeros_like(OLD)
    step[4, 1] = 1e-5
    difference = (float(objective(LOGITS[0] + step)) - float(objective(LOGITS[0] - step))) / 2e-5
    np.testing.assert_allclose(slope[4, 1], difference, rtol=1e-6)
    many = jax.jit(jax.vmap(solve_tree, (0, None)))(np.stack([OLD, NEW]), REWARD)
    for value, expected in zip(many, by_hand(NEW, REWARD, 3, 3), strict=True):
        np.testing.assert_allclose(value[1], expected, atol=1e-14)


def test_float32_states_its_type():
    found = solve_tree(OLD.astype(np.float32), REWARD.astype(np.float32))
    assert all(value.dtype == np.float32 for value in found)
    np.testing.assert_allclose(found.objective, by_hand(OLD, REWARD, 3, 3)[0], rtol=1e-6)


def test_table_and_log_probabilities():
    """Each sequence passes through its own beginnings."""
    table = sequence_table(TOKENS, HORIZON)
    names = prefixes(TOKENS, HORIZON)
    for row, sequence in enumerate(itertools.product(range(3), repeat=3)):
        assert tuple(table.token[row]) == sequence
        assert [names[i] for i in table.prefix[row]] == [sequence[:t] for t in range(3)]
    expected = OLD[table.prefix, table.token]
    np.testing.assert_array_equal(sequence_log_probs(OLD, HORIZON), expected)


def test_surrogate_and_total_variation():
    _, advantage, reach = by_hand(OLD, REWARD, 3, 3)
    gain = sum(reach[s] * np.exp(NEW[s, a]) * advantage[s, a] for s in range(13) for a in range(3))
    np.testing.assert_allclose(tree_surrogate_gain(OLD, NEW, REWARD), gain, atol=1e-15)
    np.testing.assert_allclose(tree_surrogate_gain(OLD, OLD, REWARD), 0, atol=1e-15)
    distance = [np.maximum(np.exp(n) - np.exp(o), 0).sum() for o, n in zip(OLD, NEW, strict=True)]
    np.testing.assert_allclose(prefix_total_variation(OLD, NEW), distance, atol=1e-15)


def test_samples_follow_the_policy(key):
    """Each sequence's frequency, by z-tests; a policy that isn't uniform at any prefix."""
    draw = jax.jit(functools.partial(sample_sequences, horizon=3, num_sequences=20_000))
    drawn = np.asarray(draw(jax.random.fold_in(key, 1), OLD))
    law = np.exp([OLD[r, t].sum() for r, t in zip(*sequence_table(3, 3), strict=True)])
    counts = np.bincount(drawn, minlength=27)
    z = (counts - 20_000 * law) / np.sqrt(20_000 * law * (1 - law))
    assert np.abs(z).max() < norm.isf(RATE / 2 / 27)
    other = np.asarray(draw(jax.random.fold_in(key, 2), OLD))
    assert (drawn != other).any()


BAD_ROW = np.where(np.arange(13)[:, None] == 5, 0.0, OLD)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "function", "arguments"),
    [
        ("log_policy", solve_tree, (OLD[:12], REWARD)),
        ("log_policy", solve_tree, (OLD[0], REWARD)),
        ("log_policy", solve_tree, (BAD_ROW, REWARD)),
        ("log_policy", solve_tree, (np.where(OLD < -2, np.nan, OLD), REWARD)),
        ("log_policy", solve_tree, (np.full((13, 3), np.inf), REWARD)),
        ("leaf_reward", solve_tree, (OLD, REWARD[:9])),
        ("leaf_reward", solve_tree, (OLD, np.full(27, np.nan))),
        ("leaf_reward", solve_tree, (OLD, REWARD[:, None])),
        ("new_log_policy", tree_surrogate_gain, (OLD, NEW[:4], REWARD)),
        ("new_log_policy", tree_surrogate_gain, (OLD, BAD_ROW, REWARD)),
        ("new_log_policy", prefix_total_variation, (OLD, NEW[:, :2])),
        ("log_policy", prefix_total_variation, (OLD[0], NEW)),
        ("num_tokens", sequence_table, (0, 3)),
        ("num_tokens", sequence_table, (2.5, 3)),
        ("horizon", sequence_table, (3, 0)),
        ("horizon", sequence_table, (3, 40)),
        ("horizon", sequence_log_probs, (OLD, 0)),
        ("log_policy", sequence_log_probs, (OLD, 2)),
        ("log_policy", sequence_log_probs, (BAD_ROW, 3)),
        ("key", sample_sequences, (0, OLD, 3, 5)),
        ("log_policy", sample_sequences, (jax.random.key(0), OLD, 4, 5)),
        ("num_sequences", sample_sequences, (jax.random.key(0), OLD, 3, 0)),
    ],
)
def test_bad_input_is_named(named, function, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        function(*arguments)


@pytest.mark.usefixtures("as_users_call")
def test_integers_are_rewards_and_have_no_type_of_their_own():
    whole = solve_tree([[0.0]], [1])
    assert float(whole.objective) == 1.0
    assert whole.objective.dtype == np.float64
    narrow = np.log(np.full((1, 2), 0.5, np.float32))
    found = solve_tree(narrow, np.array([1, 2]))
    assert found.objective.dtype == np.float32
    np.testing.assert_allclose(found.objective, 1.5, rtol=1e-6)
    assert solve_tree(narrow, np.array([1.0, 2.0])).objective.dtype == np.float64
