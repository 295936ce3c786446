"""Trained scores: their error measured from the loss, and the system bound that it makes.

The law is Gaussian, so the least loss, the exact score and the bound's other terms are known. For scores
that are linear in the vector the sampler's output is Gaussian too, and its KL exact; for perceptrons
KL ≥ E_q f − E_p e^f + 1 from samples, for an f that other samples chose.
"""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.datasets import describe
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
from boundlab.analysis.graph_diffusion.learned_claims import CLAIMS as CLAIMS
from boundlab.analysis.graph_diffusion.learned_networks import (
    BLOCKS,
    LINEAR,
    NETWORKS,
    PERCEPTRONS,
    SDES,
    SIZES,
    linear_matrices,
    network_scores,
    parts,
    scales,
    train,
)
from boundlab.experiment import Runner
from boundlab.models import samplers
from boundlab.models.sampler_noise import mirrored, normal_noise
from boundlab.models.score_training import ScoreTraining
from boundlab.theory import graph_diffusion as theory

# Times at which losses and errors are shown, to the next step of the sampler.
SHOWN = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.8])
# A known perturbation: this much in each coordinate of σ(s + u).
SHIFT = 3.0
# Bins of the statistic behind the lower bound of a KL.
BINS = 16
WINDOWS = 20
NETWORK, RUN, SEED = "learned_network", "learned_run", "learned_seed"
LINEAR_NETWORK, PERCEPTRON = "learned_linear", "learned_perceptron"
TIME, BLOCK = "learned_time", "learned_block"


def run(config: Config, key: jax.Array, repeat: Runner) -> xr.Dataset:
    """Train, measure and sample; everything as one dataset."""
    trained = train(config, jax.random.fold_in(key, 0), repeat)
    params = trained.average_params
    times = uniform_times(config.learned_steps)
    floors = _floors(times)
    measured = _measured(config, jax.random.fold_in(key, 1), repeat, params, times, floors)
    system = coupled_system().covariance
    terms = theory.system_bound(system, DIM_FEATURES, SCHEDULES, times)
    exact = float(terms["features"] + terms["structure"])
    parts_of_dataset = [
        _training(config, trained, times, floors),
        _errors(measured, times, floors),
        _linear(params, times, measured),
        _bounds(float(terms["initialization"]), exact, measured),
        _lower_bounds(measured),
    ]
    return describe(xr.merge(parts_of_dataset), "nats")


def _shown(times: np.ndarray) -> np.ndarray:
    """Places of the steps nearest to `SHOWN`."""
    return np.abs(times[:-1, None] - SHOWN[None, :]).argmin(axis=0)


def _floors(times: np.ndarray) -> np.ndarray:
    """(times, blocks): least loss E‖σs + ξ‖² of each block, from the posterior variance."""
    system = coupled_system().covariance
    mmse = jax.jit(
        jax.vmap(lambda t: jnp.stack(theory.block_mmse(system, DIM_FEATURES, SCHEDULES, t)))
    )(times)
    clocks = np.stack([np.asarray(e.integrated_rate(times)) / 2 for e in SDES], axis=1)
    return np.asarray(theory.dsm_floor(clocks, mmse))


def _variances(times: np.ndarray) -> np.ndarray:
    """(times, blocks): σ²."""
    return np.stack([np.asarray(equation.variance(times)) for equation in SDES], axis=1)


def _rates(times: np.ndarray) -> np.ndarray:
    """(steps, blocks): B of each step."""
    return np.stack([np.asarray(e.integrated_rate(times[:-1], times[1:])) for e in SDES], axis=1)


def _precisions(times: np.ndarray) -> np.ndarray:
    """(times, d, d): S_t⁻¹."""
    system = coupled_system().covariance
    means = np.asarray(scales("mean", jnp.asarray(times)))
    noised = system[None] * means[:, :, None] * means[:, None, :]
    noised += np.eye(len(system))[None] * (1 - means**2)[:, None, :]
    return np.linalg.inv(noised)


