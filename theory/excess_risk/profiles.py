"""What the closed forms of this study return: a risk in two parts, and two sides of a bound.

R is the quadratic excess risk ‖θ−θ*‖²_M (twice the excess of the ½-loss). A *profile* has one term
a direction of M's eigenbasis, in the order in which the eigenvalues were given; R is its sum.
"""

from typing import NamedTuple

from jaxtyping import Array, Float


class RiskProfile(NamedTuple):
    """Excess risk R in its two additive parts, per eigendirection or summed.

    Both are float64 arrays, also where x64 is off. There, JAX's own arithmetic on them would round
    to float32 (`profile.bias.sum()` does): sum with `np.asarray(profile.bias).sum()`, or open
    `boundlab.precision.x64()` around it.

    Attributes:
        bias: part that is left without label noise, ≥ 0; (d,) per direction, or a scalar.
        variance: part that is left if learning starts at θ*, ≥ 0; same shape.

    """

    bias: Float[Array, "..."]
    variance: Float[Array, "..."]


class Bounds(NamedTuple):
    """Two sides of a bound on the excess risk R (without ½).

    Attributes:
        lower: proved lower side, ≥ 0.
        upper: proved upper side, ≥ lower.

    """

    lower: Float[Array, "..."]
    upper: Float[Array, "..."]
