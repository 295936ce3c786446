"""Best response and missing contexts against enumeration and normal laws worked out here."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from boundlab.models.teams import (
    NeedleTask,
    OrderTask,
    ParityTask,
    simulate_best_response,
    simulate_information,
    simulate_two_phases,
)
from boundlab.testing import assert_mean_equal

TRIALS = 4096


def parity(actions, size, gap, coupling):
    actions = np.asarray(actions)
    return -gap * np.mean(actions != 0) + coupling * (actions.sum() % size == 1)


@pytest.mark.parametrize(("size", "agents", "floor"), [(4, 3, 0.25), (3, 4, 0.25), (2, 5, 0.18)])
def test_random_start_freezes_at_its_floor(size, agents, floor, key):
    """Δ = .6, λ = .5: known floors, and all final actions repair parity."""
    runs = simulate_best_response(key, ParityTask(size, agents, 0.6, 0.5), "random", TRIALS)
    assert_mean_equal(runs.regret, floor)
    actions = np.asarray(runs.actions)
    assert (actions.sum(axis=1) % size == 1).all()
    best = max(parity(a, size, 0.6, 0.5) for a in itertools.product(range(size), repeat=agents))
    again = [best - parity(a, size, 0.6, 0.5) for a in actions[:20]]
    np.testing.assert_allclose(runs.regret[:20], again, atol=1e-12)


def test_exact_responses_from_own_best(key):
    """Parity is solved; a coupling of two agents, worth λ − 2Δ/K, is not found, by no further round."""
    solved = simulate_best_response(key, ParityTask(4, 3, 0.6, 0.5), "own", TRIALS)
    np.testing.assert_allclose(solved.regret, 0.0, atol=1e-12)
    np.testing.assert_array_equal(solved.actions, np.tile([1, 0, 0], (TRIALS, 1)))
    task = OrderTask(3, 3, 0.6, 0.9, order=2)
    stuck = simulate_best_response(key, task, "own", 3, num_rounds=2)
    np.testing.assert_array_equal(stuck.actions, np.zeros((3, 3)))
    np.testing.assert_allclose(stuck.regret, 0.9 - 0.4, rtol=1e-12)


def test_one_agent_with_noise(key):
    """Its response to a needle is a choice among A normal means: (E2) by quadrature, traced m."""

    @jax.jit
    def wrong(samples):
        task = NeedleTask(4, 1, 0.5, outcome_noise_std=0.8)
        runs = simulate_best_response(key, task, "random", TRIALS, samples_per_arm=samples)
        return runs.regret / 0.5

    for samples in (3.0, 10.5):
        x = 0.5 * np.sqrt(samples) / 0.8
        missed = quad(lambda z, x=x: np.exp(-z * z / 2) * (1 - ndtr(z + x) ** 3), -9, 9)[0]
        missed /= np.sqrt(2 * np.pi)
        assert_mean_equal(wrong(samples), missed)


def test_two_phases(key):
    """Two agents of two actions: outcomes by the law of each choice in turn."""
    gap, coupling, own_noise, noise, m, n = 0.8, 0.7, 1.1, 0.6, 5.0, 4.0

    @jax.jit
    def ended(own, team):
        task = ParityTask(2, 2, gap, coupling, own_noise, noise)
        return simulate_two_phases(key, task, own, team, TRIALS)

    astray = norm.cdf(-gap * np.sqrt(m / 2) / own_noise)
    law = {(a, b): 0.0 for a in (0, 1) for b in (0, 1)}
    for first in law:
        start = np.prod([astray if a else 1 - astray for a in first])
        lead = parity((1, first[1]), 2, gap, coupling) - parity((0, first[1]), 2, gap, coupling)
        for a in (0, 1):
            one = norm.cdf((lead if a else -lead) * np.sqrt(n / 2) / noise)
            other = parity((a, 1), 2, gap, coupling) - parity((a, 0), 2, gap, coupling)
            for b in (0, 1):
                two = norm.cdf((other if b else -other) * np.sqrt(n / 2) / noise)
                law[a, b] += start * one * two
    actions = np.asarray(ended(m, n).actions)
    found = np.stack([(actions == pair).all(axis=1) for pair in law], axis=1)
    assert_mean_equal(found.astype(float), np.array(list(law.values())))
    # No samples of own rewards: a uniform start, from which exact responses lose (Δ/K)(K/2 − 1) = 0
    # and make agent 1's action as likely as not.
    uniform = ended(0.0, 1e12)
    np.testing.assert_allclose(uniform.regret, 0.0, atol=1e-12)
    assert_mean_equal(np.asarray(uniform.actions)[:, 0].astype(float), 0.5)


def test_contexts(key):
    """Local policies are right by 1/A; of A^K contexts with A actions a joint one knows those seen."""
    seeds = jax.random.split(key, 1024)

    @jax.jit
    def regrets(counts):
        def one(k, count):
            return simulate_information(k, 3, 2, 0.5, count, 8, max_trajectories=30)

        return jax.vmap(jax.vmap(one, (None, 0)), (0, None))(seeds, counts)

    counts = np.array([0, 9, 30])
    found = regrets(counts)
    assert_mean_equal(found.local, np.full(3, 0.5 * (1 - 1 / 3)))
    assert_mean_equal(found.joint, 0.5 * (1 - 1 / 3) * (1 - 1 / 27) ** counts)


def test_contexts_at_the_edges(key):
    sure = simulate_information(key, 1, 2, 0.5, 0, 4)
    assert float(sure.joint) == float(sure.local) == 0.0
    unseen, seen = (simulate_information(key, 2, 3, w, 400, 64) for w in (0.0, 0.5))
    assert float(unseen.local) == float(seen.joint) == 0.0


def test_precision_and_keys(key):
    task = ParityTask(4, 3, 0.6, 0.5)
    with jax.enable_x64(False):
        single = simulate_best_response(key, task, "random", TRIALS)
    assert single.regret.dtype == jnp.float32
    assert_mean_equal(np.asarray(single.regret, float), 0.25)
    keys = key, key, jax.random.fold_in(key, 1)
    one, two, other = (simulate_best_response(k, task, "random", TRIALS).actions for k in keys)
    np.testing.assert_array_equal(one, two)
    assert (np.asarray(one) != np.asarray(other)).any()


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "call"),
    [
        ("key", lambda k, t: simulate_best_response(1, t, "own", 2)),
        ("task", lambda k, t: simulate_best_response(k, "parity", "own", 2)),
        ("start", lambda k, t: simulate_best_response(k, t, "best", 2)),
        ("num_trials", lambda k, t: simulate_best_response(k, t, "own", 0)),
        ("num_rounds", lambda k, t: simulate_best_response(k, t, "own", 2, num_rounds=0)),
        (
            "samples_per_arm",
            lambda k, t: simulate_best_response(k, t, "own", 2, samples_per_arm=0.0),
        ),
        ("own_samples_per_arm", lambda k, t: simulate_two_phases(k, t, -1.0, 1.0, 2)),
        ("team_samples_per_arm", lambda k, t: simulate_two_phases(k, t, 1.0, [1.0], 2)),
        ("num_actions", lambda k, t: simulate_information(k, 0, 2, 0.5, 3, 4)),
        ("num_agents", lambda k, t: simulate_information(k, 2, 1, 0.5, 3, 4)),
        ("num_agents", lambda k, t: simulate_information(k, 10, 9, 0.5, 3, 4)),
        ("coupling", lambda k, t: simulate_information(k, 2, 2, -0.5, 3, 4)),
        ("num_trajectories", lambda k, t: simulate_information(k, 2, 2, 0.5, -3, 4)),
        ("num_evaluations", lambda k, t: simulate_information(k, 2, 2, 0.5, 3, 0)),
    ],
)
def test_bad_input_is_named(named, call, key):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        call(key, ParityTask(2, 2, 0.6, 0.5))
