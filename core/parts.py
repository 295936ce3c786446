"""The parts of a study side by side: while one computes, others are traced and compiled.

Sweeps still compute one after another (`sweep` sees to it), each on every device.
"""

import contextvars
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

import jax
import xarray as xr

from boundlab.sweeps import STOPPED

_MOST_THREADS = 4  # what is compiled at once takes memory


@contextmanager
def study_precision() -> Iterator[None]:
    """Open the precision of every study: x64, and products at full precision. One thread's own."""
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        yield


def run_parts(parts: Sequence[Any], config: Any, key: jax.Array, repeat: Any) -> list[xr.Dataset]:
    """Datasets of `parts`, in their order: part.run(config, fold_in(key, place), repeat) of each.

    Their variables and dims carry the part's name, to be merged. A part takes all its randomness
    from its key and repeats its simulations by `repeat`. The first exception, or an interrupt, stops
    all of them between two batches. Where several processes share the work, parts run one after
    another: all must make the same calls in the same order.
    """
    keys = [jax.random.fold_in(key, place) for place in range(len(parts))]
    # One more than cores: some wait for their turn to compute.
    threads = min(len(parts), (os.cpu_count() or 1) + 1, _MOST_THREADS)
    threads = 1 if jax.process_count() > 1 else threads
    stopped = threading.Event()

    def run(part: Any, part_key: jax.Array) -> xr.Dataset:
        STOPPED.set(stopped)
        if stopped.is_set():
            raise KeyboardInterrupt
        with study_precision():
            return part.run(config, part_key, repeat)

    with ThreadPoolExecutor(threads) as pool:
        jobs = [
            pool.submit(contextvars.copy_context().run, run, part, part_key)
            for part, part_key in zip(parts, keys, strict=True)
        ]
        try:
            finished, _ = wait(jobs, return_when=FIRST_EXCEPTION)
            for job in finished:
                job.result()  # raises what the part raised
        except BaseException:
            stopped.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return [job.result() for job in jobs]
