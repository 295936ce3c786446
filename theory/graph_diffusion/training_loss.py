"""From the training loss of a score to its error, for denoising score matching in OU time.

The loss at t is E‖σ s(Z_t, t) + ξ‖², Z_t = m Z_0 + σξ, summed over coordinates, without ½. It splits into
the floor (m²/σ²)·mmse(t), which no score goes below, and σ²E‖s − ∇log q_t‖².
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_number
from boundlab.precision import float64
from boundlab.theory.graph_diffusion._gaussian_arguments import stretched
from boundlab.typing import Numbers


@float64
def dsm_floor(t: Numbers, mmse: Numbers) -> Float[Array, "*shape"]:
    """Least value of the denoising loss E‖σs + ξ‖² at OU time t: (m²/σ²)·mmse.

    Equal to d − σ²J(t). No ½, summed over coordinates, m²/σ² = 1/(e^{2t} − 1).

    Args:
        t: OU time > 0 (B/2 for another schedule), one number or an array. May be traced.
        mmse: E‖Z_0 − E[Z_0 | Z_t]‖² ≥ 0 over all coordinates, one number or of the shape of `t`. May be
            traced.

    Returns:
        The floor, of the common shape.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#training-loss.

    """
    check_number("t", t, 0, low_open=True)
    check_number("mmse", mmse, 0)
    time, error = stretched(t=t, mmse=mmse)
    decay = jnp.exp(-2.0 * time)  # a quotient of e^{2t} overflows, in derivatives too
    return error * decay / -jnp.expm1(-2.0 * time)


@float64
def score_error_from_loss(
    loss: Numbers, floor: Numbers, sigma_sq: Numbers
) -> Float[Array, "*shape"]:
    """Score error ε² = E‖s − ∇log q_t‖² = (loss − floor)/σ², S9 of docs/graph_diffusion.md.

    Not clipped at 0: an estimated loss may fall below the floor, and clipping would bias the mean.

    Args:
        loss: E‖σs + ξ‖², summed over coordinates, without ½. All may be traced; each is one number or of
            one common shape.
        floor: its least value, `dsm_floor`.
        sigma_sq: σ² > 0, variance of the noise.

    Returns:
        ε², of the common shape.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#training-loss.

    """
    check_number("loss", loss)
    check_number("floor", floor)
    check_number("sigma_sq", sigma_sq, 0, low_open=True)
    total, least, variance = stretched(loss=loss, floor=floor, sigma_sq=sigma_sq)
    return (total - least) / variance
