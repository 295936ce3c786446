"""Floors of best response and of missing contexts by enumeration; two phases by quadrature."""

import itertools

import jax
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from boundlab.theory.team_learning import (
    best_response_floor,
    information_class_sizes,
    information_floor,
    information_regret,
    two_phase_samples,
)


def reward(actions, size, gap, coupling):
    actions = np.asarray(actions)
    return -gap * np.mean(actions != 0) + coupling * (actions.sum() % size == 1 % size)


def ended(start, size, gap, coupling):
    """Reward after one round of exact responses."""
    actions = list(start)
    for agent in range(len(actions)):
        tried = [[*actions[:agent], a, *actions[agent + 1 :]] for a in range(size)]
        actions = max(tried, key=lambda a: reward(a, size, gap, coupling))
    return reward(actions, size, gap, coupling)


@pytest.mark.parametrize(
    ("size", "agents", "coupling"),
    [(4, 3, 0.5), (3, 4, 0.3), (2, 5, 0.5), (4, 3, 0.1), (3, 1, 0.9), (1, 3, 0.5), (2, 2, 0.4)],
)
def test_floor_by_enumeration(size, agents, coupling):
    every = list(itertools.product(range(size), repeat=agents))
    best = max(reward(a, size, 0.6, coupling) for a in every)
    random = best - np.mean([ended(a, size, 0.6, coupling) for a in every])
    floor = float(best_response_floor(size, agents, 0.6, coupling))
    assert floor == pytest.approx(random, abs=1e-12)
    own = best - ended((0,) * agents, size, 0.6, coupling)
    assert float(best_response_floor(size, agents, 0.6, coupling, "own")) == 0.0
    assert own == pytest.approx(0.0, abs=1e-12)


def separation(arms, delta):
    """The root of slippage by adaptive quadrature."""

    def off(x):
        missed = quad(lambda z: norm.pdf(z) * (1 - norm.cdf(z + x) ** (arms - 1)), -9, 9)[0]
        return missed - delta

    return brentq(off, 0.0, 12.0, xtol=1e-12)


def test_two_phases_by_quadrature():
    actions, agents, delta = 4, 3, 0.1
    root = separation(actions, 1 - (1 - delta / 2) ** (1 / agents))
    own, team = two_phase_samples(actions, agents, 0.6, 0.4, 1.5, 0.7, delta)
    assert float(own) == pytest.approx(actions * (1.5 / 0.6 * root) ** 2, rel=1e-7)
    # At λ = 2Δ/K a response leads by Δ/K.
    expected = agents * actions * agents**2 * (0.7 / 0.6 * root) ** 2
    assert float(team) == pytest.approx(expected, rel=1e-7)


def test_two_phases_at_the_edges():
    assert [float(n) for n in two_phase_samples(1, 3, 0.6, 0.4, 1.0, 1.0, 0.1)] == [0.0, 0.0]
    own, team = two_phase_samples(3, 2, 0.0, 0.4, 1.0, 0.0, 0.1)
    assert float(own) == np.inf
    assert float(team) == 0.0
    traced = jax.jit(lambda w: two_phase_samples(4, 3, 0.6, w, 1.0, 1.0, 0.1)[1])
    assert float(traced(0.2)) == np.inf


def test_information_floor_by_enumeration():
    """All A^A policies of agent 1's own context, over all pairs of contexts."""
    for size in (1, 2, 3):
        policies = itertools.product(range(size), repeat=size)
        hits = [
            np.mean([policy[x] == y for x in range(size) for y in range(size)])
            for policy in policies
        ]
        assert max(hits) == pytest.approx(1 / size)
        assert float(information_floor(size, 0.7)) == pytest.approx(0.7 * (1 - max(hits)))
        joint, local = information_class_sizes(size, 2)
        assert local == pytest.approx(np.log(len(hits)))
        assert joint == pytest.approx(np.log(float(size) ** (size**2)))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_information_regret_by_enumeration(count):
    """Every sequence of explored (context, action) of two agents with two actions."""
    cells = list(itertools.product(range(2), repeat=3))
    regrets = []
    for explored in itertools.product(cells, repeat=count):
        found = {(x, y) for x, y, a in explored if a == y}
        regrets.append(np.mean([0.0 if (x, y) in found else 0.5 for x in (0, 1) for y in (0, 1)]))
    found = float(information_regret(count, 2, 2, 0.8, "joint"))
    assert found == pytest.approx(0.8 * np.mean(regrets), rel=1e-12)
    assert float(information_regret(count, 2, 2, 0.8, "local")) == pytest.approx(0.4)
    assert float(information_regret(count, 1, 2, 0.8, "joint")) == 0.0


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "function", "arguments"),
    [
        ("num_actions", best_response_floor, (0, 2, 0.5, 0.5)),
        ("num_agents", best_response_floor, (2, 0, 0.5, 0.5)),
        ("gap", best_response_floor, (2, 2, -0.5, 0.5)),
        ("coupling", best_response_floor, (2, 2, 0.5, [0.5])),
        ("start", best_response_floor, (2, 2, 0.5, 0.5, "best")),
        ("coupling", two_phase_samples, (4, 3, 0.6, 0.2, 1.0, 1.0, 0.1)),
        ("own_noise_std", two_phase_samples, (4, 3, 0.6, 0.4, -1.0, 1.0, 0.1)),
        ("outcome_noise_std", two_phase_samples, (4, 3, 0.6, 0.4, 1.0, np.inf, 0.1)),
        ("failure_probability", two_phase_samples, (4, 3, 0.6, 0.4, 1.0, 1.0, 1.0)),
        ("num_actions", information_floor, (2.0, 0.5)),
        ("coupling", information_floor, (2, -0.5)),
        ("num_trajectories", information_regret, (-1, 2, 2, 0.5, "joint")),
        ("num_agents", information_regret, (1, 2, 1, 0.5, "joint")),
        ("learner", information_regret, (1, 2, 2, 0.5, "own")),
        ("num_agents", information_class_sizes, (10, 301)),
    ],
)
def test_bad_input_is_named(named, function, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        function(*arguments)
