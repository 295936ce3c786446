"""Checks of arguments: what passes, and that every refusal is a `ValueError` with the name."""

import datetime

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.checks import check_choice, check_integer, check_key, check_number, check_shape
from boundlab.precision import float64

NO_NUMBERS = {
    "complex": 1j,
    "complex array": np.array([1.0, 2j]),
    "complex JAX array": jnp.ones(2, jnp.complex128),
    "complex list": [1.0, 2j],
    "bool": True,
    "bool array": np.array([True]),
    "ragged": [[1.0], [1.0, 2.0]],
    "text": "abc",
    "bytes": b"1",
    "texts": ["1", "2"],
    "None": None,
    "Nones": [1.0, None],
    "object": object(),
    "objects": np.array([1.0, object()], dtype=object),
    "function": len,
    "dict": {"a": 1.0},
    "set": {1.0},
    "generator": (i for i in range(3)),
    "key": jax.random.key(0),
    "keys": jax.random.split(jax.random.key(0)),
    "list of keys": list(jax.random.split(jax.random.key(0))),
    "date": np.datetime64("2020-01-01"),
    "time span": np.array([1], "timedelta64[s]"),
    "Python date": datetime.date(2020, 1, 1),
    "huge integer": 10**400,
    "record": np.zeros(2, [("a", float)]),
}


@pytest.mark.smoke
@pytest.mark.parametrize("case", NO_NUMBERS)
def test_what_is_no_real_number_is_refused(case):
    with pytest.raises(ValueError, match=r"^weights: got .*, expected .*finite"):
        check_number("weights", NO_NUMBERS[case])


REAL = ["bfloat16", "float16", "float32", "float64", "longdouble", "int8", "uint64", "int4"]


@pytest.mark.parametrize("name", REAL)
def test_real_numbers_of_every_precision_pass_and_are_compared(name):
    dtype = jnp.dtype(name) if name in ("bfloat16", "int4") else np.dtype(name)
    check_number("weights", np.array([0, 1, 2], dtype), 0, 2)
    check_number("weights", np.array(1, dtype)[()], -1e300, 1e300)
    with pytest.raises(ValueError, match=r"weights: got 2.*at \(1,\), expected finite .* < 2 "):
        check_number("weights", np.array([0, 2], dtype), high=2, high_open=True, why="reason")
    if not name.startswith(("int", "uint")):
        with pytest.raises(ValueError, match="weights: got nan"):
            check_number("weights", np.array(np.nan, dtype))


def test_traced_values_pass_unless_their_type_tells():
    def checked(value):
        check_number("weights", value, 5.0)
        check_number("weights", [value, 1.0], 5.0)
        check_shape("weights", value, ())
        return value

    assert jax.jit(checked)(1.0) == 1.0
    with pytest.raises(ValueError, match="weights: got values of type complex"):
        jax.jit(checked)(1j)
    with pytest.raises(ValueError, match="weights: got a list of traced values"):
        jax.jit(lambda value: check_shape("weights", [value, value], (2,)))(1.0)


def test_shapes():
    check_shape("weights", [[1.0, 2.0]], (1, None))
    check_shape("weights", 3, ())
    check_shape("weights", jax.random.split(jax.random.key(0), 3), (3,))
    for bad in ([[1.0], [1.0, 2.0]], [1.0, 2.0], np.ones((0, 2)), 1.0, None, "ab", len):
        with pytest.raises(ValueError, match=r"^weights: got .*, expected shape \(any, 2\)"):
            check_shape("weights", bad, (None, 2))


def test_one_key(key):
    check_key("key", key)
    check_key("key", jax.random.key(0, impl="rbg"))
    jax.jit(lambda k: check_key("key", k))(key)
    for bad in (0, None, "a", 1.5, jax.random.key_data(key), np.zeros(2, np.uint32), [key]):
        with pytest.raises(ValueError, match=r"^key: got .*, expected one key"):
            check_key("key", bad)
    with pytest.raises(ValueError, match=r"^key: got .*shape \(3,\)"):
        check_key("key", jax.random.split(key, 3))


