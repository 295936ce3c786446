"""The part on transport distances: its layout and its helpers."""

from collections.abc import Callable

import jax
import numpy as np
import pytest
import scipy.stats
import xarray as xr

from boundlab.analysis.fanout import transport_delta, transport_gaps
from boundlab.analysis.fanout.config import PRESETS, Config
from boundlab.models import graphs


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("fanout", "transport_")


def test_layout(dataset: xr.Dataset) -> None:
    named = [str(name) for name in (*dataset.variables, *dataset.dims)]
    assert all(name.startswith("transport_") for name in named)
    assert all({"long_name", "units"} <= set(v.attrs) for v in dataset.data_vars.values())
    assert dataset["transport_gap"].shape == (5, 5, PRESETS["smoke"].transport_seeds)
    assert (dataset["transport_train_loss"] < dataset["transport_bound"]).all()
    # Rows outside of the batch read as zero, squared: 1/d + (b/n)(1/β − 2/d).
    few, sizes = dataset["transport_few"], dataset["transport_batch_size"]
    d, n = transport_delta.DEGREE, transport_delta.NUM_TRAIN
    expected = 1 / d + sizes / n * (1 / few - 2 / d)
    xr.testing.assert_allclose(
        dataset["transport_absent"], expected.transpose("transport_few", "transport_batch_size")
    )


@pytest.mark.smoke
def test_distances_of_rows() -> None:
    rng = np.random.default_rng(0)
    first, other = rng.standard_normal((2, 6, 5))
    for kind in transport_delta.KINDS:
        found = transport_delta._distances(first, other, kind)
        for a, b, value in zip(first, other, found, strict=True):
            outer = np.outer(a, a) - np.outer(b, b)
            expected = {
                "trace": np.abs(np.diag(outer)).sum(),
                "sqnorm": np.linalg.norm(a - b) ** 2,
                "nuclear": np.linalg.norm(outer, "nuc"),
            }[kind]
            np.testing.assert_allclose(value, expected, rtol=1e-12)


def test_sampled_rows_are_means_over_neighbours(key: jax.Array) -> None:
    graph = graphs.barabasi_albert(key, transport_delta.NODES, 3)
    train = np.random.default_rng(1).permutation(transport_delta.NODES)[:48]
    rows = transport_delta._sampled_rows(key, graph, train, 16, 4, int(graph.degrees().max()))
    joined = graph.adjacency()[train].astype(bool)
    sizes = np.minimum(graph.degrees()[train], 4)
    assert not rows[~joined].any()
    np.testing.assert_array_equal((rows > 0).sum(axis=1), sizes)
    np.testing.assert_allclose(rows[rows > 0], np.repeat(1 / sizes, sizes))


def test_losses_of_the_minimiser(key: jax.Array) -> None:
    """With all neighbours: least squares on the training means, by lstsq; one problem and split."""
    cases = transport_gaps._cases(Config(transport_nodes=120), key)
    train, test = (np.asarray(part) for part in transport_gaps._split(key, 120))
    h, y = np.asarray(cases.means[2]), np.asarray(cases.targets[2])
    square, cross = h[train].T @ h[train] / len(train), y[train].T @ h[train] / len(train)
    one = cases._replace(means=cases.means[2:3], targets=cases.targets[2:3])
    losses = transport_gaps._losses(
        one, square[None, None, None], cross[None, None, None], train[None], test[None]
    )
    weights = np.linalg.lstsq(h[train], y[train], rcond=None)[0]
    for found, nodes in zip(losses, (train, test), strict=True):
        expected = 0.5 * np.mean(np.sum((h[nodes] @ weights - y[nodes]) ** 2, axis=1))
        np.testing.assert_allclose(found.item(), expected, rtol=1e-10)


def test_rank_correlation() -> None:
    first, other = np.random.default_rng(2).standard_normal((2, 3, 4, 2))
    first[0, 0] = first[0, 1]  # ties
    found = transport_gaps._rank_correlation(first, other)
    for s in range(2):
        expected = scipy.stats.spearmanr(first[..., s].ravel(), other[..., s].ravel()).statistic
        np.testing.assert_allclose(found[s], expected, rtol=1e-12)
