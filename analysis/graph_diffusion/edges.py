"""Structure with exact scores: too short a schedule, edges from discretisation, the bound of an edge.

Symbols: p = P(edge), p̂ the share of edges in samples, B total noise of a schedule, N steps, δ early
stop, J Fisher information, H entropy.
"""

from typing import Any

import jax
import numpy as np
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.graph_diffusion.config import Config
from boundlab.analysis.graph_diffusion.edges_claims import CLAIMS as CLAIMS
from boundlab.analysis.graph_diffusion.edges_simulation import BETA_MIN, TIME_PAIRS, simulated
from boundlab.experiment import Repeat
from boundlab.theory import graph_diffusion as theory

PROBABILITIES = (0.7, 0.33, 0.0125)
# Ends of the schedules β from .1 on [0, 1]; the first is the published one.
BETAS = (1.0, 2.0, 5.0, 20.0)
HORIZON, EARLY_STOP = 3.0, 0.02
# Grids that are simulated, too; each must be among `edges_ladder`.
SIMULATED_STEPS = (40, 100)
CASES = (
    (0.5, -1.0, 1.0),
    (0.3, -1.0, 1.0),
    (0.1, 0.0, 1.0),
    (0.7, 0.0, 1.0),
    (0.01, 0.0, 1.0),
)
CASE_NAMES = tuple(f"p = {p:g}, {'±1' if low < 0 else '0/1'}" for p, low, _ in CASES)
# A community graph of the benchmark's recipe: two communities of ten nodes, edges within with
# probability .7 and across with .1/10; rows of CASES.
COMMUNITY = {3: 90, 4: 100}
# Schedules' ends from which the bias is drawn as a line.
BETA_FINE = np.geomspace(0.2, 30.0, 60)
# The early stop of the grids held against the shape of benton2024nearly, and their law.
SHAPE_STOP, SHAPE_CASE = 1e-3, 1
# Gauss–Legendre nodes a step of the path term by quadrature.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Bias of schedules, exact errors and bounds over steps, and the simulations of both."""
    schedules, ladder = _schedules(), _ladder(config)
    grids = [_grid(steps) for steps in SIMULATED_STEPS]
    longest = max(len(grid) for grid in grids)
    padded = np.stack([np.pad(g, (0, longest - len(g)), "edge") for g in grids])
    beta = np.array(BETAS)
    prior = [(p, b, 0.0) for p in PROBABILITIES for b in beta]
    noised = [(p, beta[0], 1.0) for p in PROBABILITIES]
    columns = np.array(prior + noised).T
    named = dict(zip(("probability", "beta_max", "noised"), columns, strict=True))
    cases = dict(zip(("probability", "low", "high"), np.array(CASES).T, strict=True))
    found = simulated(config, key, repeat, named, cases, padded)
    shares = found["schedule"].values
    split = len(prior)
    seeds = "edges_seed"
    data = {
        "edges_short": (
            (seeds, "edges_p", "edges_beta"),
            shares[:, :split].reshape(-1, len(PROBABILITIES), len(beta)),
            {"long_name": "share of edges in samples started from N(0, 1)"},
        ),
        "edges_short_noised": (
            (seeds, "edges_p"),
            shares[:, split:],
            {
                "long_name": "share of edges in samples of the first schedule, started from noised data"
            },
        ),
        "edges_share": (
            (seeds, "edges_case", "edges_grid"),
            found["grid"].values,
            {"long_name": "share of edges in samples of the exponential integrator"},
        ),
    }
    for name, text in (
        ("fisher", "mean square of the score"),
        ("mmse", "mean square error of the posterior mean"),
        ("increment", "mean square of the score's increment"),
    ):
        data[f"edges_{name}"] = (
            (seeds, "edges_case", "edges_pair"),
            found[name].values,
            {"long_name": text + ", simulated"},
        )
    sampled = xr.Dataset(
        data,
        coords={
            seeds: np.arange(config.edges_seeds),
            "edges_p": list(PROBABILITIES),
            "edges_beta": beta,
            "edges_case": list(CASE_NAMES),
            "edges_grid": list(SIMULATED_STEPS),
            "edges_pair": [f"t = {early:g}, τ = {late:g}" for late, early in TIME_PAIRS],
        },
    )
    merged = xr.merge([schedules, ladder, _increments(), sampled])
    merged["edges_first_theory"] = merged["edges_short_theory"].isel(edges_beta=0, drop=True)
    exact = merged["edges_probability"].sel(edges_steps=list(SIMULATED_STEPS))
    merged["edges_share_theory"] = exact.rename(edges_steps="edges_grid")
    return describe(merged, "1")


