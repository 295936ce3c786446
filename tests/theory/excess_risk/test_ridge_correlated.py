"""Ridge on dependent rows: reduction to independent ones, and drawn node features."""

import jax
import numpy as np
import pytest
from scipy import optimize

from boundlab.theory.excess_risk import ridge as theory

FEATURES = np.arange(1.0, 33.0) ** -1.0


@pytest.mark.smoke
@pytest.mark.parametrize("num_samples", [20, 32, 60])
@pytest.mark.parametrize("ridge", [1e-30, 1e-3, 0.5, 1e6])
def test_identity_reduces_to_independent_rows(ridge: float, num_samples: int) -> None:
    theta_sq = np.linspace(0, 2, 32)
    plain = theory.risk(FEATURES, theta_sq, 0.3, ridge, num_samples)
    rows = theory.risk_correlated(np.ones(num_samples), FEATURES, theta_sq, 0.3, ridge)
    np.testing.assert_allclose(rows.bias, plain.bias, rtol=1e-10, atol=1e-60)
    np.testing.assert_allclose(rows.variance, plain.variance, rtol=1e-10)
    # Rows of variance c are as rows of variance 1 with λ/c and σ²/c.
    scaled = theory.risk_correlated(np.full(num_samples, 5.0), FEATURES, theta_sq, 1.5, 5 * ridge)
    np.testing.assert_allclose(scaled.variance, plain.variance, rtol=1e-10)


def test_empty_rows_are_no_samples() -> None:
    theta_sq = np.ones(32)
    padded = np.r_[np.zeros(25), np.ones(20), np.zeros(15)]
    plain = theory.risk(FEATURES, theta_sq, 0.3, 0.1, 20)
    rows = theory.risk_correlated(padded, FEATURES, theta_sq, 0.3, 0.1)
    np.testing.assert_allclose(rows.bias, plain.bias, rtol=1e-12)
    np.testing.assert_allclose(rows.variance, plain.variance, rtol=1e-12)


def test_sums_against_derivatives_of_the_fixed_point() -> None:
    # bias = −λ² d/ds and var = σ² d(λA)/dλ of traces of the resolvent (S + λ + sH)^{-1}, whose
    # equivalent is (ηH + λ + sH)^{-1} with η = Σ c/(1 + c tr H(…)^{-1}): solved and differenced.
    rng = np.random.default_rng(8)
    rows, theta_sq, ridge, noise = rng.exponential(size=60), rng.exponential(size=32), 0.4, 0.3

    def resolvent(ridge: float, source: float) -> np.ndarray:
        def residual(log_eta: float) -> float:
            eta = np.exp(log_eta)
            trace = np.sum(FEATURES / ((eta + source) * FEATURES + ridge))
            return log_eta - np.log(np.sum(rows / (1 + rows * trace)))

        eta = np.exp(optimize.brentq(residual, -20, 20, xtol=1e-14, rtol=1e-14))
        return 1 / ((eta + source) * FEATURES + ridge)

    step = 1e-4
    by_source = (resolvent(ridge, step) - resolvent(ridge, -step)) / (2 * step)
    bias = -(ridge**2) * np.sum(theta_sq * by_source)
    traces = [
        value * np.sum(FEATURES * resolvent(value, 0.0)) for value in (ridge + step, ridge - step)
    ]
    variance = noise * (traces[0] - traces[1]) / (2 * step)
    profile = theory.risk_correlated(rows, FEATURES, theta_sq, noise, ridge)
    np.testing.assert_allclose(np.sum(profile.bias), bias, rtol=1e-6)
    np.testing.assert_allclose(np.sum(profile.variance), variance, rtol=1e-6)


def test_equations_as_documented() -> None:
    rng = np.random.default_rng(10)
    c, h, theta_sq = rng.exponential(size=(3, 12))
    ridge, noise = 0.7, 0.2

    def learnt(t: float) -> np.ndarray:
        eta = t * np.sum(c / (c + t))
        return eta * h / (eta * h + ridge)

    t = optimize.brentq(
        lambda t: np.sum(learnt(t)) - np.sum(c / (c + t)), 1e-9, 1e9, xtol=1e-15, rtol=1e-15
    )
    x, eta = learnt(t), t * np.sum(c / (c + t))
    D = np.sum((c / (c + t)) ** 2) / np.sum(c / (c + t) ** 2)
    W = 1 / (eta + D * (np.sum(x) - np.sum(x**2)))
    b = (1 - x) ** 2 * h * theta_sq
    profile = theory.risk_correlated(c, h, theta_sq, noise, ridge)
    np.testing.assert_allclose(profile.bias, b + D * W * x**2 * np.sum(b), rtol=1e-11)
    np.testing.assert_allclose(profile.variance, noise * W * x**2, rtol=1e-11)


