"""The exact limit of stability of the step size, and what happens on both sides of it."""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.datasets import column, describe
from boundlab.analysis.excess_risk.config import Config
from boundlab.analysis.excess_risk.problems import RISK_UNITS, graph_pair, problem
from boundlab.claims import Claim, Evidence, Kind, Source
from boundlab.experiment import Repeat
from boundlab.models.graphs import complete, hypercube
from boundlab.models.linear_gnn import simulate_sgd
from boundlab.theory.excess_risk import sgd as theory

NUM_SAMPLES = 128
CURVE_STEPS = 4096
STATIONARY_SAMPLES = 512  # the last iterate's risk is within 1e-3 of its limit by then
STATIONARY_TOLERANCE = 1e-3
SIMULATED = (
    0.1,
    0.2,
    0.3,
    0.4,
    0.5,
)  # fractions of the limit; beyond, single runs are heavy-tailed
BELOW = tuple(np.linspace(0.05, 0.98, 24).tolist())
GROWING, SHRINKING = 1.05, 0.95


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Risk against the step size, exact to the limit and simulated to half of it."""
    graphs = graph_pair(jax.random.fold_in(key, 0), config.num_nodes, config.degree)
    items = [problem(f"{name}, laplacian", graph, "laplacian") for name, graph in graphs.items()]
    noise = config.noise_variance
    limits = np.array([float(theory.stability_limit(item.mu)) for item in items])
    exact = np.zeros((len(items), len(BELOW), 2))
    simulated_exact = np.zeros((len(items), len(SIMULATED)))
    growth, radius, radius_naive = (np.zeros(len(items)) for _ in range(3))
    shrink = np.zeros(len(items))
    for i, item in enumerate(items):
        for j, fraction in enumerate(BELOW):
            profile = theory.tail_averaged_risk(
                item.mu, item.theta_sq, noise, fraction * limits[i], NUM_SAMPLES
            )
            exact[i, j] = np.asarray(profile.bias).sum(), np.asarray(profile.variance).sum()
        for j, fraction in enumerate(SIMULATED):
            profile = theory.tail_averaged_risk(
                item.mu, item.theta_sq, noise, fraction * limits[i], NUM_SAMPLES
            )
            parts = np.asarray(profile.bias).sum(), np.asarray(profile.variance).sum()
            simulated_exact[i, j] = sum(parts)
        radius[i] = _spectral_radius(item.mu, limits[i])
        radius_naive[i] = _spectral_radius(item.mu, 2 / item.mu.sum())
        for array, fraction in ((growth, GROWING), (shrink, SHRINKING)):
            step = fraction * limits[i]
            curve = np.asarray(theory.risk_curve(item.mu, item.theta_sq, 0.0, step, CURVE_STEPS))
            array[i] = float(curve[-1] / curve[0])
    names = ("stability_problem",)
    dataset = xr.Dataset(
        {
            "stability_limit": (names, limits),
            "stability_exact": ((*names, "stability_fraction", "stability_part"), exact),
            "stability_simulated_exact": ((*names, "stability_simulated"), simulated_exact),
            "stability_radius": (names, radius),
            "stability_radius_naive": (names, radius_naive),
            "stability_growth": (names, growth),
            "stability_shrink": (names, shrink),
        },
        coords={
            "stability_problem": [item.label for item in items],
            "stability_fraction": list(BELOW),
            "stability_simulated": list(SIMULATED),
            "stability_part": ["bias", "variance"],
        },
    )
    operators = jnp.asarray(np.stack([item.operator for item in items]), dtype=config.dtype)
    targets = jnp.asarray(np.stack([item.theta_star for item in items]), dtype=config.dtype)
    steps = jnp.asarray(limits, dtype=config.dtype)

    def one(params: dict, run_key: jax.Array) -> jax.Array:
        i = params["stability_problem"]
        step = params["stability_simulated"] * steps[i]
        return simulate_sgd(run_key, operators[i], targets[i], noise**0.5, step, NUM_SAMPLES)

    grid = {"stability_problem": np.arange(len(items)), "stability_simulated": list(SIMULATED)}
    keys = jax.random.split(jax.random.fold_in(key, 1), config.num_seeds)
    risk = repeat("stability", one, grid, keys)["value"].values
    dims = ("stability_problem", "stability_simulated", "seed")
    dataset = dataset.assign(stability_risk=(dims, risk))
    dataset = dataset.assign(_stationary(config, jax.random.fold_in(key, 2), repeat))
    return describe(
        dataset,
        RISK_UNITS,
        stability_limit="step size γ, in units of 1/μ with tr M = 1",
        stability_radius="1",
        stability_radius_naive="1",
        stability_growth="R(θ_t)/R(θ_0) after 4,095 noise-free steps",
        stability_shrink="R(θ_t)/R(θ_0) after 4,095 noise-free steps",
    )


def _spectral_radius(mu: np.ndarray, step: float) -> float:
    """Largest modulus of an eigenvalue of the recursion s ← (diag(a) + γ² μ μᵀ) s."""
    decay = 1 - 2 * step * mu + 2 * (step * mu) ** 2
    matrix = np.diag(decay) + step**2 * np.outer(mu, mu)
    return float(np.abs(np.linalg.eigvals(matrix)).max())


def _stationary(config: Config, key: jax.Array, repeat: Repeat) -> dict:
    """Risk of the last iterate of long runs, on graphs that reach their limit soon."""
    graphs = {"complete": complete(32), "hypercube": hypercube(5)}
    items = [problem(name, graph, "laplacian") for name, graph in graphs.items()]
    noise = config.noise_variance
    limits = [float(theory.stability_limit(item.mu)) for item in items]
    steps = [config.step_fraction * limit for limit in limits]
    limiting = np.array(
        [
            float(theory.stationary_risk(item.mu, noise, step))
            for item, step in zip(items, steps, strict=True)
        ]
    )
    gain = limiting / (noise + limiting)  # h, from R = σ²h/(1 − h)
    operators = jnp.asarray(np.stack([item.operator for item in items]), dtype=config.dtype)
    targets = jnp.asarray(np.stack([item.theta_star for item in items]), dtype=config.dtype)
    sizes = jnp.asarray(steps, dtype=config.dtype)

    def one(params: dict, run_key: jax.Array) -> jax.Array:
        i = params["stability_graph"]
        return simulate_sgd(
            run_key,
            operators[i],
            targets[i],
            noise**0.5,
            sizes[i],
            STATIONARY_SAMPLES,
            STATIONARY_SAMPLES - 1,
            theta0=targets[i],
        )

    keys = jax.random.split(key, config.num_seeds)
    last = repeat("stability-last", one, {"stability_graph": np.arange(len(items))}, keys)["value"]
    return {
        "stability_stationary": ("stability_graph", limiting),
        "stability_without_feedback": ("stability_graph", noise * gain),
        "stability_last_risk": (("stability_graph", "seed"), last.values),
    }


CLAIMS = (
    Claim(
        id="stability-limit",
        source=Source("derived", "docs/excess_risk.md#stability"),
        statement=r"at $\gamma_{max}$: spectral radius of $\mathrm{diag}(a)+\gamma^2\mu\mu^T$ is 1",
        kind=Kind.IDENTITY,
        check=lambda ds: Evidence(
            exact=column(ds, "stability_radius"), reference=1.0, tolerance=1e-8
        ),
        control=lambda ds: Evidence(
            exact=column(ds, "stability_radius_naive"), reference=1.0, tolerance=1e-8
        ),
        control_statement="γ = 2/tr M for the limit",
        formula="boundlab.theory.excess_risk.sgd.stability_limit",
        test="tests/theory/excess_risk/test_sgd_stability.py::test_spectral_radius_is_one",
    ),
    Claim(
        id="divergence",
        source=Source("derived", "docs/excess_risk.md#stability"),
        statement=r"at $1.05\,\gamma_{max}$ the noise-free exact risk has grown after 4,095 steps",
        kind=Kind.LOWER,
        check=lambda ds: Evidence(exact=column(ds, "stability_growth"), reference=1.0),
        control=lambda ds: Evidence(exact=column(ds, "stability_shrink"), reference=1.0),
        control_statement="at 0.95 γ_max already",
        formula="boundlab.theory.excess_risk.sgd.risk_curve",
        test="tests/theory/excess_risk/test_sgd_stability.py::test_curve_on_both_sides_of_the_limit",
    ),
    Claim(
        id="step-size",
        source=Source("derived", "docs/excess_risk.md#exact-risk-of-sgd"),
        statement=r"the exact risk holds for every $\gamma$ from 0.1 to 0.5 $\gamma_{max}$",
        kind=Kind.EQUAL,
        check=lambda ds: Evidence(
            samples=column(ds, "stability_risk", "seed"),
            reference=column(ds, "stability_simulated_exact"),
        ),
        control=lambda ds: Evidence(
            samples=column(ds, "stability_risk", "seed"),
            reference=column(
                ds.assign(
                    smallest=xr.ones_like(ds.stability_simulated_exact)
                    * ds.stability_simulated_exact.isel(stability_simulated=0, drop=True)
                ),
                "smallest",
            ),
        ),
        control_statement="the same risk at every step size, that of the smallest",
        formula="boundlab.theory.excess_risk.sgd.tail_averaged_risk",
        test="tests/theory/excess_risk/test_sgd_exact.py::test_samples_of_the_algorithm",
    ),
    Claim(
        id="stationary-risk",
        source=Source("derived", "docs/excess_risk.md#stability"),
        statement=r"last iterate, $N\to\infty$: $R=\sigma^2h/(1-h)$",
        kind=Kind.EQUAL,
        check=lambda ds: Evidence(
            samples=column(ds, "stability_last_risk", "seed"),
            reference=column(ds, "stability_stationary"),
            tolerance=STATIONARY_TOLERANCE,
        ),
        control=lambda ds: Evidence(
            samples=column(ds, "stability_last_risk", "seed"),
            reference=column(ds, "stability_without_feedback"),
            tolerance=STATIONARY_TOLERANCE,
        ),
        control_statement="σ²h, the risk's own feedback dropped",
        formula="boundlab.theory.excess_risk.sgd.stationary_risk",
        test="tests/theory/excess_risk/test_sgd_stability.py::test_stationary_risk_is_the_fixed_point",
    ),
)
