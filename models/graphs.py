"""Graphs: textbook families, random ones and citation graphs, and padded batches of small ones.

from boundlab.models import graphs
graph = graphs.barabasi_albert(jax.random.key(0), n=256, edges_per_node=2)
"""

import dataclasses

import numpy as np

from boundlab.checks import check_integer
from boundlab.models.benchmark_graphs import community_small, ego_graphs
from boundlab.models.community_graphs import (
    class_features,
    fixed_mix,
    power_law_blocks,
    stochastic_block,
)
from boundlab.models.directed_graphs import DirectedGraph, from_directed_edges
from boundlab.models.graph_batches import GraphBatch, block_graphs, erdos_renyi, pad_graphs
from boundlab.models.graph_types import (
    Graph,
    NeighborTable,
    breadth_first_piece,
    from_edges,
    from_networkx,
    largest_component,
)
from boundlab.models.nearest_neighbors import digits, nearest_neighbors
from boundlab.models.planetoid import planetoid
from boundlab.models.random_graphs import barabasi_albert, chung_lu, random_regular
from boundlab.typing import Count

__all__ = [
    "DirectedGraph",
    "Graph",
    "GraphBatch",
    "NeighborTable",
    "barabasi_albert",
    "block_graphs",
    "breadth_first_piece",
    "chung_lu",
    "circulant",
    "class_features",
    "community_small",
    "complete",
    "cycle",
    "digits",
    "ego_graphs",
    "erdos_renyi",
    "fixed_mix",
    "from_directed_edges",
    "from_edges",
    "from_networkx",
    "hypercube",
    "largest_component",
    "nearest_neighbors",
    "pad_graphs",
    "path",
    "planetoid",
    "power_law_blocks",
    "random_regular",
    "star",
    "stochastic_block",
    "two_cliques",
]


def cycle(n: Count) -> Graph:
    """Cycle 0 – 1 – … – (n − 1) – 0 of n ≥ 3 nodes; n edges."""
    n = check_integer("n", n, 3)
    nodes = np.arange(n)
    return from_edges(np.stack([nodes, (nodes + 1) % n], axis=1), n)


def path(n: Count) -> Graph:
    """Path 0 – 1 – … – (n − 1); n − 1 edges."""
    n = check_integer("n", n, 1)
    nodes = np.arange(n - 1)
    return from_edges(np.stack([nodes, nodes + 1], axis=1), n)


def star(n: Count) -> Graph:
    """Star of n nodes, the hub included: node 0 is joined to all others; n − 1 edges."""
    n = check_integer("n", n, 1)
    leaves = np.arange(1, n)
    return from_edges(np.stack([np.zeros_like(leaves), leaves], axis=1), n)


def complete(n: Count) -> Graph:
    """Complete graph: every pair of the n nodes is joined; n(n − 1)/2 edges."""
    n = check_integer("n", n, 1)
    return from_edges(np.stack(np.triu_indices(n, 1), axis=1), n)


def hypercube(q: Count) -> Graph:
    """Hypercube of dimension q ≥ 0: 2^q nodes, joined where their numbers differ in one bit."""
    q = check_integer("q", q, 0, 24)
    nodes = np.arange(2**q)
    pairs = [np.stack([nodes, nodes ^ (1 << bit)], axis=1) for bit in range(q)]
    return from_edges(np.concatenate([np.zeros((0, 2), np.int64), *pairs]), 2**q)


def circulant(num_nodes: Count, degree: Count) -> DirectedGraph:
    """Directed circulant graph: the in-neighbours of node i are i + 1, …, i + degree modulo n."""
    n = check_integer("num_nodes", num_nodes, 1)
    degree = check_integer("degree", degree, 0, n - 1)
    nodes = np.arange(n)
    senders = (nodes[:, None] + np.arange(1, degree + 1)) % n
    return from_directed_edges(senders.ravel(), np.repeat(nodes, degree), n)


def two_cliques(size: Count) -> Graph:
    """Two complete graphs of `size` nodes each, not joined; labels 0 and 1."""
    size = check_integer("size", size, 1)
    pairs = np.stack(np.triu_indices(size, 1), axis=1)
    graph = from_edges(np.concatenate([pairs, pairs + size]), 2 * size)
    return dataclasses.replace(graph, labels=np.repeat([0, 1], size))
