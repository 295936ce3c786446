"""Stale gradients of a bandit, projections and their bound: by enumeration and by vectors."""

import jax
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from boundlab.theory.policy_optimization.alignment import (
    bandit_step_limit,
    drift_length,
    entropic_optimum,
    kept_share,
    projected_cosine,
    projected_norm,
    projection_bound,
    stale_policy_gradient,
)

RNG = np.random.default_rng(7)
REWARD = RNG.standard_normal(5)
LOGITS = RNG.standard_normal(5)
BETA = 0.5
KAPPAS = ("ratio", "exact", "zero")
COSINES = np.array([-0.7, 0.0, 0.04, 0.05, 0.06, 0.3, 0.9, 0.999])


def objective(logits, reward=REWARD, beta=BETA):
    policy = softmax(logits)
    return policy @ reward - beta * policy @ np.log(policy)


def test_stale_gradient_by_enumeration():
    """Sum over actions of the behaviour; the score of whatever policy learns drops out."""
    behavior = softmax(LOGITS)
    paid = REWARD - BETA * np.log(behavior)
    for learner in (LOGITS, RNG.standard_normal(5)):
        total = np.zeros(5)
        for action in range(5):
            score = np.eye(5)[action] - softmax(learner)
            total += behavior[action] * (paid[action] - behavior @ paid) * score
        found = stale_policy_gradient(LOGITS, REWARD, BETA)
        np.testing.assert_allclose(found, total, atol=1e-15)


def test_stale_gradient_is_that_of_the_objective():
    step = 1e-6 * np.eye(5)
    slopes = [(objective(LOGITS + h) - objective(LOGITS - h)) / 2e-6 for h in step]
    np.testing.assert_allclose(stale_policy_gradient(LOGITS, REWARD, BETA), slopes, atol=1e-9)


def test_optimum_by_a_maximiser():
    found = entropic_optimum(REWARD, BETA)
    best = minimize(lambda x: -objective(x), np.zeros(5), tol=1e-14)
    np.testing.assert_allclose(found.value, -best.fun, rtol=1e-12)
    np.testing.assert_allclose(found.policy, softmax(best.x), atol=1e-6)
    np.testing.assert_allclose(found.value, BETA * logsumexp(REWARD / BETA), rtol=1e-14)
    gap = BETA * softmax(LOGITS) @ np.log(softmax(LOGITS) / softmax(REWARD / BETA))
    np.testing.assert_allclose(float(found.value) - objective(LOGITS), gap, rtol=1e-12)
    assert np.isfinite(entropic_optimum(1e3 * REWARD, 1e-3).policy).all()


@pytest.mark.parametrize("delay", [0, 1, 4])
def test_step_limit_by_eigenvalues(delay):
    """Spectral radius of the linearised recursion of (θ_t, …, θ_{t−τ}), Hessian by differences."""
    top = REWARD / BETA
    count, step = 5, 1e-4
    eye = step * np.eye(count)
    hessian = np.array(
        [
            [
                (
                    objective(top + a + b)
                    - objective(top + a - b)
                    - objective(top - a + b)
                    + objective(top - a - b)
                )
                / (4 * step**2)
                for b in eye
            ]
            for a in eye
        ]
    )
    limit = float(bandit_step_limit(REWARD, BETA, delay))
    for factor, stable in ((0.99, True), (1.01, False)):
        companion = np.eye(count * (delay + 1), k=-count)
        companion[:count, :count] += np.eye(count)
        companion[:count, -count:] += factor * limit * hessian
        # All logits may move together: that direction stays at 1.
        radii = np.sort(np.abs(np.linalg.eigvals(companion)))
        assert (radii[-1] < 1 + 1e-6) == stable


def vectors(cosine, size=6):
    """A reference and a gradient of norm 2 at this cosine."""
    basis = np.linalg.qr(RNG.standard_normal((size, 2)))[0].T
    return 3.0 * basis[0], 2.0 * (cosine * basis[0] + np.sqrt(1 - cosine**2) * basis[1])


