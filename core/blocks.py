"""How `sweep` runs a batch of entries: one block a device, and no communication between them.

`jax.shard_map` gives each device its own `batch_size` entries.
"""

from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.stages import Compiled

from boundlab.checks import fail
from boundlab.entries import Entry
from boundlab.precision import standard_promotion

_AXIS = "entries"
_KEPT_PROGRAMS = 16
_programs: dict[tuple[Any, ...], Compiled] = {}


def refuse_inside_transformations() -> None:
    """Refuse to go on inside `jit`, `vmap`, `grad` and the like, where no mesh can be set."""
    try:
        with jax.set_mesh(Mesh(np.array(jax.devices()[:1]), (_AXIS,))):
            pass
    except ValueError as error:
        accepted = "a call outside all transformations (grid and keys are concrete)"
        raise fail("sweep", "a call inside jit, vmap, grad or the like", accepted) from error


def entry_mesh(mesh: Any) -> Mesh:
    """A mesh of one automatic axis over the devices of `mesh` (`None`: every device).

    It is built anew, since `jax.make_mesh` makes explicit axes by default, and a scan over keys
    that are split inside it doesn't trace on those.
    """
    if mesh is None:
        return Mesh(np.array(jax.devices()), (_AXIS,))
    if not isinstance(mesh, Mesh) or mesh.devices.ndim != 1 or not mesh.devices.size:
        raise fail("mesh", repr(mesh), "a jax.sharding.Mesh of one axis, or None")
    processes = {device.process_index for device in mesh.devices.flat}
    everyone = set(range(jax.process_count()))
    if processes not in ({jax.process_index()}, everyone):
        accepted = "devices of this process alone, or of every process"
        raise fail("mesh", f"devices of the processes {sorted(processes)}", accepted)
    return Mesh(mesh.devices, (_AXIS,))


def one_device_a_process(mesh: Mesh) -> Mesh:
    """The first device of each process in `mesh`."""
    first: dict[int, jax.Device] = {}
    for device in mesh.devices.flat:
        first.setdefault(device.process_index, device)
    return Mesh(np.array(list(first.values())), (_AXIS,))


def is_shared(mesh: Mesh) -> bool:
    """Whether several processes compute together on `mesh`."""
    return len({device.process_index for device in mesh.devices.flat}) > 1


def batch_program(entry: Entry, batch_size: int, mesh: Mesh) -> Compiled:
    """The compiled program of one batch; equal programs are kept between sweeps.

    What is kept is compiled: a kept `jit` could trace `fn` again, when what that closes over has
    changed.
    """
    key = (entry.fingerprint, entry.dtypes, batch_size, entry.width, tuple(mesh.devices.flat))
    if entry.cacheable and key in _programs:
        return _programs[key]
    on_cpu = mesh.devices.flat[0].platform == "cpu"
    width = min(batch_size, entry.width) if on_cpu else batch_size

    def block(values: tuple[jax.Array, ...], key_data: jax.Array) -> tuple[jax.Array, ...]:
        if 1 < width == batch_size:
            return jax.vmap(entry.call)(values, key_data)
        return jax.lax.map(
            lambda one: entry.call(*one),
            (values, key_data),
            batch_size=None if width == 1 else width,
        )

    split = PartitionSpec(_AXIS)
    # Without check_vma=False a scan whose carry starts as a constant would be refused.
    mapped = jax.shard_map(block, mesh=mesh, in_specs=split, out_specs=split, check_vma=False)
    rows = batch_size * mesh.devices.size
    sharding = NamedSharding(mesh, split)
    values = tuple(jax.ShapeDtypeStruct((rows,), d, sharding=sharding) for d in entry.dtypes)
    key_data = jax.ShapeDtypeStruct((rows, 2), np.uint32, sharding=sharding)
    with jax.set_mesh(mesh):  # whatever mesh the caller has set would be refused
        program = jax.jit(mapped).lower(values, key_data).compile()
    if entry.cacheable:
        if len(_programs) >= _KEPT_PROGRAMS:
            del _programs[next(iter(_programs))]
        _programs[key] = program
    return program


def run_batch(
    program: Compiled,
    mesh: Mesh,
    values: tuple[np.ndarray, ...],
    key_data: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """Run one batch; all its results, of all processes, on this host."""
    sharding = NamedSharding(mesh, PartitionSpec(_AXIS))

    def place(array: np.ndarray) -> jax.Array:
        return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])

    with jax.set_mesh(mesh):
        outputs = program(tuple(map(place, values)), place(key_data))
    if is_shared(mesh):
        with standard_promotion():
            return tuple(
                np.asarray(multihost_utils.process_allgather(out, tiled=True)) for out in outputs
            )
    return tuple(np.asarray(out) for out in jax.device_get(outputs))


def from_first_process(array: np.ndarray) -> np.ndarray:
    """The array that process 0 passes, on every process, bit for bit; shapes must agree."""
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    with standard_promotion():
        sent = np.asarray(multihost_utils.broadcast_one_to_all(flat))
    return sent.view(array.dtype).reshape(array.shape)
