"""Bounds on sample complexity: by hand, by bracketing, and by their own derivations."""

import itertools
import math

import jax
import numpy as np
import pytest
import scipy.optimize

from boundlab.precision import x64
from boundlab.theory.team_learning import (
    alignment_crossover,
    finite_class_samples,
    pac_samples,
    sequence_lipschitz,
    softmax_lipschitz,
    weighted_samples,
)

ACCURACY, DELTA = 0.2, 0.05
TEAM = ([4, 6], [1.0, 2.0], [5, 3], 0.5)


def parametric(d, b, t, accuracy, log_failure):
    return math.ceil(
        8 / accuracy**2 * (d * math.log(1 + 16 * b * 0.5 * t / accuracy) + log_failure)
    )


def test_parametric_by_hand():
    one = pac_samples("sarl", 10, 2.0, 8, 0.5, ACCURACY, DELTA)
    assert float(one) == parametric(10, 2.0, 8, ACCURACY, math.log(2 / DELTA))
    agents = list(zip(*TEAM[:3], strict=True))
    parts = [parametric(*agent, ACCURACY, math.log(4 / DELTA)) for agent in agents]
    assert float(pac_samples("independent", *TEAM, ACCURACY, DELTA, 0.3)) == max(parts)
    split = [parametric(*agent, ACCURACY / 2, math.log(4 / DELTA)) for agent in agents]
    assert float(pac_samples("dependent", *TEAM, ACCURACY, DELTA, 0.3)) == sum(split)
    left = [parametric(*agent, ACCURACY - 0.1, math.log(4 / DELTA)) for agent in agents]
    assert float(pac_samples("misaligned", *TEAM, ACCURACY, DELTA, 0.05)) == max(left)
    for alpha in (0.1, 1.0):
        assert float(pac_samples("misaligned", *TEAM, ACCURACY, DELTA, alpha)) == math.inf
    # A single policy needs ln(2/δ) alone.
    still = pac_samples("sarl", 3, 0.0, 1, 0.5, 1.0, DELTA)
    assert float(still) == math.ceil(8 * math.log(2 / DELTA))


def test_finite_classes_by_hand():
    logs, log_failure = np.array([5.0, 2.0, 3.0]), math.log(6 / DELTA)
    found = {
        kind: float(finite_class_samples(logs, ACCURACY, DELTA, kind, 0.03))
        for kind in ("sarl", "independent", "dependent", "misaligned")
    }
    expected = {
        "sarl": 2 / ACCURACY**2 * (10 + math.log(2 / DELTA)),
        "independent": 2 / ACCURACY**2 * (5 + log_failure),
        "dependent": 18 / ACCURACY**2 * (10 + 3 * log_failure),
        "misaligned": 2 / 0.14**2 * (5 + log_failure),
    }
    for kind, value in expected.items():
        np.testing.assert_allclose(found[kind], value, rtol=1e-12)
    assert float(finite_class_samples(logs, ACCURACY, DELTA, "misaligned", 0.1)) == math.inf
    equal = [
        float(finite_class_samples(np.full(4, 5.0), ACCURACY, DELTA, kind))
        for kind in ("sarl", "independent", "dependent")
    ]
    np.testing.assert_allclose(equal, [1184.44, 503.76, 64 * 503.7587], rtol=1e-5)


@pytest.mark.parametrize(("agents", "published"), [(2, 0.01721), (4, 0.03478), (8, 0.05035)])
def test_crossover_by_bracketing(agents, published):
    """Where the bounds of a misaligned team and of one agent are equal."""
    log_failure = [math.log(2 * m / DELTA) for m in (1, agents)]

    def excess(alpha):
        return (5 + log_failure[1]) / (ACCURACY - 2 * alpha) ** 2 - (
            agents * 5 + log_failure[0]
        ) / ACCURACY**2

    expected = scipy.optimize.brentq(excess, -ACCURACY, 0.499 * ACCURACY, xtol=1e-15)
    found = alignment_crossover(5.0, agents, ACCURACY, DELTA)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    np.testing.assert_allclose(found, published, atol=5e-6)


def test_crossover_limits():
    assert float(alignment_crossover(5.0, 1, ACCURACY, DELTA)) == 0.0
    assert float(alignment_crossover(0.1, 8, ACCURACY, DELTA)) < 0.0
    large = alignment_crossover(1e12, 4, ACCURACY, DELTA)
    np.testing.assert_allclose(large, ACCURACY / 2 * (1 - 0.5), rtol=1e-9)


def test_weighted_by_allocation():
    """Two-sided deviations w_i √(c_i/(2n)) of all agents add up to ε/2 at n."""
    logs, weights = np.array([5.0, 2.0]), np.array([0.3, 0.7])
    c = logs + math.log(4 / DELTA)
    expected = scipy.optimize.brentq(
        lambda n: 2 * np.sum(weights * np.sqrt(c / (2 * n))) - ACCURACY, 1, 1e6, xtol=1e-9
    )
    found = float(weighted_samples(logs, weights, ACCURACY, DELTA))
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert found < float(finite_class_samples(logs, ACCURACY, DELTA, "independent"))


