"""Slopes, moments and hitting times of policy gradients: by enumeration and by an ODE solver."""

import itertools

import jax
import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

from boundlab.theory.team_learning import (
    gradient_speed_ratio,
    hitting_time,
    initial_slope,
    reinforce_second_moment,
    reinforce_signal_to_noise,
)

RNG = np.random.default_rng(5)
TENSORS = [RNG.standard_normal(shape) for shape in ((4, 4, 4), (3, 3), (6,))]


def slopes_by_hand(reward):
    """Squared norms of the score-weighted rewards, one joint action after another."""
    actions, agents = reward.shape[0], reward.ndim
    joint, factored = np.zeros(reward.size), np.zeros((agents, actions))
    for index, places in enumerate(itertools.product(range(actions), repeat=agents)):
        score = -np.full(reward.size, 1 / reward.size)
        score[index] += 1
        joint += reward[places] * score / reward.size
        for agent, action in enumerate(places):
            score = -np.full(actions, 1 / actions)
            score[action] += 1
            factored[agent] += reward[places] * score / reward.size
    return (joint**2).sum(), (factored**2).sum()


@pytest.mark.parametrize("reward", TENSORS, ids=lambda r: str(r.shape))
def test_slopes_by_enumeration(reward):
    joint, factored = slopes_by_hand(reward)
    np.testing.assert_allclose(initial_slope(reward, "joint"), joint, rtol=1e-12)
    np.testing.assert_allclose(initial_slope(reward, "factored"), factored, rtol=1e-12)
    np.testing.assert_allclose(gradient_speed_ratio(reward), factored / joint, rtol=1e-12)


def parity(actions, agents, gap, coupling):
    places = np.indices((actions,) * agents)
    return -gap * (places > 0).mean(axis=0) + coupling * (places.sum(axis=0) % actions == 1)


def test_ratio_of_known_tensors():
    additive = parity(4, 3, 0.6, 0.0)
    np.testing.assert_allclose(gradient_speed_ratio(additive), 16.0, rtol=1e-12)
    coupled = parity(4, 3, 0.6, 0.35)
    expected = 16 / (1 + 3 * 0.35**2 / 0.6**2)
    np.testing.assert_allclose(gradient_speed_ratio(coupled), expected, rtol=1e-12)
    needle = np.zeros((4, 4, 4))
    needle[1, 2, 3] = 0.7
    np.testing.assert_allclose(gradient_speed_ratio(needle), 3 * 0.75 / (1 - 4.0**-3), rtol=1e-12)


def test_ratio_at_the_edges():
    """A constant counts as additive; one agent is its own team; nothing depends on scale or offset."""
    assert float(gradient_speed_ratio(np.full((3, 3, 3), 0.1))) == 9.0
    assert float(gradient_speed_ratio(np.zeros((3, 3)))) == 3.0
    assert float(gradient_speed_ratio(np.full((1, 1), 2.0))) == 1.0
    np.testing.assert_allclose(gradient_speed_ratio([1.0, 5.0, 2.0]), 1.0, rtol=1e-14)
    for reward in (1e300 * TENSORS[1], 1e-300 * TENSORS[1], TENSORS[1] + 1e3):
        expected = gradient_speed_ratio(TENSORS[1])
        np.testing.assert_allclose(gradient_speed_ratio(reward), expected, rtol=1e-10)
    assert float(initial_slope(np.full((2, 2), 0.3), "joint")) == 0.0
    gradient = jax.jit(jax.grad(gradient_speed_ratio))(np.full((2, 2), 0.3))
    assert np.isfinite(gradient).all()


def test_published_hitting_times():
    for actions, expected in ((2, 20.69687), (4, 37.12517), (64, 157.67496)):
        np.testing.assert_allclose(hitting_time(actions, 0.6, 0.95), expected, atol=5e-6)


@pytest.mark.parametrize(("actions", "gap"), [(2, 0.6), (4, 0.6), (17, 2.0)])
def test_hitting_times_by_ode_solver(actions, gap):
    """All A logits, by an explicit solver; p is read off where it says that T lies."""
    levels = np.array([1 / actions + 0.01, 0.6, 0.95])
    times = np.array([float(hitting_time(actions, gap, p)) for p in levels])
    reward = -gap * (np.arange(actions) > 0)

    def flow(_, theta):
        pi = np.exp(theta - theta.max())
        pi /= pi.sum()
        return pi * (reward - pi @ reward)

    path = solve_ivp(
        flow, (0, times[-1]), np.zeros(actions), "DOP853", times, rtol=1e-11, atol=1e-13
    )
    pi = np.exp(path.y[0]) / np.exp(path.y).sum(axis=0)
    np.testing.assert_allclose(pi, levels, rtol=1e-9)


@pytest.mark.parametrize(
    ("actions", "p"), [(4, 0.95), (4**40, 1 - 1e-9), (3, 1 / 3 + 1e-9), (2, 1 - 1e-15)]
)
def test_hitting_times_by_quadrature(actions, p):
    """One logit's lead alone: the best gains Δp(1−p), each other loses Δp(1−p)/(A−1)."""
    rest = actions - 1.0

    # ξ = logit(p) + ln(A−1), dξ/dt = Δp(1−p)A/(A−1).
    def by_xi(xi):
        best = np.exp(-np.logaddexp(0.0, np.log(rest) - xi))
        other = np.exp(-np.logaddexp(0.0, xi - np.log(rest)))
        return rest / (actions * best * other)

    excess = (p * actions - 1) / (1 - p)
    end = np.log1p(excess)
    points = np.linspace(0, end, 40)
    total = sum(
        quad(by_xi, *ends, epsabs=0, epsrel=1e-12)[0] for ends in itertools.pairwise(points)
    )
    np.testing.assert_allclose(hitting_time(actions, 1.0, p), total, rtol=1e-9)


