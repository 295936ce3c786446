"""Chains of stages: trajectories and learners against exact laws worked out here, and bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom, norm

from boundlab.models.teams import (
    ChainTask,
    chain_losses,
    simulate_chain,
    simulate_on_policy,
    simulate_staged,
)
from boundlab.testing import assert_mean_equal


def test_trajectories(key):
    p = np.array([0.9, 0.6, 1.0, 0.8])
    runs = simulate_chain(key, p, 4096)
    alive = np.cumprod(p)
    assert_mean_equal(runs.dependent, alive.mean())
    assert_mean_equal(runs.independent, p.mean())
    reached = np.asarray(runs.reached)
    assert reached[:, 0].all()
    assert_mean_equal(reached[:, 1:], alive[:-1])
    # On the same draws a chain earns no more, and stages are reached in order.
    assert (np.asarray(runs.dependent) <= np.asarray(runs.independent)).all()
    assert (np.diff(reached.astype(int), axis=1) <= 0).all()


def test_certain_and_hopeless_stages(key):
    runs = simulate_chain(key, np.array([1.0, 0.0, 1.0, 0.0]), 4096)
    np.testing.assert_allclose(runs.dependent, 1 / 4)
    np.testing.assert_allclose(runs.independent, 2 / 4)
    assert (np.asarray(runs.reached) == [True, True, False, False]).all()


def test_staged_errors_by_the_normal_law(key):
    """Two actions: Φ(−g√(m/2)/σ); no samples: a uniform choice; at real m, traced."""

    @jax.jit
    def errors(gap, samples, noise):
        return simulate_staged(key, ChainTask(3, gap, noise_std=noise), samples, 8192)

    for gap, samples, noise in ((0.2, 30.5, 1.0), (0.1, 12.0, 0.3), (0.5, 0.0, 1.0)):
        expected = norm.cdf(-gap * np.sqrt(samples / 2) / noise)
        assert_mean_equal(np.asarray(errors(gap, samples, noise), float), np.full(3, expected))
    assert not np.asarray(errors(0.1, 1.0, 0.0)).any()


def on_policy_error(gap, share, count):
    """P(error) with two actions, each met by share/2 of the trajectories, over all pairs of counts."""
    first = np.arange(count + 1)
    law = binom.pmf(first, count, share / 2)
    total = 0.0
    for m, weight in zip(first, law, strict=True):
        other = np.arange(count - m + 1)
        chance = binom.pmf(other, count - m, share / 2 / (1 - share / 2))
        # Untried actions lose to tried ones; of two a coin picks.
        none = 0.5 if m == 0 else 0.0
        spread = np.sqrt(1 / max(m, 1) + 1 / np.maximum(other, 1))
        wrong = norm.cdf(-gap / spread) if m else np.ones(len(other))
        total += weight * chance @ np.where(other == 0, none, wrong)
    return total


def test_on_policy_by_all_counts(key):
    task = ChainTask(3, 0.5, 0.9)
    learned = simulate_on_policy(key, task, 12, 8192)
    share = 0.65 ** np.arange(3)
    reached = np.asarray(learned.reached)
    assert (reached[:, 0] == 12).all()
    assert_mean_equal(reached[:, 1:].astype(float), 12 * share[1:])
    expected = np.array([on_policy_error(0.5, s, 12) for s in share])
    assert_mean_equal(np.asarray(learned.errors, float), expected)
    assert (np.diff(expected) > 0.02).all()


def test_losses_by_hand():
    task = ChainTask(3, 0.25, 0.75)
    chain, apart = chain_losses(task, np.array([[True, False, False], [False, False, True]]))
    best = np.mean([0.75, 0.75**2, 0.75**3])
    first = best - np.mean([0.5, 0.5 * 0.75, 0.5 * 0.75**2])
    last = best - np.mean([0.75, 0.75**2, 0.75**2 * 0.5])
    np.testing.assert_allclose(chain, [first, last], rtol=1e-14)
    np.testing.assert_allclose(apart, [0.25 / 3] * 2, rtol=1e-14)


def test_precision_and_keys(key):
    task = ChainTask(2, 0.0, 0.5, num_actions=3)
    with jax.enable_x64(False):
        single = simulate_chain(key, [0.5, 0.9], 4096)
        assert single.dependent.dtype == jnp.float32
        learned = simulate_on_policy(key, task, 5, 4096)
    assert_mean_equal(np.asarray(single.dependent, float), (0.5 + 0.45) / 2)
    # Three actions alike: a uniform choice.
    assert_mean_equal(np.asarray(learned.errors, float), np.full(2, 2 / 3))
    keys = key, key, jax.random.fold_in(key, 1)
    one, two, other = (np.asarray(simulate_chain(k, [0.5] * 4, 4096).reached) for k in keys)
    np.testing.assert_array_equal(one, two)
    assert (one != other).any()


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "call"),
    [
        ("num_stages", lambda key: ChainTask(0, 0.1)),
        ("gap", lambda key: ChainTask(2, -0.1)),
        ("gap", lambda key: ChainTask(2, 0.6, 0.5)),
        ("success", lambda key: ChainTask(2, 0.1, 1.5)),
        ("noise_std", lambda key: ChainTask(2, 0.1, noise_std=-1.0)),
        ("num_actions", lambda key: ChainTask(2, 0.1, num_actions=2.0)),
        ("key", lambda key: simulate_chain(0, [0.5], 3)),
        ("success_probabilities", lambda key: simulate_chain(key, [1.5], 3)),
        ("success_probabilities", lambda key: simulate_chain(key, [], 3)),
        ("num_trajectories", lambda key: simulate_chain(key, [0.5], 0)),
        ("task", lambda key: simulate_staged(key, None, 1.0, 3)),
        ("samples_per_arm", lambda key: simulate_staged(key, ChainTask(2, 0.1), -1.0, 3)),
        ("num_trials", lambda key: simulate_staged(key, ChainTask(2, 0.1), 1.0, 0)),
        ("num_trajectories", lambda key: simulate_on_policy(key, ChainTask(2, 0.1), 0, 3)),
        ("num_trials", lambda key: simulate_on_policy(key, ChainTask(2, 0.1), 3, 2.5)),
        ("errors", lambda key: chain_losses(ChainTask(2, 0.1), np.zeros((3, 2)))),
        ("errors", lambda key: chain_losses(ChainTask(2, 0.1), np.zeros((3, 3), bool))),
    ],
)
def test_bad_input_is_named(named, call, key):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        call(key)
