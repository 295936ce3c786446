"""Aggregations of per-token losses, by loops over tokens."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.models.policy_aggregation import MODES, aggregate

MASK = np.array([[1, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 1, 0]])
VALUES = np.random.default_rng(0).normal(size=(4, 4))


@jax.jit
def value_and_gradient(values, mask):
    """Value and gradient by mode."""

    def one(mode):
        return jax.value_and_grad(lambda x: aggregate(x, mask, mode))(values)

    return {mode: one(mode) for mode in MODES}


def by_loops(values, mask, mode, norm):
    rows = []
    for row, kept in zip(values.tolist(), mask.tolist(), strict=True):
        tokens = [x for x, m in zip(row, kept, strict=True) if m]
        if tokens:
            rows.append(tokens)
    flat = [x for row in rows for x in row]
    return {
        "token-mean": sum(flat) / len(flat),
        "token-sum": sum(flat),
        "seq-mean-token-mean": sum(sum(row) / len(row) for row in rows) / len(rows),
        "seq-mean-token-sum": sum(flat) / len(rows),
        "seq-mean-token-sum-norm": sum(flat) / len(rows) / norm,
    }[mode]


def test_by_loops():
    for mode, (value, gradient) in value_and_gradient(VALUES, MASK).items():
        np.testing.assert_allclose(value, by_loops(VALUES, MASK, mode, 4), rtol=1e-14)
        eye = np.eye(16).reshape(16, 4, 4)
        slopes = [by_loops(one, MASK, mode, 4) for one in eye]
        np.testing.assert_allclose(gradient, np.reshape(slopes, (4, 4)), rtol=1e-14)


def test_padding_and_empty_batches():
    junk = np.where(MASK, VALUES, np.nan)
    plain, padded, nothing = (
        value_and_gradient(VALUES, MASK),
        value_and_gradient(junk, MASK),
        value_and_gradient(junk, 0 * MASK),
    )
    for mode in MODES:
        np.testing.assert_array_equal(padded[mode][0], plain[mode][0])
        np.testing.assert_array_equal(padded[mode][1], plain[mode][1])
        np.testing.assert_array_equal(nothing[mode][0], 0.0)
        np.testing.assert_array_equal(nothing[mode][1], np.zeros((4, 4)))


def test_norm_and_denominator():
    total = VALUES[MASK > 0].sum()
    for mode, count in (("token-mean", 7.0), ("token-sum", 7.0), ("seq-mean-token-sum", 7.0)):
        found = aggregate(VALUES, MASK, mode, denominator=count)
        np.testing.assert_allclose(found, total / 7, rtol=1e-14)
    large = aggregate(VALUES, MASK, "token-sum", denominator=2**63)  # beyond JAX's integers
    np.testing.assert_allclose(large, total / 2**63, rtol=1e-14)
    found = aggregate(VALUES, MASK, "seq-mean-token-sum-norm", norm=5, denominator=7)
    np.testing.assert_allclose(found, total / 35, rtol=1e-14)
    swept = jax.vmap(lambda d: aggregate(VALUES, MASK > 0, "token-mean", denominator=d))(
        np.array([1.0, 7.0], np.float32)
    )
    np.testing.assert_allclose(swept, [total, total / 7], rtol=1e-14)


def test_narrow_types_are_summed_in_float32():
    ones = jnp.asarray(np.full((1, 1000), 1.0), jnp.bfloat16)
    found = aggregate(ones, np.ones((1, 1000), bool), "token-sum")
    assert found.dtype == jnp.float32
    assert float(found) == 1000.0


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "arguments", "options"),
    [
        ("per_token", (np.ones(4), MASK, "token-mean"), {}),
        ("per_token", (MASK, MASK, "token-mean"), {}),
        ("per_token", (np.full((4, 4), "a"), MASK, "token-mean"), {}),
        ("per_token", (np.full((4, 4), None), MASK, "token-mean"), {}),
        ("per_token", ([[10**400] * 4] * 4, MASK, "token-mean"), {}),
        ("per_token", ([[1.0], [1.0, 2.0]], MASK, "token-mean"), {}),
        ("per_token", (np.ma.masked_array(VALUES, MASK == 0), MASK, "token-mean"), {}),
        ("per_token", (None, MASK, "token-mean"), {}),
        ("mask", (VALUES, np.full((4, 4), None), "token-mean"), {}),
        ("mask", (VALUES, np.ma.masked_array(MASK, MASK == 0), "token-mean"), {}),
        ("mask", (VALUES, MASK[:2], "token-mean"), {}),
        ("mask", (VALUES, 2 * MASK, "token-mean"), {}),
        ("mode", (VALUES, MASK, "mean"), {}),
        ("mode", (VALUES, MASK, np.array(["token-mean"])), {}),
        ("norm", (VALUES, MASK, "token-mean"), {"norm": 4}),
        ("norm", (VALUES, MASK, "seq-mean-token-sum-norm"), {"norm": 0}),
        ("denominator", (VALUES, MASK, "token-mean"), {"denominator": -1.0}),
        ("denominator", (VALUES, MASK, "token-mean"), {"denominator": np.ones(2)}),
    ],
)
def test_bad_input_is_named(named, arguments, options):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        aggregate(*arguments, **options)
