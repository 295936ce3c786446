"""Figures of the part on topology: what they show, from a dataset of the part's own layout."""

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from boundlab.figures.graph_diffusion import topology

AGGREGATIONS = ("sum", "row", "symmetric")
FAMILIES = ("regular", "power law", "star")


@pytest.fixture
def dataset() -> Iterator[xr.Dataset]:
    rng = np.random.default_rng(0)
    cases = [f"{f}, {k}" for f in (*FAMILIES, "Cora") for k in ("sum", "symmetric")]
    sizes = {
        "topology_aggregation": list(AGGREGATIONS),
        "topology_family": list(FAMILIES),
        "topology_nodes": [16, 64],
        "topology_draw": np.arange(3),
        "topology_noise_std": [0.3, 1.0],
        "topology_filter": ["sum", "symmetric", "symmetric / RMS"],
        "topology_horizon": [1.0, 2.0],
        "topology_case": cases,
        "topology_size": [5, 50],
        "topology_mode": np.arange(4),
        "topology_seed": np.arange(6),
    }

    def array(*dims: str) -> tuple[tuple[str, ...], np.ndarray]:
        names = tuple(f"topology_{dim}" for dim in dims)
        return names, 0.5 + rng.random([len(sizes[name]) for name in names])

    graph = ("aggregation", "family", "nodes", "draw")
    mode = ("case", "mode")
    data = {
        "topology_w2": array(*graph),
        "topology_kl": array(*graph),
        "topology_bound": array(*graph),
        "topology_horizon_kl": array("noise_std", "filter", "family", "horizon", "draw"),
        "topology_square": array("case", "seed", "size", "mode"),
        "topology_eigenvalue": array(*mode),
        "topology_variance": array(*mode),
        "topology_data_variance": array(*mode),
        "topology_case_w2": array("case", "size"),
        "topology_case_w2_simulated": array("case", "size"),
        "topology_case_w2_error": array("case", "size"),
    }
    yield xr.Dataset(data, sizes)
    plt.close("all")


def test_what_is_drawn(dataset: xr.Dataset) -> None:
    drawn = topology.draw(dataset)
    assert list(drawn) == ["E1-topology", "E1b-normalisation", "E2-feature-size"]
    for figure, caption in drawn.values():
        assert len(caption) > 80
        assert all(
            axis.get_title() for axis in figure.axes if axis.get_subplotspec().is_first_row()
        )
    first, _ = drawn["E1-topology"]
    # Lines are the exact means over draws.
    shown = np.asarray(first.axes[0].containers[0].lines[0].get_ydata(), np.float64)
    exact = dataset["topology_w2"].sel(topology_aggregation="sum", topology_family="regular")
    np.testing.assert_allclose(shown, exact.mean("topology_draw"))
    last, _ = drawn["E2-feature-size"]
    assert last.axes[2].get_xlabel().startswith("eigenvalue")
