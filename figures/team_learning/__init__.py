"""Figures of the study of teams of agents, from its dataset alone."""

import xarray as xr
from matplotlib.figure import Figure

from boundlab.figures.style import drawn_in_order
from boundlab.figures.team_learning import (
    bandit,
    bounds,
    chain,
    coupling,
    digits,
    gradients,
    regression,
)

PARTS = (bandit, bounds, coupling, gradients, chain, regression, digits)


def draw(dataset: xr.Dataset) -> dict[str, tuple[Figure, str]]:
    """Every figure of the study under its name, F1 to F11 in order, with its caption."""
    return drawn_in_order(PARTS, dataset)
