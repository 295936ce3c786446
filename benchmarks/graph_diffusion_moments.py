"""Exact moments of a sampler on Gaussian modes: 256 modes, 1,000 steps, 100 configurations.

A configuration is a horizon; all are one batch of one scan over the steps. The contestant is the same
recursion in NumPy: a Python loop over steps, vectorised over modes and configurations, and one that also
loops over configurations. Both must agree to rounding. Prints medians and ratios; times are warm.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np

from boundlab.precision import x64
from boundlab.theory.graph_diffusion import reverse_moments, time_grid

EARLY_STOP = 0.01
ROUNDS = 7
TARGET_SECONDS = 1.0


def with_boundlab(
    eigenvalues: np.ndarray, horizons: np.ndarray, steps: int
) -> Callable[[], object]:
    """One compiled program for all horizons."""

    @jax.jit
    @jax.vmap
    def moments(horizon: jax.Array) -> tuple[jax.Array, jax.Array]:
        grid = time_grid(horizon, EARLY_STOP, steps, "uniform")
        return reverse_moments(
            eigenvalues, grid, "exponential_integrator", 0.1, 0.2, 0.5 * eigenvalues
        )

    given = jnp.asarray(horizons)
    return lambda: jax.block_until_ready(moments(given))


def with_numpy(
    eigenvalues: np.ndarray, horizons: np.ndarray, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """The recursion as a loop over steps; horizons along the first axis."""
    lam, center = eigenvalues[None, :], 0.5 * eigenvalues[None, :]
    grids = np.linspace(horizons, EARLY_STOP, steps + 1)
    m, u = np.zeros((2, len(horizons), len(eigenvalues)))
    u += 1.0
    for tau, t in pairwise(grids[..., None]):
        h = tau - t
        v = 1 + (lam - 1) * np.exp(-2 * tau)
        score = 2 * np.expm1(h)
        slope = score * 1.1 / v
        a = np.exp(h) - slope
        m = a * m + slope * np.exp(-tau) * center + score * 0.2
        u = a**2 * u + np.expm1(2 * h)
    return m, u


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    """Contestants take turns; ratios are over the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modes", type=int, default=256)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--configurations", type=int, default=100)
    size = parser.parse_args()
    eigenvalues = np.geomspace(0.05, 20.0, size.modes)
    horizons = np.linspace(0.5, 5.0, size.configurations)
    with x64():
        fast = with_boundlab(eigenvalues, horizons, size.steps)
        cold = seconds(fast)
        found = fast()
        contestants: dict[str, Callable[[], object]] = {
            "boundlab": fast,
            "NumPy, all configurations at once": lambda: with_numpy(
                eigenvalues, horizons, size.steps
            ),
            "NumPy, one configuration at a time": lambda: [
                with_numpy(eigenvalues, horizons[i : i + 1], size.steps)
                for i in range(len(horizons))
            ],
        }
        expected = with_numpy(eigenvalues, horizons, size.steps)
        for value, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(value, other, rtol=1e-10, atol=1e-10)
        times: dict[str, list[float]] = {name: [] for name in contestants}
        for _ in range(ROUNDS):
            for name, call in contestants.items():
                times[name].append(seconds(call))
    medians = {name: statistics.median(values) for name, values in times.items()}
    cells = size.modes * size.steps * size.configurations
    print(f"{size.modes} modes, {size.steps} steps, {size.configurations} configurations, float64")
    print(f"boundlab cold, with compilation: {cold:.2f} s")
    for name, median in medians.items():
        ratio = median / medians["boundlab"]
        print(
            f"{name:36s} {median:8.4f} s {1e9 * median / cells:7.2f} ns a cell  ratio {ratio:6.2f}"
        )
    verdict = "met" if medians["boundlab"] < TARGET_SECONDS else "missed"
    print(f"target: under {TARGET_SECONDS:g} s warm: {verdict}")


if __name__ == "__main__":
    main()
