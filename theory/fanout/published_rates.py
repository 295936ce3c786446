"""The published iteration counts, as equalities: what the theorems would predict, not what holds.

T counts iterations to a training loss ε. The theorems are upper bounds up to an unstated constant;
their exponents in the batch size b and the fan-out β are what can be compared with measurements.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from boundlab.checks import check_choice, check_number, fail
from boundlab.precision import float64, is_traced
from boundlab.theory.fanout._outcome import nan_unless
from boundlab.typing import Numbers, Scalar


class Elasticities(NamedTuple):
    """Exponents of the iteration count.

    Attributes:
        batch_size: ∂ ln T/∂ ln b.
        fan_out: ∂ ln T/∂ ln β.

    """

    batch_size: float
    fan_out: float


PUBLISHED = {"mse": Elasticities(2.5, -0.5), "cross_entropy": Elasticities(-1.0, -2.5)}


def paper_elasticities(loss: str) -> Elasticities:
    """Exponents of the published iteration counts in batch size and fan-out.

    Args:
        loss: `mse`, (5/2, −1/2), or `cross_entropy`, (−1, −5/2).

    Returns:
        Elasticities of two numbers.

    Raises:
        ValueError: an unknown `loss`.

    Source: [liu2026full, Theorems 1 and 2].

    """
    check_choice("loss", loss, PUBLISHED)
    return PUBLISHED[loss]


@float64
def paper_iterations_mse(
    num_train: Numbers,
    num_hidden: Numbers,
    batch_size: Numbers,
    fan_out: Numbers,
    target_loss: Numbers,
    constant: Scalar = 1.0,
) -> Float[Array, "..."]:
    """Published iteration count of mini-batch training under the squared loss.

    T = C·n h² b^{5/2} β^{−1/2} ε^{−1} ln(h²/ε), natural logarithm; the theorem's O(·) read as C.

    Args:
        num_train: n ≥ 1 training nodes. All arguments broadcast and may be traced; sizes are any real
            numbers in range, since the exponents are what is looked at.
        num_hidden: h ≥ 1 output units.
        batch_size: b in [1, n].
        fan_out: β ≥ 1.
        target_loss: ε in (0, h²), where the logarithm is positive.
        constant: C > 0, the unstated factor.

    Returns:
        T in the broadcast shape, a JAX array; NaN where a traced argument is out of range.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: [liu2026full, Theorem 1], as an equality.

    """
    (n, b, beta, eps, c), valid = _common(num_train, batch_size, fan_out, target_loss, constant)
    check_number("num_hidden", num_hidden, 1.0)
    h = jnp.asarray(num_hidden, jnp.float64)
    if not is_traced(h, eps) and bool(jnp.any(eps >= h**2)):
        raise fail("target_loss", float(jnp.max(eps)), "numbers < num_hidden²")
    count = c * n * h**2 * b**2.5 * beta**-0.5 / eps * jnp.log(h**2 / eps)
    return nan_unless(valid & (h >= 1.0) & (eps < h**2), count)


@float64
def paper_iterations_ce(
    num_train: Numbers,
    separation: Numbers,
    batch_size: Numbers,
    fan_out: Numbers,
    target_loss: Numbers,
    constant: Scalar = 1.0,
) -> Float[Array, "..."]:
    """Published iteration count of mini-batch training under the cross-entropy.

    T = C·n² (ln n)^{1/2} α^{−2} b^{−1} β^{−5/2} (n² + 1/ε), natural logarithm; O(·) read as C.

    Args:
        num_train: n ≥ 1 training nodes. All arguments broadcast and may be traced; sizes are any real
            numbers in range, since the exponents are what is looked at.
        separation: α > 0, the features' separation of the classes.
        batch_size: b in [1, n].
        fan_out: β ≥ 1.
        target_loss: ε > 0.
        constant: C > 0, the unstated factor.

    Returns:
        T in the broadcast shape, a JAX array; NaN where a traced argument is out of range.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: [liu2026full, Theorem 2], as an equality.

    """
    (n, b, beta, eps, c), valid = _common(num_train, batch_size, fan_out, target_loss, constant)
    check_number("separation", separation, 0.0, low_open=True)
    alpha = jnp.asarray(separation, jnp.float64)
    count = c * n**2 * jnp.sqrt(jnp.log(n)) / alpha**2 / b * beta**-2.5 * (n**2 + 1 / eps)
    return nan_unless(valid & (alpha > 0.0), count)


def _common(
    num_train: Numbers, batch_size: Numbers, fan_out: Numbers, target: Numbers, constant: Scalar
) -> tuple[tuple[Float[Array, "..."], ...], Bool[Array, "..."]]:
    """The checked arguments that both counts share, as float64 arrays, and where they are in range."""
    check_number("num_train", num_train, 1.0)
    check_number("batch_size", batch_size, 1.0)
    check_number("fan_out", fan_out, 1.0)
    check_number("target_loss", target, 0.0, low_open=True)
    check_number("constant", constant, 0.0, low_open=True)
    if not is_traced(num_train, batch_size) and np.any(
        np.asarray(batch_size) > np.asarray(num_train)
    ):
        raise fail("batch_size", np.max(np.asarray(batch_size)), "numbers ≤ num_train")
    values = (num_train, batch_size, fan_out, target, constant)
    n, b, beta, eps, c = (jnp.asarray(value, jnp.float64) for value in values)
    valid = (n >= 1.0) & (b >= 1.0) & (b <= n) & (beta >= 1.0) & (eps > 0.0) & (c > 0.0)
    return (n, b, beta, eps, c), valid
