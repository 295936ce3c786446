"""The loss that a run with sampled neighbours sees, of one linear layer at fixed weights.

Symbols: node i has d_i neighbours N(i), of which m_i = min(β, d_i) are drawn; h̃_i is the mean of x_j
over its sample, h̄_i over all of N(i) (both 0 without neighbours), V_i = Cov h̃_i as in `moments`;
ℓ_i = ½‖W h̃_i − y_i‖²; e = W h̄_i − y_i; u_j = W (x_j − h̄_i) for j in N(i), D = Σ_j u_j u_jᵀ; c₂, c₃,
c₄, c₂₂ of `_fourth_moments`. Then
E ℓ_i = ½‖e‖² + ½ c₂ tr D and

    Var ℓ_i = c₂ Σ_j (eᵀu_j)² + c₃ Σ_j eᵀu_j ‖u_j‖² + ¼ [c₄ Σ_j ‖u_j‖⁴ + c₂₂ (tr² D + 2‖D‖²) − c₂² tr² D].
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.ops import segment_sum
from jaxtyping import Array, Float, Int

from boundlab.checks import check_number, check_shape
from boundlab.precision import float64, is_traced
from boundlab.theory.fanout import _graph
from boundlab.theory.fanout._fourth_moments import Coefficients, coefficients
from boundlab.theory.fanout._outcome import refuse_overflow
from boundlab.typing import Count, Numbers

PerRow = Float[Array, " rows"] | Float[np.ndarray, " rows"]


class LossMoments(NamedTuple):
    """Mean and variance, over the neighbour samples, of each node's loss.

    Attributes:
        mean: (rows,) E ℓ_i.
        variance: (rows,) Var ℓ_i.

    """

    mean: PerRow
    variance: PerRow


@float64
def sampled_loss_moments(
    graph: Any,
    features: Numbers,
    targets: Numbers,
    weights: Numbers,
    fan_out: Count,
    nodes: Any = None,
) -> LossMoments:
    """Mean and variance of every node's sampled loss ½‖W h̃_i − y_i‖², exact for any features.

    E ℓ_i = ½‖W h̄_i − y_i‖² + ½ tr(W V_i Wᵀ), V_i = Cov h̃_i as in `neighbor_mean_moments`. The variance
    takes the finite-population moments of the sample mean h̃_i up to the fourth, about the mean h̄_i
    over all neighbours. Both equal the full-neighbour values (variance 0) where β ≥ d_i; a node
    without neighbours has h̃_i = 0. The mean over the rows of `mean` is L_β(W).

    Args:
        graph: directed or not; its nodes hold the features.
        features: (all nodes, r), finite.
        targets: (all nodes, K); rows outside `nodes` are not read.
        weights: (K, r) W; may be traced (`jax.lax.map` over the weights of a run).
        fan_out: β ≥ 1, sampled without replacement.
        nodes: distinct nodes that rows run over, in this order; all by default.

    Returns:
        LossMoments, in units of the loss and of its square: NumPy arrays, or JAX's for traced weights,
        which give NaN or ∞ where they are not finite or too large.

    Raises:
        ValueError: an argument is out of range, not finite, of another shape, or so large that the
            result passes float64; it is named.

    Source: derived, docs/fanout.md, Stopping rules.

    """
    over = _graph.rows(graph, nodes)
    x = _graph.features_of(features, over.num_nodes)
    y = _graph.targets_of(targets, over)
    c = coefficients(over.degrees, _graph.fan_out_of(fan_out))
    check_shape("weights", weights, (y.shape[1], x.shape[1]), "(outputs, features)")
    check_number("weights", weights)
    if is_traced(weights):
        return _moments(_edges(over, x), y, c, jnp.asarray(weights, dtype=jnp.float64))
    w = np.asarray(weights, dtype=np.float64)
    with jax.ensure_compile_time_eval():  # within a transformation of something else
        moments = jax.tree.map(np.asarray, _moments(_edges(over, x), y, c, jnp.asarray(w)))
    refuse_overflow(moments, features=x, targets=y, weights=w)
    return moments


class _Edges(NamedTuple):
    """What the logits need of the graph, as arrays."""

    x: Float[Array, "n r"]
    mean: Float[Array, "rows r"]
    senders: Int[Array, " edges"]
    row: Int[Array, " edges"]

    def logits(
        self, w: Float[Array, "K r"]
    ) -> tuple[Float[Array, "rows K"], Float[Array, "edges K"]]:
        """W h̄_i of each row and u_j = W (x_j − h̄_i) of each edge."""
        hidden = self.mean @ w.T
        return hidden, (self.x @ w.T)[self.senders] - hidden[self.row]

    def sum(self, values: Float[Array, "edges *c"]) -> Float[Array, "rows *c"]:
        """Sum over the edges of each row."""
        return segment_sum(values, self.row, len(self.mean), indices_are_sorted=True)


def _edges(over: _graph.Rows, x: Float[np.ndarray, "n r"]) -> _Edges:
    return _Edges(*map(jnp.asarray, (x, over.mean(x), over.senders, over.row)))


@jax.jit
def _moments(
    edges: _Edges, y: Float[Array, "rows K"], c: Coefficients, w: Float[Array, "K r"]
) -> LossMoments:
    hidden, u = edges.logits(w)
    error = hidden - y
    along = jnp.sum(error[edges.row] * u, axis=1)
    length = jnp.sum(u**2, axis=1)
    products = edges.sum(u[:, :, None] * u[:, None, :])
    trace = edges.sum(length)
    mean = 0.5 * jnp.sum(error**2, axis=1) + 0.5 * c.second * trace
    square = c.fourth * edges.sum(length**2) - (c.second * trace) ** 2
    square += c.pairs * (trace**2 + 2.0 * jnp.sum(products**2, axis=(1, 2)))
    variance = c.second * edges.sum(along**2) + 0.25 * square
    variance += c.third * edges.sum(along * length)
    return LossMoments(mean, jnp.maximum(variance, 0.0))  # not below 0 by rounding; NaN stays


@float64
@np.errstate(over="ignore", invalid="ignore")  # an error of our own instead
def batch_loss_std(
    graph: Any,
    features: Numbers,
    targets: Numbers,
    weights: Numbers,
    batch_size: Count,
    fan_out: Count,
    nodes: Any = None,
) -> np.float64 | Float[Array, ""]:
    """Standard deviation of a mini-batch's own loss, (1/b) Σ_{i∈B} ℓ_i, at fixed weights.

    Var = (1/b) [(1 − b/n) S² + v̄], S² the variance over nodes of E ℓ_i (divisor n − 1; 0 for n = 1)
    and v̄ the mean over nodes of Var ℓ_i, ℓ_i = ½‖W h̃_i − y_i‖² with moments as in
    `sampled_loss_moments`. The mean of the batch's loss is L_β(W) for every b.

    Args:
        graph: directed or not; its nodes hold the features.
        features: (all nodes, r), finite.
        targets: (all nodes, K); rows outside `nodes` are not read.
        weights: (K, r) W; may be traced.
        batch_size: b, 1 … n, drawn without replacement.
        fan_out: β ≥ 1, sampled without replacement, independently for each node.
        nodes: the n distinct nodes that batches are drawn from; all by default.

    Returns:
        Standard deviation, scalar, in units of the loss: a NumPy number, or a JAX array for traced
        weights, NaN or ∞ where those are not finite or too large.

    Raises:
        ValueError: an argument is out of range, not finite, of another shape, or so large that the
            result passes float64; it is named.

    Source: derived, docs/fanout.md, Stopping rules.

    """
    moments = sampled_loss_moments(graph, features, targets, weights, fan_out, nodes)
    n = len(moments.mean)
    b = _graph.batch_size_of(batch_size, n)
    spread = ((moments.mean - moments.mean.mean()) ** 2).sum() / max(n - 1, 1)
    variance = (1.0 / b - 1.0 / n) * spread + moments.variance.mean() / b
    if not is_traced(variance):
        refuse_overflow([variance], features=features, targets=targets, weights=weights)
        return np.float64(np.sqrt(variance))
    still = variance == 0.0  # its root has no derivative there; NaN is not 0
    return jnp.where(still, 0.0, jnp.sqrt(jnp.where(still, 1.0, variance)))


@float64
def cross_entropy_gap(
    graph: Any, features: Numbers, weights: Numbers, fan_out: Count, nodes: Any = None
) -> np.float64 | Float[Array, ""]:
    """What sampling adds to the mean softmax cross-entropy, to second order in the sampling noise.

    L_β(W) − L_full(W) ≈ ½ mean_i tr[W V_i Wᵀ (diag p_i − p_i p_iᵀ)] ≥ 0, p_i = softmax(W h̄_i), with
    h̄_i the mean of the features over all neighbours and V_i = (1/m_i − 1/d_i) S_i² the covariance of
    the mean h̃_i over m_i = min(β, d_i) sampled ones, as in `neighbor_mean_moments`. The losses are
    L_full = mean_i of the cross-entropy of the logits W h̄_i, L_β the expectation with W h̃_i. The
    targets drop out. The exact gap is ≥ 0 for every loss that is convex in the logits, and does not
    grow with β; a few neighbours and large logits leave the second order behind.

    Args:
        graph: directed or not; its nodes hold the features.
        features: (all nodes, r), finite.
        weights: (K, r) W; may be traced.
        fan_out: β ≥ 1, sampled without replacement.
        nodes: distinct nodes that the mean runs over; all by default.

    Returns:
        Gap, scalar, natural logarithm: a NumPy number, or a JAX array for traced weights, NaN or ∞
        where those are not finite or too large.

    Raises:
        ValueError: an argument is out of range, not finite, of another shape, or so large that the
            result passes float64; it is named.

    Source: derived, docs/fanout.md, Convex order.

    """
    over = _graph.rows(graph, nodes)
    x = _graph.features_of(features, over.num_nodes)
    second = coefficients(over.degrees, _graph.fan_out_of(fan_out)).second
    check_shape("weights", weights, (None, x.shape[1]), "(outputs, features)")
    check_number("weights", weights)
    if is_traced(weights):
        return _gap(_edges(over, x), second, jnp.asarray(weights, dtype=jnp.float64))
    w = np.asarray(weights, dtype=np.float64)
    with jax.ensure_compile_time_eval():
        gap = np.float64(_gap(_edges(over, x), second, jnp.asarray(w)))
    refuse_overflow([gap], features=x, weights=w)
    return gap


@jax.jit
def _gap(edges: _Edges, second: Float[Array, " rows"], w: Float[Array, "K r"]) -> Float[Array, ""]:
    hidden, u = edges.logits(w)
    p = jax.nn.softmax(hidden, axis=1)
    p = p[edges.row]
    u = u - jnp.sum(p * u, axis=1)[:, None]  # the variance of u under p: no cancellation
    return 0.5 * jnp.mean(second * edges.sum(jnp.sum(p * u**2, axis=1)))
