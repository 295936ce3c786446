"""Exact score of the block model: derivatives of an enumerated density, limits, symmetries."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from boundlab.theory.graph_diffusion import sbm_information_density, sbm_joint_score

NODES = 4
MODEL = {"p_in": 0.7, "p_out": 0.1, "mu": 1.0, "noise_std": 0.5}
FIRST, SECOND = np.triu_indices(NODES, 1)


@pytest.fixture(scope="module")
def point() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    return rng.standard_normal(NODES), rng.standard_normal(6)


def log_density(x, edges, mean_features, mean_structure, p_in, p_out, mu, noise_std):
    """Log of Σ_z N(x; m_X μz, v) Π [p N(a; m_A, σ²) + (1 − p) N(a; 0, σ²)], or of clean edges."""
    v = (mean_features * noise_std) ** 2 + 1 - mean_features**2
    terms = []
    for labels in itertools.product((-1.0, 1.0), repeat=NODES):
        z = np.array(labels)
        total = -jnp.sum((x - mean_features * mu * z) ** 2) / (2 * v)
        p = np.where(z[FIRST] == z[SECOND], p_in, p_out)
        if mean_structure == 1.0:
            pair = jnp.log(jnp.where(edges > 0.5, p, 1 - p))
        else:
            sigma_sq = 1 - mean_structure**2
            present = p * jnp.exp(-((edges - mean_structure) ** 2) / (2 * sigma_sq))
            pair = jnp.log(present + (1 - p) * jnp.exp(-(edges**2) / (2 * sigma_sq)))
        terms.append(total + jnp.sum(pair))
    return jax.scipy.special.logsumexp(jnp.stack(terms))


def test_score_is_the_gradient_of_the_enumerated_density(point):
    x, edges = (jnp.asarray(part) for part in point)
    found = sbm_joint_score(x, edges, 0.8, 0.6, **MODEL)
    expected = jax.grad(log_density, argnums=(0, 1))(x, edges, 0.8, 0.6, **MODEL)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)


def test_clean_blocks(point):
    """Given clean edges or features, and zeros for the clean block."""
    x, edges = point
    binary = np.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0])
    score_x, score_edges = sbm_joint_score(x, binary, 0.8, 1.0, **MODEL)
    expected = jax.grad(log_density)(jnp.asarray(x), binary, 0.8, 1.0, **MODEL)
    np.testing.assert_allclose(score_x, expected, rtol=1e-10)
    assert not np.asarray(score_edges).any()
    score_x, score_edges = sbm_joint_score(x, edges, 1.0, 0.6, **MODEL)
    expected = jax.grad(log_density, argnums=1)(x, jnp.asarray(edges), 1.0, 0.6, **MODEL)
    np.testing.assert_allclose(score_edges, expected, rtol=1e-10)
    assert not np.asarray(score_x).any()


def test_without_a_partner_features_are_independent(point):
    """m_A = 0: each feature is a mixture of two Gaussians, and a noise edge has score −a."""
    x, edges = point
    score_x, score_edges = sbm_joint_score(x, edges, 0.8, 0.0, **MODEL)
    v = 0.64 * 0.25 + 0.36
    np.testing.assert_allclose(score_x, (0.8 * np.tanh(0.8 * x / v) - x) / v, rtol=1e-12)
    np.testing.assert_allclose(score_edges, -edges, rtol=1e-12)


@pytest.mark.parametrize(("mean_x", "mean_a"), [(0.8, 0.6), (0.8, 1.0), (1.0, 0.6)])
def test_information_by_three_enumerated_densities(point, mean_x, mean_a):
    """The density of a block alone is that of the pair with the partner at pure noise, over its own."""
    x, edges = point
    edges = (edges > 0.0).astype(np.float64) if mean_a == 1.0 else edges
    both = log_density(x, edges, mean_x, mean_a, **MODEL)
    blank = log_density(x, edges, mean_x, 0.0, **MODEL) + np.sum(edges**2) / 2
    other = log_density(x, edges, 0.0, mean_a, **MODEL) + np.sum(x**2) / 2
    expected = both - blank - other + NODES * np.log(2)
    found = sbm_information_density(x, edges, mean_x, mean_a, **MODEL)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_scores_commute_with_relabelling(point):
    """Nodes in another order give the scores in that order."""
    x, edges = point
    order = np.array([2, 0, 3, 1])
    matrix = np.zeros((NODES, NODES))
    matrix[FIRST, SECOND] = edges
    matrix += matrix.T
    moved = matrix[np.ix_(order, order)][FIRST, SECOND]
    found = sbm_joint_score(x[order], moved, 0.8, 0.6, **MODEL)
    straight = sbm_joint_score(x, edges, 0.8, 0.6, **MODEL)
    back = np.zeros((NODES, NODES))
    back[FIRST, SECOND] = straight[1]
    back += back.T
    np.testing.assert_allclose(found[0], np.asarray(straight[0])[order], rtol=1e-12)
    np.testing.assert_allclose(found[1], back[np.ix_(order, order)][FIRST, SECOND], rtol=1e-12)


def test_far_from_all_mass_and_near_clean(point):
    """Finite in the tails and where the noise has all but gone."""
    x, edges = point
    for scale, mean in ((1e6, 0.6), (1.0, 1.0 - 1e-12), (1e6, 1.0 - 1e-12)):
        for part in sbm_joint_score(scale * x, scale * edges, mean, mean, **MODEL):
            assert np.isfinite(np.asarray(part)).all()


def test_fisher_information_against_the_specification(key):
    """J of features and of edges at OU time .3, n = 8, in z-tests against recorded means."""
    nodes, mean = 8, np.exp(-0.3)
    first, second = np.triu_indices(nodes, 1)
    rng = np.random.default_rng(1)
    draws = 8192
    z = rng.choice([-1.0, 1.0], (draws, nodes))
    clean_x = z + 0.5 * rng.standard_normal((draws, nodes))
    p = np.where(z[:, first] == z[:, second], 0.7, 0.1)
    clean_a = (rng.random(p.shape) < p).astype(np.float64)
    sigma = np.sqrt(1 - mean**2)
    x = mean * clean_x + sigma * rng.standard_normal(clean_x.shape)
    a = mean * clean_a + sigma * rng.standard_normal(clean_a.shape)

    @jax.jit
    def squares(x, a, m_x, m_a):
        score = jax.vmap(lambda x, a: sbm_joint_score(x, a, m_x, m_a, **MODEL))(x, a)
        return [jnp.sum(part**2, axis=1) for part in score]

    noisy = squares(x, a, mean, mean)
    measured = [
        squares(x, clean_a, mean, 1.0)[0],
        noisy[0],
        squares(x, a, mean, 0.0)[0],
        squares(clean_x, a, 1.0, mean)[1],
        noisy[1],
        squares(x, a, 0.0, mean)[1],
    ]
    recorded = [(12.549, 0.009), (9.072, 0.009), (7.6167, 0.0)]
    recorded += [(52.39, 0.03), (50.01, 0.03), (48.43, 0.03)]
    for samples, (value, error) in zip(measured, recorded, strict=True):
        values = np.asarray(samples)
        spread = np.hypot(scipy.stats.sem(values), error)
        assert abs(values.mean() - value) < 4.9 * spread


def test_one_node(as_users_call):
    score_x, score_edges = sbm_joint_score(np.array([0.3]), np.zeros(0), 0.8, 0.5, **MODEL)
    v = 0.64 * 0.25 + 0.36
    np.testing.assert_allclose(score_x, [(0.8 * np.tanh(0.8 * 0.3 / v) - 0.3) / v], rtol=1e-12)
    assert score_edges.shape == (0,)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"x": np.zeros(11), "edges": np.zeros(55)}, "x"),
        ({"x": np.zeros((2, 2))}, "x"),
        ({"x": np.array([0.0, np.inf, 0.0])}, "x"),
        ({"edges": np.zeros(4)}, "edges"),
        ({"edges": np.array([0.0, 0.5, 1.0]), "mean_structure": 1.0}, "edges"),
        ({"mean_features": 1.1}, "mean_features"),
        ({"mean_structure": -0.1}, "mean_structure"),
        ({"p_in": 1.0}, "p_in"),
        ({"p_out": 0.0}, "p_out"),
        ({"mu": np.nan}, "mu"),
        ({"noise_std": 0.0}, "noise_std"),
        ({"noise_std": 1e-200, "mean_features": 1.0}, "noise_std"),
    ],
)
def test_bad_input_is_named(as_users_call, change, named):
    arguments = {
        "x": np.zeros(3),
        "edges": np.zeros(3),
        "mean_features": 0.5,
        "mean_structure": 0.5,
        **MODEL,
    } | change
    with pytest.raises(ValueError, match=f"^{named}:"):
        sbm_joint_score(**arguments)
    with pytest.raises(ValueError, match=f"^{named}:"):
        sbm_information_density(**arguments)
