"""What one fan-out does to training, whatever the batch size: aim, floor, noise and step size.

Symbols: n training nodes, β fan-out, h̄_i full neighbour means (r), y_i targets (K), V̄(β) the mean
covariance of the sampled neighbour mean, M = C_hh + V̄, W_β the minimiser of the sampled loss. Losses are
means over nodes of ½‖·‖².
"""

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


def fan_out_effect(
    graph: Any,
    features: Float[np.ndarray, "n r"],
    targets: Float[np.ndarray, "n K"],
    nodes: Int[np.ndarray, " train"],
    fan_out: int,
    num_folds: int,
) -> FanOutEffect:
    """All that the advice needs to know about one fan-out, by the closed forms of the theory.

    `num_folds`: so many of `FOLDS` folds (every fifth node each) are evaluated, by exact refits without
    them; with 0 all nodes are, at W_β itself.
    """
    y, n = targets[nodes], len(nodes)
    moments = neighbor_mean_moments(graph, features, fan_out, nodes)
    h, v = np.asarray(moments.mean), np.asarray(moments.average_covariance)
    moment, cross = h.T @ h / n + v, y.T @ h / n
    if len(moment) <= WIDEST:
        weights = np.asarray(implicit_ridge(h, v, y).weights)
    else:
        weights = _minimiser(moment, cross)
    own = 0.5 * np.sum((h @ weights.T - y) ** 2, axis=1)
    losses = [] if num_folds else [own]
    for fold in range(num_folds):
        out = np.arange(n) % FOLDS == fold
        left, without, size = y[out], h[out], int(out.sum())
        spread = neighbor_mean_moments(graph, features, fan_out, nodes[out]).average_covariance
        # Means over the nodes that stay, from those over all and over the fold.
        rest = n * moment - without.T @ without - size * np.asarray(spread)
        refit = _minimiser(rest / (n - size), (n * cross - left.T @ without) / (n - size))
        losses.append(0.5 * np.sum((without @ refit.T - left) ** 2, axis=1))
    noise = gradient_noise(graph, features, targets, weights, 1, fan_out, nodes)
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
    """C_yh (M + jitter)⁻¹: the minimiser of least norm to about `JITTER` of M's largest eigenvalue."""
    from scipy.linalg import cho_factor, cho_solve

    shifted = moment.copy()
    shifted[np.diag_indices(len(moment))] += max(JITTER * np.trace(moment), np.finfo(float).tiny)
    factor = cho_factor(shifted, overwrite_a=True, check_finite=False)
    return cho_solve(factor, cross.T, check_finite=False).T


def _largest_eigenvalue(moment: Float[np.ndarray, "r r"]) -> float:
    if len(moment) <= 256:
        return float(np.linalg.eigvalsh(moment)[-1])
    from scipy.sparse.linalg import eigsh

    start = np.ones(len(moment)) + np.arange(len(moment)) / len(moment)  # eigsh would draw one
    return float(eigsh(moment, 1, which="LA", v0=start, tol=1e-10, return_eigenvectors=False)[0])
