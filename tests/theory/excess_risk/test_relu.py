"""The closed-form risk of a ReLU neuron, and ridge on doubled labels."""

from decimal import Decimal, localcontext

import jax
import numpy as np
import pytest

from boundlab.theory.excess_risk import relu as theory

RNG = np.random.default_rng(20250202)
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")


def decimal_risk(norm_sq: float, norm_star_sq: float, cosine: float) -> float:
    """The textbook formula ½a² + ½b² − (ab/π)(sin φ + (π−φ) cos φ) in 60 digits."""
    with localcontext() as context:
        context.prec = 60
        c = Decimal(cosine)
        sine = ((1 - c) * (1 + c)).sqrt()
        # φ by Newton's method on tan(φ/2) = s/(1+c), through a doubled half-angle series.
        tangent = sine / (1 + c)
        for _ in range(8):
            tangent = tangent / (1 + (1 + tangent * tangent).sqrt())
        series = sum((-1) ** k * tangent ** (2 * k + 1) / (2 * k + 1) for k in range(20))
        phi = 2 * 2**8 * series
        a2, b2 = Decimal(norm_sq), Decimal(norm_star_sq)
        product = (a2 * b2).sqrt()
        return float((a2 + b2) / 2 - product / PI * (sine + (PI - phi) * c))


@pytest.mark.smoke
def test_closed_form_against_60_digits() -> None:
    angles = np.r_[0.0, 10.0 ** np.arange(-7.5, 0), 0.4999, 0.5001, 1.0, 2.0, 3.0, 3.1415]
    cosines = np.cos(angles)
    for norm_sq, norm_star_sq in ((1.0, 1.0), (1.0, 1.0 + 1e-9), (2.0, 0.3), (1e-12, 1e12)):
        expected = [decimal_risk(norm_sq, norm_star_sq, c) for c in cosines]
        got = theory.excess_risk(norm_sq, norm_star_sq, cosines)
        np.testing.assert_allclose(got, expected, rtol=2e-14)


@pytest.mark.smoke
def test_exact_points() -> None:
    assert float(theory.excess_risk(1.7, 1.7, 1.0)) == 0.0
    np.testing.assert_allclose(theory.excess_risk(0.0, 3.0, 0.3), 1.5, rtol=1e-15)
    np.testing.assert_allclose(theory.excess_risk(3.0, 0.0, 0.3), 1.5, rtol=1e-15)
    assert float(theory.excess_risk(0.0, 0.0, -1.0)) == 0.0
    # φ = π: the supports don't meet.
    np.testing.assert_allclose(theory.excess_risk(1.0, 4.0, -1.0), 2.5, rtol=1e-15)
    # φ = 0: (a−b)²/2.
    np.testing.assert_allclose(theory.excess_risk(1.0, 4.0, 1.0), 0.5, rtol=1e-15)
    np.testing.assert_allclose(theory.excess_risk(1.0, 1.0, 0.0), 1 - 1 / np.pi, rtol=1e-15)


def test_closed_form_against_samples() -> None:
    left, right = RNG.normal(size=(2, 1_000_000))
    for a, b, phi in ((1.3, 0.7, 2.0), (1.0, 1.0, 0.3), (0.5, 2.0, 1.2)):
        v = b * (np.cos(phi) * left + np.sin(phi) * right)
        squares = (np.maximum(a * left, 0) - np.maximum(v, 0)) ** 2
        error = squares.std() / 1000
        exact = float(theory.excess_risk(a**2, b**2, np.cos(phi)))
        assert abs(squares.mean() - exact) < 4.5 * error
        assert error < 0.005 * exact


def test_between_a_quarter_and_a_half_of_the_distance() -> None:
    a, b = np.exp(RNG.normal(size=(2, 4000)) * 3)
    cosine = np.cos(np.r_[RNG.uniform(0, np.pi, 3998), 0.0, np.pi])
    distance_sq = (a - b) ** 2 + 2 * a * b * (1 - cosine)
    ratio = np.asarray(theory.excess_risk(a**2, b**2, cosine)) / distance_sq
    # R = 2Δ, so that ⅛ ≤ Δ/‖δ‖² ≤ ¼ are ¼ and ½ here, both reached.
    assert np.all(ratio >= 0.25 * (1 - 1e-12))
    assert np.all(ratio <= 0.5 * (1 + 1e-12))
    np.testing.assert_allclose(theory.excess_risk(1.0, 1.0, -1.0) / 4, 0.25, rtol=1e-15)


def test_broadcast_and_derivatives() -> None:
    grid = theory.excess_risk(np.ones((3, 1)), np.array([1.0, 2.0]), 0.5)
    assert grid.shape == (3, 2)
    gradient = jax.grad(theory.excess_risk, (0, 1, 2))
    # dR/dc = −ab(π−φ)/π, finite at both ends.
    for cosine, expected in ((1.0, -2.0), (0.0, -1.0), (-1.0, 0.0)):
        np.testing.assert_allclose(gradient(1.0, 4.0, cosine)[2], expected, atol=1e-15)
    for point in ((0.0, 1.0, 0.5), (1.0, 0.0, -1.0), (0.0, 0.0, 1.0)):
        np.testing.assert_array_equal(gradient(*point), (0.5, 0.5, 0.0))
    step = 1e-6
    difference = (
        theory.excess_risk(1 + step, 2.0, 0.3) - theory.excess_risk(1 - step, 2.0, 0.3)
    ) / (2 * step)
    np.testing.assert_allclose(gradient(1.0, 2.0, 0.3)[0], difference, rtol=1e-8)


