"""Euler–Maruyama of `boundlab.models.samplers` against diffrax, on one grid and with one noise.

    python benchmarks/graph_diffusion_euler.py        (needs diffrax, the extra `compare`)

A reverse SDE of 128 × 256 Gaussian coordinates, 1,000 steps, float32. Contestants: `sample`; diffrax's
`Euler` with increments from the same keys, whose result must be the same; with its `UnsafeBrownianPath`
(a fresh draw a step) and with `VirtualBrownianTree` (what its documentation recommends). The floor is
the time to draw the noise alone. Prints medians over rounds in which the contestants alternate.
"""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from boundlab.models import samplers
from boundlab.models import sde as sdes
from boundlab.models.sampler_noise import normal_noise

try:
    import diffrax
    import lineax
except ModuleNotFoundError:
    print(f"{__file__}: needs diffrax, the extra `compare`; skipped")
    raise SystemExit(0) from None


SHAPE, STEPS, ROUNDS = (128, 256), 1000, 5
TIMES = np.linspace(1.0, 1e-3, STEPS + 1).astype(np.float32)
VARIANCES = np.geomspace(0.5, 5.0, SHAPE[1]).astype(np.float32)
VP = sdes.vp(0.1, 20.0)


def score(x: jax.Array, t: jax.Array) -> jax.Array:
    """Of independent Gaussian coordinates."""
    kept = VP.mean_coefficient(t) ** 2
    return -x / (1 + kept * (VARIANCES - 1))[None, :]


def ours(key: jax.Array) -> jax.Array:
    """One batch of samples."""
    return samplers.sample(key, VP, score, TIMES, SHAPE)


def normal(key: jax.Array, purpose: int, k: Any) -> jax.Array:
    """The draws that `sample` documents."""
    key = jax.random.fold_in(key, purpose)
    return normal_noise(key if k is None else jax.random.fold_in(key, k), SHAPE, jnp.float32)


class SameNoise(diffrax.AbstractPath):
    """Increments over the steps of the grid from the keys of `sample`."""

    key: jax.Array
    clock: jax.Array
    t0: float = 0.0
    t1: float = 1.0

    def evaluate(self, t0: Any, t1: Any = None, left: bool = True) -> jax.Array:
        """Increment over the step that begins at t0."""
        k = jnp.searchsorted(self.clock, t0).astype(jnp.int32)
        return normal(self.key, 1, k) * jnp.sqrt(self.clock[k + 1] - self.clock[k])


def theirs(path: Callable[[jax.Array], Any]) -> Callable[[jax.Array], jax.Array]:
    """The same reverse SDE on the reversed clock s = 1 − t."""
    clock = jnp.asarray(1 - TIMES)

    def drift(s: Any, x: Any, args: Any) -> Any:
        del args
        return -sdes.reverse_drift(VP, x, score(x, 1 - s), 1 - s)

    def diffusion(s: Any, x: Any, args: Any) -> Any:
        del args
        return lineax.DiagonalLinearOperator(jnp.full_like(x, VP.diffusion(1 - s)))

    def run(key: jax.Array) -> jax.Array:
        terms = diffrax.MultiTerm(diffrax.ODETerm(drift), diffrax.ControlTerm(diffusion, path(key)))
        solution = diffrax.diffeqsolve(
            terms,
            diffrax.Euler(),
            clock[0],
            clock[-1],
            None,
            normal(key, 0, None),
            stepsize_controller=diffrax.StepTo(ts=clock),
            adjoint=diffrax.DirectAdjoint(),
            max_steps=STEPS + 1,
        )
        return solution.ys[-1]

    return jax.jit(run)


def draws(key: jax.Array) -> jax.Array:
    """The noise of one batch, added up so that it must be made."""

    def step(total: jax.Array, k: jax.Array) -> tuple[jax.Array, None]:
        return total + normal(key, 1, k), None

    return jax.lax.scan(step, normal(key, 0, None), jnp.arange(STEPS, dtype=jnp.int32))[0]


def seconds(contestant: Callable[[], object]) -> float:
    """Wall time of one call, until its result is there."""
    start = time.perf_counter()
    jax.block_until_ready(contestant())
    return time.perf_counter() - start


def main() -> None:
    """Time the contestants in turn; print medians and ratios."""
    key = jax.random.key(0)
    span = {"t0": 0.0, "t1": 1.0}
    shape = jax.ShapeDtypeStruct(SHAPE, jnp.float32)
    tolerance = float(-np.diff(TIMES).max() / 2)
    runs = {
        "sample": jax.jit(ours),
        "diffrax, the same noise": theirs(lambda k: SameNoise(k, jnp.asarray(1 - TIMES))),
        "diffrax, UnsafeBrownianPath": theirs(lambda k: diffrax.UnsafeBrownianPath(shape, k)),
        "diffrax, VirtualBrownianTree": theirs(
            lambda k: diffrax.VirtualBrownianTree(**span, tol=tolerance, shape=shape, key=k)
        ),
        "floor: the noise alone": jax.jit(draws),
    }
    results = [np.asarray(run(key)) for run in runs.values()]
    apart = np.abs(results[0] - results[1]).max()
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            times[name].append(1e3 * seconds(lambda run=run: run(key)))
    print(f"{SHAPE[0]} × {SHAPE[1]} coordinates, {STEPS} steps, float32, {ROUNDS} rounds")
    print(f"{'':32}{'ms':>8}{'it / sample':>13}{'(min – max)':>16}")
    for name, spent in times.items():
        ratio = np.array(spent) / np.array(times["sample"])
        spread = f"({ratio.min():.2f} – {ratio.max():.2f})"
        print(f"{name:32}{np.median(spent):8.1f}{np.median(ratio):13.2f}{spread:>16}")
    print(f"largest difference with the same noise: {apart:.1e}")


if __name__ == "__main__":
    main()
