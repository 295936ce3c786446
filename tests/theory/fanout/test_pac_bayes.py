"""The PAC-Bayes bound: values by hand, and its failure probability by enumeration of all labellings."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.theory.fanout import pac_bayes_bound


@pytest.mark.smoke
def test_bound_by_hand() -> None:
    # 0.2 + (3 + ln 20)/40 + 40/(8·100) + 0.05
    expected = 0.2 + (3 + np.log(20)) / 40 + 0.05 + 0.05
    np.testing.assert_allclose(pac_bayes_bound(0.2, 3, 100, 0.05, 40.0, 0.05), expected, rtol=1e-14)
    best = np.sqrt(8 * 100 * (3 + np.log(20)))  # then the two terms are equal
    found = pac_bayes_bound(0.0, 3.0, 100, 0.05, best)
    np.testing.assert_allclose(found, 2 * np.sqrt((3 + np.log(20)) / 800), rtol=1e-14)
    many = pac_bayes_bound(np.array([0.1, 0.2]), np.array([1.0, 2.0]), 50, 0.1, 10.0, -0.01)
    np.testing.assert_allclose(many[1], pac_bayes_bound(0.2, 2.0, 50, 0.1, 10.0, -0.01))
    slope = jax.grad(lambda rate: pac_bayes_bound(0.0, 3.0, 100, 0.05, rate))(jnp.asarray(best))
    np.testing.assert_allclose(slope, 0.0, atol=1e-12)


def test_failure_probability_by_enumeration() -> None:
    """Gibbs posterior over 40 classifiers of 9 training and 6 test nodes; all 2⁹ training labellings."""
    rng = np.random.default_rng(0)
    num_train, delta, rate = 9, 0.1, 9.0
    chance = rng.uniform(0.2, 0.8, 15)  # of label 1, independent
    predictions = rng.integers(0, 2, (40, 15))
    risk = np.where(predictions == 1, 1 - chance, chance)  # expected 0-1 loss a node
    shift = risk[:, num_train:].mean(axis=1) - risk[:, :num_train].mean(axis=1)
    labels = np.array(list(product((0, 1), repeat=num_train)))
    probability = np.where(labels == 1, chance[:num_train], 1 - chance[:num_train]).prod(axis=1)
    loss = (predictions[None, :, :num_train] != labels[:, None, :]).mean(axis=2)
    posterior = np.exp(-rate * loss)
    posterior /= posterior.sum(axis=1, keepdims=True)
    kl = (posterior * np.log(posterior * 40)).sum(axis=1)
    test_loss = posterior @ risk[:, num_train:].mean(axis=1)
    empirical, discrepancy = (posterior * loss).sum(axis=1), posterior @ shift
    bound = np.asarray(pac_bayes_bound(empirical, kl, num_train, delta, rate, discrepancy))
    assert probability[test_loss > bound].sum() <= delta
    without = (
        bound - (kl - np.log(delta)) / rate
    )  # the price of choosing and of confidence left out
    assert probability[test_loss > without].sum() > delta
    # What the proof bounds: E exp(sup over posteriors of the deficit) ≤ 1, the supremum being this.
    gap = risk[:, :num_train].mean(axis=1) - loss
    moment = np.exp(rate * gap - rate**2 / (8 * num_train)).mean(axis=1)
    assert probability @ moment <= 1.0


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"empirical_loss": 1.1}, "empirical_loss"),
        ({"kl_divergence": -0.1}, "kl_divergence"),
        ({"num_train": 0}, "num_train"),
        ({"failure_probability": 0.0}, "failure_probability"),
        ({"failure_probability": 1.0}, "failure_probability"),
        ({"inverse_temperature": 0.0}, "inverse_temperature"),
        ({"discrepancy": np.inf}, "discrepancy"),
    ],
)
def test_bad_arguments_are_named(changed: dict, name: str) -> None:
    good = {
        "empirical_loss": 0.1,
        "kl_divergence": 1.0,
        "num_train": 10,
        "failure_probability": 0.1,
        "inverse_temperature": 3.0,
    }
    with pytest.raises(ValueError, match=f"^{name}: got"):
        pac_bayes_bound(**(good | changed))
