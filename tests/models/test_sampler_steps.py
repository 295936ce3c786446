"""Coefficients of one step: by hand for OU, by quadrature of the flow for the other SDEs."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

from boundlab.models import sde as sdes
from boundlab.models.sampler_steps import SCHEMES, Langevin, coefficients, langevin_step

LINEAR = {"vp": sdes.vp(0.1, 6.0), "sub_vp": sdes.sub_vp(0.1, 6.0), "ve": sdes.ve(0.2, 1.5)}


def _by_hand(scheme: str, h: float, before: float, after: float) -> tuple[float, float, float]:
    """A, B, Q for OU from σ² `before` the step (at τ) and `after` it."""
    if scheme == "exponential_integrator":
        return np.exp(h), 2 * (np.exp(h) - 1), np.exp(2 * h) - 1
    if scheme == "euler_maruyama":
        return 1 + h, 2 * h, 2 * h
    if scheme == "ancestral":
        kept = np.exp(-2 * h)
        return kept**-0.5, (1 - kept) * kept**-0.5, (1 - kept) * after / before
    if scheme == "probability_flow":
        return 1 + h, h, 0.0
    return np.exp(h), 2 * h * np.exp(h / 2), np.exp(2 * h) - 1


@pytest.mark.parametrize("scheme", SCHEMES)
def test_steps_of_the_ornstein_uhlenbeck_process(scheme: str) -> None:
    times = np.array([2.0, 1.1, 0.3, 0.0])
    found = coefficients(scheme, sdes.ou(), jnp.asarray(times))
    for k, (tau, t) in enumerate(itertools.pairwise(times)):
        a, b, q = _by_hand(scheme, tau - t, 1 - np.exp(-2 * tau), 1 - np.exp(-2 * t))
        np.testing.assert_allclose(found.linear[k], a, rtol=1e-14)
        np.testing.assert_allclose(found.score[k], b, rtol=1e-14)
        np.testing.assert_allclose(found.noise_std[k] ** 2, q, rtol=1e-13)
        np.testing.assert_allclose(found.alpha[k], np.exp(-2 * (tau - t)), rtol=1e-14)
        assert found.time[k] == tau


@pytest.mark.parametrize("scheme", ["exponential_integrator", "ancestral"])
def test_variance_preserving_steps_are_a_change_of_clock(scheme: str) -> None:
    """Whatever the rate, t → B/2."""
    times = jnp.array([1.0, 0.7, 0.2, 1e-3])
    sde = sdes.vp(0.1, 6.0)
    found = coefficients(scheme, sde, times)
    clock = coefficients(scheme, sdes.ou(), (0.1 * times + 5.9 * times**2 / 2) / 2)
    for name in ("linear", "score", "noise_std", "alpha"):
        np.testing.assert_allclose(getattr(found, name), getattr(clock, name), rtol=1e-12)


def test_euler_freezes_the_rate_at_the_start_of_the_step() -> None:
    """In the SDE's own time: β(τ)h, which differs from ∫β at second order."""
    tau, h, sde = 0.8, 0.1, sdes.vp(0.1, 6.0)
    beta = 0.1 + 5.9 * tau
    found = coefficients("euler_maruyama", sde, jnp.array([tau, tau - h]))
    np.testing.assert_allclose(found.linear, [1 + beta * h / 2], rtol=1e-14)
    np.testing.assert_allclose(found.score, [beta * h], rtol=1e-14)
    assert abs(beta * h - float(sde.integrated_rate(tau, tau - h))) > 0.02


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("scheme", ["exponential_integrator", "symmetric_splitting", "ancestral"])
def test_steps_of_any_linear_process_by_quadrature(name: str, scheme: str) -> None:
    sde, tau, t = LINEAR[name], 0.8, 0.55
    rate = 0.0 if name == "ve" else 1.0

    def beta(u: float) -> float:
        return rate * (0.1 + 5.9 * u)

    def g2(u: float) -> float:
        noise = 0.1 * u + 5.9 * u**2 / 2
        if name == "ve":
            return 2 * np.log(7.5) * 0.04 * 7.5 ** (2 * u)
        return beta(u) * (1 - np.exp(-2 * noise) if name == "sub_vp" else 1.0)

    def grown(u: float, v: float) -> float:
        """e^{−∫f} from u up to v."""
        return np.exp(quad(beta, u, v)[0] / 2)

    noise = quad(lambda u: grown(t, u) ** 2 * g2(u), t, tau, epsabs=1e-13)[0]
    score = quad(lambda u: grown(t, u) * g2(u), t, tau, epsabs=1e-13)[0]
    if scheme == "symmetric_splitting":
        score = grown(t, (t + tau) / 2) * quad(g2, t, tau, epsabs=1e-13)[0]
    if scheme == "ancestral":
        added = quad(lambda u: g2(u) / grown(u, tau) ** 2, t, tau, epsabs=1e-13)[0]
        variances = [float(sde.variance(u)) for u in (t, tau)]
        score, noise = added * grown(t, tau), added * variances[0] / variances[1]
    found = coefficients(scheme, sde, jnp.array([tau, t]))
    np.testing.assert_allclose(found.linear, [grown(t, tau)], rtol=1e-10)
    np.testing.assert_allclose(found.score, [score], rtol=1e-10)
    np.testing.assert_allclose(found.noise_std, [np.sqrt(noise)], rtol=1e-10)


def test_ancestral_steps_reproduce_the_posterior_of_gaussians() -> None:
    """For data that are one point the ancestral step is exact: its output has the law of x_t."""
    for sde in (*LINEAR.values(), sdes.ou()):
        tau, t, point = 0.9, 0.4, 1.3
        at = coefficients("ancestral", sde, jnp.array([tau, t]))
        before, after = float(sde.variance(tau)), float(sde.variance(t))
        mean = float(sde.mean_coefficient(tau)) * point
        slope = at.linear[0] - at.score[0] / before
        variance = slope**2 * before + at.noise_std[0] ** 2
        mean_out = at.linear[0] * mean  # the score vanishes at the mean
        np.testing.assert_allclose(mean_out, sde.mean_coefficient(t) * point, rtol=1e-12)
        np.testing.assert_allclose(variance, after, rtol=1e-12)


def test_langevin_step_by_hand() -> None:
    x = np.array([[1.0, 2.0], [0.0, -1.0]])
    s, z = np.array([[3.0, 4.0], [0.0, 1.0]]), np.array([[0.0, 2.0], [4.0, 0.0]])
    # Mean norms: 3 of the scores, 3 of the noise.
    step = 2 * 0.9 * 0.1**2
    expected = x + step * s + np.sqrt(2 * step) * 0.7 * z
    found = langevin_step(jnp.asarray(x), jnp.asarray(s), jnp.asarray(z), 0.9, Langevin(0.1, 0.7))
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_langevin_step_without_score_or_batch_stays() -> None:
    x, noise = jnp.ones((2, 2)), jnp.ones((2, 2))
    found = langevin_step(x, jnp.zeros((2, 2)), noise, 1.0, Langevin())
    np.testing.assert_array_equal(found, x)
    empty = jnp.zeros((0, 3))
    assert langevin_step(empty, empty, empty, 1.0, Langevin()).shape == (0, 3)
