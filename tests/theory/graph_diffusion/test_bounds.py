"""Bounds: identities on Gaussians, dominance on a grid of cases, shapes by hand."""

import jax
import numpy as np
import pytest
import scipy.integrate

from boundlab.theory.graph_diffusion import (
    bound_benton_shape,
    bound_chen_shape,
    bound_entropy_fisher,
    bound_lipschitz,
    discretization_ei,
    discretization_em,
    discretization_with_score_error,
    gaussian_kl,
    initialization_kl,
    reverse_moments,
    reverse_sde_variance,
    step_coefficients,
    time_grid,
)

EIGENVALUES = np.geomspace(1e-3, 200.0, 13)


def v(t, lam=EIGENVALUES):
    return 1 + (lam - 1) * np.exp(-2 * t)


MOST = 400


@pytest.fixture(scope="module")
def ladder():
    """Exact KL and bound by scheme and error, (kl, bound) each (cases, modes), on a padded grid."""
    mean = np.linspace(-1.0, 1.0, len(EIGENVALUES))

    @jax.jit
    def pairs(times):
        found = []
        for scheme, term in (
            ("exponential_integrator", discretization_ei),
            ("euler_maruyama", discretization_em),
        ):
            variance = reverse_moments(EIGENVALUES, times, scheme)[1]
            bound = initialization_kl(EIGENVALUES, times[0]) + term(EIGENVALUES, times)
            found.append((gaussian_kl(v(0.01), variance), bound))
        for error, bias in ((0.1, 0.0), (-0.2, 0.3)):
            path = discretization_with_score_error(EIGENVALUES, times, error, bias)
            moments = reverse_moments(
                EIGENVALUES, times, "exponential_integrator", error, bias, mean
            )
            exact = gaussian_kl(v(0.01), moments[1], np.exp(-0.01) * mean, moments[0])
            found.append((exact, initialization_kl(EIGENVALUES, times[0], mean) + path))
        return found

    return pairs


@pytest.mark.parametrize("kind", ["uniform", "geometric"])
@pytest.mark.parametrize("horizon", [0.5, 2.0, 8.0])
@pytest.mark.parametrize("steps", [5, 40, MOST])
def test_exact_kl_is_below_the_path_bound(ladder, kind, horizon, steps):
    """Exponential integrator, Euler–Maruyama, relative score error, bias with a mean."""
    times = np.asarray(time_grid(horizon, 0.01, steps, kind))
    for exact, bound in ladder(np.pad(times, (0, MOST - steps), "edge")):
        assert (np.asarray(exact) <= np.asarray(bound) * (1 + 1e-9)).all()


def test_entropy_and_fisher_give_the_gaussian_term():
    """S4 with H = ½Σ log(2πe v) and J = Σ 1/v."""
    times = np.linspace(3.0, 0.01, 21)
    table = np.stack([v(t) for t in times])
    entropy = 0.5 * np.log(2 * np.pi * np.e * table).sum(axis=1)
    found = bound_entropy_fisher(entropy, (1 / table).sum(axis=1), times, len(EIGENVALUES))
    expected = np.sum(discretization_ei(EIGENVALUES, times))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_entropy_and_fisher_of_a_two_point_law():
    """Against ∫E(score gap)² of one step for a law on ±1, by quadrature over both times' values."""
    tau, t = 0.9, 0.5
    grid, step = np.linspace(-7.0, 7.0, 701, retstep=True)

    def law(s):
        m, sigma_sq = np.exp(-s), 1 - np.exp(-2 * s)
        density = sum(np.exp(-((grid - a * m) ** 2) / 2 / sigma_sq) for a in (-1, 1))
        density /= 2 * np.sqrt(2 * np.pi * sigma_sq)
        return density, (m * np.tanh(m * grid / sigma_sq) - grid) / sigma_sq

    last_density, last_score = law(tau)

    def gap(s):
        density, score = law(s)
        r = tau - s
        spread = -np.expm1(-2 * r)
        kernel = np.exp(-((grid[None, :] - np.exp(-r) * grid[:, None]) ** 2) / 2 / spread)
        kernel /= np.sqrt(2 * np.pi * spread)
        cross = (density * score) @ kernel @ last_score * step**2
        squares = (density * score**2).sum() + (last_density * last_score**2).sum()
        return squares * step - 2 * cross

    # The kernel is too narrow for the grid as s → τ, where the gap vanishes linearly in τ − s.
    nodes, weights = np.polynomial.legendre.leggauss(8)
    half = (tau - t) / 2
    expected = half * sum(
        w * gap((tau + t) / 2 + half * x) for x, w in zip(nodes, weights, strict=True)
    )
    laws = [law(s) for s in (tau, t)]
    entropy = np.array([-(p * np.log(p)).sum() * step for p, _ in laws])
    fisher = np.array([(p * s**2).sum() * step for p, s in laws])
    found = bound_entropy_fisher(entropy, fisher, [tau, t], 1)
    np.testing.assert_allclose(found, expected, rtol=1e-7)


@pytest.mark.parametrize("horizon", [0.5, 4.0])
@pytest.mark.parametrize("steps", [5, 100])
def test_lipschitz_bound_is_above_the_exact_term(horizon, steps):
    times = np.linspace(horizon, 0.01, steps + 1)
    for lam in EIGENVALUES.tolist():
        exact = float(discretization_ei([lam], times)[0])
        bound = float(bound_lipschitz(max(1.0, 1 / lam), 1, horizon, 0.01, steps))
        assert exact <= bound * (1 + 1e-12)
    np.testing.assert_allclose(
        bound_lipschitz(2.0, 3, 1.5, 0.5, 10), 3 * (0.4 + 0.02 / 3), rtol=1e-14
    )


