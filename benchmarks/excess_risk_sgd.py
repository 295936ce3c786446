"""Speed of simulated one-pass SGD against what one would otherwise use, as ratios in one run.

512 runs of N = 1,024 samples in d = 256 dimensions, float32, tail average from N/2, everything drawn
inside. Contestants: `simulate_sgd` under vmap; NumPy vectorised over the runs; scikit-learn's
`SGDRegressor`, run by run. The floor is drawing the same normal numbers with JAX in the same loop
and adding them up: no simulation that draws its data can go below it.

The contestants alternate, since the machine's speed drifts; ratios are taken within a round. Run
with `python benchmarks/excess_risk_sgd.py`.
"""

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from boundlab.models.linear_gnn import simulate_sgd
from boundlab.models.linear_gnn_sgd import BLOCK

NUM_RUNS, NUM_SAMPLES, DIMENSION = 512, 1024, 256
NOISE_STD, STEP_SIZE = 0.5, 0.3
ROUNDS = 7
SCIKIT_RUNS = 32  # its time is proportional to the runs

# The operator in its own eigenbasis: eigenvalues i^{-1/2}, tr M = 1; one teacher.
OPERATOR = np.arange(1, DIMENSION + 1, dtype=np.float32) ** -0.5
OPERATOR /= np.sqrt(np.sum(OPERATOR**2))
TEACHER = np.ones(DIMENSION, np.float32)


@jax.jit
@jax.vmap
def draw_only(key: jax.Array) -> jax.Array:
    """The random numbers of one run, added up so that they must be made."""

    def block(total: jax.Array, key: jax.Array) -> tuple[jax.Array, None]:
        return total + jax.random.normal(key, (BLOCK, DIMENSION), jnp.float32).sum(), None

    blocks = jax.random.split(key, NUM_SAMPLES // BLOCK)
    return jax.lax.scan(block, jnp.float32(0), blocks)[0]


def simulation(operator: np.ndarray) -> Callable[[jax.Array], jax.Array]:
    """All runs at once on one operator, matrix or diagonal."""

    def run(key: jax.Array, operator: jax.Array) -> jax.Array:
        return simulate_sgd(key, operator, TEACHER, NOISE_STD, STEP_SIZE, NUM_SAMPLES)

    batched = jax.jit(jax.vmap(run, in_axes=(0, None)))
    return lambda keys: batched(keys, operator)


def numpy_runs() -> np.ndarray:
    """The same runs in NumPy, vectorised over runs, one sample at a time; returns the risks."""
    rng = np.random.default_rng(0)
    delta = np.tile(-TEACHER, (NUM_RUNS, 1))
    total = np.zeros_like(delta)
    for t in range(NUM_SAMPLES):
        if t >= NUM_SAMPLES // 2:
            total += delta
        if t == NUM_SAMPLES - 1:
            break
        m = rng.standard_normal((NUM_RUNS, DIMENSION), dtype=np.float32)
        m *= OPERATOR
        noise = NOISE_STD * rng.standard_normal(NUM_RUNS, dtype=np.float32)
        residual = np.einsum("ij,ij->i", m, delta) - noise
        m *= np.float32(STEP_SIZE) * residual[:, None]
        delta -= m
    return np.sum((OPERATOR * total / (NUM_SAMPLES // 2)) ** 2, axis=1)


def scikit_runs() -> np.ndarray:
    """`SGDRegressor` on as many fresh data sets, one pass at a constant rate; returns the risks."""
    from sklearn.linear_model import SGDRegressor

    rng = np.random.default_rng(0)
    risks = []
    for _ in range(SCIKIT_RUNS):
        m = rng.standard_normal((NUM_SAMPLES - 1, DIMENSION), dtype=np.float32) * OPERATOR
        noise = NOISE_STD * rng.standard_normal(NUM_SAMPLES - 1, dtype=np.float32)
        model = SGDRegressor(
            penalty=None,
            learning_rate="constant",
            eta0=STEP_SIZE,
            average=NUM_SAMPLES // 2,
            fit_intercept=False,
            shuffle=False,
            max_iter=1,
            tol=None,
        )
        model.fit(m, m @ TEACHER + noise)
        risks.append(np.sum((OPERATOR * (model.coef_ - TEACHER)) ** 2))
    return np.array(risks)


def seconds(contestant: Callable[[], object]) -> float:
    """Wall time of one call, until its result is there."""
    start = time.perf_counter()
    jax.block_until_ready(contestant())
    return time.perf_counter() - start


def main() -> None:
    """Time the contestants in turn and print medians and ratios."""
    keys = jax.random.split(jax.random.key(0, impl="threefry2x32"), NUM_RUNS)
    rbg_keys = jax.random.split(jax.random.key(0, impl="rbg"), NUM_RUNS)
    diagonal, matrix = simulation(OPERATOR), simulation(np.diag(OPERATOR))
    contestants: dict[str, tuple[Callable[[], object], int]] = {
        "simulate_sgd, diagonal operator": (lambda: diagonal(keys), NUM_RUNS),
        "floor: drawing the numbers": (lambda: draw_only(keys), NUM_RUNS),
        "simulate_sgd, matrix operator": (lambda: matrix(keys), NUM_RUNS),
        "simulate_sgd, one run a call": (lambda: diagonal(keys[:1]), 1),
        "NumPy, vectorised over runs": (numpy_runs, NUM_RUNS),
        "scikit-learn, run by run": (scikit_runs, SCIKIT_RUNS),
        "simulate_sgd, rbg keys": (lambda: diagonal(rbg_keys), NUM_RUNS),
    }
    for contestant, _ in contestants.values():
        seconds(contestant)  # compile, and import what is imported late
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, (contestant, runs) in contestants.items():
            times[name].append(seconds(contestant) / runs)
    ours = np.array(times["simulate_sgd, diagonal operator"])
    print(f"{NUM_RUNS} runs, N = {NUM_SAMPLES}, d = {DIMENSION}, float32, {ROUNDS} rounds")
    print(f"{'':34}{'ms a run':>10}{'time / ours':>14}{'(min – max)':>18}")
    for name, spent in times.items():
        ratio = np.array(spent) / ours
        spread = f"({ratio.min():.2f} – {ratio.max():.2f})"
        print(f"{name:34}{1e3 * np.median(spent):10.3f}{np.median(ratio):14.2f}{spread:>18}")
    floor = ours / np.array(times["floor: drawing the numbers"])
    print(
        f"distance from the floor: {np.median(floor):.2f}× ({floor.min():.2f} – {floor.max():.2f})"
    )

    risks = {
        "simulate_sgd": np.asarray(diagonal(keys)),
        "NumPy": numpy_runs(),
        "scikit-learn": scikit_runs(),
    }
    for name, values in risks.items():
        error = values.std() / np.sqrt(len(values))
        print(f"mean risk, {name}: {values.mean():.4f} ± {error:.4f}")
    half = slice(NUM_RUNS // 2, None)
    for name, batch in (("threefry", keys), ("rbg", rbg_keys)):
        drift = np.max(np.abs(np.asarray(diagonal(batch[half]) / diagonal(batch)[half]) - 1))
        print(f"{name} keys, half of the runs alone: their risks change by up to {drift:.1%}")


if __name__ == "__main__":
    main()
