"""Transport distances, against explicit rows, permutations, linear programs and scipy's matrix root."""

from itertools import permutations
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from scipy.optimize import linprog

from boundlab.theory.fanout import discrepancy, gaussian_w2, wasserstein_delta

KINDS = ("trace", "sqnorm", "nuclear")


def digraph(num_nodes: int, pairs: list[tuple[int, int]]) -> Any:
    """Graph of (sender, receiver) pairs, as theory reads it."""
    ordered = sorted(pairs, key=lambda pair: pair[::-1])
    index = np.array(ordered, np.int64).reshape(-1, 2).T
    return SimpleNamespace(num_nodes=num_nodes, to_edge_index=lambda: index)


def random_graph(seed: int, num_nodes: int = 12) -> tuple[Any, np.ndarray]:
    """A directed graph with degrees 0 to 6, and its mean aggregator."""
    rng = np.random.default_rng(seed)
    rows, pairs = np.zeros((num_nodes, num_nodes)), []
    for i in range(num_nodes):
        others = np.delete(np.arange(num_nodes), i)
        around = rng.choice(others, rng.integers(0, 7) if i else 0, replace=False)
        rows[i, around] = 1 / max(len(around), 1)
        pairs += [(int(j), i) for j in around]
    return digraph(num_nodes, pairs), rows


def distance(a: np.ndarray, b: np.ndarray, kind: str) -> float:
    if kind == "trace":
        return float(np.abs(a**2 - b**2).sum())
    if kind == "sqnorm":
        return float((a - b) @ (a - b))
    return float(np.linalg.svd(np.outer(a, a) - np.outer(b, b), compute_uv=False).sum())


def sampled(row: np.ndarray, fan_out: int) -> np.ndarray:
    """The row after sampling the first neighbours; every sample is as far away."""
    around = np.flatnonzero(row)[:fan_out]
    result = np.zeros_like(row)
    result[around] = 1 / max(len(around), 1)
    return result


@pytest.mark.smoke
@pytest.mark.parametrize("kind", KINDS)
def test_equal_numbers_by_permutations(kind: str) -> None:
    graph, rows = random_graph(1)
    train, test = [0, 3, 4, 7, 9], [1, 2, 5, 6, 11]
    cost = np.array([[distance(rows[i], rows[j], kind) for j in test] for i in train])
    best = min(cost[np.arange(5), list(order)].mean() for order in permutations(range(5)))
    moved = np.mean([distance(rows[i], sampled(rows[i], 2), kind) for i in train])
    found = wasserstein_delta(graph, train, test, 2, 2, kind, 3.0)
    np.testing.assert_allclose(found, (3 * (best + moved), best, moved), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_other_numbers_by_the_whole_program(kind: str) -> None:
    """The cost with its sampling part inside the program: the decoupling is not taken for granted."""
    graph, rows = random_graph(2)
    train, test = [0, 1, 8, 2, 5], [3, 4, 6]
    full = np.array([[distance(rows[i], rows[j], kind) for j in test] for i in train])
    moved = np.array([distance(rows[i], sampled(rows[i], 1), kind) for i in train])
    marginals = np.array(
        [np.kron(np.eye(5)[i], np.ones(3)) for i in range(5)]
        + [np.kron(np.ones(5), np.eye(3)[j]) for j in range(3)]
    )
    mass = np.array([0.2] * 5 + [1 / 3] * 3)
    whole = linprog((full + moved[:, None]).ravel(), A_eq=marginals, b_eq=mass).fun
    apart = linprog(full.ravel(), A_eq=marginals, b_eq=mass).fun
    found = wasserstein_delta(graph, np.array(train), test, 5, 1, kind)
    np.testing.assert_allclose(found.total, whole, rtol=1e-10)
    np.testing.assert_allclose(found.full, apart, rtol=1e-10)


def test_the_linear_program_and_the_assignment_agree() -> None:
    cost = np.random.default_rng(3).random((6, 9))
    np.testing.assert_allclose(
        discrepancy.transport_cost(cost), discrepancy._linear_program(cost), rtol=1e-10
    )
    for shape in ((47, 61), (53, 61)):  # just below and above the most copies
        tall = np.random.default_rng(4).random(shape)
        found = discrepancy.transport_cost(tall)
        np.testing.assert_allclose(found, discrepancy._linear_program(tall.T), rtol=1e-10)


def test_equal_rows_have_distance_exactly_zero() -> None:
    """Two nodes of degree 3 with the same neighbours, two isolated ones; and the fan-out's limit."""
    graph = digraph(9, [(j, i) for i in (0, 1) for j in (4, 5, 6)])
    for kind in KINDS:
        assert wasserstein_delta(graph, [0], [1], 1, 3, kind) == (0.0, 0.0, 0.0)
        assert wasserstein_delta(graph, [2], [3], 1, 1, kind) == (0.0, 0.0, 0.0)
        # Against an isolated node every distance is the row's own squared norm, 1/3.
        np.testing.assert_allclose(wasserstein_delta(graph, [0], [2], 1, 5, kind).full, 1 / 3)
        np.testing.assert_allclose(wasserstein_delta(graph, [2], [0], 1, 5, kind).full, 1 / 3)


def test_monotone_in_fan_out_constant_in_batch_size() -> None:
    graph, _ = random_graph(5)
    train, test = [1, 2, 3, 4, 9], [5, 6, 7, 8, 10]
    for kind in KINDS:
        grid = np.array(
            [
                [wasserstein_delta(graph, train, test, b, f, kind).total for f in range(1, 8)]
                for b in (1, 5)
            ]
        )
        np.testing.assert_array_equal(grid[0], grid[1])
        assert (np.diff(grid[0]) <= 0).all()
        assert grid[0, 0] > grid[0, -1]


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"train_nodes": [0, 0]}, "train_nodes"),
        ({"test_nodes": []}, "test_nodes"),
        ({"train_nodes": None}, "train_nodes"),
        ({"test_nodes": None}, "test_nodes"),
        ({"test_nodes": [12]}, "test_nodes"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 4}, "batch_size"),
        ({"fan_out": 0}, "fan_out"),
        ({"kind": "frobenius"}, "kind"),
        ({"scale": -1.0}, "scale"),
        ({"graph": 3}, "graph"),
    ],
)
def test_bad_arguments_of_delta_are_named(changed: dict, name: str) -> None:
    good = {
        "graph": random_graph(1)[0],
        "train_nodes": [0, 1, 2],
        "test_nodes": [3, 4],
        "batch_size": 2,
        "fan_out": 2,
    }
    with pytest.raises(ValueError, match=f"^{name}: got"):
        wasserstein_delta(**(good | changed))


