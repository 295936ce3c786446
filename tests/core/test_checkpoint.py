"""`sweep(checkpoint=...)`: what a kill leaves, what is refused, and that nothing is lost."""

import errno
import os
import random
import runpy
import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.checkpoints import Log, Variable
from boundlab.sweeps import sweep

GRID = {"scale": [0.5, 1.0, 2.0]}


def noise(params, key):
    return {
        "x": params["scale"] * jax.random.normal(key, (2,)),
        "n": jax.random.randint(key, (), 0, 9),
    }


@pytest.fixture(scope="module")
def keys(key):
    return jax.random.split(jax.random.fold_in(key, 12), 8)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs" / "log"


@pytest.fixture
def counted(monkeypatch):
    """The number of batches that are computed."""
    from boundlab import sweeps

    calls = []
    run_batch = sweeps.run_batch
    monkeypatch.setattr(sweeps, "run_batch", lambda *a: (calls.append(1), run_batch(*a))[1])
    return calls


@pytest.mark.smoke
def test_finished_entries_are_not_computed_again(path, keys, counted):
    expected = sweep(noise, GRID, keys, batch_size=5)
    first = sweep(noise, GRID, keys[:4], batch_size=5, checkpoint=path)
    assert first.identical(expected.isel(seed=slice(4)))
    written = path.read_bytes()
    del counted[:]
    # Fewer keys and the same keys are served from the file, which stays as it is.
    assert sweep(noise, GRID, keys[:2], checkpoint=path).identical(expected.isel(seed=slice(2)))
    assert sweep(noise, GRID, keys[:4], checkpoint=str(path)).identical(first)
    assert not counted
    assert path.read_bytes() == written
    # More keys append: entries 12 to 23 lie in the batches from 10, 15 and 20.
    assert sweep(noise, GRID, keys, batch_size=5, checkpoint=path).identical(expected)
    assert len(counted) == 3
    assert path.read_bytes().startswith(written)
    assert sweep(noise, GRID, keys, batch_size=2, checkpoint=path).identical(expected)
    assert len(counted) == 3


def test_every_truncation_resumes_to_the_same_bits(path, keys):
    expected = sweep(noise, GRID, keys[:3], batch_size=2, checkpoint=path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 17):
        path.write_bytes(whole[:length])
        assert sweep(noise, GRID, keys[:3], batch_size=2, checkpoint=path).identical(expected)
        assert path.read_bytes() == whole


def test_every_changed_byte_is_refused(path, keys):
    sweep(noise, GRID, keys[:2], batch_size=3, checkpoint=path)
    whole = path.read_bytes()
    for place in range(0, len(whole), 17):
        damaged = bytearray(whole)
        damaged[place] ^= 0x41
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="checkpoint"):
            sweep(noise, GRID, keys[:2], checkpoint=path)
        assert path.read_bytes() == damaged


@pytest.mark.parametrize("tail", [b"\n", b"x" * 15, b"\0" * 40])
def test_foreign_bytes_are_refused(path, keys, tail):
    sweep(noise, GRID, keys[:2], checkpoint=path)
    for content in (path.read_bytes() + tail, b"PK\x03\x04" + tail, tail):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="checkpoint"):
            sweep(noise, GRID, keys[:3], checkpoint=path)
        assert path.read_bytes() == content


@pytest.mark.smoke
def test_another_sweep_is_refused(path, keys):
    factor = np.linspace(1.0, 2.0, 5000)  # long enough to be shortened when printed

    def scaled(params, key):
        return params["scale"] * jnp.sum(factor)

    sweep(scaled, GRID, keys[:2], checkpoint=path)
    written = path.read_bytes()

    def refused(match, fn=scaled, grid=GRID, keys=keys[:2]):
        with pytest.raises(ValueError, match=f"(?s)checkpoint.*{match}"):
            sweep(fn, grid, keys, checkpoint=path)
        assert path.read_bytes() == written

    refused("fn", fn=lambda params, key: 2.0 * scaled(params, key))
    refused("result", fn=lambda params, key: {"other": scaled(params, key)})
    refused("grid", grid={"scale": [0.5, 1.0, 2.5]})
    refused("grid", grid={"scale": [0.5, 1.0]})
    refused("grid", grid={**GRID, "other": [1]})
    refused("keys", keys=keys[1:3])
    with jax.enable_x64(False):
        refused("x64")
    factor[4321] += 1e-9
    refused("fn")
    factor[4321] = np.linspace(1.0, 2.0, 5000)[4321]
    sweep(scaled, GRID, keys[:2], checkpoint=path)


def test_a_sweep_that_reads_other_arguments_is_refused(path, keys):
    grid = {"a": [1.0, 2.0], "b": [5.0, 7.0]}
    sweep(lambda params, key: params["a"], grid, keys[:2], checkpoint=path)
    written = path.read_bytes()
    for fn in (
        lambda params, key: params["b"],
        lambda params, key: params["a"] + 0 * jax.random.normal(key),
    ):
        with pytest.raises(ValueError, match=r"(?s)checkpoint.*fn"):
            sweep(fn, grid, keys[:2], checkpoint=path)
        assert path.read_bytes() == written


