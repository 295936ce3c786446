"""Descent on gradients of old parameters against a loop over a list of them."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from boundlab.models.delayed_descent import delayed_descent
from boundlab.models.gac import gac

RNG = np.random.default_rng(11)
START = RNG.standard_normal(3)
CURVATURE = np.array([0.3, 0.7, 1.1])
STEPS, STEP, MOST = 30, 0.4, 4


def gradient(key, x):
    """Of a quadratic and a wave, with noise."""
    return CURVATURE * x + 0.3 * jnp.cos(x) + 0.1 * jax.random.normal(key, x.shape)


def loop(key, ages):
    path, found = [START], []
    noise = [0.1 * np.asarray(jax.random.normal(k, (3,))) for k in jax.random.split(key, STEPS)]
    for t in range(STEPS):
        old = path[max(t - ages[t], 0)]
        found.append(CURVATURE * old + 0.3 * np.cos(old) + noise[t])
        path.append(path[-1] - STEP * found[-1])
    return np.array(path), np.array(found)


@jax.jit
def run(key, ages):
    return delayed_descent(
        key, gradient, START, STEP, ages, STEPS, max_delay=MOST, observe=lambda x: {"x": x}
    )


@pytest.mark.parametrize("kind", ["0", "1", "4", "random"])
def test_path_by_a_loop(key, kind):
    """The first gradients are all at the start; delays of each step may differ."""
    ages = RNG.integers(0, MOST + 1, STEPS) if kind == "random" else np.full(STEPS, int(kind))
    path, found = loop(key, ages)
    result = run(key, ages)
    np.testing.assert_allclose(result.observed["x"], path[:-1], atol=1e-13)
    np.testing.assert_allclose(result.parameters, path[-1], atol=1e-13)
    norms = np.linalg.norm(found, axis=1)
    expected = (found[1:] * found[:-1]).sum(axis=1) / norms[1:] / norms[:-1]
    np.testing.assert_allclose(result.cosine, np.append(0.0, expected), atol=1e-13)


def test_one_delay_static_or_traced_is_the_same(key):
    static = jax.jit(lambda k: delayed_descent(k, gradient, START, STEP, 2, STEPS))(key)
    np.testing.assert_array_equal(static.parameters, run(key, np.full(STEPS, 2)).parameters)
    assert static.observed is None
    assert static.watched is None


def test_transformations_see_the_gradients_of_old_parameters(key):
    """Momentum by hand, and what is watched of alignment control."""
    trace = jax.jit(
        lambda k: delayed_descent(
            k, gradient, START, STEP, 1, STEPS, transform=optax.trace(0.5), watch=lambda s: s.trace
        )
    )(key)
    rows = np.asarray(trace.watched)
    x, old, keys = START, START, jax.random.split(key, STEPS)
    momentum = np.zeros(3)
    for t in range(3):
        noise = 0.1 * np.asarray(jax.random.normal(keys[t], (3,)))
        momentum = 0.5 * momentum + CURVATURE * old + 0.3 * np.cos(old) + noise
        np.testing.assert_allclose(rows[t], momentum, atol=1e-13)
        x, old = x - STEP * momentum, x
    watched = jax.jit(
        lambda k: delayed_descent(
            k, gradient, START, STEP, 1, STEPS, transform=gac(), watch=lambda s: s.cosine
        )
    )(key)
    np.testing.assert_allclose(watched.watched, watched.cosine, atol=1e-14)


def test_single_precision_stays_single(key):
    x = START.astype(np.float32)
    run = jax.jit(lambda k: delayed_descent(k, lambda _, y: 2 * y, x, np.float64(0.1), 1, 5))(key)
    assert run.parameters.dtype == run.cosine.dtype == np.float32


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "changes"),
    [
        ("key", {"key": 3}),
        ("initial", {"initial": [np.nan]}),
        ("initial", {"initial": [1, 2]}),
        ("initial", {"initial": np.zeros((2, 2))}),
        ("initial", {"initial": []}),
        ("step_size", {"step_size": -1.0}),
        ("step_size", {"step_size": np.ones(2)}),
        ("delay", {"delay": -1}),
        ("delay", {"delay": 0.5}),
        ("delay", {"delay": [0, 1]}),
        ("num_steps", {"num_steps": 0}),
        ("max_delay", {"delay": 3, "max_delay": 2}),
        ("max_delay", {"max_delay": -1}),
        ("watch", {"watch": lambda state: state}),
    ],
)
def test_bad_input_is_named(key, named, changes):
    arguments = {"key": key, "initial": START, "step_size": 0.1, "delay": 1, "num_steps": 3}
    with pytest.raises(ValueError, match=rf"^{named}: "):
        delayed_descent(gradient=gradient, **(arguments | changes))


@pytest.mark.usefixtures("as_users_call")
def test_a_traced_delay_needs_its_largest(key):
    with pytest.raises(ValueError, match=r"^max_delay: "):
        jax.vmap(lambda d: delayed_descent(key, gradient, START, 0.1, d, 3))(np.arange(2))
