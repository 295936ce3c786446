"""What `sweep` finds out about its function from one trace: the result's arrays, a fingerprint, and
how many entries to compute at once.

An *entry* is one call `fn(params, key)`. All of this is read off the program of a single entry, so
it depends on neither the number of seeds nor the devices.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from boundlab.checkpoints import Variable
from boundlab.checks import check_stored_name, fail

# Bytes of the largest array of the entries that are computed together. Beyond about the size of a
# core's cache a wider vmap is slower on CPU (drawing a 256 KB sample first: 0.3 ms an entry at
# width 4, 0.7 at 256; aggregating 48,000 edges of 64 features: 3.5 at width 1, 8 at 16).
_CACHE_BYTES = 2**21
# Bytes written by all operations of a batch up to which more than _USUAL_BATCH entries are put into
# one: some 10 ms, so that padding costs nothing, and dispatch is paid less often.
_CHEAP_BYTES = 2**24
_USUAL_BATCH = 128
_LARGEST_BATCH = 4096
_GUESSED_TRIPS = 100  # of a while loop

# jaxlib's LAPACK kernels split a batch over XLA's thread pool and block a thread of that pool until
# all is done. Two such calls at once, on two CPU devices or in one program, can fill the pool with
# threads that wait for each other: seen with lu, cholesky, qr and eigh, shard_map or not. One entry
# at a time has no batch to split.
_LAPACK = re.compile(r"@lapack_\w+\([^\n]*? : \(tensor<((?:\d+x)*)")
_LAPACK_BATCH = 16


class Entry(NamedTuple):
    """The program of one entry and what is known about it.

    `call(values, key_data)`: the values of the grid's names, which have `dtypes`, and two uint32
    words, to a tuple of arrays. `width`: entries to vmap over on CPU. `cacheable`: programs with
    this fingerprint compute the same. `calls_python`: what is called isn't in the fingerprint.
    `one_device`: several CPU devices of a process could wait for each other for ever.
    """

    call: Callable[..., tuple[jax.Array, ...]]
    dtypes: tuple[np.dtype[Any], ...]
    variables: tuple[Variable, ...]
    fingerprint: str
    width: int
    batch_size: int
    cacheable: bool
    calls_python: bool
    one_device: bool


def trace_entry(
    fn: Callable[..., Any],
    names: Sequence[str],
    dtypes: Sequence[np.dtype[Any]],
    device: jax.Device,
) -> Entry:
    """Trace `fn` once, for scalars of `dtypes` under `names` and one key."""
    found: list[str] = []

    def entry(values: tuple[jax.Array, ...], key_data: jax.Array) -> tuple[jax.Array, ...]:
        key = jax.random.wrap_key_data(key_data, impl="threefry2x32")
        arrays = _named_arrays(fn(dict(zip(names, values, strict=True)), key))
        found[:] = arrays
        return tuple(arrays.values())

    arguments = (
        tuple(jax.ShapeDtypeStruct((), dtype) for dtype in dtypes),
        jax.ShapeDtypeStruct((2,), np.uint32),
    )
    # The mesh around the call becomes part of the program, so it is always the same one. (Within
    # it a new `jit` of a new function: what a cached trace closed over may have changed since.)
    with jax.set_mesh(Mesh(np.array([device]), ("entries",))):
        # Unused arguments must stay in the text, or `p["a"]` and `p["b"]` would read the same.
        traced = jax.jit(entry, keep_unused=True).trace(*arguments)
        text = traced.lower().as_text()
    variables = tuple(
        Variable(name, tuple(info.shape), np.dtype(info.dtype))
        for name, info in zip(found, traced.out_info, strict=True)
    )
    cost = _cost(traced.jaxpr.jaxpr, None)
    calls_python = any("callback" in name or "debug" in name for name in cost.primitives)
    fitting = _power_of_two(_CACHE_BYTES // max(cost.largest, 1))
    cheap = _power_of_two(_CHEAP_BYTES // max(cost.written, 1))
    usual = min(fitting, max(_USUAL_BATCH, cheap), _LARGEST_BATCH)
    lapack = [shape.count("x") for shape in _LAPACK.findall(text)]
    return Entry(
        call=entry,
        dtypes=tuple(dtypes),
        variables=variables,
        fingerprint=hashlib.sha256(text.encode()).hexdigest(),
        width=1 if lapack else fitting,
        batch_size=min(usual, _LAPACK_BATCH) if lapack else usual,
        cacheable=not calls_python and "custom_vmap_call" not in cost.primitives,
        calls_python=calls_python,
        one_device=max(lapack, default=0) > 2,
    )


def _named_arrays(result: object) -> dict[str, jax.Array]:
    accepted = "an array of numbers or a dict of them under names"
    if isinstance(result, tuple) and hasattr(result, "_asdict"):
        raise fail("fn", f"a result of type {type(result).__name__}", accepted + "; ._asdict()")
    named = result if isinstance(result, Mapping) else {"value": result}
    if not named:
        raise fail("fn", "an empty dict as the result", accepted)
    arrays = {}
    for name, value in named.items():
        check_stored_name("fn", name)
        if not isinstance(value, jax.Array | np.ndarray | np.generic | int | float | complex):
            raise fail("fn", f"a result of type {type(value).__name__}", accepted)
        dtype = getattr(value, "dtype", None)  # a Python number has none
        if dtype is not None and (
            jax.dtypes.issubdtype(dtype, jax.dtypes.extended) or np.dtype(dtype).kind not in "biufc"
        ):
            raise fail("fn", f"a result of type {dtype}", accepted)
        arrays[name] = jnp.asarray(value)
    return arrays


class _Cost(NamedTuple):
    largest: int  # bytes of the largest array that differs between entries
    written: int  # bytes of all such arrays, loops counted
    primitives: frozenset[str]


def _cost(jaxpr: Any, varying: Sequence[bool] | None) -> _Cost:
    """Estimate what one entry takes. `varying`: which inputs differ between entries (None: all).

    Arrays computed from constants alone are the same for all entries and don't count.
    """
    if varying is None:
        varying = [True] * len(jaxpr.invars)
    differs = {v for v, one in zip(jaxpr.invars, varying, strict=True) if one}
    largest, written, primitives = 0, 0, set()
    for eqn in jaxpr.eqns:
        primitives.add(eqn.primitive.name)
        inputs = [not hasattr(v, "val") and v in differs for v in eqn.invars]
        trips = eqn.params.get("length", 1) if eqn.primitive.name == "scan" else 1
        trips = _GUESSED_TRIPS if eqn.primitive.name == "while" else trips
        for inner in _inner_jaxprs(eqn.params):
            part = _cost(inner, _inner_varying(eqn, inputs, len(inner.invars)))
            primitives |= part.primitives
            largest = max(largest, part.largest)
            written += trips * part.written
        if any(inputs):
            differs.update(eqn.outvars)
            sizes = [_nbytes(v.aval) for v in eqn.outvars]
            largest = max(largest, *sizes, 0)
            written += sum(sizes)
    return _Cost(largest, written, frozenset(primitives))


def _inner_jaxprs(params: Mapping[str, Any]) -> Iterator[Any]:
    for value in params.values():
        for one in value if isinstance(value, tuple | list) else (value,):
            inner = getattr(one, "jaxpr", one)
            if hasattr(inner, "eqns"):
                yield inner


def _inner_varying(eqn: Any, inputs: list[bool], count: int) -> list[bool]:
    """Which inputs of an inner jaxpr differ: it takes the last `count` inputs of the equation."""
    if count > len(inputs):
        return [any(inputs)] * count
    offset = len(inputs) - count
    constants = {"scan": eqn.params.get("num_consts", 0)}
    constants["while"] = eqn.params.get("cond_nconsts", 0) + eqn.params.get("body_nconsts", 0)
    fixed = constants.get(eqn.primitive.name)
    if fixed is None:
        return inputs[offset:]
    # What a loop carries may start as a constant and differ after one step.
    return [one if i < fixed else any(inputs) for i, one in enumerate(inputs)][offset:]


def _nbytes(aval: Any) -> int:
    itemsize = getattr(getattr(aval, "dtype", None), "itemsize", 8)
    return int(np.prod(getattr(aval, "shape", ()), dtype=np.int64)) * itemsize


def _power_of_two(limit: int) -> int:
    return 1 << (max(limit, 1).bit_length() - 1)
