"""Simulated ridge: dense formulas on the same draws, exact least squares, scikit-learn, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import Ridge

from boundlab.models.gaussian_signals import relu_risk
from boundlab.models.linear_gnn import RiskProfile, simulate_relu_ridge, simulate_ridge


def dense_formula(F, M, theta, sigma, ridge):
    """Bias and variance by the formulas of the docstring, with explicit inverses."""
    S = F.T @ F
    inverse = np.linalg.inv(S + ridge * np.eye(len(S)))
    bias = ridge**2 * theta @ inverse @ M @ inverse @ theta
    return bias, sigma**2 * np.trace(M @ inverse @ S @ inverse)


def drawn_design(key, shape, dtype=np.float64):
    design_key, noise_key = jax.random.split(key)
    normal = jax.random.normal(design_key, shape, dtype)
    return np.asarray(normal, np.float64), noise_key


@pytest.mark.smoke
@pytest.mark.parametrize("num_samples", [3, 6, 25])  # dual, square and primal
def test_signal_design_is_the_dense_formula(key, operator, theta_star, num_samples):
    G = operator + 0.05 * np.triu(np.ones((6, 6)), 1)  # not symmetric
    normal, _ = drawn_design(key, (num_samples, 6))
    expected = dense_formula(normal @ G.T, G @ G.T, theta_star, 0.4, 0.07)
    got = simulate_ridge(key, G, theta_star, 0.4, 0.07, num_samples)
    assert isinstance(got, RiskProfile)
    np.testing.assert_allclose(got, expected, rtol=1e-9)
    narrow = simulate_ridge(key, G.astype(np.float32), theta_star, 0.4, 0.07, num_samples)
    normal, _ = drawn_design(key, (num_samples, 6), np.float32)
    expected = dense_formula(normal @ G.T, G @ G.T, theta_star, 0.4, 0.07)
    assert narrow.bias.dtype == np.float32
    np.testing.assert_allclose(narrow, expected, rtol=1e-3)


def test_diagonal_operator_is_the_matrix_with_that_diagonal(key, theta_star):
    g = np.array([0.7, 0.5, 0.4, 0.25, 0.15, 0.1])
    for num_samples, reading in ((3, "signal"), (25, "signal"), (6, "node")):
        arguments = (theta_star, 0.4, 0.07, num_samples, reading)
        np.testing.assert_allclose(
            simulate_ridge(key, g, *arguments),
            simulate_ridge(key, np.diag(g), *arguments),
            rtol=1e-10,
        )


@pytest.mark.parametrize("p", [4, 9])
def test_node_design_is_the_dense_formula(key, operator, p):
    """Rows of F = GX are dependent; the test point is a fresh x ~ N(0, H), unaggregated."""
    rng = np.random.default_rng(p)
    h, theta = rng.uniform(0.2, 2.0, p), rng.standard_normal(p)
    G = operator + 0.05 * np.triu(np.ones((6, 6)), 1)
    normal, _ = drawn_design(key, (6, p))
    expected = dense_formula(G @ (normal * np.sqrt(h)), np.diag(h), theta, 0.4, 0.07)
    got = simulate_ridge(key, G, theta, 0.4, 0.07, 6, "node", feature_spectrum=h)
    np.testing.assert_allclose(got, expected, rtol=1e-9)
    plain = simulate_ridge(key, G, theta, 0.4, 0.07, 6, "node")
    np.testing.assert_allclose(
        plain, dense_formula(G @ normal, np.eye(p), theta, 0.4, 0.07), rtol=1e-9
    )


def test_zero_ridge_is_the_limit_of_small_ones(key, operator, theta_star):
    """Least squares for N > d, minimum norm for N < d, and no division by zero on the way."""
    for num_samples in (3, 25):
        F = drawn_design(key, (num_samples, 6))[0] @ operator.T
        inverse = np.linalg.pinv(F)
        projector = np.eye(6) - inverse @ F
        M = operator @ operator.T
        bias = theta_star @ projector @ M @ projector @ theta_star
        variance = 0.16 * np.trace(M @ inverse @ inverse.T)
        got = simulate_ridge(key, operator, theta_star, 0.4, 0.0, num_samples)
        np.testing.assert_allclose(got, (bias, variance), rtol=1e-9, atol=1e-20)
        gradient = jax.jit(
            jax.grad(
                lambda r, n=num_samples: sum(simulate_ridge(key, operator, theta_star, 0.4, r, n))
            )
        )(0.0)
        assert np.isfinite(gradient)


def test_directions_that_the_design_does_not_see_keep_their_bias(key):
    """A singular operator and no ridge: the unseen direction is unlearnt and weighs nothing."""
    g, theta = np.array([1.0, 0.5, 0.0]), np.array([1.0, 1.0, 5.0])
    got = simulate_ridge(key, g, theta, 0.4, 0.0, 10)
    reference = simulate_ridge(
        key, np.array([1.0, 0.5, 0.0]), np.array([1.0, 1.0, 0.0]), 0.4, 0.0, 10
    )
    np.testing.assert_allclose(got.bias, 0, atol=1e-20)
    np.testing.assert_allclose(got.variance, reference.variance, rtol=1e-12)
    # In the node reading the zero feature is invisible in the design and in the test point alike.
    node = simulate_ridge(key, np.ones(5), theta, 0.4, 0.0, 5, "node", feature_spectrum=[1, 0.5, 0])
    assert np.isfinite(node).all()


def test_least_squares_variance_is_exact_and_free_of_the_graph(key, operator, theta_star):
    """N > d + 1, λ = 0: bias 0 and mean variance σ²d/(N − d − 1) whatever G; isotropic N < d."""
    keys = jax.random.split(key, 4000)
    run = jax.jit(jax.vmap(lambda k: simulate_ridge(k, operator, theta_star, 0.5, 0.0, 20)))
    bias, variance = map(np.asarray, run(keys))
    np.testing.assert_allclose(bias, 0, atol=1e-20)
    z = (variance.mean() - 0.25 * 6 / 13) / (variance.std() / np.sqrt(4000))
    assert abs(z) < 4.5
    wide = jax.jit(jax.vmap(lambda k: simulate_ridge(k, np.ones(12), np.ones(12), 0.5, 0.0, 4)))
    bias, variance = map(np.asarray, wide(keys))
    for sample, exact in ((bias, 12 * (1 - 4 / 12)), (variance, 0.25 * 4 / (12 - 4 - 1))):
        assert abs((sample.mean() - exact) / (sample.std() / np.sqrt(4000))) < 4.5


def test_risk_of_drawn_labels_averages_to_bias_plus_variance(key, operator, theta_star):
    """scikit-learn's ridge on the same design, 4,000 draws of the noise."""
    F = drawn_design(key, (25, 6))[0] @ operator.T
    noise = 0.4 * np.random.default_rng(0).standard_normal((25, 4000))
    labels = (F @ theta_star)[:, None] + noise
    fitted = Ridge(alpha=0.07, fit_intercept=False).fit(F, labels).coef_
    risks = np.sum(((fitted - theta_star) @ operator) ** 2, axis=1)
    got = simulate_ridge(key, operator, theta_star, 0.4, 0.07, 25)
    z = (risks.mean() - sum(got)) / (risks.std() / np.sqrt(4000))
    assert abs(z) < 4.5


