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
    "variable": {"value": [1.0]},
    "list": [("a", [1.0])],
}


@pytest.mark.parametrize("case", BAD_GRIDS)
def test_bad_grid(keys, case):
    with pytest.raises(ValueError, match="grid"):
        sweep(constant, BAD_GRIDS[case], keys)


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
    for batch_size in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match="batch_size"):
            sweep(constant, {}, keys, batch_size=batch_size)
    two_axes = jax.sharding.Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("a", "b"))
    with pytest.raises(ValueError, match="mesh"):
        sweep(constant, {}, keys, mesh=two_axes)
