"""Minimax samples of stages against values found by other code, at all gaps, and patterns one by one."""

import itertools

import jax
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, norm

from boundlab.theory.team_learning import (
    staged_failure,
    staged_minimax_samples,
    staged_union_samples,
    staged_worst_gap,
)


def failure(agents, accuracy, gap, samples, kind):
    """P(loss > ε) pattern by pattern."""
    q = norm.cdf(-gap * np.sqrt(samples / 2))
    total = 0.0
    for pattern in itertools.product((0, 1), repeat=agents):
        p = 1 - gap * np.array(pattern)
        loss = 1 - (np.mean(np.cumprod(p)) if kind == "dependent" else np.mean(p))
        if loss > accuracy:
            total += q ** sum(pattern) * (1 - q) ** (agents - sum(pattern))
    return total


def needed(agents, accuracy, delta, gap, kind):
    """Samples at which P(loss > ε) is δ at this gap."""

    def off(samples):
        return failure(agents, accuracy, gap, samples, kind) - delta

    return brentq(off, 0.0, 1e5, rtol=1e-13) if off(0.0) > 0 else 0.0


def test_known_samples():
    """ε = .02, δ = .1, as another program found them."""
    agents = (1, 2, 3, 4, 6, 8, 10, 12)
    dependent = (8211.9, 8211.9, 8685.5, 9162.6, 10688.2, 14306.5, 17900.6, 22289.1)
    independent = (8211.9, 3330.2, 1836.7, 1428.2, 975.3, 775.2, 643.8, 576.5)
    for kind, known in (("dependent", dependent), ("independent", independent)):
        found = [staged_minimax_samples(n, 0.02, 0.1, kind) for n in agents]
        np.testing.assert_allclose(found, known, atol=0.06)


@pytest.mark.parametrize("kind", ["dependent", "independent"])
def test_failure_by_enumeration(kind):
    for agents, gap, samples in ((1, 0.3, 20.0), (3, 0.05, 900.0), (4, 0.9, 3.0), (5, 0.2, 0.0)):
        found = staged_failure(agents, 0.041, gap, samples, kind)
        assert found == pytest.approx(failure(agents, 0.041, gap, samples, kind), rel=1e-11)
    # Losses of exactly ε don't fail: one error, and in a chain one in the last stage.
    tie = staged_failure(5, 0.04, 0.2, 0.0, kind)
    assert tie == (1 - 2 / 32 if kind == "dependent" else 1 - 6 / 32)
    assert staged_failure(3, 0.5, 0.1, 10.0, kind) == 0.0
    tail = staged_failure(3, 0.1, 0.3, 2 * (30 / 0.3) ** 2, kind)
    fewest = 1 if kind == "dependent" else 2
    q = norm.sf(30.0)
    expected = q if kind == "dependent" else binom.sf(fewest - 1, 3, q)
    # A chain loses .1 by one error in the first stage, .2 of it in the second, .1 in the third.
    expected *= 2 if kind == "dependent" else 1
    assert tail == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("kind", ["dependent", "independent"])
@pytest.mark.parametrize(("accuracy", "delta"), [(0.05, 0.05), (0.3, 0.2)])
def test_suprema_by_a_grid_of_gaps(kind, accuracy, delta):
    """No gap of a grid takes more samples, and one just above the worst takes as many."""
    for agents in (1, 3, 4):
        most = staged_minimax_samples(agents, accuracy, delta, kind)
        worst = staged_worst_gap(agents, accuracy, delta, kind)
        for gap in np.geomspace(0.5 * accuracy, 1.0, 25):
            assert needed(agents, accuracy, delta, gap, kind) <= most * (1 + 1e-9)
        above = needed(agents, accuracy, delta, worst * (1 + 1e-10), kind)
        assert above == pytest.approx(most, rel=1e-8)


def test_union_bounds():
    assert staged_union_samples(1, 0.02, 0.1, "dependent") == pytest.approx(8211.872, abs=1e-3)
    by_hand = 2 * (norm.isf(0.025) / 0.1) ** 2
    assert staged_union_samples(4, 0.1, 0.1, "independent") == pytest.approx(by_hand, rel=1e-12)
    ratio = staged_union_samples(7, 0.1, 0.1, "dependent") / staged_union_samples(
        7, 0.1, 0.1, "independent"
    )
    assert ratio == pytest.approx(49.0, rel=1e-12)
    assert staged_union_samples(1, 0.1, 0.5, "dependent") == 0.0
    assert staged_union_samples(3, 1.5, 0.1, "independent") == 0.0


@pytest.mark.parametrize("kind", ["dependent", "independent"])
def test_limits(kind):
    """δ near 0 and 1, an accuracy that no error passes, and many independent stages."""
    assert staged_minimax_samples(3, 1.0, 0.1, kind) == 0.0
    assert np.isnan(staged_worst_gap(3, 1.0, 0.1, kind))
    assert staged_minimax_samples(3, 0.02, 1 - 1e-12, kind) == 0.0
    rare = staged_minimax_samples(1, 0.02, 1e-300, kind)
    assert rare == pytest.approx(2 * (norm.isf(1e-300) / 0.02) ** 2, rel=1e-9)
    some = [staged_minimax_samples(3, 0.02, d, kind) for d in (1e-300, 1e-30, 1e-3, 0.3)]
    assert (np.diff(some) < 0).all()
    assert 100 < staged_minimax_samples(1000, 0.02, 0.1, "independent") < 200


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "function", "arguments"),
    [
        ("kind", staged_minimax_samples, (3, 0.1, 0.1, "dependant")),
        ("num_agents", staged_minimax_samples, (0, 0.1, 0.1, "dependent")),
        ("num_agents", staged_minimax_samples, (17, 0.1, 0.1, "dependent")),
        ("num_agents", staged_worst_gap, (2.0, 0.1, 0.1, "dependent")),
        ("accuracy", staged_minimax_samples, (3, 0.0, 0.1, "dependent")),
        ("accuracy", staged_union_samples, (3, [0.1], 0.1, "dependent")),
        ("failure_probability", staged_minimax_samples, (3, 0.1, 0.0, "independent")),
        ("failure_probability", staged_union_samples, (3, 0.1, 1.0, "independent")),
        ("gap", staged_failure, (3, 0.1, 1.1, 5.0, "dependent")),
        ("samples_per_arm", staged_failure, (3, 0.1, 0.5, -1.0, "dependent")),
    ],
)
def test_bad_input_is_named(named, function, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        function(*arguments)


def test_traced_numbers_are_refused():
    with pytest.raises(ValueError, match=r"^accuracy: got a traced value"):
        jax.jit(lambda e: staged_minimax_samples(3, e, 0.1, "dependent"))(0.1)
