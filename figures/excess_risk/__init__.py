"""Figures of the excess-risk study, from its dataset alone."""

import xarray as xr
from matplotlib.figure import Figure

from boundlab.figures.excess_risk import (
    citation,
    comparison,
    correlated_rows,
    depth,
    learning_curves,
    relu_teachers,
    stability,
    structure,
)
from boundlab.figures.style import drawn_in_order

PARTS = (
    structure,
    learning_curves,
    depth,
    relu_teachers,
    stability,
    comparison,
    correlated_rows,
    citation,
)


def draw(dataset: xr.Dataset) -> dict[str, tuple[Figure, str]]:
    """Every figure of the study under its name, F1 to F11 in order, with its caption."""
    return drawn_in_order(PARTS, dataset)
