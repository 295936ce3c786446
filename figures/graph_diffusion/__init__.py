"""Figures of the study of coupled-SDE graph diffusion, from its dataset alone."""

import xarray as xr
from matplotlib.figure import Figure

from boundlab.figures.graph_diffusion import (
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
from boundlab.figures.style import drawn_in_order

PARTS = (topology, horizon, ladder, paradigms, edges, coupling, learned, metrics, generation)


def draw(dataset: xr.Dataset) -> dict[str, tuple[Figure, str]]:
    """Every figure of the study under its name, E1 to E10 in order, with its caption."""
    return drawn_in_order(PARTS, dataset)
