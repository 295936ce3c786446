"""`sweep`: the one way a simulation is repeated over seeds and parameters.

Symbols: an *entry* is one call `fn(params, key)`; S seeds and a grid of G points make S·G entries,
numbered s·G + g, seeds outermost; a *batch* is `batch_size` entries on each device.
"""

import contextlib
import importlib.util
import math
import operator
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import jax
import numpy as np
import xarray as xr

from boundlab.blocks import (
    batch_program,
    entry_mesh,
    from_first_process,
    is_shared,
    one_device_a_process,
    run_batch,
)
from boundlab.checkpoints import Log, Variable
from boundlab.checks import check_integer, fail
from boundlab.entries import trace_entry
from boundlab.precision import one_blas_thread
from boundlab.sweep_arguments import (
    check_checkpoint,
    check_grid,
    check_keys,
    check_names,
    result_dims,
    working_dtype,
)

# Sweeps of several threads compute one after another: each has all devices, and the one bar.
COMPUTING = threading.RLock()
# Set in a thread whose sweep is to stop before its next batch; see `boundlab.parts`.
STOPPED: ContextVar[threading.Event | None] = ContextVar("STOPPED", default=None)


def sweep(
    fn: Callable[..., Any],
    grid: Any,
    keys: Any,
    *,
    batch_size: Any = None,
    mesh: Any = None,
    checkpoint: Any = None,
    progress: bool = True,
) -> xr.Dataset:
    """Call `fn(params, key)` at every grid point with every key; the results as one dataset.

    Entry (i, s) is `fn` at grid point i with `keys[s]`: the same keys, unaltered, at every point.
    Another `batch_size` or number of devices changes it by rounding only (1e-12 in float64 for a
    well-conditioned `fn`), since XLA picks its kernels by the width of the vmap; more keys don't
    change it at all.

    `fn` is traced once to look at it, and once or twice more for the program of a batch; equal
    programs are compiled once a process. Entries of a batch are vmapped. On CPU, those with large
    arrays (more than 2 MB together, as in the aggregation over a large graph) are computed in
    groups that fit the cache, or one after another, which is faster there. Those with dense linear
    algebra (solve, cholesky, eigh, svd, qr) always go one after another on CPU, where jaxlib's
    batches of them can hang; an `fn` that batches them itself gets one CPU device a process.
    `batch_size=1` always computes one at a time, as `lax.map` does. What `fn` closes over is part
    of the program: arrays on the host or on one device.

    Args:
        fn: takes a dict of traced scalars, one a name of `grid`, and one typed key; returns an
            array of numbers (real, complex or bool), or a dict of arrays under names.
        grid: a mapping of names to 1-D numbers, which are combined as a product. Floats are
            passed in the working precision (float64 if x64 is on, otherwise float32), integers as
            int64 or int32. May be empty: seeds only.
        keys: (S,) typed threefry keys, for instance `jax.random.split(jax.random.key(seed), S)`.
            Other generators are refused: their draws depend on how many entries run together.
        batch_size: entries a device at once; device memory grows with it and with nothing else.
            By default from the sizes of the arrays in `fn` (usually 128), whatever the devices and
            seeds. The last batch is filled up, so that one compilation serves all: for a few slow
            entries give a smaller one, on an accelerator a larger one.
        mesh: one axis of any name; its devices each get their own block of entries. By default
            every device. With several processes, of this process alone or of all; in the second
            case every process must make the same call, and each returns the whole dataset.
        checkpoint: a path that the sweep owns; missing folders are made. Finished batches are
            appended and flushed to disk, and a later call with the same `fn`, grid and keys
            continues. `keys` may be longer than before (the new ones are added) or shorter;
            `batch_size` and the devices may differ. A killed sweep that is continued at the same
            batch size and on as many devices gives the same bits. `fn` is compared by
            the program that JAX makes of it, which another version of JAX may change. In a
            call shared by several processes, process 0 alone reads and writes the file.
        progress: draw one bar, on stderr if that is a terminal, or below a notebook's cell (where
            `ipywidgets` is installed, as in Colab).

    Returns:
        Dimensions: the grid's names in order, `seed`, then the result's axes, named
        `<variable>_axis0`, `<variable>_axis1`, …; variables: `value`, or the dict's names;
        coordinates: the grid's values, and `seed` = 0…S−1.

    Raises:
        ValueError: naming the argument; for `checkpoint`, a file that is damaged, in use, or of
            another sweep. It is left as it was. Also a call inside `jit`, `vmap` or `grad`.
        OSError: naming `checkpoint` and the file, if a batch can't be written (a full disk); what
            was written before is kept.

    """
    if not callable(fn):
        raise fail("fn", repr(fn), "a function of params and key")
    axes = check_grid(grid)
    key_data = check_keys(keys)
    path = check_checkpoint(checkpoint)
    if batch_size is not None:
        check_integer("batch_size", batch_size, 1)
    devices = entry_mesh(mesh)
    local = next(d for d in devices.devices.flat if d.process_index == jax.process_index())
    entry = trace_entry(fn, tuple(axes), [values.dtype for values in axes.values()], local)
    if entry.one_device:
        devices = one_device_a_process(devices)
    check_names(axes, entry.variables)
    if path is not None and entry.calls_python:
        raise fail("checkpoint", "a fn that calls back into Python", "a fn of JAX operations only")

    shape = tuple(len(values) for values in axes.values())
    num_points = math.prod(shape)
    total = len(key_data) * num_points
    per_device = entry.batch_size if batch_size is None else operator.index(batch_size)
    step = per_device * devices.size
    results = [np.empty((total, *v.shape), v.dtype) for v in entry.variables]
    with contextlib.ExitStack() as stack:
        stack.enter_context(one_blas_thread())
        log, done = None, 0
        if path is not None:
            run = {
                "x64": working_dtype(np.float64) == np.float64,
                "grid": [[name, v.dtype.name, v.tolist()] for name, v in axes.items()],
                "fn": entry.fingerprint,
            }

            def open_log() -> Log:
                log = Log(path, run, entry.variables, num_points, key_data)
                stack.callback(log.close)
                log.load(results)
                return log

            log, done = _resume(open_log, results, is_shared(devices))
        program = batch_program(entry, per_device, devices)
        stack.enter_context(COMPUTING)
        advance = stack.enter_context(
            progress_bar(total, done, progress and jax.process_index() == 0)
        )
        # Batches begin at multiples of `step` even where a log ends between two: an entry always
        # stands at the same place of its batch, and so gets the same bits.
        for first in range(done - done % step, total if done < total else 0, step):
            # The last batch is filled up with copies of the last entry.
            seed, point = np.divmod(
                np.minimum(np.arange(first, first + step), total - 1), num_points
            )
            places = np.unravel_index(point, shape) if shape else ()
            values = tuple(v[i] for v, i in zip(axes.values(), places, strict=True))
            if (stopped := STOPPED.get()) is not None and stopped.is_set():
                raise KeyboardInterrupt
            batch = run_batch(program, devices, values, key_data[seed])
            start, stop = max(first, done), min(first + step, total)
            for array, part in zip(results, batch, strict=True):
                array[start:stop] = part[start - first : stop - first]
            if log is not None:
                log.append(start, stop, results)
            advance(stop)
    return _dataset(axes, entry.variables, results, len(key_data))


