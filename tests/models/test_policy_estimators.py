"""KL estimates and group advantages: by enumeration, by loops, at the ends of their range."""

import functools
import math
import statistics

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.models.policy_estimators import group_advantage, kl_estimate

POLICY = np.array([0.5, 0.2, 0.15, 0.1, 0.04, 0.01])
REFERENCE = np.array([0.1, 0.3, 0.05, 0.25, 0.1, 0.2])
DIVERGENCE = sum(p * math.log(p / q) for p, q in zip(POLICY, REFERENCE, strict=True))
REVERSE = sum(q * math.log(q / p) for p, q in zip(POLICY, REFERENCE, strict=True))

advantage = jax.jit(group_advantage, static_argnames="scale")


@functools.partial(jax.jit, static_argnums=2)
def with_slope(log_prob, reference, kind):
    """Estimates, and the gradient of those that are numbers, added up."""

    def total(log_prob):
        found = kl_estimate(log_prob, reference, kind)
        return jnp.sum(jnp.where(jnp.isnan(found) | jnp.isinf(found), 0, found)), found

    (_, found), slope = jax.value_and_grad(total, has_aux=True)(log_prob)
    return found, slope


def one_row(values):
    return np.asarray(values)[None]


@pytest.mark.parametrize(
    ("kind", "mean"),
    [
        ("k1", DIVERGENCE),
        ("k2", sum(p * math.log(p / q) ** 2 / 2 for p, q in zip(POLICY, REFERENCE, strict=True))),
        ("k3", DIVERGENCE),
    ],
)
def test_means_by_enumeration(kind, mean):
    found, _ = with_slope(one_row(np.log(POLICY)), one_row(np.log(REFERENCE)), kind)
    assert found.shape == (1, 6)
    np.testing.assert_allclose(POLICY @ np.asarray(found)[0], mean, rtol=1e-14)
    assert kind == "k1" or (np.asarray(found) >= 0).all()


@pytest.mark.parametrize("kind", ["k1", "k2", "k3"])
def test_mean_gradients_by_enumeration(kind):
    """With respect to the logits of a softmax: 0, of KL(π‖ref), of KL(ref‖π)."""
    _, slope = with_slope(one_row(np.log(POLICY)), one_row(np.log(REFERENCE)), kind)
    slope = np.asarray(slope)[0]
    # ∂ log π(a)/∂ logit(k) = 1[a = k] − π(k)
    found = POLICY * slope - POLICY * (POLICY @ slope)
    x = np.log(POLICY / REFERENCE)
    expected = {"k1": 0 * x, "k2": POLICY * (x - DIVERGENCE), "k3": POLICY - REFERENCE}[kind]
    np.testing.assert_allclose(found, expected, atol=1e-15)
    assert not np.allclose(found, POLICY * (x - DIVERGENCE) if kind == "k3" else POLICY - REFERENCE)


def k3_exact(x):
    """e^{−x} − 1 + x by its series in rational steps where it cancels, directly elsewhere."""
    if abs(x) > 2:
        return math.exp(-x) - 1 + x
    term, terms = 1.0, []
    for n in range(1, 40):
        term *= -x / n
        terms.append(term)
    return math.fsum(terms[1:])


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 2e-15), (np.float32, 8e-7)])
def test_k3_keeps_its_digits(dtype, rtol):
    x = np.array([1e-9, -1e-6, 1e-4, -3e-3, 0.1, 0.4999, 0.5001, -0.5, -2.5, 9.0, 19.0, -19.0])
    x = np.concatenate([x, -x]).astype(dtype)
    found, slope = with_slope(one_row(x), one_row(np.zeros_like(x)), "k3")
    assert found.dtype == dtype
    np.testing.assert_allclose(found[0], [k3_exact(float(v)) for v in x], rtol=rtol)
    np.testing.assert_allclose(slope[0], [-math.expm1(-float(v)) for v in x], rtol=rtol)


