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


@pytest.mark.parametrize(("probability", "seeds"), [(0.02, 64), (0.01, 256), (0.3, 64)])
def test_declared_rate_holds_for_rare_outcomes(probability: float, seeds: int) -> None:
    generator = np.random.default_rng(12)
    outcomes = generator.random((3000, seeds)) < probability
    alarms = 0
    # Rows of as many events are one sample in another order.
    _, first, repeats = np.unique(outcomes.sum(axis=1), return_index=True, return_counts=True)
    for row, times in zip(outcomes[first], repeats, strict=True):
        try:
            testing.assert_mean_equal(row, probability, false_alarm_rate=0.01)
        except AssertionError:
            alarms += times
    # 30 expected at the declared rate; 55 is 4.6 standard deviations above.
    assert alarms < 55


def test_an_event_that_was_not_seen_decides_little() -> None:
    never = np.zeros(64, bool)
    with pytest.raises(AssertionError, match="not decided"):
        testing.assert_upper_bound(never, 0.001)
    testing.assert_upper_bound(never, 0.11)  # 1 − 0.001^(1/64) = 0.102
    testing.assert_mean_equal(never, 0.01)
    with pytest.raises(AssertionError, match="violated"):
        testing.assert_lower_bound(never, 0.11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_without_randomness_touch_their_bound(dtype: type) -> None:
    same = np.full(20, 0.1, dtype)
    testing.assert_upper_bound(same, 0.1)
    testing.assert_lower_bound(same, 0.1)
    with pytest.raises(AssertionError, match="violated"):
        testing.assert_upper_bound(same, 0.0999)
    with pytest.raises(AssertionError, match="not decided"):
        testing.assert_order(same, same)
    nearly = np.nextafter(same, dtype(1))
    with pytest.raises(AssertionError, match="not decided"):
        testing.assert_order(same, nearly)


@pytest.mark.parametrize("scale", [1e306, 1e-306, 1e-318])
def test_huge_and_tiny_samples(scale: float) -> None:
    testing.assert_mean_equal(ONES * scale / 10, 0.1 * scale, tolerance=0.05)
    with pytest.raises(AssertionError, match="violated"):
        testing.assert_mean_equal(ONES * scale / 10, 0.2 * scale)
    with pytest.raises(AssertionError, match="violated"):
        testing.assert_upper_bound(ONES * scale / 10, 0.05 * scale)


@pytest.mark.parametrize(
    ("points", "name"),
    [
        ([2.0, 2.0, 2.0], "points"),
        ([1.0, 2.0, np.inf], "points"),
        ([1.0, 2.0], "points"),
        ([0.0, 1.0, 2.0], "points"),
    ],
)
def test_a_rate_needs_different_finite_points(points: list[float], name: str) -> None:
    with pytest.raises(ValueError, match=name):
        testing.assert_rate(np.ones((10, 3)), points, 0.0)


def test_a_rate_that_hangs_on_one_seed_is_refused() -> None:
    samples = np.ones((50, 3))
    samples[1:, 2] = 0
    with pytest.raises(ValueError, match="samples"):
        testing.assert_rate(samples, [1.0, 2.0, 3.0], 0.0)


def test_the_named_number_of_seeds_decides() -> None:
    generator = np.random.default_rng(13)
    samples = generator.lognormal(0, 1.5, 200)
    bound = samples.mean() * 1.1
    with pytest.raises(AssertionError, match="not decided") as caught:
        testing.assert_upper_bound(samples, bound)
    seeds = int(str(caught.value).split("about ")[1].split(" seeds")[0].replace(",", ""))
    assert seeds > 200
    testing.assert_upper_bound(np.tile(samples, 2 * seeds // 200), bound)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"samples": [1.0, 2.0], "expected": 1.0, "tolerance": np.array([0.1, 0.2])}, "tolerance"),
        ({"samples": [1.0, 2.0], "expected": 1.0, "tolerance": -0.1}, "tolerance"),
        ({"samples": np.ma.masked_array([1.0, 2.0], [0, 1]), "expected": 1.0}, "samples"),
        ({"samples": np.array([1.0, 2j]), "expected": 1.0}, "samples"),
        ({"samples": [1.0, 2.0], "expected": np.array(1j)}, "expected"),
    ],
)
def test_more_bad_input(arguments: dict, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        testing.assert_mean_equal(**arguments)
