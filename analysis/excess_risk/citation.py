"""Cora, a real citation graph: its spectra, and the learning curves of SGD and tuned ridge on it.

Signals x ~ N(0, I) on the papers, aggregated by the real, dense G; only the graph is data. The exact
risks know of the graph nothing but the spectrum of G. As a control, the same theory is evaluated on a
random regular graph with as many nodes and the nearest even mean degree: what is left of Cora when
its structure is ignored. Symbols: μ_i eigenvalues of M = G², N samples, λ ridge; R without ½.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.excess_risk.citation_claims import CLAIMS as CLAIMS
from boundlab.analysis.excess_risk.config import Config
from boundlab.analysis.excess_risk.problems import Problem, problem
from boundlab.experiment import Repeat
from boundlab.models.graph_operators import KINDS, graph_operator
from boundlab.models.graphs import (
    Graph,
    breadth_first_piece,
    largest_component,
    planetoid,
    random_regular,
)
from boundlab.models.linear_gnn import simulate_ridge, simulate_sgd
from boundlab.theory.excess_risk import ridge, sgd

OPERATORS = ("laplacian", "normalized_adjacency")
CURVE_POINTS = 12


def cora(num_nodes: int) -> Graph:
    """Largest component of Cora (2,485 papers), or its first `num_nodes` papers breadth first."""
    component = largest_component(planetoid("cora"))
    return breadth_first_piece(component, num_nodes) if num_nodes else component


def regular_twin(key: jax.Array, graph: Graph) -> Graph:
    """A random regular graph with as many nodes, of the even degree next to the mean degree."""
    degree = 2 * max(1, round(graph.num_edges / graph.num_nodes))
    return random_regular(key, graph.num_nodes, degree)


def scaled_spectrum(graph: Graph, kind: str) -> np.ndarray:
    """Eigenvalues μ of M = G², descending, scaled to sum 1."""
    values = np.linalg.eigvalsh(np.asarray(graph_operator(graph, kind)))[::-1]
    return values**2 / np.sum(values**2)


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Spectra, exact learning curves, and simulations of both algorithms."""
    graph = cora(config.citation_nodes)
    twin = regular_twin(jax.random.fold_in(key, 0), graph)
    problems = [problem("cora", graph, kind) for kind in OPERATORS]
    twins = [scaled_spectrum(twin, kind) for kind in OPERATORS]
    counts = config.citation_samples
    # The Gram matrix of a design is then at most half as large as G.
    ridge_counts = [count for count in counts if 2 * count <= graph.num_nodes] or [counts[0]]
    ridges = np.array(
        [[_best_ridge(config, p.mu, count) for count in ridge_counts] for p in problems]
    )
    parts = [
        _spectra(graph, problems),
        _curves(config, problems, twins),
        _ridge_theory(config, problems, twins, ridges, ridge_counts),
        _simulate_sgd(config, problems, jax.random.fold_in(key, 1), repeat),
        _simulate_ridge(config, problems, ridges, ridge_counts, jax.random.fold_in(key, 2), repeat),
    ]
    return xr.merge(parts).assign_coords(citation_operator=list(OPERATORS))


def _spectra(graph: Graph, problems: list[Problem]) -> xr.Dataset:
    known = {kind: p.mu for kind, p in zip(OPERATORS, problems, strict=True)}
    mu = [known[kind] if kind in known else scaled_spectrum(graph, kind) for kind in KINDS]
    return xr.Dataset(
        {
            "citation_spectrum": (
                ("citation_kind", "citation_direction"),
                np.array(mu),
                {"long_name": "eigenvalues of M, scaled to sum 1"},
            )
        },
        coords={
            "citation_kind": list(KINDS),
            "citation_direction": np.arange(1, graph.num_nodes + 1),
        },
    )


def _best_ridge(config: Config, mu: np.ndarray, count: int) -> float:
    return float(ridge.best_ridge(mu, np.ones_like(mu), config.noise_variance, count))


def _step_size(config: Config, mu: np.ndarray) -> float:
    return config.step_fraction * float(sgd.stability_limit(mu))


def _sgd_risk(config: Config, mu: np.ndarray, count: int) -> float:
    """Exact risk with the isotropic teacher: at Σμ = 1 and signal power 1, θ*_i² = 1."""
    profile = sgd.tail_averaged_risk(
        mu, np.ones_like(mu), config.noise_variance, _step_size(config, mu), count
    )
    return float(profile.bias.sum() + profile.variance.sum())


def _ridge_risk(config: Config, mu: np.ndarray, value: float, count: int) -> float:
    profile = ridge.risk(mu, np.ones_like(mu), config.noise_variance, value, count)
    return float(profile.bias.sum() + profile.variance.sum())


