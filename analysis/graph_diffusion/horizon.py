"""How long to diffuse: exact KL and its bound over horizon and number of steps, for Gaussian data.

The best horizon of the bound is held against the closed form T*, and that of the exact KL against both.
"""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.interpolate
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.graph_diffusion.config import Config
from boundlab.analysis.graph_diffusion.horizon_claims import CLAIMS as CLAIMS
from boundlab.analysis.graph_diffusion.padded_grids import padded_grid
from boundlab.experiment import Repeat
from boundlab.theory import graph_diffusion as theory

EARLY_STOP = 0.01
SINGLE = (0.05, 0.3, 0.5, 0.8, 2.0, 3.0, 5.0, 20.0, 50.0)
# Eigenvalues and means of the data.
DATA: dict[str, tuple[np.ndarray, np.ndarray]] = {
    **{f"λ={lam:g}": (np.array([lam]), np.zeros(1)) for lam in SINGLE},
    "nine modes": (np.geomspace(0.5, 8.0, 9), np.zeros(9)),
    "mean dominates": (np.array([1.2, 0.9]), np.array([2.0, 1.0])),
}
SHORTEST, LONGEST = 0.2, 6.0
# Points a cell of the grid of horizons between which a minimum is read off.
FINER = 128


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """KL and bound over (T, N), their minimisers, the closed form and a wrong one."""
    del key, repeat  # nothing is drawn
    horizons = np.geomspace(SHORTEST, LONGEST, config.horizon_points)
    kl, bound = _errors(config, horizons)
    formulas = _formulas(config)
    cases, table = (
        ("horizon_data", "horizon_steps", "horizon_time"),
        ("horizon_data", "horizon_steps"),
    )
    variables = {
        "horizon_kl": (cases, kl, "exact KL of the exponential integrator's output", "nats"),
        "horizon_bound": (cases, bound, "path bound on it", "nats"),
        "horizon_best": (
            table,
            _minimisers(horizons, bound),
            "horizon that minimises the bound",
            "1",
        ),
        "horizon_best_exact": (
            table,
            _minimisers(horizons, kl),
            "horizon that minimises the exact KL",
            "1",
        ),
        "horizon_formula": (
            table,
            formulas["formula"],
            "horizon that balances start and steps",
            "1",
        ),
        "horizon_slow": (
            table,
            formulas["slow"],
            "the same if the start's cost fell as exp(−2T)",
            "1",
        ),
        "horizon_fast": (
            table,
            formulas["fast"],
            "the same if the start's cost fell as exp(−4T)",
            "1",
        ),
    }
    coords = {
        "horizon_data": list(DATA),
        "horizon_steps": np.array(config.horizon_steps),
        "horizon_time": horizons,
    }
    data = {
        name: (dims, np.asarray(values), {"long_name": text, "units": units})
        for name, (dims, values, text, units) in variables.items()
    }
    return describe(xr.Dataset(data, coords), "nats")


def _errors(config: Config, horizons: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(data, steps, horizon) of the exact KL and of its bound: all modes at once, then summed."""
    lam = np.concatenate([modes for modes, _ in DATA.values()])
    mean = np.concatenate([center for _, center in DATA.values()])
    owner = np.repeat(np.arange(len(DATA)), [len(modes) for modes, _ in DATA.values()])
    member = (owner[None, :] == np.arange(len(DATA))[:, None]).astype(np.float64)
    most, scheme = max(config.horizon_steps), "exponential_integrator"

    @jax.jit
    @jax.vmap
    def one(row: jax.Array) -> tuple[jax.Array, jax.Array]:
        times = padded_grid(row[1], EARLY_STOP, row[0], most)
        found, variance = theory.reverse_moments(lam, times, scheme, mean=mean)
        target = theory.noised_variance(lam, EARLY_STOP)
        kl = theory.gaussian_kl(target, variance, np.exp(-EARLY_STOP) * mean, found)
        path = theory.discretization_ei(lam, times)
        return member @ kl, member @ (theory.initialization_kl(lam, row[1], mean) + path)

    rows = np.array([(steps, horizon) for steps in config.horizon_steps for horizon in horizons])
    shape = (len(config.horizon_steps), len(horizons), len(DATA))
    kl, bound = (
        np.moveaxis(np.asarray(values).reshape(shape), -1, 0) for values in one(jnp.asarray(rows))
    )
    return kl, bound


def _formulas(config: Config) -> dict[str, np.ndarray]:
    """T*, and what it would be if all of the start's cost fell as e^{−2T}, or all as e^{−4T}."""
    steps = jnp.asarray(config.horizon_steps)
    found: dict[str, list[np.ndarray]] = {"formula": [], "slow": [], "fast": []}
    for lam, mean in DATA.values():
        off = np.sqrt((lam - 1) ** 2 + mean**2)
        given = {
            "formula": (lam, mean),
            "slow": (np.ones_like(lam), off),
            "fast": (1.0 + off, np.zeros_like(lam)),
        }
        for name, (modes, center) in given.items():
            root = jax.vmap(lambda n, a=modes, b=center: theory.optimal_horizon(a, n, b))
            found[name].append(np.asarray(root(steps)))
    return {name: np.stack(roots) for name, roots in found.items()}


def _minimisers(horizons: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Minimisers over the last axis, of a cubic spline in log T read off `FINER` points a cell."""
    cells = np.arange((len(horizons) - 1) * FINER + 1) / FINER
    fine = np.exp(np.interp(cells, np.arange(len(horizons)), np.log(horizons)))
    spline = scipy.interpolate.CubicSpline(np.log(horizons), values, axis=-1)
    lowest = spline(np.log(fine)).argmin(axis=-1)
    if ((lowest == 0) | (lowest == len(fine) - 1)).any():
        raise ValueError("horizons: a minimum lies outside their range")
    return fine[lowest]
