"""Coupled Gaussian systems: recursions by explicit maps, bounds by quadrature and by hand."""

from itertools import pairwise

import jax
import numpy as np
import pytest
import scipy.integrate

from boundlab.theory.graph_diffusion import (
    block_fisher,
    covariance_kl,
    joint_reverse,
    mutual_information,
    noised_covariance,
    system_bound,
    system_bound_with_score_error,
    two_stage_reverse,
)

SCHEDULES = ((0.1, 4.0), (0.1, 8.0))
OU = ((2.0, 2.0), (2.0, 2.0))
# Of rank 1, though its least eigenvalue in float64 may be above 0.
SINGULAR = np.outer([0.1, 0.7], [0.1, 0.7])
DIM = 6


@pytest.fixture(scope="module")
def covariance() -> np.ndarray:
    """Six features and eight coordinates of structure with canonical correlations .9, …, .3."""
    rng = np.random.default_rng(3)
    left, _, right = np.linalg.svd(rng.standard_normal((6, 8)), full_matrices=False)
    variances = np.linspace(0.5, 3.0, 6)
    cross = np.sqrt(variances)[:, None] * (left * np.linspace(0.9, 0.3, 6) @ right) * 0.5
    return np.block([[np.diag(variances), cross], [cross.T, 0.25 * np.eye(8)]])


def noise(t: float, schedules: tuple = SCHEDULES) -> np.ndarray:
    return np.array([first * t + (last - first) * t**2 / 2 for first, last in schedules])


def by_hand(covariance: np.ndarray, times: np.ndarray, order: str, marginal: bool) -> np.ndarray:
    """Joint law of all variables of a run, from one long linear map of its independent noises."""
    size = len(covariance)
    block = np.arange(size) >= DIM
    root = np.eye(size)  # output = root @ noises
    for tau, t in pairwise(times):
        total, step = noise(tau)[block.astype(int)], (noise(tau) - noise(t))[block.astype(int)]
        mean = np.diag(np.exp(-total / 2))
        spread = mean @ covariance @ mean + np.eye(size) - mean @ mean
        if marginal:
            spread[np.ix_(block, ~block)] = spread[np.ix_(~block, block)] = 0.0
        score = -np.linalg.inv(spread)
        fresh = np.hstack([np.zeros_like(root), np.diag(np.sqrt(np.exp(step) - 1))])
        root = np.hstack([root, np.zeros((size, size))])
        new = root.copy()
        for rows in (~block, block):
            seen = score @ (new if order == "gauss_seidel" else root)
            grown = np.exp(step / 2)[:, None] * root + 2 * (np.exp(step / 2) - 1)[:, None] * seen
            new[rows] = (grown + fresh)[rows]
        root = new
    return root @ root.T


@pytest.mark.parametrize("order", ["jacobi", "gauss_seidel"])
@pytest.mark.parametrize("scores", ["joint", "marginal"])
def test_recursion_by_one_linear_map(covariance, order, scores):
    times = np.array([1.0, 0.7, 0.45, 0.2, 0.05])
    expected = by_hand(covariance, times, order, scores == "marginal")
    found = joint_reverse(covariance, DIM, SCHEDULES, times, scores, order)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


def test_published_numbers_of_the_example(covariance):
    """KL, bound and its parts as the specification of the study has them."""
    target = noised_covariance(covariance, DIM, SCHEDULES, 1e-3)
    times = np.linspace(1.0, 1e-3, 26)
    exact = float(covariance_kl(target, joint_reverse(covariance, DIM, SCHEDULES, times)))
    terms = [float(term) for term in system_bound(covariance, DIM, SCHEDULES, times).values()]
    np.testing.assert_allclose([exact, sum(terms)], [0.0666, 3.08], rtol=3e-3)
    np.testing.assert_allclose(terms, [0.0296, 0.307, 2.75], rtol=3e-3)
    times = np.linspace(1.0, 1e-3, 101)
    exact = float(covariance_kl(target, joint_reverse(covariance, DIM, SCHEDULES, times)))
    np.testing.assert_allclose(exact, 0.005856, rtol=1e-4)
    other = joint_reverse(covariance, DIM, SCHEDULES, times, order="gauss_seidel")
    np.testing.assert_allclose(float(covariance_kl(target, other)), 0.005854, rtol=1e-4)