@pytest.mark.parametrize(("ridge", "num_samples"), [(0.5, 50), (0.05, 130)])
def test_ridge_on_doubled_labels_against_samples(ridge: float, num_samples: int) -> None:
    rng = np.random.default_rng(11)
    mu = np.arange(1.0, 65.0) ** -0.5
    mu /= mu.sum()
    theta = rng.normal(size=64)
    star_sq = np.sum(mu * theta**2)
    designs = rng.normal(size=(1000, num_samples, 64)) * np.sqrt(mu)
    labels = np.maximum(designs @ theta, 0) + 0.5 * rng.normal(size=(1000, num_samples))
    gram = np.swapaxes(designs, 1, 2) @ designs + ridge * np.eye(64)
    moment = (2 * labels[:, None, :] @ designs)[:, 0, :]
    found = np.linalg.solve(gram, moment[..., None])[..., 0]
    norm_sq = found**2 @ mu
    cosine = found @ (mu * theta) / np.sqrt(norm_sq * star_sq)
    drawn = np.asarray(theory.excess_risk(norm_sq, star_sq, cosine))
    expected = float(theory.ridge_risk(mu, theta**2, 0.25, ridge, num_samples))
    error = drawn.std() / np.sqrt(1000)
    assert error < 0.01 * expected
    assert abs(drawn.mean() - expected) < 4.5 * error + 0.01 * expected
    # Without the part of 2y that is not linear in m, the variance is far too small.
    wrong = float(theory.ridge_risk(mu, theta**2, 0.25 - star_sq / 8, ridge, num_samples))
    assert drawn.mean() > 1.1 * wrong


@pytest.mark.parametrize(("dim", "low", "high"), [(6, 0.11, 0.17), (24, 0.02, 0.05)])
def test_ridge_on_doubled_labels_is_too_low_for_few_directions(
    dim: int, low: float, high: float
) -> None:
    # |mᵀθ*| depends on m, which the formula for independent noise leaves out.
    rng = np.random.default_rng(12)
    theta = np.full(dim, dim**-0.5)
    designs = rng.normal(size=(6000, 96, dim))
    labels = np.maximum(designs @ theta, 0) + 0.5 * rng.normal(size=(6000, 96))
    transposed = np.swapaxes(designs, 1, 2)
    found = np.linalg.solve(transposed @ designs, 2 * transposed @ labels[..., None])[..., 0]
    norm_sq = (found**2).sum(1)
    drawn = np.asarray(theory.excess_risk(norm_sq, 1.0, found @ theta / np.sqrt(norm_sq)))
    error = drawn.std() / np.sqrt(6000) / drawn.mean()
    assert error < 0.01
    formula = float(theory.ridge_risk(np.ones(dim), theta**2, 0.25, 0.0, 96))
    assert low - error < 1 - formula / drawn.mean() < high + error
    # In the limit N ≫ d the gap is that of the exact moment E[(mᵀθ*)² mmᵀ].
    many = 10**9
    formula = float(theory.ridge_risk(np.ones(dim), theta**2, 0.25, 0.0, many))
    exact = ((dim + 2) + 4 * dim * 0.25) / (2 * many)
    np.testing.assert_allclose(1 - formula / exact, 2 / (dim + 2 + dim), rtol=2e-3)


def test_ridge_limits() -> None:
    mu, theta_sq = np.arange(1.0, 33.0) ** -1.0, np.linspace(0, 1, 32)
    star_sq = np.sum(mu * theta_sq)
    # An infinite ridge learns nothing: b²/2. At N = d without ridge: infinite.
    np.testing.assert_allclose(
        theory.ridge_risk(mu, theta_sq, 0.3, 1e14, 20), star_sq / 2, rtol=1e-5
    )
    assert np.isinf(float(theory.ridge_risk(mu, theta_sq, 0.3, 0.0, 32)))
    # Many samples: half the linear risk (4σ²+b²) d/N.
    many = 10_000_000
    np.testing.assert_allclose(
        theory.ridge_risk(mu, theta_sq, 0.3, 0.0, many), (1.2 + star_sq) * 16 / many, rtol=1e-3
    )


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((-1.0, 1.0, 0.0), "norm_sq"),
        ((1.0, np.nan, 0.0), "norm_star_sq"),
        ((1.0, 1.0, 1.1), "cosine"),
        ((1.0, 1.0, np.array([0.0, -1.1])), "cosine"),
        ((np.ones(2), np.ones(3), 0.0), "norm_sq, norm_star_sq, cosine"),
    ],
)
def test_bad_arguments_are_named(arguments: tuple, name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}:"):
        theory.excess_risk(*arguments)


def test_bad_ridge_arguments_are_named() -> None:
    valid = (np.ones(3), np.ones(3), 0.1, 0.1, 5)
    bad = (-np.ones(3), np.ones(4), -0.1, np.inf, 0)
    names = ("mu", "theta_sq", "noise_variance", "ridge", "num_samples")
    for place, (name, value) in enumerate(zip(names, bad, strict=True)):
        changed = (*valid[:place], value, *valid[place + 1 :])
        with pytest.raises(ValueError, match=f"^{name}:"):
            theory.ridge_risk(*changed)
