"""Noise of the mini-batch gradient, split into the part of the batch and the part of the fan-out.

One linear layer, squared loss. Symbols: node i has features x_j around it, full and sampled
neighbour means h̄_i and h̃_i (0 without neighbours), target y_i; its gradient in W (K, r) is
g_i = (W h̃_i − y_i) h̃_iᵀ, with mean μ_i and covariance Λ_i over the samples. A batch of b of n nodes,
drawn without replacement, each with a sample of its own, has

    Cov(mean of g_i) = (1/b) [(1 − b/n) S_μ² + mean_i Λ_i],   S_μ² = (n − 1)⁻¹ Σ_i (μ_i − μ̄)(μ_i − μ̄)ᵀ,

and S_μ² = 0 for n = 1.

Inside: z_j = x_j − h̄_i, ξ = h̃_i − h̄_i, e = W h̄_i − y_i, C = Σ_j z_j z_jᵀ and B = W C; then
g = e h̄ᵀ + A ξ + q(ξ), A ξ = e ξᵀ + W ξ h̄ᵀ and q(ξ) = W ξ ξᵀ.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from boundlab.checks import check_number, check_shape
from boundlab.precision import float64, is_traced
from boundlab.theory.fanout import _graph
from boundlab.theory.fanout._fourth_moments import coefficients
from boundlab.theory.fanout._outcome import nan_unless, refuse_overflow
from boundlab.theory.fanout.moments import neighbor_mean_moments
from boundlab.theory.fanout.ridge import minimiser
from boundlab.typing import Count, Numbers, Scalar

BLOCKS = 16
"""Of a piece of edges × features: 2 MB each."""


class GradientCovariance(NamedTuple):
    """Covariance of the batch-mean gradient; its two parts, 1/b included, add up.

    Attributes:
        batch_part: (K·r, K·r), which nodes are in the batch; 0 at b = n.
        fan_out_part: (K·r, K·r), which neighbours are sampled; 0 where β ≥ every degree.

    """

    batch_part: Float[np.ndarray, "Kr Kr"]
    fan_out_part: Float[np.ndarray, "Kr Kr"]


class GradientNoise(NamedTuple):
    """Traces of the two parts of `GradientCovariance`: expected squared distances.

    Attributes:
        batch_part: scalar, which nodes are in the batch.
        fan_out_part: scalar, which neighbours are sampled.

    """

    batch_part: np.float64
    fan_out_part: np.float64


class _Problem(NamedTuple):
    """Checked arguments, on the rows."""

    over: _graph.Rows
    x: Float[np.ndarray, "n r"]
    mean: Float[np.ndarray, "rows r"]
    y: Float[np.ndarray, "rows K"]
    error: Float[np.ndarray, "rows K"]
    weights: Float[np.ndarray, "K r"]
    batch_size: int
    fan_out: int


def _problem(
    graph: Any,
    features: Numbers,
    targets: Numbers,
    weights: Numbers,
    batch_size: Count,
    fan_out: Count,
    nodes: Any,
) -> _Problem:
    over = _graph.rows(graph, nodes)
    x = _graph.features_of(features, over.num_nodes)
    y = _graph.targets_of(targets, over)
    w = _graph.weights_of(weights, y.shape[1], x.shape[1])
    b = _graph.batch_size_of(batch_size, len(y))
    mean = over.mean(x)
    return _Problem(over, x, mean, y, mean @ w.T - y, w, b, _graph.fan_out_of(fan_out))


@float64
@np.errstate(over="ignore", invalid="ignore")  # an error of our own instead
def gradient_covariance(
    graph: Any,
    features: Numbers,
    targets: Numbers,
    weights: Numbers,
    batch_size: Count,
    fan_out: Count,
    nodes: Any = None,
) -> GradientCovariance:
    """Covariance matrix of the mini-batch gradient, exact for any features (no Gaussian formula).

    Cov = (1/b) [(1 − b/n) S_μ² + mean_i Λ_i] of the vector of K·r numbers got by reading the (K, r)
    gradient of the batch mean of ½‖W h̃_i − y_i‖² row by row. With g_i = (W h̃_i − y_i) h̃_iᵀ the gradient
    of one node, h̃_i the mean over m_i = min(β, d_i) of its d_i neighbours (0 for d_i = 0, which makes
    g_i = 0): μ_i = E g_i and Λ_i = Cov g_i over the samples, from the finite-population moments of h̃_i
    up to the fourth; S_μ² the covariance of the μ_i over the nodes with divisor n − 1, 0 for n = 1.
    Takes memory (K·r)²: `gradient_noise` gives the traces alone.

    Args:
        graph: directed or not; its nodes hold the features.
        features: (all nodes, r), finite.
        targets: (all nodes, K); rows outside `nodes` are not read.
        weights: (K, r) W, where the gradient is taken.
        batch_size: b, 1 … n, drawn without replacement.
        fan_out: β ≥ 1, sampled without replacement, independently for each node of the batch.
        nodes: the n distinct nodes that batches are drawn from; all by default.

    Returns:
        GradientCovariance, in units of the gradient squared: NumPy arrays.

    Raises:
        ValueError: an argument is out of range, not finite, of another shape, or so large that the
            result passes float64; it is named.

    Source: derived, docs/fanout.md, Gradient noise.

    """
    p = _problem(graph, features, targets, weights, batch_size, fan_out, nodes)
    n, size = len(p.error), p.weights.size
    c = coefficients(p.over.degrees, p.fan_out)
    mu = np.einsum("ik,ip->ikp", p.error, p.mean).reshape(n, size)
    noise = np.zeros((size, size))
    for at, part in p.over.pieces(size + p.weights.shape[1] ** 2):
        second, third, fourth, pairs = (values[at] for values in c)
        z = p.x[part.senders] - p.mean[at][part.row]
        u = z @ p.weights.T
        linear = np.einsum("ek,ep->ekp", p.error[at][part.row], z)
        linear += np.einsum("ek,ep->ekp", u, p.mean[at][part.row])
        linear = linear.reshape(-1, size)
        square = np.einsum("ek,ep->ekp", u, z).reshape(-1, size)
        b = part.sum(square)  # W C of each row
        mu[at] += second[:, None] * b
        noise += linear.T @ (second[part.row][:, None] * linear)
        cross = linear.T @ (third[part.row][:, None] * square)
        noise += cross + cross.T + square.T @ (fourth[part.row][:, None] * square)
        noise += _pairings(part, z, u, b, pairs) - b.T @ (second[:, None] ** 2 * b)
    spread = mu - mu.mean(axis=0)
    batch = spread.T @ spread / max(n - 1, 1)
    share = (1.0 / p.batch_size - 1.0 / n) if n > 1 else 0.0
    result = GradientCovariance(share * batch, noise / n / p.batch_size)
    refuse_overflow(result, features=p.x, targets=p.y, weights=p.weights)
    return result


def _pairings(
    part: _graph.Rows,
    z: Float[np.ndarray, "edges r"],
    u: Float[np.ndarray, "edges K"],
    b: Float[np.ndarray, "rows Kr"],
    weight: Float[np.ndarray, " rows"],
) -> Float[np.ndarray, "Kr Kr"]:
    """Σ_i weight_i times the sum over the three pairings of (W ξ)_k, ξ_p, (W ξ)_l, ξ_q."""
    outputs, r = u.shape[1], z.shape[1]
    inner = part.sum(np.einsum("ep,eq->epq", z, z))
    outer = part.sum(np.einsum("ek,el->ekl", u, u)) * weight[:, None, None]
    apart = outer.reshape(-1, outputs**2).T @ inner.reshape(-1, r**2)
    apart = apart.reshape(outputs, outputs, r, r).transpose(0, 2, 1, 3)
    own = b.T @ (weight[:, None] * b)
    crossed = own.reshape(outputs, r, outputs, r).transpose(0, 3, 2, 1)
    return own + (apart + crossed).reshape(own.shape)


@float64
@np.errstate(over="ignore", invalid="ignore")
def gradient_noise(
    graph: Any,
    features: Numbers,
    targets: Numbers,
    weights: Numbers,
    batch_size: Count,
    fan_out: Count,
    nodes: Any = None,
) -> GradientNoise:
    """Traces of both parts of `gradient_covariance`, without its matrices: exact on large graphs.

    tr Cov = (1/b) [(1 − b/n) tr S_μ² + mean_i tr Λ_i], in time edges × K × r. μ_i and Λ_i are mean and
    covariance of a node's gradient (W h̃_i − y_i) h̃_iᵀ over its samples, 0 for a node without
    neighbours; S_μ² the covariance of the μ_i over the nodes, divisor n − 1, 0 for n = 1.

    Args:
        graph: directed or not; its nodes hold the features.
        features: (all nodes, r), finite.
        targets: (all nodes, K); rows outside `nodes` are not read.
        weights: (K, r) W, where the gradient is taken.
        batch_size: b, 1 … n, drawn without replacement.
        fan_out: β ≥ 1, sampled without replacement, independently for each node of the batch.
        nodes: the n distinct nodes that batches are drawn from; all by default.

    Returns:
        GradientNoise, NumPy numbers in units of the gradient squared.

    Raises:
        ValueError: an argument is out of range, not finite, of another shape, or so large that the
            result passes float64; it is named.

    Source: derived, docs/fanout.md, Gradient noise.

    """
    p = _problem(graph, features, targets, weights, batch_size, fan_out, nodes)
    result = _noise(p)
    refuse_overflow(result, features=p.x, targets=p.y, weights=p.weights)
    return result


def _noise(p: _Problem) -> GradientNoise:
    n = len(p.error)
    between, within = _traces(p)
    share = (1.0 / p.batch_size - 1.0 / n) if n > 1 else 0.0
    return GradientNoise(np.float64(share * between), np.float64(within / p.batch_size))


def _traces(p: _Problem) -> tuple[float, float]:
    """Traces of S_μ² and of the mean of Λ_i."""
    n = len(p.error)
    c = coefficients(p.over.degrees, p.fan_out)
    varied = np.flatnonzero(c.second)  # elsewhere every neighbour is in the sample
    part, mean, error = p.over.kept(varied), p.mean[varied], p.error[varied]
    second, third, fourth, pairs = (values[varied] for values in c)
    u = (p.x @ p.weights.T)[part.senders] - (mean @ p.weights.T)[part.row]
    length, along = _edge_products(p.x, mean, part)
    error_u = np.einsum("ek,ek->e", error[part.row], u)
    squared = np.einsum("ek,ek->e", u, u)
    total = second * np.einsum("ik,ik->i", error, error) * part.sum(length)
    total += second * np.einsum("ip,ip->i", mean, mean) * part.sum(squared)
    total += 2.0 * second * part.sum(error_u * along)
    total += 2.0 * third * part.sum(error_u * length + squared * along)
    total += fourth * part.sum(squared * length)
    total += pairs * part.sum(squared) * part.sum(length)
    between, squares = _spread(p, varied, part, u, second)
    total += (2.0 * pairs - second**2) * squares
    return between, float(total.sum()) / n


def _spread(
    p: _Problem,
    varied: Int[np.ndarray, " varied"],
    part: _graph.Rows,
    u: Float[np.ndarray, "edges K"],
    second: Float[np.ndarray, " varied"],
) -> tuple[float, Float[np.ndarray, " varied"]]:
    """Trace of S_μ² and ‖W C‖² of each varied row, in blocks that stay within the processor's caches."""
    n, r = p.mean.shape
    # Σ_j u_j z_jᵀ = Σ_j u_j x_jᵀ, since Σ_j u_j = 0: sums over edges give W C of each row and the mean μ̄.
    pushed = [np.bincount(part.senders, second[part.row] * v, part.num_nodes) for v in u.T]
    centre = (p.error.T @ p.mean + np.reshape(pushed, (-1, part.num_nodes)) @ p.x) / n
    between, squares = 0.0, np.zeros(len(varied))
    for at, block in part.pieces(BLOCKS * r):
        edges = slice(int(part.start[at.start]), int(part.start[at.stop]))
        mean, error = p.mean[varied[at]], p.error[varied[at]]
        for k, middle in enumerate(centre):
            b = block.matrix(u[edges, k]) @ p.x  # row k of W C
            squares[at] += np.einsum("ip,ip->i", b, b)
            b *= second[at, None]
            b += error[:, k : k + 1] * mean
            b -= middle
            between += float(np.vdot(b, b))
    still = np.setdiff1d(np.arange(n), varied)
    for low in range(0, len(still), max(1, _graph.CHUNK // (BLOCKS * r))):
        rows = still[low : low + max(1, _graph.CHUNK // (BLOCKS * r))]
        for k, middle in enumerate(centre):
            mu = p.error[rows, k : k + 1] * p.mean[rows]
            mu -= middle
            between += float(np.vdot(mu, mu))
    return between / max(n - 1, 1), squares


def _edge_products(
    x: Float[np.ndarray, "n r"], mean: Float[np.ndarray, "rows r"], over: _graph.Rows
) -> tuple[Float[np.ndarray, " edges"], Float[np.ndarray, " edges"]]:
    """‖z_j‖² and h̄ᵀz_j of every edge, without holding edges × features at once."""
    length, along = np.zeros(len(over.senders)), np.zeros(len(over.senders))
    for at, part in over.pieces(x.shape[1]):
        edges = slice(int(over.start[at.start]), int(over.start[at.stop]))
        z = x[part.senders] - mean[at][part.row]
        length[edges] = np.einsum("ep,ep->e", z, z)
        along[edges] = np.einsum("ep,ep->e", mean[at][part.row], z)
    return length, along


@float64
@np.errstate(over="ignore", invalid="ignore")
def noise_floor(
    graph: Any,
    features: Numbers,
    targets: Numbers,
    batch_size: Count,
    fan_out: Count,
    step_size: Scalar,
    nodes: Any = None,
) -> np.float64 | Float[Array, ""]:
    """Excess sampled loss at which SGD settles, E L_β(W_∞) − L_β(W_β) = (η/4) tr Cov(ĝ) at W_β.

    To first order in the step size: the relative error is about ½η(λ_max(M) + tr M/b), M = C_hh + V̄,
    so that it is small for b of the order of r and more. W_β, C_hh and V̄ are those of `implicit_ridge`,
    Cov(ĝ) the sum of both parts of `gradient_covariance` there. β moves the minimiser W_β and the noise,
    b the noise alone.

    Args:
        graph: directed or not; its nodes hold the features.
        features: (all nodes, r), finite.
        targets: (all nodes, K); rows outside `nodes` are not read.
        batch_size: b, 1 … n, drawn without replacement and afresh at every step.
        fan_out: β ≥ 1, sampled without replacement.
        step_size: η in (0, 2/λ_max(M)), on the gradient of the batch mean of ½‖·‖²; may be traced.
        nodes: the n distinct nodes that batches are drawn from; all by default.

    Returns:
        Excess loss, scalar, a mean over nodes of ½‖·‖²: a NumPy number, or a JAX array for a traced
        step size; then ∞ from the limit on, where SGD does not settle, and NaN for η ≤ 0.

    Raises:
        ValueError: an argument is out of range, not finite, of another shape, or so large that the
            result passes float64; it is named. For
            `step_size` the message gives the limit.

    Source: derived, docs/fanout.md, Gradient noise.

    """
    over = _graph.rows(graph, nodes)
    y = _graph.targets_of(targets, over)
    x = _graph.features_of(features, over.num_nodes)
    moments = neighbor_mean_moments(graph, x, fan_out, nodes)
    moment = moments.mean.T @ moments.mean / len(y) + moments.average_covariance
    refuse_overflow([moment], features=x)
    largest = float(np.linalg.eigvalsh(moment)[-1])
    limit = 2.0 / largest if largest > 0.0 else np.inf
    why = f"2/λ_max(C_hh + V̄) = {limit:.12g}" if np.isfinite(limit) else ""
    check_shape("step_size", step_size, ())
    check_number("step_size", step_size, 0.0, limit, low_open=True, high_open=True, why=why)
    with jax.ensure_compile_time_eval():  # the step size alone may be traced
        h, v = map(jnp.asarray, (moments.mean, moments.average_covariance))
        weights = np.asarray(minimiser(h, v, jnp.asarray(y)).weights)
    refuse_overflow([weights], features=x, targets=y)
    noise = sum(_noise(_problem(graph, x, targets, weights, batch_size, fan_out, nodes)))
    refuse_overflow([noise], features=x, targets=y)
    if not is_traced(step_size):
        return np.float64(0.25 * float(np.asarray(step_size)) * noise)
    eta = jnp.asarray(step_size, dtype=jnp.float64)
    floor = jnp.where(eta >= limit, jnp.inf, 0.25 * eta * noise)
    return nan_unless(eta > 0.0, floor)
