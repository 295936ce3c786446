"""Random graphs with classes, and features that speak of the classes.

Symbols: n nodes, K classes, y_i ∈ {0, …, K − 1} the class of node i, d the degree. Built on the
host, pure functions of a key (`random_graphs`).
"""

import dataclasses
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int

from boundlab.checks import check_integer, check_number, check_shape, fail
from boundlab.models.directed_graphs import DirectedGraph, from_directed_edges
from boundlab.models.graph_types import Graph, check_integers, from_edges
from boundlab.models.random_graphs import generator
from boundlab.precision import is_traced
from boundlab.typing import Count, Scalar


def fixed_mix(
    key: Any, num_nodes: Count, degree: Count, num_classes: Count, homophily: Scalar
) -> DirectedGraph:
    """Directed graph in which every node has the same number of in-neighbours of its own class.

    Of the d in-neighbours of each node, round(homophily·d) (half to even) are a uniform subset of
    its own class without itself, the others a uniform subset of all other classes: class counts in
    a sampled neighbourhood are hypergeometric exactly. Out-degrees vary.

    Args:
        key: One key, concrete.
        num_nodes: n.
        degree: d, the in-degree of every node.
        num_classes: K; classes are runs of consecutive nodes, whose sizes differ by at most one.
        homophily: Share of in-neighbours of the own class, in [0, 1].

    Returns:
        The graph with its `labels`.

    Raises:
        ValueError: Naming the argument; `degree` if a class, or what is outside of it, has too few
            nodes.
    """
    n = check_integer("num_nodes", num_nodes, 1)
    k = check_integer("num_classes", num_classes, 1, n)
    degree = check_integer("degree", degree, 0, n - 1)
    check_number("homophily", homophily, 0, 1)
    same = round(float(homophily) * degree)
    labels = np.arange(n) * k // n
    sizes = np.bincount(labels, minlength=k)
    if same > sizes.min() - 1 or degree - same > n - sizes.max():
        accepted = f"at most {sizes.min() - 1} of the own class and {n - sizes.max()} of others"
        raise fail("degree", f"{degree}, {same} of them of the own class", accepted)
    rng = generator(key)
    size = sizes[labels]
    start = (np.cumsum(sizes) - sizes)[labels]
    own = _distinct(rng, size - 1, same)  # places in the class, the node itself left out
    own += own >= (np.arange(n) - start)[:, None]
    own += start[:, None]
    other = _distinct(rng, n - size, degree - same)
    other += np.where(other >= start[:, None], size[:, None], 0)
    senders = np.concatenate([own, other], axis=1)
    graph = from_directed_edges(senders.ravel(), np.repeat(np.arange(n), degree), n)
    return dataclasses.replace(graph, labels=labels)


def stochastic_block(key: Any, labels: Any, probabilities: Any) -> Graph:
    """Stochastic block model: i and j are joined with probability P[y_i, y_j], independently.

    Time and memory grow with K² and the number of edges, not with n² [holland1983stochastic].

    Args:
        key: One key, concrete.
        labels: y (n,), in 0 … K − 1; a class may be empty.
        probabilities: P (K, K), symmetric, in [0, 1].

    Returns:
        The graph with its `labels`.

    Raises:
        ValueError: Naming the argument.
    """
    if is_traced(labels, probabilities):
        raise fail("labels or probabilities", "traced values", "concrete ones: build outside jit")
    check_shape("probabilities", probabilities, (None, None))
    check_number("probabilities", probabilities, 0, 1)
    p = np.asarray(probabilities, dtype=np.float64)
    if p.shape[0] != p.shape[1] or not np.array_equal(p, p.T):
        raise fail("probabilities", f"shape {p.shape}, not symmetric", "a symmetric matrix (K, K)")
    labels = check_integers("labels", labels, 0, len(p) - 1)
    if len(labels) == 0:
        raise fail("labels", "none", "the class of at least one node")
    rng = generator(key)
    members = [np.flatnonzero(labels == k) for k in range(len(p))]
    found = [np.zeros((0, 2), np.int64)]
    for k, one in enumerate(members):
        for other_k in range(k, len(p)):
            other = members[other_k]
            inside = k == other_k
            pairs = len(one) * (len(one) - 1) // 2 if inside else len(one) * len(other)
            count = rng.binomial(pairs, p[k, other_k])
            code = rng.choice(pairs, count, replace=False, shuffle=False) if count else []
            if inside:
                first, second = _pair_of(np.asarray(code, np.int64))
            else:
                first, second = np.divmod(np.asarray(code, np.int64), max(len(other), 1))
            if count:
                found.append(np.stack([one[first], other[second]], axis=1))
    return dataclasses.replace(from_edges(np.concatenate(found), len(labels)), labels=labels)


