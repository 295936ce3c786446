"""Operations of one training step."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_number, check_shape
from boundlab.precision import float64
from boundlab.theory.fanout._outcome import nan_unless
from boundlab.typing import Numbers


@float64
def training_flops(edges: Numbers, rows: Numbers, widths: Numbers) -> Float[Array, ""]:
    """Floating-point operations of one training step of a graph network of L layers.

    3·Σ_l (2·edges_l·width_l + 2·rows_l·width_l·width_{l+1}): aggregation over the sampled edges at the
    input's width, then the product with the weights; a multiplication and an addition each, and the
    backward pass counted as twice the forward pass. Activations, normalisations and the optimiser are
    left out.

    Args:
        edges: (L,) edges that layer l aggregates over, ≥ 0; for the full graph, directed ones.
        rows: (L,) node rows that layer l computes, ≥ 0.
        widths: (L + 1,) features of the input, of the hidden layers and of the output, ≥ 0.

    Returns:
        Operations a step, a JAX scalar; NaN where traced arguments are negative.

    Raises:
        ValueError: lengths that don't fit or numbers out of range; the argument is named.

    Source: derived (a count), docs/fanout.md#cost.

    """
    check_shape("edges", edges, (None,), "one entry a layer")
    check_number("edges", edges, 0.0)
    per_edge = jnp.asarray(edges, jnp.float64)
    check_shape("rows", rows, per_edge.shape, "one entry a layer, as edges")
    check_number("rows", rows, 0.0)
    check_shape("widths", widths, (len(per_edge) + 1,), "one more entry than edges")
    check_number("widths", widths, 0.0)
    per_row, width = jnp.asarray(rows, jnp.float64), jnp.asarray(widths, jnp.float64)
    return _operations(per_edge, per_row, width)


@jax.jit
def _operations(
    per_edge: Float[Array, " layers"],
    per_row: Float[Array, " layers"],
    width: Float[Array, " layers_and_one"],
) -> Float[Array, ""]:
    forward = 2 * per_edge * width[:-1] + 2 * per_row * width[:-1] * width[1:]
    valid = (per_edge >= 0.0).all() & (per_row >= 0.0).all() & (width >= 0.0).all()
    return nan_unless(valid, 3 * jnp.sum(forward))
