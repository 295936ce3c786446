"""What SGD's theory accepts: bad values are named, precision and transformations keep the result."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.theory.excess_risk import sgd

MU = np.array([0.5, 0.3, 0.2])
ONES = np.ones(3)
GOOD = {
    "mu": MU,
    "delta0_sq": ONES,
    "noise_variance": 0.25,
    "step_size": 0.1,
    "num_samples": 10,
}
RISKS = (sgd.tail_averaged_risk, sgd.risk_curve, sgd.risk_bounds, sgd.zou_bounds, sgd.filter_limit)
BAD_VALUES = [
    ("mu", np.array([0.5, np.nan, 0.2])),
    ("mu", np.array([0.5, -1e-9, 0.2])),
    ("mu", np.array([0.5, np.inf, 0.2])),
    ("mu", np.zeros(3)),
    ("mu", np.zeros(0)),
    ("mu", np.eye(3)),
    ("mu", 0.5),
    ("delta0_sq", np.array([1.0, np.nan, 1.0])),
    ("delta0_sq", -ONES),
    ("delta0_sq", np.ones(4)),
    ("delta0_sq", 1.0),
    ("noise_variance", -0.1),
    ("noise_variance", np.nan),
    ("noise_variance", ONES),
    ("step_size", 0.0),
    ("step_size", -0.1),
    ("step_size", np.nan),
    ("step_size", np.inf),
    ("step_size", ONES),
    ("num_samples", 0),
    ("num_samples", -3),
    ("num_samples", True),
]


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize(("name", "value"), BAD_VALUES)
def test_bad_value_is_named(risk, name, value):
    with pytest.raises(ValueError, match=f"^{name}: got"):
        risk(**{**GOOD, name: value})


@pytest.mark.parametrize("start", [-1, 10, 11])
@pytest.mark.parametrize("risk", [sgd.tail_averaged_risk, sgd.zou_tail_bound])
def test_tail_outside_the_run(risk, start):
    with pytest.raises(ValueError, match=r"^tail_start: got"):
        risk(**GOOD, tail_start=start)


@pytest.mark.parametrize("risk", [sgd.tail_averaged_risk, sgd.risk_bounds, sgd.stationary_risk])
@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_step_beyond_the_limit_is_refused_with_the_limit(risk, factor):
    limit = float(sgd.stability_limit(MU))
    step = {"step_size": factor * limit}
    keep = GOOD if risk is not sgd.stationary_risk else {"mu": MU, "noise_variance": 1.0}
    with pytest.raises(ValueError, match=r"^step_size: got") as error:
        risk(**{**keep, **step})
    named = float(str(error.value).split("stability_limit(mu) = ")[1].rstrip(")"))
    np.testing.assert_allclose(named, limit, 1e-11)
    risk(**{**keep, "step_size": limit * (1 - 1e-9)})


def test_published_bounds_state_their_own_range():
    with pytest.raises(ValueError, match=r"^step_size: got.*1/\(alpha Σmu\) = 0\.25"):
        sgd.zou_bounds(**{**GOOD, "step_size": 0.25}, alpha=4.0)
    with pytest.raises(ValueError, match=r"^num_samples: got 1"):
        sgd.zou_bounds(**{**GOOD, "num_samples": 1})
    for name in ("alpha", "beta"):
        with pytest.raises(ValueError, match=f"^{name}: got"):
            sgd.zou_bounds(**GOOD, **{name: 0.0})
    with pytest.raises(ValueError, match=r"^noise_variance: got"):
        sgd.zou_inflation(MU, ONES, 0.0, 10)


@pytest.mark.parametrize("risk", RISKS)
def test_lists_integers_and_numpy_scalars_are_numbers(risk):
    plain = risk([1, 2, 1], [1, 0, 3], 1, np.float32(0.0625), np.int64(9))
    arrays = risk(np.array([1.0, 2, 1]), jnp.array([1.0, 0, 3]), 1.0, 0.0625, 9)
    for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(arrays), strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == np.float64


@pytest.mark.parametrize("risk", RISKS)
def test_result_does_not_depend_on_the_callers_precision(risk):
    args = (MU, ONES, 0.25, 0.1, 10)
    with jax.enable_x64(False):
        narrow = risk(*args)
        with pytest.raises(ValueError, match="traced with x64 off"):
            jax.jit(lambda step: risk(MU, ONES, 0.25, step, 10))(0.1)
    for a, b in zip(jax.tree.leaves(narrow), jax.tree.leaves(risk(*args)), strict=True):
        assert a.dtype == np.float64
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("risk", RISKS)
def test_transformations(risk):
    """jit(vmap) over every float equals calls one by one; reverse mode equals differences."""
    rng = np.random.default_rng(0)
    mu, start = rng.random((4, 3)), rng.random((4, 3))
    noise, step = rng.random(4), 0.2 * rng.random(4)

    def total(mu, start, noise, step):
        return sum(jnp.sum(leaf) for leaf in jax.tree.leaves(risk(mu, start, noise, step, 7)))

    batch = jax.jit(jax.vmap(total))(mu, start, noise, step)
    single = [total(*args) for args in zip(mu, start, noise, step, strict=True)]
    np.testing.assert_allclose(batch, single, 1e-12)
    args = (mu[0], start[0], noise[0], step[0])
    grads = jax.jit(jax.grad(total, argnums=(0, 1, 2, 3)))(*args)
    for number, grad in enumerate(grads):
        # One random direction of each argument, second-order differences.
        direction = rng.normal(size=np.shape(args[number]))
        moved = [list(args) for _ in range(2)]
        for sign, shifted in zip((1, -1), moved, strict=True):
            shifted[number] = args[number] + sign * 1e-5 * direction
        expected = (total(*moved[0]) - total(*moved[1])) / 2e-5
        np.testing.assert_allclose(np.sum(grad * direction), expected, 1e-6, atol=1e-9)


@pytest.mark.parametrize("risk", [sgd.tail_averaged_risk, sgd.risk_bounds, sgd.zou_bounds])
def test_constants_inside_a_trace_are_still_checked(risk):
    got = jax.jit(lambda noise: risk(MU, ONES, noise, 0.1, 10))(0.25)
    for a, b in zip(got, risk(MU, ONES, 0.25, 0.1, 10), strict=True):
        np.testing.assert_allclose(a, b, 1e-14)
    with pytest.raises(ValueError, match=r"^step_size: got 9"):
        jax.jit(lambda noise: risk(MU, ONES, noise, 9.0, 10))(0.25)


def test_zero_eigenvalues_have_finite_derivatives():
    mu = np.array([0.6, 0.4, 0.0])
    for risk in RISKS:

        def total(mu, risk=risk):
            return sum(jnp.sum(v) for v in jax.tree.leaves(risk(mu, ONES, 0.25, 0.1, 8)))

        assert np.all(np.isfinite(jax.jit(jax.grad(total))(mu)))


def test_one_compilation_serves_every_number_of_samples():
    compiled = []

    def listen(event, *_args, **_kwargs):
        if event.endswith("backend_compile_duration"):
            compiled.append(event)

    mu = np.linspace(0.01, 0.05, 37)  # a length that no other test uses
    sgd.tail_averaged_risk(mu, np.ones(37), 0.25, 0.1, 11)
    sgd.risk_bounds(mu, np.ones(37), 0.25, 0.1, 11)
    jax.monitoring.register_event_duration_secs_listener(listen)
    sgd.tail_averaged_risk(mu[::-1], np.ones(37), 0.5, 0.2, 300, 17)
    sgd.risk_bounds(mu[::-1], np.ones(37), 0.5, 0.2, 301)
    assert not compiled
    sgd.tail_averaged_risk(mu[1:], np.ones(36), 0.5, 0.2, 300)
    assert compiled  # so the listener works


def test_best_step_size_against_a_dense_grid():
    rng = np.random.default_rng(12)
    for noise, count in ((0.01, 40), (1.0, 40), (30.0, 41), (1e4, 8)):
        mu, start = rng.random(6) ** 3, rng.random(6)
        best = float(sgd.best_step_size(mu, start, noise, count))
        limit = float(sgd.stability_limit(mu))
        grid = np.geomspace(1e-7 * limit, (1 - 1e-6) * limit, 4001)
        risks = jax.vmap(
            lambda g, mu=mu, start=start, noise=noise, count=count: sum(
                sgd.tail_averaged_risk(mu, start, noise, g, count)
            ).sum()
        )(grid)
        here = sum(sgd.tail_averaged_risk(mu, start, noise, best, count)).sum()
        assert here <= risks.min() * (1 + 1e-9)
        assert abs(np.log(best / grid[np.argmin(risks)])) < 2 * np.log(grid[1] / grid[0])


def test_best_step_size_keeps_the_derivative_of_the_least_risk():
    """Envelope theorem: d(min risk)/dσ² is the variance at σ² = 1 there."""
    mu, start = np.array([0.5, 0.3, 0.1]), np.ones(3)

    def least(noise):
        step = sgd.best_step_size(mu, start, noise, 20)
        return sum(sgd.tail_averaged_risk(mu, start, noise, step, 20)).sum()

    expected = (least(0.501) - least(0.499)) / 0.002
    np.testing.assert_allclose(jax.grad(least)(0.5), expected, 1e-5)
