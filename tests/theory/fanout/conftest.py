"""Shared by the tests of the fan-out theory."""

import itertools
from typing import NamedTuple

import jaxtyping
import numpy as np
import pytest


@pytest.fixture
def as_users_call(monkeypatch):
    """Switch the run-time type checker off, which would refuse some bad input before we do."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


class Ragged(NamedTuple):
    """A small directed graph with in-degrees 0 … 5, features, targets and weights, by hand."""

    neighbors: tuple[tuple[int, ...], ...]
    features: np.ndarray
    targets: np.ndarray
    weights: np.ndarray

    @property
    def num_nodes(self):
        return len(self.neighbors)

    def to_edge_index(self):
        pairs = [(j, i) for i, senders in enumerate(self.neighbors) for j in senders]
        return np.array(pairs).T

    def sampled_means(self, node, fan_out):
        """The neighbour mean of every sample of one node, all equally likely."""
        senders = self.neighbors[node]
        size = min(fan_out, len(senders))
        subsets = itertools.combinations(senders, size)
        means = [self.features[list(s)].mean(axis=0) for s in subsets if s]
        return np.array(means or [np.zeros(self.features.shape[1])])


@pytest.fixture(scope="session")
def ragged() -> Ragged:
    rng = np.random.default_rng(11)
    neighbors = ((), (4,), (0, 3), (1, 4, 5), (0, 1, 2, 3), (0, 1, 2, 3, 4))
    return Ragged(
        neighbors, rng.normal(size=(6, 3)), rng.normal(size=(6, 2)), rng.normal(size=(2, 3))
    )
