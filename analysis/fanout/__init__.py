"""The study of full-graph against mini-batch training: its parts, put together, and its adviser."""

import jax
import xarray as xr

from boundlab.analysis.fanout import (
    advice_tool,
    blocks,
    cost,
    exact,
    moments,
    published,
    ridge,
    stopping,
    three_layers,
    transport,
)
from boundlab.analysis.fanout.advice import Advice, advise
from boundlab.analysis.fanout.config import PRESETS, Config
from boundlab.analysis.fanout.published_tables import (
    FittedElasticities,
    fit_elasticities,
    published_accuracy,
    published_iterations,
)
from boundlab.experiment import Repeat, Study
from boundlab.parts import run_parts

__all__ = [
    "PRESETS",
    "STUDY",
    "Advice",
    "Config",
    "FittedElasticities",
    "advise",
    "fit_elasticities",
    "published_accuracy",
    "published_iterations",
]

# A part's place decides its key, so that its draws don't depend on the parts that follow.
PARTS = (stopping, ridge, three_layers, moments, blocks, transport, cost, exact, published)


def experiment(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Run every part and merge the datasets; variables and dims carry their part's name."""
    datasets = run_parts(PARTS, config, key, repeat)
    return xr.merge(datasets, join="exact", combine_attrs="no_conflicts")


STUDY = Study(
    name="fanout",
    title="Full-graph against mini-batch training, through batch size and fan-out",
    sources=(
        "liu2026full",
        "liu2025draft",
        "hamilton2017inductive",
        "kipf2017semi",
        "velickovic2018graph",
        "gelbrich1990formula",
        "bentley1987floyd",
    ),
    presets=PRESETS,
    experiment=experiment,
    claims=tuple(claim for part in PARTS for claim in part.CLAIMS),
    costs={"smoke": "1 min", "quick": "1.5 min", "paper": "a night (estimated)"},
    tool=advice_tool.TOOL,
)
