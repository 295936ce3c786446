"""Depth: the profile against the theory of one layer on the deep spectrum, and over-smoothing."""

import jax
import networkx as nx
import numpy as np
import pytest

from boundlab.theory.excess_risk import graph, sgd

NODES, NOISE, SAMPLES = 256, 0.25, 512


@pytest.fixture(scope="module")
def operator():
    """Eigenvalues of (I + S)/2 of a 4-regular graph, descending."""
    A = nx.to_numpy_array(nx.random_regular_graph(4, NODES, seed=1)) + np.eye(NODES)
    return np.linalg.eigvalsh((np.eye(NODES) + A / 5) / 2)[::-1].copy()


def deep_spectrum(values, depth):
    mu = values ** (2.0 * depth)
    return mu / mu.sum()


@pytest.mark.smoke
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("teacher", ["function", "weights"])
def test_equals_one_layer_on_the_deep_spectrum(teacher, depth):
    rng = np.random.default_rng(0)
    values, power = 0.5 + rng.random(9), rng.random(9)
    mu = deep_spectrum(values, depth)
    theta_sq = power / (mu if teacher == "function" else deep_spectrum(values, 1))
    step = 0.3 * sgd.stability_limit(mu)
    expected = sgd.tail_averaged_risk(mu, theta_sq, 0.4, step, 33)
    got = graph.depth_profile(values, power, 0.4, 33, depth, teacher, 0.3)
    np.testing.assert_allclose(got.bias, expected.bias, 1e-12)
    np.testing.assert_allclose(got.variance, expected.variance, 1e-12)
    # The operator's own scale does not matter.
    scaled = graph.depth_profile(1e90 * values, power, 0.4, 33, depth, teacher, 0.3)
    np.testing.assert_allclose(scaled.bias, expected.bias, 1e-12)


def total(profile):
    return float(profile.bias.sum() + profile.variance.sum())


def test_fixed_function_gets_harder_with_depth(operator):
    """Risk and effective rank are monotone; in the limit all but the top direction is lost."""
    power = deep_spectrum(operator, 1)  # θ*_i² = 1 at depth 1
    depths = (1, 2, 4, 8, 16, 32, 64)
    risks = [
        total(graph.depth_profile(operator, power, NOISE, SAMPLES, L, "function")) for L in depths
    ]
    ranks = [float(graph.effective_rank(deep_spectrum(operator, L))) for L in depths]
    assert np.all(np.diff(risks) >= 0)
    assert np.all(np.diff(ranks) <= 0)
    np.testing.assert_allclose(risks[-1], 1 - power[0], 0.02)
    np.testing.assert_allclose(risks[0], 0.299, atol=0.005)


def test_fixed_weights_get_easier_with_depth(operator):
    power = deep_spectrum(operator, 1)
    risks = [
        total(graph.depth_profile(operator, power, NOISE, SAMPLES, L, "weights"))
        for L in (1, 2, 4, 8, 16, 32, 64)
    ]
    assert np.all(np.diff(risks) <= 0)


def test_limit_of_depth_is_the_one_dimensional_problem():
    """L → ∞: (1 − p_1) + (σ² + 1 − p_1) V_1 + p_1 B_1, the lost power being noise for the top one."""
    values, power = np.array([0.2, 1.0, 0.5]), np.array([0.5, 0.3, 0.2])
    one = sgd.tail_averaged_risk([1.0], [1.0], 1.0, 0.5 * 2 / 3, 40)
    expected = 0.7 + (0.6 + 0.7) * one.variance[0] + 0.3 * one.bias[0]
    # μ of the others underflows to zero here, and their power is still lost.
    got = graph.depth_profile(values, power, 0.6, 40, 2000, "function")
    np.testing.assert_allclose(total(got), expected, 1e-12)
    np.testing.assert_allclose(got.bias[0], 0.5, 1e-15)


def test_effective_rank_never_rises_with_depth():
    rng = np.random.default_rng(3)
    for _ in range(100):
        values = rng.random(10) ** rng.choice([0.1, 1.0, 4.0]) + 1e-3
        ranks = [float(graph.effective_rank(deep_spectrum(values, L))) for L in (1, 2, 3, 5, 9)]
        assert np.all(np.diff(ranks) <= 1e-12)


def test_floats_are_traced_and_differentiable():
    values, power = np.array([0.9, 0.5, 0.7]), np.array([0.5, 0.3, 0.2])

    def risk(fraction):
        profile = graph.depth_profile(values, power, 0.3, 20, 3, "function", fraction)
        return profile.bias.sum() + profile.variance.sum()

    fractions = np.array([0.2, 0.5, 0.8])
    batch = jax.jit(jax.vmap(risk))(fractions)
    np.testing.assert_allclose(batch, [risk(f) for f in fractions], 1e-13)
    slope = (risk(0.5 + 1e-5) - risk(0.5 - 1e-5)) / 2e-5
    np.testing.assert_allclose(jax.grad(risk)(0.5), slope, 1e-7)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("operator_eigenvalues", np.array([1.0, 0.0])),
        ("operator_eigenvalues", np.array([1.0, -0.5])),
        ("power", np.ones(3)),
        ("power", np.array([1.0, np.nan])),
        ("noise_variance", -1.0),
        ("num_samples", 0),
        ("depth", 0),
        ("teacher", "weight"),
        ("step_fraction", 0.0),
        ("step_fraction", 1.0),
    ],
)
def test_bad_value_is_named(name, value):
    good = {"operator_eigenvalues": np.ones(2), "power": np.ones(2), "noise_variance": 1.0}
    good |= {"num_samples": 8, "depth": 2, "teacher": "weights"}
    with pytest.raises(ValueError, match=rf"^{name}: got"):
        graph.depth_profile(**{**good, name: value})
