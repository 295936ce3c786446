"""Ridge: effective ridge, risk per direction, bounds and ordinary least squares."""

import inspect
from decimal import Decimal, localcontext

import jax
import numpy as np
import pytest

from boundlab.precision import x64
from boundlab.theory.excess_risk import ridge as theory

RNG = np.random.default_rng(20250101)
POWER = np.arange(1.0, 33.0) ** -1.5


def graph_spectrum(family: str, size: int = 32) -> np.ndarray:
    """Eigenvalues of (L + I)², scaled to sum 1, from textbook Laplacian spectra."""
    index = np.arange(size)
    laplacian = {
        "cycle": 2 - 2 * np.cos(2 * np.pi * index / size),
        "star": np.r_[0.0, np.ones(size - 2), size],
        "complete": np.r_[0.0, np.full(size - 1, size)],
    }[family]
    squares = (laplacian + 1) ** 2
    return squares / squares.sum()


def decimal_effective_ridge(mu: np.ndarray, ridge: float, num_samples: int) -> float:
    """Bisection on log κ with 420 digits, so that nothing can cancel."""
    with localcontext() as context:
        context.prec = 420
        exact = [Decimal(float(value)) for value in mu]
        low, high = Decimal(-760), Decimal(80)
        for _ in range(62):
            context.prec = 30
            middle = (low + high) / 2
            kappa = middle.exp()
            context.prec = 420
            used = sum(m / (m + kappa) for m in exact) + Decimal(float(ridge)) / kappa
            low, high = (middle, high) if used > num_samples else (low, middle)
        context.prec = 30
        return float(low.exp())


def total(profile: theory.RiskProfile) -> float:
    return float(np.sum(profile.bias) + np.sum(profile.variance))


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("family", "kappa", "bias", "variance"),
    [
        ("cycle", 0.00608885, 0.043051, 0.096635),
        ("star", 0.00492066, 0.039751, 0.025171),
        ("complete", 0.00654079, 0.042770, 0.125840),
    ],
)
def test_golden_values(family: str, kappa: float, bias: float, variance: float) -> None:
    mu = graph_spectrum(family)
    profile = theory.risk(mu, np.ones(32), 0.25, 0.25, 64)
    np.testing.assert_allclose(theory.effective_ridge(mu, 0.25, 64), kappa, rtol=1e-6)
    np.testing.assert_allclose(np.sum(profile.bias), bias, rtol=2e-5)
    np.testing.assert_allclose(np.sum(profile.variance), variance, rtol=2e-5)


@pytest.mark.parametrize(
    ("mu", "ridge", "num_samples"),
    [
        (graph_spectrum("cycle"), 0.25, 64),
        (graph_spectrum("cycle"), np.exp(-137), 64),
        (graph_spectrum("cycle"), np.exp(-137), 32),  # κ ~ √λ at N = d
        (graph_spectrum("cycle"), 1e-30, 20),  # λ is negligible, N < d
        (graph_spectrum("cycle"), 0.0, 20),
        (np.exp(-18.0 * np.arange(32)), 1e-250, 31),
        (np.exp(-18.0 * np.arange(32)), 0.0, 31),  # κ near e^-560
        (1e12 * POWER, 3.0, 7),
        (1e-12 * POWER, 1e-20, 300),
        (POWER, 1e12, 3),
        (np.r_[np.zeros(20), POWER[:12]], 0.0, 5),
    ],
)
def test_effective_ridge_against_420_digits(mu: np.ndarray, ridge: float, num_samples: int) -> None:
    expected = decimal_effective_ridge(mu, ridge, num_samples)
    np.testing.assert_allclose(theory.effective_ridge(mu, ridge, num_samples), expected, rtol=2e-13)


def test_range_of_effective_ridge() -> None:
    # N > d and a tiny λ: κ = λ/(N−d), down to the floor, which is on κ; above, until λ + Σμ overflows.
    np.testing.assert_allclose(theory.effective_ridge(POWER, 1e-302, 42), 1e-303, rtol=1e-12)
    np.testing.assert_allclose(theory.effective_ridge(POWER, 1e-306, 42), np.exp(-700), rtol=1e-8)
    np.testing.assert_allclose(theory.effective_ridge(POWER, 1.7e308, 3), 1.7e308 / 3, rtol=1e-8)
    assert np.isinf(float(theory.effective_ridge(np.full(32, 1e307), 1.0, 20)))


def test_many_directions_against_closed_form() -> None:
    # Two levels: N = r a/(a+κ) + s b/(b+κ) + λ/κ is a cubic, here solved by NumPy.
    r, s, a, b, ridge, n = 40, 40_960, 1.0, 1 / 40_960, 0.3, 64
    mu = RNG.permutation(np.r_[np.full(r, a), np.full(s, b)])
    factors = np.poly1d([1, a]), np.poly1d([1, b]), np.poly1d([1, 0])
    cubic = (
        n * factors[0] * factors[1] * factors[2]
        - r * a * factors[1] * factors[2]
        - s * b * factors[0] * factors[2]
        - ridge * factors[0] * factors[1]
    )
    (kappa,) = [x.real for x in cubic.roots if x.real > 0]
    np.testing.assert_allclose(theory.effective_ridge(mu, ridge, n), kappa, rtol=1e-11)
    df2 = r * (a / (a + kappa)) ** 2 + s * (b / (b + kappa)) ** 2
    profile = theory.risk(mu, np.ones(r + s), 0.5, ridge, n)
    np.testing.assert_allclose(np.sum(profile.variance), 0.5 * df2 / (n - df2), rtol=1e-10)
    missed = r * a * (kappa / (a + kappa)) ** 2 + s * b * (kappa / (b + kappa)) ** 2
    np.testing.assert_allclose(np.sum(profile.bias), missed * n / (n - df2), rtol=1e-10)


