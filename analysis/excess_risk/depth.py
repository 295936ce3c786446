"""Depth and over-smoothing: what L rounds of aggregation do to the risk of SGD and of tuned ridge.

G^L is scaled so that μ_i = g_i^{2L}/Σg^{2L}. Two teachers, equal at L = 1 (p_i = μ_i^{(1)}): "function"
keeps the signal power p_i of every direction, so that deeper features must express the same function;
"weights" keeps θ*, so that the function itself gets smoother. Exact but for one Monte-Carlo of SGD.
Symbols: g_i eigenvalues of G, p_i signal power of direction i, N samples, d = n directions, V_1 and
bias_1 variance (σ² = 1) and bias (p = 1) of SGD with one direction.
"""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.excess_risk.config import Config
from boundlab.analysis.excess_risk.depth_claims import CLAIMS as CLAIMS
from boundlab.analysis.excess_risk.problems import graph_pair, require_connected
from boundlab.analysis.excess_risk.tuned import best_ridge_risk
from boundlab.experiment import Repeat
from boundlab.models.graph_operators import graph_operator, spectrum
from boundlab.models.graphs import Graph
from boundlab.models.linear_gnn import simulate_sgd
from boundlab.theory.excess_risk import graph as graph_theory
from boundlab.theory.excess_risk import ridge, sgd

