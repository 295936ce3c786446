"""The study of the excess risk of SGD and ridge on graphs: its parts, put together."""

import jax
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.excess_risk import (
    citation,
    comparison,
    correlated_rows,
    depth,
    learning_curves,
    learning_curves_claims,
    relu_teachers,
    stability,
    structure,
)
from boundlab.analysis.excess_risk.config import PRESETS, Config
from boundlab.experiment import Repeat, Study
from boundlab.parts import run_parts

__all__ = ["PRESETS", "STUDY", "Config"]

# A part's place decides its key, so that its draws don't depend on the parts that follow.
PARTS = (
    learning_curves,
    stability,
    relu_teachers,
    correlated_rows,
    comparison,
    structure,
    depth,
    citation,
)


def experiment(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Run every part and merge the datasets; variables and dims carry their part's name."""
    datasets = run_parts(PARTS, config, key, repeat)
    seeds = {"seed": range(config.num_seeds), "design": range(config.num_designs)}
    merged = xr.merge(datasets, join="exact", combine_attrs="no_conflicts").assign_coords(seeds)
    return describe(merged, "dimensionless (signal power 1)")


STUDY = Study(
    name="excess_risk",
    title="Excess risk of SGD and ridge on graphs",
    sources=(
        "su2025interplay",
        "zou2023benign",
        "zou2021benefits",
        "tsigler2023benign",
        "simon2023eigenlearning",
        "atanasov2024risk",
        "wu2023relu",
        "chung2003spectra",
    ),
    presets=PRESETS,
    experiment=experiment,
    claims=(
        *learning_curves_claims.CLAIMS,
        *stability.CLAIMS,
        *relu_teachers.CLAIMS,
        *correlated_rows.CLAIMS,
        *comparison.CLAIMS,
        *structure.CLAIMS,
        *depth.CLAIMS,
        *citation.CLAIMS,
    ),
    costs={"smoke": "40 s", "quick": "1 min", "paper": "about 1 h (estimated)"},
)
