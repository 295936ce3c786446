"""What coupling is worth: joint and marginal scores, the order of the blocks, and a coupled drift.

The exact law of the sampler, its bound, and the price of scores that don't see the partner (the mutual
information) for one Gaussian system; simulated by the sampler of graphs with that system's exact score.
"""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.graph_diffusion.block_model_draws import flat_normal
from boundlab.analysis.graph_diffusion.config import Config
from boundlab.analysis.graph_diffusion.coupled_system import (
    DIM_FEATURES,
    DIM_STRUCTURE,
    EARLY_STOP,
    NODES,
    NUM_FEATURES,
    SCHEDULES,
    coupled_system,
    uniform_times,
)
from boundlab.analysis.graph_diffusion.coupling_claims import CLAIMS as CLAIMS
from boundlab.experiment import Repeat
from boundlab.models import samplers, sde
from boundlab.theory import graph_diffusion as theory

ORDERS = ("jacobi", "gauss_seidel")
STRENGTHS = np.linspace(0.1, 1.0, 10)
DRIFTS = np.array([0.0, 0.3, 0.6, 0.9])
# Times at which the forward process with a coupled drift is looked at.
HORIZONS = np.linspace(0.5, 6.0, 12)
# (1 − k)t between which the decay's rate is read off: late enough for the slowest mode to be alone.
LATE = (8.0, 9.0)
SIMULATED_STEPS = 8
DRIFT_HORIZON = 3.0


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Exact errors, bounds and simulated variances as one dataset."""
    parts = [
        _errors(config),
        _prices(config),
        _drifts(config),
        _simulated(config, jax.random.fold_in(key, 0), repeat),
    ]
    return describe(xr.merge(parts), "nats")


def _errors(config: Config) -> xr.Dataset:
    """KL of the sampler against the number of steps, the bound's terms, and the price by block."""
    system = coupled_system().covariance
    target = theory.noised_covariance(system, DIM_FEATURES, SCHEDULES, EARLY_STOP)
    kinds = {
        "joint, Jacobi": ("joint", "jacobi"),
        "joint, Gauss-Seidel": ("joint", "gauss_seidel"),
        "marginal": ("marginal", "jacobi"),
    }
    # Steps of length 0 at the end change nothing: one compilation serves all numbers of steps.
    most = max(config.coupling_steps)
    grids = [uniform_times(steps) for steps in config.coupling_steps]
    padded = np.stack([np.pad(grid, (0, most + 1 - len(grid)), "edge") for grid in grids])
    blocks = (slice(None, DIM_FEATURES), slice(DIM_FEATURES, None))

    def one(times: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        laws = [
            theory.joint_reverse(system, DIM_FEATURES, SCHEDULES, times, *kind)
            for kind in kinds.values()
        ]
        bound = theory.system_bound(system, DIM_FEATURES, SCHEDULES, times)
        by_block = [theory.covariance_kl(target[b, b], laws[-1][b, b]) for b in blocks]
        return (
            jnp.stack([theory.covariance_kl(target, law) for law in laws]),
            jnp.stack(list(bound.values())),
            by_block[0] + by_block[1],
        )

    kl, terms, by_block = jax.lax.map(one, jnp.asarray(padded))
    information = float(theory.mutual_information(target, DIM_FEATURES))
    return xr.Dataset(
        {
            "coupling_kl": (
                ("coupling_steps", "coupling_sampler"),
                kl,
                {"long_name": "exact KL of the sampler's output from the noised data"},
            ),
            "coupling_bound_terms": (
                ("coupling_steps", "coupling_term"),
                terms,
                {"long_name": "terms of the bound for joint scores"},
            ),
            "coupling_bound": (
                "coupling_steps",
                terms.sum(axis=1),
                {"long_name": "bound on the KL with joint scores"},
            ),
            "coupling_kl_of_blocks": (
                "coupling_steps",
                by_block,
                {"long_name": "KL of features plus that of structure, marginal scores"},
            ),
            "coupling_information": (
                (),
                information,
                {"long_name": "mutual information of the noised blocks"},
            ),
        },
        coords={
            "coupling_steps": np.array(config.coupling_steps),
            "coupling_sampler": list(kinds),
            "coupling_term": ["initialization", "features", "structure"],
        },
    )


def _prices(config: Config) -> xr.Dataset:
    """KL of marginal scores on a fine grid against I(X; A), over the strength of the coupling."""
    times = uniform_times(config.coupling_fine_steps)
    systems = jnp.asarray(np.stack([coupled_system(float(s)).covariance for s in STRENGTHS]))

    def one(system: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        target = theory.noised_covariance(system, DIM_FEATURES, SCHEDULES, EARLY_STOP)
        law = theory.joint_reverse(system, DIM_FEATURES, SCHEDULES, times, "marginal")
        correlations = theory.canonical_correlations(target, DIM_FEATURES)
        return (
            theory.covariance_kl(target, law),
            theory.mutual_information(target, DIM_FEATURES),
            0.5 * jnp.sum(correlations**2),
        )

    price, information, weak = jax.lax.map(one, systems)
    dim = "coupling_strength"
    return xr.Dataset(
        {
            "coupling_price": (dim, price, {"long_name": "KL with marginal scores, fine grid"}),
            "coupling_price_theory": (dim, information, {"long_name": "mutual information"}),
            "coupling_price_weak": (
                dim,
                weak,
                {"long_name": "mutual information to first order in the squared correlations"},
            ),
        },
        coords={dim: STRENGTHS},
    )


def _coupling() -> np.ndarray:
    """C (d_X, d_A) of spectral norm 1: the drift couples the leading canonical pair."""
    system = coupled_system().differences[0]
    first, second = system[:DIM_FEATURES], -system[DIM_FEATURES:]
    return np.outer(first / np.linalg.norm(first), second / np.linalg.norm(second))


def _drifts(config: Config) -> xr.Dataset:
    """Distance from the prior over time, its late rate, and error and bound, by drift coupling k."""
    system, coupling = jnp.asarray(coupled_system().covariance), jnp.asarray(_coupling())
    prior = jnp.eye(len(system), dtype=jnp.float64)
    times = np.linspace(DRIFT_HORIZON, EARLY_STOP, config.coupling_drift_steps + 1)

    def one(k: jax.Array) -> dict[str, jax.Array]:
        def distance(t: jax.Array) -> jax.Array:
            law = theory.coupled_drift_covariance(system, k * coupling, t)
            return theory.covariance_kl(law, prior)

        late = jnp.asarray(LATE) / (1.0 - k)
        ends = jax.lax.map(distance, jnp.concatenate([late, jnp.asarray(HORIZONS)]))
        bound = theory.coupled_drift_bound(system, k * coupling, times)
        target = theory.coupled_drift_covariance(system, k * coupling, EARLY_STOP)
        found = theory.coupled_drift_reverse(system, k * coupling, times)
        return {
            "distance": ends[2:],
            "rate": jnp.log(ends[0] / ends[1]) / (late[1] - late[0]),
            "kl": theory.covariance_kl(target, found),
            "initialization": bound["initialization"],
            "bound": bound["initialization"] + bound["discretization"],
        }

    found = jax.lax.map(one, jnp.asarray(DRIFTS))
    dim = "coupling_drift"
    return xr.Dataset(
        {
            "coupling_distance": (
                (dim, "coupling_horizon"),
                found["distance"],
                {"long_name": "KL of the noised data from the prior"},
            ),
            "coupling_rate": (
                dim,
                found["rate"],
                {"long_name": "late rate of its decay", "units": "1/time"},
            ),
            "coupling_rate_theory": (
                dim,
                4 * (1 - DRIFTS),
                {"long_name": "4(1 − k)", "units": "1/time"},
            ),
            "coupling_rate_decoupled": (
                dim,
                np.full(len(DRIFTS), 4.0),
                {"long_name": "rate without coupling", "units": "1/time"},
            ),
            "coupling_drift_kl": (dim, found["kl"], {"long_name": "exact KL, coupled drift"}),
            "coupling_drift_bound": (dim, found["bound"], {"long_name": "its bound"}),
            "coupling_drift_initialization": (
                dim,
                found["initialization"],
                {"long_name": "initialisation term alone"},
            ),
        },
        coords={dim: DRIFTS, "coupling_horizon": HORIZONS},
    )


def _simulated(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Variances of drawn samples along seven directions, both orders, and of the coupled drift's."""
    system = coupled_system()
    times = uniform_times(SIMULATED_STEPS)
    laws = {
        (scores, order): np.asarray(
            theory.joint_reverse(system.covariance, DIM_FEATURES, SCHEDULES, times, scores, order)
        )
        for scores, order in (("joint", ORDERS[0]), ("joint", ORDERS[1]), ("marginal", ORDERS[0]))
    }
    # The direction in which the two orders differ most.
    _, vectors = scipy.linalg.eigh(laws["joint", ORDERS[1]], laws["joint", ORDERS[0]])
    directions = np.vstack([system.differences, vectors[:, -1]])
    names = [f"canonical pair {i + 1}" for i in range(DIM_STRUCTURE)]
    slowest, drift_times = _slowest_direction(), np.linspace(DRIFT_HORIZON, EARLY_STOP, 13)
    drift_maps = _drift_maps(drift_times)

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        drawn = {
            order: _draw(jax.random.fold_in(key, i), times, order, config.coupling_draws)
            for i, order in enumerate(ORDERS)
        }
        samples = {
            order: jnp.mean((z @ jnp.asarray(directions.T)) ** 2, axis=0)
            for order, z in drawn.items()
        }
        z = _draw_drift(jax.random.fold_in(key, 2), drift_maps, config.coupling_draws)
        return {**samples, "drift": jnp.mean((z @ jnp.asarray(slowest.T)) ** 2, axis=0)}

    keys = jax.random.split(key, config.coupling_seeds)
    found = repeat("coupling-samples", one, {}, keys)

    def along(law: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.einsum("id,de,ie->i", rows, law, rows)

    drift_laws = [
        np.asarray(theory.coupled_drift_reverse(system.covariance, k * _coupling(), drift_times))
        for k in (DRIFTS[-1], 0.0)
    ]
    dims, drift_dims = ("coupling_seed", "coupling_direction"), ("coupling_seed", "coupling_mode")
    described = {"units": "1"}
    return xr.Dataset(
        {
            **{
                f"coupling_variance_{order}": (
                    dims,
                    found[order].values,
                    {"long_name": f"variance of drawn samples, {order}", **described},
                )
                for order in ORDERS
            },
            **{
                f"coupling_theory_{scores}_{order}": (
                    "coupling_direction",
                    along(law, directions),
                    {"long_name": f"variance by the recursion, {scores} {order}", **described},
                )
                for (scores, order), law in laws.items()
            },
            "coupling_variance_drift": (
                drift_dims,
                found["drift"].values,
                {"long_name": "variance of drawn samples, coupled drift", **described},
            ),
            "coupling_theory_drift": (
                "coupling_mode",
                along(drift_laws[0], slowest),
                {"long_name": "variance by the recursion, coupled drift", **described},
            ),
            "coupling_theory_no_drift": (
                "coupling_mode",
                along(drift_laws[1], slowest),
                {"long_name": "variance by the recursion, drift not coupled", **described},
            ),
        },
        coords={
            "coupling_direction": [*names, "order"],
            "coupling_mode": ["slowest", "fastest"],
        },
    )


def _draw(key: jax.Array, times: np.ndarray, order: str, draws: int) -> jax.Array:
    """Samples (draws, d) of the coupled sampler with the Gaussian system's exact joint score."""
    covariance = jnp.asarray(coupled_system().covariance)
    equations = [sde.vp(*schedule) for schedule in SCHEDULES]
    first, second = np.triu_indices(NODES, 1)
    sizes = (DIM_FEATURES, DIM_STRUCTURE)

    def score(x: jax.Array, adjacency: jax.Array, t: jax.Array) -> tuple[jax.Array, jax.Array]:
        z = jnp.concatenate([x.reshape(len(x), -1), adjacency[:, first, second]], axis=1)
        means = [equation.mean_coefficient(t) for equation in equations]
        mean = jnp.repeat(jnp.stack(means), np.array(sizes), total_repeat_length=sum(sizes))
        spread = covariance * mean[:, None] * mean[None, :] + jnp.diag(1.0 - mean**2)
        s = -z @ jnp.linalg.inv(spread)
        edges = jnp.zeros_like(adjacency).at[:, first, second].set(s[:, DIM_FEATURES:])
        return s[:, :DIM_FEATURES].reshape(x.shape), edges + edges.transpose(0, 2, 1)

    x, adjacency = samplers.sample_graphs(
        key,
        equations[0],
        equations[1],
        score,
        times,
        draws,
        NODES,
        NUM_FEATURES,
        "exponential_integrator",
        order=order,
        denoise=False,
    )
    return jnp.concatenate([x.reshape(draws, -1), adjacency[:, first, second]], axis=1)


def _drift_matrix(k: float) -> np.ndarray:
    off = np.zeros((DIM_FEATURES + DIM_STRUCTURE,) * 2)
    off[:DIM_FEATURES, DIM_FEATURES:] = k * _coupling()
    return np.eye(len(off)) + off + off.T


def _slowest_direction() -> np.ndarray:
    """Unit eigenvectors (2, d) of the largest coupled drift: of its least and its largest eigenvalue."""
    _, vectors = np.linalg.eigh(_drift_matrix(float(DRIFTS[-1])))
    return vectors[:, [0, -1]].T


def _drift_maps(times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each step's linear map and a root of its noise, by matrix exponentials; largest coupling."""
    covariance, rates = coupled_system().covariance, _drift_matrix(float(DRIFTS[-1]))
    identity = np.eye(len(rates))
    moves, roots = [], []
    for tau, t in pairwise(times):
        decay = scipy.linalg.expm(-rates * tau)
        spread = decay @ covariance @ decay + identity - decay @ decay
        grown = scipy.linalg.expm(rates * (tau - t))
        moves.append(grown - 2 * (grown - identity) @ np.linalg.inv(spread))
        roots.append(np.linalg.cholesky(grown @ grown - identity))
    return np.stack(moves), np.stack(roots)


def _draw_drift(key: jax.Array, maps: tuple[np.ndarray, np.ndarray], draws: int) -> jax.Array:
    """Samples (draws, d) of the sampler whose drift couples the blocks."""
    shape = (draws, DIM_FEATURES + DIM_STRUCTURE)
    start_key, noise_key = jax.random.split(key)

    def step(z: jax.Array, given: tuple[jax.Array, ...]) -> tuple[jax.Array, None]:
        move, root, own = given
        return z @ move.T + flat_normal(own, shape) @ root.T, None

    start = flat_normal(start_key, shape)
    steps = (*map(jnp.asarray, maps), jax.random.split(noise_key, len(maps[0])))
    return jax.lax.scan(step, start, steps)[0]
