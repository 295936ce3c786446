"""The distance of two ReLU neurons: its closed form, plain averages over drawn m, and its two sides.

Symbols: a² = θᵀMθ, b² = θ*ᵀMθ*, φ the angle of θ and θ* in M, Δ = ½E(ReLU(mᵀθ) − ReLU(mᵀθ*))².
"""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.excess_risk.config import Config
from boundlab.experiment import Repeat
from boundlab.models.gaussian_signals import aggregate
from boundlab.theory.excess_risk import relu as relu_theory

# a/b and cos φ of the pairs whose distance is also averaged over draws, b = 1.
PAIRS = ((1.0, -1.0), (1.0, -0.5), (1.0, 0.0), (2.0, 0.0), (1.0, 0.5), (0.5, 0.8), (1.0, 0.8))
DIM = 8
DRAWS = 1024  # of m, a seed
RANDOM_PAIRS = 256


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """The closed form against draws on a few pairs, and between its bounds on many."""
    drawn_key, random_key = (jax.random.fold_in(key, i) for i in range(2))
    return xr.merge((_drawn(config, drawn_key, repeat), _random(random_key)), join="exact")


def _moments(
    mu: np.ndarray, theta: np.ndarray, theta_star: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """a², b² and cos φ; the last dim of every argument is the direction."""
    norm_sq, star_sq = np.sum(mu * theta**2, -1), np.sum(mu * theta_star**2, -1)
    product = np.sqrt(norm_sq * star_sq)
    inner = np.sum(mu * theta * theta_star, -1)
    cosine = np.divide(inner, product, out=np.zeros_like(inner), where=product > 0)
    return norm_sq, star_sq, np.clip(cosine, -1, 1)


def _drawn(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    mu = 1 / np.arange(1.0, DIM + 1)
    # Two directions that are orthonormal in M give any norm and angle.
    basis = np.linalg.qr(np.cos(np.arange(DIM)[:, None] * np.array([1.0, 2.0])))[0].T
    first, second = basis / np.sqrt(mu)
    lengths, cosines = np.array(PAIRS).T[:, :, None]
    theta = lengths * (cosines * first + np.sqrt(1 - cosines**2) * second)
    norm_sq, star_sq, cosine = _moments(mu, theta, np.broadcast_to(first, theta.shape))
    operator, weights, target = (
        jnp.asarray(x, dtype=config.dtype) for x in (np.sqrt(mu), theta, first)
    )

    def one(params: dict, run_key: jax.Array) -> dict[str, jax.Array]:
        m = aggregate(operator, jax.random.normal(run_key, (DRAWS, DIM), operator.dtype))
        gap = jnp.maximum(m @ weights.T, 0) - jnp.maximum(m @ target, 0)[:, None]
        return {"relu_drawn_risk": jnp.mean(jnp.square(gap), axis=0)}

    runs = repeat("relu-draws", one, {}, jax.random.split(key, config.num_seeds))
    labels = [f"a = {length:g}b, cos φ = {angle:g}" for length, angle in PAIRS]
    exact = np.asarray(relu_theory.excess_risk(norm_sq, star_sq, cosine))
    half = np.sum(mu * (theta - first) ** 2, -1) / 2
    return (
        runs.rename(relu_drawn_risk_axis0="relu_pair")
        .drop_vars("seed")
        .assign(relu_drawn_theory=("relu_pair", exact), relu_drawn_half=("relu_pair", half))
        .assign_coords(relu_pair=labels)
    )


def _random(key: jax.Array) -> xr.Dataset:
    """Δ and ‖θ − θ*‖²_M of random pairs; in the first ones the bounds are reached."""
    mu_key, theta_key, star_key = jax.random.split(key, 3)
    draws = (
        jax.random.normal(k, (RANDOM_PAIRS, DIM), float) for k in (mu_key, theta_key, star_key)
    )
    # Float64 whatever the draws are: the bounds are reached to rounding.
    logarithm, theta, star = (np.array(drawn, dtype=np.float64) for drawn in draws)
    mu = np.exp(3 * logarithm)
    for place, factor in enumerate((-1.0, -3.0, 0.0, 0.5, 2.0)):
        theta[place] = factor * star[place]
    mu = mu / mu.sum(-1, keepdims=True)
    half_risk = 0.5 * np.asarray(relu_theory.excess_risk(*_moments(mu, theta, star)))
    distance = np.sum(mu * (theta - star) ** 2, -1)
    notes = {"units": "no ½ in ‖·‖²_M"}
    return xr.Dataset(
        {
            "relu_half_risk": ("relu_random", half_risk, {"long_name": "Δ = R/2"}),
            "relu_quarter": ("relu_random", distance / 4, {"long_name": "¼‖θ−θ*‖²_M", **notes}),
            "relu_eighth": ("relu_random", distance / 8, {"long_name": "⅛‖θ−θ*‖²_M", **notes}),
        }
    )