@pytest.mark.smoke
def test_ridgeless_limits() -> None:
    theta_sq = np.ones(32)
    # N > d: nothing is missed, σ² d/(N−d).
    assert float(theory.effective_ridge(POWER, 0.0, 33)) == 0.0
    profile = theory.risk(POWER, theta_sq, 0.25, 0, 100)
    np.testing.assert_allclose(np.sum(profile.variance), 0.25 * 32 / 68, rtol=1e-14)
    np.testing.assert_array_equal(profile.bias, np.zeros(32))
    # Zero eigenvalues don't count as directions.
    padded = np.where(np.arange(32) < 12, POWER, 0.0)
    assert float(theory.effective_ridge(padded, 0.0, 20)) == 0.0
    np.testing.assert_allclose(total(theory.risk(padded, theta_sq, 1.0, 0.0, 20)), 12 / 8)
    # N < d, isotropic: minimum-norm solution, bias ‖θ‖²(1−N/d), variance σ² N/(d−N).
    flat = theory.risk(np.ones(32), theta_sq, 0.5, 0.0, 8)
    np.testing.assert_allclose(flat.bias, np.full(32, 1 - 8 / 32), rtol=1e-13)
    np.testing.assert_allclose(np.sum(flat.variance), 0.5 * 8 / 24, rtol=1e-13)
    # N = d: the peak.
    peak = theory.risk(POWER, theta_sq, 0.5, 0.0, 32)
    assert np.all(np.isinf(peak.variance))
    np.testing.assert_array_equal(peak.bias, np.zeros(32))
    assert total(theory.risk(POWER, theta_sq, 0.0, 0.0, 32)) == 0.0


def test_ordinary_least_squares() -> None:
    np.testing.assert_allclose(theory.ols_risk(0.25, 64, 128), 0.25 * 64 / 63, rtol=1e-15)
    # The exact value is a mean of an inverse Wishart: E tr (FᵀF)^{-1} over drawn designs, by a z-test.
    designs = RNG.normal(size=(4000, 30, 12))
    draws = np.trace(np.linalg.inv(np.swapaxes(designs, 1, 2) @ designs), axis1=1, axis2=2)
    error = draws.std(ddof=1) / np.sqrt(len(draws))
    assert abs(draws.mean() - float(theory.ols_risk(1.0, 12, 30))) < 4.5 * error
    assert error < 0.006 * draws.mean()


def test_small_variance_has_no_cancellation() -> None:
    # E0 − 1 = df2/(N−df2) ≈ 3e-19 here: computed as a difference it would be 0.
    profile = theory.risk(np.full(32, 1e-10), np.ones(32), 1.0, 1.0, 100)
    learnt = 1e-10 / (1e-10 + (1 + 32e-10) / 100)
    df2 = 32 * learnt**2
    np.testing.assert_allclose(np.sum(profile.variance), df2 / (100 - df2), rtol=1e-8)


@pytest.mark.smoke
def test_bounds_hold_and_are_head_and_tail_sums() -> None:
    ratios = []
    for _ in range(200):
        mu = np.exp(RNG.normal(size=32) * RNG.choice([0.3, 2.0, 6.0]))
        theta_sq = RNG.exponential(size=32) * mu ** RNG.choice([-1.0, 0.0, 1.0])
        noise = 10 ** RNG.uniform(-6, 2)
        ridge = 10 ** RNG.uniform(-8, 4)
        n = int(RNG.integers(1, 200))
        bounds = theory.risk_bounds(mu, theta_sq, noise, ridge, n)
        exact = total(theory.risk(mu, theta_sq, noise, ridge, n))
        assert float(bounds.lower) <= exact * (1 + 1e-12)
        assert exact <= float(bounds.upper) * (1 + 1e-12)
        ratios.append(exact / float(bounds.upper))
        kappa = float(theory.effective_ridge(mu, ridge, n))
        head = mu >= kappa
        df2 = np.sum((mu / (mu + kappa)) ** 2)
        sides = kappa**2 * np.sum((theta_sq / mu)[head]) + np.sum((mu * theta_sq)[~head])
        sides += noise / n * (head.sum() + np.sum(mu[~head] ** 2) / kappa**2)
        np.testing.assert_allclose(bounds.upper, sides * n / (n - df2), rtol=1e-7)
        np.testing.assert_allclose(bounds.lower, bounds.upper / 4, rtol=1e-15)
    # Both constants are needed: the ratio comes near each.
    assert min(ratios) < 0.35
    assert max(ratios) > 0.95


