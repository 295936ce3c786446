"""The assertions for a reader's own bound."""

import numpy as np
import pytest

from boundlab import testing

ONES = np.random.default_rng(0).exponential(size=(400, 2))


@pytest.mark.smoke
def test_upper_bound() -> None:
    testing.assert_upper_bound(ONES, 1.5)
    testing.assert_upper_bound(ONES[:, 0], 1.5)
    testing.assert_upper_bound(ONES, np.array([1.5, 2.0]))
    with pytest.raises(AssertionError, match=r"violated(.|\n)*seeds +400"):
        testing.assert_upper_bound(ONES, 0.7)
    with pytest.raises(AssertionError, match=r"not decided(.|\n)*would decide"):
        testing.assert_upper_bound(ONES, ONES.mean(axis=0) * 1.01)


def test_lower_bound() -> None:
    testing.assert_lower_bound(ONES, 0.7)
    with pytest.raises(AssertionError, match="violated"):
        testing.assert_lower_bound(ONES, 1.5)
    with pytest.raises(AssertionError, match="not decided"):
        testing.assert_lower_bound(ONES, ONES.mean(axis=0))


def test_mean_equal() -> None:
    testing.assert_mean_equal(ONES, 1.0)
    testing.assert_mean_equal(ONES, 1.3, tolerance=0.3)
    with pytest.raises(AssertionError, match="violated"):
        testing.assert_mean_equal(ONES, 1.3)


def test_one_bad_case_is_enough() -> None:
    with pytest.raises(AssertionError, match="case 1"):
        testing.assert_upper_bound(ONES, np.array([1.5, 0.5]))


def test_rate_and_order() -> None:
    points = np.array([10.0, 20.0, 40.0])
    samples = points**-0.5 * np.random.default_rng(1).exponential(size=(400, 3))
    testing.assert_rate(samples, points, -0.5)
    with pytest.raises(AssertionError, match="violated"):
        testing.assert_rate(samples, points, -1.0)
    testing.assert_order(ONES, ONES + 0.1)
    with pytest.raises(AssertionError, match="violated"):
        testing.assert_order(ONES + 0.1, ONES)


def test_counts_and_outcomes_are_samples() -> None:
    outcomes = np.random.default_rng(2).random(1000) < 0.2
    testing.assert_upper_bound(outcomes, 0.3)
    testing.assert_mean_equal(outcomes.astype(int), 0.2)


@pytest.mark.parametrize(
    ("samples", "bound", "name"),
    [
        (np.array([1.0, np.nan]), 1.0, "samples"),
        (np.array([1.0, np.inf]), 1.0, "samples"),
        (np.array([]), 1.0, "samples"),
        (np.array([1.0]), 1.0, "samples"),
        (np.ones((2, 2, 2)), 1.0, "samples"),
        (np.array(["a", "b"]), 1.0, "samples"),
        (np.ones((5, 2)), np.nan, "bound"),
        (np.ones((5, 2)), np.ones(3), "bound"),
    ],
)
def test_bad_input_names_the_argument(samples: np.ndarray, bound: object, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        testing.assert_upper_bound(samples, bound)


def test_bad_rate() -> None:
    with pytest.raises(ValueError, match="false_alarm_rate"):
        testing.assert_upper_bound(ONES, 2.0, false_alarm_rate=2.0)
