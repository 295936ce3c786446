"""Fan-out as a ridge penalty: losses, gradients and iterates by enumeration, the minimiser by solvers
of other kinds.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

from boundlab.models import graphs
from boundlab.theory import fanout


def sampled_loss(ragged, weights, fan_out, nodes=range(6)):
    """L_β(W): the mean over nodes of the mean over all samples of ½‖W h̃ − y‖²."""
    each = [
        0.5 * np.sum((ragged.sampled_means(i, fan_out) @ weights.T - ragged.targets[i]) ** 2, 1)
        for i in nodes
    ]
    return np.mean([loss.mean() for loss in each])


def sampled_gradient(ragged, weights, fan_out, nodes=range(6)):
    means = [ragged.sampled_means(i, fan_out) for i in nodes]
    each = [
        np.mean([np.outer(weights @ h - ragged.targets[i], h) for h in m], axis=0)
        for i, m in zip(nodes, means, strict=True)
    ]
    return np.mean(each, axis=0)


def solved(ragged, fan_out, nodes=range(6)):
    moments = fanout.neighbor_mean_moments(ragged, ragged.features, fan_out, list(nodes))
    args = (moments.mean, moments.average_covariance, ragged.targets[list(nodes)])
    return fanout.implicit_ridge(*args), args


@pytest.mark.smoke
@pytest.mark.parametrize("fan_out", [1, 2, 3, 5])
@pytest.mark.parametrize("nodes", [range(6), [3, 5, 1, 4]])
def test_minimiser_of_the_enumerated_loss(ragged, fan_out, nodes):
    got, (mean, _, targets) = solved(ragged, fan_out, nodes)
    weights = np.asarray(got.weights)
    gradient = sampled_gradient(ragged, weights, fan_out, nodes)
    assert np.abs(gradient).max() < 1e-12
    np.testing.assert_allclose(got.floor, sampled_loss(ragged, weights, fan_out, nodes), 1e-13)
    full = 0.5 * np.mean(np.sum((mean @ weights.T - targets) ** 2, axis=1))
    np.testing.assert_allclose(got.full_loss, full, 1e-13)
    start = np.zeros(weights.size)
    found = scipy.optimize.minimize(
        lambda w: sampled_loss(ragged, w.reshape(weights.shape), fan_out, nodes),
        start,
        jac=lambda w: sampled_gradient(ragged, w.reshape(weights.shape), fan_out, nodes).ravel(),
        tol=1e-10,
    )
    np.testing.assert_allclose(found.fun, got.floor, 1e-9)


@jax.jit
@jax.value_and_grad
def penalised(w, mean, v, targets):
    loss = 0.5 * jnp.mean(jnp.sum((mean @ w.T - targets) ** 2, axis=1))
    return loss + 0.5 * jnp.trace(w @ v @ w.T)


@pytest.mark.parametrize("fan_out", [1, 2, 4])
def test_expected_gradient_is_that_of_the_penalised_loss(ragged, fan_out):
    _, (mean, v, targets) = solved(ragged, fan_out)
    w = ragged.weights

    enumerated = sampled_gradient(ragged, w, fan_out)
    loss, gradient = penalised(w, mean, v, targets)
    np.testing.assert_allclose(gradient, enumerated, atol=1e-13)
    full = (mean @ w.T - targets).T @ mean / 6
    np.testing.assert_allclose(full + w @ v, enumerated, atol=1e-13)
    np.testing.assert_allclose(loss, sampled_loss(ragged, w, fan_out), 1e-13)


def test_floor_and_penalty_do_not_grow_with_fan_out(ragged):
    results = [solved(ragged, fan_out) for fan_out in range(1, 8)]
    floors = np.array([r.floor for r, _ in results])
    assert (np.diff(floors) <= 1e-15).all()
    assert floors[4] == floors[5] == floors[6]
    for (_, (_, wide, _)), (_, (_, narrow, _)) in itertools.pairwise(results):
        assert np.linalg.eigvalsh(wide - narrow).min() > -1e-14
    least_squares = scipy.linalg.lstsq(results[-1][1][0], ragged.targets)[0].T
    np.testing.assert_allclose(results[-1][0].weights, least_squares, atol=1e-12)
    np.testing.assert_array_equal(results[-1][0].floor, results[-1][0].full_loss)


def test_singular_problem_has_the_least_norm():
    """More features than nodes: the pseudo-inverse, as SciPy's least squares finds it."""
    rng = np.random.default_rng(5)
    h, y = rng.normal(size=(4, 7)), rng.normal(size=(4, 2))
    got = fanout.implicit_ridge(h, np.zeros((7, 7)), y)
    np.testing.assert_allclose(got.weights, scipy.linalg.lstsq(h, y)[0].T, atol=1e-12)
    assert float(got.floor) < 1e-28
    direction = np.outer(h[0], h[0])
    ridged = fanout.implicit_ridge(h, direction, y)
    moment = h.T @ h / 4 + direction
    gradient = np.asarray(ridged.weights) @ moment - y.T @ h / 4
    assert np.abs(gradient).max() < 1e-12
    nothing = fanout.implicit_ridge(np.zeros((3, 2)), np.zeros((2, 2)), np.ones((3, 1)))
    np.testing.assert_array_equal(nothing.weights, 0.0)
    np.testing.assert_allclose(nothing.floor, 0.5)


