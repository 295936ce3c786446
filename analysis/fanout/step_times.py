"""Measured times of training steps, shipped as data: a run of the study would measure anew each time.

`benchmarks/fanout_cost.py` writes the table, one line a device, problem size and cell (b, β).
"""

import csv
from importlib import resources

import numpy as np
import xarray as xr

AXES = ("device", "num_nodes", "batch_size", "fan_out")
TABLE = ("data", "step_seconds.csv")


def step_seconds() -> xr.Dataset:
    """Seconds of one training step, a device and cell; the problem is that of the part on cost.

    Returns:
        `seconds` (median over rounds) and `spread` (distance of the quartiles), both in seconds, over
        `device` (its name), `num_nodes` n of the problem, `batch_size` b and `fan_out` β; NaN where
        nothing was measured.

    """
    source = resources.files("boundlab.analysis.fanout").joinpath(*TABLE)
    lines = source.read_text(encoding="utf-8").splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    columns = [np.array([row["device"] for row in rows], dtype=np.str_)]
    columns += [np.array([int(row[axis]) for row in rows]) for axis in AXES[1:]]
    values, places = zip(*(np.unique(c, return_inverse=True) for c in columns), strict=True)
    measured = {}
    for name in ("seconds", "spread"):
        table = np.full([len(axis) for axis in values], np.nan)
        table[places] = [float(row[name]) for row in rows]
        measured[name] = (AXES, table, {"units": "s"})
    return xr.Dataset(measured, coords=dict(zip(AXES, values, strict=True)))


def step_seconds_at(
    num_nodes: int, batch_sizes: tuple[int, ...], fan_outs: tuple[int, ...]
) -> xr.Dataset:
    """`step_seconds` on a grid of one's own, over `device`, `batch_size` and `fan_out`.

    Where a cell was measured, as it is; between cells linear in the logarithms of b and β and of the
    time, beyond them that of the nearest cell. Of several problem sizes the nearest to `num_nodes`
    that the device has.
    """
    table = step_seconds()
    found = []
    for device in table["device"].values:
        one = table.sel(device=[device]).dropna("num_nodes", how="all")
        one = one.sel(num_nodes=num_nodes, method="nearest", drop=True)
        for axis, wanted in (("batch_size", batch_sizes), ("fan_out", fan_outs)):
            one = one.dropna(axis, how="all")
            known = one[axis].values
            logs = np.log(np.clip(wanted, known[0], known[-1]))
            at = xr.DataArray(logs, dims=axis, coords={axis: list(wanted)})
            logs_of_times = xr.apply_ufunc(np.log, one.assign_coords({axis: np.log(known)}))
            one = xr.apply_ufunc(np.exp, logs_of_times.interp({axis: at}))
        found.append(one)
    return xr.concat(found, "device").transpose("device", "batch_size", "fan_out")
