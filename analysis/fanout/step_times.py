"""Measured times of training steps, shipped as data: a run of the study would measure anew each time.

`benchmarks/fanout_cost.py` writes the table.
"""

import csv
from importlib import resources

import numpy as np
import xarray as xr

AXES = ("device", "num_nodes", "batch_size", "fan_out")
TABLE = ("data", "step_seconds.csv")


def step_seconds() -> xr.Dataset:
    """Seconds of one training step, per device and cell; the problem is that of the part on cost.

    Returns:
        `seconds` (median over rounds) and `spread` (distance of the quartiles), both in seconds,
        over `device` (its name), `num_nodes` n of the problem, `batch_size` b and `fan_out` β; NaN
        where nothing was measured.

    """
    source = resources.files("boundlab.analysis.fanout").joinpath(*TABLE)
    with source.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    columns = [np.array([row["device"] for row in rows], dtype=np.str_)]
    columns += [np.array([int(row[axis]) for row in rows]) for axis in AXES[1:]]
    values, places = zip(*(np.unique(c, return_inverse=True) for c in columns), strict=True)
    measured = {}
    for name in ("seconds", "spread"):
        table = np.full([len(axis) for axis in values], np.nan)
        table[places] = [float(row[name]) for row in rows]
        measured[name] = (AXES, table, {"units": "s"})
    return xr.Dataset(measured, coords=dict(zip(AXES, values, strict=True)))