@pytest.mark.parametrize("kind", ["k1", "k2", "k3"])
def test_far_ratios_are_finite_and_padding_leaves_nothing(kind):
    x = one_row(np.array([1e4, -1e4, 0.3, np.nan, np.inf, -np.inf]))
    found, gradient = (np.asarray(part)[0] for part in with_slope(x, np.zeros_like(x), kind))
    assert np.isfinite(found[:3]).all()
    assert np.isfinite(gradient).all()
    assert not gradient[3:].any()
    assert np.isnan(found[3])
    # The tangent at −20: the value goes on growing, with the gradient of x = −20.
    if kind == "k3":
        np.testing.assert_allclose(gradient[:2], [1.0, 1 - math.exp(20)], rtol=1e-12)
        tangent = math.exp(20) - 21 - (1e4 - 20) * (1 - math.exp(20))
        np.testing.assert_allclose(found[:2], [1e4 - 1, tangent], rtol=1e-12)


def test_far_ratios_in_float32():
    x = one_row(np.array([1e4, -1e4, -90.0, 89.0, np.nan, 0.0], np.float32))
    found, gradient = with_slope(x, np.zeros_like(x), "k3")
    assert np.isfinite(np.asarray(found)[0, :4]).all()
    assert np.isfinite(gradient).all()


def test_narrow_types_are_computed_in_float32():
    x = jnp.asarray(np.array([[0.25, -0.5]]), jnp.bfloat16)
    found = kl_estimate(x, np.zeros((1, 2), np.float32), "k3")
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[0], [k3_exact(0.25), k3_exact(-0.5)], rtol=1e-6)


def by_loop(reward, group_id, scale):
    """Python's statistics module, group by group."""
    result = []
    for value, group in zip(reward, group_id, strict=True):
        members = [r for r, g in zip(reward, group_id, strict=True) if g == group]
        centred = value - statistics.fmean(members)
        spread = statistics.stdev(members) if len(members) > 1 else 0.0
        result.append(centred / (spread + 1e-6) if scale else centred)
    return result


GROUPS = np.array([0, 3, 3, 0, 0, 7, 3, 6, 6, 0])


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize(("shift", "size"), [(0, 1), (1e6, 1), (0, 1e-7), (0, 1e100)])
def test_group_advantage_by_loop(scale, shift, size):
    reward = shift + size * np.random.default_rng(5).standard_normal(10)
    found = advantage(reward, GROUPS, scale=scale)
    error = 1e-9 if shift else 1e-13
    np.testing.assert_allclose(
        found, by_loop(reward, GROUPS, scale), atol=error if scale else error * size
    )
    assert found[5] == 0  # alone in its group


@pytest.mark.parametrize("scale", [True, False])
def test_equal_rewards_have_no_advantage(scale):
    """.1 three times has a mean that isn't .1 in floating point."""
    reward = np.array([0.1, 0.1, 0.1, 0.1, 0.1, 1e30, 0.1, 5.0, 5.0, 0.1], np.float32)
    found = advantage(reward, GROUPS, scale=scale)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.zeros(10))


def test_large_rewards_and_integers():
    largest = 8e36 * np.array([1, -1, 0, 1, 1, 1, 0, 1, -1, 1], np.float32)
    found = advantage(largest, GROUPS)
    np.testing.assert_allclose(found, by_loop((largest / 8e36).tolist(), GROUPS, True), atol=1e-5)
    whole = np.array([1, 0, 0, 0, 1, 1, 1, 0, 1, 0])
    np.testing.assert_allclose(
        advantage(whole, GROUPS), by_loop(whole.tolist(), GROUPS, True), atol=1e-13
    )


LOG_PROB = np.zeros((2, 3))


