"""Where to draw the nodes of small graphs: distances on paper follow those in the graph.

Stress majorisation (SMACOF): the sum over pairs of (|x_i − x_j| − d_ij)²/d_ij² falls in every iteration,
d_ij the number of edges on a shortest path.
"""

import numpy as np
from jaxtyping import Bool, Float
from scipy.sparse.csgraph import shortest_path

ITERATIONS = 200


def positions(
    adjacency: Float[np.ndarray, "m n n"], mask: Bool[np.ndarray, "m n"]
) -> Float[np.ndarray, "m n 2"]:
    """Coordinates in [−1, 1] of the nodes of each graph; NaN where no node is. Deterministic."""
    found = np.full((*mask.shape, 2), np.nan)
    for place, edges, nodes in zip(found, adjacency, mask, strict=True):
        place[nodes] = _drawn(edges[np.ix_(nodes, nodes)])
    return found


def _drawn(adjacency: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n 2"]:
    n = len(adjacency)
    distance = shortest_path(adjacency, unweighted=True)
    apart = ~np.isfinite(distance)
    distance[apart] = distance[~apart].max() + 1  # components lie side by side
    weight = 1 / np.where(distance > 0, distance, np.inf) ** 2
    angle = 2 * np.pi * np.arange(n) / n
    place = distance.mean() * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    inverse = np.linalg.pinv(np.diag(weight.sum(axis=1)) - weight)
    for _ in range(ITERATIONS):
        gap = np.linalg.norm(place[:, None] - place[None, :], axis=-1)
        pull = weight * distance / np.where(gap > 0, gap, 1.0)
        place = inverse @ (np.diag(pull.sum(axis=1)) - pull) @ place
    place = place - (place.max(axis=0) + place.min(axis=0)) / 2
    return place / max(np.abs(place).max(), 1e-9)