def _measured(
    config: Config,
    key: jax.Array,
    repeat: Runner,
    params: dict,
    times: np.ndarray,
    floors: np.ndarray,
) -> xr.Dataset:
    """Losses on fresh draws at every step, and samples of every network, by run."""
    steps, shown = times[:-1], _shown(times)
    variances = _variances(steps)
    weights = jnp.asarray(_rates(times) / variances)
    root = jnp.asarray(np.linalg.cholesky(coupled_system().covariance), jnp.float32)
    stop = np.linalg.inv(_precisions(np.array([EARLY_STOP]))[0])
    root_stop = jnp.asarray(np.linalg.cholesky(stop), jnp.float32)
    at = (jnp.asarray(steps, jnp.float32), jnp.asarray(_precisions(steps), jnp.float32))
    shape = (config.learned_draws, len(root))

    def losses(key: jax.Array, t: jax.Array, precision: jax.Array) -> jax.Array:
        """(networks, exact, shifted; blocks): E‖σs + ξ‖² over the draws."""
        normal = normal_noise(key, (2, *shape), jnp.float32)
        deviation = scales("deviation", t)[None, :]
        z = scales("mean", t)[None, :] * (normal[0] @ root.T) + deviation * normal[1]
        exact = -z @ precision
        found = [network_scores(name, params, z, t) for name in NETWORKS]
        gaps = [deviation * score + normal[1] for score in (*found, exact)]
        gaps.append(gaps[-1] + SHIFT)
        return jnp.stack([_norms(gap) for gap in gaps])

    def one(values: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        own = jax.random.split(jax.random.fold_in(key, 0), len(steps))
        found = jax.lax.map(lambda given: losses(*given), (own, *at)).astype(jnp.float64)
        gaps = found - jnp.asarray(floors[:-1])[:, None, :]
        true = normal_noise(jax.random.fold_in(key, 2), shape, jnp.float32) @ root_stop.T
        # Mean zero: the loss of the exact score on the same draws over its mean, the floor.
        chance = gaps[:, len(NETWORKS)]
        cost = jnp.sum(weights[:, None, :] * gaps[:, : len(NETWORKS)], axis=0)
        return {
            "cost": cost,
            "paired_cost": cost - jnp.sum(weights * chance, axis=0)[None, :],
            "loss": found[shown, len(NETWORKS)],
            "error": gaps[shown] / jnp.asarray(variances)[shown, None, :],
            "true": true,
            "drawn": _draw(jax.random.fold_in(key, 1), params, times, config.learned_draws),
        }

    keys = jax.random.split(key, 2 * config.learned_seeds)
    return repeat("learned-measures", one, {}, keys)


def _norms(values: jax.Array) -> jax.Array:
    """(blocks,): mean over the draws of the squared norm."""
    return jnp.stack([jnp.mean(jnp.sum(part**2, axis=1)) for part in parts(values)])


def _draw(key: jax.Array, params: dict, times: np.ndarray, draws: int) -> jax.Array:
    """Samples (networks, draws, d) of the coupled sampler, all networks as one batch of graphs."""
    first, second = np.triu_indices(NODES, 1)

    def flat(x: jax.Array, adjacency: jax.Array) -> jax.Array:
        z = jnp.concatenate([x.reshape(len(x), -1), adjacency[:, first, second]], axis=1)
        return z.reshape(len(NETWORKS), draws, -1)

    def score(x: jax.Array, adjacency: jax.Array, t: jax.Array) -> tuple[jax.Array, jax.Array]:
        pairs = zip(NETWORKS, flat(x, adjacency), strict=True)
        found = jnp.concatenate([network_scores(name, params, z, t) for name, z in pairs])
        features, edges = parts(found)
        return features.reshape(x.shape), mirrored(edges, NODES)

    x, adjacency = samplers.sample_graphs(
        key,
        SDES[0],
        SDES[1],
        score,
        times,
        len(NETWORKS) * draws,
        NODES,
        NUM_FEATURES,
        "exponential_integrator",
        denoise=False,
        dtype=jnp.float32,
    )
    return flat(x, adjacency)


def _training(
    config: Config, trained: ScoreTraining, times: np.ndarray, floors: np.ndarray
) -> xr.Dataset:
    """Losses along the training, in windows, and the least possible."""
    windows = np.array_split(trained.losses.astype(np.float64), WINDOWS)
    least = np.trapezoid(floors.sum(axis=1)[::-1], times[::-1]) / (times[0] - times[-1])
    middle = (np.arange(WINDOWS) + 0.5) * config.learned_training_steps / WINDOWS
    return xr.Dataset(
        {
            "learned_training_loss": (
                ("learned_window", NETWORK),
                np.stack([window.mean(axis=0) for window in windows]),
                {"long_name": "denoising loss ½E‖σs + ξ‖² in training", "units": "1"},
            ),
            "learned_training_floor": (
                (),
                least / 2,
                {"long_name": "its least value", "units": "1"},
            ),
        },
        coords={"learned_window": middle, NETWORK: list(NETWORKS)},
    )


def _errors(measured: xr.Dataset, times: np.ndarray, floors: np.ndarray) -> xr.Dataset:
    """Loss at the exact score, error of a known perturbation and of the networks, at a few times."""
    place = _shown(times)
    at, floors = times[place], floors[place]
    variances = _variances(at)
    clocks = np.stack([np.asarray(e.integrated_rate(at)) for e in SDES], axis=1)
    shifted = SHIFT**2 * np.array(SIZES)[None, :] / variances
    error = measured["error"].values
    cases, unit = (TIME, BLOCK), {"units": "1"}
    return xr.Dataset(
        {
            "learned_exact_loss": (
                (RUN, *cases),
                measured["loss"].values,
                {"long_name": "loss E‖σs + ξ‖² at the exact score", **unit},
            ),
            "learned_floor": (
                cases,
                floors,
                {"long_name": "least loss, (m²/σ²)·mmse", **unit},
            ),
            "learned_floor_without_mean": (
                cases,
                floors * np.exp(clocks),
                {"long_name": "mmse/σ², the factor m² forgotten", **unit},
            ),
            "learned_shifted": (
                (RUN, *cases),
                error[:, :, -1],
                {"long_name": "measured error of a known perturbation", **unit},
            ),
            "learned_shifted_theory": (
                cases,
                shifted,
                {"long_name": "squared norm of that perturbation", **unit},
            ),
            "learned_error": (
                (RUN, TIME, NETWORK, BLOCK),
                error[:, :, : len(NETWORKS)],
                {"long_name": "measured score error (loss − floor)/σ²", **unit},
            ),
        },
        coords={TIME: at, BLOCK: list(BLOCKS)},
    )


def _linear(params: dict, times: np.ndarray, measured: xr.Dataset) -> xr.Dataset:
    """Exact errors, laws, KL and bound of the linear networks, and variances of their samples."""
    system = coupled_system()
    setting = (system.covariance, DIM_FEATURES, SCHEDULES)
    target = theory.noised_covariance(*setting, EARLY_STOP)
    exact_law = np.asarray(theory.linear_score_reverse(*setting, times, -_precisions(times[:-1])))
    rates, shown = _rates(times), _shown(times)

    def along(law: np.ndarray) -> np.ndarray:
        return np.einsum("id,de,ie->i", system.differences, law, system.differences)

    rows: dict[str, list] = {name: [] for name in ("kl", "terms", "cost", "error", "variance")}
    for name in LINEAR:
        matrices = linear_matrices(name, params, times[:-1])
        law = theory.linear_score_reverse(*setting, times, matrices)
        errors = theory.linear_score_error(*setting, times, matrices)
        bound = theory.system_bound_with_score_error(*setting, times, *errors)
        by_step = np.stack([np.asarray(error) for error in errors], axis=1)
        rows["kl"].append(float(theory.covariance_kl(target, law)))
        rows["terms"].append([float(value) for value in bound.values()])
        rows["cost"].append((rates * by_step).sum(axis=0))
        rows["error"].append(by_step[shown])
        rows["variance"].append(along(np.asarray(law)))
    terms = np.array(rows["terms"])
    count = len(LINEAR)
    z = measured["drawn"].values[:, :count].astype(np.float64)
    variance = ((z @ system.differences.T) ** 2).mean(axis=2)
    dims, pair = (LINEAR_NETWORK,), "learned_pair"
    unit = {"units": "1"}
    return xr.Dataset(
        {
            "learned_kl": (
                dims,
                np.array(rows["kl"]),
                {"long_name": "exact KL of the sampler's output from the noised data"},
            ),
            "learned_sharp_bound": (
                dims,
                terms.sum(axis=1),
                {"long_name": "bound with the exact score error"},
            ),
            "learned_bound_of_exact_scores": (
                dims,
                terms[:, :3].sum(axis=1),
                {"long_name": "bound without its terms of the score error"},
            ),
            "learned_linear_cost": (
                (RUN, LINEAR_NETWORK, BLOCK),
                measured["paired_cost"].values[:, :count],
                {"long_name": "ΣBε² of the bound, ε² from the losses of both scores on one draw"},
            ),
            "learned_linear_cost_theory": (
                (LINEAR_NETWORK, BLOCK),
                np.array(rows["cost"]),
                {"long_name": "ΣBε² of the bound, ε² from the networks' matrices"},
            ),
            "learned_error_theory": (
                (LINEAR_NETWORK, TIME, BLOCK),
                np.array(rows["error"]),
                {"long_name": "score error from the networks' matrices", **unit},
            ),
            "learned_variance": (
                (RUN, LINEAR_NETWORK, pair),
                variance,
                {"long_name": "variance of drawn samples", **unit},
            ),
            "learned_variance_theory": (
                (LINEAR_NETWORK, pair),
                np.array(rows["variance"]),
                {"long_name": "variance by the recursion of the trained score", **unit},
            ),
            "learned_variance_exact_score": (
                (LINEAR_NETWORK, pair),
                np.tile(along(exact_law), (count, 1)),
                {"long_name": "variance by the recursion of the exact score", **unit},
            ),
        },
        coords={
            LINEAR_NETWORK: list(LINEAR),
            pair: np.arange(1, DIM_STRUCTURE + 1),
            BLOCK: list(BLOCKS),
        },
    )


def _bounds(initialization: float, exact: float, measured: xr.Dataset) -> xr.Dataset:
    """Bound init + 2D + ΣBε² of every network, a run each: linear in ε², so that its mean is right."""
    cost = measured["cost"].values.sum(axis=2)
    return xr.Dataset(
        {
            "learned_bound": (
                (RUN, NETWORK),
                initialization + 2 * exact + cost,
                {"long_name": "bound with the measured score error"},
            ),
            "learned_initialization": ((), initialization, {"long_name": "initialisation term"}),
            "learned_discretization": ((), exact, {"long_name": "discretisation term D"}),
        },
        coords={NETWORK: list(NETWORKS)},
    )


def _lower_bounds(measured: xr.Dataset) -> xr.Dataset:
    """Lower bounds of the perceptrons' KL by the second half of the runs, f from the first half.

    f is the log-ratio of two histograms, of noised data and of samples, over a statistic that is the
    log-ratio of the data's density to a Gaussian of the samples' moments.
    """
    held_out = measured.sizes["seed"] // 2
    true = measured["true"].values.astype(np.float64)
    precision = _precisions(np.array([EARLY_STOP]))[0]
    lower, bound = [], []
    for name in PERCEPTRONS:
        place = NETWORKS.index(name)
        drawn = measured["drawn"].values[:, place].astype(np.float64)
        fitted = drawn[:held_out].reshape(-1, drawn.shape[-1])
        mean, other = fitted.mean(axis=0), np.linalg.inv(np.cov(fitted.T))
        ratio = [_squares(z - mean, other) - _squares(z, precision) for z in (true, drawn)]
        lower.append(_witness(ratio[0], ratio[1], held_out))
        bound.append(measured["cost"].values[held_out:, place].sum(axis=1))
    return xr.Dataset(
        {
            "learned_lower": (
                (SEED, PERCEPTRON),
                np.stack(lower, axis=1),
                {"long_name": "lower bound of the KL from samples"},
            ),
            "learned_held_out_cost": (
                (SEED, PERCEPTRON),
                np.stack(bound, axis=1),
                {"long_name": "ΣBε² of the same runs"},
            ),
        },
        coords={PERCEPTRON: list(PERCEPTRONS)},
    )


def _squares(z: np.ndarray, precision: np.ndarray) -> np.ndarray:
    return np.einsum("...i,ij,...j->...", z, precision, z)


def _witness(true: np.ndarray, drawn: np.ndarray, held_out: int) -> np.ndarray:
    """KL ≥ E_q f − E_p e^f + 1 of a statistic: one value for each run after the first `held_out`."""
    first = (true[:held_out].ravel(), drawn[:held_out].ravel())
    edges = np.quantile(np.concatenate(first), np.linspace(0, 1, BINS + 1)[1:-1])
    shares = [np.bincount(np.searchsorted(edges, part), minlength=BINS) + 1.0 for part in first]
    ratio = np.log(shares[0] / shares[0].sum()) - np.log(shares[1] / shares[1].sum())
    of_true, of_drawn = (ratio[np.searchsorted(edges, v[held_out:])] for v in (true, drawn))
    return (of_true - np.exp(of_drawn) + 1).mean(axis=1)
