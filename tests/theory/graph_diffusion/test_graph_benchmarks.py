"""Repeats in a benchmark's data by enumeration of small laws, and means of discrepancies."""

import itertools
import math

import jax
import numpy as np
import pytest

from boundlab.theory.graph_diffusion import (
    expected_distinct,
    expected_duplicates,
    expected_mmd_squared,
    shared_community_law,
)

LAW = (np.array([0.3, 0.1, 0.2]), np.array([1.0, 3.0, 2.0]))
ATOMS = np.array([0.3, 0.1, 0.1, 0.1, 0.2, 0.2])


def test_counts_are_those_of_all_sequences() -> None:
    distinct = duplicated = 0.0
    for drawn in itertools.product(range(6), repeat=5):
        weight = math.prod(ATOMS[list(drawn)])
        distinct += weight * len(set(drawn))
        duplicated += weight * sum(graph in drawn[2:] for graph in drawn[:2])
    np.testing.assert_allclose(expected_distinct(*LAW, 5), distinct, rtol=1e-12)
    np.testing.assert_allclose(expected_duplicates(*LAW, 2, 3), duplicated, rtol=1e-12)
    assert expected_duplicates(*LAW, 2, 0) == 0
    assert expected_distinct([1.0], [1.0], 7) == 1
    assert expected_duplicates([1.0], [1.0], 7, 2) == 7
    np.testing.assert_allclose(expected_distinct([1e-12], [1e12], 3), 3.0, rtol=1e-11)
    traced = jax.jit(lambda a, k: expected_distinct(a, k, 5))(*LAW)
    np.testing.assert_allclose(traced, distinct, rtol=1e-12)


@pytest.mark.parametrize("forced", ["first", "uniform"])
def test_law_of_the_benchmark_is_a_law_with_its_moments(forced: str) -> None:
    law = shared_community_law(forced)
    mass = np.asarray(law.probability * law.multiplicity)
    np.testing.assert_allclose(mass.sum(), 1.0, rtol=1e-13)
    # Number of graphs: every nonempty set of pairs across, for each of the five sizes.
    np.testing.assert_allclose(
        law.multiplicity.sum(), sum(2.0 ** (c * c) - 1 for c in range(6, 11)), rtol=1e-12
    )
    # Largest atom: no pair across (c = 6), and the edge forced first as if drawn.
    p = 0.1 / 6
    none, one = (1 - p) ** 36, p * (1 - p) ** 35
    top = none + one if forced == "first" else none / 36 + one
    np.testing.assert_allclose(law.probability.max(), 2 / 9 * top, rtol=1e-13)


def test_mean_discrepancy_is_that_of_all_samples() -> None:
    """Laws on three points: all samples of three and two, weighted, by double sums."""
    kernel = np.array([[1.0, 0.4, 0.1], [0.4, 1.0, 0.7], [0.1, 0.7, 1.0]])
    first, other = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.2, 0.7])
    mean = {"v": 0.0, "u": 0.0}
    for r in itertools.product(range(3), repeat=3):
        for g in itertools.product(range(3), repeat=2):
            weight = math.prod(first[list(r)]) * math.prod(other[list(g)])
            between = np.mean([kernel[i, j] for i in r for j in g])
            for sample in (r, g):
                mean["v"] += weight * np.mean([kernel[i, j] for i in sample for j in sample])
                pairs = itertools.permutations(sample, 2)
                mean["u"] += weight * np.mean([kernel[i, j] for i, j in pairs])
            for name in mean:
                mean[name] -= weight * 2 * between
    terms = (first @ kernel @ first, other @ kernel @ other, first @ kernel @ other)
    for estimator, expected in mean.items():
        found = expected_mmd_squared(*terms, 3, 2, estimator)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    saturated = expected_mmd_squared(np.zeros((2, 1)), np.zeros(3), 0.0, 20, 20)
    np.testing.assert_allclose(saturated, np.full((2, 3), 0.1), rtol=1e-14)


@pytest.mark.usefixtures("as_users_call")
def test_bad_input_is_named() -> None:
    cases = [
        ("forced", lambda: shared_community_law("last")),
        ("probability", lambda: expected_distinct([0.5, 0.6], [1.0, 1.0], 3)),
        ("probability", lambda: expected_distinct([1.5], [1.0], 3)),
        ("probability", lambda: expected_distinct(1.0, 1.0, 3)),
        ("multiplicity", lambda: expected_distinct([0.5, 0.5], [1.0], 3)),
        ("multiplicity", lambda: expected_distinct([0.5, 0.5], [-1.0, 3.0], 3)),
        ("num_graphs", lambda: expected_distinct([1.0], [1.0], 0)),
        ("num_test", lambda: expected_duplicates([1.0], [1.0], 0, 2)),
        ("num_train", lambda: expected_duplicates([1.0], [1.0], 1, -1)),
        ("within_reference", lambda: expected_mmd_squared(1.5, 0.1, 0.1, 2, 2)),
        ("within_generated", lambda: expected_mmd_squared(0.5, np.nan, 0.1, 2, 2)),
        ("between", lambda: expected_mmd_squared(0.5, 0.5, -0.1, 2, 2)),
        ("within_reference, ", lambda: expected_mmd_squared([0.1] * 2, [0.1] * 3, 0.1, 2, 2)),
        ("num_reference", lambda: expected_mmd_squared(0.5, 0.5, 0.5, 1, 2, "u")),
        ("num_generated", lambda: expected_mmd_squared(0.5, 0.5, 0.5, 1, 0)),
        ("estimator", lambda: expected_mmd_squared(0.5, 0.5, 0.5, 1, 1, "w")),
    ]
    for name, call in cases:
        with pytest.raises(ValueError, match=f"^{name}"):
            call()
