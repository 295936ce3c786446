"""`advance`: the same bits however often it is interrupted, and clear errors for what is not its own."""

import io
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab import long_runs
from boundlab.experiment import Runner
from boundlab.long_runs import advance
from boundlab.sweeps import STOPPED

TABLE = np.arange(5.0)


def walk(state: dict[str, Any]) -> tuple[dict[str, Any], dict[str, jax.Array]]:
    """A random walk that carries its key."""
    key, kick = jax.random.split(state["key"])
    x = state["x"] + jax.random.normal(kick, (3,), jnp.float64) + TABLE[:3]
    return {"x": x, "n": state["n"] + 1, "key": key}, {"mean": x.mean(), "n": state["n"]}


@pytest.fixture(scope="module")
def start(key: jax.Array) -> dict[str, Any]:
    return {"x": np.zeros(3), "n": np.int32(0), "key": jax.random.fold_in(key, 31)}


@pytest.fixture(scope="module")
def whole(start: dict[str, Any]) -> tuple[Any, Any]:
    return advance(walk, start, 6)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "walk.run"


def same(one: Any, other: Any) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        typed = jax.dtypes.issubdtype(a.dtype, jax.dtypes.prng_key)
        left, right = (jax.random.key_data(v) if typed else v for v in (a, b))
        np.testing.assert_array_equal(left, right)
        assert a.dtype == b.dtype


def test_chunks_one_after_another(start: dict[str, Any], whole: tuple[Any, Any]) -> None:
    """Against a plain loop."""
    state, means = start, []
    for _ in range(6):
        state, record = walk(state)
        means.append(float(record["mean"]))
    np.testing.assert_allclose(whole[1]["mean"], means, rtol=1e-14)
    np.testing.assert_array_equal(whole[1]["n"], np.arange(6))
    np.testing.assert_allclose(whole[0]["x"], state["x"], rtol=1e-14)
    assert jax.random.key_data(whole[0]["key"]).tolist() == (
        jax.random.key_data(state["key"]).tolist()
    )


def test_longer_runs_continue(start: dict[str, Any], whole: tuple[Any, Any], path: Path) -> None:
    advance(walk, start, 2, checkpoint=path)
    written = path.read_bytes()
    same(advance(walk, start, 2, checkpoint=path), advance(walk, start, 2))
    assert path.read_bytes() == written
    same(advance(walk, start, 6, checkpoint=str(path)), whole)
    assert os.listdir(path.parent) == [path.name]
    with pytest.raises(ValueError, match=r"^checkpoint: .* with 6 chunks"):
        advance(walk, start, 5, checkpoint=path)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupt_keeps_the_chunks_before(
    error: type[BaseException], start: dict[str, Any], whole: tuple[Any, Any], path: Path
) -> None:
    seen = []

    def inspect(record: Any, chunk: int) -> None:
        seen.append(chunk)
        if chunk == 3:
            raise error

    with pytest.raises(error):
        advance(walk, start, 6, checkpoint=path, inspect=inspect)
    assert seen == [0, 1, 2, 3]
    del seen[:]
    same(advance(walk, start, 6, checkpoint=path, inspect=lambda _, c: seen.append(c)), whole)
    assert seen == [3, 4, 5]


def test_a_part_that_stops_stops_it(start: dict[str, Any], path: Path) -> None:
    import threading

    stopped = threading.Event()
    token = STOPPED.set(stopped)
    try:
        with pytest.raises(KeyboardInterrupt):
            advance(
                walk, start, 6, checkpoint=path, inspect=lambda _, c: stopped.set() if c else None
            )
    finally:
        STOPPED.reset(token)
    assert len(advance(walk, start, 2, checkpoint=path)[1]["n"]) == 2


def test_a_kill_in_the_middle_and_the_same_bits(tmp_path: Path, path: Path) -> None:
    """SIGKILL after some chunks, in another process; that process's program then runs to the end."""
    program = tmp_path / "train.py"
    program.write_text(
        textwrap.dedent(
            """
            import sys, time, jax, jax.numpy as jnp, numpy as np
            from boundlab import long_runs
            long_runs._PAUSE = 0.0
            def fn(state):
                x = jnp.sin(3 * state["x"]) + jax.random.normal(state["key"], (4,))
                return {"x": x, "key": jax.random.fold_in(state["key"], 1)}, x
            def slow(record, chunk):
                print(chunk, flush=True)
                time.sleep(float(sys.argv[2]))
            state = {"x": np.zeros(4, np.float32), "key": jax.random.key(1, impl="threefry2x32")}
            checkpoint = sys.argv[1] or None
            state, record = long_runs.advance(
                fn, state, 12, inspect=slow, checkpoint=checkpoint, progress=False
            )
            print(np.asarray(record).tobytes().hex())
            """
        )
    )

    def command(checkpoint: str, pause: str) -> list[str]:
        return [sys.executable, str(program), checkpoint, pause]

    child = subprocess.Popen(command(str(path), "0.2"), stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    deadline = time.monotonic() + 60
    while child.stdout.readline().strip() != "4":
        assert time.monotonic() < deadline
        assert child.poll() is None
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=30)
    for left in path.parent.glob("*.partial"):
        left.unlink()
    ends = [
        subprocess.run(
            command(*arguments), capture_output=True, text=True, timeout=90, check=True
        ).stdout.split()
        for arguments in ((str(path), "0"), ("", "0"))
    ]
    assert ends[0][-1] == ends[1][-1]
    assert int(ends[0][0]) in (3, 4, 5)
    assert ends[1][0] == "0"


