"""The floor of denoising score matching, by the law of the pair, and the error above it."""

import jax
import numpy as np
import pytest

from boundlab.theory.graph_diffusion import dsm_floor, noised_variance, score_error_from_loss


def loss(lam, t, slope):
    """E(σ·slope·Z_t + ξ)² for one Gaussian mode, Z_t = mZ_0 + σξ."""
    m, sigma_sq = np.exp(-t), 1 - np.exp(-2 * t)
    return sigma_sq * slope**2 * (m**2 * lam + sigma_sq) + 2 * sigma_sq * slope + 1


@pytest.mark.parametrize("t", [0.01, 0.5, 3.0])
def test_floor_is_the_loss_of_the_score(t):
    """Exact score: the loss of slope −1/v; a slope off by e has the score error e²v."""
    lam = 2.5
    v = float(noised_variance([lam], t)[0])
    sigma_sq = 1 - np.exp(-2 * t)
    floor = float(dsm_floor(t, lam * sigma_sq / v))
    np.testing.assert_allclose(floor, loss(lam, t, -1 / v), rtol=1e-10)
    np.testing.assert_allclose(floor, 1 - sigma_sq / v, rtol=1e-10)
    found = score_error_from_loss(loss(lam, t, 0.3 - 1 / v), floor, sigma_sq)
    np.testing.assert_allclose(found, 0.3**2 * v, rtol=1e-9)


def test_shapes_limits_and_no_clipping():
    times = np.array([0.5, 1.0])
    np.testing.assert_allclose(dsm_floor(times, 2.0), 2 / (np.exp(2 * times) - 1), rtol=1e-13)
    assert float(dsm_floor(1000.0, 1.0)) == 0.0
    np.testing.assert_allclose(dsm_floor(1e-9, 2e-9), 1.0, rtol=1e-8)
    np.testing.assert_allclose(score_error_from_loss([1.0, 2.0], 1.5, 0.5), [-1.0, 1.0])
    gradient = jax.grad(lambda t: dsm_floor(t, 1.0))(1000.0)
    assert np.isfinite(gradient)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "function", "arguments"),
    [
        ("t", dsm_floor, (0.0, 1.0)),
        ("mmse", dsm_floor, (1.0, -1.0)),
        ("mmse", dsm_floor, ([1.0, 2.0], [1.0, 2.0, 3.0])),
        ("loss", score_error_from_loss, (np.nan, 0.0, 1.0)),
        ("floor", score_error_from_loss, ([1.0, 2.0], [1.0], 1.0)),
        ("sigma_sq", score_error_from_loss, (1.0, 0.5, 0.0)),
    ],
)
def test_bad_input_is_named(named, function, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        function(*arguments)
