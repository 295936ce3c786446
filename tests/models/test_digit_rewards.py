"""Rewards of joint choices of model sizes on digits, by scikit-learn on the same shuffles."""

import itertools

import jax
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from boundlab.models.digit_rewards import digit_rewards
from boundlab.models.digit_tasks import digit_task


@pytest.fixture(scope="module")
def task():
    return digit_task(6)


def test_shares_of_examples_with_all_right_by_scikit_learn(task, key):
    dims, n, train = (2, 6), 30, task.num_train
    found = np.asarray(digit_rewards(key, task, n, dims))
    assert found.shape == (2, 2, 2)
    right = []
    for k in range(3):
        order = np.asarray(jax.random.permutation(jax.random.fold_in(key, k), 534))
        x, u = task.inputs[k][order], task.positions[k][order]
        models = [LinearRegression().fit(x[:n, :d], u[:n]) for d in dims]
        rounded = [
            np.clip(np.round(model.predict(x[train:, :d])), 0, 2)
            for model, d in zip(models, dims, strict=True)
        ]
        right.append([row == u[train:] for row in rounded])
    for action in itertools.product(range(2), repeat=3):
        together = np.all([right[k][a] for k, a in enumerate(action)], axis=0)
        np.testing.assert_allclose(found[action], together.mean(), rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("key", {"key": 0}),
        ("dims", {"dims": []}),
        ("dims", {"dims": [0, 2]}),
        ("dims", {"dims": [7]}),
        ("dims", {"dims": [2.5]}),
        ("num_samples", {"num_samples": 7}),
        ("num_samples", {"num_samples": 402}),
    ],
)
def test_bad_arguments_are_named(name, change, task, key, as_users_call):
    good = {"key": key, "task": task, "num_samples": 30, "dims": [2, 6]}
    with pytest.raises(ValueError, match=f"^{name}"):
        digit_rewards(**{**good, **change})