def test_marginal_scores_cost_the_mutual_information(covariance):
    times = np.linspace(1.0, 1e-3, 4001)
    target = noised_covariance(covariance, DIM, SCHEDULES, 1e-3)
    found = joint_reverse(covariance, DIM, SCHEDULES, times, "marginal")
    information = float(mutual_information(target, DIM))
    np.testing.assert_allclose(float(covariance_kl(target, found)), 1.9015, atol=1e-4)
    np.testing.assert_allclose(information, 1.8997, atol=1e-4)
    # I(X; A) = h(X) + h(A) − h(X, A), by log determinants.
    spread = np.asarray(target)
    entropies = [
        np.linalg.slogdet(part)[1] for part in (spread[:DIM, :DIM], spread[DIM:, DIM:], spread)
    ]
    np.testing.assert_allclose(
        information, 0.5 * (entropies[0] + entropies[1] - entropies[2]), rtol=1e-12
    )


@pytest.mark.parametrize("kind", ["uniform", "geometric"])
def test_discretization_sums_to_its_closed_form(covariance, kind):
    """De Bruijn: the integrals of both blocks together are a difference of entropies."""
    grids = {"uniform": np.linspace(1.0, 1e-3, 9), "geometric": np.geomspace(1.0, 1e-5, 9)}
    times = grids[kind]
    spread = [noised_covariance(covariance, DIM, SCHEDULES, t) for t in (times[0], times[-1])]
    first, last = (np.linalg.slogdet(np.asarray(matrix))[1] for matrix in spread)
    total = noise(times[0]) - noise(times[-1])
    expected = 0.5 * (first - last) + 0.5 * (6 * total[0] + 8 * total[1])
    for tau, t in pairwise(times):
        step = noise(tau) - noise(t)
        fisher = np.array(block_fisher(covariance, DIM, SCHEDULES, tau))
        expected -= 0.5 * np.sum(fisher * (4 * (1 - np.exp(-step / 2)) - step))
    terms = system_bound(covariance, DIM, SCHEDULES, times)
    np.testing.assert_allclose(float(terms["features"] + terms["structure"]), expected, rtol=1e-10)


def test_terms_by_adaptive_quadrature(covariance):
    """Each block's term from the second moments of the two scores, with the law's cross-moments."""
    times = np.linspace(0.8, 0.1, 9)
    expected = np.zeros(2)
    for tau, t in pairwise(times):
        old = np.linalg.inv(np.asarray(noised_covariance(covariance, DIM, SCHEDULES, tau)))

        def gap(at, block, old=old, tau=tau):
            spread = np.asarray(noised_covariance(covariance, DIM, SCHEDULES, at))
            new = np.linalg.inv(spread)
            mean = np.exp(-(noise(tau) - noise(at)) / 2)
            cross = spread * np.repeat(mean, (6, 8))[None, :]  # E Z_at Z_tauᵀ
            square = new + old - new @ cross @ old - (new @ cross @ old).T
            part = slice(None, DIM) if block == 0 else slice(DIM, None)
            first, last = SCHEDULES[block]
            return 0.5 * (first + (last - first) * at) * np.trace(square[part, part])

        for block in (0, 1):
            expected[block] += scipy.integrate.quad(gap, t, tau, (block,), epsrel=1e-11)[0]
    terms = system_bound(covariance, DIM, SCHEDULES, times)
    np.testing.assert_allclose(
        [float(terms["features"]), float(terms["structure"])], expected, rtol=1e-9
    )
    prior = np.asarray(noised_covariance(covariance, DIM, SCHEDULES, 0.8))
    initial = 0.5 * (np.trace(prior) - len(prior) - np.linalg.slogdet(prior)[1])
    np.testing.assert_allclose(float(terms["initialization"]), initial, rtol=1e-10)


def test_uncoupled_blocks_are_the_scalar_theory():
    """A diagonal S under OU: one-dimensional recursion and integrals by hand."""
    variances, times = np.array([0.5, 3.0]), np.linspace(2.0, 0.01, 9)
    spread = 1.0
    noised = 1 + (variances - 1)[:, None] * np.exp(-2 * times)[None, :]
    for k, h in enumerate(-np.diff(times)):
        gain = np.exp(h) - 2 * np.expm1(h) / noised[:, k]
        spread = gain**2 * spread + np.expm1(2 * h)
    found = np.asarray(joint_reverse(np.diag(variances), 1, OU, times))
    np.testing.assert_allclose(found, np.diag(spread), rtol=1e-12, atol=1e-14)
    steps = -np.diff(times)
    growth = np.exp(2 * times)[None, :] + (variances - 1)[:, None]
    expected = 0.5 * np.log(growth[:, :-1] / growth[:, 1:]) - (
        (2 * (1 - np.exp(-steps)) - steps)[None, :] / noised[:, :-1]
    )
    terms = system_bound(np.diag(variances), 1, OU, times)
    np.testing.assert_allclose(
        [float(terms["features"]), float(terms["structure"])],
        [expected[0].sum(), expected[1:].sum()],
        rtol=1e-10,
    )