@pytest.mark.parametrize("num_samples", [3, 25])
def test_relu_ridge_is_scikit_learn_on_twice_the_labels(key, operator, theta_star, num_samples):
    normal, noise_key = drawn_design(key, (num_samples, 6))
    F = normal @ operator.T
    noise = 0.4 * np.asarray(jax.random.normal(noise_key, (num_samples,), np.float64))
    labels = np.maximum(F @ theta_star, 0) + noise
    fitted = Ridge(alpha=0.07, fit_intercept=False, solver="svd").fit(F, 2 * labels).coef_
    expected = relu_risk(jnp.asarray(operator), jnp.asarray(fitted), jnp.asarray(theta_star))
    got = simulate_relu_ridge(key, operator, theta_star, 0.4, 0.07, num_samples)
    np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_many_samples_and_many_directions(key):
    """40,960 rows through the Gram matrix, and 4,096 directions through the dual one."""
    g, theta = np.array([1.0, 0.3, 0.1]), np.array([1.0, 2.0, 3.0])
    F = drawn_design(key, (40_960, 3))[0] * g
    expected = dense_formula(F, np.diag(g**2), theta, 0.5, 200.0)
    np.testing.assert_allclose(
        simulate_ridge(key, g, theta, 0.5, 200.0, 40_960), expected, rtol=1e-10
    )

    spike = np.full(4096, 1 / 64.0)
    spike[0] = 1.0
    theta = np.zeros(4096)
    theta[0] = 1.0
    F = drawn_design(key, (8, 4096))[0] * spike
    dual = np.linalg.inv(F @ F.T + 0.1 * np.eye(8))
    residual = theta - F.T @ (dual @ (F @ theta))
    expected = (
        np.sum((spike * residual) ** 2),
        0.25 * np.sum(((F * spike).T @ dual) ** 2),
    )
    np.testing.assert_allclose(simulate_ridge(key, spike, theta, 0.5, 0.1, 8), expected, rtol=1e-9)


