"""Layout of the part on generation, its graphs, and where they are drawn."""

from collections.abc import Callable

import jax
import networkx as nx
import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.graph_diffusion import generation
from boundlab.analysis.graph_diffusion.config import PRESETS
from boundlab.analysis.graph_diffusion.graph_drawing import positions
from boundlab.models.benchmark_graphs import MOST_NODES
from boundlab.models.graph_batches import GraphBatch

CONFIG = PRESETS["smoke"]


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("graph_diffusion", "generation_")


@pytest.fixture(scope="module")
def neighbourhoods() -> tuple[GraphBatch, ...]:
    return generation._split(CONFIG, jax.random.key(3), "neighbourhoods")


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("generation_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    loss = dataset["generation_loss"]
    assert (loss.isel(generation_tenth=-1) < loss.isel(generation_tenth=0)).all()


def test_shown_graphs(dataset: xr.Dataset) -> None:
    """Symmetric, without loops, and drawn where a node is; training graphs have all their nodes."""
    dims = ("generation_set", "generation_row", "generation_graph")
    edges = dataset["generation_edges"].transpose(*dims, ...).values
    np.testing.assert_array_equal(edges, edges.swapaxes(-1, -2))
    assert not edges[..., np.arange(MOST_NODES), np.arange(MOST_NODES)].any()
    places = dataset["generation_position"].transpose(*dims, "generation_node", ...).values
    nodes = np.isfinite(places).all(axis=-1)
    assert not edges[~nodes].any()
    assert set(nodes[0, 0].sum(axis=-1)) <= set(range(12, 21, 2))


def test_neighbourhoods(neighbourhoods: tuple[GraphBatch, ...]) -> None:
    """Of the right number and sizes, the centre joined to all others."""
    found = neighbourhoods
    counts = CONFIG.generation_train_graphs, generation.TEST_GRAPHS
    assert tuple(len(batch.mask) for batch in found[:2]) == counts
    sizes = np.concatenate([batch.mask.sum(axis=1) for batch in found])
    assert sizes.min() >= 4
    assert sizes.max() <= 18
    for batch in found:
        np.testing.assert_array_equal(batch.adjacency[:, 0].sum(axis=1) + 1, batch.mask.sum(axis=1))


def test_features_are_one_hot_degrees(neighbourhoods: tuple[GraphBatch, ...]) -> None:
    train = neighbourhoods[0]
    rows = generation._one_hot_degrees(train)
    degrees = train.adjacency.sum(axis=2)
    np.testing.assert_array_equal(rows.sum(axis=2), train.mask)
    np.testing.assert_array_equal(rows.argmax(axis=2), np.minimum(degrees, 9))


def test_drawing_follows_distances() -> None:
    """A path is drawn straight and a cycle round; components lie apart; nothing is infinite."""
    path, cycle = (nx.to_numpy_array(make(8)) for make in (nx.path_graph, nx.cycle_graph))
    apart = nx.to_numpy_array(nx.disjoint_union(nx.complete_graph(5), nx.complete_graph(3)))
    whole = np.ones((3, 8), bool)
    found = positions(np.stack([path, cycle, apart]), whole)
    steps = np.linalg.norm(np.diff(found[0], axis=0), axis=1)
    assert np.linalg.norm(found[0, 7] - found[0, 0]) > 0.95 * steps.sum()
    radius = np.linalg.norm(found[1] - found[1].mean(axis=0), axis=1)
    np.testing.assert_allclose(radius, radius[0], rtol=1e-3)
    gap = np.linalg.norm(found[2, :, None] - found[2, None, :], axis=-1)
    assert gap[:5, 5:].min() > gap[:5, :5].max()
    assert np.abs(found).max() <= 1 + 1e-12
    mask = np.array([[True, False, False]])
    alone = positions(np.zeros((1, 3, 3)), mask)
    np.testing.assert_array_equal(alone[0, 0], [0, 0])
    assert np.isnan(alone[0, 1:]).all()
