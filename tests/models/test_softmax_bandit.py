"""The softmax bandit by enumeration, and its stale learner by a loop."""

import jax
import numpy as np
import pytest
from scipy.special import softmax

from boundlab.models.gac import gac
from boundlab.models.softmax_bandit import bandit_objective, stale_bandit, surrogate_gradient

RNG = np.random.default_rng(13)
REWARD = RNG.standard_normal(4)
LOGITS, OLD = RNG.standard_normal((2, 4))
BETA = 0.6


def value(logits):
    policy = softmax(logits)
    return (policy * (REWARD - BETA * np.log(policy))).sum()


def slope(logits):
    policy = softmax(logits)
    paid = REWARD - BETA * np.log(policy)
    return policy * (paid - policy @ paid)


def test_objective_by_enumeration():
    np.testing.assert_allclose(bandit_objective(LOGITS, REWARD, BETA), value(LOGITS), rtol=1e-13)
    extreme = np.array([0.0, -900.0, -900.0, -900.0])
    np.testing.assert_allclose(bandit_objective(extreme, REWARD, BETA), REWARD[0], rtol=1e-13)


def test_uncorrected_gradient_is_the_old_one():
    """By the entropic reward at the old logits; the new ones don't matter."""
    for logits in (LOGITS, OLD, 3 * LOGITS):
        found = surrogate_gradient(logits, OLD, REWARD, BETA)
        np.testing.assert_allclose(found, slope(OLD), atol=1e-15)


def test_corrected_gradient_is_the_new_one():
    """With the old policy's entropy in the rewards, which the ratio doesn't change."""
    policy = softmax(LOGITS)
    for beta in (0.0, BETA):
        paid = REWARD - beta * np.log(softmax(OLD))
        found = surrogate_gradient(LOGITS, OLD, REWARD, beta, corrected=True)
        np.testing.assert_allclose(found, policy * (paid - policy @ paid), atol=1e-15)


STEPS = 12


def settings(**changes):
    given = {"reward": REWARD, "entropy_weight": BETA, "step_size": 0.8, "delay": 2}
    return given | {"batch_size": None, "num_steps": STEPS} | changes


def test_exact_run_by_a_loop(key):
    path = [np.zeros(4)]
    for t in range(STEPS):
        path.append(path[-1] + 0.8 * slope(path[max(t - 2, 0)]))
    best = softmax(REWARD / BETA)
    gaps = [BETA * softmax(x) @ np.log(softmax(x) / best) for x in path[:-1]]
    run = stale_bandit(key, **settings(every=3))
    np.testing.assert_allclose(run.gap, gaps[::3], atol=1e-14)
    np.testing.assert_allclose(run.logits, path[-1], atol=1e-13)
    np.testing.assert_array_equal(run.regimes, np.zeros((4, 3)))
    assert run.cosine.shape == (STEPS,)


def test_small_gaps_keep_their_digits(key):
    """δ²/2 of the Hessian, where J* − J would be rounding."""
    shift = 1e-9 * RNG.standard_normal(4)
    best = softmax(REWARD / BETA)
    run = stale_bandit(key, **settings(initial=REWARD / BETA + shift))
    expected = BETA * (best @ shift**2 - (best @ shift) ** 2) / 2
    np.testing.assert_allclose(run.gap[0], expected, rtol=1e-5)


def test_sampled_gradient_has_the_mean_of_the_exact_one(key):
    """(1 − 1/n) of it, z-test of each logit over keys (rate 1e-6)."""
    count, batch = 4000, 3

    def first(one):
        run = stale_bandit(
            one, **settings(initial=OLD, batch_size=batch, num_steps=1, step_size=1.0, delay=0)
        )
        return run.logits - OLD

    drawn = np.asarray(jax.jit(jax.vmap(first))(jax.random.split(key, count)))
    error = drawn.std(axis=0, ddof=1) / np.sqrt(count)
    assert (np.abs(drawn.mean(axis=0) - (1 - 1 / batch) * slope(OLD)) < 5.2 * error).all()
    np.testing.assert_allclose(drawn.sum(axis=1), 0.0, atol=1e-14)


def test_noise_vanishes_at_the_optimum(key):
    run = stale_bandit(key, **settings(initial=REWARD / BETA, batch_size=5))
    assert float(np.max(run.gap)) < 1e-30


def test_regimes_are_counted(key):
    """Of an exact run that only ever moves one way: the first passes, then 2 skips and a projection."""
    control = gac(0.05, 0.3, max_skips=2)
    run = stale_bandit(key, **settings(transform=control, step_size=1e-4, every=6))
    np.testing.assert_array_equal(run.regimes, [[1, 1, 4], [0, 2, 4]])
    np.testing.assert_allclose(run.cosine[1:], 1.0, atol=1e-6)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "changes"),
    [
        ("key", {"key": None}),
        ("reward", {"reward": [np.inf, 1.0]}),
        ("reward", {"reward": 1.0}),
        ("reward", {"reward": [1, 2]}),
        ("entropy_weight", {"entropy_weight": 0.0}),
        ("entropy_weight", {"entropy_weight": [1.0]}),
        ("step_size", {"step_size": np.nan}),
        ("delay", {"delay": -2}),
        ("batch_size", {"batch_size": 0}),
        ("num_steps", {"num_steps": 7, "every": 2}),
        ("every", {"every": 0}),
        ("initial", {"initial": np.zeros(3)}),
        ("max_delay", {"max_delay": 1}),
    ],
)
def test_bad_settings_are_named(key, named, changes):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        stale_bandit(**(settings(key=key) | changes))


@pytest.mark.usefixtures("as_users_call")
def test_bad_logits_are_named():
    for named, arguments in (
        ("logits", (np.zeros(3), OLD, REWARD)),
        ("behavior_logits", (LOGITS, [np.nan] * 4, REWARD)),
        ("entropy_weight", (LOGITS, OLD, REWARD, -1.0)),
    ):
        with pytest.raises(ValueError, match=rf"^{named}: "):
            surrogate_gradient(*arguments)
