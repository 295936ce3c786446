"""The closed form of the ReLU risk: quadrature, special angles, gradients at the awkward points."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.models import linear_gnn
from boundlab.models.gaussian_signals import aggregate, as_operator, relu_risk, squared_norm


def test_relu_risk_against_quadrature(operator, theta_star):
    """E(ReLU(u) − ReLU(v))² for the Gaussian pair (u, v), Gauss–Hermite in polar form by hand.

    (u, v) = L z: with z = r(cos t, sin t) the radius integrates to E r² = 2 and the angle is a
    smooth-by-pieces periodic function, integrated by a fine midpoint rule.
    """
    theta = np.array([0.4, 0.1, -0.9, 1.0, 0.2, -0.3])
    pair = np.stack([theta, theta_star]) @ operator
    root = np.linalg.cholesky(pair @ pair.T)
    t = (np.arange(400_000) + 0.5) * 2 * np.pi / 400_000
    u, v = root @ np.stack([np.cos(t), np.sin(t)])
    expected = 2 * np.mean((np.maximum(u, 0) - np.maximum(v, 0)) ** 2)
    got = relu_risk(jnp.asarray(operator), jnp.asarray(theta), jnp.asarray(theta_star))
    np.testing.assert_allclose(got, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("theta", "expected"),
    [
        ([1.0, 0.0], 0.0),  # θ = θ*
        ([0.0, 0.0], 0.5),  # b²/2
        ([-1.0, 0.0], 1.0),  # opposite: (a² + b²)/2
        ([0.0, 1.0], 1.0 - 1 / np.pi),  # orthogonal: (a² + b²)/2 − ab/π
        ([3.0, 0.0], 2.0),  # parallel: (a − b)²/2
    ],
)
def test_relu_risk_at_special_angles(theta, expected):
    star, theta = jnp.array([1.0, 0.0]), jnp.asarray(theta)
    np.testing.assert_allclose(relu_risk(jnp.ones(2), theta, star), expected, atol=1e-15)
    assert np.isfinite(jax.grad(relu_risk, argnums=(0, 1, 2))(jnp.ones(2), theta, star)).all()


def test_relu_risk_keeps_its_digits_close_to_the_teacher():
    """Near θ* the risk is ½‖δ‖²_M to leading order; the textbook form returns rounding there."""
    star = np.array([1.0, 2.0, -1.0], np.float32)
    delta = 1e-4 * np.array([0.5, 0.5, 1.5], np.float32)
    theta = star + delta
    got = relu_risk(jnp.ones(3, np.float32), jnp.asarray(theta), jnp.asarray(star))
    exact = relu_risk(jnp.ones(3), jnp.asarray(theta, np.float64), jnp.asarray(star, np.float64))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, exact, rtol=1e-4)
    np.testing.assert_allclose(exact, np.sum((theta - star).astype(float) ** 2) / 2, rtol=1e-3)


def test_relu_risk_lies_between_a_quarter_and_a_half_of_the_quadratic():
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((500, 3, 4))
    operator, theta, star = jnp.abs(draws[:, 0]), jnp.asarray(draws[:, 1]), jnp.asarray(draws[:, 2])
    risk = jax.vmap(relu_risk)(operator, theta, star)
    quadratic = np.sum((np.asarray(operator) * (draws[:, 1] - draws[:, 2])) ** 2, axis=1)
    assert np.all(risk >= quadratic / 4 * (1 - 1e-12))
    assert np.all(risk <= quadratic / 2 * (1 + 1e-12))


@pytest.mark.smoke
def test_quadratic_form_over_many_rows_is_the_one_of_numpy():
    """The kernel jit(vmap(θ ↦ ‖Gᵀθ‖²)) at 40,960 rows, which some versions get wrong on CPU."""
    rng = np.random.default_rng(1)
    G = rng.standard_normal((8, 8))
    rows = rng.standard_normal((40_960, 8))
    got = jax.jit(jax.vmap(squared_norm, in_axes=(None, 0)))(jnp.asarray(G), jnp.asarray(rows))
    np.testing.assert_allclose(got, np.sum((rows @ G) ** 2, axis=1), rtol=1e-12)
    diagonal = jax.jit(jax.vmap(squared_norm, in_axes=(None, 0)))(jnp.ones(8), jnp.asarray(rows))
    np.testing.assert_allclose(diagonal, np.sum(rows**2, axis=1), rtol=1e-12)
    np.testing.assert_allclose(aggregate(jnp.asarray(G), jnp.asarray(rows)), rows @ G.T, atol=1e-13)


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        (np.ones((2, 3)), "operator: got shape"),
        (np.ones((2, 2, 2)), "operator: got shape"),
        (1.0, "operator: got shape"),
        (np.array([1.0, np.nan]), "operator: got nan"),
        (np.eye(2, dtype=int), "operator: got values of type int"),
        (np.ones(2, np.float16), "operator: got values of type float16"),
    ],
)
def test_bad_operators_are_refused(bad, match):
    with pytest.raises(ValueError, match=match):
        as_operator(bad)


def test_every_product_is_taken_at_full_precision(key, operator, theta_star):
    """float32 products on an accelerator would otherwise be rounded to 10 bits."""
    G = operator.astype(np.float32)
    for run in (
        lambda k: linear_gnn.simulate_sgd(k, G, theta_star, 0.3, 0.4, 9),
        lambda k: linear_gnn.simulate_ridge(k, G, theta_star, 0.3, 0.4, 9),
        lambda k: linear_gnn.simulate_relu_ridge(k, G, theta_star, 0.3, 0.4, 9),
    ):
        program = str(jax.make_jaxpr(run)(key))
        assert program.count("dot_general") == program.count("precision=(Precision.HIGHEST") > 3
