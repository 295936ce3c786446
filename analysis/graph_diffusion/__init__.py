"""The study of coupled-SDE graph diffusion: its parts, put together."""

import jax
import xarray as xr

from boundlab.analysis.graph_diffusion import (
    coupling,
    edges,
    generation,
    horizon,
    ladder,
    learned,
    metrics,
    paradigms,
    topology,
)
from boundlab.analysis.graph_diffusion.config import PRESETS, Config
from boundlab.experiment import Repeat, Study
from boundlab.parts import run_parts

__all__ = ["PRESETS", "STUDY", "Config"]

# A part's place decides its key, so that its draws don't depend on the parts that follow.
PARTS = (generation, learned, topology, edges, paradigms, coupling, metrics, ladder, horizon)


def experiment(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Run every part and merge the datasets; variables and dims carry their part's name."""
    datasets = run_parts(PARTS, config, key, repeat)
    return xr.merge(datasets, join="exact", combine_attrs="no_conflicts")


STUDY = Study(
    name="graph_diffusion",
    title="Coupled-SDE graph diffusion, with its error beside its bound",
    sources=(
        "su2025nonasymptotic",
        "jo2022score",
        "pierret2025diffusion",
        "chen2023sampling",
        "chen2023improved",
        "benton2024nearly",
        "song2021score",
        "niu2020permutation",
        "gretton2012kernel",
        "hocevar2014combinatorial",
    ),
    presets=PRESETS,
    experiment=experiment,
    claims=tuple(claim for part in PARTS for claim in part.CLAIMS),
    costs={"smoke": "30 s", "quick": "2 min", "paper": "a night (estimated)"},
    shown="generation",
)
