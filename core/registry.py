"""The studies of the suite, by an explicit tuple: package scans can't see mapped folders."""

import importlib
from typing import TYPE_CHECKING

from boundlab.checks import check_choice

if TYPE_CHECKING:
    from boundlab.experiment import Study

STUDY_NAMES = (
    "excess_risk",
    "fanout",
    "graph_diffusion",
    "policy_optimization",
    "team_learning",
)


def studies() -> "tuple[Study, ...]":
    """All studies, sorted by name."""
    return tuple(study(name) for name in sorted(STUDY_NAMES))


def study(name: str) -> "Study":
    """The study called `name`; `ValueError` listing the known ones if there is none."""
    check_choice("study", name, STUDY_NAMES)
    return importlib.import_module(f"boundlab.analysis.{name}").STUDY