def _drift(state: jax.Array, step: jax.Array) -> tuple[jax.Array, jax.Array]:
    return state + step, state


def test_constants_are_no_part_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_runs, "_PROGRAMS", {})
    for step in (TABLE[1:3], TABLE[2:4]):
        state, records = advance(_drift, np.zeros(2), 3, constants=(step,))
        np.testing.assert_array_equal(state, 3 * step)
        np.testing.assert_array_equal(records, np.outer(np.arange(3.0), step))
    assert len(long_runs._PROGRAMS) == 1


def test_foreign_and_damaged_files_are_refused(start: dict[str, Any], path: Path) -> None:
    advance(walk, start, 2, checkpoint=path)
    written = path.read_bytes()

    def other(state: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        state, record = walk(state)
        return state | {"x": state["x"] * (1 + TABLE[1])}, record

    moved = start | {"x": np.ones(3)}
    refused: list[tuple[Any, Any, str]] = [
        (other, start, "another fn"),
        (walk, moved, "another initial state"),
    ]
    for fn, state, words in refused:
        with pytest.raises(ValueError, match=rf"^checkpoint: .*{words}"):
            advance(fn, state, 2, checkpoint=path)
    drift = path.with_name("drift")
    advance(_drift, np.zeros(2), 2, constants=(TABLE[:2],), checkpoint=drift)
    with pytest.raises(ValueError, match=r"^checkpoint: .*another constants"):
        advance(_drift, np.zeros(2), 2, constants=(TABLE[1:3],), checkpoint=drift)
    for content in (b"", written[:-1], written[:70], b"x" + written[1:], written + b"x"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"^checkpoint: .*damaged"):
            advance(walk, start, 2, checkpoint=path)
        assert path.read_bytes() == content
    for place in range(0, len(written), 37):
        changed = bytearray(written)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=r"^checkpoint: "):
            advance(walk, start, 2, checkpoint=path)


def test_what_fn_closes_over_is_part_of_the_run(start: dict[str, Any], path: Path) -> None:
    def closed(table: np.ndarray) -> Any:
        def fn(state: jax.Array) -> tuple[jax.Array, jax.Array]:
            return state + jnp.asarray(table).sum(), state

        return fn

    rng = np.random.default_rng(0)
    table = rng.standard_normal(2000)
    advance(closed(table), np.zeros(()), 1, checkpoint=path)
    changed = table.copy()
    changed[1000] += 1.0
    with pytest.raises(ValueError, match=r"^checkpoint: .*another fn"):
        advance(closed(changed), np.zeros(()), 1, checkpoint=path)


def test_a_file_that_cannot_be_written(
    start: dict[str, Any], path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="checkpoint") as error:
        advance(walk, start, 1, checkpoint=tmp_path / "file" / "run")
    assert "file/run" in str(error.value)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(long_runs.os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        advance(walk, start, 1, checkpoint=path)
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("fn", {"fn": 3}),
        ("fn", {"fn": lambda state: state}),
        ("fn", {"fn": lambda state: (state["x"], state["n"])}),
        ("num_chunks", {"num_chunks": 0}),
        ("num_chunks", {"num_chunks": 1.5}),
        ("checkpoint", {"checkpoint": 3}),
        ("checkpoint", {"checkpoint": "/"}),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_named(name: str, change: dict[str, Any], start: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"^{name}: "):
        advance(**({"fn": walk, "state": start, "num_chunks": 1} | change))


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the run-time type checker, as users call."""
    import jaxtyping

    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def test_no_part_of_a_jit(start: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^state: "):
        jax.jit(lambda x: advance(walk, start | {"x": x}, 1)[1])(np.zeros(3))


@pytest.mark.parametrize("progress", [True, False])
def test_one_bar_on_a_terminal(
    start: dict[str, Any], monkeypatch: pytest.MonkeyPatch, progress: bool
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    advance(walk, start, 3, progress=progress)
    assert ("3/3" in screen.getvalue()) == progress


def test_runner_names_the_files(start: dict[str, Any], tmp_path: Path, key: jax.Array) -> None:
    runner = Runner(tmp_path / "logs")
    state, records = runner.advance("walk", walk, start, 2)
    same((state, records), Runner().advance("walk", walk, start, 2))
    keys = jax.random.split(key, 2)
    found = runner("draws", lambda params, key: jax.random.normal(key), {}, keys, batch_size=2)
    assert found["value"].shape == (2,)
    assert sorted(os.listdir(tmp_path / "logs")) == ["draws.sweep", "walk.run"]
