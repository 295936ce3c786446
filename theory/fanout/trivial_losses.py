"""Losses that a network reaches without learning anything, or can't pass.

They say what a published target loss asks for. Symbols: K classes, one-hot labels y, logits or outputs
ŷ (K), target loss ε.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_integer, check_number, check_shape
from boundlab.precision import float64
from boundlab.theory.fanout._outcome import nan_unless
from boundlab.typing import Count, Scalar


@float64
def zero_predictor_loss(num_classes: Count) -> np.float64:
    """Squared error of the output 0 on one-hot labels: 1/K.

    The loss is the mean over nodes *and* outputs of (ŷ − y)², as `torch.nn.MSELoss` takes it: 2/K of
    the ½‖ŷ − y‖² that the rest of the theory uses.

    Args:
        num_classes: K ≥ 1 (concrete).

    Returns:
        1/K, a NumPy number.

    Raises:
        ValueError: `num_classes` is no integer ≥ 1.

    Source: derived (docs/fanout.md, Published numbers).

    """
    return np.float64(1.0 / _classes(num_classes))


@float64
def explained_share(target_loss: Scalar, num_classes: Count) -> Float[Array, ""]:
    """Share ρ of the zero predictor's squared error that a target ε wants explained: ρ = 1 − K·ε.

    ε is a mean over nodes and outputs as in `zero_predictor_loss`. ρ ≤ 0: the output 0 will do.

    Args:
        target_loss: ε > 0; may be traced.
        num_classes: K ≥ 1 (concrete).

    Returns:
        ρ, a JAX scalar below 1, negative for targets above the zero predictor's loss; NaN for a traced
        target that isn't positive.

    Raises:
        ValueError: `target_loss` is not finite or not positive, or `num_classes` no integer ≥ 1.

    Source: derived (docs/fanout.md, Published numbers).

    """
    count = _classes(num_classes)
    check_shape("target_loss", target_loss, ())
    check_number("target_loss", target_loss, 0.0, low_open=True)
    target = jnp.asarray(target_loss, dtype=jnp.float64)
    return nan_unless(target > 0.0, 1.0 - count * target)


@float64
def relu_binary_cross_entropy_floor(num_classes: Count) -> np.float64:
    """Infimum of the binary cross-entropy with targets (y + 1)/2 over logits ≥ 0: (K − 1)/K·ln 2.

    The loss is the mean over nodes and outputs of ln(1 + eˣ) − t·x. The target t = 1 of the true class
    costs nothing as x → ∞; each of the other K − 1 has t = ½ and costs at least ln 2, at x = 0. The
    floor is approached, not reached, and is the same without the ReLU.

    Args:
        num_classes: K ≥ 1 (concrete).

    Returns:
        The floor, a NumPy number, natural logarithm.

    Raises:
        ValueError: `num_classes` is no integer ≥ 1.

    Source: derived (docs/fanout.md, Published numbers); the loss is that of the authors' code.

    """
    count = _classes(num_classes)
    return np.float64((count - 1.0) / count * np.log(2.0))


def _classes(num_classes: Count) -> float:
    return float(check_integer("num_classes", num_classes, 1))