def test_fisher_information_orders_by_what_the_partner_tells(covariance):
    """Clean ≥ noisy ≥ absent, with values of the specification at t = .2; clean by its modes."""
    b = noise(0.2)
    for block, part in enumerate((slice(None, DIM), slice(DIM, None))):
        values = np.linalg.eigvalsh(np.linalg.inv(np.linalg.inv(covariance)[part, part]))
        clean = np.sum(1 / (1 + (values - 1) * np.exp(-b[block])))
        given = (SCHEDULES[0], (0.0, 0.0)) if block == 0 else ((0.0, 0.0), SCHEDULES[1])
        found = float(block_fisher(covariance, DIM, given, 0.2)[block])
        np.testing.assert_allclose(found, clean, rtol=1e-12)
        noisy = float(block_fisher(covariance, DIM, SCHEDULES, 0.2)[block])
        variances = np.diag(covariance)[part]
        absent = np.sum(1 / (1 + (variances - 1) * np.exp(-b[block])))
        assert clean > noisy > absent
        if block == 0:
            np.testing.assert_allclose([clean, noisy, absent], [9.840, 6.457, 4.821], rtol=1e-4)


@pytest.mark.parametrize("block", [0, 1])
def test_given_block_by_conditional_modes(covariance, block):
    """Features | structure and structure | features: one dimension a mode, its mean recursion too."""
    part, rest = (slice(None, DIM), slice(DIM, None))[:: 1 - 2 * block]
    times = np.linspace(1.0, 1e-2, 9)
    given = [(0.0, 0.0), (0.0, 0.0)]
    given[block] = SCHEDULES[block]
    slope = covariance[part, rest] @ np.linalg.inv(covariance[rest, rest])
    explained = slope @ covariance[rest, part]
    values, vectors = np.linalg.eigh(covariance[part, part] - explained)
    squares = np.diag(vectors.T @ explained @ vectors)  # E⟨u_i, mean⟩²
    total = np.array([noise(t)[block] for t in times])
    noised = 1 + (values - 1)[:, None] * np.exp(-total)[None, :]
    spread, mean = np.ones(len(values)), np.zeros(len(values))
    bound = np.sum(0.5 * (noised[:, 0] - 1 - np.log(noised[:, 0]) + np.exp(-total[0]) * squares))
    for k, h in enumerate(-np.diff(total) / 2):
        gain = 2 * np.expm1(h) / noised[:, k]
        mean = (np.exp(h) - gain) * mean + gain * np.exp(-total[k] / 2)
        spread = (np.exp(h) - gain) ** 2 * spread + np.expm1(2 * h)
        growth = np.exp(total)[None, :] + (values - 1)[:, None]
        bound += np.sum(0.5 * np.log(growth[:, k] / growth[:, k + 1]))
        bound -= np.sum((2 * (1 - np.exp(-h)) - h) / noised[:, k])
    ratio = noised[:, -1] / spread
    off = (mean - np.exp(-total[-1] / 2)) ** 2 * squares
    kl = 0.5 * np.sum(ratio - 1 - np.log(ratio) + off / spread)
    target = noised_covariance(covariance, DIM, given, times[-1])
    found = joint_reverse(covariance, DIM, given, times)
    np.testing.assert_allclose(found[rest, rest], covariance[rest, rest], rtol=1e-14)
    np.testing.assert_allclose(float(covariance_kl(target, found)), kl, rtol=1e-9)
    terms = [float(term) for term in system_bound(covariance, DIM, given, times).values()]
    np.testing.assert_allclose(sum(terms), bound, rtol=1e-9)
    assert terms[2 - block] == 0.0
    assert kl < bound


