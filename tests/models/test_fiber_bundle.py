"""FiberPO by densities, against loops and against the other implementation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.models.fiber_bundle import (
    check_reflecting,
    density_gate,
    density_ratio,
    kernel,
    push_forward,
    ratio_density,
)
from boundlab.models.gates import fiber_gate

MASK = np.arange(6)[None] < np.array([6, 4, 1, 0, 5, 6])[:, None]
BUDGETS = (0.12, 0.05, 0.04)

both = jax.jit(
    lambda ratio: (density_gate(ratio, MASK, *BUDGETS), fiber_gate(ratio, MASK, *BUDGETS)[0])
)


def ratios(scale):
    drawn = scale * np.random.default_rng(7).standard_normal(MASK.shape)
    return np.where(MASK, drawn, np.nan)


@pytest.fixture(scope="module")
def densities():
    """Densities of drawn ratios, what they are pushed to and lifted to, and back to ratios."""
    run = jax.jit(
        lambda ratio: [
            density := ratio_density(ratio, MASK),
            base := push_forward(density),
            kernel(base, MASK),
            density_ratio(density, MASK),
            check_reflecting(density, MASK),
            check_reflecting(density, MASK, lambda b, _: kernel(b, jnp.ones(MASK.shape, bool))),
            check_reflecting(density, MASK, lambda b, m: 0.5 * kernel(b, m)),
        ]
    )
    return [np.array(part) for part in run(ratios(0.3))]


def test_densities_by_loops(densities):
    density, base, lifted, back, *_ = densities
    ratio = np.nan_to_num(ratios(0.3))
    for b, kept in enumerate(MASK):
        length = max(kept.sum(), 1)
        for t in range(6):
            expected = [max(ratio[b, t], 0) / length, max(-ratio[b, t], 0) / length]
            np.testing.assert_allclose(density[b, t], expected, atol=1e-16)
        expected = [sum(density[b, t, place] for t in range(6)) for place in range(2)]
        np.testing.assert_allclose(base[b], expected, atol=1e-16)
        for t in range(6):
            expected = base[b] / length if kept[t] else [0, 0]
            np.testing.assert_allclose(lifted[b, t], expected, atol=1e-16)
    np.testing.assert_allclose(back, ratio, atol=1e-15)


def test_only_the_kernel_over_unmasked_tokens_is_reflecting(densities):
    residual, padded, halved = densities[-3:]
    assert residual <= 1e-15
    # What is spread over padding too isn't lost: its sum over all positions is the base density.
    assert padded <= 1e-15
    np.testing.assert_allclose(halved, np.abs(0.5 * densities[1]).max(), rtol=1e-12)


@pytest.mark.parametrize("scale", [0.02, 0.1, 0.3, 3.0])
def test_it_is_the_gate(scale):
    by_density, gate = both(ratios(scale))
    np.testing.assert_allclose(by_density, gate, atol=1e-14)
    assert not np.array(by_density)[~MASK].any()


def test_residual_of_the_gated_base_differs_off_the_box_alone():
    gated = jax.jit(lambda ratio: density_gate(ratio, MASK, *BUDGETS, residual_of_gated=True))
    inside = np.clip(np.nan_to_num(ratios(0.1)), -0.04, 0.04)
    np.testing.assert_allclose(gated(inside), np.where(MASK, inside, 0), atol=1e-15)
    assert np.abs(np.array(gated(ratios(0.3))) - both(ratios(0.3))[0]).max() > 0.01


def test_clipped_residuals_have_an_aggregate():
    """One token up by .5, six down by .02: what the clip leaves of + sums to −(T − 2)ε/T, not 0."""
    ratio, size = np.array([[0.5, *[-0.02] * 6]]), 7
    density = ratio_density(ratio, np.ones((1, size), dtype=bool))
    residual = density - kernel(push_forward(density), np.ones((1, size), dtype=bool))
    limited = np.clip(np.array(residual), -0.04 / size, 0.04 / size)
    assert np.abs(np.array(push_forward(residual))).max() < 1e-15
    np.testing.assert_allclose(limited[0, :, 0].sum(), -5 * 0.04 / size, rtol=1e-12)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "arguments"),
    [
        ("log_ratio", (np.zeros(3), np.ones(3), 0.1, 0.1, 0.1)),
        ("mask", (np.zeros((2, 3)), np.full((2, 3), 0.5), 0.1, 0.1, 0.1)),
        ("budget_plus", (np.zeros((2, 3)), np.ones((2, 3)), -0.1, 0.1, 0.1)),
        ("budget_minus", (np.zeros((2, 3)), np.ones((2, 3)), 0.1, np.inf, 0.1)),
        ("epsilon", (np.zeros((2, 3)), np.ones((2, 3)), 0.1, 0.1, 0.0)),
    ],
)
def test_bad_input_is_named(named, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        density_gate(*arguments)