def test_against_drawn_node_features() -> None:
    rng = np.random.default_rng(9)
    n, p, ridge, noise = 200, 80, 2.0, 0.5
    # Mean over a node and its neighbours, on a ring with some random chords.
    adjacency = np.zeros((n, n))
    pairs = np.r_[np.c_[np.arange(n), np.roll(np.arange(n), 1)], rng.integers(0, n, (300, 2))]
    adjacency[pairs[:, 0], pairs[:, 1]] = adjacency[pairs[:, 1], pairs[:, 0]] = 1.0
    np.fill_diagonal(adjacency, 1.0)
    operator = adjacency / adjacency.sum(1, keepdims=True)
    features = np.arange(1.0, p + 1) ** -0.5
    theta_sq = rng.exponential(size=p)

    # Bias averaged over the signs of θ*, variance over the label noise, both exactly.
    draws = 300
    design = operator @ rng.normal(size=(draws, n, p)) * np.sqrt(features)
    gram = np.swapaxes(design, 1, 2) @ design
    inverse = np.linalg.inv(gram + ridge * np.eye(p))
    bias = features * ridge**2 * (inverse**2 @ theta_sq)
    variance = noise * features * ((inverse @ gram) * inverse).sum(2)
    drawn = (bias + variance).sum(1)

    spectrum = np.maximum(np.linalg.eigvalsh(operator @ operator.T), 0.0)
    profile = theory.risk_correlated(spectrum, features, theta_sq, noise, ridge)
    expected = float(np.sum(profile.bias) + np.sum(profile.variance))
    assert drawn.std() / np.sqrt(draws) < 0.003 * expected
    assert abs(drawn.mean() / expected - 1) < 0.02
    for part, parts in ((bias, profile.bias), (variance, profile.variance)):
        allowed = 4.5 * part.std(0) / np.sqrt(draws) + 0.04 * np.asarray(parts)
        assert np.all(np.abs(part.mean(0) - parts) < allowed)
    # Independent rows of the same mean square would be another risk.
    wrong = theory.risk(features * np.sum(operator**2) / n, theta_sq, noise, ridge, n)
    wrong_total = np.sum((wrong.bias + wrong.variance) * n / np.sum(operator**2))
    assert abs(wrong_total / drawn.mean() - 1) > 0.1


@pytest.mark.smoke
def test_many_rows_and_gradient() -> None:
    rows = np.linspace(0.5, 1.5, 40_960)

    def objective(ridge: jax.Array) -> jax.Array:
        profile = theory.risk_correlated(rows, FEATURES, np.ones(32), 0.3, ridge)
        return profile.bias.sum() + profile.variance.sum()

    # So many samples that the risk is the classical λ²/η² Σθ²/h + σ² p/η, η = Σc to first order.
    value = float(objective(1e-3))
    np.testing.assert_allclose(value, 0.3 * 32 / rows.sum(), rtol=2e-3)
    difference = (objective(50.01) - objective(49.99)) / 0.02
    np.testing.assert_allclose(jax.grad(objective)(50.0), difference, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("row_spectrum", np.zeros(9)),
        ("row_spectrum", -np.ones(9)),
        ("row_spectrum", np.ones((3, 3))),
        ("feature_spectrum", np.zeros(32)),
        ("feature_spectrum", np.full(32, np.nan)),
        ("theta_sq", np.ones(9)),
        ("theta_sq", -np.ones(32)),
        ("noise_variance", -1.0),
        ("ridge", 0.0),
        ("ridge", np.inf),
    ],
)
def test_bad_arguments_are_named(name: str, value: object) -> None:
    valid = {
        "row_spectrum": np.ones(9),
        "feature_spectrum": FEATURES,
        "theta_sq": np.ones(32),
        "noise_variance": 0.3,
        "ridge": 0.1,
    }
    with pytest.raises(ValueError, match=f"^{name}:"):
        theory.risk_correlated(**(valid | {name: value}))