def _resume(
    open_log: Callable[[], Log], results: list[np.ndarray], shared: bool
) -> tuple[Log | None, int]:
    """Open the log, and say how many of `results` it held.

    Where processes share the work, the first reads the file for all, and they fail together.
    """
    if not shared:
        log = open_log()
        return log, min(log.done, len(results[0]))
    first, done, problem = None, 0, b""
    if jax.process_index() == 0:
        try:
            first = open_log()
            done = min(first.done, len(results[0]))
        except ValueError as error:
            problem = str(error).encode()
    message = from_first_process(np.frombuffer(problem[:2000].ljust(2000), np.uint8))
    if text := message.tobytes().decode(errors="replace").strip():
        raise ValueError(text)
    done = int(from_first_process(np.array([done]))[0])
    if done:
        for array in results:
            array[:done] = from_first_process(array[:done])
    return first, done


@contextlib.contextmanager
def progress_bar(
    total: int, done: int, wanted: bool, what: str = "sweep"
) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr that starts at `done`; its function takes the new count."""
    from rich.console import Console

    console = Console(file=sys.stderr)
    # Control codes would fill a log file; without ipywidgets rich warns at each refresh.
    notebook = console.is_jupyter and importlib.util.find_spec("ipywidgets") is not None
    if not (wanted and (sys.stderr.isatty() or notebook)):
        yield lambda _: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (what, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # What others print to stdout meanwhile stays there.
    with Progress(*columns, console=console, redirect_stdout=False) as bar:
        task = bar.add_task("", total=total, completed=done)
        yield lambda completed: bar.update(task, completed=completed)
        if notebook:  # rich draws no last state there
            bar.refresh()


def _dataset(
    axes: Mapping[str, np.ndarray],
    variables: Sequence[Variable],
    results: Sequence[np.ndarray],
    num_seeds: int,
) -> xr.Dataset:
    shape = tuple(len(values) for values in axes.values())
    data = {}
    for variable, array in zip(variables, results, strict=True):
        by_seed = array.reshape(num_seeds, *shape, *variable.shape)
        ordered = np.ascontiguousarray(np.moveaxis(by_seed, 0, len(shape)))
        data[variable.name] = ((*axes, "seed", *result_dims(variable)), ordered)
    coords = {
        **{name: (name, values) for name, values in axes.items()},
        "seed": np.arange(num_seeds),
    }
    return xr.Dataset(data, coords=coords)