def test_large_limits_are_written_short():
    with pytest.raises(
        ValueError, match=r"^size: got 0, expected an integer ≥ 1 and ≤ 1.00e\+400$"
    ):
        check_integer("size", 0, 1, 10**400)
    with pytest.raises(ValueError, match=r"≤ 1048576$"):
        check_integer("size", 0, 1, 2**20)


def test_choices_and_integers():
    check_choice("kind", "a", ("a", "b"))
    for bad in ("c", 1, None, np.array(["a", "b"]), ["a"]):
        with pytest.raises(ValueError, match=r"^kind: got"):
            check_choice("kind", bad, ("a", "b"))
    whole = (
        np.uint8(3),
        np.array(3),
        np.array(3, np.uint8),
        jnp.asarray(3),
        jnp.asarray(3, "int4"),
    )
    for three in (3, *whole):
        assert type(check_integer("count", three, 0, 3)) is int
        assert check_integer("count", three, 3) == 3
    arrays = (
        np.ones(2, int),
        np.ones(1, int),
        jnp.ones((1,), int),
        np.array(2.0),
        jnp.asarray(2.0),
    )
    others = (
        np.array(True),
        jnp.asarray(True),
        np.bool(True),
        np.timedelta64(2, "s"),
        jax.random.key(0),
    )
    for bad in (True, 1.0, "1", None, 4, -1, np.array(4), jnp.asarray(-1), *arrays, *others):
        with pytest.raises(ValueError, match=r"^count: got"):
            check_integer("count", bad, 0, 3)


MASKED = np.ma.array([1.0, 2.0], mask=[False, True])


@pytest.mark.parametrize("value", [MASKED, [MASKED, MASKED], np.ma.masked, np.ma.array([1, 2])])
def test_masked_arrays_are_refused(value):
    with pytest.raises(ValueError, match=r"^weights: got a masked array, expected .*plain array"):
        check_number("weights", value)
    with pytest.raises(ValueError, match=r"^weights: got a masked array, expected shape \(2\)"):
        check_shape("weights", value, (2,))
    with pytest.raises(ValueError, match=r"^weights: got a masked array, expected an integer"):
        check_integer("weights", np.ma.array(1, mask=True), 0)


def test_masked_entries_reach_the_checks_of_theory():
    @float64
    def checked(weights):
        check_number("weights", weights)

    with pytest.raises(ValueError, match=r"^weights: got a masked array"):
        checked(MASKED)
    checked(np.ma.array([1.0, 2.0], np.float32))  # nothing is masked


def test_integers_beyond_all_numbers_are_refused():
    assert check_integer("count", 10**300, 0) == 10**300
    with pytest.raises(ValueError, match=r"^count: got 1.00e\+400, expected .* below 1.8e308$"):
        check_integer("count", 10**400, 0)
    # Python writes no integer of more than 4300 digits.
    for bad in (10**5000, -(10**5000)):
        with pytest.raises(ValueError, match=r"^count: got -?1.00e\+5000, expected an integer"):
            check_integer("count", bad, 0, 3)
    for bad, got in ((10**5000, "1.00e"), ([10**5000], "a list")):
        with pytest.raises(ValueError, match=rf"^kind: got {got}"):
            check_choice("kind", bad, ("a", "b"))


def test_only_some_entries_are_looked_at():
    array, kept = np.array([[1.0, np.nan], [3.0, -np.inf]]), np.array([[1, 0], [1, 0]], bool)
    check_number("weights", array, 1, 3, where=kept)
    with pytest.raises(ValueError, match=r"^weights: got 3.0 at \(1, 0\), expected .* ≤ 2"):
        check_number("weights", array, 1, 2, where=kept)
    with pytest.raises(ValueError, match=r"^weights: got values of type bool"):
        check_number("weights", kept, where=kept)


def test_empty_arrays_are_told_what_any_is():
    with pytest.raises(ValueError, match=r"^a: got shape \(0, 3\), .*\(any, any\) with any ≥ 1, b"):
        check_shape("a", np.ones((0, 3)), (None, None), "b")
