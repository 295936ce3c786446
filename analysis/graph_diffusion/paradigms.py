"""The three paradigms: features given the structure, structure given the features, both together.

Exact errors and bounds for a Gaussian system, and for a nonlinear model whose joint score is enumerated
the Fisher information of each block by what its partner tells, the bound, and what samples show of the
error.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.graph_diffusion.config import Config
from boundlab.analysis.graph_diffusion.coupled_system import (
    DIM_FEATURES,
    EARLY_STOP,
    SCHEDULES,
    coupled_system,
    uniform_times,
)
from boundlab.analysis.graph_diffusion.paradigms_claims import CLAIMS as CLAIMS
from boundlab.analysis.graph_diffusion.paradigms_samples import PARADIGMS, fisher, samples
from boundlab.experiment import Repeat
from boundlab.theory import graph_diffusion as theory

GIVEN = (0.0, 0.0)
# Schedules of features and of structure in each paradigm; a block at (0, 0) is given.
RATES = ((SCHEDULES[0], GIVEN), (GIVEN, SCHEDULES[1]), SCHEDULES)
TIMES = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0])
PARTNERS = ("clean", "noisy", "absent")
BLOCKS = ("features", "structure")
_KL = jax.jit(jax.vmap(theory.covariance_kl, in_axes=(None, 0)))


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """The Gaussian system and the block model as one dataset."""
    parts = [
        _gaussian(config),
        _fisher_of_gaussian(),
        fisher(config, jax.random.fold_in(key, 0), repeat),
        samples(config, jax.random.fold_in(key, 1), repeat),
    ]
    return describe(xr.merge(parts), "nats")


def _grids(config: Config) -> jax.Array:
    """Grids of all numbers of steps, ended by steps of length 0, which change nothing."""
    most = max(config.paradigms_steps)
    grids = [uniform_times(steps) for steps in config.paradigms_steps]
    return jnp.asarray(
        np.stack([np.pad(grid, (0, most + 1 - len(grid)), "edge") for grid in grids])
    )


def _outputs(config: Config, systems: list[np.ndarray], rates: list[Any]) -> list[np.ndarray]:
    """Outputs (steps, d, d) of the sampler for each pair of a covariance and its schedules."""
    grids = _grids(config)
    matrices, schedules = jnp.asarray(np.stack(systems)), jnp.asarray(rates)

    def one(place: tuple[jax.Array, jax.Array]) -> jax.Array:
        case, row = place
        return theory.joint_reverse(matrices[case], DIM_FEATURES, schedules[case], grids[row])

    shape = (len(systems), len(grids))
    places = tuple(jnp.asarray(axis.ravel()) for axis in np.indices(shape))
    laws = np.asarray(jax.lax.map(one, places))
    return list(laws.reshape(*shape, *laws.shape[1:]))


def _divergences(target: np.ndarray, laws: np.ndarray, block: slice = slice(None)) -> np.ndarray:
    """KL (steps,) of laws from a target, of one block of both."""
    part = jnp.asarray(np.asarray(target)[block, block])
    chosen = jnp.asarray(laws[:, block, block])
    return np.asarray(_KL(part, chosen))


def _gaussian(config: Config) -> xr.Dataset:
    """Exact KL and bound of each paradigm, and of structure first and then features given it."""
    system = coupled_system().covariance
    apart = _apart(system)
    # The pair of clean features and noised structure, on which the second of two stages builds.
    pair = np.asarray(
        theory.noised_covariance(system, DIM_FEATURES, (GIVEN, SCHEDULES[1]), EARLY_STOP)
    )
    # Marginal scores of coupled blocks are joint scores of blocks that aren't coupled.
    systems = [system] * 3 + [apart] * 3 + [pair]
    laws = _outputs(config, systems, [*RATES, *RATES, (SCHEDULES[0], GIVEN)])
    targets = [
        np.asarray(theory.noised_covariance(system, DIM_FEATURES, rates, EARLY_STOP))
        for rates in RATES
    ]
    errors = [_divergences(t, law) for t, law in zip(targets * 2, laws[:6], strict=True)]
    first, second = slice(None, DIM_FEATURES), slice(DIM_FEATURES, None)
    alone = [_divergences(targets[2], laws[5], block) for block in (first, second)]

    def staged(times: jax.Array) -> jax.Array:
        return theory.two_stage_reverse(system, DIM_FEATURES, SCHEDULES, times)

    stages = np.asarray(jax.lax.map(staged, _grids(config)))
    dims = ("paradigms_paradigm", "paradigms_steps")
    return xr.Dataset(
        {
            "paradigms_kl": (dims, np.stack(errors[:3]), {"long_name": "exact KL, joint scores"}),
            "paradigms_kl_marginal": (
                dims,
                np.stack(errors[3:]),
                {"long_name": "exact KL, marginal scores"},
            ),
            "paradigms_bound": (dims, _bounds(config), {"long_name": "bound for joint scores"}),
            "paradigms_two_stage": (
                dims[1],
                _divergences(targets[2], stages),
                {"long_name": "KL of the two stages together"},
            ),
            "paradigms_two_stage_sum": (
                dims[1],
                alone[1] + _divergences(targets[2], laws[6]),
                {"long_name": "KL of the structure + mean KL of features given it"},
            ),
            "paradigms_two_stage_alone": (
                dims[1],
                alone[1] + alone[0],
                {"long_name": "KL of the structure + KL of features, each by its marginal score"},
            ),
        },
        coords={dims[0]: list(PARADIGMS), dims[1]: np.array(config.paradigms_steps)},
    )


def _bounds(config: Config) -> np.ndarray:
    """(paradigms, steps): initialisation and both blocks' terms."""
    system, grids, rates = coupled_system().covariance, _grids(config), jnp.asarray(RATES)

    def one(place: tuple[jax.Array, jax.Array]) -> jax.Array:
        terms = theory.system_bound(system, DIM_FEATURES, rates[place[0]], grids[place[1]])
        return jnp.sum(jnp.stack(list(terms.values())))

    shape = (len(RATES), len(grids))
    places = tuple(jnp.asarray(axis.ravel()) for axis in np.indices(shape))
    return np.asarray(jax.lax.map(one, places)).reshape(shape)


