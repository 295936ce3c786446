"""Delayed SGD on one mode, by companion matrices and Lyapunov's equation, beside the closed forms."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy.linalg import solve_discrete_lyapunov
from scipy.optimize import brentq, minimize_scalar

from boundlab.theory import policy_optimization as theory

DELAYS = np.array([0, 1, 2, 4, 8, 16, 32])
STALE = DELAYS[1:]
# Steps in units of the limit at which moments are compared, from .02 to .99, closer to each other there.
SHARES = 1 - np.geomspace(0.98, 0.01, 33)
# How near the limit, relative to it, the correlation is looked at for its edge value.
EDGE = 1e-9
UPDATES = {"long_name": "delay", "units": "updates"}


class _Stationary(NamedTuple):
    """Moments of one mode in its stationary law at η = σ = 1."""

    correlation: float
    noiseless: float
    """Correlation of x_{t−τ} and x_{t−τ−1}, the gradients' means alone."""
    second: float
    covariance: np.ndarray
    """C_0 … C_{τ+1}."""


def limits() -> xr.Dataset:
    """Where the spectral radius passes 1, and the largest step with a real mode."""
    measured = [_critical(int(delay)) for delay in DELAYS]
    real = [_largest_real(int(delay)) for delay in STALE]
    known = [float(theory.delayed_sgd_limit(d)) for d in DELAYS]
    shifted = [float(theory.delayed_sgd_limit(d + 1)) for d in DELAYS]
    turns = [float(theory.oscillation_limit(d)) for d in STALE]
    every, stale = "delays_delay", "delays_stale"
    return xr.Dataset(
        {
            "delays_limit": (every, measured, _named("step at which the spectral radius is 1")),
            "delays_limit_theory": (every, known, _named("its closed form")),
            "delays_limit_shifted": (every, shifted, _named("the closed form one delay later")),
            "delays_turn": (stale, real, _named("largest step with a real mode")),
            "delays_turn_theory": (stale, turns, _named("its closed form")),
            "delays_turn_continuous": (stale, 1 / (np.e * STALE), _named("1/(eτ)")),
            "delays_ratio": (
                (),
                measured[-1] / real[-1],
                _named("ratio of the two, longest delay"),
            ),
            "delays_ratio_theory": ((), np.pi * np.e / 2, _named("πe/2")),
            "delays_ratio_short": ((), measured[1] / real[0], _named("ratio of the two, delay 1")),
        },
        coords={every: (every, DELAYS, UPDATES), stale: (stale, STALE, UPDATES)},
    )


def moments() -> xr.Dataset:
    """Correlation of gradients, their second moment and the covariance of parameters."""
    critical = np.array([float(theory.delayed_sgd_limit(d)) for d in DELAYS])
    steps = critical[:, None] * SHARES
    found = [[_stationary(a, int(d)) for a in row] for d, row in zip(DELAYS, steps, strict=True)]
    edges = [_stationary(c * (1 - EDGE), int(d)) for c, d in zip(critical, DELAYS, strict=True)]
    columns: dict[str, Any] = {
        "correlation": [[one.correlation for one in row] for row in found],
        "noiseless": [[one.noiseless for one in row] for row in found],
        "second": [[one.second for one in row] for row in found],
    }
    exact = {
        "correlation_theory": theory.gradient_autocorrelation,
        "second_theory": theory.gradient_second_moment,
    }
    for name, function in exact.items():
        columns[name] = [function(row, int(d)) for d, row in zip(DELAYS, steps, strict=True)]
    columns["second_prompt"] = 2 / (2 - np.minimum(steps, 1.99))
    columns["step"] = steps
    ends = [
        [[one.covariance[k] for k in (0, d)] for one in row]
        for d, row in zip(DELAYS, found, strict=True)
    ]
    forms = [
        np.stack([theory.autocovariance(row, int(d), k) for k in (0, int(d))], axis=-1)
        for d, row in zip(DELAYS, steps, strict=True)
    ]
    prompt = 1 / (steps * (2 - steps))
    decayed = prompt * np.abs(1 - steps) ** DELAYS[:, None]
    described = {
        "correlation": "correlation of consecutive gradients by Lyapunov's equation",
        "noiseless": "correlation of consecutive gradients without their noise",
        "second": "E g²/σ² by Lyapunov's equation",
        "correlation_theory": "correlation of consecutive gradients",
        "second_theory": "E g²/σ²",
        "second_prompt": "2/(2 − a), E g²/σ² without delay",
        "step": "step a = ηλ",
    }
    dims = ("delays_delay", "delays_share")
    lags = (*dims, "delays_lag")
    return xr.Dataset(
        {f"delays_{n}": (dims, np.array(columns[n]), _named(w)) for n, w in described.items()}
        | {
            "delays_covariance": (lags, np.array(ends), _named("E x_t x_{t−k}/(ησ)², Lyapunov")),
            "delays_covariance_theory": (lags, np.array(forms), _named("E x_t x_{t−k}/(ησ)²")),
            "delays_covariance_prompt": (
                lags,
                np.stack([prompt, decayed], axis=-1),
                _named("E x_t x_{t−k}/(ησ)² without delay"),
            ),
            "delays_edge": (
                "delays_stale",
                [one.correlation for one in edges[1:]],
                _named(f"correlation at a step {EDGE:g} below the limit"),
            ),
            "delays_edge_theory": (
                "delays_stale",
                np.cos(np.pi / (2 * STALE + 1)),
                _named("cos(π/(2τ+1))"),
            ),
            "delays_edge_one": ("delays_stale", np.ones(len(STALE)), _named("full correlation")),
        },
        coords={
            "delays_delay": ("delays_delay", DELAYS, UPDATES),
            "delays_stale": ("delays_stale", STALE, UPDATES),
            "delays_share": ("delays_share", SHARES, _named("step / limit")),
            "delays_lag": ["0", "delay"],
        },
    )


def companion(step: float, delay: int, size: int) -> np.ndarray:
    """(x_t, …, x_{t−size+1}) to the next without noise, x_{t+1} = x_t − a x_{t−τ}."""
    matrix = np.eye(size, k=-1)
    matrix[0, 0] += 1.0
    matrix[0, delay] -= step
    return matrix


def _critical(delay: int) -> float:
    def beyond(step: float) -> float:
        return float(np.abs(np.linalg.eigvals(companion(step, delay, delay + 1))).max()) - 1

    guess = np.pi / (2 * delay + 1)
    return float(brentq(beyond, 0.6 * guess, 1.2 * guess, xtol=1e-15))


def _largest_real(delay: int) -> float:
    """A real mode z > 0 solves z^{τ+1} = z^τ − a: the largest a over z."""
    found = minimize_scalar(
        lambda z: -(z**delay) * (1 - z),
        bounds=(0.0, 1.0),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return float(-found.fun)


def _stationary(step: float, delay: int) -> _Stationary:
    size = delay + 2
    noise = np.zeros((size, size))
    noise[0, 0] = 1.0
    covariance = solve_discrete_lyapunov(companion(step, delay, size), noise)[0]
    # g_t = a x_{t−τ} + ξ_t; without delay x_t holds −ξ_{t−1}.
    square = step**2 * covariance[0] + 1
    product = step**2 * covariance[1] - (step if delay == 0 else 0.0)
    return _Stationary(product / square, covariance[1] / covariance[0], square, covariance)


def _named(words: str) -> dict[str, str]:
    return {"long_name": words, "units": "1"}
