"""Δ beside the generalisation gaps of models that were trained on sampled neighbourhoods.

The model is the minimiser of the squared loss of drawn samples; the gap is its test loss with all
neighbours minus its training loss on the samples, means over nodes of ½‖·‖².
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int

from boundlab.analysis.fanout.config import Config
from boundlab.analysis.fanout.ridge_simulation import node_order
from boundlab.experiment import Repeat
from boundlab.models import graphs
from boundlab.models.neighborhoods import Neighborhoods, neighborhoods
from boundlab.models.sampling import sample_neighbors
from boundlab.theory.fanout import row_distance, wasserstein_delta

HOMOPHILIES = (0.25, 0.5, 0.75, 1.0)
FAN_OUTS = (1, 2, 4, 8)
NUM_CLASSES = 4
NUM_FEATURES = 12
NUM_TRAIN = 40
# Samples of every training node behind the training loss that is minimised.
DRAWS = 16


class Cases(NamedTuple):
    """Problems of one size, stacked: graphs (their lists padded), features, full means, targets."""

    names: tuple[str, ...]
    graphs: tuple[Any, ...]
    lists: Neighborhoods
    features: Float[Array, "graphs n r"]
    means: Float[Array, "graphs n r"]
    targets: Float[Array, "graphs n K"]


def gaps(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Gap, test loss and Δ by graph, fan-out and split, and rank correlations of the first two with Δ."""
    n = config.transport_nodes
    cases = _cases(config, jax.random.fold_in(key, 0))
    chosen = jnp.asarray([*FAN_OUTS, 0])  # 0 stands for all neighbours

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        g, fan_out = params["graph"], chosen[params["fan_out"]]
        train, _ = _split(key, n)
        lists = Neighborhoods(*(part[g] for part in cases.lists))
        features, targets = cases.features[g], cases.targets[g][train]

        def draw(total: Any, step: jax.Array) -> tuple[Any, None]:
            step_key = jax.random.fold_in(jax.random.fold_in(key, 1), step)
            index, mask = sample_neighbors(step_key, lists, train, fan_out, max(FAN_OUTS))
            used = mask.astype(features.dtype)
            weights = used / jnp.maximum(used.sum(axis=1, keepdims=True), 1.0)
            sampled = jnp.einsum("bf,bfr->br", weights, features[index])
            h = jnp.where(fan_out > 0, sampled, cases.means[g][train])
            return jax.tree.map(jnp.add, total, (h.T @ h, targets.T @ h)), None

        r, k = features.shape[1], targets.shape[1]
        zero = jnp.zeros((r, r), features.dtype), jnp.zeros((k, r), features.dtype)
        (square, cross), _ = jax.lax.scan(draw, zero, jnp.arange(DRAWS, dtype=jnp.int32))
        return {"square": square / (DRAWS * NUM_TRAIN), "cross": cross / (DRAWS * NUM_TRAIN)}

    keys = jax.random.split(jax.random.fold_in(key, 1), config.transport_seeds)
    grid = {"graph": np.arange(len(cases.names)), "fan_out": np.arange(len(FAN_OUTS) + 1)}
    found = repeat("transport-gaps", one, grid, keys)
    splits = [np.asarray(part) for part in jax.jit(jax.vmap(lambda key: _split(key, n)))(keys)]
    train_loss, test_loss = _losses(cases, found["square"].values, found["cross"].values, *splits)
    distance = _deltas(cases, *splits)
    gap = test_loss - train_loss
    dims = ("transport_case", "transport_case_fan_out", "transport_seed")
    return xr.Dataset(
        {
            "transport_gap": (
                dims,
                gap,
                {"long_name": "test loss less sampled training loss, with ½"},
            ),
            "transport_case_test_loss": (dims, test_loss, {"long_name": "test loss, with ½"}),
            "transport_case_delta": (dims, distance, {"long_name": "Δ of the split, kind trace"}),
            "transport_rank_correlation": (
                "transport_seed",
                _rank_correlation(distance, gap),
                {"long_name": "rank correlation of Δ and gap over graphs and fan-outs"},
            ),
            "transport_loss_correlation": (
                "transport_seed",
                _rank_correlation(distance, test_loss),
                {"long_name": "rank correlation of Δ and test loss over graphs and fan-outs"},
            ),
        },
        coords={
            "transport_case": list(cases.names),
            "transport_case_fan_out": [*map(str, FAN_OUTS), "all"],
        },
    )


