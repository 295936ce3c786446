"""The regression task in closed form, by inverses of matrices, log Γ, brackets and hand calculation."""

import jax
import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.special

from boundlab.theory.team_learning import (
    neglected_variance,
    noise_inflation,
    regression_crossover,
    regression_risk,
    running_mean_weights,
)

AGENTS = 4


def mixing(kind, coupling):
    """(I − L)^{-1}, rows the weights of u_1, …, u_K in y_i."""
    below = np.tri(AGENTS, k=-1)
    predecessors = {
        "mean": coupling * below / np.maximum(np.arange(AGENTS), 1)[:, None],
        "chain": coupling * np.eye(AGENTS, k=-1),
        "sum": coupling * below,
    }[kind]
    return np.linalg.inv(np.eye(AGENTS) - predecessors)


@pytest.mark.parametrize("kind", ["mean", "chain", "sum"])
@pytest.mark.parametrize("coupling", [0.0, 0.3, 1.0, 7.5])
def test_variances_by_matrix_inverse(kind, coupling):
    squares = mixing(kind, coupling) ** 2
    found = noise_inflation(AGENTS, coupling, kind=kind)
    np.testing.assert_allclose(found, squares.sum(axis=1), rtol=1e-12)
    found = neglected_variance(AGENTS, coupling, kind=kind)
    np.testing.assert_allclose(found, squares.sum(axis=1) - 1, rtol=1e-11, atol=1e-14)


def test_variances_by_hand():
    """V_i(1) = 1 + Σ_{j<i} 1/j²; chain (1 − ρ^{2i})/(1 − ρ²); sum 1 + (4^{i−1} − 1)/3."""
    place = np.arange(1, AGENTS + 1)
    partial = np.concatenate([[0.0], np.cumsum(1.0 / place[:-1] ** 2)])
    np.testing.assert_allclose(noise_inflation(AGENTS, 1), 1 + partial, rtol=1e-14)
    chain = (1 - 0.8 ** (2 * place)) / (1 - 0.64)
    np.testing.assert_allclose(noise_inflation(AGENTS, 0.8, kind="chain"), chain, rtol=1e-13)
    total = 1 + (4.0 ** (place - 1) - 1) / 3
    np.testing.assert_allclose(noise_inflation(AGENTS, 1.0, kind="sum"), total, rtol=1e-13)
    many = noise_inflation(5000, 1.0)
    expected = 1 + np.pi**2 / 6 - scipy.special.polygamma(1, 5000)
    np.testing.assert_allclose(many[-1], expected, rtol=1e-13)


@pytest.mark.parametrize("coupling", [0.0, 0.4, 1.0, 30.0])
def test_weights_by_log_gamma(coupling):
    place = np.arange(1, AGENTS + 1)
    i, j = place[:, None], place[None, :]
    log_b = scipy.special.gammaln(i + coupling) - scipy.special.gammaln(j + coupling)
    log_b += scipy.special.gammaln(j + 1) - scipy.special.gammaln(i + 1) - np.log(j)
    found = running_mean_weights(AGENTS, coupling)
    np.testing.assert_allclose(found, np.tril(np.exp(log_b)), rtol=1e-12)
    squares = np.concatenate([[0.0], (np.asarray(found) ** 2).sum(axis=1)[:-1]])
    np.testing.assert_allclose(neglected_variance(AGENTS, coupling), coupling**2 * squares)


def test_golden_risks():
    expected = {
        "sarl": [0.1277, 0.2094, 0.2143, 0.2122],
        "aware": [0.0268, 0.0439, 0.0450, 0.0445],
        "blind": [0.0268, 0.7182, 0.7597, 0.7421],
    }
    for learner, values in expected.items():
        found = regression_risk(60, 4, 3, 0.5, 0.8, learner)
        np.testing.assert_allclose(found, values, atol=6e-5)


def test_risks_by_inverse_wishart():
    """σ²V E tr(XᵀX)^{-1} of one subtask, by quadrature of a χ² for one input: E 1/χ²_n = 1/(n − 2)."""
    n = 9
    density = scipy.integrate.quad(
        lambda x: (
            np.exp((n / 2 - 2) * np.log(x) - x / 2 - scipy.special.gammaln(n / 2)) / 2 ** (n / 2)
        ),
        0,
        np.inf,
    )[0]
    found = regression_risk(n, 2, 1, 0.7, 0.6, "aware")
    np.testing.assert_allclose(found, 0.7 * density * np.array([1.0, 1.36]), rtol=1e-8)
    blind = regression_risk(n, 2, 1, 0.7, 0.6, "blind")
    np.testing.assert_allclose(blind[1], 0.36 + (0.7 * 1.36 + 0.36) * density, rtol=1e-8)


def test_infinite_below_the_inputs():
    for learner, inputs in (("sarl", 12), ("aware", 3), ("blind", 3)):
        for n in (0, inputs, inputs + 1):
            assert np.isinf(regression_risk(n, 4, 3, 0.5, 0.8, learner)).all()
        assert np.isfinite(regression_risk(inputs + 1.5, 4, 3, 0.5, 0.8, learner)).all()
        assert np.isinf(regression_risk(inputs, 4, 3, 0.0, 0.8, learner)).all()


