"""What the paper's own numbers say: exponents of its tables, its targets, and the best of many cells.

Nothing is trained here. Variables are named published_…; a case is a table of iterations, padded with
NaN to the largest one. Scores of cells are drawn as N(0, 1) in units of their standard deviation.
"""

import jax
import numpy as np
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.fanout import published_tables as tables
from boundlab.analysis.fanout.config import Config
from boundlab.analysis.fanout.published_claims import CLAIMS as CLAIMS
from boundlab.experiment import Repeat
from boundlab.theory.fanout.order_statistics import expected_maximum
from boundlab.theory.fanout.published_rates import paper_elasticities
from boundlab.theory.fanout.trivial_losses import (
    explained_share,
    relu_binary_cross_entropy_floor,
    zero_predictor_loss,
)

CASES = tuple((name, loss) for loss in tables.LOSSES for name in tables.ITERATION_DATASETS)
NUM_CELLS = (5, 10, 20, 35)
RESAMPLES = 2000
LEVEL = 0.95
CODE_TARGET = 0.025
"""Target loss that the authors' scripts set unless told otherwise."""


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Fitted exponents beside the theorems', targets beside trivial losses, and selection bias."""
    del repeat  # a few thousand normal numbers need no compiled sweep
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
    pieces = [_exponents(), _targets(), _accuracies(rng), _selection(config, rng)]
    return describe(xr.merge(pieces, join="exact"), "dimensionless")


def _exponents() -> xr.Dataset:
    iterations = [tables.published_iterations(name, loss) for name, loss in CASES]
    shape = (len(CASES), *np.max([table.shape for table in iterations], axis=0))
    padded = {name: np.full(shape, np.nan) for name in ("iterations", "fitted", "theorem")}
    batch_size, fan_out = np.full(shape[:2], np.nan), np.full((shape[0], shape[2]), np.nan)
    fitted, stated = np.empty((len(CASES), 2)), np.empty((len(CASES), 2))
    explained, left = np.empty(len(CASES)), np.empty((len(CASES), 2))
    for i, ((_, loss), table) in enumerate(zip(CASES, iterations, strict=True)):
        fit = tables.fit_elasticities(table)
        fitted[i] = fit.batch_size, fit.fan_out
        stated[i] = paper_elasticities(loss)
        explained[i] = fit.r_squared
        b, beta = table["batch_size"].values, table["fan_out"].values
        rows, columns = table.shape
        batch_size[i, :rows], fan_out[i, :columns] = b, beta
        padded["iterations"][i, :rows, :columns] = table.values
        for j, slopes in enumerate((fitted[i], stated[i])):
            left[i, j] = tables.unexplained(table, slopes[0], slopes[1])
        finite = np.isfinite(beta)
        shaped = fit.batch_size * np.log(b)[:, None] + fit.fan_out * np.log(beta[finite])
        constant = np.mean(np.log(table.values[:, finite]) - shaped)
        padded["fitted"][i, :rows, : finite.sum()] = np.exp(constant + shaped)
        # The theorem speaks of slopes: each fan-out keeps its own level, at the middle of ln b.
        rise = stated[i, 0] * (np.log(b) - np.log(b).mean())
        level = np.log(table.values).mean(axis=0)
        padded["theorem"][i, :rows, :columns] = np.exp(rise[:, None] + level)
    case, axis = "published_case", "published_axis"
    cells = (case, "published_row", "published_column")
    stated_as = {"source": "liu2026full, Theorems 1 and 2"}
    return xr.Dataset(
        {
            "published_batch_size": (cells[:2], batch_size, {"units": "nodes"}),
            "published_fan_out": ((case, cells[2]), fan_out, {"units": "neighbours"}),
            "published_iterations": (
                cells,
                padded["iterations"],
                {"units": "iterations", "source": "liu2025draft"},
            ),
            "published_fitted": (cells, padded["fitted"], {"units": "iterations"}),
            "published_theorem": (
                cells,
                padded["theorem"],
                {"long_name": "the theorem's exponent of b at each fan-out's own level"}
                | {"units": "iterations"}
                | stated_as,
            ),
            "published_exponent": ((case, axis), fitted, {"long_name": "fitted exponent"}),
            "published_theorem_exponent": ((case, axis), stated, stated_as),
            "published_r_squared": (case, explained, {"long_name": "R² of the fitted exponents"}),
            "published_unexplained": (
                (case, "published_law"),
                left,
                {"long_name": "variance of ln T left, relative to that around a constant"},
            ),
        },
        coords={
            case: [f"{name}, {loss.replace('_', '-')}" for name, loss in CASES],
            axis: ["batch_size", "fan_out"],
            "published_law": ["fitted", "theorem"],
        },
    )


