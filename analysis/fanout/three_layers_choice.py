"""Target and hits of runs over a grid of cells, and what choosing the best cell is worth.

Variables are those of the part `three_layers`. Symbols: b batch size, β fan-out, T iterations.
"""

import jax
import numpy as np
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.models.stopping import held
from boundlab.theory.fanout import expected_maximum

CELL = ("sage_divisor", "sage_fan_out")
RULES = ("first hit", "held")
# The variance of the batch loss below which a window is quiet [liu2025draft, §5.1].
QUIET_VARIANCE = 5e-4


def quiet_target(losses: np.ndarray, window: int) -> float:
    """Target of the paper's heat maps: the largest loss of the first quiet window; median over runs.

    `losses` (runs, steps). A window is quiet if its variance is below 5·10⁻⁴; where none is, the one
    with the least variance is taken.
    """
    windows = np.lib.stride_tricks.sliding_window_view(losses, window, axis=-1)
    variance = windows.var(axis=-1)
    quiet = variance < QUIET_VARIANCE
    chosen = np.where(quiet.any(axis=-1), quiet.argmax(axis=-1), variance.argmin(axis=-1))
    largest = np.take_along_axis(windows.max(axis=-1), chosen[:, None], axis=-1)
    return float(np.median(largest))


def hits(losses: np.ndarray, target: float, window: int) -> tuple[np.ndarray, np.ndarray]:
    """Iterations and censoring by both rules: the first hit, and the first of `window` in a row."""
    flat = losses.reshape(-1, losses.shape[-1])
    found = [jax.vmap(lambda trace, w=w: held(trace, target, w))(flat) for w in (1, window)]
    shape = (*losses.shape[:-1], len(found))
    iterations = np.stack([np.asarray(hit.iterations, dtype=float) for hit in found], axis=-1)
    censored = np.stack([np.asarray(hit.censored) for hit in found], axis=-1)
    return iterations.reshape(shape), censored.reshape(shape)


def choice(runs: xr.Dataset) -> xr.Dataset:
    """The best cell of a seed's grid by test or by validation accuracy, and its worth on other seeds."""
    test, validation = (
        runs[name].transpose(*CELL, "sage_seed").values.reshape(-1, runs.sizes["sage_seed"])
        for name in ("sage_test_accuracy", "sage_validation_accuracy")
    )
    seeds = np.arange(test.shape[1])
    others = (test.sum(axis=1, keepdims=True) - test) / (len(seeds) - 1)
    # What a seed does to all cells alike has no part in the choice.
    lead = test - test.mean(axis=0)
    lead_of_others = (lead.sum(axis=1, keepdims=True) - lead) / (len(seeds) - 1)
    by_test, by_validation = test.argmax(axis=0), validation.argmax(axis=0)
    spread = np.sqrt(test.var(axis=1, ddof=1).mean())
    values = {
        "sage_chosen": (test[by_test, seeds], "test accuracy of the cell with the largest one"),
        "sage_chosen_again": (others[by_test, seeds], "that cell's mean on all other seeds"),
        "sage_lead": (lead[by_test, seeds], "its lead over the mean of that seed's grid"),
        "sage_lead_again": (lead_of_others[by_test, seeds], "that cell's mean lead on other seeds"),
        "sage_validated": (
            test[by_validation, seeds],
            "test accuracy of the cell best in validation",
        ),
        "sage_validated_again": (
            others[by_validation, seeds],
            "that cell's mean on all other seeds",
        ),
        "sage_full_graph": (test[-1], "test accuracy at b = n_train and the largest fan-out"),
    }
    shares = {
        name: xr.DataArray(value, dims="sage_seed", attrs={"long_name": words})
        for name, (value, words) in values.items()
    }
    shares["sage_by_chance"] = xr.DataArray(
        spread * float(expected_maximum(len(test))),
        attrs={"long_name": "standard deviation over seeds × expected maximum over the cells"},
    )
    shares["sage_extreme_value"] = xr.DataArray(
        spread * np.sqrt(2 * np.log(len(test))),
        attrs={"long_name": "standard deviation over seeds × leading term √(2 ln cells)"},
    )
    shares["sage_exponent"] = xr.DataArray(
        _elasticities(runs),
        dims=("sage_seed", "sage_axis"),
        attrs={"long_name": "exponent of T over the grid, first hits"},
    )
    described = xr.Dataset(shares, coords={"sage_axis": ["batch_size", "fan_out"]})
    return describe(described, "dimensionless")


def _elasticities(runs: xr.Dataset) -> np.ndarray:
    """Least squares of ln T on (1, ln b, ln β), a seed at a time."""
    hits = runs["sage_iterations"].sel(sage_rule="first hit").transpose("sage_seed", *CELL)
    b, beta = np.log(runs["sage_batch_size"].values), np.log(runs["sage_fan_out"].values)
    columns = [np.ones(hits.shape[1:]), b[:, None] + 0 * beta, 0 * b[:, None] + beta]
    design = np.stack([column.ravel() for column in columns], axis=1)
    log_t = np.log(hits.values.reshape(hits.shape[0], -1)).T
    slopes = np.linalg.lstsq(design, log_t, rcond=None)[0]
    return np.ascontiguousarray(slopes[1:].T)
