"""Behaviour weights against loops over tokens, written from their definitions."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.models.behavior_weights import (
    BEHAVIOR_WEIGHTS,
    behavior_options,
    behavior_weights,
    sequence_weights,
)
from boundlab.models.policy_batch import PolicyBatch, clean

RNG = np.random.default_rng(11)
B, T = 6, 5
MASK = RNG.random((B, T)) < 0.75
MASK[4] = False
MASK[5] = [1, 0, 0, 1, 0]
RATIO = 0.4 * RNG.standard_normal((B, T))
LOG_W = 0.7 * RNG.standard_normal((B, T))
LOG_W[3] += 1.5
ADVANTAGE = RNG.standard_normal((B, T))
OLD = np.full((B, T), -1.5)


@functools.partial(jax.jit, static_argnames="kind")
def weights(kind, log_ratio, log_weight, advantage, mask, **options):
    batch = PolicyBatch(OLD + log_ratio, OLD, OLD - log_weight, advantage, mask)
    made = clean(batch)
    found = behavior_weights(kind, made, **options)
    return found, sequence_weights(found, made)


def by_loop(kind, low=None, high=None, threshold=None):
    """Token by token, with Python floats."""
    tokens = [[t for t in range(T) if MASK[b, t]] for b in range(B)]
    w = [[math.exp(x) for x in row] for row in LOG_W]
    result = np.zeros((B, T))
    for b, t in [(row, place) for row in range(B) for place in tokens[row]]:
        middle = math.prod(w[b][s] for s in tokens[b]) ** (1 / len(tokens[b]))
        moved = sum(-RATIO[b, s] for s in tokens[b]) / len(tokens[b])
        result[b, t] = {
            None: 1.0,
            "tis": min(max(w[b][t], low or 0.0), high or 0.0),
            "icepop": w[b][t] if (low or 0.0) <= w[b][t] <= (high or 0.0) else 0.0,
            "sequence_mask": w[b][t] if (low or 0.0) <= middle <= (high or 0.0) else 0.0,
            "opsm": 0.0 if ADVANTAGE[b, t] < 0 and moved > (threshold or 0.0) else 1.0,
            "decoupled": w[b][t],
            "m2po": float((b, t) in m2po_by_loop(tokens, threshold)) if kind == "m2po" else 0.0,
        }[kind]
    return result


def m2po_by_loop(tokens, threshold):
    """Drop the token farthest off until the mean square is below the threshold or one is left."""
    kept = [(b, t) for b in range(B) for t in tokens[b]]
    while len(kept) > 1 and sum(LOG_W[p] ** 2 for p in kept) / len(kept) >= threshold:
        kept.remove(max(kept, key=lambda p: LOG_W[p] ** 2))
    return kept


CASES = [
    (None, {}, {}),
    ("tis", {}, {"low": 0.0, "high": 2.0}),
    ("tis", {"low": 0.6, "high": 1.3}, {}),
    ("icepop", {}, {"low": 0.5, "high": 5.0}),
    ("icepop", {"low": 0.9, "high": 1.7}, {}),
    ("sequence_mask", {}, {"low": 0.5, "high": 5.0}),
    ("sequence_mask", {"low": 0.8, "high": 1.5}, {}),
    ("opsm", {}, {"threshold": 1e-4}),
    ("opsm", {"threshold": 0.1}, {}),
    ("decoupled", {}, {}),
    ("m2po", {}, {"threshold": 0.04}),
    ("m2po", {"threshold": 0.3}, {}),
    ("m2po", {"threshold": 1e-9}, {}),
    ("m2po", {"threshold": 1e9}, {}),
]


@pytest.mark.parametrize(("kind", "given", "defaults"), CASES)
def test_weights_by_loop(kind, given, defaults):
    found, of_sequence = weights(kind, RATIO, LOG_W, ADVANTAGE, MASK, **given)
    expected = by_loop(kind, **{**defaults, **given})
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    for b in (0, 1, 2, 3, 5):
        inside = expected[b][MASK[b]]
        np.testing.assert_allclose(
            of_sequence[b], inside.prod() ** (1 / len(inside)), rtol=1e-13, atol=1e-300
        )
    assert kind in (None, "opsm") or np.unique(found).size > 1
    if given.get("threshold", 1) == 1e-9:
        assert found.sum() == 1  # the smallest one stays in any case
    assert np.isfinite(of_sequence[4])


@pytest.mark.parametrize("kind", BEHAVIOR_WEIGHTS)
def test_padding_and_far_tokens(kind):
    """What padding holds changes no bit; log-ratios of ±1e4 keep weights finite; no gradient."""
    plain = weights(kind, RATIO, LOG_W, ADVANTAGE, MASK)
    bad = np.resize([np.nan, np.inf, -np.inf, 1e30, 0.0, -7.0], (B, T))
    filled = [np.where(MASK, x, y) for x, y in ((RATIO, bad), (LOG_W, bad[::-1]), (ADVANTAGE, bad))]
    for one, other in zip(plain, weights(kind, *filled, MASK), strict=True):
        np.testing.assert_array_equal(one, other)
    far = 1e4 * np.sign(LOG_W)
    found = weights(kind, far, far[::-1], ADVANTAGE, MASK)
    assert np.isfinite(found[0]).all()
    assert np.isfinite(found[1]).all()


@pytest.mark.parametrize("kind", BEHAVIOR_WEIGHTS)
def test_a_token_that_is_not_finite_has_no_weight(kind):
    place = (5, 3)
    for at in range(3):
        fields = [x.copy() for x in (RATIO, LOG_W, ADVANTAGE)]
        fields[at][place] = np.nan
        found, of_sequence = weights(kind, *fields, MASK)
        assert np.isnan(found[place])
        assert not np.isfinite(of_sequence[5]) or of_sequence[5] == 0
        assert not np.isnan(found).all()


@pytest.mark.parametrize("kind", ["opsm", "tis"])
def test_weights_carry_no_gradient(kind):
    def total(log_ratio):
        found = weights(kind, log_ratio, LOG_W, ADVANTAGE, MASK)
        return jnp.sum(found[0]) + jnp.sum(found[1])

    np.testing.assert_array_equal(jax.jit(jax.grad(total))(RATIO), np.zeros((B, T)))


def test_m2po_of_equal_squares():
    """Equal squares: the count is the definition's, and the order of sequences doesn't matter."""
    log_weight = np.resize([0.5, -0.5], (B, T)) * np.sign(RATIO)
    for threshold in (0.04, 0.2500001):
        found, _ = weights("m2po", RATIO, log_weight, ADVANTAGE, MASK, threshold=threshold)
        assert found.sum() == (1 if threshold < 0.25 else int(MASK.sum()))
    log_weight = np.where(RNG.random((B, T)) < 0.5, 0.0, log_weight)
    order = RNG.permutation(B)
    kept, _ = weights("m2po", RATIO, log_weight, ADVANTAGE, MASK, threshold=0.1)
    zeros = int(((log_weight == 0) & MASK).sum())
    # The largest k with .25k/(zeros + k) < .1.
    largest = max(k for k in range(100) if 0.25 * k < 0.1 * (zeros + k))
    assert kept.sum() == zeros + largest
    moved, _ = weights(
        "m2po", RATIO[order], log_weight[order], ADVANTAGE[order], MASK[order], threshold=0.1
    )
    np.testing.assert_array_equal(moved, kept[order])


def test_no_tokens_at_all():
    for kind in BEHAVIOR_WEIGHTS:
        found, of_sequence = weights(kind, RATIO, LOG_W, ADVANTAGE, np.zeros((B, T), bool))
        assert not found.any()
        assert np.isfinite(of_sequence).all()


def test_options_can_be_traced():
    def total(low, high):
        return weights("icepop", RATIO, LOG_W, ADVANTAGE, MASK, low=low, high=high)[0].sum()

    lows, highs = np.array([0.5, 0.9]), np.array([5.0, 1.7])
    found = jax.jit(jax.vmap(total))(lows, highs)
    expected = [by_loop("icepop", low, high).sum() for low, high in zip(lows, highs, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("kind", "options", "match"),
    [
        ("icepops", (None, None, None), "^behavior_weight: got 'icepops'.*did you mean 'icepop'"),
        (3, (None, None, None), "^behavior_weight: got 3"),
        (None, (0.5, None, None), "^behavior_low: got 0.5 with behavior_weight=None"),
        ("decoupled", (None, 2.0, None), "^behavior_high: .*None but for tis, icepop, seq"),
        ("tis", (None, None, 0.1), "^behavior_threshold: .*None but for opsm, m2po"),
        ("m2po", (0.1, None, None), "^behavior_low"),
        ("tis", (-0.1, None, None), "^behavior_low: got -0.1"),
        ("tis", (np.nan, None, None), "^behavior_low: got nan"),
        ("tis", (0.0, 0.0, None), "^behavior_high: got 0"),
        ("icepop", (None, np.inf, None), "^behavior_high: got inf"),
        ("icepop", (6.0, None, None), "^behavior_low: got 6.0 above behavior_high 5.0"),
        ("tis", (np.zeros(2), None, None), "^behavior_low: got shape"),
        ("opsm", (None, None, -1e-9), "^behavior_threshold: got -1e-09"),
        ("m2po", (None, None, 0.0), "^behavior_threshold: got 0"),
    ],
)
def test_bad_options_are_refused(kind, options, match):
    with pytest.raises(ValueError, match=match):
        behavior_options(kind, *options)