def _targets() -> xr.Dataset:
    """The published target losses against what costs nothing, found by evaluating the losses."""
    rows = tables.read("targets")
    classes = [int(row["num_classes"]) for row in rows]
    targets = np.array([float(row["target_loss"]) for row in rows])
    run_dim = "published_runs"
    values = {
        "published_target": targets,
        "published_target_explained": np.array(
            [explained_share(target, k) for target, k in zip(targets, classes, strict=True)]
        ),
        "published_zero_loss": np.array([np.mean((0.0 - np.eye(k)) ** 2) for k in classes]),
        "published_zero_formula": np.array([zero_predictor_loss(k) for k in classes]),
        "published_bce_minimum": np.array([_smallest_bce(k) for k in classes]),
        "published_bce_floor": np.array([relu_binary_cross_entropy_floor(k) for k in classes]),
        "published_bce_target": np.full(len(rows), CODE_TARGET),
    }
    return xr.Dataset(
        {name: (run_dim, value) for name, value in values.items()},
        coords={run_dim: [row["runs"] for row in rows]},
    )


def _smallest_bce(num_classes: int) -> float:
    """Least binary cross-entropy with targets (y + 1)/2 over logits in [0, 60], by search."""
    from scipy.optimize import minimize_scalar

    def least(target: float) -> float:
        found = minimize_scalar(
            lambda x: np.logaddexp(0.0, x) - target * x, bounds=(0.0, 60.0), method="bounded"
        )
        return float(found.fun)

    return (least(1.0) + (num_classes - 1) * least(0.5)) / num_classes


def _accuracies(rng: np.random.Generator) -> xr.Dataset:
    """The gain of the best cell over full-graph training, and how far chance alone would take it."""
    from scipy.stats import norm

    names = ("gain", "no_better", "single", "spread", "by_chance", "chance_low", "chance_high")
    columns: dict[str, list[float]] = {f"published_{name}": [] for name in names}
    for dataset in tables.ACCURACY_DATASETS:
        table = tables.published_accuracy(dataset)
        full = float(table.isel(batch_size=-1).sel(fan_out=np.inf))
        cells = table.values[np.isfinite(table.values)]
        sampled = np.delete(cells, int(np.flatnonzero(cells == full)[-1]))
        gain, spread = float(sampled.max() - full), float(np.std(sampled, ddof=1))
        drawn = rng.choice(sampled, size=(RESAMPLES, len(sampled)))
        largest = float(expected_maximum(len(sampled)))
        low, high = np.quantile(np.std(drawn, axis=1, ddof=1), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        row = (
            gain,
            np.mean(cells <= full),
            norm.sf(gain / spread),
            spread,
            spread * largest,
            low * largest,
            high * largest,
        )
        for name, value in zip(columns, row, strict=True):
            columns[name].append(float(value))
    described = {
        "published_gain": "best sampled cell − full-graph cell",
        "published_no_better": "share of cells no better than the full-graph cell",
        "published_single": "normal p-value of the gain, as if one cell had been tried",
        "published_spread": "standard deviation among the sampled cells",
        "published_by_chance": "standard deviation × expected maximum",
        "published_chance_low": f"lower end of the {LEVEL:.0%} bootstrap interval",
        "published_chance_high": f"upper end of the {LEVEL:.0%} bootstrap interval",
    }
    shares = ("published_no_better", "published_single")
    return xr.Dataset(
        {
            name: (
                "published_dataset",
                values,
                {
                    "long_name": described[name],
                    "units": "dimensionless" if name in shares else "percentage points",
                },
            )
            for name, values in columns.items()
        },
        coords={"published_dataset": list(tables.ACCURACY_DATASETS)},
    )


def _selection(config: Config, rng: np.random.Generator) -> xr.Dataset:
    """Best of m equal cells: the score by which it was chosen, and its score on fresh test nodes."""
    chosen_by, fresh = rng.standard_normal((2, config.selection_draws, max(NUM_CELLS)))
    best = [chosen_by[:, :m].argmax(axis=1) for m in NUM_CELLS]
    pick = np.arange(config.selection_draws)
    drawn, cells = "published_seed", "published_num_cells"
    units = {"units": "standard deviations of a score"}
    return xr.Dataset(
        {
            "published_chosen": (
                (drawn, cells),
                np.stack([chosen_by[pick, at] for at in best], axis=1),
                {"long_name": "score of the best cell, on the nodes that chose it"} | units,
            ),
            "published_retested": (
                (drawn, cells),
                np.stack([fresh[pick, at] for at in best], axis=1),
                {"long_name": "score of the same cell on other nodes"} | units,
            ),
            "published_expected_maximum": (
                cells,
                np.array([expected_maximum(m) for m in NUM_CELLS]),
                {"long_name": "E max of m standard normal numbers"} | units,
            ),
            "published_extreme_value": (
                cells,
                np.sqrt(2 * np.log(NUM_CELLS)),
                {"long_name": "leading term √(2 ln m)"} | units,
            ),
        },
        coords={drawn: np.arange(config.selection_draws), cells: list(NUM_CELLS)},
    )
