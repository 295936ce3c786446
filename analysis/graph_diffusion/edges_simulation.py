"""Edges sampled with the exact score, and edges noised, to hold against the theory of `edges`.

The scores are those of two atoms in the tanh form, written here from the schedule's mean and variance.
Symbols: a ∈ {low, high}, P(high) = p, x = m a + σ ξ; centre and half the gap of the two values.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.graph_diffusion.config import Config
from boundlab.experiment import Repeat
from boundlab.models import samplers, sde

BETA_MIN = 0.1
# Pairs (late, early) of OU times between which the score's increments are measured.
TIME_PAIRS = ((1.0, 0.8), (0.3, 0.2), (0.15, 0.12))


class Atoms(NamedTuple):
    """The law of one edge; numbers or arrays of a case each."""

    probability: Any
    low: Any
    high: Any

    def mean(self, x: jax.Array, mean: jax.Array, variance: jax.Array) -> jax.Array:
        """E[a | x]: centre + half·tanh(m·half·(x − m·centre)/σ² + ½ log p/(1 − p))."""
        centre, half = 0.5 * (self.low + self.high), 0.5 * (self.high - self.low)
        odds = 0.5 * (jnp.log(self.probability) - jnp.log1p(-self.probability))
        return centre + half * jnp.tanh(mean * half * (x - mean * centre) / variance + odds)

    def score(self, x: jax.Array, mean: jax.Array, variance: jax.Array) -> jax.Array:
        """(m E[a | x] − x)/σ²."""
        return (mean * self.mean(x, mean, variance) - x) / variance

    def draw(self, uniform: jax.Array) -> jax.Array:
        """Clean edges from uniform numbers."""
        return jnp.where(uniform < self.probability, self.high, self.low)


def simulated(
    config: Config,
    key: jax.Array,
    repeat: Repeat,
    schedules: dict[str, np.ndarray],
    cases: dict[str, np.ndarray],
    grids: np.ndarray,
) -> xr.Dataset:
    """Shares of edges by every schedule and grid, and squares of scores, a seed each.

    `schedules`: arrays of equal length `probability`, `beta_max`, `noised` (1 where the start is the
    noised data); `cases`: `probability`, `low`, `high`; `grids`: times, a row each, padded by their last
    one, which adds steps that do nothing. All cases share their seed's noise. In float32: sampling
    noise is far above its rounding.
    """
    dtype = jnp.float32
    runs = {name: jnp.asarray(values, dtype) for name, values in schedules.items()}
    atoms = Atoms(*(jnp.asarray(cases[name], dtype) for name in Atoms._fields))
    times = jnp.linspace(1.0, 0.0, config.edges_steps + 1, dtype=dtype)
    table = jnp.asarray(grids, dtype)
    pairs = jnp.asarray(TIME_PAIRS, dtype)
    shape = (config.edges_draws,)

    def share(sampled: jax.Array, threshold: Any) -> jax.Array:
        return jnp.mean(sampled > threshold, dtype=dtype)

    def by_schedule(run: dict[str, jax.Array], keys: jax.Array) -> jax.Array:
        law = Atoms(run["probability"], dtype(0), dtype(1))
        process = sde.vp(dtype(BETA_MIN), run["beta_max"])

        def score(x: jax.Array, t: jax.Array) -> jax.Array:
            return law.score(x, process.mean_coefficient(t), process.variance(t))

        noise = jax.random.normal(keys[0], shape, dtype)
        clean = law.draw(jax.random.uniform(keys[1], shape, dtype))
        mean, std = process.mean_coefficient(times[0]), jnp.sqrt(process.variance(times[0]))
        start = jnp.where(run["noised"] > 0, mean * clean + std * noise, noise)
        x = samplers.sample(keys[2], process, score, times, shape, start=start)
        return share(x, 0.5)

    def by_grid(law: Atoms, grid: jax.Array, key: jax.Array) -> jax.Array:
        process = sde.ou()

        def score(x: jax.Array, t: jax.Array) -> jax.Array:
            return law.score(x, process.mean_coefficient(t), process.variance(t))

        x = samplers.sample(key, process, score, grid, shape, "exponential_integrator")
        return share(x, 0.5 * process.mean_coefficient(grid[-1]) * (law.low + law.high))

    def increments(law: Atoms, pair: jax.Array, keys: jax.Array) -> dict[str, jax.Array]:
        late, early = pair[0], pair[1]
        process = sde.ou()
        mean, variance = process.mean_coefficient(early), process.variance(early)
        clean = law.draw(jax.random.uniform(keys[0], shape, dtype))
        x = mean * clean + jnp.sqrt(variance) * jax.random.normal(keys[1], shape, dtype)
        gap = late - early
        noise = jnp.sqrt(process.variance(gap)) * jax.random.normal(keys[2], shape, dtype)
        y = process.mean_coefficient(gap) * x + noise
        before = law.score(x, mean, variance)
        after = law.score(y, process.mean_coefficient(late), process.variance(late))
        guess = law.mean(x, mean, variance)
        return {
            "fisher": jnp.mean(before**2),
            "mmse": jnp.mean((clean - guess) ** 2),
            "increment": jnp.mean((before - after) ** 2),
        }

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
        keys = jax.random.split(key, 7)
        over_grids = jax.vmap(jax.vmap(by_grid, (None, 0, None)), (Atoms(0, 0, 0), None, None))
        over_pairs = jax.vmap(jax.vmap(increments, (None, 0, None)), (Atoms(0, 0, 0), None, None))
        return {
            "schedule": jax.vmap(by_schedule, (0, None))(runs, keys[:3]),
            "grid": over_grids(atoms, table, keys[3]),
            **over_pairs(atoms, pairs, keys[4:]),
        }

    seeds = jax.random.split(key, config.edges_seeds)
    return repeat("edges", one, {}, seeds, batch_size=8)
