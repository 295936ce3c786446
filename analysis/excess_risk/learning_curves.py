"""Risk of SGD and ridge against the number of samples: exact, bounded, and simulated.

Four problems (regular and power-law graph, Laplacian and normalised operator), one isotropic teacher.
SGD runs the real pipeline m = Gx; ridge averages its label noise exactly in every drawn design.
"""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.excess_risk.config import Config
from boundlab.analysis.excess_risk.problems import (
    RISK_UNITS,
    Problem,
    describe,
    graph_pair,
    problem,
)
from boundlab.experiment import Repeat
from boundlab.models.linear_gnn import simulate_ridge, simulate_sgd
from boundlab.theory.excess_risk import ridge as ridge_theory
from boundlab.theory.excess_risk import sgd as sgd_theory

KINDS = ("laplacian", "normalized_adjacency")
RIDGES = (0.0, 0.05, 0.5)  # λ, un-normalised; 0 is ordinary least squares
ALPHA = 3.0  # fourth-moment constant of Gaussian features in the published bound


def problems(config: Config, key: jax.Array) -> list[Problem]:
    """The four problems of the learning curves."""
    graphs = graph_pair(key, config.num_nodes, config.degree)
    return [
        problem(f"{name}, {kind}", graph, kind) for kind in KINDS for name, graph in graphs.items()
    ]


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Theory and simulation along N for SGD and ridge."""
    items = problems(config, jax.random.fold_in(key, 0))
    dataset = xr.Dataset(
        coords={
            "curves_problem": [item.label for item in items],
            "curves_num_samples": list(config.num_samples),
            "curves_ridge": list(RIDGES),
            "curves_part": ["bias", "variance"],
        },
        attrs={"curves_dim": config.num_nodes, "curves_pivot": part_samples(config)},
    )
    steps = [config.step_fraction * float(sgd_theory.stability_limit(p.mu)) for p in items]
    dataset = dataset.assign(_sgd_theory(items, steps, config) | _ridge_theory(items, config))
    dataset = dataset.assign(_sgd_runs(items, steps, config, jax.random.fold_in(key, 1), repeat))
    dataset = dataset.assign(_ridge_runs(items, config, jax.random.fold_in(key, 2), repeat))
    return describe(dataset, RISK_UNITS)


def part_samples(config: Config) -> int:
    """The N at which bias and variance are also simulated on their own."""
    return config.num_samples[len(config.num_samples) // 2]


def published_step(mu: np.ndarray) -> float:
    """A step size inside the published bounds' condition γ < 1/(α tr M)."""
    return 0.9 / (ALPHA * float(mu.sum()))


