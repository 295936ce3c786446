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

PARTS = (
    structure,
    learning_curves,
    comparison,
    depth,
    relu_teachers,
    stability,
    correlated_rows,
    citation,
)


def draw(dataset: xr.Dataset) -> dict[str, tuple[Figure, str]]:
    """Every figure of the study under its name, with its caption."""
    drawn: dict[str, tuple[Figure, str]] = {}
    for part in PARTS:
        drawn |= part.draw(dataset)
    return drawn
