"""Covariance of the mini-batch gradient and the floor it leaves, against every batch and sample."""

import itertools

import jax
import numpy as np
import pytest

from boundlab.models import graphs
from boundlab.theory import fanout


def gradients(ragged, node, fan_out):
    """The gradient of one node, read row by row, for each of its samples."""
    draws = ragged.sampled_means(node, fan_out)
    error = draws @ ragged.weights.T - ragged.targets[node]
    return np.einsum("sk,sp->skp", error, draws).reshape(len(draws), -1)


def batch_gradients(ragged, nodes, batch_size, fan_out):
    """Mean and covariance of the batch-mean gradient over every batch × every sample of each node."""
    first, second, count = 0.0, 0.0, 0
    for batch in itertools.combinations(nodes, batch_size):
        draws = [gradients(ragged, i, fan_out) for i in batch]
        means = np.array([np.mean(pick, axis=0) for pick in itertools.product(*draws)])
        first, count = first + means.mean(axis=0), count + 1  # batches weigh the same,
        second = second + means.T @ means / len(means)  # whatever their number of samples
    mean = first / count
    return mean, second / count - np.outer(mean, mean)


@pytest.mark.smoke
@pytest.mark.parametrize("fan_out", [1, 2, 3, 5])
@pytest.mark.parametrize(
    ("nodes", "batch_size"), [(range(6), 2), ([5, 2, 4, 3, 0], 3), ([4, 3], 2), ([5], 1)]
)
def test_every_batch_and_sample(ragged, nodes, batch_size, fan_out):
    arguments = (ragged, ragged.features, ragged.targets, ragged.weights, batch_size, fan_out)
    got = fanout.gradient_covariance(*arguments, nodes=list(nodes))
    _, expected = batch_gradients(ragged, nodes, batch_size, fan_out)
    np.testing.assert_allclose(got.batch_part + got.fan_out_part, expected, atol=1e-13)
    traces = fanout.gradient_noise(*arguments, nodes=list(nodes))
    np.testing.assert_allclose(traces.batch_part, np.trace(got.batch_part), atol=1e-13)
    np.testing.assert_allclose(traces.fan_out_part, np.trace(got.fan_out_part), atol=1e-13)


@pytest.mark.parametrize("fan_out", [1, 2, 4])
def test_each_part(ragged, fan_out):
    """Batches of all nodes leave the fan-out's part, mean Λ_i/n; β ≥ every degree leaves the batch's."""
    arguments = (ragged, ragged.features, ragged.targets, ragged.weights)
    at_all = fanout.gradient_covariance(*arguments, 6, fan_out)
    np.testing.assert_array_equal(at_all.batch_part, 0.0)
    spread = [gradients(ragged, i, fan_out) for i in range(6)]
    within = np.mean([np.cov(g.T, bias=True) if len(g) > 1 else 0 * g.T @ g for g in spread], 0)
    np.testing.assert_allclose(at_all.fan_out_part, within / 6, atol=1e-14)
    half = fanout.gradient_covariance(*arguments, 3, fan_out)
    np.testing.assert_allclose(half.fan_out_part, 2 * at_all.fan_out_part, atol=1e-14)
    between = np.cov(np.array([g.mean(axis=0) for g in spread]).T)
    np.testing.assert_allclose(half.batch_part, (1 - 3 / 6) / 3 * between, atol=1e-14)


def test_full_graph_has_no_noise(ragged):
    arguments = (ragged, ragged.features, ragged.targets, ragged.weights)
    for fan_out in (5, 100):
        assert fanout.gradient_noise(*arguments, 6, fan_out) == (0.0, 0.0)
        assert not any(part.any() for part in fanout.gradient_covariance(*arguments, 6, fan_out))
        assert not fanout.gradient_covariance(*arguments, 2, fan_out).fan_out_part.any()
        assert fanout.gradient_noise(*arguments, 2, fan_out).fan_out_part == 0.0


