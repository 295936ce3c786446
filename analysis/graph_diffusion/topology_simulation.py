"""The sampler run on small graphs and on a piece of Cora, beside the recursion of its variances.

The scores are those of the Gaussian features, built here edge by edge. Symbols as in `topology`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.graph_diffusion.config import Config
from boundlab.experiment import Repeat
from boundlab.models import graphs, samplers, sde
from boundlab.models.planetoid import planetoid
from boundlab.theory import graph_diffusion as theory

NOISE_STD = 0.3
KINDS = ("sum", "symmetric")
SIZE_SHARES = (0.1, 0.2, 0.5, 1.0)


class _Case(NamedTuple):
    name: str
    eigenvalues: np.ndarray  # of the covariance that the score uses, descending
    vectors: np.ndarray
    theory: np.ndarray  # the same eigenvalues by the theory's route


def simulated(
    config: Config, key: jax.Array, repeat: Repeat, horizon: float, early_stop: float
) -> xr.Dataset:
    """Squares of the output along every eigenvector, over nested feature sizes."""
    cases = _cases(config, jax.random.fold_in(key, 0))
    times = np.linspace(horizon, early_stop, config.topology_steps + 1)
    sizes = [round(share * config.topology_features) for share in SIZE_SHARES]
    dtype = jnp.float32  # sampling noise is larger than its rounding
    values = jnp.asarray(np.stack([case.eigenvalues for case in cases]), dtype)
    vectors = jnp.asarray(np.stack([case.vectors for case in cases]), dtype)
    shape = (config.topology_nodes[0], config.topology_features)
    grid = jnp.asarray(times, dtype)

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        basis, spectrum = vectors[params["case"]], values[params["case"]]

        def score(x: jax.Array, t: jax.Array) -> jax.Array:
            variance = 1 + (spectrum - 1) * jnp.exp(-2 * t)
            return -basis @ ((basis.T @ x) / variance[:, None])

        key = jax.random.fold_in(key, params["case"])  # or all cases would err alike
        x = samplers.sample(key, sde.ou(), score, grid, shape, "exponential_integrator")
        squares = (basis.T @ x) ** 2
        return {"square": jnp.stack([squares[:, :size].mean(axis=1) for size in sizes])}

    keys = jax.random.split(jax.random.fold_in(key, 1), config.topology_seeds)
    found = repeat("topology", one, {"case": np.arange(len(cases))}, keys)["square"].values
    spectra = np.stack([case.theory for case in cases])
    grid64 = theory.time_grid(horizon, early_stop, config.topology_steps, "uniform")
    flat = spectra.ravel()
    _, variance = theory.reverse_moments(flat, grid64, "exponential_integrator")
    data_variance = 1 + (flat - 1) * np.exp(-2 * early_stop)
    path = theory.initialization_kl(flat, horizon) + theory.discretization_ei(flat, grid64)
    kl = theory.gaussian_kl(data_variance, variance)
    distances = _distances(found, np.reshape(data_variance, spectra.shape), np.array(sizes))
    exact_w2 = jax.vmap(theory.gaussian_w2)(
        *(np.reshape(array, spectra.shape) for array in (data_variance, variance))
    )
    modes, sized = ("topology_case", "topology_mode"), ("topology_case", "topology_size")
    described = {
        "topology_square": (
            ("topology_case", "topology_seed", "topology_size", "topology_mode"),
            found,
            "mean over features of the squared output along an eigenvector",
        ),
        "topology_eigenvalue": (modes, flat, "eigenvalue of the covariance of the features"),
        "topology_variance": (modes, variance, "variance of the sampler's output, exact"),
        "topology_data_variance": (modes, data_variance, "variance of the noised data"),
        "topology_mode_kl": (modes, kl, "KL of a feature along an eigenvector, exact"),
        "topology_mode_bound": (modes, path, "its bound"),
    }
    data: dict[str, tuple[Any, ...]] = {
        "topology_case_w2": (
            sized,
            np.asarray(exact_w2)[:, None] * np.sqrt(sizes)[None, :],
            {"long_name": "Wasserstein-2 distance of the sampler's output, exact"},
        ),
        "topology_case_w2_simulated": (
            sized,
            distances[0],
            {"long_name": "the same from simulated variances, corrected for their noise"},
        ),
        "topology_case_w2_error": (sized, distances[1], {"long_name": "its standard error"}),
    }
    for name, (dims, array, text) in described.items():
        shaped = np.asarray(array, np.float64)
        shaped = shaped.reshape(spectra.shape) if dims == modes else shaped
        data[name] = (dims, shaped, {"long_name": text})
    coords = {
        "topology_case": [case.name for case in cases],
        "topology_seed": np.arange(config.topology_seeds),
        "topology_size": sizes,
        "topology_mode": np.arange(spectra.shape[1]),
    }
    return xr.Dataset(data, coords)


def _distances(
    squares: np.ndarray, target: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """W₂ (case, size) from variances pooled over runs, and its standard error by the jackknife.

    A variance û of M squares has E√û ≈ √u(1 − 1/(4M)): F Σ√(vu)/(2M) is taken off the squared distance.
    """
    runs = squares.shape[1]
    blocks = np.array_split(np.arange(runs), 16)

    def distance(kept: np.ndarray) -> np.ndarray:
        pooled = squares[:, kept].mean(axis=1)
        both = np.sqrt(target[:, None, :] * pooled)
        squared = (target[:, None, :] + pooled - 2 * both).sum(axis=-1) * sizes
        return np.sqrt(np.maximum(squared - both.sum(axis=-1) / (2 * len(kept)), 0.0))

    without = np.stack([distance(np.setdiff1d(np.arange(runs), block)) for block in blocks])
    spread = np.sqrt(15 / 16 * ((without - without.mean(axis=0)) ** 2).sum(axis=0))
    return distance(np.arange(runs)), spread


def _cases(config: Config, key: jax.Array) -> list[_Case]:
    """Three families and a piece of Cora, each under two aggregations."""
    n = config.topology_nodes[0]
    drawn = {
        "regular": graphs.random_regular(jax.random.fold_in(key, 0), n, 4),
        "power law": graphs.barabasi_albert(jax.random.fold_in(key, 1), n, 2),
        "star": graphs.star(n),
        "Cora": graphs.breadth_first_piece(planetoid("cora"), n),
    }
    cases = []
    for name, graph in drawn.items():
        words = _standardised(graph.features) if name == "Cora" else np.eye(n)
        adjacency = graph.adjacency().astype(np.float64)
        for kind in KINDS:
            filtered = _aggregate(graph, words, kind)
            covariance = filtered @ filtered.T + NOISE_STD**2 * np.eye(n)
            values, vectors = np.linalg.eigh(covariance)
            matrix = np.asarray(theory.aggregation_matrix(adjacency, kind))
            spectrum = np.asarray(theory.feature_spectrum(matrix @ words, NOISE_STD))
            cases.append(_Case(f"{name}, {kind}", values[::-1], vectors[:, ::-1], spectrum))
    return cases


def _standardised(features: np.ndarray | None) -> np.ndarray:
    """Words of the nodes (n, words) whose covariance over words has mean diagonal 1."""
    assert features is not None
    centred = np.asarray(features, np.float64)
    centred = centred - centred.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).sum() / len(centred))


def _aggregate(graph: graphs.Graph, signal: np.ndarray, kind: str) -> np.ndarray:
    """P times `signal` (n, k), message by message."""
    senders, receivers = graph.to_edge_index()
    size = np.asarray(graph.degrees(), np.float64)[:, None] + 1
    before = {"sum": 1.0, "row": 1.0, "symmetric": size**-0.5}[kind]
    after = {"sum": 1.0, "row": 1 / size, "symmetric": size**-0.5}[kind]
    messages = before * signal
    received = messages.copy()
    np.add.at(received, receivers, messages[senders])
    return after * received
