"""Training of character models: a supervised start, then policy optimisation with stale samples.

Symbols: E entries (seeds, times whatever is compared), each with its own parameters; one program trains
them all. What an update does is in `policy_updates`. Everything is float32.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from boundlab.checks import check_integer, check_number, check_shape, fail
from boundlab.models.character_model import DTYPE, CharacterModel, init_model, token_log_probs
from boundlab.models.character_tasks import PAD, task_reward
from boundlab.models.policy_updates import (
    PolicyRecord,
    PolicyState,
    policy_update,
    respond,
    task_sizes,
    unraveller,
)
from boundlab.models.policy_updates import PolicyTraining as PolicyTraining
from boundlab.precision import is_traced, standard_promotion
from boundlab.typing import Count

# Folded into an entry's key for what held-out prompts need; updates take the numbers below.
_LOOK = np.int32(2**31 - 1)


class PolicyRun(NamedTuple):
    """Result of `optimize_policy`."""

    params: Any
    """Parameters of each entry after the last update, leaves (E, …)."""
    records: PolicyRecord
    """Arrays (chunks, E)."""


def supervised_start(
    keys: Any,
    model: Any,
    task: Any,
    *,
    num_steps: Count,
    batch_size: Count = 128,
    step_size: Any = 3e-3,
    chunk_steps: Count = 100,
    advance: Any = None,
) -> tuple[Any, Float[np.ndarray, "chunks E"]]:
    """Train models from scratch on right answers to training prompts, by Adam.

    The loss is the mean over responses of −log π of the whole response, `END` included.

    Args:
        keys: (E,) typed keys, one a model: initial parameters and batches.
        model: the network.
        task: whose prompts that are not held out are trained on.
        num_steps: ≥ 1, a multiple of `chunk_steps`.
        batch_size: examples of a step, drawn with replacement.
        step_size: of Adam, > 0; a traced number of the program, so another needs no new one.
        chunk_steps: steps of one compiled chunk.
        advance: what runs the chunks, as `boundlab.long_runs.advance` with its checkpoint and
            progress; by default a plain loop.

    Returns:
        Parameters, leaves (E, …), and the mean loss of each chunk.

    Raises:
        ValueError: naming the argument.

    Source: derived, docs/policy_optimization.md#language-model.

    """
    check_shape("keys", keys, (None,), "typed keys")
    chunk = check_integer("chunk_steps", chunk_steps, 1)
    total = check_integer("num_steps", num_steps, 1)
    size = check_integer("batch_size", batch_size, 1)
    check_number("step_size", step_size, 0, low_open=True)
    if total % chunk:
        raise fail("num_steps", total, f"a multiple of chunk_steps = {chunk}")
    prompt, places = task_sizes(model, task)
    texts = np.concatenate([task.prompts, task.answers], axis=1)[places]
    unravel = unraveller(model)
    optimizer = optax.scale_by_adam()

    def loss(vector: jax.Array, batch: jax.Array) -> jax.Array:
        log_prob, _ = token_log_probs(model, unravel(vector), batch, prompt)
        return -jnp.sum(jnp.where(batch[:, prompt:] == PAD, 0, log_prob)) / np.float32(size)

    def step(state: Any, place: jax.Array) -> tuple[Any, jax.Array]:
        vector, memory, key, rate = state
        own = jax.random.fold_in(key, place)
        chosen = jax.random.randint(own, (size,), 0, len(texts), np.int32)
        value, slope = jax.value_and_grad(loss)(vector, jnp.asarray(texts)[chosen])
        with standard_promotion():  # optax counts steps in integers
            direction, memory = optimizer.update(slope, memory)
        return (vector - rate * direction, memory, key, rate), value

    def fn(state: Any) -> tuple[Any, jax.Array]:
        def one(entry: Any) -> tuple[Any, jax.Array]:
            inner, done = entry
            steps = done + jnp.arange(chunk, dtype=np.int32)
            inner, losses = jax.lax.scan(step, inner, steps)
            return (inner, done + np.int32(chunk)), losses.mean()

        return jax.lax.map(one, state)

    def begin(vector: jax.Array, key: jax.Array) -> Any:
        with standard_promotion():
            memory = optimizer.init(vector)
        rate = jnp.asarray(step_size).astype(DTYPE)
        return (vector, memory, key, rate), jnp.zeros((), np.int32)

    state = jax.jit(jax.vmap(begin))(*_initial(model)(keys))
    run = _loop if advance is None else advance
    state, losses = run(fn, state, total // chunk)
    return _unvectored(state[0][0], model), np.asarray(losses)


def optimize_policy(
    keys: Any,
    model: Any,
    task: Any,
    params: Any,
    training: Any,
    *,
    num_updates: Count,
    step_size: Any,
    delay: Any = 0,
    aligned: Any = False,
    chunk_updates: Count = 10,
    advance: Any = None,
) -> PolicyRun:
    """Improve each entry's model by `training`, on samples that are `delay` updates old.

    With `advance=functools.partial(boundlab.long_runs.advance, checkpoint=path)` the training shows a
    bar and, killed, is continued by the same call to the same bits.

    Args:
        keys: (E,) typed keys; entries with equal ones are given the same prompts and noise.
        model: the network.
        task: whose prompts that are not held out are trained on.
        params: where each entry starts, leaves (E, …).
        training: what one update does.
        num_updates: ≥ 1, a multiple of `chunk_updates`.
        step_size: > 0, one, or one an entry (E,).
        delay: τ of each entry, integers in [0, max_delay]; before update τ the first parameters draw.
        aligned: whether the entry's gradients go through alignment control, bool.
        chunk_updates: updates of one compiled chunk, after which held-out prompts are answered.
        advance: what runs the chunks, as for `supervised_start`.

    Returns:
        `PolicyRun`.

    Raises:
        ValueError: naming the argument.

    Source: derived, docs/policy_optimization.md#language-model.

    """
    check_shape("keys", keys, (None,), "typed keys, one an entry")
    count = len(keys)
    chunk = check_integer("chunk_updates", chunk_updates, 1)
    total = check_integer("num_updates", num_updates, 1)
    if total % chunk:
        raise fail("num_updates", total, f"a multiple of chunk_updates = {chunk}")
    if not isinstance(training, PolicyTraining):
        raise fail("training", f"a {type(training).__name__}", "a PolicyTraining")
    rates = _per_entry("step_size", step_size, count, DTYPE)
    check_number("step_size", rates, 0, low_open=True)
    delays = _per_entry("delay", delay, count, np.int32)
    check_number("delay", delays, 0, int(training.max_delay), why="max_delay of the training")
    controlled = _per_entry("aligned", aligned, count, np.bool_)
    start = _vectors(params, model, count)
    update = policy_update(model, task, training)
    evaluate = _evaluation(model, task, training.num_evaluated)

    def fn(state: PolicyState) -> tuple[PolicyState, PolicyRecord]:
        def one(entry: PolicyState) -> tuple[PolicyState, PolicyRecord]:
            entry, records = jax.lax.scan(lambda s, _: update(s), entry, None, length=chunk)
            means = jax.tree.map(jnp.mean, records)
            # Held-out prompts are answered after the last update.
            return entry, means._replace(held_out_reward=evaluate(entry.key, entry.params))

        return jax.lax.map(one, state)

    def begin(
        vector: jax.Array, key: jax.Array, delay: jax.Array, aligned: jax.Array, rate: jax.Array
    ) -> PolicyState:
        with standard_promotion():
            memory = training.direction().init(vector)
            control = training.control().init(vector)
        history = jnp.tile(vector[None], (int(training.max_delay) + 1, 1))
        first = jnp.zeros((), np.int32)
        return PolicyState(vector, history, memory, control, key, first, delay, aligned, rate)

    state = jax.jit(jax.vmap(begin))(start, keys, delays, controlled, rates)
    run = _loop if advance is None else advance
    state, records = run(fn, state, total // chunk)
    return PolicyRun(_unvectored(state.params, model), jax.tree.map(np.asarray, records))


def held_out_reward(
    keys: Any, model: Any, task: Any, params: Any, num_evaluated: Count = 256
) -> Float[Array, " E"]:
    """Mean reward of one sample to each of `num_evaluated` held-out prompts (at most all there are).

    Args:
        keys: (E,) typed keys: which prompts, and the noise; equal ones make looks comparable.
        model: the network.
        task: the task.
        params: leaves (E, …).
        num_evaluated: ≥ 1.

    Returns:
        (E,) float32; with the keys of `optimize_policy` what it records, on the same prompts and noise.

    Raises:
        ValueError: naming the argument.

    Source: derived, docs/policy_optimization.md#language-model.

    """
    check_shape("keys", keys, (None,), "typed keys, one an entry")
    task_sizes(model, task)
    count = check_integer("num_evaluated", num_evaluated, 1)
    evaluate = _evaluation(model, task, count)
    vectors = _vectors(params, model, len(keys))
    return jax.jit(lambda *entries: jax.lax.map(lambda one: evaluate(*one), entries))(keys, vectors)


def _evaluation(model: Any, task: Any, num_evaluated: Count) -> Any:
    """Function (key, parameters as a vector) to the reward on held-out prompts."""
    held_out = np.flatnonzero(task.held_out).astype(np.int32)
    unravel = unraveller(model)
    size = min(int(num_evaluated), len(held_out))

    def evaluate(key: jax.Array, vector: jax.Array) -> jax.Array:
        own = jax.random.fold_in(key, _LOOK)
        chosen = jax.random.permutation(jax.random.fold_in(own, 0), jnp.asarray(held_out))[:size]
        params, noise = unravel(vector), jax.random.fold_in(own, 1)
        _, responses = respond(model, task, params, noise, chosen)
        return task_reward(task, chosen, responses.tokens).mean()

    return evaluate


@functools.cache
def _initial(model: CharacterModel) -> Any:
    """From keys to first parameters and the keys of what follows: compiled once a model."""

    def initial(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        vector = ravel_pytree(init_model(jax.random.fold_in(key, 0), model))[0]
        return vector, jax.random.fold_in(key, 1)

    return jax.jit(jax.vmap(initial))


def _vectors(params: Any, model: Any, count: int) -> jax.Array:
    """Each entry's parameters as a vector (E, d)."""
    shapes = jax.eval_shape(lambda: init_model(jax.random.key(0), model))
    wanted = jax.tree.map(lambda leaf: (count, *leaf.shape), shapes)
    got = jax.tree.map(np.shape, params)
    if got != wanted:
        raise fail("params", got, f"leaves of shapes {wanted}")
    rows = [jnp.asarray(leaf).astype(DTYPE).reshape(count, -1) for leaf in jax.tree.leaves(params)]
    return jnp.concatenate(rows, axis=1)


