"""The exact risk of tail-averaged SGD against independent routes: quadrature over the algorithm
itself, full matrices with all pairs of iterates, a plain loop, samples, and worked values.
"""

import numpy as np
import pytest

from boundlab.theory.excess_risk import sgd

# n = 32, G = L + I, M scaled to trace 1, σ² = ¼, γ = γ_max/2, θ*_i² = 1, default tail.
GOLDEN = {
    ("cycle", 64): (0.160212, 0.112855),
    ("path", 64): (0.158893, 0.112174),
    ("hypercube", 64): (0.183316, 0.114442),
    ("star", 64): (0.093858, 0.012505),
    ("complete", 64): (0.202424, 0.126066),
    ("cycle", 256): (0.015598, 0.068574),
    ("star", 256): (0.064793, 0.005119),
    ("complete", 256): (0.002344, 0.089031),
}


def laplacian(family):
    """Laplacian of 32 nodes, built from the definition of the family."""
    node = np.arange(32)
    gap = np.abs(node[:, None] - node[None, :])
    distance = np.bitwise_count(node[:, None] ^ node[None, :])
    adjacency = {
        "cycle": (gap == 1) | (gap == 31),
        "path": gap == 1,
        "star": (gap > 0) & ((node[:, None] == 0) | (node[None, :] == 0)),
        "complete": gap > 0,
        "hypercube": distance == 1,
    }[family].astype(float)
    return np.diag(adjacency.sum(0)) - adjacency


def graph_spectrum(family):
    mu = (np.linalg.eigvalsh(laplacian(family)) + 1.0) ** 2
    return mu / mu.sum()


def geometric(x, terms):
    """Σ_{k=1}^{terms} (1 − x)^k, without the cancellation of the textbook form."""
    if terms == 0:
        return np.zeros_like(x)
    safe = np.where(x > 0, x, 0.5)
    value = (1 - safe) * -np.expm1(terms * np.log1p(-safe)) / safe
    return np.where(x * terms < 1e-12, terms, value)


def plain_loop(mu, delta0_sq, noise, step, count, start):
    """The recursion with its geometric weights, in NumPy; μ E δ̄² per direction."""
    x, s, total = step * mu, np.array(delta0_sq, dtype=float), np.zeros_like(mu)
    for t in range(count):
        if t >= start:
            total += (1 + 2 * geometric(x, count - 1 - t)) * s
        s = (1 - 2 * x + 2 * x**2) * s + step * x * (mu @ s + noise)
    return mu * total / (count - start) ** 2


@pytest.mark.smoke
@pytest.mark.parametrize(("family", "count"), GOLDEN)
def test_worked_values(family, count):
    mu = graph_spectrum(family)
    step = sgd.stability_limit(mu) / 2
    got = sgd.tail_averaged_risk(mu, np.ones(32), 0.25, step, count)
    np.testing.assert_allclose([got.bias.sum(), got.variance.sum()], GOLDEN[family, count], 1e-4)


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("start", [0, 1])
def test_quadrature_over_the_algorithm(count, start):
    """Gauss–Hermite sums over every sample: R is of degree ≤ 5 in each, so three nodes are exact."""
    rng = np.random.default_rng(3)
    rotation = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    mu, step, noise = np.array([0.7, 0.2]), 0.6, 0.3
    delta0 = np.array([0.9, -1.3])  # in the eigenbasis
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)
    weights = weights / weights.sum()
    dims = 3 * (count - 1)
    points = np.stack(np.meshgrid(*[nodes] * dims, indexing="ij"), -1).reshape(-1, count - 1, 3)
    mass = np.prod(np.stack(np.meshgrid(*[weights] * dims, indexing="ij"), -1), -1).ravel()
    delta = np.tile(rotation @ delta0, (len(points), 1))
    iterates = [delta]
    for t in range(count - 1):
        m = points[:, t, :2] * np.sqrt(mu) @ rotation.T
        error = np.sum(m * delta, 1) - np.sqrt(noise) * points[:, t, 2]
        delta = delta - step * error[:, None] * m
        iterates.append(delta)
    average = np.mean(iterates[start:], axis=0) @ rotation
    expected = mu * (mass @ average**2)
    got = sgd.tail_averaged_risk(mu, delta0**2, noise, step, count, start)
    np.testing.assert_allclose(got.bias + got.variance, expected, 1e-12)


