"""Layout of the part on digits, and what its theory takes from the data."""

from collections.abc import Callable

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
import xarray as xr
from sklearn.linear_model import LinearRegression

from boundlab.analysis.team_learning import digits, digits_episodes
from boundlab.analysis.team_learning.config import PRESETS
from boundlab.models.digit_tasks import DigitTask
from boundlab.registry import STUDY_NAMES


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    if "team_learning" not in STUDY_NAMES:
        pytest.skip("the study is not registered")
    return smoke_of("team_learning", "digits_")


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("digits_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    config = PRESETS["smoke"]
    shape = (2, 3, len(config.digits_samples), config.digits_seeds)
    assert dataset["digits_sarl"].shape == shape
    assert np.isfinite(dataset["digits_sarl"]).all()
    # Without a carry both teams are the same learner.
    alone = dataset.sel(digits_coupling=0.0)
    np.testing.assert_allclose(alone["digits_aware"], alone["digits_blind"], rtol=1e-9)
    assert np.isfinite(dataset["digits_ratio_at_crossover"]).all()
    crossover = dataset["digits_crossover"]
    tried = crossover.where((crossover >= 51) & (crossover <= 401)).to_series().dropna()
    named = [f"d = {dim}, λ = {coupling:g}" for dim, coupling in tried.index]
    assert dataset["digits_crossing"].values.tolist() == named


def test_the_growth_of_the_risk_with_gaussian_inputs() -> None:
    """g_p(n): least squares with an intercept, by scikit-learn on drawn data of residual variance 1."""
    rng, n, draws = np.random.default_rng(0), 20, 4000
    risks = np.empty(draws)
    for i in range(draws):
        x, y = rng.standard_normal((n, 6)), rng.standard_normal(n)
        x_mean = x.mean(axis=0)
        weights = np.linalg.lstsq(x - x_mean, y - y.mean(), rcond=None)[0]
        # The risk over new inputs is an exact Gaussian expectation: 1 + bias² + |weights|².
        risks[i] = 1.0 + (y.mean() - x_mean @ weights) ** 2 + weights @ weights
    error = risks.std(ddof=1) / draws**0.5
    for agents, dim in ((1, 6), (3, 2)):
        found = digits._growth(agents, dim, np.array([n]))
        assert abs(float(found[0]) - risks.mean()) < 4.9 * error


def test_the_crossing_makes_both_risks_equal() -> None:
    joint, own = 0.13, 0.24

    def difference(n: float) -> float:
        grown = [digits._growth(agents, 8, np.array([n]))[0] for agents in (3, 1)]
        return float(joint * grown[0] - own * grown[1])

    root = scipy.optimize.brentq(difference, 27.0, 1e4, xtol=1e-10)
    np.testing.assert_allclose(digits.crossing(3, 8, joint, own), root, rtol=1e-10)
    assert digits.crossing(3, 8, own, own) == np.inf


def test_residual_variances_of_the_labels() -> None:
    """By scikit-learn on one pairing of random data, where every pairing is as good."""
    rng = np.random.default_rng(0)
    images = 4000
    x, noise = rng.standard_normal((2, images, 2)), rng.standard_normal((2, images))
    u = np.clip(np.round(1.0 + x[:, :, 0] + 0.3 * noise), 0, 2)
    task = DigitTask(x, u, 3)
    joint, own = digits.residual_variances(task, 2, np.array([0.0, 1.0]))
    carry = np.stack([np.zeros(images), (u[0] == 2).astype(float)])
    for place, coupling in enumerate((0.0, 1.0)):
        y = u + coupling * carry
        both = np.hstack([x[0], x[1]])
        rests = [label - LinearRegression().fit(both, label).predict(both) for label in y]
        expected = np.mean([np.sum(rest**2) / (images - 5) for rest in rests])
        np.testing.assert_allclose(joint[place], expected, rtol=0.02)
        rests = [
            label - LinearRegression().fit(x[k], label).predict(x[k]) for k, label in enumerate(y)
        ]
        expected = np.mean([np.sum(rest**2) / (images - 3) for rest in rests])
        np.testing.assert_allclose(own[place], expected, rtol=0.02)
    np.testing.assert_allclose(own[0], joint[0], rtol=2e-3)


def test_largest_of_unequal_normals() -> None:
    """Two by their difference; three by drawing."""
    mean, deviation = np.array([0.1, 0.4]), np.array([1.0, 2.0])
    first = scipy.stats.norm.cdf((mean[0] - mean[1]) / np.hypot(*deviation))
    found = digits_episodes._chosen(mean, deviation)
    np.testing.assert_allclose(found, [first, 1 - first], rtol=1e-9)
    mean, deviation = np.array([0.0, 0.2, -0.3]), np.array([0.5, 0.1, 1.0])
    draws = mean + deviation * np.random.default_rng(0).standard_normal((200_000, 3))
    share = np.bincount(draws.argmax(axis=1)) / 200_000
    expected = digits_episodes._chosen(mean, deviation)
    assert abs(expected.sum() - 1) < 1e-9
    assert (np.abs(share - expected) < 4.9 * np.sqrt(expected * (1 - expected) / 200_000)).all()