def test_limits():
    one = [
        regression_risk(20, 1, 4, 2.0, 0.7, learner)[0] for learner in ("sarl", "aware", "blind")
    ]
    np.testing.assert_allclose(one, 8.0 / 15.0, rtol=1e-14)
    assert not np.asarray(regression_risk(40, 4, 3, 0.0, 0.8, "sarl")).any()
    np.testing.assert_allclose(
        regression_risk(40, 4, 3, 0.0, 0.8, "blind"),
        np.asarray(neglected_variance(4, 0.8)) * (1 + 3 / 36),
        rtol=1e-14,
    )
    free = [regression_risk(40, 4, 3, 0.5, 0.0, learner) for learner in ("aware", "blind")]
    np.testing.assert_array_equal(*free)
    for kind in ("mean", "sum"):  # beyond float64: infinite, never NaN
        for learner in ("sarl", "aware", "blind"):
            for noise in (0.0, 0.5):
                risk = regression_risk(60, 4, 3, noise, 1e150, learner, kind=kind)
                assert not np.isnan(risk).any()
        assert float(regression_crossover(4, 3, 0.5, 1e150, kind=kind)) == 13 + 9 * 0.5


@pytest.mark.parametrize("kind", ["mean", "chain", "sum"])
@pytest.mark.parametrize(("noise", "coupling"), [(0.5, 0.8), (2.0, 0.5), (0.01, 3.0)])
def test_crossover_by_bracketing(kind, noise, coupling):
    def difference(n):
        blind = regression_risk(n, 4, 3, noise, coupling, "blind", kind=kind)
        return float(
            np.mean(blind) - np.mean(regression_risk(n, 4, 3, noise, coupling, "sarl", kind=kind))
        )

    found = float(regression_crossover(4, 3, noise, coupling, kind=kind))
    root = scipy.optimize.brentq(difference, 13.0 + 1e-9, 1e6, xtol=1e-13, rtol=1e-14)
    np.testing.assert_allclose(found, root, rtol=1e-10)
    assert abs(difference(found)) < 1e-9
    assert difference(0.99 * found) < 0 < difference(1.01 * found)


def test_crossover_values_and_limits():
    found = [float(regression_crossover(4, 3, *case)) for case in ((0.5, 0.8), (2.0, 0.5))]
    np.testing.assert_allclose(found, [26.5887, 146.763], atol=5e-4)
    assert float(regression_crossover(4, 3, 0.5, 0.0)) == np.inf
    assert float(regression_crossover(4, 3, 0.5, 1e-200)) == np.inf
    assert float(regression_crossover(1, 3, 0.5, 0.8)) == np.inf
    assert float(regression_crossover(4, 3, 0.0, 0.8)) == 13.0
    # F̄ → λ² H_{K−1}/K: n* grows as λ^{−2}.
    limit = 9 * 0.5 * 4 / (1 + 1 / 2 + 1 / 3)
    np.testing.assert_allclose(regression_crossover(4, 3, 0.5, 1e-7) * 1e-14, limit, rtol=1e-6)


def test_traced_numbers():
    def total(n, noise, coupling):
        return regression_risk(n, 4, 3, noise, coupling, "blind").sum()

    found = jax.jit(total)(60, 0.5, 0.8)
    np.testing.assert_allclose(found, total(60, 0.5, 0.8), rtol=1e-14)
    gradient = jax.grad(regression_crossover, argnums=3)(4, 3, 0.5, 0.8)
    moved = regression_crossover(4, 3, 0.5, 0.8 + 1e-6) - regression_crossover(
        4, 3, 0.5, 0.8 - 1e-6
    )
    np.testing.assert_allclose(gradient, moved / 2e-6, rtol=1e-7)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "changed"),
    [
        ("num_samples", -1),
        ("num_samples", [30, 40]),
        ("num_agents", 0),
        ("num_agents", 2.5),
        ("dim", 0),
        ("noise_variance", -0.1),
        ("noise_variance", np.nan),
        ("coupling", -0.1),
        ("coupling", 1e200),
        ("learner", "marl"),
        ("kind", "means"),
    ],
)
def test_bad_input_is_named(named, changed):
    given = {
        "num_samples": 60,
        "num_agents": 4,
        "dim": 3,
        "noise_variance": 0.5,
        "coupling": 0.8,
        "learner": "sarl",
        "kind": "mean",
    } | {named: changed}
    with pytest.raises(ValueError, match=rf"^{named}: "):
        regression_risk(**given)
    del given["num_samples"], given["learner"]
    if named in given:
        with pytest.raises(ValueError, match=rf"^{named}: "):
            regression_crossover(**given)
    del given["dim"], given["noise_variance"]
    if named in given:
        with pytest.raises(ValueError, match=rf"^{named}: "):
            noise_inflation(**given)
        with pytest.raises(ValueError, match=rf"^{named}: "):
            neglected_variance(**given)
    del given["kind"]
    if named in given:
        with pytest.raises(ValueError, match=rf"^{named}: "):
            running_mean_weights(**given)