def test_full_matrices_and_all_pairs_of_iterates():
    """S ← (I−γM)S(I−γM) + γ²(MSM + tr(MS)M) + γ²σ²M, then every block E δ_t δ_uᵀ."""
    rng = np.random.default_rng(5)
    basis = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    mu = np.array([0.6, 0.3, 0.05])
    M, step, noise, count = basis * mu @ basis.T, 0.7, 0.4, 6
    delta0 = rng.normal(size=3)
    decay = np.eye(3) - step * M
    S = [np.outer(delta0, delta0)]
    for _ in range(count - 1):
        s = S[-1]
        noisy = step**2 * (M @ s @ M + np.trace(M @ s) * M + noise * M)
        S.append(decay @ s @ decay + noisy)
    for start in range(count):
        second = np.zeros((3, 3))
        for t in range(start, count):
            for u in range(start, count):
                power = np.linalg.matrix_power(decay, abs(t - u))
                second += power @ S[t] if u > t else S[u] @ power
        expected = mu * np.diag(basis.T @ second @ basis) / (count - start) ** 2
        got = sgd.tail_averaged_risk(mu, (basis.T @ delta0) ** 2, noise, step, count, start)
        np.testing.assert_allclose(got.bias + got.variance, expected, 1e-12)


@pytest.mark.parametrize(("count", "start"), [(1, 0), (2, None), (3, None), (40, 0), (41, 40)])
def test_plain_loop(count, start):
    rng = np.random.default_rng(11)
    mu = np.concatenate([rng.random(5), [0.0, 1e-9, 1e-200]])
    delta0_sq = rng.random(8) * 10
    step, first = 0.9 * sgd.stability_limit(mu), count // 2 if start is None else start
    got = sgd.tail_averaged_risk(mu, delta0_sq, 0.5, step, count, start)
    loop = [
        plain_loop(mu, d, s, float(step), count, first) for d, s in ((delta0_sq, 0), (0 * mu, 0.5))
    ]
    np.testing.assert_allclose(got.bias, loop[0], 1e-12)
    np.testing.assert_allclose(got.variance, loop[1], 1e-12)


@pytest.mark.smoke
def test_forty_thousand_directions():
    rng = np.random.default_rng(2)
    mu, delta0_sq = rng.random(50_000) / 25_000, rng.random(50_000)
    got = sgd.tail_averaged_risk(mu, delta0_sq, 0.5, 0.8, 9)
    np.testing.assert_allclose(got.bias, plain_loop(mu, delta0_sq, 0, 0.8, 9, 4), 1e-12)
    np.testing.assert_allclose(got.variance, plain_loop(mu, 0 * mu, 0.5, 0.8, 9, 4), 1e-12)


def test_samples_of_the_algorithm():
    """20,000 runs; |z| < 4.5 for tail average and last iterate: a false alarm in 7e-6 of seeds each."""
    rng = np.random.default_rng(8)
    mu, theta, noise, count, runs = np.array([0.5, 0.3, 0.15, 0.05]), np.ones(4), 0.25, 24, 20_000
    step = 0.4 * float(sgd.stability_limit(mu))
    delta, total = np.tile(-theta, (runs, 1)), np.zeros((runs, 4))
    for t in range(count):
        if t >= count // 2:
            total += delta
        last, m = delta, rng.normal(size=(runs, 4)) * np.sqrt(mu)
        error = np.sum(m * delta, 1) - np.sqrt(noise) * rng.normal(size=runs)
        delta = delta - step * error[:, None] * m
    got = sgd.tail_averaged_risk(mu, theta**2, noise, step, count)
    curve = sgd.risk_curve(mu, theta**2, noise, step, count)
    for average, expected in ((total / 12, sum(got).sum()), (last, curve[-1])):
        risk = average**2 @ mu
        z = (risk.mean() - expected) / (risk.std(ddof=1) / np.sqrt(runs))
        assert abs(z) < 4.5
        # The same samples tell the risk from one that is 5 % off.
        assert abs(risk.mean() - 0.95 * expected) / (risk.std(ddof=1) / np.sqrt(runs)) > 4.5


def test_one_sample_leaves_the_start():
    got = sgd.tail_averaged_risk([0.2, 1.0], [3.0, 2.0], 5.0, 0.1, 1)
    np.testing.assert_allclose(got.bias, [0.6, 2.0], 1e-15)
    np.testing.assert_array_equal(got.variance, [0.0, 0.0])


def test_two_samples_by_hand():
    """N = 2, s = 1: θ̄ = θ_1, so e_1 = (1 − 2x + 2x²)e_0 + x²(R_0 + σ²) in one dimension."""
    x, start, noise = 0.3 * 2.0, 2.0 * 1.5, 0.7
    got = sgd.tail_averaged_risk([2.0], [1.5], noise, 0.3, 2)
    np.testing.assert_allclose(got.bias, [(1 - 2 * x + 3 * x**2) * start], 1e-14)
    np.testing.assert_allclose(got.variance, [x**2 * noise], 1e-14)


