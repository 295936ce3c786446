"""SDEs against ordinary differential equations of their moments, and the densities they transport."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from boundlab.models import sde as sdes

ALL = {
    "vp": sdes.vp(0.1, 4.0),
    "sub_vp": sdes.sub_vp(0.1, 4.0),
    "ve": sdes.ve(0.2, 1.5),
    "ou": sdes.ou(),
}


@pytest.mark.parametrize("name", ALL)
def test_moments_solve_their_equations(name: str) -> None:
    sde, end = ALL[name], 0.8

    def slope(t: float, y: np.ndarray) -> list[float]:
        f, g = float(sde.drift_coefficient(t)), float(sde.diffusion(t))
        return [f * y[0], 2 * f * y[1] + g**2]

    start = [1.0, float(sde.variance(0.0))]
    solved = solve_ivp(slope, (0, end), start, rtol=1e-11, atol=1e-13, method="DOP853").y[:, -1]
    np.testing.assert_allclose(sde.mean_coefficient(end), solved[0], rtol=1e-9)
    np.testing.assert_allclose(sde.variance(end), solved[1], rtol=1e-9)


@pytest.mark.parametrize("name", ALL)
def test_drifts_transport_gaussians(name: str) -> None:
    """Of N(0, v(t)) the flow stretches at rate v'/(2v); the reverse SDE loses g²/v more."""
    sde, x = ALL[name], jnp.array([0.3, -1.2])

    def law(t: jax.Array) -> jax.Array:
        return sde.mean_coefficient(t) ** 2 * 2.5 + sde.variance(t)

    for t in (0.05, 0.6):
        v, slope = jax.value_and_grad(law)(jnp.float64(t))
        flow = sdes.probability_flow_drift(sde, x, -x / v, t)
        np.testing.assert_allclose(flow, x * slope / (2 * v), rtol=1e-12)
        reverse = sdes.reverse_drift(sde, x, -x / v, t)
        np.testing.assert_allclose(reverse - flow, x * sde.diffusion(t) ** 2 / (2 * v), rtol=1e-12)


def test_published_schedule() -> None:
    """β from .1 to 1: B = .55, m = .7596, σ² = .4231 at t = 1."""
    sde = sdes.vp(0.1, 1.0)
    np.testing.assert_allclose(sde.integrated_rate(1), 0.55, rtol=1e-14)
    np.testing.assert_allclose(sde.mean_coefficient(1.0), 0.7596, atol=5e-5)
    np.testing.assert_allclose(sde.variance(1.0), 0.4231, atol=5e-5)
    np.testing.assert_allclose(sde.diffusion(1.0), 1.0, rtol=1e-15)  # g, not g²
    sub = sdes.sub_vp(0.1, 1.0)
    np.testing.assert_allclose(sub.variance(1.0), sde.variance(1.0) ** 2, rtol=1e-14)
    exploding = sdes.ve(0.2, 1.0)
    np.testing.assert_allclose(exploding.variance([0.0, 1.0]), [0.04, 1.0], rtol=1e-14)


def test_small_times_keep_their_digits() -> None:
    for sde in (sdes.vp(1.0, 2.0), sdes.ou()):
        t = 1e-12
        np.testing.assert_allclose(sde.variance(t), sde.integrated_rate(t), rtol=1e-11)
    np.testing.assert_allclose(
        sdes.vp(1.0, 2.0).integrated_rate(0.5 + 1e-9, 0.5), 1.5e-9, rtol=1e-6
    )


def test_perturbing_adds_noise_to_the_shrunk_data() -> None:
    x, noise = np.array([[1.0, 2.0]]), np.array([[0.5, -1.0]])
    found = sdes.perturb(sdes.ou(), x, noise, 0.3)
    expected = np.exp(-0.3) * x + np.sqrt(1 - np.exp(-0.6)) * noise
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("name", ALL)
def test_precision_follows_the_time(name: str) -> None:
    t = jnp.float32(0.3)
    methods = ("drift_coefficient", "diffusion", "mean_coefficient", "variance", "integrated_rate")
    for method in methods:
        low, high = getattr(ALL[name], method)(t), getattr(ALL[name], method)(0.3)
        assert low.dtype == jnp.float32
        assert high.dtype == jnp.float64
        np.testing.assert_allclose(low, high, rtol=1e-6, atol=1e-12)


def test_parameters_may_be_traced() -> None:
    def variance(high: jax.Array) -> jax.Array:
        return sdes.vp(0.1, high).variance(0.5) + sdes.ve(0.1, high).variance(0.5)

    found = jax.vmap(variance)(jnp.array([2.0, 3.0]))
    expected = [-np.expm1(-(0.05 + (b - 0.1) / 8)) + 0.1 * b for b in (2.0, 3.0)]
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    assert len(jax.tree.leaves(sdes.vp(0.1, 2.0))) == 2
    assert not jax.tree.leaves(sdes.ou())


@pytest.mark.parametrize(
    ("make", "arguments", "named"),
    [
        (sdes.vp, (-0.1, 1.0), "beta_min"),
        (sdes.vp, (0.1, np.nan), "beta_max"),
        (sdes.vp, (1.0, 0.1), "beta_max"),
        (sdes.sub_vp, (0.0, 0.0), "beta_max"),
        (sdes.sub_vp, ("low", 1.0), "beta_min"),
        (sdes.ve, (0.0, 1.0), "sigma_min"),
        (sdes.ve, (1.0, 1.0), "sigma_max"),
        (sdes.ve, ([0.1, 0.2], 1.0), "sigma_min"),
    ],
)
def test_bad_parameters(make, arguments, named, as_users_call) -> None:
    with pytest.raises(ValueError, match=f"^{named}"):
        make(*arguments)


def test_bad_times(as_users_call) -> None:
    for sde in ALL.values():
        for t in (-1.0, np.nan):
            with pytest.raises(ValueError, match=r"^t:"):
                sde.variance(t)
