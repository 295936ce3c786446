"""The published Δ(β, b) of the mean aggregator, from explicit rows of the aggregator on drawn batches.

Symbols: a_i a node's row of the aggregator with all neighbours, a'_i with sampled ones, computed within
a batch; δ_i their distance; OT the optimal transport from training to test nodes.
"""

import jax
import numpy as np
import xarray as xr

from boundlab.models import graphs
from boundlab.models.graphs import Graph
from boundlab.models.random_graphs import generator
from boundlab.models.sampling import sample_neighbors
from boundlab.theory.fanout import wasserstein_delta

KINDS = ("trace", "sqnorm", "nuclear")
NODES = 96
NUM_TRAIN = 48
BATCH_SIZES = (4, 16, NUM_TRAIN)
FAN_OUTS = (1, 2, 4, 8)
GRAPHS = ("power law", "regular")
DEGREE = 12
# Fewer than half of the neighbours: there the count of absent rows as zero makes Δ rise with b.
FEW = 4


def delta(key: jax.Array) -> xr.Dataset:
    """Δ by one transport whose cost holds both parts, beside the decoupled theory; n_train = n_test."""
    built = (
        graphs.barabasi_albert(jax.random.fold_in(key, 0), NODES, 4),
        graphs.random_regular(jax.random.fold_in(key, 1), NODES, DEGREE),
    )
    order = generator(jax.random.fold_in(key, 2)).permutation(NODES)
    train, test = order[:NUM_TRAIN], order[NUM_TRAIN:]
    most = max(int(graph.degrees().max()) for graph in built)
    fan_outs = (*FAN_OUTS, most)
    shape = (len(built), len(KINDS), len(fan_outs), len(BATCH_SIZES))
    whole, total, full = np.empty(shape), np.empty(shape), np.empty(shape)
    absent = np.empty((len(FAN_OUTS), len(BATCH_SIZES)))
    for g, graph in enumerate(built):
        rows = graph.adjacency() / np.maximum(graph.degrees(), 1)[:, None]
        costs = [_distances(rows[train][:, None], rows[test][None], kind) for kind in KINDS]
        for f, fan_out in enumerate(fan_outs):
            for s, size in enumerate(BATCH_SIZES):
                place = (g, slice(None), f, s)
                sampled = _sampled_rows(
                    jax.random.fold_in(key, 3 + f), graph, train, size, fan_out, most
                )
                moved = [_distances(rows[train], sampled, kind) for kind in KINDS]
                whole[place] = [
                    _transport(cost + u[:, None]) for cost, u in zip(costs, moved, strict=True)
                ]
                found = [
                    wasserstein_delta(graph, train, test, size, fan_out, kind) for kind in KINDS
                ]
                total[place] = [float(one.total) for one in found]
                full[place] = [float(one.full) for one in found]
                if GRAPHS[g] == "regular" and fan_out <= max(FAN_OUTS):
                    # One batch's rows, all others counted as zero, as in the draft's proof.
                    kept = np.where(np.arange(NUM_TRAIN)[:, None] < size, sampled, 0.0)
                    absent[f, s] = _distances(rows[train], kept, "sqnorm").mean()
    dims = ("transport_graph", "transport_kind", "transport_fan_out", "transport_batch_size")
    few = np.array(FAN_OUTS) <= FEW
    return xr.Dataset(
        {
            "transport_whole": (dims, whole, {"long_name": "Δ by one transport over both costs"}),
            "transport_delta": (dims, total, {"long_name": "Δ = OT(δ full) + mean δ"}),
            "transport_delta_full": (dims, full, {"long_name": "OT(δ full) alone"}),
            "transport_absent": (
                ("transport_few", "transport_batch_size"),
                absent[few],
                {"long_name": "mean squared distance, rows outside of the batch counted as zero"},
            ),
        },
        coords={
            "transport_graph": list(GRAPHS),
            "transport_kind": list(KINDS),
            "transport_fan_out": list(fan_outs),
            "transport_batch_size": list(BATCH_SIZES),
            "transport_few": np.array(FAN_OUTS)[few],
        },
    )


def _sampled_rows(
    key: jax.Array, graph: Graph, train: np.ndarray, size: int, fan_out: int, most: int
) -> np.ndarray:
    """Rows a'_i of the training nodes, 1/m_i on the sample that node i has in its batch."""
    rows = np.zeros((NUM_TRAIN, NODES))
    for step, nodes in enumerate(np.arange(NUM_TRAIN).reshape(-1, size)):
        padded = np.resize(nodes, NUM_TRAIN)  # one shape, so one program, for every batch size
        sample = sample_neighbors(
            jax.random.fold_in(key, step), graph, train[padded], fan_out, most
        )
        index, mask = (np.asarray(part)[:size] for part in sample)
        row, slot = np.nonzero(mask)
        rows[nodes[row], index[row, slot]] = 1 / mask.sum(axis=1)[row]
    return rows


def _distances(first: np.ndarray, other: np.ndarray, kind: str) -> np.ndarray:
    """Distance of rows along the last axis; the nuclear norm from the two eigenvalues of aaᵀ − bbᵀ."""
    if kind == "trace":
        return np.abs(first**2 - other**2).sum(axis=-1)
    if kind == "sqnorm":
        return ((first - other) ** 2).sum(axis=-1)
    # In the plane of a and b: sum and product of the eigenvalues are |a|² − |b|² and (ab)² − |a|²|b|².
    a, b = (first**2).sum(axis=-1), (other**2).sum(axis=-1)
    inner = (first * other).sum(axis=-1)
    return np.sqrt(np.maximum((a - b) ** 2 + 4 * (a * b - inner**2), 0.0))


def _transport(cost: np.ndarray) -> float:
    """Least mean cost of matching every training node with a test node."""
    from scipy.optimize import linear_sum_assignment

    return float(cost[linear_sum_assignment(cost)].mean())
