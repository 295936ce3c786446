"""What `sweep` refuses: a `ValueError` that names the argument."""

import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.sweeps import sweep


@pytest.fixture(scope="module")
def keys(key):
    return jax.random.split(jax.random.fold_in(key, 11), 7)


def constant(params, key):
    return jnp.zeros(())


BAD_GRIDS = {
    "empty": {"a": []},
    "two axes": {"a": [[1.0, 2.0]]},
    "scalar": {"a": 1.0},
    "NaN": {"a": [1.0, math.nan]},
    "infinite": {"a": [math.inf]},
    "objects": {"a": np.array([1.0, None], dtype=object)},
    "text": {"a": ["x"]},
    "ragged": {"a": [[1.0], [1.0, 2.0]]},
    "bool": {"a": [True]},
    "complex": {"a": [1j]},
    "too large": {"a": np.array([2**63], dtype=np.uint64)},
    "seed": {"seed": [1.0]},
    "name": {3: [1.0]},
    "path": {"a/b": [1.0]},
    "dot": {".": [1.0]},
    "space": {"a ": [1.0]},
    "control": {"a\0": [1.0]},
    "no text": {"\ud800": [1.0]},
    "empty name": {"": [1.0]},
    "mapping": {"a": {1: 1.0}},
    "set": {"a": {1.0}},
    "key": {"a": jax.random.split(jax.random.key(0))},
    "variable": {"value": [1.0]},
    "list": [("a", [1.0])],
}


@pytest.mark.parametrize("case", BAD_GRIDS)
def test_bad_grid(keys, case):
    with pytest.raises(ValueError, match="grid"):
        sweep(constant, BAD_GRIDS[case], keys)


def test_values_that_can_be_read_only_once_are_refused(keys):
    for values in (iter([1.0]), (x for x in [1.0]), map(float, [1])):
        with pytest.raises(ValueError, match=r"^grid\['a'\]: got a \w+, which.*list"):
            sweep(constant, {"a": values}, keys)


def test_float_beyond_the_working_precision(keys):
    with jax.enable_x64(False), pytest.raises(ValueError, match="grid"):
        sweep(constant, {"a": [1e300]}, keys)


def test_bad_keys():
    good = jax.random.split(jax.random.key(0, impl="threefry2x32"), 4)
    bad = [
        jax.random.split(jax.random.key(0, impl="rbg"), 4),
        jax.random.key_data(good),
        np.arange(4),
        list(good),
        good[0],
        good.reshape(2, 2),
        good[:0],
        None,
    ]
    for keys in bad:
        with pytest.raises(ValueError, match="keys"):
            sweep(constant, {}, keys)

    def inside(keys):
        return sweep(constant, {}, keys)

    with pytest.raises(ValueError, match="keys"):
        jax.jit(inside)(good)


def test_bad_results(keys):
    bad = [
        None,
        "text",
        [jnp.zeros(2)],
        {},
        {"a": None},
        {1: jnp.zeros(2)},
        {"a/b": jnp.zeros(2)},
        {".": jnp.zeros(2)},
        {"a\n": jnp.zeros(2)},
        {"seed": jnp.zeros(2)},
        {"a": {"b": jnp.zeros(2)}},
        jnp.zeros(2, jnp.bfloat16),
        {"a": jax.random.key(0)},
        {"a": jnp.zeros(2), "a_axis0": jnp.zeros(2)},
        chex.Dimensions,
    ]
    for result in bad:
        with pytest.raises(ValueError, match="fn"):
            sweep(lambda params, key, result=result: result, {}, keys)


def test_bad_batch_size_and_mesh(keys):
    for batch_size in (0, -1, 2.5, True, "4", [4]):
        with pytest.raises(ValueError, match="batch_size"):
            sweep(constant, {}, keys, batch_size=batch_size)
    two_axes = jax.sharding.Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("a", "b"))
    with pytest.raises(ValueError, match="mesh"):
        sweep(constant, {}, keys, mesh=two_axes)
    for mesh in (1, "cpu", jax.devices()):
        with pytest.raises(ValueError, match="mesh"):
            sweep(constant, {}, keys, mesh=mesh)


TRANSFORMED = {
    "jit": lambda inside: jax.jit(inside)(1.0),
    "vmap": lambda inside: jax.vmap(inside)(jnp.ones(2)),
    "grad": lambda inside: jax.grad(inside)(1.0),
    "jvp": lambda inside: jax.jvp(inside, (1.0,), (1.0,)),
    "scan": lambda inside: jax.lax.scan(lambda c, x: (inside(c), x), 1.0, jnp.ones(2)),
    "eval_shape": lambda inside: jax.eval_shape(inside, 1.0),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_calls_inside_transformations_are_refused(keys, name):
    def inside(x):
        return x * sweep(constant, {"a": [1.0]}, keys)["value"].values.sum()

    with pytest.raises(ValueError, match=r"^sweep: got a call inside.*outside"):
        TRANSFORMED[name](inside)

    def traced_grid(x):
        return x * sweep(constant, {"a": x[None]}, keys)["value"].values.sum()

    with pytest.raises(ValueError, match=r"^grid\['a'\]: got a traced value"):
        jax.jit(traced_grid)(1.0)
