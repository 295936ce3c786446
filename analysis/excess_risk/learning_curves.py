"""Risk of SGD and ridge against the number of samples: exact, bounded, and simulated.

Four problems (regular and power-law graph, Laplacian and normalised operator), one isotropic teacher.
SGD runs the real pipeline m = Gx; ridge averages its label noise exactly in every drawn design.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.excess_risk.config import Config
from boundlab.analysis.excess_risk.problems import (
    RISK_UNITS,
    Problem,
    graph_pair,
    problem,
)
from boundlab.experiment import Repeat
from boundlab.models.linear_gnn import simulate_ridge, simulate_sgd
from boundlab.theory.excess_risk import ridge as ridge_theory
from boundlab.theory.excess_risk import sgd as sgd_theory

KINDS = ("laplacian", "normalized_adjacency")
PLAIN = 2  # bias and variance are also simulated apart on this many problems, the Laplacian's
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
            "curves_line": line_samples(config),
            "curves_plain": [item.label for item in items[:PLAIN]],
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
    return config.num_samples[-1]


def line_samples(config: Config) -> list[int]:
    """The N at which the theory's lines are drawn, beyond the simulated ones on both sides."""
    ends = config.num_samples[0] / 2, config.num_samples[-1] * 4
    return sorted({int(count) for count in np.geomspace(*ends, 13)})


def published_step(mu: np.ndarray) -> float:
    """A step size inside the published bounds' condition γ < 1/(α tr M)."""
    return 0.9 / (ALPHA * float(mu.sum()))


