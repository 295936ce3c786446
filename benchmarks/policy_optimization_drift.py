"""Inner loops of policy losses on a small tree of sequences: 11 seeds × 6 losses × 500 steps.

    python benchmarks/policy_optimization_drift.py

3 tokens, horizon 4, every sequence with its exact weight, plain gradient ascent in float64, mean |r − 1|
recorded at each step. One program a loss holds all seeds and steps (vmap over a scan); its compilations
are counted. The other contestant is what one would write first: a jitted step of one seed in a
Python loop, its times for one loss scaled from one seed to all. Contestants alternate; medians of rounds.
"""

import time
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from boundlab.models.policy_losses import PolicyBatch, policy_loss
from boundlab.models.tabular import sequence_log_probs, sequence_table, solve_tree

TOKENS, HORIZON, SEEDS, STEPS, STEP_SIZE = 3, 4, 11, 500, 0.5
FIBER = {"budget_plus": 0.12, "budget_minus": 0.05, "epsilon": 0.04}
LOSSES = {
    "fiberpo": FIBER,
    "grpo": {"epsilon_low": 0.2, "epsilon_high": 0.2},
    "gspo": {"epsilon_low": 0.01, "epsilon_high": 0.01},
    "fiberpo pessimistic": {**FIBER, "pessimistic": True},
    "apc": {"radius": 0.1},
    "sapo": {},
}
ROUNDS = 3
LIMIT_SECONDS = 30


def tasks() -> tuple[np.ndarray, np.ndarray]:
    """Logits of the old policies (seeds, prefixes, tokens) and rewards of the leaves, 0 or 1."""
    rng = np.random.default_rng(0)
    prefixes = sum(TOKENS**t for t in range(HORIZON))
    logits = 0.7 * rng.standard_normal((SEEDS, prefixes, TOKENS))
    return logits, (rng.random((SEEDS, TOKENS**HORIZON)) < 0.3).astype(float)


def prepare(start: jax.Array, reward: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Of the old policy: log-probabilities, weights of sequences, advantages times these weights."""
    old = sequence_log_probs(jax.nn.log_softmax(start), HORIZON)
    law = jnp.exp(jnp.sum(old, axis=1, keepdims=True))
    table = sequence_table(TOKENS, HORIZON)
    advantage = solve_tree(jax.nn.log_softmax(start), reward).advantage[table.prefix, table.token]
    return old, law, law * advantage


def inner_step(
    name: str, logits: jax.Array, old: jax.Array, law: jax.Array, advantage: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """One step of gradient ascent on the loss of all sequences, and the mean |r − 1| before it."""
    loss = policy_loss(
        name.split()[0], aggregation="seq-mean-token-sum", denominator=1.0, **LOSSES[name]
    )

    def value(logits: jax.Array) -> tuple[jax.Array, jax.Array]:
        now = sequence_log_probs(jax.nn.log_softmax(logits), HORIZON)
        away = jnp.sum(law * jnp.abs(jnp.expm1(now - old))) / HORIZON
        batch = PolicyBatch(now, old, None, advantage, np.ones(now.shape, bool))
        return loss(batch)[0], away

    slope, away = jax.grad(value, has_aux=True)(logits)
    return logits - STEP_SIZE * slope, away


def whole(name: str) -> Callable[[np.ndarray, np.ndarray], jax.Array]:
    """All seeds and steps of a loss in one program: drift (seeds, steps)."""

    def run(start: jax.Array, reward: jax.Array) -> jax.Array:
        fixed = prepare(start, reward)

        def step(logits: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
            return inner_step(name, logits, *fixed)

        return jax.lax.scan(step, start, None, length=STEPS)[1]

    return jax.jit(jax.vmap(run))


def looped(name: str) -> Callable[[np.ndarray, np.ndarray], jax.Array]:
    """One seed, a jitted step in a Python loop; what doesn't change is computed once."""
    first, step = jax.jit(prepare), jax.jit(partial(inner_step, name))

    def run(start: np.ndarray, reward: np.ndarray) -> jax.Array:
        logits, drift = jnp.asarray(start), []
        fixed = first(start, reward)
        for _ in range(STEPS):
            logits, away = step(logits, *fixed)
            drift.append(away)
        return jnp.stack(drift)

    return run


def seconds(run: Callable[[], object]) -> float:
    """Wall time of one call, until its result is there."""
    start = time.perf_counter()
    jax.block_until_ready(run())
    return time.perf_counter() - start


def main() -> None:
    """First calls with their compilations, then both contestants in turn."""
    compiled: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, _, **__: compiled.append(event) if "backend_compile" in event else None
    )
    with jax.enable_x64(True):
        logits, reward = tasks()
        programs = {name: whole(name) for name in LOSSES}
        total, counts, drifts = 0.0, [], {}
        for name, program in programs.items():
            before = len(compiled)
            total += seconds(lambda run=program: run(logits, reward))  # type: ignore[misc]
            counts.append(len(compiled) - before)
            drifts[name] = float(np.median(program(logits, reward)[:, -1]))
        print(f"{SEEDS} seeds × {len(LOSSES)} losses × {STEPS} steps, cold: {total:.1f} s "
              f"(target {LIMIT_SECONDS}), compilations a loss: {counts}")  # fmt: skip
        print("  median drift after the last step: "
              + ", ".join(f"{name} {value:.3f}" for name, value in drifts.items()))  # fmt: skip
        loop = looped("fiberpo")
        one = programs["fiberpo"]
        np.testing.assert_allclose(loop(logits[0], reward[0]), one(logits, reward)[0], rtol=1e-9)
        ratios, times = [], []
        for _ in range(ROUNDS):
            times.append(seconds(lambda: one(logits, reward)))
            ratios.append(SEEDS * seconds(lambda: loop(logits[0], reward[0])) / times[-1])
        spread = f"({min(ratios):.0f} – {max(ratios):.0f})"
        print(f"warm, fiberpo: {np.median(times):.2f} s; a Python loop over steps and seeds takes "
              f"{np.median(ratios):.0f} times as long {spread}")  # fmt: skip


if __name__ == "__main__":
    main()
