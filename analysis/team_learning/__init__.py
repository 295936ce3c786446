"""The study of teams of agents: its parts, put together, and its adviser."""

import jax
import xarray as xr

from boundlab.analysis.team_learning import (
    advice_tool,
    bandit,
    bounds,
    chain,
    coupling,
    digits,
    gradients,
    regression,
)
from boundlab.analysis.team_learning.advice import Advice, advise
from boundlab.analysis.team_learning.config import PRESETS, Config
from boundlab.experiment import Repeat, Study
from boundlab.parts import run_parts

__all__ = ["PRESETS", "STUDY", "Advice", "Config", "advise"]

# A part's place decides its key, so that its draws don't depend on the parts that follow.
PARTS = (coupling, bandit, digits, chain, bounds, gradients, regression)


def experiment(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Run every part and merge the datasets; variables and dims carry their part's name."""
    datasets = run_parts(PARTS, config, key, repeat)
    return xr.merge(datasets, join="exact", combine_attrs="no_conflicts")


STUDY = Study(
    name="team_learning",
    title="When do teams of agents learn faster? Many agents against one",
    sources=(
        "su2026when",
        "bechhofer1954single",
        "mannor2004sample",
        "kaufmann2016complexity",
        "ross2010efficient",
    ),
    presets=PRESETS,
    experiment=experiment,
    claims=tuple(claim for part in PARTS for claim in part.CLAIMS),
    costs={"smoke": "30 s", "quick": "1 min", "paper": "hours (estimated)"},
    tool=advice_tool.TOOL,
)
