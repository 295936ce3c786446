"""Nodes as samples: aggregation makes the rows of the design dependent, and ridge feels it.

Every node has p independent features with covariance H; the graph averages them over each node and
its neighbours, F = GX, so that rows share neighbours. Symbols: C = GGᵀ the rows' covariance, θ* the
teacher, λ ridge (un-normalised); risks R = ‖θ̂ − θ*‖²_H without ½.
"""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.evidence import means_against, values_against
from boundlab.analysis.excess_risk.config import Config
from boundlab.analysis.excess_risk.problems import graph_pair
from boundlab.claims import Check, Claim, Kind, Source
from boundlab.experiment import Repeat
from boundlab.models.graphs import Graph
from boundlab.models.linear_gnn import simulate_ridge
from boundlab.theory.excess_risk import ridge as theory

NUM_NODES = 200  # the sizes at which the equivalent is stated to be within 2 %
NUM_FEATURES = 80
RIDGES = np.geomspace(0.01, 10.0, 25)  # λ of the lines
SIMULATED = RIDGES[::8]
GRID = ("correlated_graph", "correlated_ridge")


def mean_aggregation(graph: Graph) -> np.ndarray:
    """G (n, n): the mean over each node and its neighbours, (D + I)^{-1}(A + I)."""
    closed = graph.adjacency() + np.eye(graph.num_nodes)
    return closed / closed.sum(axis=1, keepdims=True)


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Theory and drawn designs along λ, on a regular and on a power-law graph."""
    graph_key, design_key = (jax.random.fold_in(key, i) for i in range(2))
    graphs = graph_pair(graph_key, NUM_NODES, config.degree)
    operators = np.stack([mean_aggregation(graph) for graph in graphs.values()])
    # Features of slowly decaying strength, total 1; an isotropic teacher of signal power 1.
    features = np.arange(1.0, NUM_FEATURES + 1) ** -0.5
    features /= features.sum()
    dataset = xr.merge(
        (
            _theory(operators, features, config.noise_variance),
            _simulation(operators, features, config, design_key, repeat),
        ),
        join="exact",
    )
    risk = {"long_name": "excess risk R of ridge", "units": "‖θ̂ − θ*‖²_H, no ½, signal power 1"}
    for name in dataset.data_vars:
        dataset[name].attrs = risk
    return dataset.assign_coords(
        correlated_graph=list(graphs),
        correlated_ridge=("correlated_ridge", RIDGES, {"long_name": "λ, un-normalised"}),
        correlated_simulated_ridge=SIMULATED,
    ).assign_attrs(correlated_nodes=NUM_NODES, correlated_features=NUM_FEATURES)


def _theory(operators: np.ndarray, features: np.ndarray, noise: float) -> xr.Dataset:
    ones = np.ones_like(features)

    def dependent(rows: jax.Array, ridge: jax.Array) -> jax.Array:
        return _total(theory.risk_correlated(rows, features, ones, noise, ridge))

    def independent(rows: jax.Array, ridge: jax.Array) -> jax.Array:
        # A row's covariance is (tr C/n)·H; the risk is again measured at the test point's H.
        scale = jnp.mean(rows)
        return _total(theory.risk(scale * features, ones, noise, ridge, NUM_NODES)) / scale

    over_grid = jax.vmap(jax.vmap(dependent, in_axes=(None, 0)), in_axes=(0, None))
    as_if_independent = jax.jit(
        jax.vmap(jax.vmap(independent, in_axes=(None, 0)), in_axes=(0, None))
    )
    spectra = np.linalg.svd(operators, compute_uv=False) ** 2
    # The last row of every table is C = I: no graph.
    rows = np.concatenate([spectra, np.ones((1, NUM_NODES))])
    exact = np.asarray(jax.jit(over_grid)(rows, RIDGES))
    naive = np.asarray(as_if_independent(rows, RIDGES))
    normalized = np.asarray(as_if_independent(rows, NUM_NODES * RIDGES))
    return xr.Dataset(
        {
            "correlated_theory": (GRID, exact[:-1]),
            "correlated_naive": (GRID, naive[:-1]),
            "correlated_no_graph": (GRID[1:], exact[-1]),
            "correlated_no_graph_naive": (GRID[1:], naive[-1]),
            "correlated_no_graph_normalized": (GRID[1:], normalized[-1]),
        }
    )


def _total(profile: theory.RiskProfile) -> jax.Array:
    return profile.bias.sum() + profile.variance.sum()


def _simulation(
    operators: np.ndarray, features: np.ndarray, config: Config, key: jax.Array, repeat: Repeat
) -> xr.Dataset:
    matrices, spectrum, ridges = (
        jnp.asarray(x, dtype=config.dtype) for x in (operators, features, SIMULATED)
    )
    noise_std = config.noise_variance**0.5

    def one(params: dict, run_key: jax.Array) -> dict[str, jax.Array]:
        matrix = matrices[params["correlated_graph"]]

        def at(ridge: jax.Array) -> jax.Array:
            given = (run_key, matrix, jnp.ones_like(spectrum), noise_std, ridge, NUM_NODES)
            profile = simulate_ridge(*given, "node", feature_spectrum=spectrum)
            return profile.bias + profile.variance

        return {"correlated_risk": jax.vmap(at)(ridges)}

    which = {"correlated_graph": np.arange(len(operators))}
    runs = repeat("correlated-rows", one, which, jax.random.split(key, config.num_designs))
    runs = runs.rename(seed="design", correlated_risk_axis0="correlated_simulated_ridge")
    return runs.drop_vars(["design", *which])


def _against(reference: str) -> Check:
    return means_against(
        "correlated_risk",
        reference,
        "design",
        tolerance=0.02,
        selected=(("correlated_ridge", "correlated_simulated_ridge"),),
    )


RIDGE = "boundlab.theory.excess_risk.ridge"
TEST = "tests/theory/excess_risk/test_ridge_correlated.py"
PAGE = "docs/excess_risk.md#dependent-rows"
CLAIMS = (
    Claim(
        id="correlated-rows",
        source=Source("atanasov2024risk", "equivalent for correlated samples; equations derived"),
        statement=r"nodes as samples: $E\,R$ of ridge at row covariance $C=GG^\top$, to 2 %",
        kind=Kind.EQUAL,
        check=_against("correlated_theory"),
        control=_against("correlated_naive"),
        control_statement="independent rows of covariance (‖G‖_F²/n)·H at N = n",
        formula=f"{RIDGE}.risk_correlated",
        test=f"{TEST}::test_against_drawn_node_features",
    ),
    Claim(
        id="correlated-rows-iid",
        source=Source("derived", PAGE),
        statement=r"at $G=I$ the risk of correlated rows is that of independent ones",
        kind=Kind.IDENTITY,
        check=values_against(
            (("correlated_no_graph", "correlated_no_graph_naive"),), tolerance=1e-8
        ),
        control=values_against(
            (("correlated_no_graph", "correlated_no_graph_normalized"),), tolerance=1e-8
        ),
        control_statement="ridge Nλ in place of λ",
        formula=f"{RIDGE}.risk_correlated",
        test=f"{TEST}::test_identity_reduces_to_independent_rows",
    ),
)