def _sgd_curve(
    item: Problem, step: float, noise: float, counts: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Exact bias and variance, and the two sides of the bounds, both (counts, 2)."""
    exact, sides = np.zeros((len(counts), 2)), np.zeros((len(counts), 2))
    for j, count in enumerate(counts):
        profile = sgd_theory.tail_averaged_risk(item.mu, item.theta_sq, noise, step, count)
        exact[j] = np.asarray(profile.bias).sum(), np.asarray(profile.variance).sum()
        sides[j] = sgd_theory.risk_bounds(item.mu, item.theta_sq, noise, step, count)
    return exact, sides


def _sgd_theory(items: list[Problem], steps: list[float], config: Config) -> dict:
    noise, counts, lines = config.noise_variance, config.num_samples, line_samples(config)
    exact, sides = np.zeros((2, len(items), len(counts), 2))
    line, band = np.zeros((2, len(items), len(lines), 2))
    filtered, power = np.zeros((2, len(items), len(counts)))
    parts, published, wrong = np.zeros((3, len(items), 2))
    head, everywhere, whole = np.zeros((3, len(items)))
    at, first = part_samples(config), counts[0]
    for i, (item, step) in enumerate(zip(items, steps, strict=True)):
        exact[i], sides[i] = _sgd_curve(item, step, noise, counts)
        line[i], band[i] = _sgd_curve(item, step, noise, lines)
        # The lower side at no noise is Σ p φ², the filtered signal alone.
        filtered[i] = _sgd_curve(item, step, 0.0, counts)[1][:, 0]
        power[i] = np.sum(item.mu * item.theta_sq)
        profile = sgd_theory.tail_averaged_risk(item.mu, item.theta_sq, noise, step, at)
        bias, variance = np.asarray(profile.bias), np.asarray(profile.variance)
        parts[i] = bias.sum(), variance.sum()
        head[i] = bias[: int(sgd_theory.learnable_directions(item.mu, step, at))].sum()
        everywhere[i] = 2 * noise * len(item.mu) / at
        slow = published_step(item.mu)
        arguments = (item.mu, item.theta_sq, noise, slow, first)
        published[i] = sgd_theory.zou_bounds(*arguments, alpha=ALPHA)
        wrong[i] = _misremembered(item, noise, slow, first)
        averaged = sgd_theory.tail_averaged_risk(*arguments, tail_start=0)
        whole[i] = np.asarray(averaged.bias).sum() + np.asarray(averaged.variance).sum()
    grid, fine = ("curves_problem", "curves_num_samples"), ("curves_problem", "curves_line")
    return {
        "curves_sgd_exact": (grid, exact.sum(axis=-1)),
        "curves_sgd_lower": (grid, sides[..., 0]),
        "curves_sgd_upper": (grid, sides[..., 1]),
        "curves_sgd_line": ((*fine, "curves_part"), line),
        "curves_sgd_line_lower": (fine, band[..., 0]),
        "curves_sgd_line_upper": (fine, band[..., 1]),
        "curves_sgd_filtered": (grid, filtered),
        "curves_signal_power": (grid, power),
        "curves_bias_exact": ("curves_plain", parts[:PLAIN, 0]),
        "curves_variance_exact": ("curves_plain", parts[:PLAIN, 1]),
        "curves_head_bias": ("curves_plain", head[:PLAIN]),
        "curves_unfiltered_variance": ("curves_plain", everywhere[:PLAIN]),
        "curves_published_lower": ("curves_problem", published[:, 0]),
        "curves_published_upper": ("curves_problem", published[:, 1]),
        "curves_published_head_only": ("curves_problem", wrong[:, 0]),
        "curves_published_no_constants": ("curves_problem", wrong[:, 1]),
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


def _ridge_curve(
    item: Problem, ridge: float, config: Config, counts: Sequence[int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Risk (counts,), risk with λ taken for Nλ (counts,), and both sides of the bounds (counts, 2).

    NaN where λ = 0 and N is not well above d: no equivalent is accurate around the peak.
    """
    risk, wrong = np.full((2, len(counts)), np.nan)
    sides = np.full((len(counts), 2), np.nan)
    teacher = (item.mu, item.theta_sq, config.noise_variance)
    for j, count in enumerate(counts):
        if ridge == 0 and count < 1.3 * config.num_nodes:
            continue
        for array, regularization in ((risk, ridge), (wrong, ridge * count)):
            profile = ridge_theory.risk(*teacher, regularization, count)
            array[j] = np.asarray(profile.bias).sum() + np.asarray(profile.variance).sum()
        if ridge > 0:
            sides[j] = ridge_theory.risk_bounds(*teacher, ridge, count)
    return risk, wrong, sides


def _ridge_theory(items: list[Problem], config: Config) -> dict:
    counts, lines = config.num_samples, line_samples(config)
    shape, fine_shape = (
        (len(items), len(RIDGES), len(counts)),
        (len(items), len(RIDGES), len(lines)),
    )
    equivalent, normalized = np.zeros((2, *shape))
    line, sides, band = np.zeros(fine_shape), np.zeros((*shape, 2)), np.zeros((*fine_shape, 2))
    for i, item in enumerate(items):
        for k, ridge in enumerate(RIDGES):
            equivalent[i, k], normalized[i, k], sides[i, k] = _ridge_curve(
                item, ridge, config, counts
            )
            line[i, k], _, band[i, k] = _ridge_curve(item, ridge, config, lines)
    enough = [count >= 2 * config.num_nodes for count in counts]
    noise, dim = config.noise_variance, config.num_nodes
    exact = [
        float(ridge_theory.ols_risk(noise, dim, count)) if ample else np.nan
        for count, ample in zip(counts, enough, strict=True)
    ]
    naive = [
        noise * dim / count if ample else np.nan
        for count, ample in zip(counts, enough, strict=True)
    ]
    grid = ("curves_problem", "curves_ridge", "curves_num_samples")
    fine = ("curves_problem", "curves_ridge", "curves_line")
    return {
        "curves_ridge_equivalent": (grid, equivalent),
        "curves_ridge_normalized": (grid, normalized),
        "curves_ridge_lower": (grid, sides[..., 0]),
        "curves_ridge_upper": (grid, sides[..., 1]),
        "curves_ridge_line": (fine, line),
        "curves_ridge_line_lower": (fine, band[..., 0]),
        "curves_ridge_line_upper": (fine, band[..., 1]),
        "curves_ols": ("curves_num_samples", exact),
        "curves_ols_naive": ("curves_num_samples", naive),
    }


def _sgd_runs(
    items: list[Problem], steps: list[float], config: Config, key: jax.Array, repeat: Repeat
) -> dict:
    operators = jnp.asarray(np.stack([item.operator for item in items]), dtype=config.dtype)
    targets = jnp.asarray(np.stack([item.theta_star for item in items]), dtype=config.dtype)
    sizes = jnp.asarray(steps, dtype=config.dtype)
    slow = jnp.asarray([published_step(item.mu) for item in items], dtype=config.dtype)
    noise_std = config.noise_variance**0.5
    keys = jax.random.split(key, config.num_seeds)
    which = {"curves_problem": np.arange(len(items))}
    pivot = part_samples(config)

    def simulate(count: int) -> np.ndarray:
        def one(params: dict, run_key: jax.Array) -> jax.Array:
            i = params["curves_problem"]
            return simulate_sgd(run_key, operators[i], targets[i], noise_std, sizes[i], count)

        return repeat(f"curves-sgd-{count}", one, which, keys)["value"].values

    def parted(params: dict, run_key: jax.Array) -> jax.Array:
        # Part 0: bias alone (no noise); 1: variance alone (start at the teacher), of which single
        # runs vary so much that a seed's value is the mean of two.
        i, part = params["curves_problem"], params["part"]
        noisy = jnp.where(part == 0, 0.0, noise_std)
        start = jnp.where(part == 1, targets[i], jnp.zeros_like(targets[i]))

        def once(one_key: jax.Array) -> jax.Array:
            return simulate_sgd(
                one_key, operators[i], targets[i], noisy, sizes[i], pivot, theta0=start
            )

        return jnp.mean(jax.vmap(once)(jax.random.split(run_key, 2)))

    def averaged(params: dict, run_key: jax.Array) -> jax.Array:
        i = params["curves_problem"]
        first = config.num_samples[0]
        return simulate_sgd(run_key, operators[i], targets[i], noise_std, slow[i], first, 0)

    both = np.stack([simulate(count) for count in config.num_samples], axis=1)
    plain = {"curves_problem": np.arange(PLAIN), "part": np.arange(2)}
    parts = repeat("curves-parts", parted, plain, keys)["value"]
    whole = repeat("curves-average", averaged, which, keys)["value"]
    return {
        "curves_sgd_risk": (("curves_problem", "curves_num_samples", "seed"), both),
        "curves_bias_risk": (("curves_plain", "seed"), parts.sel(part=0).values),
        "curves_variance_risk": (("curves_plain", "seed"), parts.sel(part=1).values),
        "curves_average_risk": (("curves_problem", "seed"), whole.values),
    }


def _ridge_runs(items: list[Problem], config: Config, key: jax.Array, repeat: Repeat) -> dict:
    operators = jnp.asarray(np.stack([item.operator for item in items]), dtype=config.dtype)
    targets = jnp.asarray(np.stack([item.theta_star for item in items]), dtype=config.dtype)
    ridges = jnp.asarray(RIDGES, dtype=config.dtype)
    noise_std = config.noise_variance**0.5
    keys = jax.random.split(key, config.num_designs)

    def simulate(count: int) -> np.ndarray:
        def one(params: dict, run_key: jax.Array) -> jax.Array:
            i = params["curves_problem"]

            def at(design_key: jax.Array, ridge: jax.Array) -> jax.Array:
                risk = simulate_ridge(design_key, operators[i], targets[i], noise_std, ridge, count)
                return risk.bias + risk.variance

            def once(design_key: jax.Array) -> jax.Array:
                # One eigendecomposition serves every ridge.
                return jax.vmap(at, in_axes=(None, 0))(design_key, ridges)

            # A value is the mean over two designs: single ones vary as much as the claim resolves.
            return jnp.mean(jax.lax.map(once, jax.random.split(run_key)), axis=0)

        which = {"curves_problem": np.arange(len(items))}
        return repeat(f"curves-ridge-{count}", one, which, keys)["value"].values

    risk = np.stack([simulate(count) for count in config.num_samples], axis=1)
    dims = ("curves_problem", "curves_num_samples", "design", "curves_ridge")
    return {"curves_ridge_risk": (dims, risk)}
