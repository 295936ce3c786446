"""Policy losses and their gradients on (64, 8192) tokens in float32: against PPO, PyTorch and the floor.

    python benchmarks/policy_optimization_losses.py

Each loss of `policy_loss` with its defaults, jitted, value and gradient by `log_prob`; its time over
PPO's in the same round. PPO and GRPO against PyTorch (extra `compare`, left out where it isn't installed)
run eagerly, as policy losses are in use: the same formula, forward and backward, gradient cleared before
each run, in float32 as ours, with as many threads as the machine has cores, as XLA has, and with one, of
which the faster one counts: on a busy machine its threads wait for each other.

The floor is a jitted program that reads log-probabilities, advantages, mask once and writes an array of
the gradient's size, with an addition for all arithmetic. NumPy's copy of as many bytes between two arrays
that stay in the processor's cache is shown beside it; a loss returns new memory. Contestants alternate
within each round, each with the fastest of a few runs; medians over rounds and the middle half of them.
"""

import os
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from boundlab.models.policy_losses import LOSSES, PolicyBatch, policy_loss

SHAPE = (64, 8192)
ROUNDS, REPEATS = 15, 5
# Bytes a token: three arrays of float32 and a bool are read, a float32 is written.
BYTES = 17 * SHAPE[0] * SHAPE[1]
Contestants = dict[str, Callable[[], object]]


def batch() -> PolicyBatch:
    """Half-full to full sequences, 8 a group, 32 a domain; ratios within about 10 % of 1."""
    rng = np.random.default_rng(0)
    old = -rng.exponential(size=SHAPE)
    lengths = rng.integers(SHAPE[1] // 2, SHAPE[1] + 1, size=(SHAPE[0], 1))
    rows = np.arange(SHAPE[0])
    float_arrays = (
        old + 0.1 * rng.standard_normal(SHAPE),
        old,
        np.broadcast_to(rng.standard_normal((SHAPE[0], 1)), SHAPE),
    )
    log_prob, old, advantage = (jnp.asarray(x, jnp.float32) for x in float_arrays)
    mask = jnp.asarray(np.arange(SHAPE[1]) < lengths)
    return PolicyBatch(
        log_prob, old, None, advantage, mask, jnp.asarray(rows // 8), jnp.asarray(rows // 32)
    )


def ours(data: PolicyBatch) -> Contestants:
    """Loss and gradient of every loss; the metrics aren't asked for and cost nothing."""

    def contestant(name: str) -> Callable[[], object]:
        def loss(log_prob: jax.Array, rest: PolicyBatch) -> jax.Array:
            return policy_loss(name)(rest._replace(log_prob=log_prob))[0]

        run = jax.jit(jax.value_and_grad(loss))
        return lambda: run(data.log_prob, data)

    return {name: contestant(name) for name in LOSSES}


def pytorch(data: PolicyBatch) -> Contestants:
    """PPO and GRPO in eager PyTorch."""
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed (extra `compare`): left out")
        return {}
    old, advantage = (torch.tensor(np.asarray(x)) for x in (data.log_prob_old, data.advantage))
    mask = torch.tensor(np.asarray(data.mask)).to(torch.float32)
    log_prob = torch.tensor(np.asarray(data.log_prob), requires_grad=True)

    def contestant(per_sequence: bool, threads: int) -> Callable[[], object]:
        def run() -> object:
            torch.set_num_threads(threads)
            log_prob.grad = None
            ratio = torch.exp(torch.clamp(log_prob - old, -20.0, 20.0))
            clipped = torch.clamp(ratio, 0.8, 1.2)
            losses = -torch.minimum(ratio * advantage, clipped * advantage) * mask
            if per_sequence:
                loss = (losses.sum(dim=1) / mask.sum(dim=1)).mean()
            else:
                loss = losses.sum() / mask.sum()
            loss.backward()
            return loss.detach(), log_prob.grad

        return run

    return {
        f"{name}, PyTorch, {threads}": contestant(name == "grpo", threads)
        for name in ("ppo", "grpo")
        for threads in sorted({1, os.cpu_count() or 1})
    }


def floors(data: PolicyBatch) -> Contestants:
    """What must be read and written at least, and a copy that moves as many bytes."""
    arrays = (data.log_prob, data.log_prob_old, data.advantage)
    once = jax.jit(lambda mask, *rest: jnp.where(mask, sum(rest), 0))
    source = np.ones(BYTES // 8, np.float32)
    target = np.empty_like(source)
    return {
        "floor": lambda: once(data.mask, *arrays),
        "copy, NumPy": lambda: np.copyto(target, source),
    }


def seconds(contestant: Callable[[], object]) -> float:
    """Wall time of the fastest of several runs: what else the machine does comes in bursts."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        jax.block_until_ready(contestant())
        times.append(time.perf_counter() - start)
    return min(times)


def agreement(runs: Contestants) -> None:
    """The contestants compute the same thing: largest difference of gradients, relative."""
    for name in ("ppo", "grpo"):
        if f"{name}, PyTorch, 1" in runs:
            value, gradient = runs[name]()  # type: ignore[misc]
            other_value, other = (x.numpy() for x in runs[f"{name}, PyTorch, 1"]())  # type: ignore
            error = np.abs(gradient - other).max() / np.abs(other).max()
            print(f"{name}: PyTorch's loss differs by {abs(value - other_value):.1e}, "
                  f"its gradient by {error:.1e} of its largest entry")  # fmt: skip


def report(name: str, times: np.ndarray, compared: list[tuple[str, np.ndarray]]) -> None:
    """One line: milliseconds, and each ratio with the middle half of its rounds."""
    line = f"{name:18}{1e3 * np.median(times):8.2f} ms"
    for label, ratio in compared:
        low, middle, high = np.quantile(ratio, [0.25, 0.5, 0.75])
        line += f"   {middle:5.2f} × {label} ({low:.2f} – {high:.2f})"
    print(line)


def main() -> None:
    """All contestants, round after round."""
    data = batch()
    runs = {**ours(data), **pytorch(data), **floors(data)}
    for run in runs.values():
        seconds(run)
    agreement(runs)
    spent = np.array([[seconds(run) for run in runs.values()] for _ in range(ROUNDS)])
    times = dict(zip(runs, spent.T, strict=True))
    print(f"{os.cpu_count()} cores, {BYTES / 1e6:.1f} MB, medians of {ROUNDS} rounds, middle half")
    for name in runs:
        compared = [("PPO", times[name] / times["ppo"]), ("floor", times[name] / times["floor"])]
        report(name, times[name], compared)
    for name in ("ppo", "grpo"):
        others = [spent for key, spent in times.items() if key.startswith(f"{name}, PyTorch")]
        if others:
            best = np.min(others, axis=0)
            report(name, times[name], [("as fast as PyTorch", best / times[name])])


if __name__ == "__main__":
    main()
