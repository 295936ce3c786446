"""Degree normalisation from the sampled block: where the batch size enters the drift.

A graph convolution that normalises by the degrees of its own sampled block weighs a sampled edge j → i
by 1/√(m_i c_j), c_j = number of batch rows that sampled j. On a graph whose nodes all have d in- and
d out-neighbours, with a uniformly random batch, the number of *other* batch rows that j points to is
hypergeometric, and each of them samples j with probability β/d:

    c_j = 1 + Bin(H, β/d),    H ~ Hypergeometric(n − 1, d − 1, b − 1).

Symbols: n nodes, d degree, b batch size, β fan-out (read as d beyond it), s row sum, Γ squared row
norm, δ squared distance from the full-graph row, whose entries are all 1/d.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from boundlab.checks import check_integer
from boundlab.precision import float64
from boundlab.theory.fanout._hypergeometric import hypergeometric_law
from boundlab.typing import Count

# Nodes of the trapezoidal rule in log u below. The integrand decays doubly exponentially to the right and
# as u to the left, and is entire: the rule is exact to rounding at this step (tested).
LOG_NODES = np.arange(-44.0, 2.3, 0.1)


class BlockDegreeLaw(NamedTuple):
    """Moments of a row of the block-normalised aggregator.

    Attributes:
        row_sum: s = E Σ_j ã_ij = √β·E c^{−1/2}.
        squared_norm: Γ = E Σ_j ã_ij² = E[1/c].
        distance: δ = E ‖ã_i − a_i‖² = Γ − 2s/d + 1/d, a_i the full-graph row.

    """

    row_sum: np.float64
    squared_norm: np.float64
    distance: np.float64


@float64
def block_degree_law(
    num_nodes: Count, degree: Count, batch_size: Count, fan_out: Count
) -> BlockDegreeLaw:
    """Mean row sum, squared row norm and distance from the full row under block normalisation.

    In the block of a batch, the sampled edge j → i has the weight ã_ij = 1/√(β c_j), c_j = the number of
    batch rows that sampled j, and the entries of neighbours that were not sampled are 0. With
    c = 1 + Bin(H, β/d), the law of c_j given that i sampled j (H other batch rows that j points to, each
    of which samples it with probability β/d), H ~ Hypergeometric(n − 1, d − 1, b − 1):
    s = E Σ_j ã_ij = √β·E c^{−1/2}, Γ = E Σ_j ã_ij² = E[1/c] and δ = Γ − 2s/d + 1/d, the mean squared
    distance from the full row, whose d entries are 1/d. All three are non-increasing in b. Limits: b = 1
    gives s = √β, Γ = 1; b = n gives Γ = (1 − (1 − β/d)^d)/β; b = n and β = d give s = 1, Γ = 1/d, δ = 0.

    Exact for the graphs named below, to rounding; δ is a sum of non-negative terms, so that it keeps
    its relative precision.

    Args:
        num_nodes: n ≥ 2, nodes of the graph, each with `degree` in- and out-neighbours.
        degree: d in [1, n − 1]; no self-loops.
        batch_size: b in [1, n]: the batch is a uniformly random b-subset of all n nodes.
        fan_out: β ≥ 1 neighbours sampled without replacement a row, read as d beyond d.

    Returns:
        BlockDegreeLaw of three NumPy numbers, without unit.

    Raises:
        ValueError: an argument is no integer in its range; it is named.

    Source: derived, docs/fanout.md#block-degrees.

    """
    n = check_integer("num_nodes", num_nodes, 2)
    d = check_integer("degree", degree, 1, n - 1, why="below num_nodes")
    b = check_integer("batch_size", batch_size, 1, n, why="num_nodes")
    sampled = min(check_integer("fan_out", fan_out, 1), d)
    law = hypergeometric_law(n - 1, d - 1, b - 1)
    kept = law > 1e-25 * law.max()  # what is left out is far below rounding
    others, law = np.flatnonzero(kept).astype(np.float64), law[kept]
    root, inverse = _binomial_moments(others, sampled / d)
    full = np.sqrt(sampled) / d
    # E(c^{−1/2} − √β/d)² + (d − β)/d²; the spread of c given H is apart, since it vanishes at β = d.
    spread = (root - full) ** 2 + np.maximum(inverse - root**2, 0.0)
    return BlockDegreeLaw(
        np.float64(np.sqrt(sampled) * (law @ root)),
        np.float64(law @ inverse),
        np.float64(law @ spread + (d - sampled) / d**2),
    )


def _binomial_moments(
    trials: Float[np.ndarray, " h"], probability: float
) -> tuple[Float[np.ndarray, " h"], Float[np.ndarray, " h"]]:
    """E (1 + Bin)^{−1/2} and E 1/(1 + Bin) for each number of trials."""
    if probability == 1.0:
        return 1 / np.sqrt(1 + trials), 1 / (1 + trials)
    miss = np.log1p(-probability)
    inverse = -np.expm1((1 + trials) * miss) / ((1 + trials) * probability)
    # c^{−1/2} = (2/√π) ∫ exp(−c u²) du and E z^{Bin} = (1 − p + p z)^trials, at u = exp(node).
    square = np.exp(2 * LOG_NODES)
    log_kernel = np.log1p(probability * np.expm1(-square))
    weight = (LOG_NODES[1] - LOG_NODES[0]) * 2 / np.sqrt(np.pi) * np.exp(LOG_NODES - square)
    return np.exp(trials[:, None] * log_kernel) @ weight, inverse