def _grid(steps: int, early_stop: float = EARLY_STOP) -> np.ndarray:
    return np.asarray(theory.time_grid(HORIZON, early_stop, steps, "benton"))


def _schedules() -> xr.Dataset:
    """p̂ without discretisation and the cost of the start, over schedules on [0, 1]."""
    names = ("short_theory", "start_kl", "start_bound")

    def table(beta_max: np.ndarray) -> list[np.ndarray]:
        total = (BETA_MIN + beta_max) / 2
        columns = []
        for p in PROBABILITIES:
            chi = theory.edge_chi_squared(total / 2, p)
            columns.append(
                [
                    theory.edge_probability_after_sampling(p, total),
                    theory.edge_initialization_kl(total / 2, p),
                    np.log1p(np.asarray(chi)),
                ]
            )
        return [np.array([column[k] for column in columns]) for k in range(len(names))]

    texts = (
        "share of edges in samples of the reverse SDE from N(0, 1), exact",
        "KL of the noised edge to N(0, 1), exact",
        "log(1 + chi-squared), its bound",
    )
    units = ("1", "nats", "nats")
    # One shape for line and dots, so that every function is compiled once.
    beta = np.array(BETAS)
    both = table(np.concatenate([BETA_FINE, beta]))
    fine = len(BETA_FINE)
    data = {}
    for name, array, text, unit in zip(names, both, texts, units, strict=True):
        described = {"long_name": text, "units": unit}
        data[f"edges_{name}"] = (("edges_p", "edges_beta"), array[:, fine:], described)
        data[f"edges_{name}_line"] = (("edges_p", "edges_beta_fine"), array[:, :fine], described)
    gaussian = [_gaussian_kl(p, (BETA_MIN + beta) / 2) for p in PROBABILITIES]
    data["edges_start_gaussian"] = (
        ("edges_p", "edges_beta"),
        np.array(gaussian),
        {"long_name": "KL to N(0, 1) of a normal law of the same two moments", "units": "nats"},
    )
    return xr.Dataset(
        data,
        coords={
            "edges_p": list(PROBABILITIES),
            "edges_beta": beta,
            "edges_beta_fine": BETA_FINE,
        },
    )


def _gaussian_kl(p: float, total: np.ndarray) -> np.ndarray:
    variance = 1 + (p * (1 - p) - 1) * np.exp(-total)
    return 0.5 * (variance - 1 - np.log(variance) + np.exp(-total) * p**2)


