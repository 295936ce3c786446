"""Parts of the learning curves that no claim checks: the wrongly remembered bounds, and layout."""

import numpy as np
import pytest

from boundlab.analysis.excess_risk import learning_curves, stability
from boundlab.analysis.excess_risk.config import Config
from boundlab.analysis.excess_risk.problems import problem
from boundlab.models.graphs import complete
from boundlab.theory.excess_risk.sgd import zou_bounds


def test_misremembered_bounds_differ_from_the_published_by_what_they_say() -> None:
    """All μ on the head: the upper side has no tail to lose; the lower loses only its constants."""
    item = problem("complete", complete(16), "personalized_pagerank")
    mu = np.full(16, 1 / 16)
    item = item._replace(mu=mu, theta_sq=np.ones(16))
    step, count, noise = 0.3, 400, 0.25
    upper, lower = learning_curves._misremembered(item, noise, step, count)
    bias = np.sum(1 / mu) / (step * count) ** 2
    noisy = noise * 16 / count
    assert upper == pytest.approx(4 * (bias + noisy / (1 - 3 * step)))
    assert lower == pytest.approx(2 * (bias + noisy))
    published = zou_bounds(mu, np.ones(16), noise, step, count)
    assert float(published.lower) == pytest.approx(2 * (bias / 100 + noisy / 50))
    assert float(published.upper) > upper  # it also has the multiplicative term


def test_published_step_is_inside_the_published_condition() -> None:
    mu = np.array([0.5, 0.3])
    assert 0 < learning_curves.published_step(mu) < 1 / (3 * 0.8)


def test_lines_reach_beyond_the_simulated_sizes() -> None:
    lines = learning_curves.line_samples(Config(num_samples=(30, 50, 128)))
    assert lines == sorted(set(lines))
    assert lines[0] == 15
    assert lines[-1] == 512


def test_spectral_radius_of_one_direction_by_hand() -> None:
    # d = 1: a + γ²μ² = 1 − 2γμ + 3γ²μ², which is 1 at γμ = 2/3.
    assert stability._spectral_radius(np.array([2.0]), 1 / 3) == pytest.approx(1, abs=1e-12)
    assert stability._spectral_radius(np.array([2.0]), 0.25) == pytest.approx(0.75, abs=1e-12)