def test_two_stages_by_one_linear_map(covariance):
    """Structure by its own score, then features given it, every noise kept; and the errors add up."""
    times = np.array([1.0, 0.6, 0.3, 0.1])
    target = np.asarray(noised_covariance(covariance, DIM, SCHEDULES, times[-1]))
    alone = by_hand(covariance, times, "jacobi", True)[DIM:, DIM:]
    structure = target[DIM:, DIM:]
    cross = covariance[:DIM, DIM:] * np.exp(-noise(times[-1])[1] / 2)  # of X_0 and A_δ
    gain, constant = np.zeros((DIM, 8)), np.eye(DIM)
    for tau, t in pairwise(times):
        total, step = noise(tau)[0], noise(tau)[0] - noise(t)[0]
        weight = np.exp(-total / 2) * cross @ np.linalg.inv(structure)
        left = np.exp(-total) * covariance[:DIM, :DIM] + (1 - np.exp(-total)) * np.eye(DIM)
        precision = np.linalg.inv(left - weight @ structure @ weight.T)
        move = np.exp(step / 2) * np.eye(DIM) - 2 * np.expm1(step / 2) * precision
        gain = move @ gain + 2 * np.expm1(step / 2) * precision @ weight
        constant = move @ constant @ move.T + np.expm1(step) * np.eye(DIM)
    expected = np.block([[gain @ alone @ gain.T + constant, gain @ alone], [alone @ gain.T, alone]])
    found = two_stage_reverse(covariance, DIM, SCHEDULES, times)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    given = np.block(
        [
            [gain @ structure @ gain.T + constant, gain @ structure],
            [structure @ gain.T, structure],
        ]
    )
    parts = float(covariance_kl(structure, alone)) + float(covariance_kl(target, given))
    np.testing.assert_allclose(float(covariance_kl(target, found)), parts, rtol=1e-9)


def test_divergence_of_covariances():
    rng = np.random.default_rng(0)
    first, other = (m @ m.T + np.eye(3) for m in rng.standard_normal((2, 3, 3)))
    ratio = np.linalg.solve(other, first)
    expected = 0.5 * (np.trace(ratio) - 3 - np.linalg.slogdet(ratio)[1])
    np.testing.assert_allclose(float(covariance_kl(first, other)), expected, rtol=1e-12)
    # Close ones: ½ · ½ tr (V⁻¹ΔV)², where x − log(1 + x) from 1 + x would have no digit left.
    close = float(covariance_kl(np.eye(3) * (1 + 1e-9), np.eye(3)))
    np.testing.assert_allclose(close, 3 * 1e-18 / 4, rtol=1e-6)
    assert float(covariance_kl(first, first)) == pytest.approx(0.0, abs=1e-15)


def test_score_error_in_the_bound():
    """One mode a block and the score off by a factor: the path cost by hand covers the true error."""
    times, error = np.linspace(2.0, 0.01, 9), 0.2
    variances = np.array([0.5, 3.0])
    noised = 1 + (variances - 1)[:, None] * np.exp(-2 * times)[None, :]
    squares = error**2 / noised[:, :-1]  # ε² = e² J
    terms = system_bound_with_score_error(np.diag(variances), 1, OU, times, *squares)
    exact = system_bound(np.diag(variances), 1, OU, times)
    steps = -np.diff(times)
    # With s = (1 + e)∇log q the cross-term is 2e(1 − e^{−r})J(τ), and ∫ of it is known.
    expected = np.sum(
        steps * error**2 / noised[:, :-1] + 2 * error * (steps + np.expm1(-steps)) / noised[:, :-1],
        axis=1,
    )
    np.testing.assert_allclose(
        [float(terms["score_features"]), float(terms["score_structure"])], expected, rtol=1e-12
    )
    crude = sum(float(exact[name]) for name in ("features", "structure"))
    crude += float(exact["initialization"]) + crude + 2 * np.sum(steps * squares)
    spread = np.ones(2)
    for k, h in enumerate(steps):
        gain = np.exp(h) - 2 * np.expm1(h) * (1 + error) / noised[:, k]
        spread = gain**2 * spread + np.expm1(2 * h)
    ratio = noised[:, -1] / spread
    kl = 0.5 * np.sum(ratio - 1 - np.log(ratio))
    assert kl < sum(float(term) for term in terms.values()) < crude
    zero = system_bound_with_score_error(np.diag(variances), 1, OU, times, 0.0, 0.0)
    assert float(zero["score_features"]) == float(zero["score_structure"]) == 0.0
    gradient = jax.grad(
        lambda e: system_bound_with_score_error(np.diag(variances), 1, OU, times, e, 0.1)[
            "score_features"
        ]
    )(0.0)
    assert np.isfinite(gradient)


