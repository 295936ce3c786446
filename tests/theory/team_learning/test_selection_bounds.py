"""The lower bound for any algorithm; the other bounds on selection are tested with the exact law."""

import math

import numpy as np
import pytest
import scipy.special

from boundlab.theory.team_learning import pac_lower_bound


def test_lower_bound_by_divergence():
    """Of two normal laws 2ε apart, one for each arm but the best; kl from scipy."""
    arms = np.array([1.0, 4.0, 64.0])
    delta = 0.05
    entropies = scipy.special.rel_entr([delta, 1 - delta], [1 - delta, delta]).sum()
    per_sample = (2 * 0.3) ** 2 / (2 * 1.5**2)
    found = pac_lower_bound(arms, 1.5, 0.3, delta)
    np.testing.assert_allclose(found, (arms - 1) * entropies / per_sample, rtol=1e-12)
    assert float(found[1]) >= 3 * 1.5**2 / (2 * 0.09) * math.log(1 / (2.4 * delta))
    np.testing.assert_array_equal(pac_lower_bound(4, 1.0, 0.1, [0.5, 0.9]), 0.0)


def test_more_arms_than_integers():
    np.testing.assert_allclose(pac_lower_bound(8**40, 1.0, 1.0, 0.1), 8.0**40 * 0.4 * np.log(9))


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "arguments"),
    [
        ("num_arms", (0, 1.0, 0.1, 0.1)),
        ("num_arms", (10**400, 1.0, 0.1, 0.1)),
        ("noise_std", (4, -1.0, 0.1, 0.1)),
        ("accuracy", (4, 1.0, 0.0, 0.1)),
        ("failure_probability", (4, 1.0, 0.1, 1.0)),
        ("failure_probability", ([4, 5], 1.0, 0.1, [0.1, 0.2, 0.3])),
    ],
)
def test_bad_input_is_named(named, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        pac_lower_bound(*arguments)
