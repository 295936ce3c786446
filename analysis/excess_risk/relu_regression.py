"""Ridge regression on twice the labels of a ReLU teacher, theory and simulation."""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.excess_risk.config import Config
from boundlab.experiment import Repeat
from boundlab.models.linear_gnn import simulate_relu_ridge
from boundlab.theory.excess_risk import relu as relu_theory

NUM_SAMPLES = 256
RIDGES = np.geomspace(0.125, 32.0, 17)  # λ, un-normalised
SIMULATED = RIDGES[::8]
GRID = ("relu_graph", "relu_ridge")


def theory(mu: np.ndarray, teachers: np.ndarray, noise: float) -> xr.Dataset:
    """Risk along λ, and what it would be without the noise that the teacher itself adds.

    2y = mᵀθ* + |mᵀθ*| + 2ε has the noise 4σ² + b²; at b² = 1 it is that of 2ε alone for σ² − ¼.
    The theory takes |mᵀθ*| for independent of m. Along θ* it isn't: its noise there is three times
    as strong, which raises the risk by about 1/(degrees of freedom), 2 % on the power-law graph.
    """

    def one(mu: jax.Array, theta_sq: jax.Array, ridge: jax.Array, noise: jax.Array) -> jax.Array:
        return relu_theory.ridge_risk(mu, theta_sq, noise, ridge, NUM_SAMPLES)

    over_ridges = jax.vmap(one, in_axes=(None, None, 0, None))
    over_graphs = jax.vmap(over_ridges, in_axes=(0, 0, None, None))
    over_noises = jax.jit(jax.vmap(over_graphs, in_axes=(None, None, None, 0)))
    noises = np.array([noise, max(noise - 0.25, 0.0)])
    found, quiet = np.asarray(over_noises(mu, teachers**2, RIDGES, noises))
    return xr.Dataset(
        {"relu_ridge_theory": (GRID, found), "relu_ridge_quiet": (GRID, quiet)},
        coords={"relu_ridge": ("relu_ridge", RIDGES, {"long_name": "λ, un-normalised"})},
    )


def simulation(
    mu: np.ndarray, teachers: np.ndarray, config: Config, keys: jax.Array, repeat: Repeat
) -> xr.Dataset:
    """Drawn designs and labels at every eighth λ; one design serves them all."""
    noise_std = config.noise_variance**0.5
    operators, targets, ridges = (
        jnp.asarray(x, dtype=config.dtype) for x in (np.sqrt(mu), teachers, SIMULATED)
    )

    def one(params: dict, run_key: jax.Array) -> dict[str, jax.Array]:
        i = params["relu_graph"]

        def at(ridge: jax.Array) -> jax.Array:
            return simulate_relu_ridge(
                run_key, operators[i], targets[i], noise_std, ridge, NUM_SAMPLES
            )

        return {"relu_ridge_risk": jax.vmap(at)(ridges)}

    which = {"relu_graph": np.arange(len(mu))}
    runs = repeat("relu-ridge", one, which, keys)
    runs = runs.rename(seed="relu_seed", relu_ridge_risk_axis0="relu_simulated_ridge")
    return runs.drop_vars(["relu_seed", *which]).assign_coords(relu_simulated_ridge=SIMULATED)
