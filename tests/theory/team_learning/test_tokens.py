"""Solved shares by the Markov chain of how many contexts are solved; limits and bad input."""

import jax
import numpy as np
import pytest

from boundlab.theory.team_learning import solved_fraction, solving_trajectories


def share(contexts, chance, count):
    """Expected share after `count` trajectories that solve the context they meet with a chance."""
    law = np.zeros(contexts + 1)
    law[0] = 1.0
    left = 1 - np.arange(contexts + 1) / contexts
    for _ in range(count):
        gained = law * left * chance
        law = law - gained + np.concatenate([[0.0], gained[:-1]])
    return law @ np.arange(contexts + 1) / contexts


@pytest.mark.parametrize(("steps", "contexts", "actions"), [(2, 3, 4), (3, 2, 2), (1, 5, 3)])
def test_shares_by_markov_chain(steps, contexts, actions):
    sizes = (steps, contexts, actions)
    for count in (0, 1, 7, 50):
        process = float(solved_fraction(count, *sizes, "process"))
        assert process == pytest.approx(share(contexts, 1 / actions, count), rel=1e-12)
        outcome = float(solved_fraction(count, *sizes, "outcome"))
        assert outcome == pytest.approx(share(contexts**steps, actions**-steps, count), rel=1e-12)
        dependent = float(solved_fraction(count, *sizes, "process", dependent=True))
        assert dependent == pytest.approx(share(contexts * actions, 1 / actions, count), rel=1e-12)


def test_known_shares():
    found = [float(solved_fraction(50, 2, 3, 4, reward)) for reward in ("process", "outcome")]
    np.testing.assert_allclose(found, [0.9871, 0.2942], atol=5e-5)


def test_trajectories_invert_shares():
    counts = np.array([0.5, 3.0, 200.0])
    for reward in ("process", "outcome"):
        there = jax.vmap(lambda n, r=reward: solved_fraction(n, 3, 4, 5, r))(counts)
        back = jax.vmap(lambda f, r=reward: solving_trajectories(f, 3, 4, 5, r))(there)
        np.testing.assert_allclose(back, counts, rtol=1e-11)
    ratio = solving_trajectories(0.5, 3, 40, 25, "outcome") / solving_trajectories(
        0.5, 3, 40, 25, "process"
    )
    assert float(ratio) == pytest.approx(1000.0**2, rel=1e-3)


def test_limits():
    """One cell, cells beyond integers, and a share of nothing."""
    assert float(solved_fraction(0, 4, 1, 1, "outcome")) == 0.0
    assert float(solved_fraction(1, 4, 1, 1, "outcome")) == 1.0
    assert float(solving_trajectories(0.9, 4, 1, 1, "outcome")) == 0.0
    tiny = float(solved_fraction(3.0, 30, 1000, 1000, "outcome"))
    assert tiny == pytest.approx(3e-180, rel=1e-12)
    assert float(solving_trajectories(0.5, 300, 1000, 1000, "outcome")) == np.inf
    assert float(solving_trajectories(0.0, 300, 1000, 1000, "outcome")) == 0.0


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "function", "arguments"),
    [
        ("num_trajectories", solved_fraction, (-1, 2, 3, 4, "process")),
        ("num_trajectories", solved_fraction, ([1.0, 2.0], 2, 3, 4, "process")),
        ("num_steps", solved_fraction, (1, 0, 3, 4, "process")),
        ("num_contexts", solved_fraction, (1, 2, 2.5, 4, "process")),
        ("num_actions", solved_fraction, (1, 2, 3, 0, "process")),
        ("reward", solved_fraction, (1, 2, 3, 4, "own")),
        ("fraction", solving_trajectories, (1.0, 2, 3, 4, "process")),
        ("reward", solving_trajectories, (0.5, 2, 3, 4, "joint")),
    ],
)
def test_bad_input_is_named(named, function, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        function(*arguments)
