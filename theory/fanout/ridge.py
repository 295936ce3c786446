"""Fan-out as a ridge penalty: one linear layer, squared loss, neighbours sampled at every step.

Symbols: node i has the full neighbour mean h̄_i, the sampled one h̃_i with Cov h̃_i = V_i, and the
target y_i; W (K, r) are the weights. Losses are means over nodes of ½‖·‖². With V̄ the mean of V_i,

    L_β(W) = E mean_i ½‖W h̃_i − y_i‖² = L_full(W) + ½ tr(W V̄ Wᵀ).
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from boundlab.checks import check_integer, check_number, check_shape
from boundlab.precision import float64, is_traced
from boundlab.theory.fanout._covariance import covariance_of
from boundlab.theory.fanout._outcome import nan_unless, refuse_overflow
from boundlab.typing import Count, Numbers, Scalar

Matrix = Float[Array, "r r"]


class ImplicitRidge(NamedTuple):
    """Minimiser of the sampled loss, and its losses.

    Attributes:
        weights: (K, r) W_β.
        floor: L_β(W_β), the least sampled loss there is.
        full_loss: L_full(W_β), its loss with all neighbours on the same nodes.

    """

    weights: Float[Array, "K r"]
    floor: Float[Array, ""]
    full_loss: Float[Array, ""]


@float64
def implicit_ridge(mean: Numbers, average_covariance: Numbers, targets: Numbers) -> ImplicitRidge:
    """Weights that training with sampled neighbours aims at: ridge regression with penalty V̄(β).

    W_β = C_yh (C_hh + V̄)⁺, C_hh = mean_i h̄_i h̄_iᵀ, C_yh = mean_i y_i h̄_iᵀ. V̄ and the floor do not
    grow with β; the batch size does not enter. Where C_hh + V̄ is singular, W_β is the minimiser of
    least norm: eigenvalues below r·2⁻⁵²·(the largest) count as zero. All arguments may be traced.

    Args:
        mean: (rows, r) h̄_i of the nodes trained on (`neighbor_mean_moments` of these `nodes`).
        average_covariance: (r, r) V̄ over the same nodes, symmetric positive semi-definite, both to
            1e-8 of its largest entry; a traced one that is neither makes the result NaN.
        targets: (rows, K) y_i of the same nodes, in the same order.

    Returns:
        ImplicitRidge of JAX arrays; losses are means over the rows of ½‖·‖², summed over the K outputs.

    Raises:
        ValueError: an argument is not finite or of another shape, `average_covariance` is not symmetric
            or not positive semi-definite, or an argument is so large that the result passes float64;
            it is named.

    Source: derived, docs/fanout.md, Implicit ridge.

    """
    h, v, y = _checked(mean, average_covariance, targets)
    result = minimiser(h, v, y)
    if not is_traced(result):
        refuse_overflow(result, mean=mean, average_covariance=average_covariance, targets=targets)
    return result


def _checked(
    mean: Numbers, average_covariance: Numbers, targets: Numbers
) -> tuple[Float[Array, "rows r"], Matrix, Float[Array, "rows K"]]:
    check_shape("mean", mean, (None, None), "one row a node")
    h = jnp.asarray(mean, dtype=jnp.float64)
    rows, r = h.shape
    check_number("mean", mean)
    v = covariance_of("average_covariance", average_covariance, r)
    check_shape("targets", targets, (rows, None), "one row for each of mean")
    check_number("targets", targets)
    return h, v, jnp.asarray(targets, dtype=jnp.float64)


@jax.jit
def minimiser(h: Float[Array, "rows r"], v: Matrix, y: Float[Array, "rows K"]) -> ImplicitRidge:
    """`implicit_ridge` without checks."""
    rows, r = h.shape
    moment = h.T @ h / rows + v
    values, basis = jnp.linalg.eigh(moment)
    kept = values > r * jnp.finfo(values.dtype).eps * values[-1]
    inverse = jnp.where(kept, 1.0 / jnp.where(kept, values, 1.0), 0.0)
    weights = ((y.T @ h / rows) @ basis * inverse[None, :]) @ basis.T
    # As sums of squares: y² − (explained part) would cancel where the fit is good.
    full = 0.5 * jnp.sum((h @ weights.T - y) ** 2) / rows
    penalty = 0.5 * jnp.sum((weights @ v) * weights)
    return ImplicitRidge(weights, full + penalty, full)


@float64
def mean_iterate(
    initial_weights: Numbers,
    mean: Numbers,
    average_covariance: Numbers,
    targets: Numbers,
    step_size: Scalar,
    num_steps: Count,
) -> Float[Array, "steps K r"]:
    """Expected weights of SGD with fresh batches and fresh samples, exact at every step.

    E W_{t+1} = E W_t (I − ηM) + η C_yh, M = C_hh + V̄, with C_hh, C_yh of `implicit_ridge`: the step is
    on the batch mean of ½‖·‖², and neither batch size nor the sampling of batches (unbiased,
    independent of the past) enters. Epochs without replacement follow it only approximately.

    Args:
        initial_weights: (K, r) W_0.
        mean: (rows, r) h̄_i of the nodes trained on.
        average_covariance: (r, r) V̄ over the same nodes, symmetric positive semi-definite, both to
            1e-8 of its largest entry; a traced one that is neither makes the result NaN.
        targets: (rows, K).
        step_size: η > 0; NaN follows from a traced one that isn't. Beyond 2/λ_max(M) the iterates
            diverge, in the end past float64.
        num_steps: T ≥ 0, static.

    Returns:
        (T + 1, K, r), a JAX array, entry t = E W_t.

    Raises:
        ValueError: an argument is out of range, not finite or of another shape, or `average_covariance`
            is not symmetric or not positive semi-definite; it is named.

    Source: derived, docs/fanout.md, Gradient noise.

    """
    h, v, y = _checked(mean, average_covariance, targets)
    check_shape("initial_weights", initial_weights, (y.shape[1], h.shape[1]), "(outputs, features)")
    check_number("initial_weights", initial_weights)
    check_shape("step_size", step_size, ())
    check_number("step_size", step_size, 0.0, low_open=True)
    steps = check_integer("num_steps", num_steps, 0)
    start = jnp.asarray(initial_weights, dtype=jnp.float64)
    eta = jnp.asarray(step_size, dtype=jnp.float64)
    return _iterate(start, h, v, y, eta, steps)


@partial(jax.jit, static_argnums=5)
def _iterate(
    start: Float[Array, "K r"],
    h: Float[Array, "rows r"],
    v: Matrix,
    y: Float[Array, "rows K"],
    step_size: Float[Array, ""],
    num_steps: int,
) -> Float[Array, "steps K r"]:
    moment = h.T @ h / h.shape[0] + v
    cross = y.T @ h / h.shape[0]

    def step(w: Float[Array, "K r"], _: None) -> tuple[Float[Array, "K r"], Float[Array, "K r"]]:
        following = w - step_size * (w @ moment - cross)
        return following, following

    _, later = lax.scan(step, start, None, length=num_steps)
    valid = (step_size > 0.0) & ~jnp.isnan(v).any()
    return nan_unless(valid, jnp.concatenate([start[None], later]))
