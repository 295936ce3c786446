"""Random graphs as pure functions of a key, built on the host.

The key seeds a NumPy generator: the same key gives the same graph on every machine, whatever
JAX's precision or backend.
"""

from collections import Counter
from typing import Any

import jax
import numpy as np

from boundlab.checks import check_integer, check_key, check_number, check_shape, fail
from boundlab.models.graph_types import Graph, from_edges
from boundlab.precision import is_traced
from boundlab.typing import Count, Numbers


def random_regular(key: Any, n: Count, degree: Count) -> Graph:
    """Random simple graph in which every node has `degree` neighbours, near uniform over all such.

    n·degree half-edges are paired at random; the pairs that are loops or repeats are switched away,
    and then 5E + 50 random switches {ab, cd} → {ac, bd} are proposed, of which those that keep the
    graph simple are made. That chain is symmetric, so its stationary law is the uniform one, which
    the random start is already close to. For degree ≥ 3 the graph is connected with probability
    tending to 1 as n grows; it isn't forced to be.

    Raises `ValueError` naming `degree` if n·degree is odd or degree ≥ n.
    """
    n = check_integer("n", n, 1)
    degree = check_integer("degree", degree, 0, n - 1)
    if n * degree % 2:
        raise fail("degree", degree, f"n·degree even (n is {n})")
    rng = generator(key)
    if degree > (n - 1) / 2:  # dense graphs would repeat most pairs: draw the complement
        sparse = _random_regular_pairs(rng, n, n - 1 - degree)
        mask = np.triu(np.ones((n, n), bool), 1)
        mask[sparse[:, 0], sparse[:, 1]] = False
        return from_edges(np.argwhere(mask), n)
    return from_edges(_random_regular_pairs(rng, n, degree), n)


def _random_regular_pairs(rng: np.random.Generator, n: int, degree: int) -> np.ndarray:
    half_edges = np.repeat(np.arange(n), degree)
    pairs = np.sort(rng.permutation(half_edges).reshape(-1, 2), axis=1).tolist()
    ends: list[tuple[int, int]] = [(u, v) for u, v in pairs]
    count = Counter(ends)
    mixed = len(ends) < 2
    while not mixed:
        # First only the bad pairs meet a random partner, until none is left; then any two do.
        steps = [i for i, (u, v) in enumerate(ends) if u == v or count[u, v] > 1]
        if not steps:
            mixed = True
            steps = rng.integers(len(ends), size=5 * len(ends) + 50).tolist()
        partners = rng.integers(len(ends), size=len(steps)).tolist()
        flips = rng.integers(2, size=len(steps)).tolist()
        for i, j, flip in zip(steps, partners, flips, strict=True):
            (a, b), (c, d) = ends[i], ends[j][::-1] if flip else ends[j]
            if i == j or a == c or b == d:
                continue
            first = (a, c) if a < c else (c, a)
            second = (b, d) if b < d else (d, b)
            if first == second or count.get(first) or count.get(second):
                continue
            count[ends[i]] -= 1
            count[ends[j]] -= 1
            ends[i], ends[j] = first, second
            count[first] = count[second] = 1
    return np.array(ends, np.int64).reshape(-1, 2)


def barabasi_albert(key: Any, n: Count, edges_per_node: Count) -> Graph:
    """Preferential attachment [barabasi1999emergence], started from a star.

    Nodes 0 … m are a star with hub 0 (m = `edges_per_node`); each later node joins m distinct older
    ones, drawn one after another with probability proportional to their degree, those already drawn
    left out. (n − m)·m edges, connected, degrees of tail exponent 3.

    Raises `ValueError` naming `n` unless n > edges_per_node.
    """
    m = check_integer("edges_per_node", edges_per_node, 1)
    n = check_integer("n", n, m + 1)
    rng = generator(key)
    # Each node stands in `ends` once a neighbour: a uniform draw from it is degree-proportional.
    ends = np.zeros(2 * m * (n - m), np.int64)
    ends[1 : 2 * m : 2] = np.arange(1, m + 1)
    filled = 2 * m
    for node in range(m + 1, n):
        targets: dict[int, None] = {}  # keeps the order of drawing: a set would depend on hashing
        while len(targets) < m:
            draws = ends[(rng.random(m) * filled).astype(np.int64)]
            for target in draws.tolist():
                if len(targets) < m:
                    targets[target] = None
        ends[filled : filled + 2 * m : 2] = list(targets)
        ends[filled + 1 : filled + 2 * m : 2] = node
        filled += 2 * m
    return from_edges(ends.reshape(-1, 2), n)


def chung_lu(key: Any, expected_degrees: Numbers) -> Graph:
    """Graph with independent edges of probability p_ij = min(1, w_i w_j / Σw), i < j.

    `expected_degrees` (n,) are the weights w ≥ 0: while no probability is cut at 1, the mean degree
    of node i is w_i (1 − w_i/Σw), the missing part being the self-loop that isn't drawn.
    Time and memory grow with n and the number of edges, not with n² [chung2003spectra].
    """
    if is_traced(expected_degrees):
        raise fail(
            "expected_degrees", "traced values", "concrete numbers: build graphs outside jit"
        )
    check_shape("expected_degrees", expected_degrees, (None,))
    check_number("expected_degrees", expected_degrees, 0)
    weights = np.asarray(expected_degrees, dtype=np.float64)
    n = len(weights)
    limit = np.sqrt(np.finfo(np.float64).max / n)  # so that neither Σw nor w_i w_j overflows
    check_number("expected_degrees", weights, 0, limit, why="or their products overflow")
    total = weights.sum()
    if total == 0:
        return from_edges((), n)
    rng = generator(key)
    order = np.argsort(-weights, kind="stable")
    w = weights[order]
    # All rows at once: row u walks along v = u + 1, u + 2, …, jumping over a geometric number of
    # non-edges at a rate that bounds those ahead (weights descend), then thins to the exact one.
    row = np.arange(n - 1)
    column = row + 1
    bound = np.minimum(1.0, w[row] * w[column] / total)
    found = []
    while True:
        alive = bound > 0
        row, column, bound = row[alive], column[alive], bound[alive]
        # A geometric jump, as a float: at a tiny rate it can exceed the largest integer.
        certain = bound >= 1
        rate = np.log1p(-np.where(certain, 0.5, bound))
        jump = np.where(certain, 0.0, np.floor(np.log1p(-rng.random(len(row))) / rate))
        inside = column + jump < n
        row, bound = row[inside], bound[inside]
        column = column[inside] + jump[inside].astype(np.int64)
        if not len(row):
            break
        exact = np.minimum(1.0, w[row] * w[column] / total)
        kept = rng.random(len(row)) * bound < exact
        found.append(np.stack([row[kept], column[kept]], axis=1))
        column = column + 1
        ahead = column < n
        row, column, bound = row[ahead], column[ahead], exact[ahead]
    pairs = np.concatenate(found) if found else np.zeros((0, 2), np.int64)
    return from_edges(order[pairs], n)


def generator(key: Any) -> np.random.Generator:
    """NumPy generator seeded by a typed JAX key."""
    check_key("key", key)
    if is_traced(key):
        raise fail("key", "a traced key", "a concrete key: build graphs outside jit")
    with jax.ensure_compile_time_eval():  # inside a jit, too, a concrete key can be read
        return np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
