"""Figures of the study of coupled-SDE graph diffusion, from its dataset alone."""

import re

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

PARTS = (topology, horizon, ladder, paradigms, edges, coupling, learned, metrics, generation)


def draw(dataset: xr.Dataset) -> dict[str, tuple[Figure, str]]:
    """Every figure of the study under its name, E1 to E10 in order, with its caption."""
    drawn: dict[str, tuple[Figure, str]] = {}
    for part in PARTS:
        drawn |= part.draw(dataset)
    return dict(sorted(drawn.items(), key=lambda item: _place(item[0])))


def _place(name: str) -> tuple[int, str]:
    """Number and letter of a name like E1b-normalisation."""
    found = re.match(r"E(\d+)(\w*)-", name)
    assert found is not None, name
    return int(found[1]), found[2]