def test_traced_accuracy():
    levels = np.array([0.1, 0.2, 0.3])
    with x64():
        each = jax.vmap(
            lambda e: finite_class_samples(np.full(2, 5.0), e, DELTA, "misaligned", 0.1)
        )
        found = each(levels)
    expected = 2 / 0.1**2 * (5 + math.log(4 / DELTA))
    np.testing.assert_allclose(found, [np.inf, np.inf, expected], rtol=1e-12)


def law_of_texts(theta, features):
    """Text after text, a product of its tokens' chances."""
    length, size = len(features), features[0].shape[1]
    law = []
    for text in itertools.product(range(size), repeat=length):
        chance, prefix = 1.0, 0
        for t, token in enumerate(text):
            scores = np.exp(features[t][prefix] @ theta)
            chance *= scores[token] / scores.sum()
            prefix = prefix * size + token
        law.append(chance)
    return np.array(law)


def test_total_variation_by_enumeration():
    """Random policies stay below √T/2, and below T/2; two opposite tokens attain ½."""
    rng = np.random.default_rng(0)
    for length, size in ((1, 3), (2, 5), (4, 3)):
        features = [rng.normal(size=(size**t, size, 3)) for t in range(length)]
        features = [f / np.linalg.norm(f, axis=-1, keepdims=True) for f in features]
        for step in (1e-3, 1.0):
            theta, move = rng.normal(size=3), step * rng.normal(size=3)
            laws = [law_of_texts(theta + end * move, features) for end in (0, 1)]
            distance = 0.5 * np.abs(laws[0] - laws[1]).sum() / np.linalg.norm(move)
            assert distance <= float(softmax_lipschitz(length)) + 1e-10
            assert distance <= float(sequence_lipschitz(length)) + 1e-10
    opposite = [np.array([[[1.0], [-1.0]]])]
    laws = [law_of_texts(np.array([end]), opposite) for end in (-1e-4, 1e-4)]
    attained = 0.5 * np.abs(laws[0] - laws[1]).sum() / 2e-4
    np.testing.assert_allclose(attained, softmax_lipschitz(1), rtol=1e-7)
    np.testing.assert_array_equal(sequence_lipschitz([1, 4], 0.25), [0.25, 1.0])
    np.testing.assert_allclose(softmax_lipschitz([1, 4, 9]), [0.5, 1.0, 1.5], rtol=1e-15)


PAC = ("sarl", 10, 2.0, 8, 0.5, ACCURACY, DELTA)
CLASSES = ([5.0, 2.0], ACCURACY, DELTA, "sarl")


def changed(arguments, place, value):
    return (*arguments[:place], value, *arguments[place + 1 :])


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "function", "arguments"),
    [
        ("kind", pac_samples, changed(PAC, 0, "joint")),
        ("dims", pac_samples, changed(PAC, 1, 0)),
        ("dims", pac_samples, changed(PAC, 1, [3, 4])),
        ("dims", pac_samples, ("independent", *PAC[1:])),
        ("radii", pac_samples, changed(PAC, 2, -1.0)),
        ("radii", pac_samples, ("independent", [3, 4], 1.0, [2, 2], 0.5, 0.1, 0.1)),
        ("horizons", pac_samples, changed(PAC, 3, 0)),
        ("step_lipschitz", pac_samples, changed(PAC, 4, np.inf)),
        ("accuracy", pac_samples, changed(PAC, 5, 0.0)),
        ("failure_probability", pac_samples, changed(PAC, 6, 1.0)),
        ("alignment", pac_samples, (*PAC, -0.1)),
        ("log_class_sizes", finite_class_samples, changed(CLASSES, 0, [])),
        ("log_class_sizes", finite_class_samples, changed(CLASSES, 0, [-1.0])),
        ("accuracy", finite_class_samples, changed(CLASSES, 1, [0.1])),
        ("failure_probability", finite_class_samples, changed(CLASSES, 2, 0.0)),
        ("kind", finite_class_samples, changed(CLASSES, 3, "marl")),
        ("log_class_size", alignment_crossover, (-1.0, 2, 0.1, 0.1)),
        ("num_agents", alignment_crossover, (1.0, 0, 0.1, 0.1)),
        ("weights", weighted_samples, ([1.0, 2.0], [0.5, 0.4], 0.1, 0.1)),
        ("weights", weighted_samples, ([1.0, 2.0], [1.5, -0.5], 0.1, 0.1)),
        ("num_tokens", sequence_lipschitz, (0,)),
        ("step_lipschitz", sequence_lipschitz, (2, -0.5)),
        ("num_tokens", softmax_lipschitz, ([1, 0],)),
    ],
)
def test_bad_input_is_named(named, function, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        function(*arguments)