def test_traces_of_a_larger_graph_in_pieces(monkeypatch):
    from boundlab.theory.fanout import _graph

    rng = np.random.default_rng(9)
    graph = graphs.barabasi_albert(jax.random.key(3), 300, 3)
    x, y, w = rng.normal(size=(300, 5)), rng.normal(size=(300, 2)), rng.normal(size=(2, 5))
    whole = fanout.gradient_covariance(graph, x, y, w, 20, 4)
    monkeypatch.setattr(_graph, "CHUNK", 3000)
    pieces = fanout.gradient_covariance(graph, x, y, w, 20, 4)
    traces = fanout.gradient_noise(graph, x, y, w, 20, 4)
    for matrix, same, trace in zip(whole, pieces, traces, strict=True):
        np.testing.assert_allclose(matrix, same, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(trace, np.trace(matrix), rtol=1e-12)
        assert np.linalg.eigvalsh(matrix).min() > -1e-12


def stationary_excess(ragged, batch_size, fan_out, eta):
    """E L_β(W_∞) − L_β(W_β) of SGD, exact: the fixed point of the second moments of W − W_β.

    W ← W − η ĝ is affine in W; its second moment obeys a linear equation whose coefficients are
    means over every batch and every sample. Outputs share their samples and add up.
    """
    means = {i: ragged.sampled_means(i, fan_out) for i in range(6)}
    r = ragged.features.shape[1]
    moments = fanout.neighbor_mean_moments(ragged, ragged.features, fan_out)
    ridge = fanout.implicit_ridge(moments.mean, moments.average_covariance, ragged.targets)
    best = np.asarray(ridge.weights)
    decay, added = np.zeros((r * r, r * r)), np.zeros((2, r, r))
    batches = list(itertools.combinations(range(6), batch_size))
    for batch in batches:
        picks = list(itertools.product(*[means[i] for i in batch]))
        for pick in picks:
            share = 1 / len(batches) / len(picks)
            h = np.array(pick)
            a = np.eye(r) - eta * h.T @ h / batch_size
            push = -eta * (h @ best.T - ragged.targets[list(batch)]).T @ h / batch_size
            decay += share * np.kron(a, a)
            for k in range(2):
                added[k] += share * np.outer(push[k], push[k])
    total = 0.0
    moment = moments.mean.T @ moments.mean / 6 + moments.average_covariance
    for k in range(2):  # terms linear in W − W_β drop out: its stationary mean is 0
        second = np.linalg.solve(np.eye(r * r) - decay, added[k].ravel()).reshape(r, r)
        total += 0.5 * np.trace(moment @ second)
    assert np.abs(np.linalg.eigvals(decay)).max() < 1
    return total


@pytest.mark.parametrize(("batch_size", "fan_out"), [(1, 2), (2, 1), (2, 2)])
def test_floor_is_first_order_in_the_step(ragged, batch_size, fan_out):
    """Exact excess / formula = 1 + O(η): the ratio at η and η/2, extrapolated, leaves O(η²)."""
    problem = (ragged, ragged.features, ragged.targets, batch_size, fan_out)
    ratio = []
    for eta in (0.02, 0.01, 0.005):
        formula = float(fanout.noise_floor(*problem, eta))
        ratio.append(stationary_excess(ragged, batch_size, fan_out, eta) / formula)
    extrapolated = 2 * np.array(ratio[1:]) - np.array(ratio[:-1])
    errors = np.abs(extrapolated - 1)
    assert errors[0] < 2e-3
    assert errors[1] < errors[0] / 3  # a quarter, were there no third order
    moments = fanout.neighbor_mean_moments(ragged, ragged.features, fan_out)
    m = moments.mean.T @ moments.mean / 6 + moments.average_covariance
    rough = 0.5 * 0.005 * (np.linalg.eigvalsh(m)[-1] + np.trace(m) / batch_size)
    assert 0.2 * rough < ratio[2] - 1 < 5 * rough


def test_step_size_beyond_the_limit(ragged):
    problem = (ragged, ragged.features, ragged.targets, 2, 2)
    moments = fanout.neighbor_mean_moments(ragged, ragged.features, 2)
    m = moments.mean.T @ moments.mean / 6 + moments.average_covariance
    limit = 2 / np.linalg.eigvalsh(m)[-1]
    for step in (limit * 1.0001, 10.0):
        with pytest.raises(ValueError, match=r"^step_size: got .*2/λ_max\(C_hh \+ V̄\) = ") as error:
            fanout.noise_floor(*problem, step)
        named = float(str(error.value).split(" = ")[1].rstrip(")"))
        np.testing.assert_allclose(named, limit, 1e-11)
    below = fanout.noise_floor(*problem, limit * 0.9999)
    traced = jax.jit(lambda eta: fanout.noise_floor(*problem, eta))
    np.testing.assert_allclose(traced(limit * 0.9999), below, rtol=1e-12)
    assert np.isinf(traced(limit * 1.0001))
    assert fanout.noise_floor(ragged, ragged.features, ragged.targets, 6, 5, 0.1) == 0.0


X, Y, W = np.ones((6, 2)), np.ones((6, 3)), np.zeros((3, 2))
GOOD = {"graph": graphs.cycle(6), "features": X, "targets": Y, "batch_size": 2, "fan_out": 1}
BAD = [
    ("batch_size", 0),
    ("batch_size", 7),
    ("batch_size", 2.0),
    ("fan_out", 0),
    ("features", X[:5]),
    ("features", X * np.nan),
    ("targets", Y[:5]),
    ("targets", Y[:, 0]),
    ("targets", Y * np.inf),
    ("nodes", [0, 0]),
    ("graph", None),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_bad_input_is_named(as_users_call, name, value):
    for function, extra in (
        (fanout.gradient_covariance, {"weights": W}),
        (fanout.gradient_noise, {"weights": W}),
        (fanout.noise_floor, {"step_size": 0.1}),
    ):
        with pytest.raises(ValueError, match=f"^{name}: got"):
            function(**{**GOOD, **extra, name: value})


def test_other_bad_input_is_named(as_users_call):
    for function in (fanout.gradient_covariance, fanout.gradient_noise):
        for weights in (W.T, W[0], W * np.nan):
            with pytest.raises(ValueError, match=r"^weights: got"):
                function(**GOOD, weights=weights)
        with pytest.raises(ValueError, match=r"^batch_size: got 3, .* ≤ 2"):
            function(**{**GOOD, "batch_size": 3}, weights=W, nodes=[4, 2])
    for step in (0.0, -1.0, np.nan, [0.1]):
        with pytest.raises(ValueError, match=r"^step_size: got"):
            fanout.noise_floor(**GOOD, step_size=step)


def test_targets_elsewhere_are_not_read(ragged):
    nodes = [5, 2, 4]
    targets = np.full_like(ragged.targets, np.nan)
    targets[nodes] = ragged.targets[nodes]
    for y in (targets, ragged.targets):
        last = fanout.gradient_noise(ragged, ragged.features, y, ragged.weights, 2, 2, nodes)
        floor = fanout.noise_floor(ragged, ragged.features, y, 2, 2, 0.1, nodes)
        assert np.isfinite([*last, floor]).all()
