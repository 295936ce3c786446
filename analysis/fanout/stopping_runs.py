"""Runs behind the part on stopping rules: recorded losses, and when each rule stops them.

Four rules look at one run: the batch's own loss at its first hit (the authors' mini-batch loop), the same
held for a window, the loss of all train nodes with one fresh sample each, and that with all neighbours.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from boundlab.analysis.fanout.problems import Problem
from boundlab.experiment import Repeat
from boundlab.models.training import FirstHit, held, train

RULES = ("batch", "held", "sampled", "full")


class Setting(NamedTuple):
    """What is trained, and how."""

    network: str
    loss: str
    optimizer: str

    @property
    def name(self) -> str:
        """The setting as a coordinate."""
        return " ".join(self)


def parse(name: str) -> Setting:
    """The setting of a name."""
    return Setting(*name.split())


class Recorded(NamedTuple):
    """Losses of runs before each update; the last two before every `every`-th update."""

    batch: Float[np.ndarray, "seeds sizes fans steps"]
    sampled: Float[np.ndarray, "seeds sizes fans records"]
    full: Float[np.ndarray, "seeds sizes fans records"]
    every: int


class Stops(NamedTuple):
    """T of each run, counted from 1, and whether it never came."""

    iterations: Int[np.ndarray, "..."]
    censored: Bool[np.ndarray, "..."]


def record_runs(
    problem: Problem,
    setting: Setting,
    step_size: float,
    sizes: tuple[int, ...],
    fan_outs: tuple[int, ...],
    steps: int,
    every: int,
    keys: jax.Array,
    repeat: Repeat,
    start: Float[np.ndarray, "r K"],
    dtype: str,
) -> Recorded:
    """Train on all nodes in every cell of the grid, from the kernel `start`."""
    nodes = np.arange(problem.graph.num_nodes)
    x, y, kernel = (
        jnp.asarray(value, dtype=dtype) for value in (problem.features, problem.targets, start)
    )

    def one(params: dict[str, jax.Array], key: jax.Array) -> dict[str, Any]:
        run = train(
            key,
            problem.graph,
            x,
            y,
            nodes,
            network=setting.network,
            loss=setting.loss,
            optimizer=setting.optimizer,
            step_size=step_size,
            batch_size=params["batch_size"],
            fan_out=params["fan_out"],
            num_steps=steps,
            initial_params=kernel,
            max_batch_size=max(sizes),
            max_fan_out=max(fan_outs),
            record_every=every,
        )
        return {"batch": run.batch_loss, "sampled": run.sampled_loss, "full": run.full_loss}

    grid = {"batch_size": np.array(sizes), "fan_out": np.array(fan_outs)}
    found = repeat(f"stopping-{setting.name.replace(' ', '-')}-{len(nodes)}", one, grid, keys)
    ordered = found.transpose("seed", "batch_size", "fan_out", ...)
    batch, sampled, full = (ordered[name].values for name in ("batch", "sampled", "full"))
    return Recorded(batch, sampled, full, every)


@partial(jax.jit, static_argnames="window")
def _held(
    losses: Float[Array, "runs steps"], targets: Float[Array, " runs"], window: int
) -> FirstHit:
    return jax.vmap(lambda row, target: held(row, target, window))(losses, targets)


def stop(losses: Any, targets: Any, window: int = 1, every: int = 1) -> Stops:
    """When losses (…, steps) are at most `targets`, which broadcast against (…), for `window` checks."""
    shape = np.broadcast_shapes(np.shape(losses)[:-1], np.shape(targets))
    flat = np.broadcast_to(losses, (*shape, np.shape(losses)[-1]))
    flat = flat.reshape(-1, flat.shape[-1])
    goals = np.broadcast_to(np.asarray(targets, flat.dtype), shape).ravel()
    hit = _first_held(flat, goals, window=window)
    iterations = (np.asarray(hit.iterations) - 1) * every + 1
    # A run that is never stopped has lasted all its steps.
    last = flat.shape[-1] * every
    iterations = np.where(hit.censored, last, iterations)
    return Stops(iterations.reshape(shape), np.asarray(hit.censored).reshape(shape))


@partial(jax.jit, static_argnames="window")
def _first_held(losses: Any, targets: Any, *, window: int) -> FirstHit:
    return jax.vmap(lambda row, goal: held(row, goal, window))(losses, targets)


def stop_by_rules(recorded: Recorded, target: Any, window: int) -> Stops:
    """All four rules, stacked on the last axis."""
    every = recorded.every
    found = [
        stop(recorded.batch, target),
        stop(recorded.batch, target, window),
        stop(recorded.sampled, target, every=every),
        stop(recorded.full, target, every=every),
    ]
    return Stops(*(np.stack(part, axis=-1) for part in zip(*found, strict=True)))
