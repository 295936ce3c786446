"""Spectra by enumeration of all joint actions, at sizes beyond every integer type, and bad input."""

from collections import Counter
from fractions import Fraction

import jax
import numpy as np
import pytest

from boundlab.theory.team_learning import (
    needle_spectrum,
    order_q_spectrum,
    parity_spectrum,
    reward_spectrum,
)


def counted(values, counts):
    """How many joint actions a value has, empty groups left out."""
    found = Counter()
    for value, count in zip(np.asarray(values), np.asarray(counts), strict=True):
        if count:
            found[round(float(value), 9)] += round(float(count))
    return found


def enumerated(tensor):
    return Counter(np.round(tensor.ravel(), 9).tolist())


def additive(actions, agents, gap):
    joint = np.indices((actions,) * agents)
    return joint, -gap * (joint != 0).mean(axis=0)


@pytest.mark.parametrize(("actions", "agents"), [(2, 1), (2, 4), (3, 3), (4, 3), (5, 2), (1, 3)])
def test_parity_by_enumeration(actions, agents):
    joint, own = additive(actions, agents, 0.6)
    tensor = own + 0.37 * ((joint.sum(axis=0) - 1) % actions == 0)
    values, counts = parity_spectrum(actions, agents, 0.6, 0.37)
    assert values.shape == counts.shape == (2 * agents + 2,)
    assert counted(values, counts) == enumerated(tensor)


@pytest.mark.parametrize(
    ("actions", "agents", "order"), [(2, 3, 1), (2, 3, 3), (3, 4, 2), (4, 1, 1)]
)
def test_order_q_by_enumeration(actions, agents, order):
    joint, own = additive(actions, agents, 0.6)
    tensor = own + 0.37 * (joint[:order] == 1).all(axis=0)
    assert counted(*order_q_spectrum(actions, agents, order, 0.6, 0.37)) == enumerated(tensor)


def test_needle_and_any_tensor():
    assert counted(*needle_spectrum(3, 2, 0.5)) == {0.5: 1, 0.0: 8}
    assert counted(*needle_spectrum(1, 4, 0.5)) == {0.5: 1}
    tensor = np.array([[1.0, -2.0], [1.0, 0.5]])
    values, counts = reward_spectrum(tensor)
    np.testing.assert_array_equal(values, [-2.0, 0.5, 1.0])
    np.testing.assert_array_equal(counts, [1.0, 1.0, 2.0])


@pytest.mark.parametrize(("actions", "agents"), [(8, 16), (2, 64), (64, 16), (10**150, 2)])
def test_counts_beyond_integers(actions, agents):
    """Exact integers, rounded once; they add up to A^K."""
    counts = np.asarray(parity_spectrum(actions, agents, 1.0, 1.0)[1])
    assert sum(Fraction(float(c)) for c in counts) == pytest.approx(actions**agents, rel=1e-15)
    solved = sum(float(c) for c in counts[: agents + 1])
    assert solved == pytest.approx(actions ** (agents - 1), rel=1e-14)


def test_traced_and_zero():
    values = jax.vmap(lambda w: parity_spectrum(3, 2, 0.0, w)[0])(np.array([0.0, 2.0]))
    np.testing.assert_array_equal(values, [[0.0] * 6, [2.0] * 3 + [0.0] * 3])


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "function", "arguments"),
    [
        ("num_actions", parity_spectrum, (0, 2, 1.0, 1.0)),
        ("num_actions", parity_spectrum, (10**10, 31, 1.0, 1.0)),
        ("num_agents", parity_spectrum, (2, 0, 1.0, 1.0)),
        ("num_agents", parity_spectrum, (2, 2.0, 1.0, 1.0)),
        ("gap", parity_spectrum, (2, 2, -1.0, 1.0)),
        ("gap", parity_spectrum, (2, 2, [1.0, 2.0], 1.0)),
        ("coupling", parity_spectrum, (2, 2, 1.0, float("nan"))),
        ("num_actions", order_q_spectrum, (1, 2, 1, 1.0, 1.0)),
        ("order", order_q_spectrum, (2, 2, 3, 1.0, 1.0)),
        ("gap", needle_spectrum, (2, 2, float("inf"))),
        ("reward", reward_spectrum, (np.zeros((2, 3)),)),
        ("reward", reward_spectrum, (1.0,)),
        ("reward", reward_spectrum, (np.zeros((0, 0)),)),
        ("reward", reward_spectrum, (np.array([0.0, np.nan]),)),
    ],
)
def test_bad_input_is_named(named, function, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        function(*arguments)


def test_a_traced_tensor_is_refused():
    with pytest.raises(ValueError, match=r"^reward: got a traced value"):
        jax.jit(lambda reward: reward_spectrum(reward))(np.zeros(3))