@pytest.mark.parametrize("kappa", KAPPAS)
def test_projection_by_vectors(kappa):
    low = 0.05
    for cosine in COSINES:
        reference, gradient = vectors(cosine)
        unit = reference / 3.0
        along = (gradient @ unit) * unit
        share = 1.0
        if cosine > low:
            wanted = {"zero": 0.0, "ratio": low / cosine}
            tangent = low / np.sqrt(1 - low**2)
            across = np.linalg.norm(gradient - along)
            share = wanted.get(kappa, tangent * across / np.linalg.norm(along))
        update = gradient - along + share * along
        np.testing.assert_allclose(kept_share(cosine, low, kappa), share, rtol=1e-11)
        norm = np.linalg.norm(update)
        np.testing.assert_allclose(projected_norm(cosine, low, kappa), norm / 2, rtol=1e-12)
        assert norm <= 2 * (1 + 1e-14)
        expected = update @ unit / norm
        np.testing.assert_allclose(projected_cosine(cosine, low, kappa), expected, atol=1e-12)


def test_projection_at_the_edges():
    assert float(projected_norm(1.0, 0.05, "zero")) == 0.0
    assert float(projected_cosine(1.0, 0.05, "zero")) == 0.0
    assert float(projected_cosine(1.0, 0.05, "exact")) == 0.05
    assert float(kept_share(1.0, 0.05, "exact")) == 0.0
    np.testing.assert_array_equal(kept_share(COSINES, 0.0, "ratio")[:2], 1.0)
    np.testing.assert_array_equal(kept_share(COSINES, 0.0, "ratio")[2:], 0.0)
    slopes = jax.jit(jax.vmap(jax.grad(lambda c: kept_share(c, 0.05, "exact"))))(COSINES)
    assert np.isfinite(slopes).all()
    assert (np.asarray(kept_share(np.linspace(0.06, 1, 50), 0.05, "ratio")) >= 0.05).all()


def test_drift_of_vectors():
    """Gram matrices with equal cosines, factored."""
    for cosine in (-0.2, 0.0, 0.4, 1.0):
        gram = np.full((5, 5), cosine) + (1 - cosine) * np.eye(5)
        values, columns = np.linalg.eigh(gram)
        steps = 1.5 * columns @ np.diag(np.sqrt(np.maximum(values, 0)))
        expected = np.linalg.norm(steps.sum(axis=0))
        np.testing.assert_allclose(drift_length(cosine, 5, 1.5), expected, rtol=1e-12)
    assert float(drift_length(-0.25, 5)) == 0.0
    assert float(drift_length(1.0, 1)) == 1.0


@pytest.mark.parametrize("delay", [0, 1, 9])
@pytest.mark.parametrize("kappa", [1.0, 0.05])
def test_projection_bound_on_non_convex_runs(delay, kappa):
    """Random projections of floor κ at the longest step allowed, delays of 0 to s, every T."""
    # h = x²/(1 + x²) has |h''| ≤ 2, and its least value is 0.
    rng, smoothness, size, count = np.random.default_rng(delay), 2.0, 4, 120
    step = 1.0 if delay == 0 else (np.sqrt(1 + 4 * delay**2) - 1) / (2 * delay**2)
    step /= smoothness
    for _ in range(4):
        path = [rng.standard_normal(size)]
        start = (path[0] ** 2 / (1 + path[0] ** 2)).sum()
        least = np.inf
        for t in range(count):
            old = path[t - min(t, rng.integers(0, delay + 1))]
            gradient = 2 * old / (1 + old**2) ** 2
            unit = rng.standard_normal(size)
            unit /= np.linalg.norm(unit)
            share = rng.choice([kappa, 1.0])
            update = gradient - (1 - share) * (unit @ gradient) * unit
            here = 2 * path[-1] / (1 + path[-1] ** 2) ** 2
            least = min(least, here @ here)
            bound = 2 * start / (kappa * step * (t + 1))
            assert least <= bound
            path.append(path[-1] - step * update)
    found = projection_bound(start, step, smoothness, delay, kappa, count)
    np.testing.assert_allclose(found, bound, rtol=1e-13)