@pytest.mark.parametrize(("train", "test"), [(5001, 5001), (1001, 1000)])
def test_too_many_nodes_are_refused_at_once(train: int, test: int) -> None:
    nodes = np.arange(train + test)
    with pytest.raises(ValueError, match=f"^train_nodes: got {train}, with {test} test nodes"):
        wasserstein_delta(digraph(train + test, []), nodes[:train], nodes[train:], 1, 1)


def bures(mean: np.ndarray, cov: np.ndarray, mean2: np.ndarray, cov2: np.ndarray) -> float:
    root = scipy.linalg.sqrtm(cov)
    cross = scipy.linalg.sqrtm(root @ cov2 @ root)
    squared = (mean - mean2) @ (mean - mean2) + np.trace(cov + cov2 - 2 * np.real(cross))
    return float(np.sqrt(squared))


def random_gaussian(seed: int, rank: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((5, rank))
    return rng.standard_normal(5), factor @ factor.T


@pytest.mark.smoke
def test_gaussian_distance_by_matrix_roots() -> None:
    first, other = random_gaussian(0), random_gaussian(1)
    np.testing.assert_allclose(gaussian_w2(*first, *other), bures(*first, *other), rtol=1e-10)
    np.testing.assert_allclose(gaussian_w2(*other, *first), bures(*first, *other), rtol=1e-10)


def test_gaussian_distance_in_closed_form() -> None:
    zero, one = np.zeros(4), np.eye(4)
    # The laws of a sampled and of a full mean of N(0, I) features.
    found = gaussian_w2(zero, one / 3, zero, one / 12)
    np.testing.assert_allclose(found, 2 * (3**-0.5 - 12**-0.5), rtol=1e-14)
    a, b = np.diag([1.0, 4.0, 0.0, 9.0]), np.diag([4.0, 0.0, 0.0, 1.0])
    found = gaussian_w2([1, 0, 0, 0], a, zero, b)
    np.testing.assert_allclose(found, np.sqrt(1 + 1 + 4 + 4), rtol=1e-13)
    np.testing.assert_allclose(gaussian_w2([1.0], [[0.0]], [3.0], [[0.0]]), 2.0, rtol=1e-14)
    # Two lines at an angle: tr(C^{1/2}C'C^{1/2})^{1/2} = |cos|.
    u, v = np.array([1.0, 0.0]), np.array([np.cos(0.7), np.sin(0.7)])
    found = gaussian_w2(u * 0, np.outer(u, u), u * 0, np.outer(v, v))
    np.testing.assert_allclose(found, np.sqrt(2 - 2 * np.cos(0.7)), rtol=1e-13)


@pytest.mark.parametrize("rank", [1, 3, 5])
def test_gaussian_distance_of_equal_laws_vanishes(rank: int) -> None:
    law = random_gaussian(7, rank)
    assert gaussian_w2(*law, *law) < 1e-13 * np.sqrt(np.linalg.norm(law[1], 2))


def test_gaussian_distance_of_large_and_small_numbers() -> None:
    first, other = random_gaussian(0), random_gaussian(1, 3)
    plain = float(gaussian_w2(*first, *other))
    for scale in (1e-150, 1e150):
        laws = (first[0] * scale, first[1] * scale**2, other[0] * scale, other[1] * scale**2)
        np.testing.assert_allclose(gaussian_w2(*laws) / scale, plain, rtol=1e-12)
    zero = np.zeros((2, 2))
    np.testing.assert_allclose(gaussian_w2([3e200, 0], zero, [0, 4e200], zero), 5e200, rtol=1e-14)


def test_derivatives_of_the_gaussian_distance() -> None:
    """∂W2²/∂C = I − T, T the map of one law onto the other; no NaN for equal or singular laws."""
    (mean, cov), (other_mean, other_cov) = random_gaussian(0), random_gaussian(1)
    slopes = jax.grad(lambda *law: gaussian_w2(*law, other_mean, other_cov) ** 2, (0, 1))
    by_mean, by_cov = slopes(mean, cov)
    np.testing.assert_allclose(by_mean, 2 * (mean - other_mean), rtol=1e-12)
    root = scipy.linalg.sqrtm(cov)
    inverse = np.linalg.inv(root)
    moved = inverse @ scipy.linalg.sqrtm(root @ other_cov @ root).real @ inverse
    np.testing.assert_allclose(by_cov, np.eye(5) - moved, rtol=1e-9, atol=1e-10)
    alike, singular = np.eye(5), np.diag([1.0, 1.0, 0.0, 0.0, 2.0])
    for law in ((mean, cov), (mean, alike), (mean, singular), (0 * mean, 0 * alike)):
        gradient = jax.grad(gaussian_w2, (0, 1, 2, 3))(*law, *law)
        assert all(np.isfinite(part).all() for part in gradient)


def test_gaussian_distance_is_traced() -> None:
    mean, cov = random_gaussian(3)
    scale = jnp.array([0.5, 2.0])
    found = jax.jit(jax.vmap(lambda s: gaussian_w2(mean, cov, mean, s**2 * cov)))(scale)
    np.testing.assert_allclose(found, np.abs(scale - 1) * np.sqrt(np.trace(cov)), rtol=1e-10)


@pytest.mark.parametrize(
    ("position", "value", "name"),
    [
        (0, [], "mean"),
        (0, [np.nan, 0.0], "mean"),
        (1, np.eye(3), "covariance"),
        (1, [[1.0, 0.5], [0.4, 1.0]], "covariance"),
        (1, [[1.0, 2.0], [2.0, 1.0]], "covariance"),
        (1, [[1.0, 0.0], [0.0, -2e-8]], "covariance"),
        (1, [[1e200, 0.0], [0.0, -1e200]], "covariance"),
        (2, [0.0], "other_mean"),
        (3, -np.eye(2), "other_covariance"),
        (3, np.ones(2), "other_covariance"),
    ],
)
def test_bad_gaussians_are_named(position: int, value: Any, name: str) -> None:
    arguments: list[Any] = [np.zeros(2), np.eye(2), np.zeros(2), np.eye(2)]
    arguments[position] = value
    assert np.isfinite(gaussian_w2(np.zeros(2), np.diag([1.0, -9e-9]), np.zeros(2), np.eye(2)))
    with pytest.raises(ValueError, match=f"^{name}: got"):
        gaussian_w2(*arguments)