def test_traced_and_narrow_arguments():
    rng = np.random.default_rng(6)
    h, y = rng.normal(size=(9, 3)), rng.normal(size=(9, 2))
    plain = fanout.implicit_ridge(h, np.eye(3), y)
    for a, b in zip(plain, jax.jit(fanout.implicit_ridge)(h, np.eye(3), y), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)
    with jax.enable_x64(False):
        narrow = fanout.implicit_ridge(h, np.eye(3), y)
    for a, b in zip(plain, narrow, strict=True):
        assert b.dtype == np.float64
        np.testing.assert_allclose(a, b, rtol=1e-13)
    slope = jax.grad(lambda y: fanout.implicit_ridge(h, np.eye(3), y).floor)(y)
    np.testing.assert_allclose(slope, (y - h @ np.asarray(plain.weights).T) / 9, atol=1e-14)


def test_mean_iterate_averages_every_history(ragged):
    """Two steps, every batch of two of three nodes, every sample of each: 3·(2·3)… histories."""
    nodes, fan_out, eta = [2, 3, 4], 2, 0.3
    means = {i: ragged.sampled_means(i, fan_out) for i in nodes}

    def steps(w):
        """All equally likely next weights, batch by batch."""
        out = []
        for pair in itertools.combinations(nodes, 2):
            draws = []
            for sample in itertools.product(*[means[i] for i in pair]):
                gradient = sum(
                    np.outer(w @ h - ragged.targets[i], h)
                    for i, h in zip(pair, sample, strict=True)
                )
                draws.append(w - eta * gradient / 2)
            out.append(np.mean(draws, axis=0))
            histories[pair] = draws
        return np.mean(out, axis=0)

    histories = {}
    first = steps(ragged.weights)
    starts = [np.array(draws) for draws in histories.values()]
    second = np.mean([np.mean([steps(w) for w in draws], axis=0) for draws in starts], axis=0)
    moments = fanout.neighbor_mean_moments(ragged, ragged.features, fan_out, nodes)
    problem = (moments.mean, moments.average_covariance, ragged.targets[nodes])
    got = fanout.mean_iterate(ragged.weights, *problem, eta, 2)
    np.testing.assert_allclose(got, [ragged.weights, first, second], atol=1e-13)
    assert fanout.mean_iterate(ragged.weights, *problem, eta, 0).shape == (1, 2, 3)
    settled = fanout.mean_iterate(ragged.weights, *problem, 0.5, 4000)[-1]
    np.testing.assert_allclose(settled, fanout.implicit_ridge(*problem).weights, atol=1e-10)


H, V, Y, W = np.ones((4, 2)), np.eye(2), np.ones((4, 3)), np.zeros((3, 2))
BAD = [
    ("mean", np.ones(4)),
    ("mean", np.full((4, 2), np.nan)),
    ("average_covariance", np.ones((2, 3))),
    ("average_covariance", np.full((2, 2), np.inf)),
    ("average_covariance", np.array([[1.0, 0.1], [0.0, 1.0]])),
    ("average_covariance", np.array([[1.0, 2.0], [2.0, 1.0]])),
    ("average_covariance", -np.eye(2)),
    ("targets", np.ones((5, 3))),
    ("targets", np.ones(4)),
    ("targets", np.full((4, 3), np.nan)),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_bad_input_is_named(as_users_call, name, value):
    good = {"mean": H, "average_covariance": V, "targets": Y}
    with pytest.raises(ValueError, match=f"^{name}: got"):
        fanout.implicit_ridge(**{**good, name: value})
    path = {"initial_weights": W, "step_size": 0.1, "num_steps": 3}
    with pytest.raises(ValueError, match=f"^{name}: got"):
        fanout.mean_iterate(**{**good, **path, name: value})
    for other, wrong in (
        ("initial_weights", W.T),
        ("initial_weights", W + np.nan),
        ("step_size", 0.0),
        ("step_size", [0.1]),
        ("num_steps", -1),
    ):
        with pytest.raises(ValueError, match=f"^{other}: got"):
            fanout.mean_iterate(**{**good, **path, other: wrong})


def test_graph_of_the_package_gives_the_same(ragged):
    """A directed star has full and empty rows; the theory takes any graph with an edge list."""
    star = graphs.star(5)
    moments = fanout.neighbor_mean_moments(star, ragged.features[:5], 2, [0, 1, 4])
    by_hand = np.stack([ragged.features[1:5].mean(0), *2 * [ragged.features[0]]])
    np.testing.assert_allclose(moments.mean, by_hand, atol=1e-15)
