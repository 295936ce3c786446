"""A PAC-Bayes bound that is valid, against the test loss of a linear classifier on sampled means.

Graph, features and the sampled neighbours of the training nodes are fixed; labels are drawn, independent
given the features, with known chances, so that every expected loss is exact. The classifier is least
squares on the sampled means, scaled to a norm ρ fixed beforehand; posterior Q = N(W, I), prior
N(0, I), hence KL(Q‖P) = ρ²/2; 0-1 loss, whose mean over Q is Φ(−y Wh/‖h‖).
Symbols: λ inverse temperature, δ failure probability, n_train training nodes.
"""

import jax
import numpy as np
import xarray as xr
from scipy.special import expit, ndtr

from boundlab.analysis.fanout.config import Config
from boundlab.models import graphs
from boundlab.models.random_graphs import generator
from boundlab.models.sampling import sample_neighbors
from boundlab.theory.fanout import pac_bayes_bound

NUM_TRAIN = 60
NUM_FEATURES = 24
NORM = 8.0
FAILURE_PROBABILITY = 0.05
RIDGE = 1e-3  # of least squares on as many nodes as features, or nearly


def bound(config: Config, key: jax.Array) -> xr.Dataset:
    """Test loss, the bound, and the bound without its divergence, over drawn labels and fan-outs."""
    n, degree = config.transport_nodes, config.transport_degree
    graph = graphs.random_regular(jax.random.fold_in(key, 0), n, degree)
    rng = generator(jax.random.fold_in(key, 1))
    features = rng.standard_normal((n, NUM_FEATURES)) * np.sqrt(degree)  # full means of variance 1
    full = graph.adjacency() @ features / degree
    teacher = rng.standard_normal(NUM_FEATURES)
    chance = expit(full @ teacher / np.linalg.norm(teacher))  # of the label 1
    order = rng.permutation(n)
    train, test = order[:NUM_TRAIN], order[NUM_TRAIN:]
    labels = np.where(rng.random((config.transport_labels, NUM_TRAIN)) < chance[train], 1.0, -1.0)
    fan_outs = (1, degree // 4, degree)
    rows = []
    for place, fan_out in enumerate(fan_outs):
        sample_key = jax.random.fold_in(key, 2 + place)
        index, mask = sample_neighbors(sample_key, graph, train, fan_out, degree)
        sampled = np.mean(features[np.asarray(index)], axis=1, where=np.asarray(mask)[:, :, None])
        gram = sampled.T @ sampled / NUM_TRAIN + RIDGE * np.eye(NUM_FEATURES)
        weights = labels @ sampled / NUM_TRAIN @ np.linalg.inv(gram)
        weights *= NORM / np.linalg.norm(weights, axis=1, keepdims=True)
        margins = _margins(weights, sampled)
        loss = ndtr(-labels * margins).mean(axis=1)
        shift = _expected(_margins(weights, full[test]), chance[test])
        shift -= _expected(margins, chance[train])
        rows.append((loss, shift, _expected(_margins(weights, full[test]), chance[test])))
    loss, shift, test_loss = np.stack(rows, axis=1)  # (fan-outs, labels) each
    divergence = NORM**2 / 2
    whole = _bound(loss, divergence, shift)
    without = _bound(loss, 0.0, shift)
    dims = ("transport_bound_fan_out", "transport_label_seed")
    return xr.Dataset(
        {
            "transport_train_loss": (
                dims,
                loss,
                {"long_name": "0-1 loss on the training nodes, sampled neighbours"},
            ),
            "transport_test_loss": (
                dims,
                test_loss,
                {"long_name": "expected 0-1 loss on the test nodes, all neighbours"},
            ),
            "transport_bound": (dims, whole, {"long_name": "PAC-Bayes bound on the test loss"}),
            "transport_bound_without": (
                dims,
                without,
                {"long_name": "the bound with its divergence read as 0"},
            ),
            "transport_bound_fails": (
                dims,
                (test_loss > whole).astype(float),
                {"long_name": "1 where the test loss exceeds the bound"},
            ),
            "transport_without_fails": (
                dims,
                (test_loss > without).astype(float),
                {"long_name": "1 where it exceeds the bound without divergence"},
            ),
        },
        coords={"transport_bound_fan_out": list(fan_outs)},
    )


def _bound(loss: np.ndarray, divergence: float, shift: np.ndarray) -> np.ndarray:
    """The bound at its best inverse temperature, which doesn't depend on the labels here."""
    price = divergence - np.log(FAILURE_PROBABILITY)
    rate = float(np.sqrt(8 * NUM_TRAIN * price))
    found = pac_bayes_bound(loss, divergence, NUM_TRAIN, FAILURE_PROBABILITY, rate, shift)
    return np.asarray(found)


def _margins(weights: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Wh/‖h‖ of every labelling and node; 0 for a node without neighbours."""
    norms = np.linalg.norm(means, axis=1)
    return weights @ means.T / np.where(norms > 0, norms, 1.0)


def _expected(margins: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """0-1 loss in expectation over the labels of the nodes, mean over nodes."""
    return (chance * ndtr(-margins) + (1 - chance) * ndtr(margins)).mean(axis=1)