def test_ridge_batches_over_every_float(key, operator, theta_star):
    ridges = np.array([0.0, 0.07, 1.0])
    batch = jax.jit(
        jax.vmap(lambda r, G: simulate_ridge(key, G, theta_star, 0.4, r, 3), in_axes=(0, None))
    )(ridges, operator)
    for i, ridge in enumerate(ridges):
        single = simulate_ridge(key, operator, theta_star, 0.4, ridge, 3)
        np.testing.assert_allclose([b[i] for b in batch], single, rtol=1e-11, atol=1e-20)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"operator": np.full((6, 6), np.nan)}, "operator: got nan"),
        (
            {"operator": np.eye(6, dtype=np.float32), "theta_star": np.full(6, 1e300)},
            "theta_star: got inf.*float32",
        ),
        (
            {"operator": np.eye(6, dtype=np.float32), "noise_std": 1e300},
            "noise_std: got inf.*float32",
        ),
        ({"operator": None}, "operator: got"),
        ({"operator": "G"}, "operator: got"),
        ({"operator": np.zeros((0, 0))}, "operator: got shape"),
        ({"operator": np.zeros(0)}, "operator: got shape"),
        ({"operator": 1.0}, "operator: got shape"),
        ({"operator": np.eye(6) * 1j}, "operator: got values of type complex"),
        ({"operator": [[1.0], [1.0, 2.0]]}, "operator: got"),
        ({"key": 0}, "key: got a int"),
        ({"key": None}, "key: got a NoneType"),
        ({"key": "a"}, "key: got a str"),
        ({"key": np.zeros(2, np.uint32)}, "key: got uint32"),
        ({"key": jax.random.split(jax.random.key(0))}, r"key: got .* of shape \(2,\)"),
        ({"theta_star": np.ones(6) * 1j}, "theta_star: got values of type complex"),
        ({"theta_star": [[1.0], [1.0, 2.0]]}, "theta_star: got a list"),
        ({"theta_star": np.ones(5)}, "theta_star: got shape"),
        ({"noise_std": -0.1}, "noise_std: got -0.1"),
        ({"ridge": -1e-9}, "ridge: got -1e-09"),
        ({"ridge": np.nan}, "ridge: got nan"),
        ({"num_samples": 0}, "num_samples: got 0"),
        ({"reading": "nodes"}, "reading: got 'nodes'.*did you mean 'node'"),
        ({"reading": "node"}, "num_samples: got 9, expected 6"),
        ({"reading": "node", "num_samples": 6, "feature_spectrum": np.ones(5)}, "feature_spectrum"),
        (
            {"reading": "node", "num_samples": 6, "feature_spectrum": -np.ones(6)},
            "feature_spectrum",
        ),
        ({"feature_spectrum": np.ones(6)}, "feature_spectrum: got an array, expected None"),
    ],
)
def test_bad_arguments_are_refused(key, operator, theta_star, change, match):
    good = {
        "key": key,
        "operator": operator,
        "theta_star": theta_star,
        "noise_std": 0.4,
        "ridge": 0.1,
        "num_samples": 9,
    }
    with pytest.raises(ValueError, match=match):
        simulate_ridge(**(good | change))
    if not change.keys() & {"reading", "feature_spectrum"}:
        with pytest.raises(ValueError, match=match):
            simulate_relu_ridge(**(good | change))