def power_law_blocks(
    key: Any,
    num_nodes: Count = 10_000,
    num_classes: Count = 50,
    across: Scalar = 1e-4,
    exponent: Scalar = 0.5,
    max_mean_degree: Scalar = 69.0,
) -> Graph:
    """The paper's synthetic graph: equal blocks whose densities follow a power law [liu2025draft].

    Stochastic block model with P_kl = `across` between blocks and P_kk of density a·x^{a−1} on
    (0, 1), a = `exponent`, within; all of it is drawn again until the mean degree is at most
    `max_mean_degree`. The defaults are the paper's graph of 10,000 nodes.

    Raises:
        ValueError: Naming the argument; `max_mean_degree` if 100 draws all exceed it.
    """
    n = check_integer("num_nodes", num_nodes, 2)
    k = check_integer("num_classes", num_classes, 1, n)
    check_number("across", across, 0, 1)
    check_number("exponent", exponent, 0, low_open=True)
    check_number("max_mean_degree", max_mean_degree, 0, low_open=True)
    rng = generator(key)
    labels = np.arange(n) * k // n
    for attempt in range(100):
        p = np.full((k, k), float(across))
        np.fill_diagonal(p, rng.power(float(exponent), size=k))
        graph = stochastic_block(jax.random.fold_in(key, attempt), labels, p)
        if 2 * graph.num_edges <= float(max_mean_degree) * n:
            return graph
    accepted = f"more: the last of 100 graphs has mean degree {2 * graph.num_edges / n:.1f}"
    raise fail("max_mean_degree", max_mean_degree, accepted)


def class_features(
    key: Any, labels: Any, num_features: Count, class_gap: Scalar, noise_std: Scalar = 1.0
) -> Float[np.ndarray, "n r"]:
    """Features of a contextual block model: x_i = M[y_i] + ζ_i, both Gaussian.

    Class means M_k ~ N(0, class_gap²·I_r), noise ζ_i ~ N(0, noise_std²·I_r), all independent; a
    node without a class (label −1) has mean zero.

    Returns:
        X (n, r), float64.

    Raises:
        ValueError: Naming the argument.
    """
    labels = check_integers("labels", labels, -1, None)
    r = check_integer("num_features", num_features, 1)
    check_number("class_gap", class_gap, 0)
    check_number("noise_std", noise_std, 0)
    rng = generator(key)
    means = float(class_gap) * rng.standard_normal((max(labels, default=-1) + 2, r))
    means[-1] = 0  # where label −1 points
    return means[labels] + float(noise_std) * rng.standard_normal((len(labels), r))


def _distinct(
    rng: np.random.Generator, sizes: Int[np.ndarray, " rows"], count: int
) -> Int[np.ndarray, "rows count"]:
    """Uniform subsets of 0 … sizes[i] − 1 with `count` elements, one a row (Floyd's algorithm)."""
    chosen = np.full((len(sizes), count), -1)
    for slot in range(count):
        highest = sizes - count + slot
        draw = rng.integers(highest + 1)
        taken = (chosen[:, :slot] == draw[:, None]).any(axis=1)
        chosen[:, slot] = np.where(taken, highest, draw)
    return chosen


def _pair_of(code: Int[np.ndarray, " pairs"]) -> tuple[np.ndarray, np.ndarray]:
    """The pair first < second of number `code`, in the order (0, 1), (0, 2), (1, 2), (0, 3), …"""
    second = ((1 + np.sqrt(1 + 8 * code)) / 2).astype(np.int64)
    second -= second * (second - 1) // 2 > code  # the root was rounded up
    second += second * (second + 1) // 2 <= code
    return code - second * (second - 1) // 2, second
