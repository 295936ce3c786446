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


def _noised(*rates: Any) -> np.ndarray:
    """Covariances (cases, d, d) of the noised system under several pairs of schedules."""
    system = coupled_system().covariance

    def one(schedules: jax.Array) -> jax.Array:
        return theory.noised_covariance(system, DIM_FEATURES, schedules, EARLY_STOP)

    return np.asarray(jax.jit(jax.vmap(one))(jnp.asarray(rates)))


def _errors(
    config: Config, systems: list[np.ndarray], rates: list[Any], targets: list[np.ndarray]
) -> np.ndarray:
    """KL (3, cases, steps) of the sampler's output from its target: of the pair, and of each block."""
    grids = _grids(config)
    matrices, wanted = (jnp.asarray(np.stack(part)) for part in (systems, targets))
    schedules = jnp.asarray(rates)

    def one(place: tuple[jax.Array, jax.Array]) -> jax.Array:
        case, row = place
        law = theory.joint_reverse(matrices[case], DIM_FEATURES, schedules[case], grids[row])
        return _divergences(wanted[case], law)

    shape = (len(systems), len(grids))
    places = tuple(jnp.asarray(axis.ravel()) for axis in np.indices(shape))
    return np.moveaxis(np.asarray(jax.lax.map(one, places)).reshape(*shape, 3), -1, 0)


def _divergences(target: jax.Array, law: jax.Array) -> jax.Array:
    """(3,): KL of the pair, of the features and of the structure."""
    blocks = (slice(None), slice(None, DIM_FEATURES), slice(DIM_FEATURES, None))
    return jnp.stack([theory.covariance_kl(target[b, b], law[b, b]) for b in blocks])


def _gaussian(config: Config) -> xr.Dataset:
    """Exact KL and bound of each paradigm, and of structure first and then features given it."""
    system = coupled_system().covariance
    # The pair of clean features and noised structure, on which the second of two stages builds.
    *targets, pair = _noised(*RATES, (GIVEN, SCHEDULES[1]))
    # Marginal scores of coupled blocks are joint scores of blocks that aren't coupled.
    systems = [system] * 3 + [_apart(system)] * 3 + [pair]
    rates = [*RATES, *RATES, (SCHEDULES[0], GIVEN)]
    whole, features, structure = _errors(config, systems, rates, [*targets, *targets, targets[2]])

    def staged(times: jax.Array) -> jax.Array:
        law = theory.two_stage_reverse(system, DIM_FEATURES, SCHEDULES, times)
        return theory.covariance_kl(targets[2], law)

    stages = jax.lax.map(staged, _grids(config))
    dims = ("paradigms_paradigm", "paradigms_steps")
    return xr.Dataset(
        {
            "paradigms_kl": (dims, whole[:3], {"long_name": "exact KL, joint scores"}),
            "paradigms_kl_marginal": (
                dims,
                whole[3:6],
                {"long_name": "exact KL, marginal scores"},
            ),
            "paradigms_bound": (dims, _bounds(config), {"long_name": "bound for joint scores"}),
            "paradigms_two_stage": (
                dims[1],
                stages,
                {"long_name": "KL of the two stages together"},
            ),
            "paradigms_two_stage_sum": (
                dims[1],
                structure[5] + whole[6],
                {"long_name": "KL of the structure + mean KL of features given it"},
            ),
            "paradigms_two_stage_alone": (
                dims[1],
                structure[5] + features[5],
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
