"""The study of policy losses, trust regions and stale gradients: its parts, put together."""

import jax
import xarray as xr

from boundlab.analysis.policy_optimization import (
    alignment,
    delays,
    drift,
    gates,
    language,
    language_tool,
    losses,
    region,
)
from boundlab.analysis.policy_optimization.config import PRESETS, Config
from boundlab.experiment import Repeat, Study
from boundlab.parts import run_parts

__all__ = ["PRESETS", "STUDY", "Config"]

# A part's place decides its key, so that its draws don't depend on the parts that follow.
PARTS = (gates, losses, region, delays, alignment, drift, language)


def experiment(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Run every part and merge the datasets; variables and dims carry their part's name."""
    datasets = run_parts(PARTS, config, key, repeat)
    return xr.merge(datasets, join="exact", combine_attrs="no_conflicts")


STUDY = Study(
    name="policy_optimization",
    title="Policy losses, trust regions and stale gradients",
    sources=(
        "li2026fibration",
        "xu2026gac",
        "schulman2015trust",
        "schulman2017proximal",
        "kakade2002approximately",
        "achiam2017constrained",
        "shao2024deepseekmath",
        "zheng2025group",
        "arjevani2020tight",
        "joyai2026flash",
    ),
    presets=PRESETS,
    experiment=experiment,
    claims=tuple(claim for part in PARTS for claim in part.CLAIMS),
    costs={"smoke": "30 s", "quick": "1 min", "paper": "an hour (estimated)"},
    tool=language_tool.TOOL,
)
