"""`boundlab doctor`: versions, devices, precision, caches, and the canaries."""

import os
import platform

import jax
from rich.console import Console
from rich.table import Table

from boundlab.canaries import run_canaries
from boundlab.precision import x64, x64_is_on
from boundlab.versions import KNOWN_BAD, versions


def examine(console: Console, cache_folder: str) -> bool:
    """Print the state of this installation; return whether every canary is alive."""
    facts = Table(show_header=False, box=None)
    facts.add_row("python", platform.python_version())
    for name, version in versions().items():
        facts.add_row(name, version)
    facts.add_row("backend", jax.default_backend())
    facts.add_row("devices", ", ".join(f"{d.id}: {d.device_kind}" for d in jax.devices()))
    facts.add_row("x64", str(x64_is_on()))
    facts.add_row("matmul precision", "highest while a study runs or is verified")
    facts.add_row("XLA_FLAGS", os.environ.get("XLA_FLAGS", "") or "none")
    facts.add_row("compilation cache", cache_folder)
    for version, fault in KNOWN_BAD.items():
        facts.add_row(f"refused: {version}", fault)
    console.print(facts)
    alive = True
    for name, precise in (("float64", True), ("float32", False)):
        table = Table("canary", "value", "limit", "", title=f"Canaries, {name}")
        with x64() if precise else jax.enable_x64(False):
            for canary in run_canaries():
                alive &= canary.alive
                table.add_row(
                    canary.name,
                    f"{canary.value:.2g}",
                    f"{canary.limit:.2g} {canary.unit}".strip(),
                    "alive" if canary.alive else "[red]DEAD[/red]",
                )
        console.print(table)
    if not alive:
        console.print("A canary is dead: numbers from this installation can't be trusted.")
    return alive