OPERATORS = ("laplacian", "normalized_adjacency")
TEACHERS = ("function", "weights")
GRAPHS = ("regular", "power law")
SIMULATED = "power law"
# Deep enough for the limit of the normalised operator, whose two largest eigenvalues are close.
LIMIT_DEPTH = 64
# Few samples besides the usual ones: there the one direction that is left has a sizeable risk.
FEW_SAMPLES = 16
LIMIT_POWERS = ("isotropic", "half on top")
CASES = ("depth_graph", "depth_operator")


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Profiles, risks and effective ranks against depth, the limit of depth, and a simulation."""
    graphs = graph_pair(jax.random.fold_in(key, 0), config.structure_nodes, config.degree)
    for graph in graphs.values():
        # Otherwise the largest eigenvalue is multiple and depth leaves several directions.
        require_connected("degree", graph)
    eigenvalues = {
        (name, kind): np.linalg.eigvalsh(np.asarray(graph_operator(graph, kind)))[::-1].copy()
        for name, graph in graphs.items()
        for kind in OPERATORS
    }
    parts = [
        _profiles(config, eigenvalues),
        _ridge(config, eigenvalues),
        _limit(config, eigenvalues),
        _simulation(config, graphs[SIMULATED], jax.random.fold_in(key, 1), repeat),
    ]
    return xr.merge(parts).assign_coords(
        depth_graph=list(GRAPHS), depth_operator=list(OPERATORS), depth_teacher=list(TEACHERS)
    )


def spectrum_at(values: np.ndarray, depth: int) -> np.ndarray:
    """μ_i = g_i^{2L}/Σ_j g_j^{2L}; scaled before the power, so that the large ones never overflow."""
    mu = np.exp(2.0 * depth * np.log(values / values[0]))
    return mu / mu.sum()


def _profiles(config: Config, eigenvalues: Mapping[tuple[str, str], np.ndarray]) -> xr.Dataset:
    shape = (len(GRAPHS), len(OPERATORS), len(config.depths))
    rank = np.empty(shape)
    parts = np.empty((2, *shape[:2], len(TEACHERS), len(config.depths), config.structure_nodes))
    for i, name in enumerate(GRAPHS):
        for j, kind in enumerate(OPERATORS):
            values = eigenvalues[name, kind]
            power = spectrum_at(values, 1)
            for k, depth in enumerate(config.depths):
                rank[i, j, k] = graph_theory.effective_rank(spectrum_at(values, depth))
                for t, teacher in enumerate(TEACHERS):
                    parts[:, i, j, t, k] = graph_theory.depth_profile(
                        values,
                        power,
                        config.noise_variance,
                        config.structure_samples,
                        depth,
                        teacher,
                        config.step_fraction,
                    )
    dims = (*CASES, "depth_teacher", "depth_rounds")
    note = f"N = {config.structure_samples}, no ½"
    return xr.Dataset(
        {
            "depth_effective_rank": (
                (*CASES, "depth_rounds"),
                rank,
                {"long_name": "effective rank (Σμ)²/Σμ²"},
            ),
            "depth_power": (
                (*CASES, "depth_direction"),
                [
                    [spectrum_at(eigenvalues[name, kind], 1) for kind in OPERATORS]
                    for name in GRAPHS
                ],
                {"long_name": "signal power p a direction at L = 1, sum 1"},
            ),
            "depth_bias": (
                (*dims, "depth_direction"),
                parts[0],
                {"long_name": f"bias of SGD a direction, {note}"},
            ),
            "depth_variance": (
                (*dims, "depth_direction"),
                parts[1],
                {"long_name": f"variance of SGD a direction, {note}"},
            ),
            "depth_sgd_risk": (
                dims,
                parts.sum(axis=(0, -1)),
                {"long_name": f"exact risk of SGD, {note}", "samples": config.structure_samples},
            ),
        },
        coords={
            "depth_rounds": list(config.depths),
            "depth_direction": np.arange(1, config.structure_nodes + 1),
        },
    )


def _ridge(config: Config, eigenvalues: Mapping[tuple[str, str], np.ndarray]) -> xr.Dataset:
    """Ridge of the function teacher, tuned anew at each depth, with N below and above d."""
    nodes = config.structure_nodes
    counts = (nodes // 2, 2 * nodes)
    rows = [
        (spectrum_at(values, depth), spectrum_at(values, 1) / spectrum_at(values, depth))
        for values in eigenvalues.values()
        for depth in config.depths
    ]
    mu, theta_sq = (np.array(column) for column in zip(*rows, strict=True))
    noise = np.full(len(rows), config.noise_variance)
    risks = [best_ridge_risk(mu, theta_sq, noise, count) for count in counts]
    shape = (len(counts), len(GRAPHS), len(OPERATORS), len(config.depths))
    return xr.Dataset(
        {
            "depth_ridge_risk": (
                ("depth_ridge_samples", *CASES, "depth_rounds"),
                np.reshape(risks, shape),
                {"long_name": "risk of ridge at the best λ ≥ 0, function teacher, no ½"},
            ),
            "depth_least_squares_risk": (
                (),
                float(ridge.ols_risk(config.noise_variance, nodes, 2 * nodes)),
                {"long_name": "σ²d/(N − d − 1) at N = 2d, whatever the graph"},
            ),
        },
        coords={"depth_ridge_samples": list(counts), "depth_rounds": list(config.depths)},
    )


def _limit(config: Config, eigenvalues: Mapping[tuple[str, str], np.ndarray]) -> xr.Dataset:
    """Risk at a great depth, and the closed form of its limit with and without the missed signal."""
    counts = (FEW_SAMPLES, config.structure_samples)
    values = np.empty((3, len(GRAPHS), len(LIMIT_POWERS), len(counts)))
    noise, one = config.noise_variance, np.ones(1)
    step_size = config.step_fraction * float(sgd.stability_limit(one))
    for i, name in enumerate(GRAPHS):
        operator = eigenvalues[name, "normalized_adjacency"]
        isotropic = spectrum_at(operator, 1)
        top = isotropic.copy()
        top[0] = top[1:].sum()
        for j, power in enumerate((isotropic, top / top.sum())):
            for k, count in enumerate(counts):
                profile = graph_theory.depth_profile(
                    operator, power, noise, count, LIMIT_DEPTH, "function", config.step_fraction
                )
                single = sgd.tail_averaged_risk(one, one, 1.0, step_size, count)
                bias, variance = float(single.bias[0]), float(single.variance[0])
                missed = 1 - power[0]
                values[0, i, j, k] = profile.bias.sum() + profile.variance.sum()
                values[1, i, j, k] = missed + (noise + missed) * variance + power[0] * bias
                values[2, i, j, k] = missed + noise * variance + power[0] * bias
    dims = ("depth_graph", "depth_limit_power", "depth_limit_samples")
    names = {
        "depth_limit_risk": f"exact risk of SGD at L = {LIMIT_DEPTH}, no ½",
        "depth_limit_formula": "(1−p₁) + (σ² + 1−p₁) V₁ + p₁ bias₁",
        "depth_limit_noiseless": "(1−p₁) + σ² V₁ + p₁ bias₁",
    }
    return xr.Dataset(
        {
            name: (dims, array, {"long_name": text})
            for (name, text), array in zip(names.items(), values, strict=True)
        },
        coords={"depth_limit_power": list(LIMIT_POWERS), "depth_limit_samples": list(counts)},
    )


def _simulation(config: Config, graph: Graph, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """SGD through the real G^L of the normalised operator, function teacher."""
    depths, noise_std = config.depths[:3], np.sqrt(config.noise_variance)
    matrix = graph_operator(graph, "normalized_adjacency")
    values, vectors = (np.asarray(part) for part in spectrum(matrix))
    power = spectrum_at(values, 1)
    operators, teachers, steps = [], [], []
    for depth in depths:
        deep = np.linalg.matrix_power(np.asarray(matrix), depth)
        mu = spectrum_at(values, depth)
        operators.append(deep / np.linalg.norm(deep))
        teachers.append(vectors @ np.sqrt(power / mu))
        steps.append(config.step_fraction * float(sgd.stability_limit(mu)))
    stacked = tuple(
        jnp.asarray(np.array(part), dtype=config.dtype) for part in (operators, teachers, steps)
    )

    def one(params: dict[str, jax.Array], key: jax.Array) -> jax.Array:
        def risk(case: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
            operator, teacher, step_size = case
            return simulate_sgd(
                key, operator, teacher, noise_std, step_size, config.structure_samples
            )

        # One case after another on the same draws, so that each operator is shared by all keys.
        return jax.lax.map(risk, stacked)

    seeds = max(config.num_seeds // 8, 128)
    found = repeat("depth-simulation", one, {}, jax.random.split(key, seeds))
    return xr.Dataset(
        {
            "depth_simulated_risk": (
                ("depth_seed", "depth_simulated_rounds"),
                found["value"].values,
                {
                    "long_name": "simulated risk of SGD, function teacher, no ½",
                    "graph": SIMULATED,
                    "operator": "normalized_adjacency",
                },
            )
        },
        coords={"depth_seed": np.arange(seeds), "depth_simulated_rounds": list(depths)},
    )
