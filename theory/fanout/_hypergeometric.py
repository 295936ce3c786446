"""The hypergeometric law, to rounding at any population: ratios of weights, from the mode.

Differences of log-gammas would lose a digit for each of the population's digits.
"""

import numpy as np
from jaxtyping import Float


def hypergeometric_law(population: int, marked: int, draws: int) -> Float[np.ndarray, " k"]:
    """Probabilities of H = 0 … min(marked, draws) marked items among `draws` without replacement."""
    low, high = max(0, draws - (population - marked)), min(marked, draws)
    k = np.arange(low, high, dtype=np.float64)
    # P(k + 1)/P(k), all factors positive on the support.
    step = np.log((marked - k) * (draws - k)) - np.log(
        (k + 1) * (population - marked - draws + k + 1)
    )
    rises = int(
        np.count_nonzero(step > 0)
    )  # the ratio decreases in k: the mode is where it passes 1
    below = -np.cumsum(step[:rises][::-1])[::-1]
    above = np.cumsum(step[rises:])
    weight = np.exp(np.concatenate([below, np.zeros(1), above]))
    law = np.zeros(high + 1)
    law[low:] = weight / weight.sum()
    return law
