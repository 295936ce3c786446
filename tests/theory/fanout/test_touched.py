"""Touched nodes, against enumeration of all batches and samples."""

from itertools import combinations, product
from types import SimpleNamespace
from typing import Any

import networkx
import numpy as np
import pytest

from boundlab.theory.fanout import (
    expected_touched_nodes,
    touched_layers,
    touched_nodes,
    touched_regular,
)


def digraph(neighbors: list[list[int]]) -> Any:
    """Graph given by its in-neighbours, as theory reads it."""
    pairs = [(j, i) for i, around in enumerate(neighbors) for j in sorted(around)]
    index = np.array(pairs, np.int64).reshape(-1, 2).T
    return SimpleNamespace(num_nodes=len(neighbors), to_edge_index=lambda: index)


def circulant(n: int, d: int) -> list[list[int]]:
    return [[(i + k) % n for k in range(1, d + 1)] for i in range(n)]


# Degrees 0 to 4; node 2 is a neighbour of many, node 6 of none, node 5 isolated on both sides.
RAGGED = [[1, 2], [2], [0, 1, 3, 4], [2, 0, 4], [], [], [2, 3]]


def enumerated(neighbors: list[list[int]], seeds: tuple[int, ...], fan_out: int) -> float:
    samples = [list(combinations(neighbors[i], min(fan_out, len(neighbors[i])))) for i in seeds]
    sizes = [len(set(seeds).union(*chosen)) for chosen in product(*samples)]
    return float(np.mean(sizes))


@pytest.mark.smoke
@pytest.mark.parametrize("fan_out", [1, 2, 3, 9])
def test_given_seeds_by_enumeration(fan_out: int) -> None:
    for seeds in ((0,), (5,), (4, 5), (0, 2, 3), (6, 3, 1, 2), tuple(range(7))):
        found = touched_nodes(digraph(RAGGED), list(seeds), fan_out)
        np.testing.assert_allclose(found, enumerated(RAGGED, seeds, fan_out), rtol=1e-13)


@pytest.mark.parametrize("fan_out", [1, 2, 9])
@pytest.mark.parametrize("pool", [None, [0, 2, 3, 6], [5], [3, 4, 1]])
def test_random_batches_by_enumeration(pool: list[int] | None, fan_out: int) -> None:
    nodes = list(range(7)) if pool is None else pool
    for b in range(1, len(nodes) + 1):
        batches = combinations(nodes, b)
        expected = np.mean([enumerated(RAGGED, seeds, fan_out) for seeds in batches])
        found = expected_touched_nodes(digraph(RAGGED), b, fan_out, pool)
        np.testing.assert_allclose(found, expected, rtol=1e-13)
        several = expected_touched_nodes(digraph(RAGGED), [len(nodes), b, b], fan_out, pool)
        np.testing.assert_array_equal(several[1:], [found, found])


@pytest.mark.parametrize("fan_out", [1, 2, 5, 7])
def test_regular_graphs(fan_out: int) -> None:
    graph = digraph(circulant(11, 5))
    values = []
    for b in range(1, 12):
        values.append(float(touched_regular(11, 5, b, fan_out)))
        np.testing.assert_allclose(
            values[-1], expected_touched_nodes(graph, b, fan_out), rtol=1e-13
        )
        assert values[-1] <= b * (1 + fan_out)
    assert values[-1] == 11
    assert (np.diff(values) > -1e-13).all()
    seeds = np.mean([enumerated(circulant(6, 3), s, 2) for s in combinations(range(6), 2)])
    np.testing.assert_allclose(touched_regular(6, 3, 2, 2), seeds, rtol=1e-13)
    assert touched_regular(6, 0, 2, 2) == 2


