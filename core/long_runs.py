"""`advance`: one long computation in chunks, as training is, that shows progress and can be resumed.

A *chunk* is one call fn(state, *constants) → (state, record). Layout of the checkpoint, which is
replaced as a whole, so that a kill leaves the previous one:

    magic | length of the header (8 bytes, little-endian) | header, JSON | arrays | SHA-256 of all before

Arrays are those of the state, then the records of all finished chunks, stacked.
"""

import contextlib
import hashlib
import json
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from boundlab.checks import check_integer, fail
from boundlab.precision import is_traced, one_blas_thread
from boundlab.sweep_arguments import check_checkpoint
from boundlab.sweeps import COMPUTING, STOPPED, progress_bar
from boundlab.typing import Count

MAGIC = b"boundlab long run 1\n"
_LENGTH = struct.Struct("<Q")
_SEAL = hashlib.sha256().digest_size
# Seconds between two checkpoints: shorter chunks are not written one by one.
_PAUSE = 1.0
_PROGRAMS: dict[str, Any] = {}
_MOST_PROGRAMS = 8


def advance(
    fn: Callable[..., tuple[Any, Any]],
    state: Any,
    num_chunks: Count,
    *,
    constants: tuple[Any, ...] = (),
    inspect: Callable[[Any, int], None] | None = None,
    checkpoint: Any = None,
    progress: bool = True,
) -> tuple[Any, Any]:
    """Apply fn(state, *constants) → (state, record) `num_chunks` times; the last state, all records.

    `fn` is compiled once, equal programs once a process. Each chunk is a function of the state before
    it alone, so a run that was killed and continued gives the same bits as one that wasn't.

    Args:
        fn: JAX function of the state that returns a state of the same structure, shapes and types, and
            a record, a pytree of arrays. Randomness comes from a key in the state. What `fn` closes
            over is part of the program: large arrays are better among `constants`.
        state: pytree of arrays, typed keys among them or not: where the run starts.
        num_chunks: ≥ 1.
        constants: pytrees of arrays that every chunk reads, as training data are. A checkpoint knows
            them but doesn't hold them.
        inspect: inspect(record, chunk) is called on the host with each record before anything of its
            chunk is kept; what it raises ends the run, and the checkpoint holds the chunk before.
        checkpoint: a path that the run owns; missing folders are made. It is written at most once a
            second, at the end, and when the run is interrupted. A later call with the same `fn`,
            `state` and `constants` continues; `num_chunks` may be larger than before. Where several
            processes share JAX, each computes the run by itself, and nothing is read or written.
        progress: draw one bar, as `boundlab.sweep` does.

    Returns:
        State after the last chunk, of JAX arrays; records as NumPy arrays with a leading axis of
        chunks.

    Raises:
        ValueError: naming the argument; for `checkpoint`, a file that is damaged, of another run, or
            ahead of `num_chunks`. It is left as it was.
        OSError: naming `checkpoint` and the file, if it can't be written.

    """
    if not callable(fn):
        raise fail("fn", repr(fn), "a function of the state")
    total = check_integer("num_chunks", num_chunks, 1)
    for name, value in (("state", state), ("constants", constants)):
        if is_traced(value):
            raise fail(name, "traced values", "arrays: a long run is no part of a jit")
    path = check_checkpoint(checkpoint) if jax.process_count() == 1 else None
    start, fixed = jax.tree.map(jnp.asarray, (state, constants))
    lowered, record = _lower(fn, start, fixed)
    text = lowered.as_text()
    with contextlib.ExitStack() as stack:
        stack.enter_context(one_blas_thread())
        file = None if path is None else _Checkpoint(path, start, fixed, record, text)
        kept: tuple[Any, list[Any], int] = (start, [], 0) if file is None else file.load()
        if kept[2] > total:
            got = f"{str(path)!r} with {kept[2]} chunks"
            raise fail("checkpoint", got, f"at most num_chunks = {total} (the file is unchanged)")
        program = _compiled(text, lowered) if kept[2] < total else None
        stack.enter_context(COMPUTING)
        shown = progress and jax.process_index() == 0
        show = stack.enter_context(progress_bar(total, kept[2], shown, "training"))
        written, saved = time.monotonic(), kept[2]
        try:
            while program is not None and kept[2] < total:
                if (stopped := STOPPED.get()) is not None and stopped.is_set():
                    raise KeyboardInterrupt
                state, new = program(kept[0], *fixed)
                new = jax.tree.map(np.asarray, new)
                if inspect is not None:
                    inspect(new, kept[2])
                kept = (state, [*kept[1], new], kept[2] + 1)
                if file is not None and time.monotonic() - written > _PAUSE:
                    file.save(*kept)
                    written, saved = time.monotonic(), kept[2]
                show(kept[2])
        finally:
            if file is not None and kept[2] > saved:
                file.save(*kept)
    return kept[0], jax.tree.map(lambda *parts: np.stack(parts), *kept[1])


