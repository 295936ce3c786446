"""What one fan-out does to training, whatever the batch size: aim, floor, noise and step size.

Symbols: n training nodes, β fan-out, h̄_i full neighbour means (r), y_i targets (K), V̄(β) the mean
covariance of the sampled neighbour mean, M = C_hh + V̄, W_β the minimiser of the sampled loss. Losses are
means over nodes of ½‖·‖².
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from boundlab.theory.fanout import gradient_noise, implicit_ridge, neighbor_mean_moments

WIDEST = 1024
"""More directions than this are solved by Cholesky: an eigendecomposition takes ten times as long."""
JITTER = 1e-11
FOLDS = 5


class FanOutEffect(NamedTuple):
    """Quantities at one fan-out."""

    floor: float
    """L_β(W_β), the least sampled loss."""
    losses: Float[np.ndarray, " evaluated"]
    """½‖W h̄_i − y_i‖² with all neighbours, of each node that is evaluated."""
    between: float
    """tr S_μ²: batch part of the gradient noise is (1/b − 1/n) times this."""
    within: float
    """mean tr Λ_i: fan-out part of the gradient noise is 1/b times this."""
    largest: float
    """λ_max(M)."""
    trace: float
    """tr M."""


class _Training(NamedTuple):
    """What the fan-out doesn't change: training nodes, their means and second moments, fold by fold."""

    nodes: Int[np.ndarray, " train"]
    mean: Float[np.ndarray, "train r"]
    targets: Float[np.ndarray, "train K"]
    moment: Float[np.ndarray, "r r"]
    cross: Float[np.ndarray, "K r"]
    folds: tuple["_Training", ...]


def fan_out_effects(
    graph: Any,
    features: Float[np.ndarray, "n r"],
    targets: Float[np.ndarray, "n K"],
    nodes: Int[np.ndarray, " train"],
    fan_outs: Sequence[int],
    num_folds: int,
) -> list[FanOutEffect]:
    """All that the advice needs to know about each fan-out, by the closed forms of the theory.

    `num_folds`: so many of `FOLDS` folds (every fifth node each) are evaluated, by exact refits without
    them; with 0 all nodes are, at W_β itself.
    """
    most = max(1, int(np.max(graph.degrees())))  # nothing varies there: means alone
    full = neighbor_mean_moments(graph, features, most, nodes).mean
    fold_of = np.arange(len(nodes)) % FOLDS
    folds = tuple(
        _training(nodes[fold_of == fold], full[fold_of == fold], targets)
        for fold in range(num_folds)
    )
    training = _training(nodes, full, targets, folds)
    return [_effect(graph, features, targets, training, fan_out) for fan_out in fan_outs]


def _training(
    nodes: Int[np.ndarray, " train"],
    mean: Float[np.ndarray, "train r"],
    targets: Float[np.ndarray, "n K"],
    folds: tuple[_Training, ...] = (),
) -> _Training:
    y, n = targets[nodes], len(nodes)
    return _Training(nodes, mean, y, mean.T @ mean / n, y.T @ mean / n, folds)


def _effect(
    graph: Any,
    features: Float[np.ndarray, "n r"],
    targets: Float[np.ndarray, "n K"],
    training: _Training,
    fan_out: int,
) -> FanOutEffect:
    h, y, n = training.mean, training.targets, len(training.nodes)
    v = neighbor_mean_moments(graph, features, fan_out, training.nodes).average_covariance
    moment = training.moment + v
    if len(moment) <= WIDEST:
        weights = np.asarray(implicit_ridge(h, v, y).weights)
    else:
        weights = _minimiser(moment.copy(), training.cross)
    own = 0.5 * np.sum((h @ weights.T - y) ** 2, axis=1)
    losses = [] if training.folds else [own]
    for fold in training.folds:
        size = len(fold.nodes)
        # Means over the nodes that stay, from those over all and over the fold.
        spread = neighbor_mean_moments(graph, features, fan_out, fold.nodes).average_covariance
        rest = moment * (n / (n - size))
        rest -= (fold.moment + spread) * (size / (n - size))
        refit = _minimiser(rest, (n * training.cross - size * fold.cross) / (n - size))
        losses.append(0.5 * np.sum((fold.mean @ refit.T - fold.targets) ** 2, axis=1))
    noise = gradient_noise(graph, features, targets, weights, 1, fan_out, training.nodes)
    return FanOutEffect(
        floor=float(own.mean() + max(0.0, 0.5 * np.sum((weights @ v) * weights))),
        losses=np.concatenate(losses),
        between=noise.batch_part / (1 - 1 / n) if n > 1 else 0.0,
        within=noise.fan_out_part,
        largest=_largest_eigenvalue(moment),
        trace=float(np.trace(moment)),
    )


def compressed(
    graph: Any, features: Float[np.ndarray, "n r"], nodes: Int[np.ndarray, " train"]
) -> Float[np.ndarray, "n s"]:
    """Features in an orthonormal basis of what the training nodes' neighbours span, if that is half.

    An isometry on every feature that is read: losses, floors and the trace of the gradient noise stay
    as they are, and W_β of least norm lies in the span.
    """
    senders, receivers = np.asarray(graph.to_edge_index())
    wanted = np.zeros(graph.num_nodes, dtype=bool)
    wanted[nodes] = True
    read = np.unique(senders[wanted[receivers]])
    if 2 * len(read) > features.shape[1]:
        return features  # little to gain, and the basis takes longer than what follows
    result = np.zeros((len(features), max(1, len(read))))
    if len(read):
        basis, _ = np.linalg.qr(features[read].T)
        result[read] = features[read] @ basis
    return result


def _minimiser(
    moment: Float[np.ndarray, "r r"], cross: Float[np.ndarray, "K r"]
) -> Float[np.ndarray, "K r"]:
    """C_yh (M + jitter)⁻¹: the minimiser of least norm to about `JITTER` of M's largest eigenvalue.

    `moment` is overwritten: at thousands of features a copy takes as long as it is large.
    """
    from scipy.linalg import cho_factor, cho_solve

    moment[np.diag_indices(len(moment))] += max(JITTER * np.trace(moment), np.finfo(float).tiny)
    factor = cho_factor(moment.T, overwrite_a=True, check_finite=False)  # LAPACK's order of axes
    return cho_solve(factor, cross.T, check_finite=False).T


def _largest_eigenvalue(moment: Float[np.ndarray, "r r"]) -> float:
    if len(moment) <= 256:
        return float(np.linalg.eigvalsh(moment)[-1])
    from scipy.sparse.linalg import eigsh

    start = np.ones(len(moment)) + np.arange(len(moment)) / len(moment)  # eigsh would draw one
    return float(eigsh(moment, 1, which="LA", v0=start, tol=1e-10, return_eigenvectors=False)[0])
