"""`sweep` on several devices and in several processes, each in a Python of its own."""

import os
import socket
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

DEFINITIONS = """
import sys
import jax, jax.numpy as jnp, numpy as np
from boundlab.sweeps import sweep

def walk(params, key):
    def step(position, step_key):
        position = params["drift"] * position + jax.random.normal(step_key)
        return position, position
    return jax.lax.scan(step, jnp.zeros(()), jax.random.split(key, 6))[1]

def solve(params, key):
    matrix = jax.random.normal(key, (40, 40))
    return jnp.linalg.solve(jnp.eye(40) + params["drift"] * (matrix @ matrix.T), matrix[0])

def solves(params, key):
    matrix = jax.random.normal(key, (5, 60, 60))
    matrix = jnp.eye(60)[None] + params["drift"] * (matrix @ jnp.swapaxes(matrix, 1, 2))
    return jnp.linalg.solve(matrix, matrix[..., :1])[..., 0]

GRID = {"drift": [0.2, 0.7, 0.9]}
"""

EIGHT_DEVICES = (
    DEFINITIONS
    + """
jax.config.update("jax_enable_x64", True)
keys = jax.random.split(jax.random.key(5, impl="threefry2x32"), 11)
out, log = sys.argv[1:]
explicit = jax.make_mesh((8,), ("rows",))  # explicit axes
three = jax.sharding.Mesh(np.array(jax.devices()[5:8]), ("x",))
results = {}
for fn in (walk, solve):
    results[fn.__name__ + "_all"] = sweep(fn, GRID, keys, batch_size=2)
    results[fn.__name__ + "_explicit"] = sweep(fn, GRID, keys, mesh=explicit)
    results[fn.__name__ + "_three"] = sweep(fn, GRID, keys, mesh=three, batch_size=4)
# A log that one device began is continued by eight, and the fingerprint is the same on each.
one = jax.sharding.Mesh(np.array(jax.devices()[3:4]), ("x",))
sweep(walk, GRID, keys[:5], mesh=one, batch_size=4, checkpoint=log)
results["walk_log"] = sweep(walk, GRID, keys, batch_size=1, checkpoint=log)
# Batched linear algebra on several CPU devices hangs easily: many batches of two entries a device.
many = jax.random.split(jax.random.key(6, impl="threefry2x32"), 200)
for fn in (solve, solves):
    assert np.isfinite(sweep(fn, GRID, many, batch_size=2)["value"]).all()
results["solves_all"] = sweep(solves, GRID, keys)
np.savez(out, **{name: r["value"].values for name, r in results.items()})
"""
)

TWO_PROCESSES = (
    DEFINITIONS
    + """
port, rank, out, log = sys.argv[1:]
jax.config.update("jax_enable_x64", True)
jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=2, process_id=int(rank))
assert jax.device_count() == 4 and jax.local_device_count() == 2
keys = jax.random.split(jax.random.key(5, impl="threefry2x32"), 11)
results = {"plain": sweep(solve, GRID, keys, batch_size=2)}
results["begun"] = sweep(walk, GRID, keys[:5], batch_size=3, checkpoint=log)
results["continued"] = sweep(walk, GRID, keys, batch_size=3, checkpoint=log)
try:
    sweep(solve, GRID, keys, checkpoint=log)
except ValueError as error:
    assert "checkpoint" in str(error), error
else:
    raise AssertionError("another fn was accepted")
here = jax.sharding.Mesh(np.array(jax.local_devices()), ("x",))
results["alone"] = sweep(walk, GRID, keys, mesh=here)
np.savez(out, **{name: r["value"].values for name, r in results.items()})
"""
)


def start(code, devices, *arguments):
    environment = dict(os.environ, JAX_PLATFORMS="cpu")
    environment["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(child):
    try:
        _, errors = child.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        raise
    assert child.returncode == 0, errors


@pytest.fixture(scope="module")
def expected():
    """Each entry by a call of its own, on one device."""
    space = {}
    exec(DEFINITIONS, space)
    keys = jax.random.split(jax.random.key(5, impl="threefry2x32"), 11)
    values = {}
    for name in ("walk", "solve", "solves"):
        one = jax.jit(space[name])
        values[name] = np.array(
            [[one({"drift": jnp.asarray(d)}, k) for k in keys] for d in space["GRID"]["drift"]]
        )
    return values


def assert_close(value, wanted):
    assert value.shape == wanted.shape
    assert np.abs(value - wanted).max() < 1e-12 * np.abs(wanted).max()


def test_eight_devices_give_the_values_of_one(tmp_path, expected):
    finish(start(EIGHT_DEVICES, 8, tmp_path / "out.npz", tmp_path / "log"))
    results = np.load(tmp_path / "out.npz")
    assert len(results.files) == 8
    for name in results.files:
        assert_close(results[name], expected[name.split("_")[0]])


def test_two_processes_return_the_same_dataset(tmp_path, expected):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Each process is given a path of its own, to see which one writes.
    children = [
        start(TWO_PROCESSES, 2, port, rank, tmp_path / f"out{rank}.npz", tmp_path / f"log{rank}")
        for rank in range(2)
    ]
    for child in children:
        finish(child)
    first, second = (np.load(tmp_path / f"out{rank}.npz") for rank in range(2))
    for name in first.files:
        np.testing.assert_array_equal(first[name], second[name])
    assert_close(first["plain"], expected["solve"])
    assert_close(first["begun"], expected["walk"][:, :5])
    assert_close(first["continued"], expected["walk"])
    assert_close(first["alone"], expected["walk"])
    assert (tmp_path / "log0").exists()
    assert not (tmp_path / "log1").exists()