def test_order_and_scale() -> None:
    theta_sq = RNG.exponential(size=32)
    order = RNG.permutation(32)
    plain = theory.risk(POWER, theta_sq, 0.3, 0.2, 20)
    mixed = theory.risk(POWER[order], theta_sq[order], 0.3, 0.2, 20)
    np.testing.assert_allclose(mixed.bias, np.asarray(plain.bias)[order], rtol=1e-12)
    scaled = theory.risk(7e5 * POWER, theta_sq / 7e5, 0.3, 0.2 * 7e5, 20)
    np.testing.assert_allclose(scaled.bias, plain.bias, rtol=1e-12)
    np.testing.assert_allclose(scaled.variance, plain.variance, rtol=1e-12)


@pytest.mark.parametrize(("ridge", "num_samples"), [(0.3, 20), (0.3, 60), (0.0, 20), (0.0, 60)])
def test_gradient_and_transforms(ridge: float, num_samples: int) -> None:
    theta_sq = np.linspace(1, 2, 32)

    def objective(ridge: jax.Array) -> jax.Array:
        profile = theory.risk(POWER, theta_sq, 0.3, ridge, num_samples)
        return profile.bias.sum() + profile.variance.sum()

    step = 1e-5
    points = np.array([ridge, ridge + step, ridge + 2 * step])
    values = np.asarray(jax.jit(jax.vmap(objective))(points))
    # One-sided of second order, as λ = 0 has nothing on its left.
    difference = (-3 * values[0] + 4 * values[1] - values[2]) / (2 * step)
    np.testing.assert_allclose(jax.grad(objective)(ridge), difference, rtol=2e-5)
    np.testing.assert_allclose(values[0], objective(ridge), rtol=1e-13)


def test_gradient_in_the_spectrum() -> None:
    def kappa(scale: jax.Array) -> jax.Array:
        return theory.effective_ridge(POWER * scale, 0.3, 20)

    difference = (kappa(1.00001) - kappa(0.99999)) / 2e-5
    np.testing.assert_allclose(jax.grad(kappa)(1.0), difference, rtol=1e-8)


def test_precision_does_not_depend_on_the_setting() -> None:
    wide = theory.risk(POWER, np.ones(32), 0.3, 0.2, 20)
    with jax.enable_x64(False):
        narrow = theory.risk(POWER, np.ones(32), 0.3, 0.2, 20)
        with pytest.raises(ValueError, match="x64"):
            jax.jit(lambda ridge: theory.effective_ridge(POWER, ridge, 20))(0.2)
        # JAX's own sum would round, as the profile's docstring says; NumPy's and x64() don't.
        with pytest.warns(UserWarning, match="float64"):
            assert narrow.bias.sum().dtype == np.float32
        with x64():
            assert float(narrow.bias.sum()) == float(wide.bias.sum())
        np.testing.assert_allclose(
            np.asarray(narrow.bias).sum(), float(np.asarray(wide.bias).sum()), rtol=1e-15
        )
    np.testing.assert_array_equal(np.asarray(narrow.bias), np.asarray(wide.bias))
    assert narrow.variance.dtype == np.float64


VALID = {
    "mu": POWER,
    "theta_sq": np.ones(32),
    "noise_variance": 0.3,
    "ridge": 0.2,
    "num_samples": 20,
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mu", -POWER),
        ("mu", np.zeros(32)),
        ("mu", np.where(np.arange(32) == 3, np.nan, POWER)),
        ("mu", np.ones((2, 16))),
        ("mu", np.ones(0)),
        ("theta_sq", np.ones(31)),
        ("theta_sq", -np.ones(32)),
        ("theta_sq", np.full(32, np.inf)),
        ("noise_variance", -0.1),
        ("noise_variance", np.nan),
        ("noise_variance", np.ones(2)),
        ("ridge", -1e-3),
        ("ridge", np.inf),
        ("ridge", np.ones(2)),
        ("num_samples", 0),
        ("num_samples", True),
        ("num_samples", 2.5),
    ],
)
@pytest.mark.parametrize("function", ["effective_ridge", "risk", "best_ridge", "risk_bounds"])
def test_bad_arguments_are_named(function: str, name: str, value: object) -> None:
    call = getattr(theory, function)
    accepted = inspect.signature(call).parameters
    if name not in accepted:
        return
    arguments = {key: VALID[key] for key in accepted} | {name: value}
    with pytest.raises(ValueError, match=f"^{name}:"):
        call(**arguments)


def test_more_bad_arguments() -> None:
    with pytest.raises(ValueError, match="ridge: got 0"):
        theory.risk_bounds(**(VALID | {"ridge": 0.0}))
    with pytest.raises(ValueError, match="num_samples: got 33, expected more than"):
        theory.ols_risk(0.1, 32, 33)
    with pytest.raises(ValueError, match="dim:"):
        theory.ols_risk(0.1, 0, 33)
    assert float(theory.ols_risk(0.1, np.int64(3), np.int32(10))) == pytest.approx(0.05)