def test_projection_bound_is_met_by_a_line():
    """One huge valley of constant slope: the least gradient is within 2 of the bound."""
    slope, step, count = 0.7, 1e-3, 50
    gap = slope**2 * step * count  # what a step of −η∇f gains, count times
    bound = float(projection_bound(gap, step, 1e-9, 0, 1.0, count))
    np.testing.assert_allclose(bound, 2 * slope**2, rtol=1e-12)


def test_projection_bound_of_traced_numbers():
    steps = np.array([0.01, 0.05])
    found = jax.vmap(lambda step: projection_bound(1.0, step, 1.0, 2, 0.5, 10))(steps)
    np.testing.assert_allclose(found, 2 / (0.5 * steps * 10), rtol=1e-14)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "function", "arguments"),
    [
        ("behavior_logits", stale_policy_gradient, ([0.0, np.nan], [1.0, 2.0], 0.1)),
        ("behavior_logits", stale_policy_gradient, (np.zeros(3), [1.0, 2.0], 0.1)),
        ("reward", stale_policy_gradient, (0.0, 1.0, 0.1)),
        ("entropy_weight", stale_policy_gradient, (np.zeros(2), [1.0, 2.0], -0.1)),
        ("reward", entropic_optimum, ([], 0.1)),
        ("entropy_weight", entropic_optimum, ([1.0, 2.0], 0.0)),
        ("entropy_weight", bandit_step_limit, ([1.0, 2.0], [0.1], 1)),
        ("reward", bandit_step_limit, ([1.0], 0.1, 1)),
        ("delay", bandit_step_limit, ([1.0, 2.0], 0.1, -1)),
        ("delay", bandit_step_limit, ([1.0, 2.0], 0.1, 0.5)),
        ("cosine", kept_share, (1.1, 0.05, "ratio")),
        ("low", kept_share, (0.5, 1.0, "ratio")),
        ("low", projected_norm, (0.5, [0.1], "ratio")),
        ("kappa", projected_cosine, (0.5, 0.05, "ratios")),
        ("cosine", drift_length, (-0.5, 5)),
        ("num_steps", drift_length, (0.5, 0)),
        ("step_length", drift_length, (0.5, 3, -1.0)),
        ("initial_gap", projection_bound, (-1.0, 0.1, 1.0, 1, 0.5, 10)),
        ("step_size", projection_bound, (1.0, 0.0, 1.0, 1, 0.5, 10)),
        ("step_size", projection_bound, (1.0, 1.01, 1.0, 0, 0.5, 10)),
        ("step_size", projection_bound, (1.0, 0.63, 1.0, 1, 0.5, 10)),
        ("step_size", projection_bound, (1.0, [0.1], 1.0, 1, 0.5, 10)),
        ("smoothness", projection_bound, (1.0, 0.1, 0.0, 1, 0.5, 10)),
        ("delay", projection_bound, (1.0, 0.1, 1.0, -1, 0.5, 10)),
        ("kappa", projection_bound, (1.0, 0.1, 1.0, 1, 0.0, 10)),
        ("kappa", projection_bound, (1.0, 0.1, 1.0, 1, 1.5, 10)),
        ("num_steps", projection_bound, (1.0, 0.1, 1.0, 1, 0.5, 0)),
        ("num_steps", projection_bound, (1.0, 0.1, 1.0, 1, 0.5, np.nan)),
    ],
)
def test_bad_input_is_named(named, function, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        function(*arguments)


def test_a_step_just_too_long_is_told_so_in_full():
    with pytest.raises(ValueError, match=r"^step_size: .*\(here 1\.00000000001"):
        projection_bound(1.0, 1.0 + 1e-11, 1.0, 0, 0.5, 10)
    with pytest.raises(ValueError, match=r"^step_size: .*\(here inf\)"):
        projection_bound(1.0, 0.1, 1.0, 10**300, 0.5, 10)
