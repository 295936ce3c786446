"""Weights of aggregations and the gradient on policy, counted token by token."""

import jax
import numpy as np
import pytest

from boundlab.theory.policy_optimization.on_policy import (
    AGGREGATIONS,
    on_policy_gradient,
    token_weights,
)

MASK = np.array([[1, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 0]])
EXPECTED = {
    "token-mean": (1 / 4, 1 / 4),
    "token-sum": (1.0, 1.0),
    "seq-mean-token-mean": (1 / 6, 1 / 2),
    "seq-mean-token-sum": (1 / 2, 1 / 2),
    "seq-mean-token-sum-norm": (1 / 8, 1 / 8),
}


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_weights_by_hand(aggregation):
    first, last = EXPECTED[aggregation]
    rows = MASK * np.array([[first], [0.0], [last]])
    np.testing.assert_allclose(token_weights(MASK, aggregation), rows, rtol=1e-15)
    np.testing.assert_allclose(token_weights(MASK > 0, aggregation), rows, rtol=1e-15)
    np.testing.assert_array_equal(token_weights(0 * MASK, aggregation), np.zeros((3, 4)))


def test_norm_replaces_the_padded_length():
    rows = MASK / (2 * 5.0)
    found = token_weights(MASK, "seq-mean-token-sum-norm", 5)
    np.testing.assert_allclose(found, rows, rtol=1e-15)
    traced = jax.vmap(lambda norm: token_weights(MASK, "seq-mean-token-sum-norm", norm))(
        np.array([5.0, 10.0])
    )
    np.testing.assert_allclose(traced[1], rows / 2, rtol=1e-15)


def test_gradient_is_minus_the_weighted_advantage():
    advantage = np.where(MASK, np.arange(12.0).reshape(3, 4) - 5, np.nan)
    found = on_policy_gradient(advantage, MASK, "seq-mean-token-mean")
    expected = np.array([[5 / 6, 4 / 6, 0, 2 / 6], [0, 0, 0, 0], [-3 / 2, 0, 0, 0]])
    np.testing.assert_allclose(found, expected, rtol=1e-15)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "arguments"),
    [
        ("mask", (np.ones(3), "token-mean")),
        ("mask", (np.array([[0.5]]), "token-mean")),
        ("aggregation", (MASK, "mean")),
        ("norm", (MASK, "token-mean", 3.0)),
        ("norm", (MASK, "seq-mean-token-sum-norm", 0.0)),
        ("norm", (MASK, "seq-mean-token-sum-norm", np.ones(2))),
    ],
)
def test_bad_input_is_named(named, arguments):
    with pytest.raises(ValueError, match=f"^{named}: "):
        token_weights(*arguments)
    if named == "mask" and np.ndim(arguments[0]) == 2:
        with pytest.raises(ValueError, match=r"^advantage: "):
            on_policy_gradient(np.ones(2), MASK, "token-mean")