def test_heavy_tails_by_simulation() -> None:
    """A hub of out-degree 400 among nodes of mixed degrees: z-test over 3,000 batches."""
    rng = np.random.default_rng(5)
    n, b, fan_out = 401, 60, 2
    neighbors = [[0, *rng.choice(np.arange(1, n), d, False)] for d in rng.integers(0, 9, n)]
    neighbors = [
        sorted({j for j in around if j != i}) for i, around in enumerate(map(list, neighbors))
    ]
    neighbors = [[int(j) for j in around] for around in neighbors]
    sizes = []
    for _ in range(3000):
        seeds = rng.permutation(n)[:b]
        touched = set(seeds.tolist())
        for i in seeds:
            around = neighbors[i]
            touched.update(rng.permutation(around)[:fan_out].tolist())
        sizes.append(len(touched))
    found = float(expected_touched_nodes(digraph(neighbors), b, fan_out))
    error = np.std(sizes, ddof=1) / np.sqrt(len(sizes))
    assert abs(np.mean(sizes) - found) < 4.9 * error
    one_seed_more = float(expected_touched_nodes(digraph(neighbors), b + 1, fan_out))
    assert abs(np.mean(sizes) - one_seed_more) > 4.9 * error


def test_several_hops_are_over_estimated() -> None:
    """Mean field on a random 12-regular graph, whose whole frontier samples anew at each hop."""
    rng = np.random.default_rng(2)
    n, d = 600, 12
    graph = networkx.random_regular_graph(d, n, seed=1)
    table = np.array([sorted(graph[i]) for i in range(n)])
    sizes = np.empty((100, 4))
    for run in range(100):
        seen = rng.permutation(n)[:5]
        sizes[run, 0] = 5
        for hop in range(1, 4):
            chosen = np.argpartition(rng.random((len(seen), d)), 5, axis=1)[:, :5]
            seen = np.union1d(seen, np.take_along_axis(table[seen], chosen, axis=1))
            sizes[run, hop] = len(seen)
    found = np.asarray(touched_layers(n, d, 5, [5, 5, 5]))
    assert found[0] == 5
    assert (found <= 5 * 6.0 ** np.arange(4)).all()
    ratio = found / sizes.mean(axis=0)
    assert (ratio > 0.99).all()
    assert (ratio < 1.15).all()
    # By hand: u = 1 − (1 − 1/2)(1 − 1/2·2/3)³.
    np.testing.assert_allclose(touched_layers(4, 3, 2, [2]), [2, 4 * (1 - 0.5 * (2 / 3) ** 3)])
    np.testing.assert_allclose(
        touched_layers(4, 3, 1, [9, 9]), [1, 3 * 0.75 + 0.4375, 4.0], rtol=0.1
    )


@pytest.mark.parametrize(
    ("nodes", "fan_out", "name"),
    [
        ([0, 0], 2, "nodes"),
        ([7], 2, "nodes"),
        ([], 2, "nodes"),
        ([0.5], 2, "nodes"),
        (None, 2, "nodes"),
        ([0], 0, "fan_out"),
    ],
)
def test_bad_seeds_are_named(nodes: list | None, fan_out: int, name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}: got"):
        touched_nodes(digraph(RAGGED), nodes, fan_out)


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"num_nodes": 0}, "num_nodes"),
        ({"degree": 10}, "degree"),
        ({"degree": -1}, "degree"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 11}, "batch_size"),
        ({"fan_out": 0}, "fan_out"),
        ({"fan_out": 2.5}, "fan_out"),
    ],
)
def test_bad_sizes_are_named(changed: dict, name: str) -> None:
    good = {"num_nodes": 10, "degree": 3, "batch_size": 4, "fan_out": 2} | changed
    with pytest.raises(ValueError, match=f"^{name}: got"):
        touched_regular(**good)
    fan_outs = [2, good.pop("fan_out")] if name == "fan_out" else [good.pop("fan_out")]
    with pytest.raises(ValueError, match=f"^{name}s?: got"):
        touched_layers(**good, fan_outs=fan_outs)


def test_bad_batches_are_named(as_users_call: None) -> None:
    graph = digraph(RAGGED)
    for arguments, name in (
        ((8, 2), "batch_size"),
        (([1, 8], 2), "batch_size"),
        (([], 2), "batch_size"),
        (([[1, 2]], 2), "batch_size"),
        (([1, 2.0], 2), "batch_size"),
        ((3, 2, [0, 1]), "batch_size"),
        ((1, 0), "fan_out"),
    ):
        with pytest.raises(ValueError, match=f"^{name}: got"):
            expected_touched_nodes(graph, *arguments)
    with pytest.raises(ValueError, match=r"^graph: got"):
        expected_touched_nodes(np.eye(3), 1, 1)
    with pytest.raises(ValueError, match=r"^fan_outs: got"):
        touched_layers(10, 3, 4, [])
