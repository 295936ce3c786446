"""Features generated on a fixed graph: error against graph size, family, aggregation and feature size.

Symbols: X = PZ + s₀ξ the features, λ eigenvalues of their covariance, v and u the variances of the
noised data and of the sampler's output, F features, T horizon, N steps, δ early stop.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

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
    start: np.ndarray  # the bound's first term


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Exact errors of many graphs, their norms, and the sampler simulated on the smallest ones."""
    parts = [
        _over_sizes(config, jax.random.fold_in(key, 0)),
        _over_horizons(config, jax.random.fold_in(key, 0)),
        simulated(config, jax.random.fold_in(key, 1), repeat, HORIZON, EARLY_STOP),
    ]
    return describe(xr.merge(parts), "1")


def errors(
    spectra: Sequence[np.ndarray], horizon: float, steps: int, features: int
) -> list[Errors]:
    """Errors of the exponential integrator for arrays (k, n) of spectra, `features` times each.

    All modes go through one program, whatever the sizes of the graphs.
    """
    times = theory.time_grid(horizon, EARLY_STOP, steps, "uniform")
    flat = np.concatenate([array.ravel() for array in spectra])
    _, variance = theory.reverse_moments(flat, times, "exponential_integrator")
    target = 1 + (flat - 1) * np.exp(-2 * EARLY_STOP)
    start = theory.initialization_kl(flat, horizon)
    kl = theory.gaussian_kl(target, variance)
    apart = jax.vmap(theory.gaussian_w2)(target, variance)
    bound = start + theory.discretization_ei(flat, times)
    ends = np.cumsum([array.size for array in spectra])[:-1]
    shaped = [
        [
            part.reshape(array.shape)
            for part, array in zip(np.split(modes, ends), spectra, strict=True)
        ]
        for modes in map(np.asarray, (kl, apart**2, bound, start))
    ]
    return [
        Errors(
            features * kl.sum(axis=-1),
            np.sqrt(features * squared.sum(axis=-1)),
            features * bound.sum(axis=-1),
            features * start.sum(axis=-1),
        )
        for kl, squared, bound, start in zip(*shaped, strict=True)
    ]


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
    kl, w2, bound, start, lipschitz = (np.empty(shape) for _ in range(5))
    norms = np.empty((4, *shape[:3]))
    places, spectra = [], []
    for k, nodes in enumerate(sizes):
        for j, (_, adjacencies) in enumerate(_distinct(config, key, nodes)):
            for i, kind in enumerate(AGGREGATIONS):
                places.append((i, j, k))
                spectra.append(_spectra(adjacencies, kind, NOISE_STDS[0]))
                lipschitz[i, j, k] = np.maximum(1.0, 1 / spectra[-1].min(axis=-1))
                norms[:, i, j, k] = _norms(adjacencies[0], kind)
    found = errors(spectra, HORIZON, config.topology_steps, config.topology_features)
    for place, one in zip(places, found, strict=True):
        kl[place], w2[place], bound[place], start[place] = one
    names = {
        "topology_kl": (kl, "KL of the sampler's output, exact", "nats"),
        "topology_w2": (w2, "Wasserstein-2 distance of the sampler's output, exact", "1"),
        "topology_bound": (bound, "start and path terms, a bound of the KL", "nats"),
        "topology_start": (start, "start term of the bound", "nats"),
        "topology_lipschitz": (lipschitz, "Lipschitz constant of the scores", "1"),
    }
    norm_names = {
        "topology_frobenius": "squared Frobenius norm of P, entry by entry",
        "topology_frobenius_theory": "the same from degrees and edges",
        "topology_norm": "squared spectral norm of P, by singular values",
        "topology_norm_theory": "the same in closed form; for row the star alone, else NaN",
    }
    data: dict[str, tuple[Any, ...]] = {
        n: (dims, a, {"long_name": t, "units": u}) for n, (a, t, u) in names.items()
    }
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
    """KL over horizons on the second-largest graphs, at both noise floors and with both scalings."""
    nodes = config.topology_nodes[-2]
    shape = (len(NOISE_STDS), len(FILTERS), len(FAMILIES), len(HORIZONS), config.topology_draws)
    kl, w2 = np.empty(shape), np.empty(shape)
    places, spectra = [], []
    for j, (_, adjacencies) in enumerate(_distinct(config, key, nodes)):
        for i, kind in enumerate(FILTERS):
            for k, noise_std in enumerate(NOISE_STDS):
                places.append((k, i, j))
                spectra.append(_spectra(adjacencies, kind, noise_std))
    for m, horizon in enumerate(HORIZONS):
        found = errors(spectra, horizon, config.topology_steps, config.topology_features)
        for (k, i, j), one in zip(places, found, strict=True):
            kl[k, i, j, m], w2[k, i, j, m] = one.kl, one.w2
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
                {
                    "long_name": "KL of the sampler's output on the second-largest graph",
                    "units": "nats",
                },
            ),
            "topology_horizon_w2": (
                dims,
                w2,
                {"long_name": "the Wasserstein-2 distance there"},
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
