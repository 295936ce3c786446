"""What a graph's structure does to the risk: spectra, who wins where, and SGD's need of samples.

Regular and power-law graphs of (nearly) equal mean degree, one operator each scaled to Σμ = 1, are
compared: μ_i eigenvalues of M = G², PR = (Σμ)²/Σμ² effective rank, S and R the risks of the best SGD
and of the best ridge. Everything here is exact for a drawn graph; only the graphs are random.
"""

from collections import Counter
from itertools import combinations
from math import comb

import jax
import numpy as np
import xarray as xr
from scipy.sparse import csr_array
from scipy.sparse.linalg import eigsh

from boundlab.analysis.excess_risk.config import Config
from boundlab.analysis.excess_risk.problems import TEACHERS, graph_pair, require_connected
from boundlab.analysis.excess_risk.structure_claims import CLAIMS as CLAIMS
from boundlab.analysis.excess_risk.tuned import best_ridge_risk, best_sgd_risk
from boundlab.experiment import Repeat
from boundlab.models.graph_operators import KINDS, graph_operator
from boundlab.models.graphs import Graph, complete, hypercube, star
from boundlab.theory.excess_risk import graph as graph_theory
from boundlab.theory.excess_risk import sgd

PAIR = ("regular", "power law")
SHOWN = (*PAIR, "star")
Spectra = dict[tuple[str, str], np.ndarray]  # (graph, operator) -> μ
CONTRASTED = ("laplacian", "normalized_adjacency")
# The contrast is a statement about graphs that are large enough to have hubs.
CONTRAST_NODES = 256
INFLATION_CASES = (
    ("regular", "laplacian", "isotropic"),
    ("power law", "laplacian", "isotropic"),
    ("power law", "laplacian", "head"),
    ("power law", "normalized_adjacency", "isotropic"),
)


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Spectra, phase diagrams, sample inflation and the contrast over drawn graphs."""
    graphs = graph_pair(jax.random.fold_in(key, 0), config.structure_nodes, config.degree)
    for graph in graphs.values():
        require_connected("degree", graph)
    shown = {**graphs, "star": star(config.structure_nodes)}
    spectra = {
        (name, kind): _spectrum(graph, kind) for name, graph in shown.items() for kind in KINDS
    }
    return xr.merge(
        [
            _spectra(config, spectra),
            _phase_diagram(config, spectra),
            _inflation(config, spectra),
            _handicap(config, spectra),
            _four_cycles(graphs),
            _contrast(config, jax.random.fold_in(key, 1)),
        ]
    )


def _spectrum(graph: Graph, kind: str) -> np.ndarray:
    """Eigenvalues μ of M = G², descending, scaled to sum 1."""
    values = np.linalg.eigvalsh(np.asarray(graph_operator(graph, kind)))[::-1]
    mu = (values / values[0]) ** 2
    return mu / mu.sum()


def _teacher(mu: np.ndarray, alignment: float) -> np.ndarray:
    """θ*_i² ∝ μ_i^alignment, scaled to signal power 1: 0 is isotropic, 1 follows the spectrum."""
    power = (mu / mu[0]) ** (1 + alignment)
    return power / power.sum() / mu


def _spectra(config: Config, spectra: Spectra) -> xr.Dataset:
    mu = np.array([[spectra[name, kind] for kind in KINDS] for name in SHOWN])
    return xr.Dataset(
        {
            "structure_spectrum": (
                ("structure_shown", "structure_operator", "structure_direction"),
                mu,
                {"long_name": "eigenvalues of M, scaled to sum 1"},
            ),
            "structure_effective_rank": (
                ("structure_shown", "structure_operator"),
                np.asarray(jax.vmap(jax.vmap(graph_theory.effective_rank))(mu)),
                {"long_name": "effective rank (Σμ)²/Σμ²"},
            ),
        },
        coords={
            "structure_shown": list(SHOWN),
            "structure_operator": list(KINDS),
            "structure_direction": np.arange(1, mu.shape[-1] + 1),
        },
    )


def _phase_diagram(config: Config, spectra: Spectra) -> xr.Dataset:
    alignment = np.linspace(-1.0, 2.0, config.resolution)
    noise = np.geomspace(1e-3, 10.0, config.resolution)
    count, square = config.structure_samples, (config.resolution, config.resolution)
    risks = np.empty((2, len(PAIR), len(KINDS), *square))
    for i, name in enumerate(PAIR):
        for j, kind in enumerate(KINDS):
            mu = spectra[name, kind]
            theta_sq = np.array([_teacher(mu, value) for value in alignment.tolist()])
            risks[0, i, j] = best_sgd_risk(mu, theta_sq, noise, count)
            rows = np.repeat(theta_sq, len(noise), axis=0)
            levels = np.tile(noise, len(alignment))
            tuned = best_ridge_risk(np.tile(mu, (len(rows), 1)), rows, levels, count)
            risks[1, i, j] = tuned.reshape(square)
    dims = ("structure_pair", "structure_operator", "structure_alignment", "structure_noise")
    note = f"excess risk R, no ½, N = {count}, signal power 1"
    return xr.Dataset(
        {
            "structure_sgd_risk": (
                dims,
                risks[0],
                {"long_name": f"{note}; best step size", "samples": count},
            ),
            "structure_ridge_risk": (dims, risks[1], {"long_name": f"{note}; best λ ≥ 0"}),
        },
        coords={
            "structure_pair": list(PAIR),
            "structure_operator": list(KINDS),
            "structure_alignment": (
                "structure_alignment",
                alignment,
                {"long_name": "α: θ*² ∝ μ^α"},
            ),
            "structure_noise": ("structure_noise", noise, {"long_name": "σ², in units of y²"}),
        },
    )


def _inflation(config: Config, spectra: Spectra) -> xr.Dataset:
    counts = [config.structure_nodes // divisor for divisor in (8, 4, 2, 1)]
    values = np.empty((2, len(INFLATION_CASES), len(counts)))
    for i, (name, kind, teacher) in enumerate(INFLATION_CASES):
        mu = spectra[name, kind]
        theta_sq = _teacher(mu, float(TEACHERS.index(teacher)))
        for j, count in enumerate(counts):
            arguments = mu, theta_sq, config.noise_variance, count
            values[0, i, j] = graph_theory.sample_inflation(*arguments)
            values[1, i, j] = sgd.zou_inflation(*arguments)
    dims = ("structure_case", "structure_samples")
    return xr.Dataset(
        {
            "structure_inflation": (dims, values[0], {"long_name": "N_sgd/N_ridge at equal risk"}),
            "structure_inflation_bound": (
                dims,
                values[1],
                {"long_name": "sufficient N_sgd/N_ridge"},
            ),
        },
        coords={
            "structure_case": [", ".join(case) for case in INFLATION_CASES],
            "structure_samples": ("structure_samples", counts, {"long_name": "samples of ridge"}),
        },
    )


def _handicap(config: Config, spectra: Spectra) -> xr.Dataset:
    """S/R at N = 4n for the teacher that follows the spectrum."""
    count, noise = 4 * config.structure_nodes, config.noise_variance
    ratio = np.empty((len(PAIR), len(CONTRASTED)))
    for i, name in enumerate(PAIR):
        for j, kind in enumerate(CONTRASTED):
            mu = spectra[name, kind]
            theta_sq = _teacher(mu, 1.0)
            step_size = sgd.best_step_size(mu, theta_sq, noise, count)
            profile = sgd.tail_averaged_risk(mu, theta_sq, noise, step_size, count)
            best = best_ridge_risk(mu[None], theta_sq[None], np.array([noise]), count)
            ratio[i, j] = float(profile.bias.sum() + profile.variance.sum()) / best[0]
    return xr.Dataset(
        {
            "structure_handicap": (
                ("structure_pair", "structure_contrasted"),
                ratio,
                {"long_name": f"best SGD / best ridge risk, head teacher, N = {count}"},
            )
        },
        coords={"structure_pair": list(PAIR), "structure_contrasted": list(CONTRASTED)},
    )


def count_four_cycles(graph: Graph) -> int:
    """Number of 4-cycles, from the paths of length two between each pair of nodes.

    Two nodes with c common neighbours are opposite corners of C(c, 2) cycles, and each cycle has two
    pairs of opposite corners.
    """
    neighbours: dict[int, list[int]] = {}
    for u, v in graph.edges().tolist():
        neighbours.setdefault(u, []).append(v)
        neighbours.setdefault(v, []).append(u)
    common = Counter(pair for near in neighbours.values() for pair in combinations(sorted(near), 2))
    return sum(comb(count, 2) for count in common.values()) // 2


def _four_cycles(graphs: dict[str, Graph]) -> xr.Dataset:
    shown = {**graphs, "star": star(16), "complete": complete(12), "hypercube": hypercube(5)}
    traces, formula, acyclic = [], [], []
    for graph in shown.values():
        power = np.linalg.matrix_power(graph.adjacency().astype(np.int64), 4)
        traces.append(float(np.trace(power)))
        cycles = count_four_cycles(graph)
        formula.append(float(graph_theory.adjacency_traces(graph.degrees(), cycles).fourth))
        acyclic.append(float(graph_theory.adjacency_traces(graph.degrees(), 0).fourth))
    return xr.Dataset(
        {
            "structure_trace": ("structure_family", traces, {"long_name": "tr A⁴ of the matrix"}),
            "structure_trace_formula": (
                "structure_family",
                formula,
                {"long_name": "tr A⁴ counted"},
            ),
            "structure_trace_acyclic": (
                "structure_family",
                acyclic,
                {"long_name": "tr A⁴ counted, without 4-cycles"},
            ),
        },
        coords={"structure_family": list(shown)},
    )


def _contrast(config: Config, key: jax.Array) -> xr.Dataset:
    """Effective ranks, and the largest Laplacian eigenvalue with its bounds, over drawn pairs."""
    nodes = max(config.structure_nodes, CONTRAST_NODES)
    rank = np.empty((config.num_graphs, len(PAIR), len(CONTRASTED)))
    top = np.empty((config.num_graphs, len(PAIR)))
    degrees = np.empty((config.num_graphs, len(PAIR), 3))
    for i in range(config.num_graphs):
        pair = graph_pair(jax.random.fold_in(key, i), nodes, config.degree)
        for j, graph in enumerate(pair.values()):
            for k, kind in enumerate(CONTRASTED):
                matrix = csr_array(np.asarray(graph_operator(graph, kind)))
                # Σμ = tr G² and Σμ² = tr G⁴ need no eigenvalues.
                square = matrix @ matrix
                rank[i, j, k] = np.sum(matrix.data**2) ** 2 / np.sum(square.data**2)
                if kind == "laplacian":
                    start = np.ones(nodes) + np.arange(nodes) / nodes  # eigsh would draw one
                    top[i, j] = eigsh(matrix, 1, which="LA", v0=start)[0][0] - 1
            degree = graph.degrees()
            ends = degree[graph.edges()].sum(axis=1)
            degrees[i, j] = degree.max() + 1, ends.max(), 2 * degree.mean()
    pairs = ("structure_graph", "structure_pair")
    bounds = ("at least d_max + 1", "at most max(d_u + d_v) over edges", "twice the mean degree")
    names = ("structure_top_lower", "structure_top_upper", "structure_top_mean")
    return xr.Dataset(
        {
            "structure_contrast_rank": (
                (*pairs, "structure_contrasted"),
                rank,
                {"long_name": f"effective rank (tr M)²/tr M², n = {nodes}"},
            ),
            "structure_top": (pairs, top, {"long_name": "λ_max of D − A"}),
            **{
                name: (pairs, degrees[..., i], {"long_name": bounds[i]})
                for i, name in enumerate(names)
            },
        },
        coords={
            "structure_graph": np.arange(config.num_graphs),
            "structure_pair": list(PAIR),
            "structure_contrasted": list(CONTRASTED),
        },
    )