def test_scaling_and_order():
    """M → cM, γ → γ/c, θ* → θ*/√c leaves R; so does the order of the directions."""
    rng = np.random.default_rng(4)
    mu, delta0_sq = rng.random(12) / 6, rng.random(12)
    base = sgd.tail_averaged_risk(mu, delta0_sq, 0.5, 0.6, 50)
    scaled = sgd.tail_averaged_risk(1e7 * mu, delta0_sq / 1e7, 0.5, 0.6e-7, 50)
    turned = sgd.tail_averaged_risk(mu[::-1], delta0_sq[::-1], 0.5, 0.6, 50)
    for part, same, reverse in zip(base, scaled, turned, strict=True):
        np.testing.assert_allclose(part, same, 1e-12)
        np.testing.assert_allclose(part, reverse[::-1], 1e-12)


def test_start_and_noise_superpose():
    """Bias and variance add up to a run with both (here: the plain loop with both)."""
    rng = np.random.default_rng(6)
    mu, delta0_sq = rng.random(9) / 5, rng.random(9)
    both = plain_loop(mu, delta0_sq, 0.7, 0.5, 60, 30)
    got = sgd.tail_averaged_risk(mu, delta0_sq, 0.7, 0.5, 60)
    np.testing.assert_allclose(got.bias + got.variance, both, 1e-12)


@pytest.mark.parametrize(
    ("decay", "source", "slopes"), [(2.0, 1.5, (-0.25, -0.5)), (1.5, 2.0, (-2 / 3, -1 / 3))]
)
def test_power_law_rates(decay, source, slopes):
    """μ_i = i^{−a}, p_i = i^{−b}, fixed γ: bias ~ N^{−(b−1)/a}, variance ~ N^{−(1−1/a)}."""
    index = np.arange(1.0, 20_001.0)
    mu, power = index**-decay, index**-source
    step, counts = 0.3 * float(sgd.stability_limit(mu)), (1000, 4000)
    runs = [sgd.tail_averaged_risk(mu, power / mu, 1.0, step, n) for n in counts]
    ratio = np.log([[part.sum() for part in run] for run in runs])
    np.testing.assert_allclose((ratio[1] - ratio[0]) / np.log(4.0), slopes, atol=0.02)


def test_small_step_limit():
    """The distance to the linear filter is of first order in γ at fixed γN."""
    rng = np.random.default_rng(9)
    mu = rng.random(20) ** 3
    mu /= mu.sum()
    mu[0] = 0.0
    delta0_sq, errors = rng.random(20), []
    for halvings in range(3):
        step, count = 0.04 / 2**halvings, 500 * 2**halvings
        exact = sgd.tail_averaged_risk(mu, delta0_sq, 0.5, step, count)
        limit = sgd.filter_limit(mu, delta0_sq, 0.5, step, count)
        errors.append([float(e.sum() / f.sum() - 1) for e, f in zip(exact, limit, strict=True)])
    errors = np.abs(errors)
    assert errors.max() < 0.03
    np.testing.assert_allclose(errors[:-1] / errors[1:], 2.0, atol=0.1)


def test_filter_functions_against_quadrature():
    """φ and f for training times over 14 decades, one direction, against adaptive integrals."""
    from scipy.integrate import quad

    times = np.array([0.0, 1e-7, 1e-3, 0.5, 7.9, 8.1, 60.0, 1e4, 1e7])
    got = sgd.filter_limit(times, np.where(times > 0, 1.0, 5.0), 3.0, 0.01, 100)
    for x, bias, variance in zip(times, got.bias, got.variance, strict=True):
        phi = quad(lambda u, x=x: np.exp(-x * u), 0.5, 1, points=[0.5 + min(0.4, 20 / (x + 1))])[0]
        cut = 1 - min(0.25, 30 / (x + 1))
        pieces = [
            quad(lambda u, x=x: np.expm1(-x * (1 - u)) * np.expm1(-2 * x * u), *ends, epsabs=0)[0]
            for ends in ((0.5, cut), (cut, 1.0))
        ]
        np.testing.assert_allclose(bias, x * (2 * phi) ** 2, 1e-9, atol=1e-25)
        np.testing.assert_allclose(variance, 3.0 / 100 * 4 * sum(pieces), 1e-9)
