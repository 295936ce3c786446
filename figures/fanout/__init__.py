"""Figures of the study of full-graph against mini-batch training, from its dataset alone."""

import xarray as xr
from matplotlib.figure import Figure

from boundlab.figures.fanout import (
    blocks,
    cost,
    moments,
    published,
    ridge,
    stopping,
    three_layers,
    transport,
)
from boundlab.figures.style import drawn_in_order

PARTS = (stopping, published, three_layers, ridge, moments, transport, blocks, cost)


def draw(dataset: xr.Dataset) -> dict[str, tuple[Figure, str]]:
    """Every figure of the study under its name, E1 to E9 in order, with its caption."""
    return drawn_in_order(PARTS, dataset)
