"""Sets of small graphs on which generators of graphs are trained and tested.

Both are made from their recipe or from a citation graph that comes with the package, so that no data
file of another project is needed. Symbols: c nodes of a community, p probability of an edge.
"""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from boundlab.checks import check_integer, fail
from boundlab.models.graph_batches import GraphBatch
from boundlab.models.graph_types import Graph, check_graph
from boundlab.models.random_graphs import generator
from boundlab.typing import Count

MOST_NODES = 20
WITHIN = 0.7
ACROSS = 0.1  # divided by the size of a community


def community_small(key: Any, num_graphs: Count = 100, *, shared_seeds: bool = False) -> GraphBatch:
    """Pairs of communities, by the recipe of the benchmark `community_small` [jo2022score].

    With M uniform on 12 … 20 and c = ⌊M/2⌋, each graph has two communities of c nodes, joined within
    with probability 0.7. Pairs of nodes in different connected components (as a rule: communities)
    are then joined with probability 0.1/c; two components that no pair joins get one edge, between
    their first nodes.

    `shared_seeds`: each community is drawn from a seed of its own number alone, 0 or 1, as in the
    public generator: all graphs of one size then have the same two communities and differ in the
    edges between them only, so that many are equal (`graph_metrics.duplicates`).

    Args:
        key: One key, concrete.
        num_graphs: B.
        shared_seeds: Whether to draw as the public file was, instead of every graph afresh.

    Returns:
        The batch on 20 places, the first community first.

    Raises:
        ValueError: naming the argument.

    """
    count = check_integer("num_graphs", num_graphs, 1)
    if not isinstance(shared_seeds, bool):
        raise fail("shared_seeds", repr(shared_seeds), "True or False")
    rng = generator(key)
    sizes = rng.integers(12, MOST_NODES + 1, count) // 2
    places = np.arange(MOST_NODES)
    community = np.where(places < sizes[:, None], 0, np.where(places < 2 * sizes[:, None], 1, 2))
    mask = community < 2
    if shared_seeds:
        least, most = 6, MOST_NODES // 2
        known = np.stack([_shared_communities(c) for c in range(least, most + 1)])
        within = known[sizes - least]
    else:
        same = community[:, :, None] == community[:, None, :]
        drawn = rng.random((count, MOST_NODES, MOST_NODES)) < WITHIN
        within = np.triu(drawn & same & mask[:, :, None], 1)
    within = within | np.swapaxes(within, 1, 2)
    component = _components(within)
    apart = component[:, :, None] != component[:, None, :]
    apart &= mask[:, :, None] & mask[:, None, :]
    drawn = rng.random((count, MOST_NODES, MOST_NODES)) < (ACROSS / sizes)[:, None, None]
    across = np.triu(drawn & apart, 1)
    across = across | np.swapaxes(across, 1, 2)
    # Edges between components, at the first node of each.
    member = (component[:, :, None] == places).astype(np.float32)
    edges = np.swapaxes(member, 1, 2) @ across.astype(np.float32) @ member
    first = (component == places) & mask
    forced = (edges == 0) & first[:, :, None] & first[:, None, :] & apart
    return GraphBatch((within | across | forced).astype(np.float64), mask)


def ego_graphs(
    graph: Any,
    *,
    min_nodes: Count = 4,
    max_nodes: Count = 18,
    num_graphs: Count | None = None,
    num_features: Count | None = None,
) -> tuple[Graph, ...]:
    """Every node with its neighbours: the ego graphs of radius 1 whose size is within the limits.

    The recipe of the benchmark `ego_small` with the defaults and `num_graphs` 200, on Citeseer
    [jo2022score]; there the graphs are shuffled first.

    Args:
        graph: A `Graph`, such as `planetoid("citeseer")`.
        min_nodes: Fewest nodes of an ego graph, the centre included.
        max_nodes: Most.
        num_graphs: How many to keep, in the order of their centres; all by default.
        num_features: Columns of the features to keep, those with the most entries other than 0 in
            the ego graphs kept, in their old order; all by default.

    Returns:
        Induced subgraphs with their node data; node 0 is the centre, its neighbours follow in
        increasing order of their old numbers.

    Raises:
        ValueError: naming the argument; `num_graphs` if there are fewer.

    """
    check_graph("graph", graph)
    least = check_integer("min_nodes", min_nodes, 1)
    most = check_integer("max_nodes", max_nodes, least)
    sizes = graph.degrees() + 1
    centres = np.flatnonzero((sizes >= least) & (sizes <= most))
    if not len(centres):
        raise fail(
            "min_nodes, max_nodes", f"{least} and {most}", "limits that some ego graph meets"
        )
    if num_graphs is not None:
        centres = centres[: check_integer("num_graphs", num_graphs, 1, len(centres))]
    table = graph.neighbor_table()
    members = [
        np.concatenate([[centre], table.index[centre, table.mask[centre]]]) for centre in centres
    ]
    if num_features is not None:
        graph = _most_used(graph, np.concatenate(members), num_features)
    return tuple(graph.induced(nodes) for nodes in members)


def _shared_communities(size: int) -> Bool[np.ndarray, "n n"]:
    """Edges (first < second) of the two communities that all graphs of one size share."""
    edges = np.zeros((MOST_NODES, MOST_NODES), bool)
    for number in range(2):
        drawn = np.random.default_rng(number).random((size, size)) < WITHIN
        part = slice(number * size, (number + 1) * size)
        edges[part, part] = np.triu(drawn, 1)
    return edges


def _components(joined: Bool[np.ndarray, "B n n"]) -> Int[np.ndarray, "B n"]:
    """Smallest node that can be reached from each node."""
    n = joined.shape[1]
    reached = joined | np.eye(n, dtype=bool)
    for _ in range((n - 1).bit_length()):  # paths twice as long each time
        walks = reached.astype(np.float32)
        reached = walks @ walks > 0
    return reached.argmax(axis=2)


def _most_used(graph: Graph, nodes: Int[np.ndarray, " any"], num_features: Count) -> Graph:
    if graph.features is None:
        raise fail("num_features", num_features, "None: the graph has no features")
    kept = check_integer("num_features", num_features, 1, graph.features.shape[1])
    used = np.count_nonzero(graph.features[nodes], axis=0)
    columns = np.sort(np.argsort(-used, kind="stable")[:kept])
    return dataclasses.replace(graph, features=graph.features[:, columns])
