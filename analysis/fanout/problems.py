"""Node classification problems that every part of the study shares.

Targets are one-hot rows; the features are what one layer averages over a node's in-neighbours.
"""

from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from boundlab.analysis.fanout.config import Config
from boundlab.checks import check_integer, fail
from boundlab.models import graphs
from boundlab.models.random_graphs import generator

_PROJECTION = 20240817  # seed of the one projection of citation features, the same in every run


class Problem(NamedTuple):
    """A graph with features, one-hot targets (zero rows for unlabelled nodes) and labels (−1 there)."""

    label: str
    graph: Any
    features: Float[np.ndarray, "n r"]
    targets: Float[np.ndarray, "n K"]
    labels: Int[np.ndarray, " n"]


def mixed_problem(config: Config, key: jax.Array) -> Problem:
    """Fixed mix: every node has the same number of in-neighbours of its class; class means + noise."""
    graph = graphs.fixed_mix(
        _part(key, 0), config.num_nodes, config.degree, config.num_classes, config.homophily
    )
    return _contextual("fixed mix", config, key, graph)


def sbm_problem(config: Config, key: jax.Array) -> Problem:
    """Contextual stochastic block model with the fixed mix's expected degrees to each class."""
    n, k = config.num_nodes, config.num_classes
    size = n // k
    across = (1 - config.homophily) * config.degree / (n - size)
    probabilities = np.full((k, k), min(across, 1.0))
    np.fill_diagonal(probabilities, min(config.homophily * config.degree / (size - 1), 1.0))
    graph = graphs.stochastic_block(_part(key, 0), np.arange(n) * k // n, probabilities)
    return _contextual("block model", config, key, graph)


def regular_problem(config: Config, key: jax.Array) -> Problem:
    """Random regular graph, Gaussian features, labels by a linear teacher of the neighbour means."""
    graph = graphs.random_regular(_part(key, 0), config.num_nodes, config.degree)
    return _taught("regular", config, key, graph)


def power_law_problem(config: Config, key: jax.Array) -> Problem:
    """Preferential attachment of the same mean degree, features and labels as `regular_problem`."""
    edges_per_node = max(1, config.degree // 2)
    graph = graphs.barabasi_albert(_part(key, 0), config.num_nodes, edges_per_node)
    return _taught("power law", config, key, graph)


def digits_problem(num_neighbors: int = 24) -> Problem:
    """Handwritten digits on their graph of nearest neighbours."""
    graph = graphs.digits(num_neighbors)
    return _problem("digits", graph, np.asarray(graph.features, np.float64), graph.labels, 10)


def citation_problem(name: str, num_features: int = 100) -> Problem:
    """Citation graph `cora`, `citeseer` or `pubmed`, features projected to `num_features` columns.

    The projection is one Gaussian matrix N(0, 1/num_features), fixed once and for all.
    """
    graph = graphs.planetoid(name)
    words = np.asarray(graph.features)
    rng = generator(jax.random.key(_PROJECTION, impl="threefry2x32"))
    projection = rng.standard_normal((words.shape[1], num_features))
    features = words @ projection / np.sqrt(num_features)
    return _problem(name, graph, features, graph.labels, len(graph.class_names))


def split(
    key: jax.Array, labels: Int[np.ndarray, " n"], num_train: int
) -> tuple[Int[np.ndarray, " train"], Int[np.ndarray, " test"]]:
    """A uniform subset of `num_train` labelled nodes, in random order, and all other labelled nodes."""
    known = np.flatnonzero(labels >= 0)
    check_integer("num_train", num_train, 1, len(known) - 1, why="one less than labelled nodes")
    order = generator(key).permutation(known)
    return order[:num_train], order[num_train:]


def _contextual(label: str, config: Config, key: jax.Array, graph: Any) -> Problem:
    features = graphs.class_features(
        _part(key, 1), graph.labels, config.num_features, config.class_gap
    )
    return _problem(label, graph, features, graph.labels, config.num_classes)


def _taught(label: str, config: Config, key: jax.Array, graph: Any) -> Problem:
    rng = generator(_part(key, 1))
    features = rng.standard_normal((graph.num_nodes, config.num_features))
    teacher = rng.standard_normal((config.num_features, config.num_classes))
    senders, receivers = graph.to_edge_index()
    sums = np.zeros_like(features)
    np.add.at(sums, receivers, features[senders])
    means = sums / np.maximum(graph.degrees(), 1)[:, None]
    return _problem(label, graph, features, np.argmax(means @ teacher, axis=1), config.num_classes)


def _problem(label: str, graph: Any, features: Any, labels: Any, num_classes: int) -> Problem:
    if labels.max(initial=-1) >= num_classes:
        raise fail("labels", labels.max(), f"classes below {num_classes}")
    targets = (labels[:, None] == np.arange(num_classes)).astype(np.float64)
    return Problem(label, graph, features, targets, labels)


def _part(key: jax.Array, number: int) -> jax.Array:
    return jax.random.fold_in(key, number)
