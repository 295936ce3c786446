"""Results that don't exist: errors for concrete arguments, NaN for traced ones; and their types."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.theory import fanout

HUGE = 1e180
NAN = jnp.nan


def problem(ragged, **changed):
    """Features, targets and weights of the small graph by name, some of them changed."""
    values = {name: getattr(ragged, name) for name in ("features", "targets", "weights")}
    return {"graph": ragged, **values, **changed}


def without(arguments, *names):
    return {name: value for name, value in arguments.items() if name not in names}


def calls(arguments):
    """Every function that multiplies what it is given, and the arguments that it has."""
    size = {"batch_size": 2, "fan_out": 2}
    linear = without(arguments, "weights")
    return [
        (fanout.gradient_noise, arguments | size),
        (fanout.gradient_covariance, arguments | size),
        (fanout.batch_loss_std, arguments | size),
        (fanout.sampled_loss_moments, arguments | {"fan_out": 2}),
        (fanout.noise_floor, linear | size | {"step_size": 1e-300}),
        (fanout.cross_entropy_gap, without(arguments, "targets") | {"fan_out": 2}),
        (fanout.neighbor_mean_moments, without(linear, "targets") | {"fan_out": 2}),
        (fanout.two_hop_variance, without(linear, "targets") | {"fan_out": 2, "inner_fan_out": 1}),
    ]


@pytest.mark.parametrize("name", ["features", "targets", "weights"])
def test_overflow_names_the_largest_argument(ragged, name):
    for function, arguments in calls(problem(ragged, **{name: HUGE * getattr(ragged, name)})):
        if name in arguments:
            with pytest.raises(ValueError, match=rf"^{name}: got entries up to \d.*e\+1"):
                function(**arguments)
        else:
            assert all(np.isfinite(part).all() for part in jax.tree.leaves(function(**arguments)))


def test_overflow_of_the_ridge(ragged):
    moments = fanout.neighbor_mean_moments(ragged, ragged.features, 2)
    good = {**moments._asdict(), "targets": ragged.targets}
    del good["covariance_trace"]
    for name in ("mean", "targets"):
        with pytest.raises(ValueError, match=rf"^{name}: got entries up to \d.*e\+1"):
            fanout.implicit_ridge(**{**good, name: HUGE * good[name]})
    wide = {**good, "mean": np.full((6, 3), 1.1e154), "average_covariance": 1.4e308 * np.eye(3)}
    with pytest.raises(ValueError, match=r"^average_covariance: got entries up to 1.4e\+308"):
        fanout.implicit_ridge(**wide)


def test_large_numbers_that_fit(ragged):
    """Losses scale with W² where targets are 0; the root of a fourth power at 1e70 still fits."""
    still = problem(ragged, targets=0 * ragged.targets)
    small = fanout.batch_loss_std(**still, batch_size=2, fan_out=2)
    large = fanout.batch_loss_std(
        **still | {"weights": 1e70 * ragged.weights}, batch_size=2, fan_out=2
    )
    np.testing.assert_allclose(large / 1e140, small, rtol=1e-12)


def test_nan_and_huge_traced_weights_are_not_free_of_noise(ragged):
    linear = without(problem(ragged), "weights")

    def results(w):
        moments = fanout.sampled_loss_moments(**linear, weights=w, fan_out=2)
        std = fanout.batch_loss_std(**linear, weights=w, batch_size=2, fan_out=2)
        gap = fanout.cross_entropy_gap(ragged, ragged.features, w, 2)
        return std, gap, moments.mean[2:], moments.variance[2:]

    traced = jax.jit(results)
    concrete = results(ragged.weights)
    for got, wanted in zip(traced(ragged.weights), concrete, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
    for weights in (NAN * ragged.weights, HUGE * ragged.weights):
        assert not any(np.isfinite(part).any() for part in traced(weights))


def test_stopping_with_nan():
    """A NaN loss never stops, as one far above; a deviation or target that is none gives NaN."""
    hit = jax.jit(fanout.hitting_time)
    losses, other = np.array([1.0, 0.2, 0.9, 0.6, 0.7]), np.arange(5) == 1
    for deviations in (np.zeros(5), np.full(5, 0.3), np.array([0.3, 0.0, 0.3, 0.0, 0.2])):
        got = hit(np.where(other, np.nan, losses), deviations, 0.5)
        far = hit(np.where(other, 1e9, losses), deviations, 0.5)
        np.testing.assert_allclose(got, far, rtol=1e-14)
        assert far.mean > hit(losses, deviations, 0.5).mean
    for bad in (
        [0.1, np.nan, 0.1, 0.1, 0.1],
        [0.0, 0.0, -0.1, 0.0, 0.0],
        [-1.0, 0.0, 0.0, 0.0, 0.0],
    ):
        assert np.isnan(hit(losses, np.array(bad), 0.5)).all()
    assert np.isnan(hit(losses, np.ones(5), np.nan)).all()
    assert np.isnan(hit(losses, np.zeros(5), np.nan)).all()
    assert hit(np.full(5, np.nan), np.zeros(5), 0.5) == (5.0, 1.0)


EYE, MIXED = np.eye(2), np.array([[1.0, 2.0], [2.0, 1.0]])
LOPSIDED = np.array([[1.0, 0.5], [0.0, 1.0]])
COUNT = (100.0, 2.0, 5.0, 3.0, 0.1)
BOUND = (0.1, 1.0, 10.0, 0.1, 3.0, 0.0)
RIDGE = (np.ones((3, 2)), EYE, np.ones((3, 1)))
CASES = {
    "row_distance": (
        lambda d, b: fanout.row_distance(d, b, "nuclear"),
        (5, 2),
        [(0, -1.0), (0, 2.5), (0, NAN), (1, 0.5), (1, 0.0), (1, 1.5), (1, NAN)],
    ),
    "bound": (
        fanout.pac_bayes_bound,
        BOUND,
        [
            *((0, -0.1), (0, 1.1), (1, -1.0), (2, 0.5), (3, 0.0), (3, 1.0), (3, 1.5), (4, 0.0)),
            *((4, -1.0), (5, jnp.inf), *((place, NAN) for place in range(6))),
        ],
    ),
    "mse": (
        fanout.paper_iterations_mse,
        COUNT,
        [(0, 0.5), (1, 0.5), (2, 0.5), (2, 101.0), (3, 0.5), (4, 0.0), (4, 4.0), (4, 5.0)],
    ),
    "ce": (
        fanout.paper_iterations_ce,
        COUNT,
        [(0, 0.5), (1, 0.0), (1, -1.0), (2, 0.5), (2, 101.0), (3, 0.5), (4, 0.0)],
    ),
    "population_loss": (fanout.population_loss, (0.1, 1.0, 1.0), [(2, -1.0), (2, NAN)]),
    "descent": (
        lambda *a: fanout.population_gradient_descent(*a, 5).loss,
        (0.1, 1.0, 1.0, 0.1),
        [(2, 0.0), (2, -1.0), (3, 0.0), (3, -0.1), (3, NAN)],
    ),
    "flops": (
        fanout.training_flops,
        (np.ones(1), np.ones(1), np.ones(2)),
        [(0, -np.ones(1)), (1, -np.ones(1)), (2, np.array([1.0, -1.0]))],
    ),
    "share": (lambda e: fanout.explained_share(e, 4), (0.1,), [(0, 0.0), (0, -0.1), (0, NAN)]),
    "distance": (
        fanout.gaussian_w2,
        (np.zeros(2), EYE, np.ones(2), 2 * EYE),
        [(1, MIXED), (1, LOPSIDED), (3, -EYE), (3, NAN * EYE), (0, NAN * np.ones(2))],
    ),
    "ridge": (fanout.implicit_ridge, RIDGE, [(1, MIXED), (1, LOPSIDED), (1, -EYE), (1, NAN * EYE)]),
    "iterate": (
        lambda v, eta: fanout.mean_iterate(np.ones((1, 2)), RIDGE[0], v, RIDGE[2], eta, 2),
        (EYE, 0.1),
        [(0, MIXED), (0, LOPSIDED), (1, 0.0), (1, -0.1), (1, NAN)],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_traced_arguments_out_of_range_give_nan(case):
    function, good, bad = CASES[case]
    traced = jax.jit(function)
    kept = jax.tree.leaves(function(*good))
    for got, wanted in zip(jax.tree.leaves(traced(*good)), kept, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-15)
        assert np.isfinite(got).all()
    for place, value in bad:
        changed = [value if k == place else entry for k, entry in enumerate(good)]
        for got in jax.tree.leaves(traced(*changed)):
            assert np.isnan(got).all(), (place, value)


def test_traced_settings_out_of_range_give_nan(ragged):
    """Host functions with one traced argument."""
    floor = jax.jit(
        lambda eta: fanout.noise_floor(ragged, ragged.features, ragged.targets, 2, 2, eta)
    )
    assert np.isnan([floor(0.0), floor(-0.1), floor(np.nan)]).all()
    assert floor(1e3) == np.inf
    delta = jax.jit(lambda c: fanout.wasserstein_delta(ragged, [2, 3], [4, 5], 1, 2, scale=c).total)
    assert np.isnan([delta(-1.0), delta(np.nan)]).all()
    plain = fanout.wasserstein_delta(ragged, [2, 3], [4, 5], 1, 2, scale=2.0)
    np.testing.assert_allclose(delta(2.0), plain.total, rtol=1e-14)


def test_host_functions_return_numpy_whatever_the_precision(ragged):
    """JAX arrays would have NumPy's reductions done by JAX, in float32 with x64 off."""
    arguments = problem(ragged)
    others = [
        (fanout.block_degree_law, {"num_nodes": 9, "degree": 3, "batch_size": 4, "fan_out": 2}),
        (fanout.touched_regular, {"num_nodes": 9, "degree": 3, "batch_size": 4, "fan_out": 2}),
        (fanout.touched_layers, {"num_nodes": 9, "degree": 3, "batch_size": 4, "fan_outs": [2]}),
        (fanout.touched_nodes, {"graph": ragged, "nodes": [1, 4], "fan_out": 2}),
        (fanout.expected_touched_nodes, {"graph": ragged, "batch_size": 2, "fan_out": 2}),
        (fanout.expected_touched_nodes, {"graph": ragged, "batch_size": [2, 3], "fan_out": 2}),
        (fanout.expected_maximum, {"num_cells": 7}),
        (fanout.zero_predictor_loss, {"num_classes": 7}),
        (fanout.relu_binary_cross_entropy_floor, {"num_classes": 7}),
        (
            fanout.wasserstein_delta,
            {"graph": ragged, "train_nodes": [1, 4], "test_nodes": [2], "batch_size": 1}
            | {"fan_out": 2},
        ),
    ]
    for function, keywords in calls(arguments) + others:
        with jax.enable_x64(False):
            result = function(**keywords)
            means = [np.mean(part) for part in jax.tree.leaves(result)]
        for part, mean in zip(jax.tree.leaves(result), means, strict=True):
            assert isinstance(part, np.ndarray | np.float64), function
            assert part.dtype == np.float64
            assert mean == np.mean(np.asarray(part, np.float64))


