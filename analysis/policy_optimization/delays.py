"""Gradients some updates old, on quadratics: where SGD stops being stable, and how gradients correlate.

Closed forms beside companion matrices and Lyapunov's equation (`delays_exact`), and beside simulated
runs: without noise at steps around the limit, and with noise in 64 modes at once.
"""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.policy_optimization import delays_exact
from boundlab.analysis.policy_optimization.config import Config
from boundlab.analysis.policy_optimization.delays_claims import CLAIMS as CLAIMS
from boundlab.experiment import Repeat
from boundlab.models.delayed_sgd import delayed_sgd, delayed_sgd_moments
from boundlab.theory import policy_optimization as theory

# Steps in units of the limit of the runs without noise.
FACTORS = np.array([0.9, 0.97, 1.03, 1.1])
# Their length in units of τ + 1, and where the first of two windows begins between which their growth is
# measured. A window holds at least one period, which is 2(2τ + 1) at the limit.
LENGTH, EARLY, WINDOW = 260, 60, 8
# Curvature of the runs with noise, and their largest step in units of the limit; without delay it is
# smaller, so that the step exists for a delay of 1 too.
CURVATURE = np.linspace(0.05, 1.0, 64, dtype=np.float32)
LARGEST, LARGEST_PROMPT = 0.9, 0.45
BURN_IN = 1000
# Runs at once: wider maps compute no faster.
BATCH = 32


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Limits, stationary moments, runs without noise and runs with it."""
    parts = [
        delays_exact.limits(),
        delays_exact.moments(),
        _growth(config, jax.random.fold_in(key, 0)),
        _simulated(config, jax.random.fold_in(key, 1), repeat),
    ]
    return describe(xr.merge(parts), "1")


def _growth(config: Config, key: jax.Array) -> xr.Dataset:
    """Growth of runs without noise, and the step at which it passes 0."""
    rates = np.stack([_rates(delay, key) for delay in config.delays_simulated])
    limits, shifted = (
        np.array([float(theory.delayed_sgd_limit(d + more)) for d in config.delays_simulated])
        for more in (0, 1)
    )
    steps = FACTORS * limits[:, None]
    boundary = limits * [np.interp(0.0, rate, FACTORS) for rate in rates]
    dims = ("delays_simulated", "delays_factor")
    return xr.Dataset(
        {
            "delays_growth": (
                dims,
                rates,
                {"long_name": "growth of ln|g| without noise", "units": "1/update"},
            ),
            "delays_grew": (
                dims,
                np.where(rates > 0, 1.0, 0.0),
                {"long_name": "whether a run without noise grew"},
            ),
            "delays_grew_theory": (
                dims,
                np.where(steps > limits[:, None], 1.0, 0.0),
                {"long_name": "whether its step is above the limit"},
            ),
            "delays_grew_shifted": (
                dims,
                np.where(steps > shifted[:, None], 1.0, 0.0),
                {"long_name": "whether its step is above the limit one delay later"},
            ),
            "delays_boundary": (
                "delays_simulated",
                boundary,
                {"long_name": "step at which runs without noise neither grow nor shrink"},
            ),
        },
        coords={
            "delays_simulated": (
                "delays_simulated",
                np.array(config.delays_simulated),
                delays_exact.UPDATES,
            ),
            "delays_factor": (
                "delays_factor",
                FACTORS,
                {"long_name": "step / limit", "units": "1"},
            ),
        },
    )


def _rates(delay: int, key: jax.Array) -> np.ndarray:
    """Growth of ln max|g| an update between an early window and the last one, at each factor."""
    unit = delay + 1
    curvature = FACTORS * float(theory.delayed_sgd_limit(delay))
    run = delayed_sgd(key, curvature, 1.0, delay, 0.0, LENGTH * unit, initial=np.ones(len(FACTORS)))
    sizes = np.abs(np.asarray(run.gradients))
    early = sizes[EARLY * unit : (EARLY + WINDOW) * unit].max(axis=0)
    late = sizes[-WINDOW * unit :].max(axis=0)
    return np.log(late / early) / ((LENGTH - WINDOW - EARLY) * unit)


def _simulated(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Consecutive gradients of 64 modes with equal noise, at each delay."""
    delays = config.delays_simulated
    sizes = [
        (LARGEST if delay else LARGEST_PROMPT) * float(theory.delayed_sgd_limit(delay))
        for delay in delays
    ]

    def one(_: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        found = [
            delayed_sgd_moments(
                jax.random.fold_in(key, delay),
                CURVATURE,
                size,
                delay,
                1.0,
                config.delays_steps,
                burn_in=BURN_IN,
            )
            for delay, size in zip(delays, sizes, strict=True)
        ]
        return {
            "cosine": jnp.stack([moments.cosine for moments in found]),
            "product": jnp.stack([moments.lag_product for moments in found]),
            "square": jnp.stack([moments.second_moment for moments in found]),
        }

    keys = jax.random.split(key, config.delays_seeds)
    batch = min(BATCH, config.delays_seeds)
    runs = repeat("delays-runs", one, {}, keys, batch_size=batch)
    cosine, product, square = (
        runs[name].values.astype(np.float64) for name in ("cosine", "product", "square")
    )
    seed, simulated, mode = "delays_seed", "delays_simulated", "delays_mode"
    each = (seed, simulated, mode)
    described = {
        "cosine": ((seed, simulated), cosine, "mean cosine of consecutive gradients"),
        "product": (each, product, "mean product of consecutive gradients / σ²"),
        "square": (each, square, "mean square of gradients / σ²"),
        "alignment": (
            (seed, simulated),
            product.sum(axis=2) / square.sum(axis=2),
            "mean inner product of consecutive gradients / mean square",
        ),
        "mode_correlation": (each, product / square, "correlation of consecutive gradients"),
    }
    simulations = {
        f"delays_{name}": (dims, values, {"long_name": words})
        for name, (dims, values, words) in described.items()
    }
    return xr.Dataset(
        simulations | _predictions(delays, sizes),
        coords={mode: (mode, np.arange(len(CURVATURE)), {"long_name": "mode", "units": "1"})},
    )


def _predictions(delays: tuple[int, ...], sizes: list[float]) -> dict[str, tuple]:
    """What theory says of the runs with noise, and what it would say if it were wrong."""
    modes = CURVATURE.astype(np.float64)
    columns: dict[str, list] = {}
    for delay, size in zip(delays, sizes, strict=True):
        steps = size * modes
        correlation = theory.gradient_autocorrelation(steps, delay)
        values = {
            "mode_step": steps,
            "mode_share": steps / float(theory.delayed_sgd_limit(delay)),
            "mode_correlation_theory": correlation,
            "mode_correlation_prompt": -steps / 2,
            "square_theory": theory.gradient_second_moment(steps, delay),
            "square_prompt": 2 / (2 - steps),
            "cosine_theory": theory.mixture_cosine(modes, size, delay),
            "cosine_unweighted": np.mean(correlation),
            # Without delay there is nothing fresher, and the next is one delay later.
            "cosine_shifted": theory.mixture_cosine(modes, size, delay - 1 if delay else 1),
        }
        for name, value in values.items():
            columns.setdefault(name, []).append(np.asarray(value))
    described = {
        "mode_step": "step a = ηλ of each mode",
        "mode_share": "step of each mode / limit",
        "mode_correlation_theory": "correlation of consecutive gradients of each mode",
        "mode_correlation_prompt": "−a/2, the correlation without delay",
        "square_theory": "E g²/σ² of each mode",
        "square_prompt": "2/(2 − a), E g²/σ² without delay",
        "cosine_theory": "cosine of the mixture of modes",
        "cosine_unweighted": "plain mean of the modes' correlations",
        "cosine_shifted": "cosine of the mixture one delay earlier (without delay: later)",
    }
    return {
        f"delays_{name}": (
            ("delays_simulated", "delays_mode")[: columns[name][0].ndim + 1],
            np.array(columns[name]),
            {"long_name": words},
        )
        for name, words in described.items()
    }