def test_shapes_by_hand():
    """Values worked out term by term; the constant multiplies all."""
    found = bound_chen_shape(4.0, 9.0, 2.0, 16, 4.0, 16, 0.5)
    by_hand = 2 * np.exp(-4.0) + (2 * 2.0 + 2 * 3 * 0.25 + 0.5) * 2
    np.testing.assert_allclose(found, by_hand, rtol=1e-14)
    doubled = bound_chen_shape(4.0, 9.0, 2.0, 16, 4.0, 16, 0.5, constant=2.0)
    np.testing.assert_allclose(doubled, 2 * by_hand, rtol=1e-14)
    # Steps 1, .5, .25 with min(1, t): 1, .5, .25; κ = 1.
    found = bound_benton_shape([2.0, 1.0, 0.5, 0.25], 3, 0.2)
    by_hand = 0.04 + 3 * (3.0 + 2.0 + np.exp(-4.0))
    np.testing.assert_allclose(found, by_hand, rtol=1e-14)
    doubled = bound_benton_shape([2.0, 1.0, 0.5, 0.25], 3, 0.2, constant=2.0)
    np.testing.assert_allclose(doubled, 2 * by_hand, rtol=1e-14)


def test_de_bruijn_for_modes():
    """H(q_T) − H(q_δ) = ∫(J − d) with beta = 2, by adaptive quadrature."""
    gained, _ = scipy.integrate.quad(lambda t: (1 / v(t) - 1).sum(), 0.01, 3.0, limit=400)
    entropy = 0.5 * np.log(v(3.0)).sum() - 0.5 * np.log(v(0.01)).sum()
    np.testing.assert_allclose(entropy, gained, rtol=1e-9)


def test_traced():
    bound = jax.vmap(lambda s: bound_lipschitz(s, 2, 1.0, 0.1, 10))(np.array([1.0, 3.0]))
    np.testing.assert_allclose(bound[1], bound_lipschitz(3.0, 2, 1.0, 0.1, 10), rtol=1e-14)
    times = np.array([2.0, 1.0, 0.5])
    np.testing.assert_allclose(
        jax.jit(lambda t: bound_benton_shape(t, 2))(times), bound_benton_shape(times, 2), rtol=1e-14
    )


def test_known_arguments_within_a_traced_function():
    """They aren't traced, but what is made of them is."""

    def total(lam):
        times = time_grid(2.0, 0.1, 3, "geometric")
        moments = reverse_moments(lam, np.array([2.0, 0.1]), "ancestral")
        a, b, q = step_coefficients("euler_maruyama", 1.0, 0.5)
        start = reverse_sde_variance(lam, 2.0, 0.1).sum() + moments[1].sum()
        return start + times.sum() + a + b + q + bound_lipschitz(1.0, 1, 2.0, 0.1, 3)

    lam = np.array([2.0])
    np.testing.assert_allclose(jax.jit(total)(lam), total(lam), rtol=1e-13)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "function", "arguments"),
    [
        ("lipschitz", bound_lipschitz, (0.0, 1, 1.0, 0.1, 10)),
        ("dim", bound_lipschitz, (1.0, 1.5, 1.0, 0.1, 10)),
        ("early_stop", bound_lipschitz, (1.0, 1, 1.0, 1.0, 10)),
        ("num_steps", bound_lipschitz, (1.0, 1, 1.0, 0.1, 0)),
        ("num_steps", bound_lipschitz, (1.0, 1, 1.0, 0.1, 10**400)),
        ("dim", bound_lipschitz, (1.0, 10**400, 1.0, 0.1, 10)),
        ("entropy", bound_entropy_fisher, ([1.0], [1.0, 1.0], [1.0, 0.5], 1)),
        ("fisher", bound_entropy_fisher, ([1.0, 1.0], [1.0, -1.0], [1.0, 0.5], 1)),
        ("times", bound_entropy_fisher, ([1.0, 1.0], [1.0, 1.0], [0.5, 1.0], 1)),
        ("kl_of_data", bound_chen_shape, (-1.0, 1.0, 1.0, 1, 1.0, 1)),
        ("second_moment", bound_chen_shape, (1.0, -1.0, 1.0, 1, 1.0, 1)),
        ("horizon", bound_chen_shape, (1.0, 1.0, 1.0, 1, 0.0, 1)),
        ("score_error", bound_chen_shape, (1.0, 1.0, 1.0, 1, 1.0, 1, -0.1)),
        ("times", bound_benton_shape, ([1.0, 0.0], 1)),
        ("score_error", bound_benton_shape, ([1.0, 0.5], 1, np.nan)),
    ],
)
def test_bad_input_is_named(named, function, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        function(*arguments)


@pytest.mark.usefixtures("as_users_call")
def test_constants_must_be_positive():
    with pytest.raises(ValueError, match=r"^constant: "):
        bound_benton_shape([1.0, 0.5], 1, constant=0.0)
    with pytest.raises(ValueError, match=r"^constant: "):
        bound_chen_shape(1.0, 1.0, 1.0, 1, 1.0, 1, constant=-1.0)
