"""Figures of the study of policy losses, from its dataset alone."""

import xarray as xr
from matplotlib.figure import Figure

from boundlab.figures.policy_optimization import (
    alignment,
    delays,
    drift,
    gates,
    language,
    losses,
    region,
)
from boundlab.figures.style import drawn_in_order

PARTS = (gates, losses, drift, region, delays, alignment, language)


def draw(dataset: xr.Dataset) -> dict[str, tuple[Figure, str]]:
    """Every figure of the study under its name, F1 to F12 in order; F12 where the example was trained."""
    return drawn_in_order(PARTS, dataset)
