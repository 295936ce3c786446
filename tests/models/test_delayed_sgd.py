"""Delayed SGD against a loop in NumPy, at the edges of its arguments, and its means over time."""

import jax
import numpy as np
import pytest

from boundlab.models.delayed_descent import delayed_descent
from boundlab.models.delayed_sgd import delayed_sgd, delayed_sgd_moments

CURVATURE = np.array([0.2, 0.5, 1.0])
INITIAL = np.array([1.0, -2.0, 0.5])
STEPS = 150


@pytest.fixture(scope="module")
def own_key(key: jax.Array) -> jax.Array:
    return jax.random.fold_in(key, 7)


@pytest.fixture(scope="module")
def noise(own_key: jax.Array) -> np.ndarray:
    """The documented draws, σ = 1: blocks of 64 steps."""
    keys = jax.random.split(own_key, 3)
    blocks = [np.asarray(jax.random.normal(keys[b], (64, 3), np.float64)) for b in range(3)]
    return np.concatenate(blocks)


def by_loop(noise, curvature, step_size, delay, num_steps, initial):
    """x_{t+1} = x_t − η(λ x_{t−τ} + ξ_t) from a list of all parameters."""
    path, gradients = [initial], []
    for t in range(num_steps):
        gradients.append(curvature * path[max(t - delay, 0)] + noise[t])
        path.append(path[-1] - step_size * gradients[-1])
    return np.array(gradients), path[-1]