def _ladder(config: Config) -> xr.Dataset:
    """Exact KL, total variation and p̂ of every case over numbers of steps, with bounds."""
    shape = (len(CASES), len(config.edges_ladder))
    names = {
        "kl": ("KL of the sampler's output, exact", "nats"),
        "total_variation": ("total variation distance of the sampler's output, exact", "1"),
        "probability": ("share of edges in the sampler's output, exact", "1"),
        "bound": ("start and path terms, a bound of the KL", "nats"),
        "path": ("path term by entropy and Fisher information", "nats"),
        "path_quadrature": ("path term by quadrature of the Fisher information", "nats"),
        "path_martingale": ("the same if the score were a martingale", "nats"),
    }
    arrays = {name: np.empty(shape) for name in names}
    start = np.array([float(theory.edge_initialization_kl(HORIZON, *case)) for case in CASES])
    for j, steps in enumerate(config.edges_ladder):
        times = _grid(steps)
        for i, case in enumerate(CASES):
            errors = theory.edge_sampling_errors(times, *case)
            for name, value in errors.items():
                arrays[name][i, j] = float(value)
            fisher = theory.edge_fisher(times, *case)
            entropy = theory.edge_entropy(times, *case)
            arrays["path"][i, j] = float(theory.bound_entropy_fisher(entropy, fisher, times, 1))
            paths = _paths(times, np.asarray(fisher), case)
            arrays["path_quadrature"][i, j], arrays["path_martingale"][i, j] = paths
    arrays["bound"] = start[:, None] + arrays["path"]
    dims = ("edges_case", "edges_steps")
    data: dict[str, Any] = {
        f"edges_{name}": (dims, arrays[name], {"long_name": text, "units": unit})
        for name, (text, unit) in names.items()
    }
    data["edges_start"] = (
        "edges_case",
        start,
        {"long_name": "start term: KL of the noised edge to N(0, 1)", "units": "nats"},
    )
    data["edges_truth"] = (
        "edges_case",
        np.array(CASES)[:, 0],
        {"long_name": "P(edge) of the data"},
    )
    rows, pairs = list(COMMUNITY), np.array(list(COMMUNITY.values()), np.float64)
    for name in ("kl", "bound"):
        data[f"edges_graph_{name}"] = (
            "edges_steps",
            pairs @ arrays[name][rows],
            {"long_name": f"{names[name][0]}; all pairs of a community graph", "units": "nats"},
        )
    data["edges_graph_start"] = (
        (),
        float(pairs @ start[rows]),
        {"long_name": "start term of all pairs of a community graph", "units": "nats"},
    )
    data["edges_shape_ratio"] = (
        "edges_steps",
        np.array([_shape_ratio(steps) for steps in config.edges_ladder]),
        {"long_name": "path term over the shape of benton2024nearly at constant 1"},
    )
    coords = {"edges_case": list(CASE_NAMES), "edges_steps": np.array(config.edges_ladder)}
    return xr.Dataset(data, coords=coords)


def _paths(
    times: np.ndarray, fisher: np.ndarray, case: tuple[float, float, float]
) -> tuple[float, float]:
    """Σ_k ∫ [J(t) − w J(t_k)] dt with w = 2e^{−(t_k − t)} − 1, and with w = 1."""
    late, early = times[:-1, None], times[1:, None]
    at = early * (late / early) ** ((1 + NODES) / 2)
    weights = WEIGHTS / 2 * np.log(late / early) * at
    inside = np.asarray(theory.edge_fisher(at, *case))
    frozen = fisher[:-1, None]
    exact = inside - (2 * np.exp(at - late) - 1) * frozen
    return float(np.sum(weights * exact)), float(np.sum(weights * (inside - frozen)))


def _shape_ratio(steps: int) -> float:
    times, case = _grid(steps, SHAPE_STOP), CASES[SHAPE_CASE]
    entropy, fisher = theory.edge_entropy(times, *case), theory.edge_fisher(times, *case)
    path = theory.bound_entropy_fisher(entropy, fisher, times, 1)
    return float(path) / float(theory.bound_benton_shape(times, 1))


def _increments() -> xr.Dataset:
    """Mean squares of the score, of its increments and of the guess, with what a wrong theory says."""
    late, early = np.array(TIME_PAIRS).T
    rows: dict[str, list[np.ndarray]] = {}
    for case in CASES:
        p, low, high = case
        mmse = np.asarray(theory.edge_mmse(early, *case))
        before, after = (np.asarray(theory.edge_fisher(t, *case)) for t in (early, late))
        spread = p * (1 - p) * (high - low) ** 2
        noise, kept = -np.expm1(-2 * early), np.exp(-2 * early)
        found = {
            "fisher_theory": before,
            "fisher_gaussian": 1 / (noise + kept * spread),
            "mmse_theory": mmse,
            "mmse_linear": spread * noise / (noise + kept * spread),
            "increment_theory": before - (2 * np.exp(early - late) - 1) * after,
            "increment_martingale": before - after,
        }
        for name, values in found.items():
            rows.setdefault(name, []).append(values)
    texts = {
        "fisher_theory": "Fisher information",
        "fisher_gaussian": "Fisher information of a normal law of the same variance",
        "mmse_theory": "least mean square error",
        "mmse_linear": "mean square error of the best linear guess",
        "increment_theory": "mean square of the score's increment, by the contraction identity",
        "increment_martingale": "the same if the score were a martingale",
    }
    dims = ("edges_case", "edges_pair")
    return xr.Dataset(
        {f"edges_{n}": (dims, np.array(rows[n]), {"long_name": text}) for n, text in texts.items()}
    )
