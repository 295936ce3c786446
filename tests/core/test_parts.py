"""Parts of a study side by side: same data as one after another, and one failure stops all."""

import threading
import time
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from boundlab.parts import run_parts, study_precision
from boundlab.sweeps import sweep


def repeat(name, *arguments, **options):
    return sweep(*arguments, progress=False, **options)


def part(name):
    """A part that repeats a simulation under its name."""

    def run(config, key, repeat):
        keys = jax.random.split(key, config)
        found = repeat(name, lambda p, k: p["x"] * jax.random.normal(k), {"x": [1.0, 2.0]}, keys)
        return found.rename({other: f"{name}_{other}" for other in ("value", "x", "seed")})

    return types.SimpleNamespace(run=run)


def test_parts_have_their_own_keys_and_their_order(key):
    parts = [part(name) for name in "abcdef"]
    found = run_parts(parts, 5, key, repeat)
    with study_precision():
        for place, (one, dataset) in enumerate(zip(parts, found, strict=True)):
            alone = one.run(5, jax.random.fold_in(key, place), repeat)
            xr.testing.assert_identical(dataset, alone)


def test_a_part_computes_in_float64_at_full_precision(key):
    jax.config.update("jax_enable_x64", False)
    try:
        one = types.SimpleNamespace(
            run=lambda *_: xr.Dataset(
                {
                    "dtype": str(jnp.zeros(1).dtype),
                    "precision": jax.config.jax_default_matmul_precision,
                }
            )
        )
        (found,) = run_parts([one], None, key, repeat)
    finally:
        jax.config.update("jax_enable_x64", True)
    assert (str(found["dtype"].values), str(found["precision"].values)) == ("float64", "highest")


def test_the_first_failure_stops_the_others(key):
    started = threading.Event()

    def fail(config, key, repeat):
        started.wait(20)
        raise ValueError("config: got 3, expected 4")

    def forever(config, key, repeat):
        for _ in range(10_000):
            started.set()
            repeat("x", lambda p, k: jax.random.normal(k), {}, jax.random.split(key, 2))
            time.sleep(0.01)
        return xr.Dataset()

    parts = [types.SimpleNamespace(run=forever), types.SimpleNamespace(run=fail)]
    start = time.monotonic()
    with pytest.raises(ValueError, match="expected 4"):
        run_parts(parts, None, key, repeat)
    assert time.monotonic() - start < 60  # and not the ten thousand rounds


def test_sweeps_of_threads_compute_one_at_a_time(key):
    """What a sweep computes while another one does would be seen by its callback."""
    active, most = [0], [0]

    def count(x):
        active[0] += 1
        most[0] = max(most[0], active[0])
        time.sleep(0.05)
        active[0] -= 1
        return np.asarray(x)

    def run(config, key, repeat):
        def one(params, k):
            return jax.pure_callback(count, jax.ShapeDtypeStruct((), jnp.float64), params["x"])

        return repeat("x", one, {"x": [1.0]}, jax.random.split(key, 3), batch_size=1)

    run_parts([types.SimpleNamespace(run=run)] * 3, None, key, repeat)
    # A sweep itself runs on every device, one entry each.
    assert most[0] <= jax.device_count()
