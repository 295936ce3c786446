"""Settings and problems: scaling, labels, and what they refuse."""

import dataclasses

import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.datasets import case_labels, column
from boundlab.analysis.excess_risk.config import PRESETS, Config
from boundlab.analysis.excess_risk.problems import problem, require_connected
from boundlab.models.graphs import from_edges, star


@pytest.mark.parametrize("teacher", ["isotropic", "head"])
@pytest.mark.parametrize("kind", ["laplacian", "normalized_adjacency", "personalized_pagerank"])
def test_problems_are_scaled_alike(kind: str, teacher: str) -> None:
    item = problem("p", star(7), kind, teacher)
    covariance = item.operator @ item.operator.T
    assert np.trace(covariance) == pytest.approx(1, rel=1e-12)
    assert item.theta_star @ covariance @ item.theta_star == pytest.approx(1, rel=1e-12)
    np.testing.assert_allclose(np.linalg.eigvalsh(covariance)[::-1], item.mu, atol=1e-14)
    # The teacher's components in M's eigenbasis are what they are said to be.
    assert item.mu @ item.theta_sq == pytest.approx(1, rel=1e-12)
    if teacher == "head":
        np.testing.assert_allclose(item.theta_sq / item.mu, item.theta_sq[0] / item.mu[0])


def test_a_disconnected_graph_is_refused_where_it_matters() -> None:
    require_connected("graph", star(5))
    with pytest.raises(ValueError, match="graph: got a disconnected graph"):
        require_connected("graph", from_edges([(0, 1), (2, 3)], 4))


def test_columns_and_labels_agree() -> None:
    values = np.arange(24.0).reshape(2, 3, 4)
    dataset = xr.Dataset(
        {"v": (("a", "seed", "b"), values)},
        coords={"a": ["x", "y"], "b": [1, 2, 3, 4], "seed": range(3)},
    )
    flat, labels = column(dataset, "v", "seed"), case_labels(dataset, "v", "seed")
    assert flat.shape == (3, 8)
    place = labels.index("a y, b 3")
    np.testing.assert_array_equal(flat[:, place], values[1, :, 2])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_seeds", 1),
        ("num_nodes", 3),
        ("num_samples", ()),
        ("num_samples", (0, 10)),
        ("num_samples", (50, 30)),
        ("depths", (2, 4, 8, 16)),
        ("degree", 5),
        ("num_samples", (30, 100)),
        ("degree", 64),
        ("noise_variance", -1.0),
        ("noise_variance", float("nan")),
        ("step_fraction", 1.0),
        ("step_fraction", -0.5),
        ("citation_nodes", 2486),
        ("citation_nodes", 5),
        ("spiked_dim", 1),
    ],
)
def test_a_bad_setting_is_named(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=field):
        dataclasses.replace(Config(), **{field: value})


def test_presets_are_hashable_and_distinct() -> None:
    assert len({hash(config) for config in PRESETS.values()}) == 3
