"""Features generated on a fixed graph: error against graph size, family, aggregation and feature size.

Symbols: X = PZ + s₀ξ the features, λ eigenvalues of their covariance, v and u the variances of the
noised data and of the sampler's output, F features, T horizon, N steps, δ early stop.
"""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.graph_diffusion.config import Config
from boundlab.analysis.graph_diffusion.topology_claims import CLAIMS as CLAIMS
from boundlab.analysis.graph_diffusion.topology_simulation import simulated
from boundlab.experiment import Repeat
from boundlab.models.graphs import Graph, barabasi_albert, random_regular, star
from boundlab.theory import graph_diffusion as theory

FAMILIES = ("regular", "power law", "star")
AGGREGATIONS = ("sum", "row", "symmetric")
# The third is divided by its root mean square, too.
FILTERS = ("sum", "symmetric", "symmetric / RMS")
NOISE_STDS = (0.3, 1.0)
# The mean degree of all three families is near 4, but for the star's, which is near 2.
DEGREE = 4
HORIZON = 2.0
EARLY_STOP = 0.01
HORIZONS = np.arange(0.5, 4.01, 0.25)


class Errors(NamedTuple):
    """Exact KL and W₂ of the sampler's output, and the bound of the KL, an entry a spectrum."""

    kl: np.ndarray
    w2: np.ndarray
    bound: np.ndarray


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Exact errors of many graphs, their norms, and the sampler simulated on the smallest ones."""
    parts = [
        _over_sizes(config, jax.random.fold_in(key, 0)),
        _over_horizons(config, jax.random.fold_in(key, 0)),
        simulated(config, jax.random.fold_in(key, 1), repeat, HORIZON, EARLY_STOP),
    ]
    return describe(xr.merge(parts), "1")


def errors(eigenvalues: np.ndarray, horizon: float, steps: int, features: int) -> Errors:
    """Errors of the exponential integrator for spectra (k, n), each eigenvalue `features` times."""
    times = theory.time_grid(horizon, EARLY_STOP, steps, "uniform")
    flat = eigenvalues.ravel()
    _, variance = theory.reverse_moments(flat, times, "exponential_integrator")
    target = 1 + (flat - 1) * np.exp(-2 * EARLY_STOP)
    path = theory.discretization_ei(flat, times)

    def total(modes: jax.Array) -> np.ndarray:
        return features * np.asarray(modes).reshape(eigenvalues.shape).sum(axis=-1)

    shaped = (np.asarray(array).reshape(eigenvalues.shape) for array in (target, variance))
    return Errors(
        total(theory.gaussian_kl(target, variance)),
        features**0.5 * np.asarray(jax.vmap(theory.gaussian_w2)(*shaped)),
        total(theory.initialization_kl(flat, horizon) + path),
    )


def graphs_of(config: Config, key: jax.Array, nodes: int, family: str) -> list[Graph]:
    """The draws of one family and size; the star is one and the same."""
    if family == "star":
        return [star(nodes)] * config.topology_draws
    family_key = jax.random.fold_in(jax.random.fold_in(key, nodes), FAMILIES.index(family))
    keys = jax.random.split(family_key, config.topology_draws)
    if family == "regular":
        return [random_regular(one, nodes, DEGREE) for one in keys]
    return [barabasi_albert(one, nodes, DEGREE // 2) for one in keys]


def _distinct(config: Config, key: jax.Array, nodes: int) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Adjacency matrices of each family; of the star one."""
    for family in FAMILIES:
        graphs = graphs_of(config, key, nodes, family)
        kept = graphs[:1] if family == "star" else graphs
        yield family, [graph.adjacency().astype(np.float64) for graph in kept]


def _spectra(adjacencies: list[np.ndarray], kind: str, noise_std: float) -> np.ndarray:
    name, *scaled = kind.split(" / ")
    found = [
        theory.feature_spectrum(theory.aggregation_matrix(a, name), noise_std, bool(scaled))
        for a in adjacencies
    ]
    return np.stack([np.asarray(values) for values in found])


