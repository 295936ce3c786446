"""Mean and variance of sampled losses against every sample, and the convex order of the losses."""

import itertools

import jax
import numpy as np
import pytest
from scipy.special import logsumexp

from boundlab.models import graphs
from boundlab.theory import fanout


def squared(ragged, node, logits):
    return 0.5 * np.sum((logits - ragged.targets[node]) ** 2, axis=1)


def cross_entropy(_, node, logits):
    return logsumexp(logits, axis=1) - logits[:, node % 2]


def losses(ragged, weights, fan_out, loss=squared):
    """Losses of each node, one for each of its samples."""
    return [loss(ragged, i, ragged.sampled_means(i, fan_out) @ weights.T) for i in range(6)]


@pytest.mark.smoke
@pytest.mark.parametrize("fan_out", [1, 2, 3, 4, 5])
def test_every_sample(ragged, fan_out):
    problem = (ragged, ragged.features, ragged.targets, ragged.weights, fan_out)
    got = fanout.sampled_loss_moments(*problem)
    each = losses(ragged, ragged.weights, fan_out)
    np.testing.assert_allclose(got.mean, [v.mean() for v in each], rtol=1e-13)
    np.testing.assert_allclose(got.variance, [v.var() for v in each], atol=1e-14)
    chosen = fanout.sampled_loss_moments(*problem, nodes=[5, 0, 3])
    np.testing.assert_allclose(chosen.variance, got.variance[np.array([5, 0, 3])], atol=1e-15)
    if fan_out == 5:
        np.testing.assert_array_equal(got.variance, 0.0)


@pytest.mark.parametrize("batch_size", [1, 2, 4])
@pytest.mark.parametrize("fan_out", [1, 2, 5])
def test_every_batch_and_sample(ragged, batch_size, fan_out):
    nodes = [4, 1, 3, 2]
    each = losses(ragged, ragged.weights, fan_out)
    first, second = [], []
    for batch in itertools.combinations(nodes, batch_size):
        draws = np.array([np.mean(p) for p in itertools.product(*[each[i] for i in batch])])
        first.append(draws.mean())
        second.append(np.mean(draws**2))
    problem = (ragged, ragged.features, ragged.targets, ragged.weights)
    got = fanout.batch_loss_std(*problem, batch_size, fan_out, nodes)
    np.testing.assert_allclose(got**2, np.mean(second) - np.mean(first) ** 2, atol=1e-14)
    if (batch_size, fan_out) == (4, 5):
        assert got == 0.0
    mean = fanout.sampled_loss_moments(*problem, fan_out, nodes).mean
    np.testing.assert_allclose(np.mean(mean), np.mean(first), rtol=1e-13)


def test_weights_of_a_run(ragged):
    """Traced weights: a path of weights in one compiled call; finite gradients where nothing varies."""
    path = np.stack([ragged.weights, 0.5 * ragged.weights, 0 * ragged.weights])
    problem = (ragged, ragged.features, ragged.targets)
    stds = jax.jit(lambda p: jax.lax.map(lambda w: fanout.batch_loss_std(*problem, w, 2, 1), p))(
        path
    )
    for w, got in zip(path, stds, strict=True):
        np.testing.assert_allclose(got, fanout.batch_loss_std(*problem, w, 2, 1), rtol=1e-12)
    slope = jax.grad(lambda w: fanout.batch_loss_std(*problem, w, 6, 5))(ragged.weights)
    np.testing.assert_array_equal(slope, 0.0)


@pytest.mark.parametrize("loss", [squared, cross_entropy])
def test_convex_order(ragged, loss):
    """50 random W: L_β(W) does not grow with β, is at least L_full(W), and equals it at β = 5."""
    rng = np.random.default_rng(7)
    for weights in rng.normal(size=(50, 2, 3)) * rng.choice([0.3, 1.0, 3.0], size=(50, 1, 1)):
        sampled = [
            np.mean([v.mean() for v in losses(ragged, weights, b, loss)]) for b in range(1, 7)
        ]
        assert (np.diff(sampled) <= 1e-14).all()
        np.testing.assert_allclose(sampled[4], sampled[5], rtol=1e-10)
        if loss is squared:
            moments = [
                fanout.sampled_loss_moments(ragged, ragged.features, ragged.targets, weights, b)
                for b in range(1, 7)
            ]
            np.testing.assert_allclose([np.mean(m.mean) for m in moments], sampled, rtol=1e-12)


@pytest.mark.parametrize("fan_out", [1, 2, 3])
def test_cross_entropy_gap_is_second_order(ragged, fan_out):
    """Exact gap by enumeration / formula → 1 as the features shrink around a common point."""
    ratios = []
    for scale in (0.1, 0.05, 0.025):
        near = ragged._replace(features=0.7 + scale * ragged.features)
        sampled, full = (
            np.mean([v.mean() for v in losses(near, ragged.weights, b, cross_entropy)])
            for b in (fan_out, 9)
        )
        gap = fanout.cross_entropy_gap(near, near.features, ragged.weights, fan_out)
        ratios.append((sampled - full) / float(gap))
    errors = np.abs(np.array(ratios) - 1)
    assert errors[2] < 0.02
    assert errors[2] < 0.75 * errors[0]
    assert fanout.cross_entropy_gap(ragged, ragged.features, ragged.weights, 5) == 0.0


X, Y, W = np.ones((6, 2)), np.ones((6, 3)), np.zeros((3, 2))
GOOD = {"graph": graphs.cycle(6), "features": X, "weights": W, "fan_out": 1}
BAD = [
    ("fan_out", 0),
    ("features", X[:5]),
    ("features", X * np.nan),
    ("weights", W[0]),
    ("weights", np.zeros((3, 4))),
    ("weights", W * np.nan),
    ("nodes", [6]),
    ("graph", 3),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_bad_input_is_named(as_users_call, name, value):
    for function, extra in (
        (fanout.cross_entropy_gap, {}),
        (fanout.sampled_loss_moments, {"targets": Y}),
        (fanout.batch_loss_std, {"targets": Y, "batch_size": 2}),
    ):
        with pytest.raises(ValueError, match=f"^{name}: got"):
            function(**{**GOOD, **extra, name: value})
    for wrong in ({"targets": Y[:5]}, {"targets": Y * np.nan}, {"targets": Y[:, :2]}):
        with pytest.raises(ValueError, match=r"^(targets|weights): got"):
            fanout.sampled_loss_moments(**GOOD, **wrong)
    for batch_size in (0, 7, 1.0):
        with pytest.raises(ValueError, match=r"^batch_size: got"):
            fanout.batch_loss_std(**GOOD, targets=Y, batch_size=batch_size)
