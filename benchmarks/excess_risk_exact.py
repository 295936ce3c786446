"""Speed of the exact recursion at Cora's size, against the same recursion in a NumPy loop.

The state stays in cache, so the floor is arithmetic: about 14 operations a direction and step.
"""

import time
from collections.abc import Callable

import jax
import numpy as np

from boundlab.precision import x64
from boundlab.theory.excess_risk.sgd import stability_limit, tail_averaged_risk

DIM, NUM_SAMPLES, NOISE, ROUNDS = 2485, 4096, 0.25, 7


def numpy_recursion(mu: np.ndarray, power: np.ndarray, step: float) -> tuple[float, float]:
    """Bias and variance by the recursion of the second moments, one step at a time."""
    start, totals = NUM_SAMPLES // 2, []
    for noise, moment in ((0.0, power / mu), (NOISE, np.zeros_like(mu))):
        cross, square = np.zeros_like(mu), np.zeros_like(mu)
        for t in range(NUM_SAMPLES):
            if t >= start:
                square += 2 * cross + moment
                cross = (1 - step * mu) * (cross + moment)
            shrink = 1 - 2 * step * mu + 2 * (step * mu) ** 2
            moment = shrink * moment + step**2 * mu * (mu @ moment + noise)
        totals.append(float(mu @ square) / (NUM_SAMPLES - start) ** 2)
    return totals[0], totals[1]


def seconds(contestant: Callable[[], object]) -> float:
    """Time of one call."""
    began = time.perf_counter()
    contestant()
    return time.perf_counter() - began


def main() -> None:
    """Alternate the two, print medians and their ratio with its spread."""
    mu = 1 / np.arange(1.0, DIM + 1)
    mu, power = mu / mu.sum(), np.full(DIM, 1 / DIM)
    with x64():
        step = 0.5 * float(stability_limit(mu))

        def ours() -> jax.Array:
            profile = tail_averaged_risk(mu, power / mu, NOISE, step, NUM_SAMPLES)
            return jax.block_until_ready(profile)

        bias, variance = (float(np.asarray(part).sum()) for part in ours())
        np.testing.assert_allclose((bias, variance), numpy_recursion(mu, power, step), rtol=1e-9)
        pairs = [
            (seconds(ours), seconds(lambda: numpy_recursion(mu, power, step)))
            for _ in range(ROUNDS)
        ]
    own, other = np.median(pairs, axis=0)
    ratios = [b / a for a, b in pairs]
    operations = 2 * 14 * DIM * NUM_SAMPLES  # of both parts
    print(f"exact recursion, d = {DIM}, N = {NUM_SAMPLES}, float64, bias and variance, warm")
    print(f"tail_averaged_risk  {own * 1e3:7.1f} ms")
    print(
        f"NumPy loop          {other * 1e3:7.1f} ms   {np.median(ratios):.1f}× "
        f"({min(ratios):.1f} – {max(ratios):.1f})"
    )
    print(f"attained            {operations / own / 1e9:7.1f} GFLOP/s on one core, float64")


if __name__ == "__main__":
    main()