def _over_sizes(config: Config, key: jax.Array) -> xr.Dataset:
    """Errors and norms at the small noise floor, for every size, family and aggregation."""
    dims = ("topology_aggregation", "topology_family", "topology_nodes", "topology_draw")
    sizes, draws = config.topology_nodes, config.topology_draws
    shape = (len(AGGREGATIONS), len(FAMILIES), len(sizes), draws)
    kl, w2, bound, lipschitz = (np.empty(shape) for _ in range(4))
    norms = np.empty((4, *shape[:3]))
    for k, nodes in enumerate(sizes):
        for j, (_, adjacencies) in enumerate(_distinct(config, key, nodes)):
            for i, kind in enumerate(AGGREGATIONS):
                spectra = _spectra(adjacencies, kind, NOISE_STDS[0])
                found = errors(spectra, HORIZON, config.topology_steps, config.topology_features)
                kl[i, j, k], w2[i, j, k], bound[i, j, k] = found
                lipschitz[i, j, k] = [float(theory.score_lipschitz(one)) for one in spectra]
                norms[:, i, j, k] = _norms(adjacencies[0], kind)
    names = {
        "topology_kl": (kl, "KL of the sampler's output, exact", "nats"),
        "topology_w2": (w2, "Wasserstein-2 distance of the sampler's output, exact", "1"),
        "topology_bound": (bound, "start and path terms, a bound of the KL", "nats"),
        "topology_lipschitz": (lipschitz, "Lipschitz constant of the scores", "1"),
    }
    norm_names = {
        "topology_frobenius": "squared Frobenius norm of P, entry by entry",
        "topology_frobenius_theory": "the same from degrees and edges",
        "topology_norm": "squared spectral norm of P, by singular values",
        "topology_norm_theory": "the same in closed form; for row the star alone, else NaN",
    }
    data = {n: (dims, a, {"long_name": t, "units": u}) for n, (a, t, u) in names.items()}
    data |= {
        name: (dims[:3], array, {"long_name": text, "units": "1"})
        for (name, text), array in zip(norm_names.items(), norms, strict=True)
    }
    coords = {
        "topology_aggregation": list(AGGREGATIONS),
        "topology_family": list(FAMILIES),
        "topology_nodes": list(sizes),
        "topology_draw": np.arange(draws),
    }
    return xr.Dataset(data, coords)


def _norms(adjacency: np.ndarray, kind: str) -> tuple[float, float, float, float]:
    """‖P‖_F² and ‖P‖², each from the matrix and from the closed form."""
    matrix = np.asarray(theory.aggregation_matrix(adjacency, kind))
    largest = float(np.linalg.eigvalsh(adjacency)[-1])
    is_star = int(adjacency.sum()) == 2 * (len(adjacency) - 1)
    closed = {
        "sum": (largest + 1) ** 2,
        "row": float(theory.star_row_norm(len(adjacency))) if is_star else np.nan,
        "symmetric": 1.0,
    }[kind]
    return (
        float((matrix**2).sum()),
        float(theory.aggregation_frobenius(adjacency, kind)),
        float(np.linalg.norm(matrix, 2) ** 2),
        closed,
    )


def _over_horizons(config: Config, key: jax.Array) -> xr.Dataset:
    """KL on the largest graphs against the horizon, at both noise floors and with both scalings."""
    nodes = config.topology_nodes[-1]
    shape = (len(NOISE_STDS), len(FILTERS), len(FAMILIES), len(HORIZONS), config.topology_draws)
    kl, w2 = np.empty(shape), np.empty(shape)
    for j, (_, adjacencies) in enumerate(_distinct(config, key, nodes)):
        for i, kind in enumerate(FILTERS):
            for k, noise_std in enumerate(NOISE_STDS):
                spectra = _spectra(adjacencies, kind, noise_std)
                for m, horizon in enumerate(HORIZONS):
                    found = errors(
                        spectra, horizon, config.topology_steps, config.topology_features
                    )
                    kl[k, i, j, m], w2[k, i, j, m] = found.kl, found.w2
    dims = (
        "topology_noise_std",
        "topology_filter",
        "topology_family",
        "topology_horizon",
        "topology_draw",
    )
    return xr.Dataset(
        {
            "topology_horizon_kl": (
                dims,
                kl,
                {"long_name": "KL of the sampler's output on the largest graph", "units": "nats"},
            ),
            "topology_horizon_w2": (
                dims,
                w2,
                {
                    "long_name": "Wasserstein-2 distance of the sampler's output on the largest graph"
                },
            ),
        },
        coords={
            "topology_noise_std": list(NOISE_STDS),
            "topology_filter": list(FILTERS),
            "topology_family": list(FAMILIES),
            "topology_horizon": HORIZONS,
            "topology_draw": np.arange(config.topology_draws),
        },
    )