def test_steps_may_be_traced(covariance):
    """Grids under vmap, and a schedule as a traced argument, give what concrete ones do."""
    grids = np.stack([np.linspace(1.0, 0.01, 9), np.linspace(0.5, 0.02, 9)])
    found = jax.vmap(lambda times: joint_reverse(covariance, DIM, SCHEDULES, times))(grids)
    for grid, one in zip(grids, found, strict=True):
        expected = joint_reverse(covariance, DIM, SCHEDULES, grid)
        np.testing.assert_allclose(one, expected, rtol=1e-12)
    traced = jax.jit(lambda s: system_bound(covariance, DIM, s, grids[0])["features"])
    np.testing.assert_allclose(
        float(traced(np.array(SCHEDULES))),
        float(system_bound(covariance, DIM, SCHEDULES, grids[0])["features"]),
        rtol=1e-12,
    )


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"covariance": np.diag([1.0, -0.1])}, "covariance"),
        ({"covariance": np.array([[1.0, 0.5], [0.1, 1.0]])}, "covariance"),
        ({"covariance": np.eye(2)[:1]}, "covariance"),
        ({"covariance": np.array([[1.0, np.nan], [np.nan, 1.0]])}, "covariance"),
        ({"covariance": SINGULAR}, "covariance"),
        ({"dim_features": 0}, "dim_features"),
        ({"dim_features": 2}, "dim_features"),
        ({"schedules": ((0.1, 1.0),)}, "schedules"),
        ({"schedules": ((0.1, -1.0), (0.1, 1.0))}, "schedules"),
        ({"schedules": ((0.0, 0.0), (0.0, 0.0))}, "schedules"),
        ({"times": [0.1, 0.5]}, "times"),
        ({"times": [0.5, 0.5]}, "times"),
        ({"times": [0.5, -0.1]}, "times"),
        ({"times": [0.5]}, "times"),
        ({"times": [1e200, 0.1]}, "times"),
        ({"schedules": ((1e200, 1.0), (1.0, 1.0))}, "schedules"),
        ({"schedules": ((2.0, 1.0), (1.0, 1.0)), "times": [3.0, 0.1]}, "schedules"),
        ({"scores": "conditional"}, "scores"),
        ({"order": "gauss-seidel"}, "order"),
    ],
)
def test_bad_input_is_named(as_users_call, change, named):
    arguments = {
        "covariance": np.eye(2),
        "dim_features": 1,
        "schedules": OU,
        "times": [1.0, 0.1],
    } | change
    with pytest.raises(ValueError, match=f"^{named}:"):
        joint_reverse(**arguments)
    if named not in ("scores", "order"):
        with pytest.raises(ValueError, match=f"^{named}:"):
            system_bound(**arguments)


@pytest.mark.parametrize("variance", [1e10, 1e17, 1e80])
def test_bound_at_large_variances(variance):
    """There the score is −e^{2t}x/λ and x moves as e^{−t}: a step costs ∫(e^τ − e^t)² dt/λ a mode.

    The next order in 1/λ is below rounding but for the first case.
    """
    times = np.array([1.0, 0.5, 0.1])
    cost = sum(
        0.5 * (np.exp(2 * tau) - np.exp(2 * t))
        - 2 * np.exp(tau) * (np.exp(tau) - np.exp(t))
        + (tau - t) * np.exp(2 * tau)
        for tau, t in pairwise(times)
    )
    terms = system_bound(variance * np.eye(2), 1, OU, times)
    np.testing.assert_allclose(float(terms["features"]) * variance, cost, rtol=1e-8)
    np.testing.assert_allclose(float(terms["structure"]) * variance, cost, rtol=1e-8)


def test_overflow_is_named():
    with pytest.raises(ValueError, match=r"^times: got steps so long"):
        joint_reverse(np.eye(2), 1, OU, [1000.0, 600.0, 0.1])


def test_other_bad_input_is_named(as_users_call):
    with pytest.raises(ValueError, match=r"^schedules: got a rate of -1 at time 3"):
        block_fisher(np.eye(2), 1, ((2.0, 1.0), (1.0, 1.0)), 3.0)
    with pytest.raises(ValueError, match=r"^t:"):
        block_fisher(np.eye(2), 1, OU, -0.1)
    with pytest.raises(ValueError, match=r"^error_structure:"):
        system_bound_with_score_error(np.eye(2), 1, OU, [1.0, 0.5, 0.1], 0.1, [0.1, 0.1, 0.1])
    with pytest.raises(ValueError, match=r"^error_features:"):
        system_bound_with_score_error(np.eye(2), 1, OU, [1.0, 0.1], -0.1, 0.1)
    with pytest.raises(ValueError, match=r"^schedules:"):
        two_stage_reverse(np.eye(2), 1, ((0.0, 0.0), (1.0, 1.0)), [1.0, 0.1])
    with pytest.raises(ValueError, match=r"^covariance:"):
        covariance_kl(np.eye(2), np.eye(3))