def _compiled(text: str, lowered: Any) -> Any:
    """The program, which a few recent runs may have compiled already."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    found = _PROGRAMS.get(digest)
    if found is None:
        found = lowered.compile()
        while len(_PROGRAMS) >= _MOST_PROGRAMS:
            _PROGRAMS.pop(next(iter(_PROGRAMS)), None)
        _PROGRAMS[digest] = found
    return found


def _lower(fn: Callable[..., Any], state: Any, constants: Any) -> tuple[Any, Any]:
    """The program of a chunk, and the shapes of its record."""
    traced = jax.jit(fn, keep_unused=True).trace(state, *constants)
    out = traced.out_info
    if not isinstance(out, tuple) or len(out) != 2:
        raise fail("fn", "another result", "a pair: the state and a record")

    def described(tree: Any) -> str:
        leaves, structure = jax.tree.flatten(tree)
        return f"{[f'{leaf.dtype}{list(leaf.shape)}' for leaf in leaves]} in {structure}"

    before, after = described(state), described(out[0])
    if before != after:
        raise fail("fn", f"a state of {after}", f"one like the first, {before}")
    return traced.lower(), out[1]


class _Checkpoint:
    """The file of one run."""

    def __init__(self, path: Path, start: Any, constants: Any, record: Any, program: str) -> None:
        self._path = path
        self._start = start
        leaves, self._structure = jax.tree.flatten(start)
        rows, self._records = jax.tree.flatten(record)
        self._key_types = [_key_type(leaf) for leaf in leaves]
        first = [_stored(leaf) for leaf in leaves]
        self._layout = [(array.shape, array.dtype) for array in first]
        self._row_layout = [(tuple(row.shape), np.dtype(row.dtype)) for row in rows]
        self._run = {
            "program": hashlib.sha256(program.encode()).hexdigest(),
            "state": _digest(first),
            "constants": _digest([_stored(leaf) for leaf in jax.tree.leaves(constants)]),
        }

    def save(self, state: Any, records: list[Any], done: int) -> None:
        """Replace the file; it is on disk when this returns."""
        rows = [jax.tree.leaves(record) for record in records]
        stacked = [np.stack(column) for column in zip(*rows, strict=True)]
        arrays = [_stored(leaf) for leaf in jax.tree.leaves(state)] + stacked
        header = json.dumps({**self._run, "done": done}).encode()
        content = MAGIC + _LENGTH.pack(len(header)) + header
        content += b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)
        partial = self._path.with_name(f"{self._path.name}.{os.getpid()}.partial")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as file:
                file.write(content + hashlib.sha256(content).digest())
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, self._path)
        except OSError as error:
            problem = f"checkpoint: got {error.strerror or error}, expected a file to write to"
            raise OSError(error.errno, problem, str(self._path)) from error
        finally:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)

    def load(self) -> tuple[Any, list[Any], int]:
        """State, records and number of finished chunks; of no file, where the run starts."""
        path = self._path
        try:
            if not path.exists():
                return self._start, [], 0
            content = path.read_bytes()
        except (OSError, ValueError) as error:
            raise fail("checkpoint", f"{str(path)!r} ({error})", "a file to write to") from error
        body = content[:-_SEAL]
        if not content.startswith(MAGIC) or hashlib.sha256(body).digest() != content[-_SEAL:]:
            raise self._refused("damaged, or no checkpoint of a long run")
        offset = len(MAGIC) + _LENGTH.size
        (length,) = _LENGTH.unpack(body[len(MAGIC) : offset])
        header = json.loads(body[offset : offset + length])
        offset += length
        words = {"program": "fn", "state": "initial state", "constants": "constants"}
        for name, other in words.items():
            if header.get(name) != self._run[name]:
                raise self._refused(f"made by a run with another {other}")
        done = int(header["done"])
        rows = [((done, *shape), dtype) for shape, dtype in self._row_layout]
        arrays = []
        for shape, dtype in [*self._layout, *rows]:
            size = int(np.prod(shape, dtype=np.int64))
            arrays.append(np.frombuffer(body, dtype, size, offset).reshape(shape))
            offset += size * dtype.itemsize
        leaves = [
            array if kind is None else jax.random.wrap_key_data(array, impl=kind)
            for array, kind in zip(map(jnp.asarray, arrays), self._key_types, strict=False)
        ]
        columns = arrays[len(leaves) :]
        records = [
            jax.tree.unflatten(self._records, [column[i] for column in columns])
            for i in range(done)
        ]
        return jax.tree.unflatten(self._structure, leaves), records, done

    def _refused(self, problem: str) -> ValueError:
        accepted = "a checkpoint of this run, or a path that doesn't exist yet (it is unchanged)"
        return fail("checkpoint", f"{str(self._path)!r}: {problem}", accepted)


def _digest(arrays: list[np.ndarray]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _key_type(leaf: Any) -> str | None:
    """The generator of an array of typed keys."""
    is_key = jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return str(jax.random.key_impl(leaf)) if is_key else None


def _stored(leaf: Any) -> np.ndarray:
    """An array of the state as numbers."""
    return np.asarray(leaf if _key_type(leaf) is None else jax.random.key_data(leaf))
