"""The file behind `sweep(checkpoint=...)`: an append-only log of finished entries.

Layout, all numbers little-endian:

    magic | frame HEAD | frame KEYS | frame DATA | frame DATA | ... | frame KEYS | frame DATA | ...

A frame is its kind (4 bytes), the length of its payload (8), the CRC-32 of these twelve bytes (4),
the payload, and the CRC-32 of the payload (4). HEAD is JSON: what is run. KEYS is the data of the
keys (uint32, two words each); more keys append another. DATA is the index of its first entry and
the number of entries (8 bytes each), then the values, variable by variable. Entries are numbered
with the seed outermost, so that more keys only append.

A kill leaves the last frame incomplete: that part is dropped. The length has a CRC of its own, so
that a damaged length isn't taken for an incomplete frame. Whatever else can't be read is a
`ValueError`. Nothing is written before there are entries to append.
"""

import contextlib
import io
import json
import os
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from boundlab.checks import fail

try:
    import fcntl
except ImportError:  # Windows: no lock there
    fcntl = None  # type: ignore[assignment]

MAGIC = b"boundlab sweep log 1\n"
_HEAD = struct.Struct("<4sQ")
_SPAN = struct.Struct("<QQ")
_CRC = struct.Struct("<I")


class Variable(NamedTuple):
    """One array of an entry's result."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Log:
    """An open and locked log. After `load`, its first `done` entries stand in `results`."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        run: Mapping[str, Any],
        variables: Sequence[Variable],
        num_points: int,
        keys: np.ndarray,
    ) -> None:
        """Open the file (and make its folder); `run` says what is run, in JSON's types.

        `num_points`: entries a seed. `keys`: (S, 2) uint32, the data of the keys.
        """
        self._path = Path(path)
        self._variables = variables
        self._num_points = num_points
        self._keys = np.ascontiguousarray(keys, "<u4")
        layout = [[v.name, list(v.shape), v.dtype.name] for v in variables]
        # Through JSON and back, so that it compares equal to what is read from a file.
        self._run = json.loads(json.dumps({**run, "result": layout}))
        self._header = MAGIC + _frame(b"HEAD", json.dumps(self._run).encode())
        self._logged_keys = np.zeros((0, 2), "<u4")
        self._end = 0  # where the next frame goes; what lies beyond is an incomplete frame
        self.done = 0
        self._file = self._open()

    def close(self) -> None:
        """Close the file, which also gives up the lock."""
        self._file.close()

    def load(self, results: Sequence[np.ndarray]) -> None:
        """Read and check the whole file; copy its entries to `results`, as far as those reach."""
        file = self._file
        file.seek(0)
        start = file.read(len(self._header))
        if len(start) < len(self._header) and self._header.startswith(start):
            return  # empty, or killed in the first write: nothing yet
        if start != self._header:
            self._refuse_header(file)
        self._end = len(self._header)
        while (frame := self._read_frame((b"KEYS", b"DATA"))) is not None:
            kind, payload = frame
            if kind == b"KEYS":
                self._load_keys(payload)
            else:
                self._load_data(payload, results)
            self._end = file.tell()

    def append(self, start: int, stop: int, results: Sequence[np.ndarray]) -> None:
        """Add entries [start, stop) of `results`; they are on disk when this returns."""
        data = b"" if self._end else self._header
        new_keys = self._keys[len(self._logged_keys) :]
        if len(new_keys):
            data += _frame(b"KEYS", new_keys.tobytes())
        blocks = [
            np.ascontiguousarray(array[start:stop], variable.dtype.newbyteorder("<")).tobytes()
            for variable, array in zip(self._variables, results, strict=True)
        ]
        data += _frame(b"DATA", _SPAN.pack(start, stop - start) + b"".join(blocks))
        try:
            self._file.truncate(self._end)
            self._file.seek(self._end)
            rest = memoryview(data)
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except BaseException as error:
            # A full disk or Ctrl-C: keep the last whole frame.
            with contextlib.suppress(OSError):
                self._file.truncate(self._end)
            if isinstance(error, OSError):
                problem = f"checkpoint: got {error.strerror or error}, expected a file to write to"
                raise OSError(error.errno, problem, str(self._path)) from error
            raise
        self._end += len(data)
        self._logged_keys = np.concatenate([self._logged_keys, new_keys])
        self.done = stop

    def _open(self) -> io.FileIO:
        path = self._path
        try:
            other = path.exists() and not path.is_file()
        except OSError:
            other = False  # for instance a name that is too long: opening it fails too
        if other:
            raise fail("checkpoint", f"{str(path)!r}, which is no regular file", "a file's path")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0)
        except (OSError, ValueError) as error:  # ValueError: text that is no file name
            raise fail("checkpoint", f"{str(path)!r} ({error})", "a file to write to") from error
        try:
            if fcntl is not None:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            got = f"{str(path)!r}, which another sweep is using"
            raise fail("checkpoint", got, "a file of its own for each running sweep") from error
        except OSError:
            pass  # some network file systems have no locks
        return file

    def _damaged(self, problem: str) -> ValueError:
        accepted = "a log of this sweep, or a path that doesn't exist yet (the file is unchanged)"
        return fail("checkpoint", f"{str(self._path)!r}: {problem}", accepted)

    def _refuse_header(self, file: io.FileIO) -> None:
        """Say why the file doesn't begin with this sweep's header."""
        file.seek(0)
        if file.read(len(MAGIC)) != MAGIC:
            raise self._damaged("no log of a sweep")
        frame = self._read_frame((b"HEAD",))
        if frame is None:
            raise self._damaged("the header is incomplete")
        try:
            found = json.loads(frame[1])
            # In this order, since another precision changes all that follows.
            different = [name for name in self._run if found.get(name) != self._run[name]]
        except (ValueError, AttributeError) as error:
            raise self._damaged("the header can't be read") from error
        raise self._damaged(f"made by a sweep with another {(different or ['header'])[0]}")

    def _read_frame(self, kinds: tuple[bytes, ...]) -> tuple[bytes, bytes] | None:
        """The next frame's kind and payload; `None` at the end, or if the rest is incomplete."""
        file = self._file
        head = file.read(_HEAD.size + _CRC.size)
        if not any(kind.startswith(head[:4]) for kind in kinds):
            raise self._damaged(f"no record at byte {file.tell() - len(head)}")
        if len(head) < _HEAD.size + _CRC.size:
            return None
        if _CRC.unpack(head[_HEAD.size :])[0] != zlib.crc32(head[: _HEAD.size]):
            raise self._damaged(f"damaged record at byte {file.tell() - len(head)}")
        kind, length = _HEAD.unpack(head[: _HEAD.size])
        start = file.tell()
        if os.fstat(file.fileno()).st_size < start + length + _CRC.size:
            return None
        payload = _read(file, length)
        if _CRC.unpack(_read(file, _CRC.size))[0] != zlib.crc32(payload):
            raise self._damaged(f"damaged record at byte {start - len(head)}")
        return kind, payload

    def _load_keys(self, payload: bytes) -> None:
        if len(payload) % 8 or not payload:
            raise self._damaged("a record of keys of the wrong length")
        found = np.concatenate([self._logged_keys, np.frombuffer(payload, "<u4").reshape(-1, 2)])
        common = min(len(found), len(self._keys))
        if not np.array_equal(found[:common], self._keys[:common]):
            raise self._damaged("made with other keys")
        self._logged_keys = found

    def _load_data(self, payload: bytes, results: Sequence[np.ndarray]) -> None:
        sizes = [v.dtype.itemsize * int(np.prod(v.shape, dtype=np.int64)) for v in self._variables]
        start, count = _SPAN.unpack_from(payload) if len(payload) >= _SPAN.size else (0, 0)
        whole = start == self.done and len(payload) == _SPAN.size + count * sum(sizes)
        if not (whole and 0 < count <= len(self._logged_keys) * self._num_points - start):
            raise self._damaged(f"the record after entry {self.done} is out of place")
        offset = _SPAN.size
        for variable, size, array in zip(self._variables, sizes, results, strict=True):
            block = np.frombuffer(
                payload,
                variable.dtype.newbyteorder("<"),
                count * size // variable.dtype.itemsize,
                offset,
            ).reshape(count, *variable.shape)
            kept = max(0, min(count, len(array) - start))
            array[start : start + kept] = block[:kept]
            offset += count * size
        self.done = start + count


def _frame(kind: bytes, payload: bytes) -> bytes:
    head = _HEAD.pack(kind, len(payload))
    return b"".join([head, _CRC.pack(zlib.crc32(head)), payload, _CRC.pack(zlib.crc32(payload))])


def _read(file: io.FileIO, length: int) -> bytes:
    """Exactly `length` bytes: one raw read may return fewer."""
    parts = []
    while length > 0 and (part := file.read(length)):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