@pytest.mark.parametrize("delay", [0, 1, 7])
def test_run_is_the_loop(own_key, noise, delay):
    run = delayed_sgd(own_key, CURVATURE, 0.1, delay, 0.3, STEPS, initial=INITIAL)
    gradients, last = by_loop(0.3 * noise, CURVATURE, 0.1, delay, STEPS, INITIAL)
    np.testing.assert_allclose(run.gradients, gradients, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(run.parameters, last, rtol=1e-12)


def test_first_gradients_are_at_the_start_for_one_step_more_than_the_delay(own_key):
    """By hand: the gradient is λx_0 for τ + 1 = 8 steps, then that of one update later."""
    run = delayed_sgd(own_key, CURVATURE, 0.1, 7, 0.0, STEPS, initial=INITIAL)
    start = np.tile(CURVATURE * INITIAL, (8, 1))
    np.testing.assert_allclose(run.gradients[:8], start, rtol=1e-15)
    np.testing.assert_allclose(run.gradients[8], start[0] * (1 - 0.1 * CURVATURE), rtol=1e-14)


@pytest.mark.parametrize("delay", [0, 7])
def test_moments_are_those_of_the_run(own_key, noise, delay):
    found = delayed_sgd_moments(own_key, CURVATURE, 0.1, delay, 0.3, STEPS, burn_in=70)
    gradients, _ = by_loop(0.3 * noise, CURVATURE, 0.1, delay, STEPS, np.zeros(3))
    later, earlier = gradients[71:], gradients[70:-1]
    norms = np.linalg.norm(later, axis=1) * np.linalg.norm(earlier, axis=1)
    np.testing.assert_allclose(
        found.cosine, ((later * earlier).sum(axis=1) / norms).mean(), rtol=1e-12
    )
    np.testing.assert_allclose(found.lag_product, (later * earlier).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.second_moment, (later**2).mean(axis=0), rtol=1e-12)


def test_one_step_one_mode_and_a_longer_run_begins_alike(own_key, noise):
    one = delayed_sgd(own_key, [0.5], 0.1, 3, 0.0, 1, initial=[2.0])
    np.testing.assert_allclose(one.gradients, [[1.0]], rtol=1e-15)
    np.testing.assert_allclose(one.parameters, [1.9], rtol=1e-15)
    short = delayed_sgd(own_key, CURVATURE, 0.1, 7, 0.3, 3)
    gradients, _ = by_loop(0.3 * noise, CURVATURE, 0.1, 7, 3, np.zeros(3))
    np.testing.assert_allclose(short.gradients, gradients, rtol=1e-12)
    least = delayed_sgd_moments(own_key, [0.5], 0.1, 3, 0.0, 2)
    assert float(least.cosine) == 0.0  # gradients are 0: no angle


def test_every_noise_counts_alone_at_no_curvature(own_key, noise):
    run = delayed_sgd(own_key, np.zeros(3), 0.1, 7, 0.3, STEPS, initial=INITIAL)
    np.testing.assert_allclose(run.gradients, 0.3 * noise[:STEPS], rtol=1e-12)


def test_single_precision_is_close_and_stays_single(own_key):
    double = delayed_sgd(own_key, CURVATURE, 0.1, 7, 0.0, STEPS, initial=INITIAL)
    single = delayed_sgd(own_key, CURVATURE.astype(np.float32), 0.1, 7, 0.0, STEPS, initial=INITIAL)
    assert single.gradients.dtype == single.parameters.dtype == np.float32
    np.testing.assert_allclose(single.gradients, double.gradients, atol=1e-5)
    integers = delayed_sgd(own_key, [1, 2, 1], 0.1, 7, 0, STEPS, initial=[1, 0, 0])
    assert integers.gradients.dtype == np.float64


def test_maps_over_steps_and_is_traced_once(own_key):
    count = 0

    @jax.jit
    @jax.vmap
    def mapped(step_size):
        nonlocal count
        count += 1
        return delayed_sgd(own_key, CURVATURE, step_size, 7, 0.3, STEPS).parameters

    steps = np.array([0.05, 0.1])
    found, again = mapped(steps), mapped(2 * steps)
    assert count == 1
    expected = delayed_sgd(own_key, CURVATURE, 0.1, 7, 0.3, STEPS, initial=np.zeros(3)).parameters
    np.testing.assert_allclose(found[1], expected, rtol=1e-12)
    np.testing.assert_allclose(again[0], expected, rtol=1e-12)


def test_same_run_as_the_general_loop(own_key):
    """`delayed_descent` keeps its memory by another rule; without noise the two agree."""
    run = delayed_sgd(own_key, CURVATURE, 0.1, 7, 0.0, STEPS, initial=INITIAL)
    general = delayed_descent(own_key, lambda _, x: CURVATURE * x, INITIAL, 0.1, 7, STEPS)
    np.testing.assert_allclose(run.parameters, general.parameters, rtol=1e-12)


def test_past_the_limit_a_run_grows_beyond_all_numbers(own_key):
    run = delayed_sgd(own_key, [1e30, 0.2, 0.2], 1.0, 7, 0.0, STEPS, initial=INITIAL)
    assert not np.isfinite(run.parameters[0])
    assert np.isfinite(run.gradients[:, 1]).all()


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "changed"),
    [
        ("key", {"key": 0}),
        ("key", {"key": np.zeros(2, np.uint32)}),
        ("curvature", {"curvature": 1.0}),
        ("curvature", {"curvature": []}),
        ("curvature", {"curvature": np.ones((2, 2))}),
        ("curvature", {"curvature": [1.0, np.nan]}),
        ("curvature", {"curvature": ["a"]}),
        ("step_size", {"step_size": 0.0}),
        ("step_size", {"step_size": [0.1]}),
        ("step_size", {"step_size": np.inf}),
        ("delay", {"delay": -1}),
        ("delay", {"delay": 1.5}),
        ("noise_std", {"noise_std": -0.1}),
        ("noise_std", {"noise_std": np.ones(3)}),
        ("num_steps", {"num_steps": 0}),
        ("num_steps", {"num_steps": 2.0}),
        ("initial", {"initial": [1.0]}),
        ("initial", {"initial": [1.0, np.nan, 0.0]}),
        ("initial", {"initial": [1e300, 0, 0], "curvature": CURVATURE.astype(np.float32)}),
        ("burn_in", {"burn_in": 9}),
        ("burn_in", {"burn_in": -1}),
        ("num_steps", {"num_steps": 1, "burn_in": 0}),
    ],
)
def test_bad_input_is_named(own_key, named, changed):
    good = {
        "key": own_key,
        "curvature": CURVATURE,
        "step_size": 0.1,
        "delay": 1,
        "noise_std": 0.3,
        "num_steps": 10,
    }
    call = delayed_sgd_moments if "burn_in" in changed else delayed_sgd
    with pytest.raises(ValueError, match=rf"^{named}: "):
        call(**(good | changed))


def test_static_arguments_may_not_be_traced(own_key):
    with pytest.raises(ValueError, match=r"^delay: got a traced value"):
        jax.jit(lambda tau: delayed_sgd(own_key, CURVATURE, 0.1, tau, 0.3, 3).parameters)(2)


def test_without_x64_numbers_are_narrowed_silently(own_key):
    with jax.enable_x64(False):
        run = delayed_sgd(own_key, np.array([1.0, 2.0]), 0.1, 1, 0.1, 3)
        assert run.parameters.dtype == np.float32
        with pytest.raises(ValueError, match=r"^curvature: got inf.* \(in float32\)"):
            delayed_sgd(own_key, np.array([1e300, 2.0]), 0.1, 1, 0.1, 3)