def _cases(config: Config, key: jax.Array) -> Cases:
    n, degree = config.transport_nodes, config.transport_degree
    mixes = [
        graphs.fixed_mix(jax.random.fold_in(key, i), n, degree, NUM_CLASSES, homophily)
        for i, homophily in enumerate(HOMOPHILIES)
    ]
    built: tuple[Any, ...] = (
        *mixes,
        graphs.barabasi_albert(jax.random.fold_in(key, 8), n, degree // 2),
    )
    labels = np.asarray(mixes[0].labels)
    names = [f"homophily {homophily:g}" for homophily in HOMOPHILIES] + ["power law"]
    targets = np.eye(NUM_CLASSES)[labels]
    features = [
        graphs.class_features(jax.random.fold_in(key, 9), labels, NUM_FEATURES, 0.8) for _ in built
    ]
    parts = [neighborhoods(graph) for graph in built]
    longest = max(len(part.indices) for part in parts)
    lists = Neighborhoods(
        jnp.stack([part.indptr for part in parts]),
        jnp.stack([jnp.pad(part.indices, (0, longest - len(part.indices))) for part in parts]),
    )
    means = [
        graph.adjacency() @ x / np.maximum(graph.degrees(), 1)[:, None]
        for graph, x in zip(built, features, strict=True)
    ]
    stacked = [
        jnp.asarray(np.stack(part), dtype=config.dtype)
        for part in (features, means, [targets] * len(built))
    ]
    return Cases(tuple(names), built, lists, *stacked)


def _split(key: jax.Array, num_nodes: int) -> tuple[Int[Array, " train"], Int[Array, " test"]]:
    """As many test nodes as training nodes, so that the transport is an assignment."""
    order = node_order(key, num_nodes)
    return order[:NUM_TRAIN], order[NUM_TRAIN : 2 * NUM_TRAIN]


def _losses(
    cases: Cases, square: np.ndarray, cross: np.ndarray, train: np.ndarray, test: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Training loss on the samples and test loss with all neighbours of the minimiser."""
    weights = np.linalg.solve(square, np.swapaxes(cross, -1, -2))  # (graphs, fan-outs, seeds, r, K)
    targets, means = np.asarray(cases.targets), np.asarray(cases.means)
    norm = (targets[:, train] ** 2).sum(axis=-1).mean(axis=-1)[:, None]
    fit = np.einsum("gfskr,gfsrk->gfs", cross, weights)
    output = np.einsum("gstr,gfsrk->gfstk", means[:, test], weights)
    errors = (output - targets[:, test][:, None]) ** 2
    return 0.5 * (norm - fit), 0.5 * errors.sum(axis=-1).mean(axis=-1)


def _deltas(cases: Cases, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Δ by graph, fan-out and split: one transport a split, the sampling part added."""
    result = np.empty((len(cases.graphs), len(FAN_OUTS) + 1, len(train)))
    for g, graph in enumerate(cases.graphs):
        degrees = graph.degrees()
        for s, (one, other) in enumerate(zip(train, test, strict=True)):
            full = float(wasserstein_delta(graph, one, other, NUM_TRAIN, graph.num_nodes).full)
            result[g, :, s] = full
        for f, fan_out in enumerate(FAN_OUTS):
            moved = np.asarray(row_distance(degrees, fan_out, "trace"))
            result[g, f] += moved[train].mean(axis=1)
    return result


def _rank_correlation(first: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Spearman's correlation over all axes but the last."""
    from scipy.stats import rankdata

    one, two = (rankdata(array.reshape(-1, array.shape[-1]), axis=0) for array in (first, other))
    one, two = one - one.mean(axis=0), two - two.mean(axis=0)
    return (one * two).sum(axis=0) / np.sqrt((one**2).sum(axis=0) * (two**2).sum(axis=0))