def _curves(config: Config, problems: list[Problem], twins: list[np.ndarray]) -> xr.Dataset:
    counts = config.citation_samples
    evenly = np.geomspace(16, counts[-1], CURVE_POINTS).round().astype(int).tolist()
    curve = sorted({*evenly, *counts})
    exact = [[_sgd_risk(config, p.mu, count) for count in curve] for p in problems]
    tuned = [
        [_ridge_risk(config, p.mu, _best_ridge(config, p.mu, count), count) for count in curve]
        for p in problems
    ]
    blind = [[_sgd_risk(config, mu, count) for count in counts] for mu in twins]
    fraction = f"γ = {config.step_fraction:g} γ_max"
    return xr.Dataset(
        {
            "citation_sgd_exact": (
                ("citation_operator", "citation_curve"),
                exact,
                {"long_name": f"exact risk of tail-averaged SGD, {fraction}, no ½"},
            ),
            "citation_ridge_exact": (
                ("citation_operator", "citation_curve"),
                tuned,
                {"long_name": "risk of ridge at the best λ ≥ 0, deterministic equivalent, no ½"},
            ),
            "citation_sgd_blind": (
                ("citation_operator", "citation_samples"),
                blind,
                {"long_name": "exact risk of SGD on a regular graph of the same mean degree"},
            ),
        },
        coords={"citation_curve": curve, "citation_samples": list(counts)},
    )


def _ridge_theory(
    config: Config,
    problems: list[Problem],
    twins: list[np.ndarray],
    ridges: np.ndarray,
    counts: list[int],
) -> xr.Dataset:
    dims = ("citation_operator", "citation_ridge_samples")

    def risks(spectra: list[np.ndarray]) -> list[list[float]]:
        return [
            [_ridge_risk(config, mu, *pair) for pair in zip(row.tolist(), counts, strict=True)]
            for mu, row in zip(spectra, ridges, strict=True)
        ]

    return xr.Dataset(
        {
            "citation_ridge": (dims, ridges, {"long_name": "best λ ≥ 0, un-normalised"}),
            "citation_ridge_theory": (
                dims,
                risks([p.mu for p in problems]),
                {"long_name": "risk of ridge at that λ, deterministic equivalent, no ½"},
            ),
            "citation_ridge_blind": (
                dims,
                risks(twins),
                {"long_name": "the same on a regular graph of the same mean degree"},
            ),
        },
        coords={"citation_ridge_samples": counts},
    )


def _stacked(config: Config, *columns: list) -> tuple[jax.Array, ...]:
    """One array a quantity, an entry an operator; `lax.map` over them compiles one program for all."""
    return tuple(jnp.asarray(np.array(column), dtype=config.dtype) for column in columns)


def _simulate_sgd(
    config: Config, problems: list[Problem], key: jax.Array, repeat: Repeat
) -> xr.Dataset:
    *short, longest = counts = config.citation_samples
    noise_std = np.sqrt(config.noise_variance)
    cases = _stacked(
        config,
        [p.operator for p in problems],
        [p.theta_star for p in problems],
        [_step_size(config, p.mu) for p in problems],
    )

    def runs(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        def one_operator(case: tuple[jax.Array, ...]) -> dict[str, jax.Array]:
            operator, teacher, step_size = case

            def risk(key: jax.Array, count: int) -> jax.Array:
                return simulate_sgd(key, operator, teacher, noise_std, step_size, count)

            # Short runs vary more and cost less: two of them a key.
            pair = jax.random.split(key)
            means = {str(n): jax.lax.map(partial(risk, count=n), pair).mean() for n in short}
            return {**means, str(longest): risk(key, longest)}

        return jax.lax.map(one_operator, cases)

    keys = jax.random.split(key, config.citation_seeds)
    found = repeat("citation-sgd", runs, {}, keys)
    samples = np.array([found[str(count)].values for count in counts]).transpose(2, 0, 1)
    dims = ("citation_operator", "citation_samples", "citation_seed")
    return xr.Dataset(
        {
            "citation_sgd_simulated": (
                dims,
                samples,
                {
                    "long_name": "simulated risk of tail-averaged SGD through the dense G, no ½",
                    "samples": "mean of two runs at every N but the largest",
                },
            )
        },
        coords={
            "citation_samples": list(counts),
            "citation_seed": np.arange(len(keys)),
        },
    )


def _simulate_ridge(
    config: Config,
    problems: list[Problem],
    ridges: np.ndarray,
    counts: list[int],
    key: jax.Array,
    repeat: Repeat,
) -> xr.Dataset:
    noise_std = np.sqrt(config.noise_variance)
    cases = _stacked(
        config, [p.operator for p in problems], [p.theta_star for p in problems], ridges.tolist()
    )

    def designs(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        def one_operator(case: tuple[jax.Array, ...]) -> dict[str, jax.Array]:
            operator, teacher, row = case
            profiles = {
                str(count): simulate_ridge(key, operator, teacher, noise_std, row[i], count)
                for i, count in enumerate(counts)
            }
            return {name: profile.bias + profile.variance for name, profile in profiles.items()}

        return jax.lax.map(one_operator, cases)

    keys = jax.random.split(key, config.citation_seeds)
    found = repeat("citation-ridge", designs, {}, keys)
    samples = np.array([found[str(count)].values for count in counts]).transpose(2, 0, 1)
    dims = ("citation_operator", "citation_ridge_samples", "citation_design")
    return xr.Dataset(
        {
            "citation_ridge_simulated": (
                dims,
                samples,
                {"long_name": "risk of ridge on one drawn design, label noise averaged, no ½"},
            )
        },
        coords={"citation_ridge_samples": counts, "citation_design": np.arange(len(keys))},
    )