class BytesPath:
    def __fspath__(self):
        return b"log"


def test_bad_paths(tmp_path, keys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    no_files = (tmp_path, tmp_path / "file" / "log", "/dev/null", ".")
    no_names = (
        "n" * 300,
        str(tmp_path / "n\0"),
        "",
        "\ud800",
        5,
        True,
        b"log",
        ["log"],
        BytesPath(),
    )
    for bad in (*no_files, *no_names):
        with pytest.raises(ValueError, match=r"^checkpoint: got"):
            sweep(noise, GRID, keys, checkpoint=bad)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_full_disk_names_the_file_and_keeps_what_was_written(path, keys, monkeypatch):
    expected = sweep(noise, GRID, keys, batch_size=5)
    calls = []
    fsync = os.fsync

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=f"checkpoint: got No space.*{path}") as caught:
        sweep(noise, GRID, keys, batch_size=5, checkpoint=path)
    assert caught.value.errno == errno.ENOSPC
    monkeypatch.setattr(os, "fsync", lambda descriptor: (calls.append(1), fsync(descriptor)))
    assert sweep(noise, GRID, keys, batch_size=5, checkpoint=path).identical(expected)
    assert len(calls) == 3 + 3  # 24 entries in batches of 5, two batches of which were kept


def test_callbacks_have_no_fingerprint(path, keys):
    def called(params, key):
        shape = jax.ShapeDtypeStruct((), np.float64)
        return jax.pure_callback(np.sin, shape, params["scale"], vmap_method="sequential")

    with pytest.raises(ValueError, match="checkpoint"):
        sweep(called, GRID, keys, checkpoint=path)
    assert not path.exists()
    np.testing.assert_allclose(
        sweep(called, GRID, keys)["value"][:, 0], np.sin(GRID["scale"]), rtol=1e-15
    )


def test_a_file_in_use_is_refused(path, keys):
    sweep(noise, GRID, keys[:2], checkpoint=path)
    written = path.read_bytes()
    other = Log(path, {}, (), 1, np.zeros((1, 2), np.uint32))
    with pytest.raises(ValueError, match=r"checkpoint.*using"):
        sweep(noise, GRID, keys, checkpoint=path)
    other.close()
    assert path.read_bytes() == written
    sweep(noise, GRID, keys, checkpoint=path)


def test_interrupt_leaves_a_file_to_resume(path, keys, monkeypatch):
    expected = sweep(noise, GRID, keys, batch_size=5)
    calls = []
    fsync = os.fsync

    def interrupted(descriptor):
        calls.append(descriptor)
        if len(calls) == 3:
            raise KeyboardInterrupt
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sweep(noise, GRID, keys, batch_size=5, checkpoint=path)
    assert sweep(noise, GRID, keys, batch_size=5, checkpoint=path).identical(expected)


def test_records_that_do_not_follow_are_refused(path):
    variables = (Variable("value", (), np.dtype(np.float64)),)
    keys = np.arange(8, dtype=np.uint32).reshape(4, 2)
    results = [np.arange(4.0)]
    log = Log(path, {}, variables, 1, keys)
    log.append(0, 1, results)
    log.append(2, 3, results)  # entry 1 is missing
    log.close()
    log = Log(path, {}, variables, 1, keys)
    with pytest.raises(ValueError, match="checkpoint"):
        log.load(results)
    log.close()


SCRIPT = """
import os, sys, time
import jax, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
from boundlab.sweeps import sweep

def fn(params, key):
    matrix = jax.random.normal(key, (20, 20))
    return jnp.linalg.solve(jnp.eye(20) * params["ridge"] + matrix @ matrix.T, matrix[0])

GRID = {"ridge": [1.0, 2.0]}
KEYS = jax.random.split(jax.random.key(5, impl="threefry2x32"), 100)

if __name__ == "__main__":
    fsync = os.fsync
    def slow(descriptor):  # so that there is time to be killed
        time.sleep(0.03)
        fsync(descriptor)
        time.sleep(0.03)
    os.fsync = slow
    sweep(fn, GRID, KEYS, batch_size=3, checkpoint=sys.argv[1])
"""


def test_killed_and_resumed_gives_the_same_bits(tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(SCRIPT)
    log = tmp_path / "log"
    child = subprocess.Popen([sys.executable, str(script), str(log)])
    deadline = time.monotonic() + 60
    while not (log.exists() and log.stat().st_size > 100) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(random.uniform(0.0, 1.0))
    child.send_signal(signal.SIGKILL)
    assert child.wait(timeout=20) == -signal.SIGKILL
    left = log.read_bytes()
    run = runpy.run_path(str(script))
    expected = sweep(run["fn"], run["GRID"], run["KEYS"], batch_size=3)
    resumed = sweep(run["fn"], run["GRID"], run["KEYS"], batch_size=3, checkpoint=log)
    assert resumed.identical(expected)
    assert len(log.read_bytes()) > len(left) > 100