def _apart(system: np.ndarray) -> np.ndarray:
    """The same law of each block, the two independent."""
    apart = system.copy()
    apart[:DIM_FEATURES, DIM_FEATURES:] = apart[DIM_FEATURES:, :DIM_FEATURES] = 0.0
    return apart


def _fisher_of_gaussian() -> xr.Dataset:
    """Fisher information of both blocks of the Gaussian system, by what the partner tells."""
    system = coupled_system().covariance
    known = [(system, rates) for rates in RATES] + [(_apart(system), SCHEDULES)]
    matrices = jnp.asarray(np.stack([matrix for matrix, _ in known]))
    rates = jnp.asarray([rates for _, rates in known])

    def one(t: jax.Array) -> jax.Array:
        blocks = jax.vmap(theory.block_fisher, in_axes=(0, None, 0, None))
        features, structure = blocks(matrices, DIM_FEATURES, rates, t)
        return jnp.stack([features[jnp.array([0, 2, 3])], structure[jnp.array([1, 2, 3])]])

    values = jax.lax.map(one, jnp.asarray(TIMES))
    dims = ("paradigms_block", "paradigms_partner", "paradigms_gauss_time")
    return xr.Dataset(
        {
            "paradigms_gauss_fisher": (
                dims,
                np.moveaxis(np.asarray(values), 0, -1),
                {"long_name": "Fisher information of a block, Gaussian system", "units": "1"},
            )
        },
        coords={dims[0]: list(BLOCKS), dims[1]: list(PARTNERS), dims[2]: TIMES},
    )