def test_concrete_arguments_within_a_transformation(ragged):
    """Weights and graph are known while something else is traced: checked and NumPy as ever."""
    arguments = problem(ragged)

    def scaled(c):
        moments = fanout.sampled_loss_moments(**arguments, fan_out=2)
        gap = fanout.cross_entropy_gap(ragged, ragged.features, ragged.weights, 2)
        std = fanout.batch_loss_std(**arguments, batch_size=2, fan_out=2)
        assert all(isinstance(p, np.ndarray | np.float64) for p in (*moments, gap, std))
        return c * (moments.mean.sum() + gap + std)

    np.testing.assert_allclose(jax.jit(scaled)(2.0), 2 * scaled(1.0), rtol=1e-13)


def test_sizes_of_numpy_and_jax_are_integers(ragged):
    plain = fanout.gradient_noise(**problem(ragged), batch_size=3, fan_out=2)
    for three, two in ((np.array(3), np.array(2)), (jnp.asarray(3), jnp.asarray(2))):
        assert fanout.gradient_noise(**problem(ragged), batch_size=three, fan_out=two) == plain
        assert fanout.touched_nodes(ragged, [1, 4], two) == fanout.touched_nodes(ragged, [1, 4], 2)
        law = fanout.block_degree_law(np.array(9), three, three, two)
        assert law == fanout.block_degree_law(9, 3, 3, 2)
        np.testing.assert_array_equal(fanout.row_distance(5, two, "trace"), 3 * 9 / (2 * 25))
