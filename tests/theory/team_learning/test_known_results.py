"""Rates of earlier work, by hand."""

import math

import numpy as np
import pytest

from boundlab.theory.team_learning import (
    bandit_samples,
    equilibrium_episodes,
    generative_samples,
    logged_samples,
)


def test_rates_by_hand():
    np.testing.assert_allclose(bandit_samples(64, 0.1, 0.05, 2.0), 12800 * math.log(20), rtol=1e-12)
    pairs = 3 * 2 * 5
    expected = pairs * math.log(pairs / 0.05) / (0.1**3 * 0.2**2)
    found = generative_samples(3, [2, 5], 0.9, 0.2, 0.05)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    rates = {"cce": 2**5 * 3 * 5 / 0.04, "ce": 2**6 * 3 * 25 / 0.04, "potential": 3 * 7 / 0.008}
    for solution, rate in rates.items():
        episodes = equilibrium_episodes(solution, 3, [2, 5], 2, 0.2, 0.5)
        np.testing.assert_allclose(episodes, 0.5 * rate, rtol=1e-12)
    np.testing.assert_allclose(logged_samples(3.0, 64.0, 0.1), 19200, rtol=1e-12)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "function", "arguments"),
    [
        ("num_arms", bandit_samples, (0, 0.1, 0.1)),
        ("accuracy", bandit_samples, (4, 0.0, 0.1)),
        ("failure_probability", bandit_samples, (4, 0.1, 1.0)),
        ("constant", bandit_samples, (4, 0.1, 0.1, 0.0)),
        ("num_states", generative_samples, (0, [2], 0.9, 0.1, 0.1)),
        ("action_counts", generative_samples, (1, [0], 0.9, 0.1, 0.1)),
        ("discount", generative_samples, (1, [2], 1.0, 0.1, 0.1)),
        ("solution", equilibrium_episodes, ("nash", 1, [2], 3, 0.1)),
        ("horizon", equilibrium_episodes, ("cce", 1, [2], 0, 0.1)),
        ("action_counts", equilibrium_episodes, ("cce", 1, 2, 3, 0.1)),
        ("log_class_size", logged_samples, (-1.0, 4, 0.1)),
    ],
)
def test_bad_input_is_named(named, function, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        function(*arguments)
