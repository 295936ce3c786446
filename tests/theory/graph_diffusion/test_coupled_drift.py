"""The drift that couples the blocks: laws by matrix exponentials, the bound by quadrature."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg

from boundlab.theory.graph_diffusion import (
    coupled_drift_bound,
    coupled_drift_covariance,
    coupled_drift_reverse,
    covariance_kl,
    joint_reverse,
)


@pytest.fixture(scope="module")
def problem() -> tuple[np.ndarray, np.ndarray]:
    """S of two features and three coordinates of structure, and C of norm 1."""
    rng = np.random.default_rng(5)
    factor, coupling = rng.standard_normal((5, 5)), rng.standard_normal((2, 3))
    return factor @ factor.T / 4 + 0.2 * np.eye(5), coupling / np.linalg.norm(coupling, 2)


def drift(coupling: np.ndarray) -> np.ndarray:
    return np.block([[np.eye(2), coupling], [coupling.T, np.eye(3)]])


def noised(covariance: np.ndarray, coupling: np.ndarray, t: float) -> np.ndarray:
    decay = scipy.linalg.expm(-drift(coupling) * t)
    return decay @ covariance @ decay + np.eye(5) - decay @ decay


@pytest.mark.parametrize("strength", [0.0, 0.6, 0.9])
def test_covariance_by_matrix_exponentials(problem, strength):
    covariance, coupling = problem
    for t in (0.0, 0.3, 3.0):
        found = coupled_drift_covariance(covariance, strength * coupling, t)
        expected = noised(covariance, strength * coupling, t)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


def test_sampler_by_matrix_exponentials(problem):
    covariance, coupling = problem[0], 0.7 * problem[1]
    times = np.array([2.0, 1.2, 0.5, 0.1])
    expected = np.eye(5)
    for tau, t in pairwise(times):
        grown = scipy.linalg.expm(drift(coupling) * (tau - t))
        step = grown - 2 * (grown - np.eye(5)) @ np.linalg.inv(noised(covariance, coupling, tau))
        expected = step @ expected @ step.T + grown @ grown - np.eye(5)
    np.testing.assert_allclose(
        coupled_drift_reverse(covariance, coupling, times), expected, rtol=1e-11
    )


def test_bound_by_adaptive_quadrature(problem):
    """∫ E dᵀKd with the moments of both scores and E Z_t Z_τᵀ = S_t e^{−K(τ−t)}; it covers the KL."""
    covariance, coupling = problem[0], 0.7 * problem[1]
    times, rates = np.array([2.0, 1.2, 0.5, 0.1]), drift(coupling)
    expected = 0.0
    for tau, t in pairwise(times):
        old = np.linalg.inv(noised(covariance, coupling, tau))

        def cost(at, old=old, tau=tau):
            spread = noised(covariance, coupling, at)
            new = np.linalg.inv(spread)
            mixed = new @ spread @ scipy.linalg.expm(-rates * (tau - at)) @ old
            return np.trace(rates @ (new + old - mixed - mixed.T))

        expected += scipy.integrate.quad(cost, t, tau, epsrel=1e-11)[0]
    terms = coupled_drift_bound(covariance, coupling, times)
    np.testing.assert_allclose(float(terms["discretization"]), expected, rtol=1e-10)
    prior = noised(covariance, coupling, 2.0)
    initial = 0.5 * (np.trace(prior) - 5 - np.linalg.slogdet(prior)[1])
    np.testing.assert_allclose(float(terms["initialization"]), initial, rtol=1e-9)
    target = coupled_drift_covariance(covariance, coupling, 0.1)
    exact = covariance_kl(target, coupled_drift_reverse(covariance, coupling, times))
    assert float(exact) < sum(float(term) for term in terms.values())


def test_without_coupling_it_is_the_system_under_one_schedule(problem):
    covariance, times = problem[0], np.linspace(2.0, 0.05, 7)
    found = coupled_drift_reverse(covariance, np.zeros((2, 3)), times)
    expected = joint_reverse(covariance, 2, ((2.0, 2.0), (2.0, 2.0)), times)
    np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"covariance": -np.eye(2)}, "covariance"),
        ({"coupling": [[1.0]]}, "coupling"),
        ({"coupling": [[0.1, 0.1]]}, "coupling"),
        ({"coupling": [0.1]}, "coupling"),
        ({"coupling": [[np.nan]]}, "coupling"),
        ({"times": [0.1, 1.0]}, "times"),
    ],
)
def test_bad_input_is_named(as_users_call, change, named):
    arguments = {"covariance": np.eye(2), "coupling": [[0.5]], "times": [1.0, 0.1]} | change
    for function in (coupled_drift_reverse, coupled_drift_bound):
        with pytest.raises(ValueError, match=f"^{named}:"):
            function(**arguments)
    with pytest.raises(ValueError, match=r"^t:"):
        coupled_drift_covariance(np.eye(2), [[0.5]], -1.0)