def test_hitting_times_at_the_edges():
    assert float(hitting_time(1, 0.5, 0.3)) == 0.0
    assert float(hitting_time(1, 0.0, 1.0)) == 0.0
    assert float(hitting_time(4, 0.0, 0.9)) == np.inf
    assert float(hitting_time(4, 0.0, 0.25)) == 0.0
    assert float(hitting_time(3, 0.5, 1 / 3)) == 0.0
    # The last terms alone are left: T·Δ → A for huge A.
    np.testing.assert_allclose(hitting_time(10**290, 1.0, 0.5), 1e290, rtol=1e-12)
    np.testing.assert_allclose(
        hitting_time(4, 0.2, 0.95), 3 * hitting_time(4, 0.6, 0.95), rtol=1e-14
    )


def test_hitting_times_of_traced_numbers():
    levels = np.array([0.5, 0.9])
    found = jax.vmap(lambda p: hitting_time(4, 0.6, p))(levels)
    np.testing.assert_allclose(found[1], hitting_time(4, 0.6, 0.9), rtol=1e-14)
    slope = jax.grad(lambda gap: hitting_time(4, gap, 0.9))(np.float64(0.5))
    np.testing.assert_allclose(slope, -hitting_time(4, 0.5, 0.9) / 0.5, rtol=1e-12)


@pytest.mark.parametrize("reward", TENSORS, ids=lambda r: str(r.shape))
def test_moments_by_enumeration(reward):
    """Over joint actions and two-point noise ±σ, which has its variance."""
    noise, actions, agents = 0.7, reward.shape[0], reward.ndim
    first, second = np.zeros((agents, actions)), np.zeros(agents)
    for places in itertools.product(range(actions), repeat=agents):
        for sign in (-1, 1):
            paid = reward[places] + sign * noise - reward.mean()
            for agent, action in enumerate(places):
                estimate = paid * (np.eye(actions)[action] - 1 / actions)
                first[agent] += estimate / (2 * reward.size)
                second[agent] += (estimate**2).sum() / (2 * reward.size)
    found = reinforce_second_moment(reward, noise)
    np.testing.assert_allclose(np.full(agents, float(found)), second, rtol=1e-12)
    expected = (first**2).sum(axis=1) / second
    np.testing.assert_allclose(reinforce_signal_to_noise(reward, noise), expected, rtol=1e-11)


def test_signal_of_own_and_team_rewards():
    """K equal subtasks, outcome noise of their mean: exactly a K-th; a judge's own noise costs more."""
    own = reinforce_signal_to_noise([0.0, -0.6, -0.6, -0.6], 0.3)
    team = reinforce_signal_to_noise(parity(4, 3, 0.6, 0.0), 0.3 / np.sqrt(3))
    np.testing.assert_allclose(own / team, np.full(3, 3.0), rtol=1e-12)
    judged = reinforce_signal_to_noise(parity(4, 3, 0.6, 0.0), 0.3)
    variance = 0.36 * 3 / 16
    np.testing.assert_allclose(
        own / judged, np.full(3, 9 * (variance / 3 + 0.09) / (variance + 0.09)), rtol=1e-12
    )


def test_signal_at_the_edges():
    np.testing.assert_array_equal(reinforce_signal_to_noise(np.full((2, 2), 0.1), 0.0), 0.0)
    np.testing.assert_array_equal(reinforce_signal_to_noise(np.full((1, 1), 0.1), 1.0), 0.0)
    assert float(reinforce_second_moment([0.5], 1.0)) == 0.0
    assert np.isfinite(reinforce_signal_to_noise([1e-300, 0.0], 1e10)).all()


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "function", "arguments"),
    [
        ("reward", gradient_speed_ratio, ([[1.0, np.nan], [0.0, 1.0]],)),
        ("reward", gradient_speed_ratio, (np.zeros((2, 3)),)),
        ("reward", gradient_speed_ratio, (1.0,)),
        ("reward", gradient_speed_ratio, (np.zeros((0, 0)),)),
        ("reward", gradient_speed_ratio, ([[1.0], [0.0, 1.0]],)),
        ("policy", initial_slope, (np.zeros((2, 2)), "shared")),
        ("num_actions", hitting_time, (0, 0.5, 0.9)),
        ("num_actions", hitting_time, (2.5, 0.5, 0.9)),
        ("num_actions", hitting_time, (10**5000, 0.5, 0.9)),
        ("gap", hitting_time, (4, -0.5, 0.9)),
        ("gap", hitting_time, (4, [0.5], 0.9)),
        ("probability", hitting_time, (4, 0.5, 0.2)),
        ("probability", hitting_time, (4, 0.5, 1.0)),
        ("probability", hitting_time, (1, 0.5, 0.0)),
        ("noise_std", reinforce_second_moment, (np.zeros((2, 2)), -1.0)),
        ("noise_std", reinforce_signal_to_noise, (np.zeros((2, 2)), np.ones(2))),
    ],
)
def test_bad_input_is_named(named, function, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        function(*arguments)