def _unvectored(vectors: Any, model: Any) -> Any:
    """The inverse of `_vectors`, on the host: no program for each shape of a leaf."""
    shapes = jax.eval_shape(lambda: init_model(jax.random.key(0), model))
    leaves, structure = jax.tree.flatten(shapes)
    ends = np.cumsum([leaf.size for leaf in leaves])
    parts = np.split(np.asarray(vectors), ends[:-1], axis=1)
    rows = [
        jnp.asarray(part.reshape(-1, *leaf.shape)) for part, leaf in zip(parts, leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, rows)


def _per_entry(name: str, value: Any, count: int, dtype: Any) -> np.ndarray:
    """One value an entry, of one or of several."""
    if is_traced(value):
        raise fail(name, "a traced value", "numbers: training is no part of a jit")
    array = np.asarray(value)
    if array.shape not in ((), (count,)):
        raise fail(name, f"shape {array.shape}", f"one, or {count}, one a key")
    kinds = {np.int32: np.integer, np.bool_: np.bool_}.get(dtype, np.number)
    if not np.issubdtype(array.dtype, kinds):
        words = {np.int32: "integers", np.bool_: "bool"}.get(dtype, "numbers")
        raise fail(name, f"values of type {array.dtype}", words)
    return np.broadcast_to(array, (count,)).astype(dtype)


def _loop(fn: Any, state: Any, num_chunks: int) -> tuple[Any, Any]:
    """Chunks without progress or checkpoint."""
    program, records = jax.jit(fn), []
    for _ in range(num_chunks):
        state, record = program(state)
        records.append(record)
    return state, jax.tree.map(lambda *parts: np.stack(parts), *records)
