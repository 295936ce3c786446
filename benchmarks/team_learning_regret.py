"""Exact regret of a joint learner: 200 budgets, 50 couplings, 6 team sizes, by the Bechhofer integral.

A cell is one budget of one coupling of one team size. The contestants are the same integral as a user
would write it in NumPy and SciPy: one z-grid of 6,001 points a group, a loop over cells; and the same
vectorised over budgets. They are timed on a few couplings and budgets of each team size, and scaled by
the number of cells. All must agree to 1e-9 of the regret. Prints medians and ratios; times are warm.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

from boundlab.precision import x64
from boundlab.theory.team_learning import parity_spectrum, team_regret

ACTIONS, GAP, TEAMS = 4, 0.6, (1, 2, 3, 4, 5, 6)
Z = np.linspace(-9.0, 9.0, 6001)
ROUNDS = 5
TARGET_SECONDS = 2.0


def with_boundlab(couplings: np.ndarray, budgets: np.ndarray) -> Callable[[], list[np.ndarray]]:
    """One program a team size, over couplings in turn; the programs share the machine's cores."""

    def curves(agents: int) -> Callable[[jax.Array], jax.Array]:
        def one(coupling: jax.Array) -> jax.Array:
            task = SimpleNamespace(
                num_actions=ACTIONS,
                num_agents=agents,
                gap=GAP,
                coupling=coupling,
                own_noise_std=1.0,
                outcome_noise_std=None,
            )
            return team_regret(budgets, task, "joint")

        return jax.jit(lambda given: jax.lax.map(one, given))

    programs, given = [curves(agents) for agents in TEAMS], jnp.asarray(couplings)

    def computed(program: Callable[[jax.Array], jax.Array]) -> np.ndarray:
        with x64():
            return np.asarray(program(given))

    # Largest first, so that the threads end together.
    pool = ThreadPoolExecutor()
    return lambda: list(pool.map(computed, programs[::-1]))[::-1]


def spectrum(agents: int, coupling: float) -> tuple[np.ndarray, np.ndarray]:
    values, counts = (np.asarray(row) for row in parity_spectrum(ACTIONS, agents, GAP, coupling))
    return values[counts > 0], counts[counts > 0]


def with_scipy(values: np.ndarray, counts: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Regret at each scale √m/σ: an integral for each group, vectorised over the scales given."""
    regret = np.zeros(len(scales))
    density = np.exp(-0.5 * Z**2) / np.sqrt(2 * np.pi) * (Z[1] - Z[0])
    for v, c in zip(values, counts, strict=True):
        log_f = (c - 1) * scipy.special.log_ndtr(Z)[None, :]
        for w, d in zip(values, counts, strict=True):
            if w != v:
                log_f = log_f + d * scipy.special.log_ndtr(Z + (v - w) * scales[:, None])
        regret += (values.max() - v) * c * (np.exp(log_f) @ density)
    return regret


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    """Contestants take turns; ratios are over the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budgets", type=int, default=200)
    parser.add_argument("--couplings", type=int, default=50)
    parser.add_argument("--sample", type=int, default=8, help="cells of each team size for SciPy")
    size = parser.parse_args()
    # Couplings off the ties λ = jΔ/K, where two groups of the plain integral would coincide.
    couplings = np.linspace(0.0, 1.0, size.couplings) + 1e-3
    budgets = np.geomspace(10.0, 1e5, size.budgets)
    cells = size.budgets * size.couplings * len(TEAMS)
    with x64():
        fast = with_boundlab(couplings, budgets)
        cold = seconds(fast)
        found = fast()
        rng = np.random.default_rng(0)
        sample = [(rng.integers(size.couplings), agents) for agents in TEAMS]
        places = np.sort(rng.choice(size.budgets, size.sample, replace=False))
        jobs = []
        for at, agents in sample:
            scales = np.sqrt(budgets[places] / ACTIONS**agents * agents)
            jobs.append((*spectrum(agents, float(couplings[at])), scales))
        for (at, agents), job, curves in zip(sample, jobs, found, strict=True):
            expected = with_scipy(*job)
            kept = expected > 1e-12
            message = f"{agents} agents"
            np.testing.assert_allclose(
                curves[at][places][kept], expected[kept], rtol=1e-9, err_msg=message
            )

        def one_by_one() -> None:
            for values, counts, scales in jobs:
                for i in range(len(scales)):
                    with_scipy(values, counts, scales[i : i + 1])

        contestants: dict[str, tuple[Callable[[], object], float]] = {
            "boundlab": (fast, 1.0),
            "SciPy, a cell at a time": (one_by_one, cells / (len(TEAMS) * size.sample)),
            "SciPy, budgets at once": (
                lambda: [with_scipy(*job) for job in jobs],
                cells / (len(TEAMS) * size.sample),
            ),
        }
        times: dict[str, list[float]] = {name: [] for name in contestants}
        for _ in range(ROUNDS):
            for name, (call, scale) in contestants.items():
                times[name].append(scale * seconds(call))
    medians = {name: statistics.median(values) for name, values in times.items()}
    print(f"{size.budgets} budgets, {size.couplings} couplings, {len(TEAMS)} team sizes, float64")
    print(f"boundlab cold, with compilation: {cold:.2f} s")
    for name, median in medians.items():
        ratio, scaled = median / medians["boundlab"], "" if name == "boundlab" else "  (scaled)"
        each = 1e6 * median / cells
        print(f"{name:26s} {median:9.3f} s {each:8.2f} µs a cell  ratio {ratio:7.1f}{scaled}")
    verdict = "met" if medians["boundlab"] < TARGET_SECONDS else "missed"
    print(f"target: under {TARGET_SECONDS:g} s warm: {verdict}")


if __name__ == "__main__":
    main()
