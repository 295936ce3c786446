"""Seconds of the statistics of 1,000 graphs of 20 nodes, beside counting and networkx, in one run.

The four-node orbits by matrix products, on all graphs, against the enumeration of all sets of four nodes
in NumPy (tables of all sets at once), which is timed on a few graphs and scaled up; and degrees,
clustering, orbits and spectrum together against networkx, which has no orbits and gets none here. Results
are compared before anything is timed. Each time is the least of several rounds: other work on the machine
only adds to it.
"""

import itertools
import time
from collections.abc import Callable

import jax
import networkx as nx
import numpy as np

from boundlab.models.graph_batches import erdos_renyi
from boundlab.models.graph_metrics import graph_statistics, orbit_counts
from boundlab.precision import one_blas_thread, x64

GRAPHS, NODES = 1000, 20
FEW = 20
ROUNDS = 7
# Number of the orbit by the node's degree in its set and the sum of squared degrees there: these tell the
# orbits of connected sets of four apart.
FOURS = {
    (1, 10): 4,
    (2, 10): 5,
    (1, 12): 6,
    (3, 12): 7,
    (2, 16): 8,
    (1, 18): 9,
    (2, 18): 10,
    (3, 18): 11,
    (2, 26): 12,
    (3, 26): 13,
    (3, 36): 14,
}


def enumerated(adjacency: np.ndarray) -> np.ndarray:
    """Orbits 4 to 14 of one graph, (nodes, 11), from all its sets of four nodes."""
    sets = np.array(list(itertools.combinations(range(len(adjacency)), 4)))
    degrees = adjacency[sets[:, :, None], sets[:, None, :]].sum(axis=2).astype(int)
    squares = (degrees**2).sum(axis=1)
    counts = np.zeros((len(adjacency), 11))
    for (degree, square), orbit in FOURS.items():
        chosen = (squares == square)[:, None] & (degrees == degree)
        counts[:, orbit - 4] = np.bincount(sets[chosen], minlength=len(adjacency))
    return counts


def by_networkx(adjacency: np.ndarray) -> None:
    """Degrees, clustering coefficients and the spectrum of one graph."""
    graph = nx.from_numpy_array(adjacency)
    nx.degree_histogram(graph)
    nx.clustering(graph)
    nx.normalized_laplacian_spectrum(graph)


def least(run: Callable[[], object]) -> float:
    """Fewest seconds of a call."""
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main() -> None:
    """Compare, then time."""
    density = np.random.default_rng(0).uniform(0.1, 0.6, GRAPHS)
    graphs = erdos_renyi(jax.random.key(0), np.full(GRAPHS, NODES), density).adjacency
    few = graphs[:FEW]
    with x64(), one_blas_thread():
        count = jax.jit(orbit_counts)
        found = np.asarray(count(graphs))
        for matrix, orbits in zip(few, found, strict=False):
            np.testing.assert_array_equal(orbits[:, 4:], enumerated(matrix))
        ours = least(lambda: count(graphs).block_until_ready())
    scale = GRAPHS / FEW
    sets = scale * least(lambda: [enumerated(matrix) for matrix in few])
    graph_statistics(graphs)
    statistics = least(lambda: graph_statistics(graphs))
    library = scale * least(lambda: [by_networkx(matrix) for matrix in few])
    print(f"{GRAPHS} graphs of {NODES} nodes, warm, {jax.devices()[0].platform}")
    print(f"orbits by matrix products      {ours:8.3f} s")
    print(f"orbits by sets of four, NumPy  {sets:8.3f} s   {sets / ours:6.1f} times")
    print(f"all four statistics            {statistics:8.3f} s")
    print(f"networkx, without orbits       {library:8.3f} s   {library / statistics:6.1f} times")


if __name__ == "__main__":
    main()
