"""Simulated SGD: a plain NumPy loop on the same draws, z-tests against exact means, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.models.linear_gnn import simulate_sgd

ALGORITHMS = ("linear", "glmtron", "relu")


def drawn_samples(key, n, num_samples, dtype):
    """The normal numbers of a run, by the derivation that `simulate_sgd` documents."""
    blocks = -(-(num_samples - 1) // 8)
    signal_key, noise_key = jax.random.split(key)
    signals = jax.vmap(lambda k: jax.random.normal(k, (8, n), dtype))(
        jax.random.split(signal_key, blocks)
    )
    noise = jax.random.normal(noise_key, (8 * blocks,), dtype)
    return np.asarray(signals, np.float64).reshape(-1, n), np.asarray(noise, np.float64)


def textbook_run(signals, noise, G, theta_star, step_size, num_samples, tail, algorithm, theta):
    """One update a sample in float64; the mean of the iterates; the risk by the textbook formula."""
    iterates = [theta]
    for t in range(num_samples - 1):
        m = G @ signals[t]
        u, v = m @ theta, m @ theta_star
        if algorithm != "linear":
            u, v = max(u, 0.0), max(v, 0.0)
        residual = u - v - noise[t]
        if algorithm == "relu":
            residual *= u > 0
        theta = theta - step_size * residual * m
        iterates.append(theta)
    average = np.mean(iterates[tail:], axis=0)
    M = G @ G.T
    if algorithm == "linear":
        return (average - theta_star) @ M @ (average - theta_star)
    a, b = np.sqrt(average @ M @ average), np.sqrt(theta_star @ M @ theta_star)
    phi = np.arccos(average @ M @ theta_star / (a * b))
    return a * a / 2 + b * b / 2 - a * b / np.pi * (np.sin(phi) + (np.pi - phi) * np.cos(phi))


THETA0 = np.array([0.2, 0.1, -0.3, 0.5, 0.0, 0.4])
# One shape for most tests, so that it is compiled once: 22 updates leave the last block ragged.
NUM_SAMPLES, TAIL = 23, 5


@pytest.mark.smoke
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-12), (np.float32, 2e-5)])
def test_run_is_the_textbook_loop_on_the_same_draws(
    key, operator, theta_star, algorithm, dtype, rtol
):
    G = operator + 0.05 * np.triu(np.ones((6, 6)), 1)  # not symmetric
    signals, noise = drawn_samples(key, 6, NUM_SAMPLES, dtype)
    expected = textbook_run(
        signals, 0.3 * noise, G, theta_star, 0.4, NUM_SAMPLES, TAIL, algorithm, THETA0
    )
    got = simulate_sgd(
        key, G.astype(dtype), theta_star, 0.3, 0.4, NUM_SAMPLES, TAIL, algorithm, theta0=THETA0
    )
    assert got.dtype == dtype
    np.testing.assert_allclose(got, expected, rtol=rtol)


@pytest.mark.parametrize(("num_samples", "tail"), [(9, 0), (2, None)])
def test_averaging_windows(key, operator, theta_star, num_samples, tail):
    """A whole block with every iterate averaged, and the default half of a single update."""
    signals, noise = drawn_samples(key, 6, num_samples, np.float64)
    start = num_samples // 2 if tail is None else tail
    expected = textbook_run(
        signals, 0.3 * noise, operator, theta_star, 0.4, num_samples, start, "linear", np.zeros(6)
    )
    got = simulate_sgd(key, operator, theta_star, 0.3, 0.4, np.int64(num_samples), tail)
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_long_run_is_the_textbook_loop(key):
    """40,001 samples in float32: neither the iterate nor its average drifts."""
    g, star = np.array([0.9, 0.5, 0.1]), np.array([1.0, -2.0, 3.0])
    signals, noise = drawn_samples(key, 3, 40_001, np.float32)
    expected = textbook_run(
        signals, 0.1 * noise, np.diag(g), star, 0.05, 40_001, 20_000, "linear", np.zeros(3)
    )
    got = simulate_sgd(key, g.astype(np.float32), star, 0.1, 0.05, 40_001)
    np.testing.assert_allclose(got, expected, rtol=1e-4)


def test_a_longer_run_begins_with_the_same_samples(key, operator, theta_star):
    """With the tail at the last iterate only, a run of N samples is a prefix of a longer one."""
    short, _ = drawn_samples(key, 6, 20, np.float64)
    long, _ = drawn_samples(key, 6, 200, np.float64)
    np.testing.assert_array_equal(short, long[: len(short)])


@pytest.mark.parametrize("algorithm", ["linear", "glmtron"])
def test_diagonal_operator_is_the_matrix_with_that_diagonal(key, theta_star, algorithm):
    g = np.array([0.7, 0.5, 0.4, 0.25, 0.15, 0.1])
    arguments = (theta_star, 0.3, 0.4, NUM_SAMPLES, TAIL, algorithm)
    np.testing.assert_allclose(
        simulate_sgd(key, g, *arguments), simulate_sgd(key, np.diag(g), *arguments), rtol=1e-12
    )


def test_one_sample_leaves_the_start(key, operator, theta_star):
    risk = simulate_sgd(key, operator, theta_star, 0.3, 0.4, 1, theta0=THETA0)
    delta = THETA0 - theta_star
    np.testing.assert_allclose(risk, delta @ operator @ operator.T @ delta, rtol=1e-13)


def test_scaling_the_operator_down_and_the_teacher_up_changes_nothing(key, operator, theta_star):
    """M → cM, γ → γ/c, θ* → θ*/√c leave the risk as it is."""
    plain = simulate_sgd(key, operator, theta_star, 0.3, 0.4, NUM_SAMPLES, TAIL)
    scaled = simulate_sgd(key, 2 * operator, theta_star / 2, 0.3, 0.1, NUM_SAMPLES, TAIL)
    np.testing.assert_allclose(scaled, plain, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_relu_sgd_never_leaves_zero(key, operator, theta_star, dtype):
    arguments = (key, operator.astype(dtype), theta_star, 0.3, 0.4, NUM_SAMPLES, TAIL)
    half = theta_star @ operator @ operator.T @ theta_star / 2
    stuck = simulate_sgd(*arguments, "relu")
    np.testing.assert_allclose(stuck, half, rtol=20 * np.finfo(dtype).eps)
    assert abs(float(simulate_sgd(*arguments, "glmtron")) / half - 1) > 0.1


def test_mean_risk_in_one_dimension_is_the_exact_one(key):
    """One node, last iterate: s ← (1 − 2γμ + 3γ²μ²)s + γ²μσ² from Gaussian moments by hand."""
    mu, sigma, step, star, num_samples = 0.8, 0.5, 0.3, 1.5, 12
    s = star**2
    for _ in range(num_samples - 1):
        s = (1 - 2 * step * mu + 3 * (step * mu) ** 2) * s + step**2 * mu * sigma**2
    for dtype, seed in ((np.float32, 0), (np.float64, 1)):
        keys = jax.random.split(jax.random.fold_in(key, seed), 20_000)
        g = np.array([np.sqrt(mu)], dtype)
        run = jax.jit(
            jax.vmap(lambda k, g=g: simulate_sgd(k, g, [star], sigma, step, num_samples, 11))
        )
        risks = np.asarray(run(keys), np.float64)
        z = (risks.mean() - mu * s) / (risks.std() / np.sqrt(len(risks)))
        assert abs(z) < 4.5


def test_mean_risk_of_one_glmtron_update_is_the_exact_one(key):
    """One update from 0 in one dimension, θ_1 = γ(ReLU(mθ*) + ε)m: the mean risk by quadrature."""
    mu, sigma, step, star = 0.8, 0.5, 0.3, 1.5
    keys = jax.random.split(jax.random.fold_in(key, 2), 20_000)
    g = np.array([np.sqrt(mu)])
    run = jax.vmap(lambda k: simulate_sgd(k, g, [star], sigma, step, 2, 1, algorithm="glmtron"))
    risks = np.asarray(jax.jit(run)(keys))
    # θ and θ* are parallel or opposite in one dimension: 2Δ = ½μ(θ − θ*)² or ½μ(θ² + θ*²), that is
    # ½μ(θ − θ*)² + μθ*·min(θ, 0), averaged over (m, ε).
    grid, spacing = np.linspace(-9, 9, 1801, retstep=True)
    weights = np.exp(-(grid**2) / 2) * spacing / np.sqrt(2 * np.pi)
    m = np.sqrt(mu) * grid[:, None]
    noise = sigma * grid[None, :]
    theta = step * (np.maximum(m * star, 0) + noise) * m
    value = mu / 2 * (theta - star) ** 2 + mu * star * np.minimum(theta, 0)
    expected = weights @ value @ weights
    second = step**2 * (1.5 * mu**2 * star**2 + sigma**2 * mu)  # E θ_1²
    np.testing.assert_allclose(weights @ theta**2 @ weights, second, rtol=1e-10)
    z = (risks.mean() - expected) / (risks.std() / np.sqrt(len(risks)))
    assert abs(z) < 4.5


def test_runs_differentiate_and_batch_over_every_float(key, operator, theta_star):
    G = jnp.asarray(operator)

    def run(step, sigma, G):
        return simulate_sgd(key, G, theta_star, sigma, step, NUM_SAMPLES, TAIL)

    h = 1e-6
    slope = (run(0.4 + h, 0.3, G) - run(0.4 - h, 0.3, G)) / (2 * h)
    np.testing.assert_allclose(jax.jit(jax.grad(run))(0.4, 0.3, G), slope, rtol=1e-6)
    steps = np.array([0.1, 0.4])
    batch = jax.jit(jax.vmap(run, in_axes=(0, 0, None)))(steps, np.array([0.0, 0.3]), G)
    np.testing.assert_allclose(batch[1], run(0.4, 0.3, G), rtol=1e-12)
    np.testing.assert_allclose(batch[0], run(0.1, 0.0, G), rtol=1e-12)


def test_float32_ignores_the_x64_setting(key, operator, theta_star):
    """The draws state their type: x64 changes no number of a float32 run."""
    G = operator.astype(np.float32)
    wide = simulate_sgd(key, G, theta_star, 0.3, 0.4, NUM_SAMPLES, TAIL)
    with jax.enable_x64(False):
        narrow = simulate_sgd(key, G, theta_star, 0.3, 0.4, NUM_SAMPLES, TAIL)
    assert narrow.dtype == wide.dtype == np.float32
    np.testing.assert_allclose(narrow, wide, rtol=1e-6)


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
        ({"operator": np.ones((6, 5))}, "operator: got shape"),
        ({"theta_star": np.ones(5)}, "theta_star: got shape"),
        ({"theta_star": np.full(6, np.inf)}, "theta_star: got inf"),
        ({"noise_std": -0.1}, "noise_std: got -0.1"),
        ({"noise_std": np.ones(2)}, "noise_std: got shape"),
        ({"step_size": 0.0}, "step_size: got 0"),
        ({"step_size": np.nan}, "step_size: got nan"),
        ({"num_samples": 0}, "num_samples: got 0"),
        ({"num_samples": True}, "num_samples: got True"),
        ({"tail_start": 20}, "tail_start: got 20"),
        ({"tail_start": -1}, "tail_start: got -1"),
        ({"algorithm": "glm-tron"}, "algorithm: got 'glm-tron'.*did you mean 'glmtron'"),
        ({"theta0": np.ones(3)}, "theta0: got shape"),
    ],
)
def test_bad_arguments_are_refused(key, operator, theta_star, change, match):
    good = {
        "key": key,
        "operator": operator,
        "theta_star": theta_star,
        "noise_std": 0.3,
        "step_size": 0.4,
        "num_samples": 20,
    }
    with pytest.raises(ValueError, match=match):
        simulate_sgd(**(good | change))
