"""Figures of the study of full-graph against mini-batch training, from its dataset alone."""

import re

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

PARTS = (stopping, published, three_layers, ridge, moments, transport, blocks, cost)


def draw(dataset: xr.Dataset) -> dict[str, tuple[Figure, str]]:
    """Every figure of the study under its name, E1 to E9 in order, with its caption."""
    drawn: dict[str, tuple[Figure, str]] = {}
    for part in PARTS:
        drawn |= part.draw(dataset)
    return dict(sorted(drawn.items(), key=lambda item: _place(item[0])))


def _place(name: str) -> tuple[int, str]:
    """Number and letter of a name like E1b-published."""
    found = re.match(r"E(\d+)(\w*)-", name)
    assert found is not None, name
    return int(found[1]), found[2]
