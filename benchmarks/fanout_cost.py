"""Seconds of a training step over the grid of (b, β), measured on this machine and kept as data.

The problem is that of the part `cost` of the study `fanout`, at the sizes of its presets: one-layer
GraphSAGE, SGD, float32. Every cell is a program of its own, with batch size and fan-out static as in a
run of one's own. With all neighbours, too, every step samples them, so that a cell's time is that of
its sample (`train` would otherwise aggregate the features of a one-layer network once and for all).
Cells take turns, since the machine's speed drifts; a cell's time is the median over the rounds, its
spread the distance between the quartiles.

Prints the times. With `--write` it also puts them into analysis/fanout/data/step_seconds.csv: what was
measured now replaces earlier rows of the same device and cell, all others stay. Run it on a quiet
machine (about four minutes on two cores).
"""

import argparse
import csv
import os
import time
from collections.abc import Callable
from pathlib import Path

import jax
import jaxlib
import numpy as np

from boundlab.analysis.fanout.config import PRESETS, Config
from boundlab.analysis.fanout.cost import STEP_SIZE, training_problem
from boundlab.analysis.fanout.problems import split
from boundlab.models.training import train

TABLE = Path(__file__).parents[1] / "analysis" / "fanout" / "data" / "step_seconds.csv"
COLUMNS = ("device", "network", "num_nodes", "batch_size", "fan_out", "seconds", "spread")
KEY = COLUMNS[:5]
NETWORK = "sage"
STEPS = 256
ROUNDS = 15
SETTINGS = ("quick", "paper")


def device_name() -> str:
    """What the times belong to: the accelerator's own name, or the number of CPU cores."""
    device = jax.devices()[0]
    if device.platform == "cpu":
        return f"CPU, {os.cpu_count()} cores"
    return str(device.device_kind)


def hardware() -> str:
    """The device with its model and the versions that matter."""
    model = ""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
        models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        model = f", host {models[0]}" if models else ""
    versions = f"jax {jax.__version__}, jaxlib {jaxlib.__version__}, numpy {np.__version__}"
    return (
        f"{device_name()}{model}; {versions}; float32, median of {ROUNDS} rounds of {STEPS} steps"
    )


def programs(config: Config) -> dict[tuple[int, int, int], Callable[[], object]]:
    """One compiled and warm run of `STEPS` steps for every cell (n, b, β)."""
    problem = training_problem(config, jax.random.key(0))
    nodes, _ = split(jax.random.key(1), problem.labels, config.cost_nodes // 2)
    features = problem.features.astype(np.float32)

    def cell(b: int, beta: int) -> Callable[[], object]:
        @jax.jit
        def steps(key: jax.Array) -> object:
            return train(
                key,
                problem.graph,
                features,
                problem.targets,
                nodes,
                network=NETWORK,
                loss="cross_entropy",
                step_size=STEP_SIZE,
                batch_size=b,
                fan_out=beta,
                max_fan_out=beta,
                num_steps=STEPS,
                record=(),
            ).params

        key = jax.random.key(2)
        jax.block_until_ready(steps(key))
        return lambda: jax.block_until_ready(steps(key))

    return {
        (config.cost_nodes, b, beta): cell(b, beta)
        for b in config.cost_batch_sizes
        for beta in config.cost_fan_outs
    }


def seconds(run: Callable[[], object]) -> float:
    """Wall time of a step."""
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) / STEPS


def earlier(path: Path, device: str) -> tuple[list[str], list[dict[str, str]]]:
    """Comments on other devices and all rows of a table that may not exist yet."""
    if not path.exists():
        return [], []
    lines = path.read_text(encoding="utf-8").splitlines()
    comments = [x for x in lines if x.startswith("# ") and not x.startswith(f"# {device}")]
    return comments, list(csv.DictReader(x for x in lines if not x.startswith("#")))


def main() -> None:
    """Measure every cell, print the table and write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep the times as data")
    parser.add_argument("--out", type=Path, default=TABLE, help="the table, with --write")
    parser.add_argument("--presets", nargs="+", choices=SETTINGS, default=SETTINGS)
    options = parser.parse_args()
    cells: dict[tuple[int, int, int], Callable[[], object]] = {}
    for name in options.presets:
        cells |= programs(PRESETS[name])
    times = np.array([[seconds(run) for run in cells.values()] for _ in range(ROUNDS)])
    low, median, high = np.quantile(times, [0.25, 0.5, 0.75], axis=0)
    spread = high - low
    device = device_name()
    print(hardware())
    print(f"{'n':>6}{'b':>6}{'β':>5}{'µs a step':>12}{'spread':>9}{'nodes/s':>12}")
    rows = []
    for (n, b, beta), value, width in zip(cells, median, spread, strict=True):
        print(f"{n:6}{b:6}{beta:5}{1e6 * value:12.1f}{width / value:9.0%}{b / value:12.3g}")
        numbers = (n, b, beta, f"{value:.4g}", f"{width:.3g}")
        rows.append(dict(zip(COLUMNS, (device, NETWORK, *numbers), strict=True)))
    if not options.write:
        return
    comments, old = earlier(options.out, device)
    anew = {tuple(str(row[name]) for name in KEY) for row in rows}
    others = [row for row in old if tuple(row[name] for name in KEY) not in anew]
    with options.out.open("w", encoding="utf-8", newline="") as file:
        for line in (*comments, f"# {hardware()}"):
            file.write(line + "\n")
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows([*others, *rows])
    print(f"written to {options.out}")


if __name__ == "__main__":
    main()
