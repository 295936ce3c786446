"""What a batch of policy losses may hold, and the form in which losses see it."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.models.policy_batch import PolicyBatch, check_batch, clean, exp_ratio

MASK = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0]])
PADDED = np.where(MASK, 1.0, np.nan)
BATCH = PolicyBatch(
    log_prob=-0.5 * PADDED,
    log_prob_old=-0.75 * PADDED,
    log_prob_behavior=-0.875 * PADDED,
    advantage=2.0 * PADDED,
    mask=MASK,
    group_id=np.array([0, 2, 0]),
    domain_id=np.array([1, 1, 0]),
)


def test_clean_form():
    check_batch(BATCH, needs=("group_id", "domain_id"))
    found = clean(BATCH)
    np.testing.assert_array_equal(found.log_prob, -0.5 * MASK)
    np.testing.assert_array_equal(found.log_ratio, 0.25 * MASK)
    np.testing.assert_array_equal(found.log_ratio_behavior, 0.125 * MASK)
    np.testing.assert_array_equal(found.advantage, 2.0 * MASK)
    np.testing.assert_array_equal(found.lengths, [2.0, 1.0, 0.0])
    np.testing.assert_array_equal(found.mask, MASK > 0)
    assert found.mask.dtype == bool
    bare = clean(BATCH._replace(log_prob_behavior=None, group_id=None, mask=MASK > 0))
    np.testing.assert_array_equal(bare.log_ratio_behavior, np.zeros((3, 3)))
    assert bare.group_id is None


@pytest.mark.parametrize(
    ("given", "computed"),
    [
        (np.float32, np.float32),
        (np.float64, np.float64),
        (jnp.bfloat16, np.float32),
        (np.float16, np.float32),
    ],
)
def test_type_is_that_of_the_log_probability(given, computed):
    found = clean(BATCH._replace(log_prob=BATCH.log_prob.astype(given)))
    for field in ("log_prob", "log_ratio", "log_ratio_behavior", "advantage", "lengths"):
        assert getattr(found, field).dtype == computed


def test_only_the_log_probability_has_a_gradient():
    def total(*fields):
        found = clean(PolicyBatch(*fields, mask=MASK))
        parts = (found.log_prob, found.log_ratio, found.log_ratio_behavior, found.advantage)
        return sum(jnp.sum(part) for part in parts)

    gradients = jax.grad(total, argnums=(0, 1, 2, 3))(*BATCH[:4])
    np.testing.assert_array_equal(gradients[0], 2.0 * MASK)
    for gradient in gradients[1:]:
        np.testing.assert_array_equal(gradient, 0.0 * MASK)


def test_ratios_stay_finite():
    x = np.array([-1e4, -1.0, 0.0, 1e4])
    np.testing.assert_allclose(exp_ratio(jnp.asarray(x)), np.exp(np.clip(x, -20, 20)), rtol=1e-14)
    assert np.isnan(exp_ratio(jnp.asarray(np.nan * x))).all()


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "changed"),
    [
        ("log_prob", {"log_prob": np.zeros(3)}),
        ("log_prob", {"log_prob": np.zeros((3, 0))}),
        ("log_prob", {"log_prob": np.zeros((3, 3), int)}),
        ("log_prob_old", {"log_prob_old": np.zeros((3, 2))}),
        ("log_prob_old", {"log_prob_old": None}),
        ("log_prob_behavior", {"log_prob_behavior": np.zeros((2, 3))}),
        ("advantage", {"advantage": np.zeros(3)}),
        ("advantage", {"advantage": np.zeros((3, 3), complex)}),
        ("mask", {"mask": np.ones((3, 2))}),
        ("mask", {"mask": MASK * 0.5}),
        ("mask", {"mask": MASK * np.nan}),
        ("mask", {"mask": None}),
        ("group_id", {"group_id": None}),
        ("group_id", {"group_id": np.zeros((3, 1), int)}),
        ("group_id", {"group_id": np.array([0, 3, 0])}),
        ("group_id", {"group_id": np.array([0, -1, 0])}),
        ("group_id", {"group_id": np.zeros(3)}),
        ("group_id", {"group_id": np.array([2, 2, 0]), "domain_id": np.array([0, 1, 0])}),
        ("domain_id", {"domain_id": None}),
        ("domain_id", {"domain_id": np.array([0, 5, 0])}),
    ],
)
def test_bad_fields_are_named(named, changed):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        check_batch(BATCH._replace(**changed), needs=("group_id", "domain_id"))


TYPES = {
    "text": np.full((3, 3), "a"),
    "objects": np.full((3, 3), None),
    "large": [[10**400] * 3] * 3,
    "ragged": [[1.0], [1.0, 2.0], []],
    "masked": np.ma.masked_array(MASK.astype(float), MASK == 0),
    "rows masked": list(np.ma.masked_array(MASK.astype(float), MASK == 0)),
    "spans": np.zeros((3, 3), "m8[s]"),
    "long": np.zeros((3, 3), np.longdouble),
}


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize("kind", TYPES)
def test_other_types_are_named(kind):
    for name in (*BATCH._fields[:5], "group_id"):
        value = TYPES[kind][0] if name == "group_id" and kind != "ragged" else TYPES[kind]
        with pytest.raises(ValueError, match=rf"^{name}: "):
            check_batch(BATCH._replace(**{name: value}))


def test_empty_batches_are_told_what_is_missing():
    with pytest.raises(ValueError, match=r"^log_prob: got shape \(0, 3\), .*≥ 1"):
        check_batch(BATCH._replace(log_prob=np.zeros((0, 3))))


@pytest.mark.parametrize("field", PolicyBatch._fields[:4])
def test_numbers_at_tokens_are_finite(field):
    """Concrete ones, whatever the others are; in the type in which losses compute."""
    for bad in (np.nan, np.inf, -np.inf, 1e308):
        named = re.escape(str(bad))
        values = getattr(BATCH, field).copy()
        values[0, 1] = bad
        with pytest.raises(ValueError, match=rf"^{field}: got {named} at \(0, 1\), .*mask is 1"):
            check_batch(BATCH._replace(**{field: values}))
    narrow = BATCH._replace(log_prob=BATCH.log_prob.astype(np.float32))
    values[0, 1] = 1e300
    check_batch(BATCH._replace(**{field: values}))
    if field != "log_prob":
        with pytest.raises(ValueError, match=rf"^{field}: got 1e\+300"):
            check_batch(narrow._replace(**{field: values}))


def test_numbers_under_a_traced_mask_are_not_looked_at():
    jax.jit(lambda mask: check_batch(BATCH._replace(advantage=PADDED * np.nan, mask=mask)))(MASK)
    with pytest.raises(ValueError, match=r"^advantage: "):
        jax.jit(lambda x: check_batch(BATCH._replace(advantage=PADDED * np.nan, log_prob=x)))(
            PADDED
        )


@pytest.mark.usefixtures("as_users_call")
def test_something_else_than_a_batch():
    with pytest.raises(ValueError, match=r"^batch: "):
        check_batch(tuple(BATCH))


def test_traced_values_pass_but_shapes_do_not():
    def checked(ids, mask):
        check_batch(BATCH._replace(group_id=ids, mask=mask))
        return ids

    jax.jit(checked)(np.array([0, 9, 0]), MASK * 0.5)
    with pytest.raises(ValueError, match=r"^mask: "):
        jax.jit(checked)(np.array([0, 0, 0]), MASK[:2])


def test_ids_of_sequences_without_tokens_do_not_matter():
    """Sequence 2 has no token; its group 0 lies in domain 1 by the others."""
    check_batch(BATCH._replace(group_id=np.array([0, 0, 0])))
