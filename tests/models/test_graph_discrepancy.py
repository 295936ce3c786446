"""Discrepancies of sets of graphs against linear programmes and double loops; duplicates."""

import jax
import numpy as np
import pytest
import scipy.optimize

from boundlab.models.graph_metrics import (
    KERNELS,
    count_distinct,
    duplicates,
    kernel_matrix,
    mmd_floor,
    mmd_squared,
)

WIDTHS = {"degree": 8, "clustering": 100, "orbits": 15, "spectrum": 200}


def _sample(kernel: str, count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if kernel == "orbits":
        return rng.gamma(2.0, 6.0, (count, 15))
    # A few bins each, near one another, so that the kernels are neither 0 nor 1.
    width = WIDTHS[kernel]
    start = width // 3 + rng.integers(0, 3, count)
    histograms = np.zeros((count, width))
    for row, first in zip(histograms, start, strict=True):
        row[first : first + 3] = rng.dirichlet(np.ones(3))
    return histograms


def _earth_mover(p: np.ndarray, q: np.ndarray) -> float:
    """Cheapest transport of the histogram p to q at a cost of one a bin, as a linear programme."""
    used = [np.flatnonzero(p), np.flatnonzero(q)]
    cost = np.abs(used[0][:, None] - used[1][None, :])
    rows = np.kron(np.eye(len(used[0])), np.ones(len(used[1])))
    columns = np.kron(np.ones(len(used[0])), np.eye(len(used[1])))
    found = scipy.optimize.linprog(
        cost.ravel(),
        A_eq=np.concatenate([rows, columns]),
        b_eq=np.concatenate([p[used[0]], q[used[1]]]),
    )
    return float(found.fun)


def _kernel(p: np.ndarray, q: np.ndarray, kernel: str) -> float:
    if kernel == "orbits":
        return float(np.exp(-np.sum((p - q) ** 2) / (2 * 30.0**2)))
    distance = _earth_mover(p, q)
    if kernel == "clustering":
        return float(np.exp(-((distance / 100) ** 2) / (2 * 0.1**2)))
    return float(np.exp(-(distance**2) / 2))


@pytest.mark.parametrize("kernel", KERNELS)
def test_discrepancy_is_that_of_double_loops(kernel: str) -> None:
    first, other = _sample(kernel, 5, 0), _sample(kernel, 4, 1)
    pairs = {
        (i, j): np.array([[_kernel(p, q, kernel) for q in b] for p in a])
        for i, a in enumerate((first, other))
        for j, b in enumerate((first, other))
    }
    np.testing.assert_allclose(kernel_matrix(first, other, kernel), pairs[0, 1], rtol=1e-9)
    assert 0.02 < pairs[0, 1].min() < pairs[0, 1].max() < 1.0
    v = pairs[0, 0].mean() + pairs[1, 1].mean() - 2 * pairs[0, 1].mean()
    np.testing.assert_allclose(mmd_squared(first, other, kernel), v, atol=1e-9)
    if kernel == "orbits":
        traced = jax.jit(mmd_squared, static_argnums=2)(first, other, kernel)
        np.testing.assert_allclose(traced, v, atol=1e-12)
        off = [(pairs[i, i].sum() - len(pairs[i, i])) / (s * (s - 1)) for i, s in ((0, 5), (1, 4))]
        u = sum(off) - 2 * pairs[0, 1].mean()
        np.testing.assert_allclose(mmd_squared(first, other, kernel, "u"), u, atol=1e-12)
    assert abs(mmd_squared(first, first, kernel)) < 1e-15


def test_degree_histograms_of_different_length() -> None:
    first, other = _sample("degree", 5, 2), _sample("degree", 4, 3)
    longer = np.pad(other, ((0, 0), (0, 5)))
    np.testing.assert_allclose(
        mmd_squared(first, longer, "degree"), mmd_squared(first, other, "degree"), rtol=1e-14
    )


def test_floor_is_the_mean_over_all_subsets(key: jax.Array) -> None:
    """Over random disjoint subsets of a pool every entry of k is equally likely: the mean is exact."""
    pool = _sample("degree", 24, 4)
    matrix = np.asarray(kernel_matrix(pool, pool, "degree"))
    off = (matrix.sum() - 24) / (24 * 23)
    for estimator, mean in (("v", (1 - off) * (1 / 6 + 1 / 4)), ("u", 0.0)):
        floor = mmd_floor(jax.random.fold_in(key, 9), pool, "degree", 6, 4, 400, estimator)
        assert abs(floor.mean - mean) < 4.9 * floor.standard_deviation / 20
        assert floor.quantiles[0] < floor.quantiles[1] < floor.quantiles[2]
        assert floor.standard_deviation > 0
    repeated = mmd_floor(key, np.repeat(pool[:1], 24, axis=0), "degree", 6, 4, 400)
    assert abs(repeated.mean) < 1e-15


def test_duplicates_are_found_by_entries() -> None:
    rng = np.random.default_rng(5)
    train = [np.triu(rng.integers(0, 2, (n, n)), 1) for n in (4, 5, 5)]
    train = [matrix + matrix.T for matrix in train]
    padded = np.pad(train[0], (0, 1))
    other = 1 - train[1] - np.eye(5, dtype=int)
    test = [train[2].astype(bool), padded, -1.0 * train[1] * -1, other, train[0].astype(float)]
    assert duplicates(train, test).tolist() == [True, False, True, False, True]
    assert duplicates([], test).tolist() == [False] * 5
    assert duplicates(train, []).shape == (0,)
    assert count_distinct([*train, *test]) == 5
    stacked = np.stack([train[1], train[2], train[1]])
    assert count_distinct(stacked) == 2
    np.testing.assert_array_equal(duplicates(stacked, -0.0 * stacked), [False] * 3)
    np.testing.assert_array_equal(duplicates([np.zeros((2, 2))], [np.full((2, 2), -0.0)]), [True])


@pytest.mark.usefixtures("as_users_call")
def test_bad_input_is_named(key: jax.Array) -> None:
    good = _sample("spectrum", 4, 6)
    broken = good.copy()
    broken[1, 2] = np.nan
    cases = [
        ("kernel", lambda: mmd_squared(good, good, "orbit")),
        ("estimator", lambda: mmd_squared(good, good, "spectrum", "b")),
        ("reference", lambda: mmd_squared(broken, good, "spectrum")),
        ("reference", lambda: mmd_squared(good[0], good, "spectrum")),
        ("reference", lambda: mmd_squared(2 * good, good, "spectrum")),
        ("reference", lambda: mmd_squared(good[:1], good, "spectrum", "u")),
        ("generated", lambda: mmd_squared(good, good[:1], "spectrum", "u")),
        ("generated", lambda: mmd_squared(good, good[:0], "spectrum")),
        ("generated", lambda: mmd_squared(good, good[:, :150], "spectrum")),
        ("generated", lambda: mmd_squared(good, -good, "spectrum")),
        ("other", lambda: kernel_matrix(good, broken, "spectrum")),
        ("kernel", lambda: kernel_matrix(good, good, 3)),
        ("key", lambda: mmd_floor(0, good, "spectrum", 2, 2)),
        ("kernel", lambda: mmd_floor(key, good, "gaussian", 2, 2)),
        ("estimator", lambda: mmd_floor(key, good, "spectrum", 2, 2, 5, "w")),
        ("reference", lambda: mmd_floor(key, broken, "spectrum", 2, 2)),
        ("num_reference", lambda: mmd_floor(key, good, "spectrum", 4, 2)),
        ("num_reference", lambda: mmd_floor(key, good, "spectrum", 1, 2, 5, "u")),
        ("num_generated", lambda: mmd_floor(key, good, "spectrum", 2, 3)),
        ("num_resamples", lambda: mmd_floor(key, good, "spectrum", 2, 2, 1)),
        ("train", lambda: duplicates(3, [])),
        ("train", lambda: duplicates("graphs", [])),
        ("test", lambda: duplicates([], [np.zeros((2, 3))])),
        ("test", lambda: duplicates([], [np.full((2, 2), np.nan)])),
        ("graphs", lambda: count_distinct([np.zeros(3)])),
    ]
    for name, call in cases:
        with pytest.raises(ValueError, match=f"^{name}"):
            call()
