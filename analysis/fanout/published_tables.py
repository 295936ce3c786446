"""The paper's tables as data, and the exponents that fit them.

The numbers are the paper's (its figures and the tables of its earlier version), never measured here.
Symbols: T iterations to the target loss, b batch size, β fan-out.
"""

import csv
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from boundlab.checks import check_choice, fail

ITERATION_DATASETS = ("products", "reddit", "arxiv")
LOSSES = ("mse", "cross_entropy")
ACCURACY_DATASETS = ("products", "reddit", "arxiv", "papers100m")


class FittedElasticities(NamedTuple):
    """Exponents of T ∝ b^{batch_size}·β^{fan_out}, and the share of the variance of ln T they explain."""

    batch_size: float
    fan_out: float
    r_squared: float


def published_iterations(dataset: str, loss: str) -> xr.DataArray:
    """Iterations to the target loss that the paper reports for its three-layer GraphSAGE.

    Args:
        dataset: `products`, `reddit` or `arxiv`.
        loss: `mse` or `cross_entropy`.

    Returns:
        Array over `batch_size` (nodes; "full" is n_train) and `fan_out` ("all" is ∞), float, with the
        unit and the origin in `attrs`.

    Raises:
        ValueError: `dataset` or `loss` is none of these.

    Source: liu2025draft, heat maps of iteration-to-loss; the same target in every cell of a table.

    """
    check_choice("dataset", dataset, ITERATION_DATASETS)
    check_choice("loss", loss, LOSSES)
    rows = [row for row in read("iterations") if (row["dataset"], row["loss"]) == (dataset, loss)]
    name = "iterations to the target loss"
    return _table(dataset, rows, "iterations", {"long_name": name, "units": "iterations"})


def published_accuracy(dataset: str) -> xr.DataArray:
    """Test accuracy (%) that the paper reports for its GraphSAGE trained with cross-entropy.

    Args:
        dataset: `products`, `reddit`, `arxiv` or `papers100m` (NaN where no number is given).

    Returns:
        Array over `batch_size` and `fan_out` as that of `published_iterations`.

    Raises:
        ValueError: `dataset` is none of these.

    Source: liu2025draft, heat maps of test accuracy; single runs, no seeds are reported.

    """
    check_choice("dataset", dataset, ACCURACY_DATASETS)
    rows = [row for row in read("accuracy") if row["dataset"] == dataset]
    return _table(dataset, rows, "test_accuracy", {"long_name": "test accuracy", "units": "%"})


def fit_elasticities(table: xr.DataArray) -> FittedElasticities:
    """Exponents of batch size and fan-out by least squares of ln T on (1, ln b, ln β).

    Infinite fan-outs have no logarithm and are left out; every other cell counts once.

    Args:
        table: positive numbers T over the dims `batch_size` and `fan_out`, both with positive
            coordinates, as `published_iterations` returns them.

    Returns:
        The two slopes and R² (NaN if T is the same in every cell).

    Raises:
        ValueError: `table` is no such array: other dims, no coordinates, values that are NaN,
            infinite or not positive, fewer than three cells, or a single batch size or fan-out.

    Source: derived (docs/fanout.md, Published numbers).

    """
    design, log_table = _design(table)
    slopes, *_ = np.linalg.lstsq(design, log_table, rcond=None)
    total = float(np.sum((log_table - log_table.mean()) ** 2))
    left = float(np.sum((log_table - design @ slopes) ** 2))
    rounding = len(log_table) * (1e-14 * (1.0 + float(np.abs(log_table).max()))) ** 2
    r_squared = 1.0 - left / total if total > rounding else float("nan")
    return FittedElasticities(float(slopes[1]), float(slopes[2]), r_squared)


def unexplained(table: xr.DataArray, batch_size: float, fan_out: float) -> float:
    """Variance of ln T that given exponents leave, relative to that which a constant leaves.

    The constant factor is fitted. 1 − R² at the fitted exponents; above 1, a constant does better.
    """
    design, log_table = _design(table)
    residual = log_table - design[:, 1] * batch_size - design[:, 2] * fan_out
    return float(np.var(residual) / np.var(log_table))


def read(name: str) -> list[dict[str, str]]:
    """The rows of one of the shipped tables."""
    source = resources.files("boundlab.analysis.fanout").joinpath("data", f"published_{name}.csv")
    return list(csv.DictReader(source.read_text(encoding="utf-8").splitlines()))


def _table(
    dataset: str, rows: list[dict[str, str]], quantity: str, described: dict[str, str]
) -> xr.DataArray:
    whole = next(row["num_train"] for row in read("datasets") if row["dataset"] == dataset)
    replaced = {"full": float(whole), "all": np.inf}
    batch_size, fan_out = (
        np.array([replaced.get(row[axis]) or float(row[axis]) for row in rows])
        for axis in ("batch_size", "fan_out")
    )
    b, first = np.unique(batch_size, return_inverse=True)
    beta, second = np.unique(fan_out, return_inverse=True)
    values = np.full((len(b), len(beta)), np.nan)
    values[first, second] = [float(row[quantity]) for row in rows]
    return xr.DataArray(
        values,
        dims=("batch_size", "fan_out"),
        coords={"batch_size": b, "fan_out": beta},
        name=quantity,
        attrs={**described, "source": "liu2025draft", "dataset": dataset},
    )


def _design(table: Any) -> tuple[np.ndarray, np.ndarray]:
    """Columns (1, ln b, ln β) and ln T of the cells with a finite fan-out."""
    if not isinstance(table, xr.DataArray):
        raise fail("table", f"a {type(table).__name__}", "an xarray.DataArray")
    if set(table.dims) != {"batch_size", "fan_out"}:
        raise fail("table", f"dims {table.dims}", "the dims batch_size and fan_out")
    missing = {"batch_size", "fan_out"} - set(table.coords)
    if missing:
        raise fail("table", f"no coordinate {min(missing)!r}", "coordinates of both dims")
    table = table.transpose("batch_size", "fan_out")
    arrays = []
    for array in (table["batch_size"].values, table["fan_out"].values, table.values):
        if array.dtype.kind not in "iuf":
            raise fail("table", f"values of type {array.dtype}", "real numbers")
        arrays.append(array.astype(np.float64))
    batch_size, fan_out, values = arrays
    kept = fan_out != np.inf
    fan_out, values = fan_out[kept], values[:, kept]
    for what, array in (("batch_size", batch_size), ("fan_out", fan_out), ("cell", values)):
        bad = ~(np.isfinite(array) & (array > 0))
        if bad.any():
            raise fail("table", f"a {what} {array[bad].flat[0]}", "positive finite numbers")
    if values.size < 3:
        raise fail("table", f"{values.size} cells of finite fan-out", "at least three")
    for what, array in (("batch_size", batch_size), ("fan_out", fan_out)):
        if len(np.unique(array)) < 2:
            raise fail("table", f"one {what}", f"at least two different values of {what}")
    log_b, log_beta = np.broadcast_arrays(np.log(batch_size)[:, None], np.log(fan_out))
    design = np.stack([np.ones(values.size), log_b.ravel(), log_beta.ravel()], axis=1)
    return design, np.log(values).ravel()
