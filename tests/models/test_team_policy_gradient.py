"""Policy gradients of teams: by hand, by an ODE solver, and REINFORCE by z-tests."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from boundlab.models.teams import (
    expected_reward,
    gradient_flow,
    initial_logits,
    policy_gradient,
    reinforce,
    reinforce_gradient,
)

PLACES = np.indices((3, 3))
PARITY = -0.3 * (PLACES > 0).sum(axis=0) + 0.9 * (PLACES.sum(axis=0) % 3 == 1)
OTHER = np.random.default_rng(1).standard_normal((3, 3))
OWN = np.array([[0.0, -0.4, 0.5], [0.2, 0.1, -0.7]])
LOGITS = {
    "joint": np.random.default_rng(2).standard_normal((3, 3)),
    "factored": np.random.default_rng(3).standard_normal((2, 3)),
    "symmetric": np.array([0.3, -0.5, 0.1]),
}
NOISE = 0.8


def softmax(values):
    weights = np.exp(values - values.max())
    return weights / weights.sum()


def by_hand(logits, reward, policy):
    """E[R] and its gradient, from the law of the joint action as an array."""
    if policy == "joint":
        pi = softmax(logits)
        return (pi * reward).sum(), pi * (reward - (pi * reward).sum())
    first, second = (softmax(row) for row in (logits if policy == "factored" else [logits] * 2))
    value = first @ reward @ second
    rows = np.stack([first * (reward @ second - value), second * (first @ reward - value)])
    return value, rows if policy == "factored" else rows[0]


@pytest.mark.parametrize("policy", ["joint", "factored", "symmetric"])
def test_value_and_gradient_by_hand(policy):
    reward = PARITY if policy == "symmetric" else OTHER
    value, gradient = by_hand(LOGITS[policy], reward, policy)
    found = expected_reward(LOGITS[policy], reward, policy)
    np.testing.assert_allclose(found, value, rtol=1e-13)
    found = policy_gradient(LOGITS[policy], reward, policy)
    np.testing.assert_allclose(found, gradient, atol=1e-14)


@pytest.mark.parametrize("policy", ["joint", "factored", "symmetric"])
def test_flow_by_ode_solver(policy):
    """Steps of 1/(max R − min R): within 1e-6 of the range."""
    start, span = LOGITS[policy], float(np.ptp(PARITY))
    times = np.arange(81) / span

    def slope(_, theta):
        return by_hand(theta.reshape(start.shape), PARITY, policy)[1].ravel()

    exact = solve_ivp(slope, (0, 81), start.ravel(), "DOP853", times, rtol=1e-11, atol=1e-13).y.T
    expected = [by_hand(theta.reshape(start.shape), PARITY, policy)[0] for theta in exact]
    path = gradient_flow(PARITY, times, policy, start)
    np.testing.assert_allclose(path.value, expected, atol=1e-6 * span)
    np.testing.assert_allclose(path.logits.ravel(), exact[-1], atol=2e-5)


def test_learners_that_start_alike_stay_alike():
    times = np.arange(81.0)
    one = gradient_flow(PARITY, times, "symmetric", LOGITS["symmetric"])
    both = gradient_flow(PARITY, times, "factored", np.stack([LOGITS["symmetric"]] * 2))
    np.testing.assert_allclose(one.value, both.value, rtol=1e-10)
    np.testing.assert_allclose(both.logits, np.stack([one.logits] * 2), atol=1e-9)


def test_value_never_falls_and_one_time_is_the_start():
    path = gradient_flow(OTHER, np.arange(81.0), "joint")
    assert (np.diff(path.value) > 0).all()
    np.testing.assert_allclose(path.value[0], OTHER.mean(), rtol=1e-13)
    still = gradient_flow(OTHER, [3.0])
    np.testing.assert_allclose(still.value, [OTHER.mean()], rtol=1e-13)
    np.testing.assert_array_equal(still.logits, 0.0)


def test_one_action():
    path = gradient_flow(np.full((1, 1), 0.7), [0.0, 1.0])
    np.testing.assert_array_equal(path.value, 0.7)


def test_types():
    low = gradient_flow(np.float32(PARITY), np.arange(81.0))
    assert low.value.dtype == low.logits.dtype == np.float32
    high = gradient_flow(PARITY, np.arange(81.0))
    np.testing.assert_allclose(low.value, high.value, atol=1e-5)
    whole = gradient_flow(np.eye(3, dtype=int), np.arange(81.0))
    assert whole.value.dtype == np.float64


def test_initial_logits(key):
    many = jax.jit(
        jax.vmap(lambda k, std: initial_logits(k, OTHER, "factored", std), in_axes=(0, None))
    )
    keys = jax.random.split(jax.random.fold_in(key, 0), 2000)
    drawn = many(keys, 0.01)
    assert drawn.shape == (2000, 2, 3)
    z = (np.mean(np.square(drawn) / 1e-4) - 1) / np.sqrt(2 / drawn.size)
    assert abs(z) < 4.9
    np.testing.assert_array_equal(many(keys, 0.0), 0.0)


def expected_estimate(learner, logits):
    """Mean of the estimate and of its square, by hand; noise independent of the actions."""
    policy = "joint" if learner == "joint" else "factored"
    own = OWN if learner == "own" else None
    rows = logits.reshape(1, -1) if policy == "joint" else logits
    pis = [softmax(row) for row in rows]
    first, second = np.zeros(rows.shape), np.zeros(rows.shape)
    joint = softmax(logits) if policy == "joint" else np.outer(*pis)
    for places in np.ndindex(3, 3):
        for k, pi in enumerate(pis):
            action = places[k] if policy == "factored" else 3 * places[0] + places[1]
            paid = OTHER[places] if own is None else own[k, places[k]]
            mean = (joint * OTHER).sum() if own is None else pi @ own[k]
            score = np.eye(len(pi))[action] - pi
            first[k] += joint[places] * (paid - mean) * score
            second[k] += joint[places] * ((paid - mean) ** 2 + NOISE**2) * score**2
    return first.reshape(logits.shape), second.reshape(logits.shape)


@pytest.mark.parametrize("learner", ["joint", "shared", "own"])
def test_estimate_has_the_stated_moments(key, learner):
    """z-tests of mean and mean square of every entry, 20,000 trajectories."""
    logits = LOGITS["joint" if learner == "joint" else "factored"]
    own = OWN if learner == "own" else None
    estimate = functools.partial(
        reinforce_gradient,
        logits=logits,
        reward=OTHER,
        learner=learner,
        noise_std=NOISE,
        own_rewards=own,
    )
    drawn = np.asarray(
        jax.jit(jax.vmap(estimate))(jax.random.split(jax.random.fold_in(key, 1), 20000))
    )
    for power, expected in enumerate(expected_estimate(learner, logits), 1):
        samples = drawn**power
        z = (samples.mean(axis=0) - expected) / (samples.std(axis=0) / np.sqrt(len(samples)))
        assert np.abs(z).max() < 4.9


def test_shared_noise_is_one_and_own_noise_is_not(key):
    """With constant rewards the estimates are noise times score: the same factor for shared alone."""
    constant, rows = np.zeros((3, 3)), np.zeros((2, 3))

    @jax.jit
    def both(key):
        shared = reinforce_gradient(key, rows, constant, "shared", 1.0)
        return shared, reinforce_gradient(key, rows, constant, "own", 1.0, rows)

    shared, own = (np.abs(drawn).max(axis=1) for drawn in both(key))
    np.testing.assert_allclose(shared[0], shared[1], rtol=1e-14)
    assert abs(own[0] - own[1]) > 1e-3


def test_small_steps_follow_the_flow(key):
    """Mean over runs of 100 steps of .004 against the flow at .4; z-test.

    What a finite step adds, ½η·tr(HC)t + ½η·(∇ᵀH∇)t, is about a fifth of the standard error.
    """
    run = functools.partial(
        reinforce,
        reward=OTHER,
        learner="shared",
        num_steps=100,
        step_size=0.004,
        noise_std=NOISE,
    )
    paths = jax.jit(jax.vmap(run))(jax.random.split(jax.random.fold_in(key, 2), 500))
    assert paths.value.shape == (500, 101)
    np.testing.assert_allclose(paths.value[:, 0], OTHER.mean(), rtol=1e-12)
    gained = np.asarray(paths.value[:, -1] - paths.value[:, 0])
    flow = gradient_flow(OTHER, np.linspace(0.0, 0.4, 81)).value
    z = (gained.mean() - float(flow[-1] - flow[0])) / (gained.std() / np.sqrt(len(gained)))
    assert abs(z) < 4.9
    assert gained.mean() > 15 * gained.std() / np.sqrt(len(gained))


def test_steps_are_the_estimates(key):
    """One step from given logits is one step size along one estimate, also traced and in float32."""
    start, reward = jnp.asarray(LOGITS["factored"], jnp.float32), np.float32(OTHER)

    @jax.jit
    def compared(rate):
        none = reinforce(key, reward, "own", 0, rate, 0.3, OWN, start)
        path = reinforce(key, reward, "own", 1, rate, 0.3, OWN, start)
        inner = jax.random.split(jax.random.split(key, 1)[0], 1)[0]
        return none, path, reinforce_gradient(inner, start, reward, "own", 0.3, OWN)

    none, path, step = compared(0.5)
    assert path.logits.dtype == path.value.dtype == np.float32
    np.testing.assert_allclose(path.logits, start + jnp.float32(0.5) * step, rtol=1e-6)
    np.testing.assert_array_equal(none.logits, start)
    np.testing.assert_allclose(none.value, path.value[:1], rtol=1e-6)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "call"),
    [
        ("reward", lambda k: gradient_flow(np.zeros((2, 3)), [0.0, 1.0])),
        ("reward", lambda k: gradient_flow([[np.inf, 0.0], [0.0, 0.0]], [0.0, 1.0])),
        ("reward", lambda k: gradient_flow(OTHER, [0.0, 1.0], "symmetric")),
        ("reward", lambda k: expected_reward(0.0, 1.0, "joint")),
        ("times", lambda k: gradient_flow(OTHER, [0.0, 0.0])),
        ("times", lambda k: gradient_flow(OTHER, 1.0)),
        ("policy", lambda k: gradient_flow(OTHER, [0.0, 1.0], "shared")),
        ("logits", lambda k: gradient_flow(OTHER, [0.0, 1.0], "factored", np.zeros((3, 3)))),
        ("logits", lambda k: policy_gradient(np.full((2, 3), np.nan), OTHER, "factored")),
        ("key", lambda k: initial_logits(0, OTHER, "joint", 0.1)),
        ("noise_std", lambda k: initial_logits(k, OTHER, "joint", -0.1)),
        ("learner", lambda k: reinforce(k, OTHER, "factored", 1, 0.1, 0.0)),
        ("own_rewards", lambda k: reinforce(k, OTHER, "own", 1, 0.1, 0.0)),
        ("own_rewards", lambda k: reinforce(k, OTHER, "shared", 1, 0.1, 0.0, OWN)),
        ("own_rewards", lambda k: reinforce(k, OTHER, "own", 1, 0.1, 0.0, OWN.T)),
        ("num_steps", lambda k: reinforce(k, OTHER, "joint", -1, 0.1, 0.0)),
        ("step_size", lambda k: reinforce(k, OTHER, "joint", 1, -0.1, 0.0)),
        ("batch_size", lambda k: reinforce(k, OTHER, "joint", 1, 0.1, 0.0, batch_size=0)),
        ("noise_std", lambda k: reinforce_gradient(k, OTHER, OTHER, "joint", np.nan)),
    ],
)
def test_bad_input_is_named(key, named, call):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        call(key)