def _sgd_theory(items: list[Problem], steps: list[float], config: Config) -> dict:
    noise, counts = config.noise_variance, config.num_samples
    shape = (len(items), len(counts))
    exact = np.zeros((*shape, 2))
    sides = np.zeros((*shape, 2))
    filtered, power = np.zeros(shape), np.zeros(shape)
    parts, head = np.zeros((len(items), 2)), np.zeros(len(items))
    everywhere = np.zeros(len(items))
    published, stripped = np.zeros((len(items), 2)), np.zeros((len(items), 2))
    whole = np.zeros(len(items))
    at = part_samples(config)
    for i, (item, step) in enumerate(zip(items, steps, strict=True)):
        for j, count in enumerate(counts):
            profile = sgd_theory.tail_averaged_risk(item.mu, item.theta_sq, noise, step, count)
            exact[i, j] = profile.bias.sum(), profile.variance.sum()
            sides[i, j] = sgd_theory.risk_bounds(item.mu, item.theta_sq, noise, step, count)
            # The lower side at no noise is Σ p φ², the filtered signal alone.
            filtered[i, j] = sgd_theory.risk_bounds(item.mu, item.theta_sq, 0.0, step, count).lower
            power[i, j] = np.sum(item.mu * item.theta_sq)
        profile = sgd_theory.tail_averaged_risk(item.mu, item.theta_sq, noise, step, at)
        learnt = int(sgd_theory.learnable_directions(item.mu, step, at))
        parts[i] = profile.bias.sum(), profile.variance.sum()
        head[i] = profile.bias[:learnt].sum()
        everywhere[i] = 2 * noise * len(item.mu) / at
        slow, first = published_step(item.mu), counts[0]
        arguments = (item.mu, item.theta_sq, noise, slow, first)
        published[i] = sgd_theory.zou_bounds(*arguments, alpha=ALPHA)
        stripped[i] = _misremembered(item, noise, slow, first)
        averaged = sgd_theory.tail_averaged_risk(*arguments, tail_start=0)
        whole[i] = averaged.bias.sum() + averaged.variance.sum()
    grid = ("curves_problem", "curves_num_samples")
    return {
        "curves_sgd_exact": (grid, exact.sum(axis=-1)),
        "curves_sgd_part": ((*grid, "curves_part"), exact),
        "curves_sgd_lower": (grid, sides[..., 0]),
        "curves_sgd_upper": (grid, sides[..., 1]),
        "curves_sgd_filtered": (grid, filtered),
        "curves_signal_power": (grid, power),
        "curves_bias_exact": ("curves_problem", parts[:, 0]),
        "curves_variance_exact": ("curves_problem", parts[:, 1]),
        "curves_head_bias": ("curves_problem", head),
        "curves_unfiltered_variance": ("curves_problem", everywhere),
        "curves_published_lower": ("curves_problem", published[:, 0]),
        "curves_published_upper": ("curves_problem", published[:, 1]),
        "curves_published_head_only": ("curves_problem", stripped[:, 0]),
        "curves_published_no_constants": ("curves_problem", stripped[:, 1]),
        "curves_average_exact": ("curves_problem", whole),
    }


def _misremembered(item: Problem, noise: float, step: float, count: int) -> tuple[float, float]:
    """The published bounds wrongly remembered: (upper of the head alone, lower without constants)."""
    learnt = item.mu >= 1 / (step * count)
    power = item.mu * item.theta_sq
    head_bias = np.sum((item.theta_sq / item.mu)[learnt]) / (step * count) ** 2
    head_noise = noise / (1 - ALPHA * step * item.mu.sum()) * learnt.sum() / count
    tail = np.sum(power[~learnt])
    dimension = learnt.sum() / count + count * step**2 * np.sum(item.mu[~learnt] ** 2)
    return 4 * (head_bias + head_noise), 2 * (head_bias + tail + noise * dimension)


def _ridge_theory(items: list[Problem], config: Config) -> dict:
    counts = config.num_samples
    equivalent = np.full((len(items), len(counts), len(RIDGES)), np.nan)
    normalized = np.full((len(items), len(counts), len(RIDGES)), np.nan)
    sides = np.full((len(items), len(counts), len(RIDGES), 2), np.nan)
    ols, naive = np.full(len(counts), np.nan), np.full(len(counts), np.nan)
    for j, count in enumerate(counts):
        if count >= 2 * config.num_nodes:
            ols[j] = ridge_theory.ols_risk(config.noise_variance, config.num_nodes, count)
            naive[j] = config.noise_variance * config.num_nodes / count
        for i, item in enumerate(items):
            for k, ridge in enumerate(RIDGES):
                if ridge == 0 and count <= config.num_nodes:
                    continue  # the peak at N = d: no equivalent is accurate there
                problem = (item.mu, item.theta_sq, config.noise_variance)
                profile = ridge_theory.risk(*problem, ridge, count)
                equivalent[i, j, k] = profile.bias.sum() + profile.variance.sum()
                wrong = ridge_theory.risk(*problem, ridge * count, count)
                normalized[i, j, k] = wrong.bias.sum() + wrong.variance.sum()
                if ridge > 0:
                    sides[i, j, k] = ridge_theory.risk_bounds(*problem, ridge, count)
    grid = ("curves_problem", "curves_num_samples", "curves_ridge")
    return {
        "curves_ridge_equivalent": (grid, equivalent),
        "curves_ridge_normalized": (grid, normalized),
        "curves_ridge_lower": (grid, sides[..., 0]),
        "curves_ridge_upper": (grid, sides[..., 1]),
        "curves_ols": ("curves_num_samples", ols),
        "curves_ols_naive": ("curves_num_samples", naive),
    }


