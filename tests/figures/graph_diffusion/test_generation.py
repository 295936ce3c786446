"""Figure of the part on generation: what it shows, from a dataset of the part's own layout."""

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from boundlab.figures.graph_diffusion import generation


@pytest.fixture(params=[("communities",), ("communities", "neighbourhoods")])
def dataset(request: pytest.FixtureRequest) -> Iterator[xr.Dataset]:
    rng = np.random.default_rng(0)
    sets = list(request.param)
    sources = ["networks", "other graphs of the law", "random edges, same density"]
    shape = (len(sets), 2, 3, 5)
    edges = np.triu(rng.random((*shape, 5)) < 0.5, 1)
    places = rng.random((*shape, 2))
    places[..., 4, :] = np.nan  # no node
    edges[..., 4] = False
    dims = ("generation_set", "generation_row", "generation_graph", "generation_node")
    yield xr.Dataset(
        {
            "generation_mmd": (
                ("generation_set", "generation_source", "generation_seed", "generation_kernel"),
                rng.random((len(sets), 3, 6, 4)),
            ),
            "generation_edges": ((*dims, "generation_neighbor"), edges.astype(np.int8)),
            "generation_position": ((*dims, "generation_axis"), places),
        },
        {
            "generation_set": sets,
            "generation_source": sources,
            "generation_kernel": ["degree", "clustering", "orbits", "spectrum"],
            "generation_row": ["training", "generated"],
        },
    )
    plt.close("all")


def test_what_is_drawn(dataset: xr.Dataset) -> None:
    drawn = generation.draw(dataset)
    assert list(drawn) == ["E10-generation"]
    figure, caption = drawn["E10-generation"]
    assert len(caption) > 80
    sets = dataset.sizes["generation_set"]
    graphs, charts = figure.subfigs
    assert len(charts.axes) == sets
    axes = [axis for block in graphs.subfigs for axis in block.axes]
    assert len(axes) == sets * 2 * 3
    part = dataset.isel(generation_set=0, generation_row=0, generation_graph=0)
    lines = axes[0].lines
    assert len(lines) == int(np.triu(part["generation_edges"].values).sum()) + 1
    np.testing.assert_array_equal(lines[-1].get_xydata(), part["generation_position"].values)
