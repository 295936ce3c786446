"""Risks of the best SGD and the best ridge over many teachers and noise levels at once.

Theory only. Symbols: μ_i eigenvalues of M, θ* teacher, σ² noise variance, N samples, γ step size,
λ ridge; risks R without ½.
"""

import jax
import jax.numpy as jnp
import numpy as np

from boundlab.theory.excess_risk import ridge, sgd

# Step sizes tried, as fractions of the stability limit: evenly spread in the logit, hence dense at
# both ends, and refined by a parabola through the best three.
FRACTIONS = 1 / (1 + np.exp(-np.linspace(-7.0, 4.0, 36)))
ROWS = 32  # problems that are tuned together, so that one compilation serves any number of them


def best_sgd_risk(
    mu: np.ndarray, theta_sq: np.ndarray, noise_variance: np.ndarray, num_samples: int
) -> np.ndarray:
    """Risk of tail-averaged SGD at the best step size, for every teacher and noise level.

    R = bias + σ² · (variance at σ² = 1), so that all noise levels share their runs. Least over step
    sizes between .001 and .98 of the stability limit, to about 1e-3 of itself.

    `mu` (d,), `theta_sq` (teachers, d), `noise_variance` (levels,); returns (teachers, levels).
    """
    limit = float(sgd.stability_limit(mu))

    def run(step_size: jax.Array, teacher: jax.Array) -> tuple[jax.Array, jax.Array]:
        profile = sgd.tail_averaged_risk(mu, teacher, 1.0, step_size, num_samples)
        return profile.bias.sum(), profile.variance.sum()

    over_teachers = jax.vmap(run, in_axes=(None, 0))
    steps = jnp.asarray(limit * FRACTIONS)
    bias, variance = jax.vmap(over_teachers, in_axes=(0, None))(steps, jnp.asarray(theta_sq))
    total = np.asarray(bias)[:, :, None] + np.asarray(variance)[:, :, None] * noise_variance
    best = np.clip(total.argmin(axis=0), 1, len(FRACTIONS) - 2)
    left, middle, right = (
        np.take_along_axis(total, best[None] + shift, axis=0)[0] for shift in (-1, 0, 1)
    )
    curvature = left - 2 * middle + right
    vertex = middle - (left - right) ** 2 / (8 * np.where(curvature > 0, curvature, 1.0))
    # Where the best step size is at an end of the range, the parabola's vertex may be outside it.
    inside = (curvature > 0) & (middle <= left) & (middle <= right)
    return np.where(inside, vertex, total.min(axis=0))


def best_ridge_risk(
    mu: np.ndarray, theta_sq: np.ndarray, noise_variance: np.ndarray, num_samples: int
) -> np.ndarray:
    """Risk of ridge regression at the best λ ≥ 0, one row a problem (deterministic equivalent).

    `mu`, `theta_sq` (rows, d), `noise_variance` (rows,); returns (rows,).
    """

    def tuned(mu: jax.Array, teacher: jax.Array, noise: jax.Array) -> jax.Array:
        best = ridge.best_ridge(mu, teacher, noise, num_samples)
        profile = ridge.risk(mu, teacher, noise, best, num_samples)
        return profile.bias.sum() + profile.variance.sum()

    rows = len(mu)
    places = np.arange(-(-rows // ROWS) * ROWS) % rows
    parts = [
        jax.vmap(tuned)(*(jnp.asarray(x[index]) for x in (mu, theta_sq, noise_variance)))
        for index in places.reshape(-1, ROWS)
    ]
    return np.concatenate([np.asarray(part) for part in parts])[:rows]
