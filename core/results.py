"""Results on disk: one netCDF file a run, with its provenance; never half-written or overwritten."""

import dataclasses
import hashlib
import importlib.util
import json
import os
import subprocess
import time
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr

from boundlab.experiment import Study
from boundlab.versions import versions

SEAL = b"\nboundlab result, sha256 "
PROVENANCE = "provenance"  # one JSON text: netCDF has no booleans, None or dicts


def result_path(folder: Path, study: Study, config: Hashable, *, preset: str, seed: int) -> Path:
    """Where the result of this run belongs. Other settings or other code give another name, so that
    nothing is overwritten and no stale result is taken for a fresh one.
    """
    fields = dataclasses.asdict(config)  # type: ignore[call-overload]
    identity = json.dumps([study.name, fields, seed, source_digest()], sort_keys=True)
    digest = hashlib.sha256(identity.encode()).hexdigest()[:10]
    return folder / f"{study.name}-{preset}-seed{seed}-{digest}.nc"


def source_digest() -> str:
    """Digest of every source file that a number can depend on."""
    core = Path(__file__).resolve().parent
    digest = hashlib.sha256(json.dumps(versions(), sort_keys=True).encode())
    for package in ("boundlab.theory", "boundlab.models", "boundlab.analysis"):
        spec = importlib.util.find_spec(package)
        assert spec is not None
        assert spec.submodule_search_locations
        for file in sorted(Path(spec.submodule_search_locations[0]).rglob("*.py")):
            digest.update(file.read_bytes())
    own = ("sweeps.py", "blocks.py", "entries.py", "experiment.py", "long_runs.py", "precision.py")
    for name in own:
        digest.update((core / name).read_bytes())
    return digest.hexdigest()


def save(dataset: xr.Dataset, path: str | Path) -> None:
    """Write `dataset` as netCDF; the file appears whole or not at all, and replaces nothing.

    A seal (SHA-256 of all before it) follows the netCDF content, where other readers ignore it.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        raise FileExistsError(f"out: {path} exists already and is left as it is")
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        try:
            dataset.to_netcdf(partial, engine="h5netcdf")
        except (TypeError, ValueError) as error:
            raise ValueError(f"dataset: can't be written as netCDF to {path} ({error})") from error
        with partial.open("ab") as file:
            file.write(_seal(partial.read_bytes()))
        # Whoever deletes what the result was made from may rely on reading it back.
        if not load(partial).equals(dataset):
            raise ValueError(f"dataset: {path} would not read back as it was written")
        _publish(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _seal(content: bytes) -> bytes:
    return SEAL + hashlib.sha256(content).hexdigest().encode()


def _publish(partial: Path, path: Path) -> None:
    try:
        os.link(partial, path)  # unlike a rename, refuses to replace a file that came meanwhile
    except FileExistsError:
        raise
    except OSError:  # some network and FUSE file systems have no hard links
        os.rename(partial, path)


def load(path: str | Path) -> xr.Dataset:
    """Read a result. `ValueError` naming the file if it is damaged or not one of boundlab's.

    The seal is checked before the netCDF library sees the file: on damaged ones it may hang.
    """
    content = Path(path).read_bytes()
    size = len(_seal(b""))
    if content[-size:] != _seal(content[:-size]):
        raise ValueError(
            f"result file {path}: damaged or not a boundlab result; "
            "it is left as it is: move it away to run again"
        )
    with xr.open_dataset(path, engine="h5netcdf", decode_times=False) as opened:
        return opened.load()


def provenance(dataset: xr.Dataset) -> dict[str, Any]:
    """The provenance record of a dataset read by `load`."""
    return json.loads(dataset.attrs[PROVENANCE])


def run_and_save(
    study: Study,
    config: Hashable,
    *,
    preset: str,
    seed: int,
    folder: Path,
    progress: bool,
    report: Callable[[str], None],
) -> Path:
    """Run a study unless its result is there already; resume what an interrupted run left."""
    path = result_path(folder, study, config, preset=preset, seed=seed)
    if path.exists():
        load(path)
        report(f"{study.name}: already in {path}")
        return path
    logs = folder / "checkpoints" / path.stem
    report(f"{study.name}: running preset {preset}, seed {seed}")
    started = time.perf_counter()
    with _CompileTimer() as compiled:
        key = jax.random.key(seed, impl="threefry2x32")
        dataset = study.run(config, key, checkpoint=logs, progress=progress)
    record = environment() | {
        "study": study.name,
        "preset": preset,
        "config": dataclasses.asdict(config),  # type: ignore[call-overload]
        "seed": seed,
        "x64": True,
        "wall_seconds": round(time.perf_counter() - started, 2),
        "compile_seconds": round(compiled.seconds, 2),
    }
    save(dataset.assign_attrs({PROVENANCE: json.dumps(record, sort_keys=True)}), path)
    # The result holds all that the logs held.
    for log in (*logs.glob("*.sweep*"), *logs.glob("*.run*")):
        log.unlink()
    for empty in (logs, logs.parent):
        if empty.exists() and not any(empty.iterdir()):
            empty.rmdir()
    report(f"{study.name}: wrote {path} in {record['wall_seconds']} s")
    return path


def environment() -> dict[str, Any]:
    """What the numbers of a run depend on, besides its config and seed."""
    revision, dirty = _git_state()
    device = jax.devices()[0]
    return {
        "versions": dict(versions()),
        "numpy": np.__version__,
        "git_revision": revision,
        "git_dirty": dirty,
        "backend": jax.default_backend(),
        "device_kind": device.device_kind,
        "num_devices": jax.device_count(),
        "matmul_precision": "highest",
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
    }


def _git_state() -> tuple[str | None, bool | None]:
    """Revision and dirty flag of the checkout that this package runs from; None without one."""
    folder = Path(__file__).resolve().parent

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        ).stdout.strip()

    try:
        if "core/__init__.py" not in git("ls-files", "--full-name", "__init__.py"):
            return None, None  # installed inside somebody else's repository
        return git("rev-parse", "HEAD"), bool(git("status", "--porcelain"))
    except (OSError, subprocess.SubprocessError):
        return None, None


class _CompileTimer:
    """Adds up the time that XLA compiles within the context."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> "_CompileTimer":
        jax.monitoring.register_event_duration_secs_listener(self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        jax.monitoring.unregister_event_duration_listener(self._hear)

    def _hear(self, event: str, duration_secs: float, **_: str | int) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            self.seconds += duration_secs
