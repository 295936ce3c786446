"""GLM-tron and ReLU-SGD: step moments against quadrature, tail averages against simulation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.theory.excess_risk import mean_field, stability
from boundlab.theory.excess_risk import relu as theory

MU = np.arange(1.0, 65.0) ** -1.0
MU /= MU.sum()
TEACHER = np.random.default_rng(1).normal(size=64)
TEACHER /= np.sqrt(np.sum(MU * TEACHER**2))
STAR_SQ = float(np.sum(MU * TEACHER**2))


@pytest.mark.smoke
@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize(("a", "b", "phi"), [(1.3, 0.7, 2.0), (0.4, 1.5, 0.6), (1.0, 1.0, 1e-3)])
def test_step_moments_against_quadrature(gated: bool, a: float, b: float, phi: float) -> None:
    # M = I in three dimensions, θ and θ* in the plane of the first two. With m = r(cos t, sin t)
    # there, the factor is r·h(t): E r⁴ = 8 and E r² = 2 leave integrals over the angle t.
    own, star = np.array([a, 0.0]), b * np.array([np.cos(phi), np.sin(phi)])
    noise = 0.3

    # Between its kinks h is a trigonometric polynomial, which Gauss–Legendre nodes integrate.
    kinks = np.array([np.pi / 2, 3 * np.pi / 2, phi + np.pi / 2, phi + 3 * np.pi / 2])
    ends = np.r_[0.0, np.sort(kinks % (2 * np.pi)), 2 * np.pi]
    nodes, weights = np.polynomial.legendre.leggauss(40)
    half = np.diff(ends)[:, None] / 2
    angles = (ends[:-1, None] + half * (1 + nodes)).ravel()
    weights = (half * weights).ravel() / (2 * np.pi)
    normal = np.array([np.cos(angles), np.sin(angles)])
    gate = (own @ normal > 0).astype(float) if gated else np.ones_like(angles)
    factor = gate * (np.maximum(own @ normal, 0) - np.maximum(star @ normal, 0))

    step = mean_field.step_coefficients(
        jnp.float64(a**2),
        jnp.float64(b**2),
        jnp.float64(a * b * np.cos(phi)),
        jnp.float64(noise),
        gated,
    )
    pull = 2 * normal @ (weights * factor)
    np.testing.assert_allclose(step.own * own - step.teacher * star, pull, atol=1e-13)
    square = 8 * (normal * weights * factor**2) @ normal.T
    square += noise * 2 * (normal * weights * gate) @ normal.T
    curved = step.own_own * np.outer(own, own) + step.teacher_teacher * np.outer(star, star)
    curved += step.own_teacher * (np.outer(own, star) + np.outer(star, own))
    np.testing.assert_allclose(step.square * np.eye(2) + curved, square, atol=1e-12)
    # A direction outside the plane sees the mean square alone.
    outside = 2 * weights @ factor**2 + noise * weights @ gate
    np.testing.assert_allclose(step.square, outside, atol=1e-13)


def simulate(
    rng: np.random.Generator,
    step_size: float,
    noise_std: float,
    start: np.ndarray,
    gated: bool,
    runs: int = 1000,
    num_samples: int = 400,
) -> np.ndarray:
    """Risk of the tail average of each run, in NumPy, the update written out."""
    theta = np.tile(start, (runs, 1))
    total = np.zeros_like(theta)
    for t in range(num_samples):
        if t >= num_samples // 2:
            total += theta
        m = rng.standard_normal((runs, len(MU))) * np.sqrt(MU)
        u = np.einsum("rd,rd->r", m, theta)
        error = np.maximum(u, 0) - np.maximum(m @ TEACHER, 0) - noise_std * rng.normal(size=runs)
        theta = theta - step_size * (error * (u > 0) if gated else error)[:, None] * m
    average = total / (num_samples - num_samples // 2)
    norm_sq = average**2 @ MU
    cosine = average @ (MU * TEACHER) / np.sqrt(norm_sq * STAR_SQ)
    return np.asarray(theory.excess_risk(norm_sq, STAR_SQ, cosine))


@pytest.mark.parametrize(("step_size", "noise_std"), [(0.3, 1.0), (1.0, 0.3)])
@pytest.mark.parametrize("gated", [False, True])
def test_tail_average_against_simulation(gated: bool, step_size: float, noise_std: float) -> None:
    rng = np.random.default_rng(2)
    start = rng.normal(size=64) / 2 if gated else np.zeros(64)
    drawn = simulate(rng, step_size, noise_std, start, gated)
    formula = theory.relu_sgd_risk if gated else theory.glmtron_risk
    expected = float(formula(MU, TEACHER, noise_std**2, step_size, 400, None, start))
    error = drawn.std() / np.sqrt(len(drawn))
    assert error < 0.01 * expected
    # Mean field is an approximation: 2 % on top of the standard error, 3 % in all at most.
    assert abs(drawn.mean() - expected) < min(0.02 * expected + 3 * error, 0.03 * expected)


def test_start_at_zero() -> None:
    # ReLU-SGD never moves: R = b²/2 for every step size and sample size.
    for step_size, samples in ((0.1, 7), (1.0, 400)):
        stuck = theory.relu_sgd_risk(MU, TEACHER, 0.5, step_size, samples)
        np.testing.assert_allclose(stuck, STAR_SQ / 2, rtol=1e-14)
    # So does a start that is orthogonal to all inputs.
    flat = np.r_[MU[:-1], 0.0]
    aside = theory.relu_sgd_risk(flat, TEACHER, 0.5, 0.3, 400, None, np.eye(64)[63])
    np.testing.assert_allclose(aside, np.sum(flat * TEACHER**2) / 2, rtol=1e-14)
    assert float(theory.glmtron_risk(MU, TEACHER, 0.5, 0.3, 400)) < 0.3 * STAR_SQ
    # One sample: no update.
    np.testing.assert_allclose(
        theory.glmtron_risk(MU, TEACHER, 0.5, 0.3, 1), STAR_SQ / 2, rtol=1e-14
    )


def test_start_at_the_teacher() -> None:
    for formula in (theory.glmtron_risk, theory.relu_sgd_risk):
        still = formula(MU, TEACHER, 0.0, 0.3, 400, None, TEACHER)
        assert float(still) < 1e-12


def test_two_iterates_by_hand() -> None:
    # One direction, one update from θ = 1 towards θ* = 2 (φ = 0), average of θ_0 and θ_1:
    # GLM-tron moves by γ((2−1)r m + ε m), r = 1[m > 0]; E Δ = γ/2, E Δ² = γ²(3/2 + σ²).
    gamma, noise = 0.2, 0.5
    mean = 1 + gamma / 4
    square = 1 + gamma / 2 + gamma**2 * (1.5 + noise) / 4
    expected = theory.excess_risk(square, 4.0, mean * 2 / np.sqrt(4 * square))
    got = theory.glmtron_risk([1.0], [2.0], noise, gamma, 2, 0, [1.0])
    np.testing.assert_allclose(got, expected, rtol=1e-13)
    # SGD sees the noise on half of the inputs only.
    square = 1 + gamma / 2 + gamma**2 * (1.5 + noise / 2) / 4
    expected = theory.excess_risk(square, 4.0, mean * 2 / np.sqrt(4 * square))
    got = theory.relu_sgd_risk([1.0], [2.0], noise, gamma, 2, 0, [1.0])
    np.testing.assert_allclose(got, expected, rtol=1e-13)


@pytest.mark.parametrize("gated", [False, True])
def test_recursions_as_documented(gated: bool) -> None:
    # The docstrings' formulas in NumPy, the average by all pairs of iterates instead of sums.
    mu, star, p = np.array([0.5, 0.3, 0.2]), np.array([1.0, -2.0, 0.7]), np.array([-0.4, 0.0, 1.1])
    noise, gamma, samples, start = 0.3, 0.4, 9, 3
    if not gated:
        p = np.zeros(3)  # a = 0 at the first step
    q, b = p**2, np.sqrt(mu @ star**2)
    kept, given, means, squares = [], [], [], []
    for _ in range(samples):
        means.append(p)
        squares.append(q)
        a = np.sqrt(mu @ q)
        phi = np.arccos((mu * star) @ p / (a * b)) if a > 0 else np.pi / 2
        sine, cosine, rest = np.sin(phi), np.cos(phi), np.pi - phi
        by_own = b * sine / (np.pi * a) if a > 0 else 0.0
        by_star = a * sine / (np.pi * b)
        kernel = a * b / np.pi * (sine + rest * cosine)
        if gated:
            own, teacher = 0.5 - by_own / 2, rest / (2 * np.pi)
            square = noise / 2 + a**2 / 2 - kernel
            square += b**2 / (2 * np.pi) * (rest + sine * cosine)
            f_uu, f_uv = 1 - by_own * (1 + b * cosine / a), by_own - rest / np.pi
            f_vv = rest / np.pi - by_star
        else:
            own = teacher = 0.5
            square = noise + a**2 / 2 + b**2 / 2 - kernel
            f_uu, f_uv, f_vv = 1 - by_own, -rest / np.pi, 1 - by_star
        kept.append(1 - gamma * mu * own)
        given.append(gamma * mu * teacher * star)
        second = f_uu * q + 2 * f_uv * star * p + f_vv * star**2
        q = (2 * kept[-1] - 1) * q + 2 * given[-1] * p + gamma**2 * mu * (square + mu * second)
        p = kept[-1] * p + given[-1]

    norm_sq = inner = 0.0
    for first in range(start, samples):
        inner += (mu * star) @ means[first] / (samples - start)
        product = squares[first]  # E θ_first θ_t
        for t in range(first, samples):
            norm_sq += (1 if t == first else 2) * mu @ product / (samples - start) ** 2
            product = kept[t] * product + given[t] * means[first]
    angle = np.arccos(inner / (b * np.sqrt(norm_sq)))
    overlap = np.sin(angle) + (np.pi - angle) * np.cos(angle)
    expected = norm_sq / 2 + b**2 / 2 - b * np.sqrt(norm_sq) / np.pi * overlap
    formula = theory.relu_sgd_risk if gated else theory.glmtron_risk
    got = formula(mu, star, noise, gamma, np.int64(samples), np.int32(start), means[0])
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_transforms_and_precision() -> None:
    def risk(step_size: jax.Array, start: np.ndarray) -> jax.Array:
        return theory.relu_sgd_risk(MU, TEACHER, 0.5, step_size, 400, None, start)

    start = 0.5 * TEACHER[::-1]
    gradient = jax.jit(jax.grad(risk))
    difference = (risk(0.30001, start) - risk(0.29999, start)) / 2e-5
    np.testing.assert_allclose(gradient(0.3, start), difference, rtol=1e-6)
    assert float(gradient(0.3, np.zeros(64))) == 0.0
    wide = theory.glmtron_risk(MU, TEACHER, 0.5, 0.3, 400)
    with jax.enable_x64(False):
        narrow = theory.glmtron_risk(MU, TEACHER, 0.5, 0.3, 400)
        with pytest.raises(ValueError, match="x64"):
            jax.jit(lambda g: theory.glmtron_risk(MU, TEACHER, 0.5, g, 400))(0.3)
    assert float(narrow) == float(wide)


@pytest.mark.smoke
def test_many_directions() -> None:
    # Equal copies of one direction: the risk depends on the spectrum alone.
    few = theory.glmtron_risk(np.full(64, 1 / 64), np.ones(64), 0.5, 0.3, 20)
    mu = np.r_[np.full(64, 1 / 64), np.zeros(40_000)]
    many = theory.glmtron_risk(mu, np.ones(40_064), 0.5, 0.3, 20)
    np.testing.assert_allclose(many, few, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mu", -np.ones(2)),
        ("mu", np.zeros(2)),
        ("theta_star", np.ones(3)),
        ("theta_star", np.array([np.inf, 1.0])),
        ("noise_variance", -1.0),
        ("step_size", 0.0),
        ("step_size", float(stability.stability_limit([0.5, 0.5])) * 1.01),
        ("num_samples", 0),
        ("num_samples", 4.5),
        ("tail_start", 9),
        ("tail_start", -1),
        ("theta0", np.ones(3)),
    ],
)
@pytest.mark.parametrize("formula", [theory.glmtron_risk, theory.relu_sgd_risk])
def test_bad_arguments_are_named(formula, name: str, value: object) -> None:
    valid = {
        "mu": np.full(2, 0.5),
        "theta_star": np.array([1.0, -1.0]),
        "noise_variance": 0.1,
        "step_size": 0.1,
        "num_samples": 9,
        "tail_start": 3,
        "theta0": np.array([0.5, 1.0]),
    }
    with pytest.raises(ValueError, match=f"^{name}:"):
        formula(**(valid | {name: value}))
