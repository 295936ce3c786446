"""The law of block normalisation, against enumeration of all batches and samples."""

from itertools import combinations, product

import numpy as np
import pytest
import scipy.stats

from boundlab.theory.fanout import block_degree_law
from boundlab.theory.fanout._hypergeometric import hypergeometric_law


def enumerated(n: int, d: int, b: int, fan_out: int) -> tuple[float, float, float]:
    """s, Γ and δ of node 0 on a circulant graph, over all batches with it and all samples."""
    neighbors = [[(i + k) % n for k in range(1, d + 1)] for i in range(n)]
    full = np.zeros(n)
    full[neighbors[0]] = 1 / d
    rows = []
    for others in combinations(range(1, n), b - 1):
        choices = [list(combinations(neighbors[i], fan_out)) for i in (0, *others)]
        for samples in product(*choices):
            counts = np.bincount(np.concatenate(samples), minlength=n)
            row = np.zeros(n)
            row[list(samples[0])] = 1 / np.sqrt(fan_out * counts[list(samples[0])])
            rows.append((row.sum(), row @ row, (row - full) @ (row - full)))
    return tuple(np.mean(rows, axis=0))


@pytest.mark.parametrize(
    ("n", "d", "b", "fan_out"),
    [
        (7, 3, 1, 2),
        (7, 3, 3, 2),
        (7, 3, 7, 2),
        (7, 4, 3, 3),
        (8, 3, 4, 2),
        (8, 5, 4, 5),
        (7, 6, 7, 6),
    ],
)
def test_law_by_enumeration(n: int, d: int, b: int, fan_out: int) -> None:
    found = block_degree_law(n, d, b, fan_out)
    np.testing.assert_allclose(found, enumerated(n, d, b, fan_out), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("b", [1, 30, 3000, 100_000])
def test_law_by_the_double_sum(b: int) -> None:
    n, d, fan_out = 100_000, 300, 17
    h = np.arange(min(d, b))
    law = scipy.stats.hypergeom(n - 1, d - 1, b - 1).pmf(h)
    k = np.arange(d)
    pmf = law @ scipy.stats.binom(h[:, None], fan_out / d).pmf(k)
    s, gamma = np.sqrt(fan_out) * (pmf @ (1 + k) ** -0.5), pmf @ (1 / (1 + k))
    found = block_degree_law(n, d, b, fan_out)
    # What scipy's own pmf keeps at this population.
    np.testing.assert_allclose(found, (s, gamma, gamma - 2 * s / d + 1 / d), rtol=1e-9)


@pytest.mark.smoke
def test_limits() -> None:
    np.testing.assert_allclose(block_degree_law(600, 12, 1, 5)[:2], (np.sqrt(5), 1.0), rtol=1e-14)
    whole = block_degree_law(600, 12, 600, 12)
    np.testing.assert_allclose(whole, (1.0, 1 / 12, 0.0), rtol=1e-14, atol=1e-30)
    for fan_out in (1, 3, 11, 12):
        closed = (1 - (1 - fan_out / 12) ** 12) / fan_out
        np.testing.assert_allclose(
            block_degree_law(600, 12, 600, fan_out).squared_norm, closed, rtol=1e-12
        )
    assert block_degree_law(20, 4, 7, 4) == block_degree_law(20, 4, 7, 99)
    # Sparse limit: c − 1 is Poisson with mean bβ/n.
    sparse = block_degree_law(1_000_000, 1000, 2000, 500).squared_norm
    np.testing.assert_allclose(sparse, 1 - np.exp(-1.0), rtol=2e-3)
    # A single in-neighbour, shared by nobody else.
    np.testing.assert_allclose(block_degree_law(2, 1, 2, 1), (1.0, 1.0, 0.0), atol=1e-15)


@pytest.mark.parametrize("fan_out", [1, 4, 12])
def test_all_three_fall_with_the_batch(fan_out: int) -> None:
    values = np.array([block_degree_law(60, 12, b, fan_out) for b in range(1, 61)])
    assert (np.diff(values, axis=0) <= 1e-14).all()


def test_large_populations_keep_their_digits() -> None:
    law = hypergeometric_law(1_000_000, 500_000, 400_000)
    k = np.arange(len(law))
    mean = 400_000 * 0.5
    variance = mean * 0.5 * 600_000 / 999_999
    np.testing.assert_allclose(law @ k, mean, rtol=1e-13)
    np.testing.assert_allclose(law @ (k - mean) ** 2, variance, rtol=1e-12)
    found = block_degree_law(1_000_000, 500_000, 400_000, 250_000)
    # Second order in the spread of c, whose relative variance is below 1e-5.
    c = 1 + 0.5 * mean
    np.testing.assert_allclose(found.row_sum, np.sqrt(250_000 / c), rtol=1e-5)


@pytest.mark.parametrize(
    ("population", "marked", "draws"), [(10, 0, 3), (10, 4, 10), (9, 9, 4), (30, 10, 25), (1, 1, 1)]
)
def test_hypergeometric_law(population: int, marked: int, draws: int) -> None:
    found = hypergeometric_law(population, marked, draws)
    expected = scipy.stats.hypergeom(population, marked, draws).pmf(np.arange(len(found)))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-16)
    np.testing.assert_allclose(found.sum(), 1.0, rtol=1e-14)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((1, 1, 1, 1), "num_nodes"),
        ((10.0, 3, 2, 2), "num_nodes"),
        ((10, 0, 2, 2), "degree"),
        ((10, 10, 2, 2), "degree"),
        ((10, 3, 0, 2), "batch_size"),
        ((10, 3, 11, 2), "batch_size"),
        ((10, 3, 2, 0), "fan_out"),
        ((10, 3, 2, 1.5), "fan_out"),
    ],
)
def test_bad_arguments_are_named(arguments: tuple, name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}: got"):
        block_degree_law(*arguments)