def _sgd_runs(
    items: list[Problem], steps: list[float], config: Config, key: jax.Array, repeat: Repeat
) -> dict:
    operators = jnp.asarray(np.stack([item.operator for item in items]), dtype=float)
    targets = jnp.asarray(np.stack([item.theta_star for item in items]), dtype=float)
    sizes = jnp.asarray(steps, dtype=float)
    slow = jnp.asarray([published_step(item.mu) for item in items], dtype=float)
    noise_std = config.noise_variance**0.5
    keys = jax.random.split(key, config.num_seeds)
    which = {"curves_problem": np.arange(len(items))}
    pivot = part_samples(config)

    def simulate(count: int) -> xr.Dataset:
        # Part 0: both; 1: bias alone (no noise); 2: variance alone (start at the teacher).
        parts = np.arange(3) if count == pivot else np.arange(1)

        def one(params: dict, run_key: jax.Array) -> jax.Array:
            i, part = params["curves_problem"], params["part"]
            noisy = jnp.where(part == 1, 0.0, noise_std)
            start = jnp.where(part == 2, targets[i], jnp.zeros_like(targets[i]))
            return simulate_sgd(
                run_key, operators[i], targets[i], noisy, sizes[i], count, theta0=start
            )

        return repeat(f"curves-sgd-{count}", one, which | {"part": parts}, keys)

    def averaged(params: dict, run_key: jax.Array) -> jax.Array:
        i = params["curves_problem"]
        first = config.num_samples[0]
        return simulate_sgd(run_key, operators[i], targets[i], noise_std, slow[i], first, 0)

    runs = {count: simulate(count)["value"] for count in config.num_samples}
    both = np.stack([runs[count].sel(part=0).values for count in config.num_samples], axis=1)
    whole = repeat("curves-average", averaged, which, keys)["value"]
    return {
        "curves_sgd_risk": (("curves_problem", "curves_num_samples", "seed"), both),
        "curves_bias_risk": (("curves_problem", "seed"), runs[pivot].sel(part=1).values),
        "curves_variance_risk": (("curves_problem", "seed"), runs[pivot].sel(part=2).values),
        "curves_average_risk": (("curves_problem", "seed"), whole.values),
    }


def _ridge_runs(items: list[Problem], config: Config, key: jax.Array, repeat: Repeat) -> dict:
    operators = jnp.asarray(np.stack([item.operator for item in items]), dtype=float)
    targets = jnp.asarray(np.stack([item.theta_star for item in items]), dtype=float)
    ridges = jnp.asarray(RIDGES, dtype=float)
    noise_std = config.noise_variance**0.5
    keys = jax.random.split(key, config.num_designs)

    def simulate(count: int) -> np.ndarray:
        def one(params: dict, run_key: jax.Array) -> jax.Array:
            i = params["curves_problem"]

            def at(ridge: jax.Array) -> jax.Array:
                risk = simulate_ridge(run_key, operators[i], targets[i], noise_std, ridge, count)
                return risk.bias + risk.variance

            return jax.vmap(at)(ridges)  # one eigendecomposition serves every ridge

        which = {"curves_problem": np.arange(len(items))}
        return repeat(f"curves-ridge-{count}", one, which, keys)["value"].values

    risk = np.stack([simulate(count) for count in config.num_samples], axis=1)
    dims = ("curves_problem", "curves_num_samples", "design", "curves_ridge")
    return {"curves_ridge_risk": (dims, risk)}
