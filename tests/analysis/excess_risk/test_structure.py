"""Helpers and layout of the part on graph structure."""

from collections.abc import Callable
from itertools import combinations

import jax
import numpy as np
import pytest
import xarray as xr

from boundlab.analysis.excess_risk import PARTS, structure, tuned
from boundlab.analysis.excess_risk.config import PRESETS
from boundlab.analysis.excess_risk.problems import graph_pair
from boundlab.models.graph_operators import graph_operator
from boundlab.models.graphs import Graph, complete, from_edges, hypercube, star
from boundlab.theory.excess_risk import ridge, sgd

SMOKE = PRESETS["smoke"]


def part_key(place: int) -> jax.Array:
    """Key that the part folds from its own in the shared run."""
    own = jax.random.fold_in(jax.random.key(0), PARTS.index(structure))
    return jax.random.fold_in(own, place)


def cycles_by_enumeration(graph: Graph) -> int:
    """4-cycles among all sets of four nodes: each set has three ways around."""
    joined = graph.adjacency().astype(bool)
    around = ((0, 1, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2))
    return sum(
        all(joined[q[p[i]], q[p[(i + 1) % 4]]] for i in range(4))
        for q in combinations(range(graph.num_nodes), 4)
        for p in around
    )


@pytest.mark.smoke
def test_four_cycles_by_enumeration() -> None:
    rng = np.random.default_rng(0)
    dense = from_edges(np.argwhere(np.triu(rng.random((12, 12)) < 0.5, 1)), 12)
    graphs = (complete(6), hypercube(3), star(7), dense)
    counts = [structure.count_four_cycles(graph) for graph in graphs]
    assert counts[:3] == [45, 6, 0]
    assert counts[3] == cycles_by_enumeration(dense) > 0


def test_best_sgd_is_that_of_the_best_step_size() -> None:
    mu = np.arange(1, 33) ** -1.5
    mu /= mu.sum()
    theta_sq = np.stack([np.ones(32), 5 * mu])
    noise = np.array([0.01, 0.25, 4.0])
    found = tuned.best_sgd_risk(mu, theta_sq, noise, 40)
    expected = np.empty((2, 3))
    for i, teacher in enumerate(theta_sq):
        for j, level in enumerate(noise.tolist()):
            step_size = sgd.best_step_size(mu, teacher, level, 40)
            profile = sgd.tail_averaged_risk(mu, teacher, level, step_size, 40)
            expected[i, j] = profile.bias.sum() + profile.variance.sum()
    np.testing.assert_allclose(found, expected, rtol=2e-3)


def test_tuned_ridges_are_rows_of_their_own() -> None:
    """More rows than one compiled batch, none of them mixed up."""
    rng = np.random.default_rng(1)
    mu, theta_sq = rng.gamma(1.0, size=(2, tuned.ROWS + 3, 32))
    noise = rng.gamma(1.0, size=tuned.ROWS + 3)
    found = tuned.best_ridge_risk(mu, theta_sq, noise, 20)
    for row in (0, tuned.ROWS - 1, tuned.ROWS + 2):
        best = ridge.best_ridge(mu[row], theta_sq[row], noise[row], 20)
        profile = ridge.risk(mu[row], theta_sq[row], noise[row], best, 20)
        expected = float(profile.bias.sum() + profile.variance.sum())
        np.testing.assert_allclose(found[row], expected, rtol=1e-10)


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("excess_risk", "structure_")


def test_contrast_needs_no_eigenvalues(dataset: xr.Dataset) -> None:
    """Ranks from traces and the top eigenvalue of a sparse solver, against a dense one."""
    key = jax.random.fold_in(part_key(1), 1)
    for name, graph in graph_pair(key, structure.CONTRAST_NODES, SMOKE.degree).items():
        drawn = dataset.sel(structure_graph=1, structure_pair=name)
        for kind in structure.CONTRASTED:
            values = np.linalg.eigvalsh(np.asarray(graph_operator(graph, kind)))
            rank = drawn["structure_contrast_rank"].sel(structure_contrasted=kind)
            np.testing.assert_allclose(rank, np.sum(values**2) ** 2 / np.sum(values**4), rtol=1e-10)
            if kind == "laplacian":
                np.testing.assert_allclose(drawn["structure_top"], values[-1] - 1, rtol=1e-10)


def test_handicap_by_search(dataset: xr.Dataset) -> None:
    """Step sizes and effective ridges on a fine grid, risks written out: N = 4d."""
    graphs = graph_pair(part_key(0), SMOKE.structure_nodes, SMOKE.degree)
    count, start = 4 * SMOKE.structure_nodes, 2 * SMOKE.structure_nodes
    for name, graph in graphs.items():
        for kind in structure.CONTRASTED:
            mu = np.linalg.eigvalsh(np.asarray(graph_operator(graph, kind))) ** 2
            mu /= mu.sum()
            power = mu**2 / np.sum(mu**2)  # θ*² ∝ μ
            # (steps, directions): s_i is carried as e_i = μ_i s_i.
            x = np.geomspace(1e-2, float(sgd.stability_limit(mu)), 201)[:-1, None] * mu
            risk, total = np.tile(power, (len(x), 1)), np.zeros_like(x)
            for t in range(count):
                if t >= start:
                    decay = 1 - x
                    total += (1 + 2 * decay * (1 - decay ** (count - 1 - t)) / x) * risk
                shared = risk.sum(axis=1, keepdims=True) + SMOKE.noise_variance
                risk = (1 - 2 * x + 2 * x**2) * risk + x**2 * shared
            best_sgd = total.sum(axis=1).min() / (count - start) ** 2
            learnt = mu / (mu + np.geomspace(1e-8, 10.0, 20_001)[:, None])
            spent = np.sum(learnt**2, axis=1)
            error = count * ((1 - learnt) ** 2 @ power) + SMOKE.noise_variance * spent
            best_ridge = np.min(error / (count - spent))
            found = dataset["structure_handicap"].sel(
                structure_pair=name, structure_contrasted=kind
            )
            np.testing.assert_allclose(found, best_sgd / best_ridge, rtol=1e-3)


def test_layout(dataset: xr.Dataset) -> None:
    prefixed = [name for name in (*dataset.variables, *dataset.dims) if "structure_" in str(name)]
    assert len(prefixed) == len([*dataset.variables, *dataset.dims])
    np.testing.assert_allclose(dataset["structure_spectrum"].sum("structure_direction"), 1.0)
    assert dataset["structure_sgd_risk"].shape == (2, 4, SMOKE.resolution, SMOKE.resolution)
    risks = dataset[["structure_sgd_risk", "structure_ridge_risk"]]
    # With more noise nobody does better, and with signal power 1 nobody needs a risk above 1.
    assert all((risks[name].diff("structure_noise") > 0).all() for name in risks)
    assert all((risks[name] < 1.0).all() for name in risks)
