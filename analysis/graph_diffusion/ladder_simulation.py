"""Runs of the four schemes on a few modes, and what the recursion says of their means and variances."""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.graph_diffusion.config import Config
from boundlab.experiment import Repeat
from boundlab.models import samplers, sde
from boundlab.theory import graph_diffusion as theory

SCHEMES = ("exponential_integrator", "euler_maruyama", "ancestral", "probability_flow")
# Eigenvalue, mean of the data, relative score error and score bias of each mode.
MODES = {
    "λ=.3": (0.3, 0.0, 0.0, 0.0),
    "λ=3": (3.0, 0.0, 0.0, 0.0),
    "λ=10": (10.0, 0.0, 0.0, 0.0),
    "λ=2, mean 3": (2.0, 3.0, 0.0, 0.0),
    "λ=2, mean 3, score 30 % too large": (2.0, 3.0, 0.3, 0.0),
    "λ=1, score bias 1": (1.0, 0.0, 0.0, 1.0),
}
TIMES = np.linspace(2.0, 0.05, 9)


def simulated(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Mean and unbiased variance of each run's samples, by scheme and mode, with their theory."""
    lam, mean, error, bias = (np.array(column) for column in zip(*MODES.values(), strict=True))
    dtype = jnp.float32  # sampling noise is larger than its rounding
    modes = [jnp.asarray(column, dtype)[None, :] for column in (lam, mean, error, bias)]
    grid = jnp.asarray(TIMES, dtype)
    shape = (config.ladder_draws, len(lam))

    def score(x: jax.Array, t: jax.Array) -> jax.Array:
        eigenvalues, centers, errors, biases = modes
        variance = 1 + (eigenvalues - 1) * jnp.exp(-2 * t)
        return -(1 + errors) * (x - jnp.exp(-t) * centers) / variance + biases

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        drawn = jnp.stack(
            [
                samplers.sample(jax.random.fold_in(key, i), sde.ou(), score, grid, shape, scheme)
                for i, scheme in enumerate(SCHEMES)
            ]
        )
        return {"mean": drawn.mean(axis=1), "variance": drawn.var(axis=1, ddof=1)}

    keys = jax.random.split(key, config.ladder_seeds)
    found = repeat("ladder", one, {}, keys)
    laws = np.asarray(_laws(lam, error, bias, mean))
    plain = np.asarray(_laws(lam, 0 * error, 0 * bias, mean))
    dims = ("ladder_scheme", "ladder_mode")
    # Modes whose mean is 0 can't be compared in relative terms.
    moved = (mean != 0) | (bias != 0)
    variables = {
        "ladder_mean": (("ladder_seed", *dims), found["mean"].values, "mean of drawn samples"),
        "ladder_variance": (
            ("ladder_seed", *dims),
            found["variance"].values,
            "variance of drawn samples",
        ),
        "ladder_mean_theory": (dims, np.where(moved, laws[0], np.nan), "mean by the recursion"),
        "ladder_variance_theory": (dims, laws[1], "variance by the recursion"),
        "ladder_mean_plain": (
            dims,
            np.where(moved, plain[0], np.nan),
            "mean by the recursion with the exact score",
        ),
        "ladder_variance_other": (
            dims,
            np.roll(laws[1], 1, axis=0),
            "variance of the scheme before this one",
        ),
    }
    data = {
        name: (d, np.asarray(values), {"long_name": text, "units": "1"})
        for name, (d, values, text) in variables.items()
    }
    return xr.Dataset(data, coords={"ladder_scheme": list(SCHEMES), "ladder_mode": list(MODES)})


@jax.jit
def _laws(lam: jax.Array, error: jax.Array, bias: jax.Array, mean: jax.Array) -> jax.Array:
    """(2, schemes, modes): mean and variance by the recursion, with a score error a mode."""

    def one(lam: jax.Array, error: jax.Array, bias: jax.Array, mean: jax.Array) -> jax.Array:
        moments = [
            theory.reverse_moments(lam[None], TIMES, scheme, error, bias, mean[None])
            for scheme in SCHEMES
        ]
        return jnp.stack([jnp.concatenate(pair) for pair in zip(*moments, strict=True)])

    return jnp.moveaxis(jax.vmap(one)(lam, error, bias, mean), 0, -1)
