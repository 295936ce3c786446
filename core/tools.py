"""A study's tool on a user's own data: its answer printed, saved and drawn."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import xarray as xr
from rich.console import Console

from boundlab import publish, results
from boundlab.experiment import Study


def use(
    study: Study,
    options: Any,
    folder: Path,
    console: Console,
    *,
    say: Callable[[str], None],
    progress: bool = True,
) -> Path:
    """Apply the study's tool with `options`; return where its dataset is saved.

    The file's name holds a digest of its content: another answer never replaces one.
    """
    tool = study.tool
    assert tool is not None
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        shown = {"progress": progress} if tool.progress else {}
        dataset = tool.apply(options, console, **shown)
    record = results.environment() | {"study": study.name, "tool": tool.name}
    name = f"{study.name}-{tool.name}-{_digest(dataset)}"
    path = folder / f"{name}.nc"
    if path.exists():
        results.load(path)
        say(f"{study.name}: already in {path}")
    else:
        stated = {results.PROVENANCE: json.dumps(record, sort_keys=True)}
        results.save(dataset.assign_attrs(stated), path)
        say(f"{study.name}: wrote {path}")
    figures = publish.drawn_by(f"boundlab.figures.{study.name}.{tool.figures}", dataset)
    for file in publish.save_figures(figures, folder / "figures", name):
        say(f"wrote {file}")
    return path


def _digest(dataset: xr.Dataset) -> str:
    digest = hashlib.sha256(json.dumps(dataset.attrs, sort_keys=True, default=str).encode())
    for name in sorted(map(str, dataset.variables)):
        digest.update(name.encode() + dataset[name].values.tobytes())
    return digest.hexdigest()[:10]
