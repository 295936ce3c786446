"""Moments up to the fourth of the mean of a sample without replacement.

Symbols: m of d vectors z_j with Σ_j z_j = 0 are drawn, ξ is their mean, C = Σ_j z_j z_jᵀ. Then
E ξ⊗ξ = c₂ C, E ξ^{⊗3} = c₃ Σ_j z_j^{⊗3} and E ξ^{⊗4} = c₄ Σ_j z_j^{⊗4} + c₂₂ (C ⊗ C, summed over the
three ways to pair four slots).
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int


class Coefficients(NamedTuple):
    """c₂, c₃, c₄ and c₂₂ of each row; all exactly 0 where everything is drawn."""

    second: Float[np.ndarray, " rows"]
    third: Float[np.ndarray, " rows"]
    fourth: Float[np.ndarray, " rows"]
    pairs: Float[np.ndarray, " rows"]


def coefficients(degrees: Int[np.ndarray, " rows"], fan_out: int) -> Coefficients:
    """Coefficients for m = min(fan_out, d) of d, from the chances π_k that k given items are drawn."""
    d = degrees.astype(np.float64)
    m = np.minimum(fan_out, d)
    chance = np.ones_like(d)
    chances = []
    for k in range(4):  # k + 1 items; more than m can't be drawn
        chance = np.where(m > k, chance * (m - k) / np.maximum(d - k, 1.0), 0.0)
        chances.append(chance)
    one, two, three, four = chances
    # With m = d = 2 or 3 the terms cancel only in sums over j: made 0 one by one.
    part = np.where(m < d, 1.0 / np.maximum(m, 1.0), 0.0)
    return Coefficients(
        (one - two) * part**2,
        (one - 3.0 * two + 2.0 * three) * part**3,
        (one - 7.0 * two + 12.0 * three - 6.0 * four) * part**4,
        (two - 2.0 * three + four) * part**4,
    )
