"""Where SGD stops being stable, against a root finder, against the spectral radius of its
second-moment matrix, and against the curve on both sides.
"""

from math import fsum

import jax
import numpy as np
import pytest
from scipy.optimize import brentq

from boundlab.theory.excess_risk import sgd

RNG = np.random.default_rng(1)
SPECTRA = {
    "single": np.array([1.0]),
    "spread": RNG.random(40) ** 4,
    "repeated": np.repeat([1.0, 0.5, 0.0], [3, 5, 2]),
    "spike and flat tail": np.concatenate([[1.0], np.full(4095, 1 / 4095)]),
    "spike and heavy tail": np.concatenate([[1.0], np.full(4095, 3.0)]),
    "power law": np.arange(1.0, 1001.0) ** -1.5,
    "subnormal tail": np.array([1.0, 1e-200, 5e-324]),
}


def gain(step, mu):
    x = step * mu
    return 0.5 * fsum(x / (1 - x))


@pytest.mark.parametrize("scale", [1.0, 1e-12, 1e12])
@pytest.mark.parametrize("name", SPECTRA)
def test_root_of_the_gain(name, scale):
    mu = SPECTRA[name]
    expected = brentq(lambda g: gain(g, mu) - 1, 0, (1 - 1e-12) / mu.max(), xtol=1e-300, rtol=1e-15)
    np.testing.assert_allclose(sgd.stability_limit(scale * mu), expected / scale, 1e-13)


@pytest.mark.smoke
def test_one_direction():
    np.testing.assert_allclose(sgd.stability_limit([4.0]), 2 / 12, 1e-15)


@pytest.mark.parametrize("name", ["single", "spread", "repeated", "power law"])
def test_spectral_radius_is_one(name):
    mu = SPECTRA[name]
    x = float(sgd.stability_limit(mu)) * mu
    # diag(a) + γ²μμᵀ on risks: similar to the symmetric matrix with √ weights.
    matrix = np.diag(1 - 2 * x + 2 * x**2) + np.outer(x, x)
    np.testing.assert_allclose(np.linalg.eigvalsh(matrix)[-1], 1.0, rtol=1e-12)


def test_curve_on_both_sides_of_the_limit():
    mu = SPECTRA["spread"]
    limit = float(sgd.stability_limit(mu))
    stable = sgd.risk_curve(mu, np.ones(40), 0.1, 0.95 * limit, 8000)
    unstable = sgd.risk_curve(mu, np.ones(40), 0.1, 1.05 * limit, 8000)
    settled = sgd.stationary_risk(mu, 0.1, 0.95 * limit)
    assert abs(stable[-1] / stable[-1000] - 1) < 1e-2
    assert abs(stable[-1] / settled - 1) < 1e-2
    assert np.all(np.diff(unstable[50:]) > 0)
    assert unstable[-1] > 1e3 * unstable[0]


def test_curve_of_an_overflowing_run_has_no_nan():
    curve = np.asarray(sgd.risk_curve([1.0, 0.5, 0.0], [1.0, 1.0, 1.0], 0.1, 40.0, 4000))
    assert curve[-1] == np.inf
    assert not np.isnan(curve).any()


@pytest.mark.parametrize("fraction", [0.01, 0.5, 0.9])
def test_stationary_risk_is_the_fixed_point(fraction):
    """(I − K) s = σ² x²: solve for the fixed point of the recursion, then sum."""
    mu = SPECTRA["spread"]
    step = fraction * float(sgd.stability_limit(mu))
    x = step * mu
    kernel = np.diag(1 - 2 * x + 2 * x**2) + np.outer(x**2, np.ones(40))
    expected = np.linalg.solve(np.eye(40) - kernel, 0.3 * x**2).sum()
    np.testing.assert_allclose(sgd.stationary_risk(mu, 0.3, step), expected, 1e-9)


def test_traced_step_beyond_the_limit_never_settles():
    settle = jax.jit(jax.vmap(lambda g: sgd.stationary_risk(np.ones(2), 1.0, g)))
    got = settle(np.array([0.1, 0.5, 0.9, 1.0, 3.0]))
    np.testing.assert_allclose(got[:1], [(0.1 / 0.9) / (1 - 0.1 / 0.9)], 1e-14)
    assert np.all(np.isinf(got[1:]) & (got[1:] > 0))


def test_limit_has_its_derivative():
    """Implicit function theorem: ∂γ/∂μ_i = −h_{μ_i}/h_γ, repeated top eigenvalue included."""
    mu = np.array([1.0, 1.0, 0.4, 0.0])
    step = float(sgd.stability_limit(mu))
    slope = np.sum(mu / (1 - step * mu) ** 2)
    expected = -step / (1 - step * mu) ** 2 / slope
    np.testing.assert_allclose(jax.grad(sgd.stability_limit)(mu), expected, 1e-12)
    np.testing.assert_allclose(
        jax.vmap(sgd.stability_limit)(np.stack([mu, 2 * mu])), [step, step / 2]
    )