OTHER_TYPES = {
    "text": np.full((2, 3), "a"),
    "objects": np.full((2, 3), None),
    "large": [[10**400] * 3] * 2,
    "masked": np.ma.masked_array(LOG_PROB, [[True, False, False]] * 2),
    "spans": np.zeros((2, 3), "m8[s]"),
}


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize("kind", OTHER_TYPES)
def test_other_types_are_named(kind):
    value = OTHER_TYPES[kind]
    with pytest.raises(ValueError, match=r"^log_prob: "):
        kl_estimate(value, LOG_PROB, "k1")
    with pytest.raises(ValueError, match=r"^log_prob_reference: "):
        kl_estimate(LOG_PROB, value, "k3")
    with pytest.raises(ValueError, match=r"^reward: "):
        group_advantage(value[0], [0, 0, 1])
    with pytest.raises(ValueError, match=r"^group_id: "):
        group_advantage(REWARD, value[0])


@pytest.mark.parametrize("scale", [True, False])
def test_traced_rewards_that_are_not_finite_come_through(scale):
    reward = np.random.default_rng(5).standard_normal(10)
    expected = np.asarray(advantage(reward, GROUPS, scale=scale))
    for bad in (np.nan, np.inf, -np.inf):
        found = np.asarray(
            advantage(np.where(np.arange(10) == 2, bad, reward), GROUPS, scale=scale)
        )
        assert not np.isfinite(found[GROUPS == 3]).any()
        np.testing.assert_array_equal(found[GROUPS != 3], expected[GROUPS != 3])


def test_whole_rewards_of_any_size():
    found = group_advantage(np.array([2**40, 0]), [0, 0], scale=False)
    np.testing.assert_array_equal(found, [2.0**39, -(2.0**39)])
    with jax.enable_x64(False):
        found = group_advantage(np.array([2**40, 0]), [0, 0], scale=False)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, np.array([2**39, -(2**39)], np.float32))


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((LOG_PROB, LOG_PROB, "k4"), "^kind: got 'k4'"),
        ((LOG_PROB[0], LOG_PROB[0], "k1"), r"^log_prob: got shape \(3,\)"),
        ((LOG_PROB, LOG_PROB.T, "k1"), r"^log_prob_reference: got shape \(3, 2\)"),
        ((LOG_PROB.astype(int), LOG_PROB, "k1"), "^log_prob: got values of type int"),
        ((LOG_PROB, LOG_PROB.astype(bool), "k1"), "^log_prob_reference: got values of type bool"),
    ],
)
def test_bad_kl_arguments_are_refused(arguments, match):
    with pytest.raises(ValueError, match=match):
        kl_estimate(*arguments)


REWARD = np.array([1.0, 0.0, 1.0])


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("reward", "group_id", "scale", "match"),
    [
        (LOG_PROB, [0, 0, 1], True, r"^reward: got shape \(2, 3\)"),
        (np.array([1.0, np.nan, 0.0]), [0, 0, 1], True, r"^reward: got nan at \(1,\)"),
        (np.array([1.0, 3e38, 0.0], np.float32), [0, 0, 1], True, "^reward: got 3.*overflow"),
        (None, [0, 0, 1], True, "^reward: "),
        ([1.0, [2.0]], [0, 0, 1], True, "^reward: "),
        (REWARD, [None, None, None], True, "^group_id: got values of type object"),
        (REWARD, [0, [1]], True, "^group_id: "),
        (REWARD, None, True, "^group_id: "),
        (REWARD, [0, 0], True, r"^group_id: got shape \(2,\)"),
        (REWARD, [0, 3, 0], True, r"^group_id: got 3 at 1, expected .*\[0, 3\)"),
        (REWARD, [0, -1, 0], True, "^group_id: got -1 at 1"),
        (REWARD, np.array([0.0, 0.0, 1.0]), True, "^group_id: got values of type float"),
        (REWARD, [0, 0, 1], None, "^scale: got None"),
    ],
)
def test_bad_group_arguments_are_refused(reward, group_id, scale, match):
    with pytest.raises(ValueError, match=match):
        group_advantage(reward, group_id, scale=scale)
