"""The best of many cells, and the losses that cost nothing, against other routes."""

import jax
import numpy as np
import pytest
from scipy import integrate, stats

from boundlab.theory.fanout.order_statistics import expected_maximum
from boundlab.theory.fanout.trivial_losses import (
    explained_share,
    relu_binary_cross_entropy_floor,
    zero_predictor_loss,
)


def test_expected_maximum_against_known_values() -> None:
    """Closed forms for two to five cells (Jones 1948), and an adaptive quadrature of the tail."""
    root = np.sqrt(np.pi)
    angle = np.arcsin(1 / 3)
    known = {
        1: 0.0,
        2: 1 / root,
        3: 1.5 / root,
        4: 3 / root * (0.5 + angle / np.pi),
        5: 5 / root * (0.25 + 1.5 * angle / np.pi),
    }
    for cells, value in known.items():
        np.testing.assert_allclose(expected_maximum(cells), value, rtol=1e-12, atol=1e-14)

    # ∫ x·m·φ(x)·Φ(x)^{m−1} dx in 30 digits, with mpmath.
    accurate = {35: 2.10660943960395, 10**6: 4.86289748619646, 10**9: 6.08768458444596}
    for cells, value in accurate.items():
        np.testing.assert_allclose(expected_maximum(cells), value, rtol=3e-15)

    def by_tails(cells: int) -> float:
        """E max = ∫₀^∞ P(max > x) dx − ∫₋∞^0 P(max ≤ x) dx, P(max ≤ x) = Φ(x)^m."""
        above = integrate.quad(
            lambda x: -np.expm1(cells * stats.norm.logcdf(x)), 0, 14, epsabs=1e-13, limit=200
        )[0]
        below = integrate.quad(lambda x: stats.norm.cdf(x) ** cells, -14, 0, epsabs=1e-13)[0]
        return above - below

    for cells in (10_000, 10**9):
        np.testing.assert_allclose(expected_maximum(cells), by_tails(cells), rtol=1e-10)


def test_loss_of_the_output_zero() -> None:
    for classes in (1, 2, 7, 47):
        labels = np.eye(classes)[np.arange(2 * classes) % classes]
        np.testing.assert_allclose(zero_predictor_loss(classes), np.mean(labels**2), rtol=1e-15)


def test_share_that_a_constant_output_leaves() -> None:
    """The best constant output c on K balanced classes leaves mean (c − y)² = (1/K)(1 − 1/K)."""
    classes = 5
    labels = np.eye(classes)
    constant = labels.mean(axis=0)
    left = float(np.mean((constant - labels) ** 2))
    np.testing.assert_allclose(explained_share(left, classes), 1 / classes, rtol=1e-13)
    traced = jax.jit(lambda loss: explained_share(loss, classes))(0.1)
    np.testing.assert_allclose(traced, 0.5, rtol=1e-15)
    assert float(explained_share(0.0225, 47)) < 0  # the target of products


def test_no_logits_go_below_the_floor() -> None:
    """2,000 random logits, ReLU or not, stay above it; growing ones of the true class approach it."""
    rng = np.random.default_rng(0)
    for classes in (1, 2, 40):
        target = (np.eye(classes)[0] + 1) / 2

        def loss(logits: np.ndarray, target: np.ndarray = target) -> np.ndarray:
            return np.mean(np.logaddexp(0.0, logits) - target * logits, axis=-1)

        floor = float(relu_binary_cross_entropy_floor(classes))
        drawn = rng.normal(scale=rng.gamma(1.0, size=(2000, 1)) * 3, size=(2000, classes))
        for logits in (drawn, np.maximum(drawn, 0.0)):  # reached up to rounding far out
            assert (loss(logits) >= floor - 1e-14).all()
        near = np.zeros(classes)
        near[0] = 40.0
        np.testing.assert_allclose(loss(near), floor, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("bad", [0, -1, 2.5, True, None, "three"])
def test_counts_are_checked(bad: object, as_users_call: None) -> None:
    with pytest.raises(ValueError, match="num_cells"):
        expected_maximum(bad)
    for function in (zero_predictor_loss, relu_binary_cross_entropy_floor):
        with pytest.raises(ValueError, match="num_classes"):
            function(bad)
    with pytest.raises(ValueError, match="num_classes"):
        explained_share(0.1, bad)


@pytest.mark.parametrize("bad", [0.0, -0.1, np.nan, np.inf, [0.1, 0.2]])
def test_targets_are_checked(bad: object, as_users_call: None) -> None:
    with pytest.raises(ValueError, match="target_loss"):
        explained_share(bad, 4)
