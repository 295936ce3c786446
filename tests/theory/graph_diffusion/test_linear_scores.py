"""Linear scores of Gaussian systems: against one linear map, draws, conditioning, and exact scores."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from boundlab.precision import x64
from boundlab.theory.graph_diffusion import (
    block_fisher,
    block_mmse,
    dsm_floor,
    joint_reverse,
    linear_score_error,
    linear_score_reverse,
    score_error_from_loss,
)

SCHEDULES = ((0.1, 3.9), (0.2, 7.9))
TIMES = np.array([1.0, 0.7, 0.45, 0.2, 0.05])


@pytest.fixture(scope="module")
def system() -> np.ndarray:
    root = np.random.default_rng(2).standard_normal((5, 7))
    return root @ root.T / 6


@pytest.fixture(scope="module")
def matrices() -> np.ndarray:
    rng = np.random.default_rng(3)
    return -np.eye(5)[None] + 0.3 * rng.standard_normal((4, 5, 5))


def _rates(start: float, end: float) -> np.ndarray:
    rows = [(end - start) * (a + (b - a) * (start + end) / 2) for a, b in SCHEDULES]
    return np.array([rows[0]] * 2 + [rows[1]] * 3)


def _noised(system: np.ndarray, t: float) -> np.ndarray:
    mean = np.exp(-_rates(0.0, t) / 2)
    return system * np.outer(mean, mean) + np.diag(1 - mean**2)


def test_law_by_one_linear_map(system: np.ndarray, matrices: np.ndarray) -> None:
    """The output as one linear function of the start and of all noises."""
    blocks = [np.eye(5)]
    for tau, t, score in zip(TIMES[:-1], TIMES[1:], matrices, strict=True):
        beta = _rates(t, tau)
        step = np.diag(np.exp(beta / 2)) + np.diag(2 * np.expm1(beta / 2)) @ score
        blocks = [step @ block for block in blocks] + [np.diag(np.sqrt(np.expm1(beta)))]
    whole = np.hstack(blocks)
    found = linear_score_reverse(system, 2, SCHEDULES, TIMES, matrices)
    np.testing.assert_allclose(found, whole @ whole.T, rtol=1e-11)


def test_exact_scores_are_a_special_case(system: np.ndarray) -> None:
    exact = -np.stack([np.linalg.inv(_noised(system, t)) for t in TIMES[:-1]])
    found = linear_score_reverse(system, 2, SCHEDULES, TIMES, exact)
    np.testing.assert_allclose(found, joint_reverse(system, 2, SCHEDULES, TIMES), rtol=1e-11)
    for block in linear_score_error(system, 2, SCHEDULES, TIMES, exact):
        np.testing.assert_allclose(block, 0.0, atol=1e-20)


def test_error_by_hand(system: np.ndarray, matrices: np.ndarray) -> None:
    """ε² = tr[D S_t Dᵀ] over the block, D through a root of S_t."""
    found = linear_score_error(system, 2, SCHEDULES, TIMES, matrices)
    for k, t in enumerate(TIMES[:-1]):
        root = scipy.linalg.sqrtm(_noised(system, t)).real
        rows = ((matrices[k] @ root + np.linalg.inv(root)) ** 2).sum(axis=1)
        np.testing.assert_allclose(
            [found[0][k], found[1][k]], [rows[:2].sum(), rows[2:].sum()], rtol=1e-9
        )


def test_error_by_draws(system: np.ndarray, matrices: np.ndarray) -> None:
    """(loss − floor)/σ² on 200,000 noised draws, a z-test a block and time."""
    rng = np.random.default_rng(4)
    errors = linear_score_error(system, 2, SCHEDULES, TIMES, matrices)
    for k, t in enumerate(TIMES[:-1]):
        rate = _rates(0.0, t)
        mean, std = np.exp(-rate / 2), np.sqrt(1 - np.exp(-rate))
        clean = rng.standard_normal((200_000, 5)) @ np.linalg.cholesky(system).T
        noise = rng.standard_normal(clean.shape)
        gap = std * ((mean * clean + std * noise) @ matrices[k].T) + noise
        mmse = block_mmse(system, 2, SCHEDULES, t)
        for b, own in enumerate((slice(0, 2), slice(2, 5))):
            loss = (gap[:, own] ** 2).sum(axis=1)
            floor = dsm_floor(rate[own][0] / 2, mmse[b])
            measured = float(score_error_from_loss(loss.mean(), floor, std[own][0] ** 2))
            spread = loss.std() / np.sqrt(len(loss)) / std[own][0] ** 2
            assert abs(measured - errors[b][k]) < 4.9 * spread


@pytest.mark.parametrize("t", [0.02, 0.3, 1.0])
def test_mmse_by_regression(system: np.ndarray, t: float) -> None:
    """Variance of a clean block given the noised pair, by inverting the joint covariance."""
    mean = np.exp(-_rates(0.0, t) / 2)
    joint = np.block(
        [[system, system * mean[None, :]], [mean[:, None] * system, _noised(system, t)]]
    )
    left = np.diag(np.linalg.inv(np.linalg.inv(joint)[:5, :5]))
    found = block_mmse(system, 2, SCHEDULES, t)
    np.testing.assert_allclose(found, [left[:2].sum(), left[2:].sum()], rtol=1e-9)


@pytest.mark.parametrize("t", [0.02, 0.3, 1.0])
def test_floor_is_what_the_fisher_information_leaves(system: np.ndarray, t: float) -> None:
    """(m²/σ²)·mmse_b = d_b − σ_b² J_b: two routes to the least loss."""
    rate = _rates(0.0, t)[[0, 4]]
    fisher = block_fisher(system, 2, SCHEDULES, t)
    for b, size in enumerate((2, 3)):
        floor = dsm_floor(rate[b] / 2, block_mmse(system, 2, SCHEDULES, t)[b])
        expected = size + np.expm1(-rate[b]) * float(fisher[b])
        np.testing.assert_allclose(float(floor), expected, rtol=1e-10)


def test_mmse_at_no_noise_and_at_much(system: np.ndarray) -> None:
    np.testing.assert_allclose(block_mmse(system, 2, SCHEDULES, 0.0), [0, 0], atol=1e-12)
    variance = np.diag(system)
    much = block_mmse(system, 2, SCHEDULES, 8.0)
    np.testing.assert_allclose(much, [variance[:2].sum(), variance[2:].sum()], rtol=1e-10)


def test_traced(system: np.ndarray, matrices: np.ndarray) -> None:
    with x64():
        plain = linear_score_reverse(system, 2, SCHEDULES, TIMES, matrices)
        traced = jax.jit(lambda m: linear_score_reverse(system, 2, SCHEDULES, TIMES, m))(matrices)
        np.testing.assert_allclose(traced, plain, rtol=1e-12)
        total = jax.jit(lambda t: jnp.sum(jnp.stack(block_mmse(system, 2, SCHEDULES, t))))
        slope = jax.jit(jax.grad(total))(0.3)
        near = [float(total(0.3 + e)) for e in (1e-5, -1e-5)]
        np.testing.assert_allclose(float(slope), (near[0] - near[1]) / 2e-5, rtol=1e-6)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("covariance", {"covariance": np.zeros((5, 5))}),
        ("dim_features", {"dim_features": 5}),
        ("schedules", {"schedules": ((0.1, 1.0),)}),
        ("times", {"times": TIMES[::-1]}),
        ("matrices", {"matrices": np.zeros((5, 5))}),
        ("matrices", {"matrices": np.full((4, 5, 5), np.nan)}),
    ],
)
def test_bad_input_is_named(
    name: str, change: dict[str, Any], system: np.ndarray, matrices: np.ndarray
) -> None:
    given = {
        "covariance": system,
        "dim_features": 2,
        "schedules": SCHEDULES,
        "times": TIMES,
        "matrices": matrices,
    }
    for fn in (linear_score_reverse, linear_score_error):
        with pytest.raises(ValueError, match=rf"^{name}: "):
            fn(**(given | change))


@pytest.mark.usefixtures("as_users_call")
def test_a_bad_time_is_named(system: np.ndarray) -> None:
    for t in (-0.1, np.zeros(2), np.nan):
        with pytest.raises(ValueError, match=r"^t: "):
            block_mmse(system, 2, SCHEDULES, t)
