"""One Gaussian law of node features and edge weights that the parts on coupling and paradigms share.

Four nodes with two features each and six edge weights. The canonical correlations of the two blocks are
equally spaced; their directions are drawn once.
"""

from typing import NamedTuple

import numpy as np

NODES, NUM_FEATURES = 4, 2
DIM_FEATURES = NODES * NUM_FEATURES
DIM_STRUCTURE = NODES * (NODES - 1) // 2
# β from β₀ to β₁ over times 0 to 1, of features and of structure: both laws end near the prior.
SCHEDULES = ((0.1, 8.0), (0.1, 12.0))
HORIZON, EARLY_STOP = 1.0, 1e-3
CORRELATIONS = np.linspace(0.9, 0.3, DIM_STRUCTURE)


class CoupledSystem(NamedTuple):
    """A joint law of features and structure, the features first."""

    covariance: np.ndarray
    """S (d, d)."""
    differences: np.ndarray
    """(6, d): rows w_i with ⟨w_i, z⟩ = (u_i − v_i)/√2, u_i and v_i canonical variates of unit variance.

    Its variance is 1 − ρ_i under the joint law and 1 where the blocks are independent.
    """


def coupled_system(strength: float = 1.0) -> CoupledSystem:
    """The law whose canonical correlations are `strength` times those of the study."""
    rng = np.random.default_rng(3)
    shape = (DIM_FEATURES, DIM_STRUCTURE)
    left, _, right = np.linalg.svd(rng.standard_normal(shape), full_matrices=False)
    deviations = np.sqrt(np.linspace(0.5, 3.0, DIM_FEATURES))
    cross = deviations[:, None] * (left * (strength * CORRELATIONS) @ right) * 0.5
    return CoupledSystem(
        np.block([[np.diag(deviations**2), cross], [cross.T, 0.25 * np.eye(DIM_STRUCTURE)]]),
        np.hstack([(left / deviations[:, None]).T, -right / 0.5]) / np.sqrt(2.0),
    )


def uniform_times(num_steps: int) -> np.ndarray:
    """Equal steps from the horizon down to the early stop."""
    return np.linspace(HORIZON, EARLY_STOP, num_steps + 1)
