"""Digits as subtasks with a carry: the data, the carry by integers, the learners by scikit-learn."""

import jax
import numpy as np
import pytest
import sklearn.datasets
from sklearn.linear_model import LinearRegression

from boundlab.models.digit_tasks import digit_risks, digit_task, incoming_carries

COUPLINGS = np.array([0.0, 1.0])


@pytest.fixture(scope="module")
def task():
    return digit_task(6)


def test_inputs_are_standard_components_of_the_digits(task):
    images, labels = sklearn.datasets.load_digits(return_X_y=True)
    pixels = images / 16.0
    scores = (pixels - pixels.mean(axis=0)) @ np.linalg.eigh(np.cov(pixels.T))[1][:, ::-1][:, :6]
    scores /= scores.std(axis=0)
    for k, group in enumerate(((0, 1, 2), (3, 4, 5), (6, 7, 8))):
        members = np.flatnonzero(np.isin(labels, group))[: task.inputs.shape[1]]
        np.testing.assert_allclose(np.abs(task.inputs[k]), np.abs(scores[members]), atol=1e-10)
        np.testing.assert_array_equal(task.positions[k], labels[members] - group[0])
    assert (task.base, task.num_train, task.inputs.shape[1]) == (3, 401, 534)


def test_groups_may_be_any_digits_in_any_order():
    task = digit_task(2, [[9, 0], [4, 1]])
    labels = sklearn.datasets.load_digits().target
    own = labels[np.isin(labels, (9, 0))][: task.inputs.shape[1]]
    np.testing.assert_array_equal(task.positions[0], np.where(own == 9, 0, 1))
    assert task.base == 2


@pytest.mark.parametrize("base", [2, 3, 5])
def test_carries_by_integer_arithmetic(base):
    """u_k + c_{k−1} + 1 in base B: the carry of adding B − (B − 1) = 1 at every place."""
    u = np.random.default_rng(0).integers(0, base, (200, 4))
    carry, expected = np.zeros(200, int), []
    for k in range(4):
        expected.append(carry)
        carry = (u[:, k] + carry + 1) // base
    found = np.asarray(incoming_carries(u, base))
    np.testing.assert_array_equal(found, np.stack(np.minimum(expected, 1), axis=1))
    # Predictions carry by what they round to.
    nearly = u + np.random.default_rng(1).uniform(-0.49, 0.49, u.shape)
    np.testing.assert_array_equal(incoming_carries(nearly, base), found)


@pytest.mark.parametrize("dim", [6, 4])
def test_learners_by_scikit_learn(task, key, dim):
    """The same shuffles, fitted and rolled out by another library."""
    n, agents, train = 90, 3, task.num_train
    found = digit_risks(key, task, n, COUPLINGS, dim)
    order = [np.asarray(jax.random.permutation(jax.random.fold_in(key, k), 534)) for k in range(3)]
    x = np.stack([task.inputs[k][order[k], :dim] for k in range(agents)])
    u = np.stack([task.positions[k][order[k]] for k in range(agents)], axis=1)
    carry = np.asarray(incoming_carries(u, 3))
    both = np.hstack(list(x))

    def fitted(inputs, target):
        return LinearRegression().fit(inputs[:n], target[:n]).predict(inputs[train:])

    for place, coupling in enumerate(COUPLINGS):
        y = u + coupling * carry
        blind = np.stack([fitted(x[k], y[:, k]) for k in range(agents)], axis=1)
        own = np.stack([fitted(x[k], u[:, k]) for k in range(agents)], axis=1)
        rolled, handed = np.zeros_like(own), np.zeros(len(own))
        for k in range(agents):
            rolled[:, k] = own[:, k] + coupling * handed
            handed = (own[:, k] + handed >= 1.5).astype(float)
        for predicted, risk in (
            (fitted(both, y), found.sarl),
            (rolled, found.aware),
            (blind, found.blind),
        ):
            expected = np.mean((predicted - y[train:]) ** 2, axis=0)
            np.testing.assert_allclose(risk[place], expected, rtol=1e-9)


def test_without_a_carry_both_teams_are_the_same_learner(task, key):
    found = digit_risks(key, task, 50, COUPLINGS, 4)
    np.testing.assert_allclose(found.aware[0], found.blind[0], rtol=1e-12)
    assert (found.aware[1, 1:] < found.blind[1, 1:]).all()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("key", {"key": 3}),
        ("num_samples", {"num_samples": 20}),
        ("num_samples", {"num_samples": 402}),
        ("num_samples", {"num_samples": 50.5}),
        ("couplings", {"couplings": 0.5}),
        ("couplings", {"couplings": [np.nan]}),
        ("dim", {"dim": 7}),
        ("dim", {"dim": 0}),
    ],
)
def test_bad_arguments_are_named(name, change, task, key, as_users_call):
    good = {"key": key, "task": task, "num_samples": 50, "couplings": [0.0]}
    with pytest.raises(ValueError, match=f"^{name}"):
        digit_risks(**{**good, **change})


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("dim", lambda: digit_task(0)),
        ("dim", lambda: digit_task(62)),
        ("groups", lambda: digit_task(2, [[0, 1], [1, 2]])),
        ("groups", lambda: digit_task(2, [[0, 1], [2]])),
        ("groups", lambda: digit_task(2, [[0], [1]])),
        ("groups", lambda: digit_task(2, [[0, 10]])),
        ("groups", lambda: digit_task(2, [])),
        ("base", lambda: incoming_carries([0, 1], 1)),
        ("positions", lambda: incoming_carries([np.nan], 2)),
        ("positions", lambda: incoming_carries(1.0, 2)),
    ],
)
def test_bad_tasks_are_named(name, make, as_users_call):
    with pytest.raises(ValueError, match=f"^{name}"):
        make()
