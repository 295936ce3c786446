"""One update of policy optimisation of a character model, on samples that may be stale.

Symbols: τ the delay, how many updates old the parameters are that draw the samples of an update. An
update draws `num_prompts` training prompts, `group` responses to each, and takes `steps` optimiser steps,
each on its own prompts. Everything is float32. Keys: fold_in(key, t) all draws of update t.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from boundlab.checks import check_choice, check_integer, fail
from boundlab.models.character_model import (
    DTYPE,
    CharacterModel,
    draw_responses,
    init_model,
    token_log_probs,
)
from boundlab.models.character_tasks import PAD, CharacterTask, task_reward
from boundlab.models.gac import gac
from boundlab.models.policy_batch import PolicyBatch
from boundlab.models.policy_estimators import group_advantage
from boundlab.models.policy_losses import policy_loss
from boundlab.precision import standard_promotion
from boundlab.typing import Count

OPTIMIZERS = ("adam", "sgd")


@dataclass(frozen=True)
class PolicyTraining:
    """What one update does; all of it is part of the compiled program."""

    loss: str = "grpo"
    """Name of a loss of `policy_losses`."""
    options: tuple[tuple[str, Any], ...] = ()
    """Its options, as pairs (name, value)."""
    num_prompts: Count = 16
    """Training prompts of an update, drawn with replacement."""
    group: Count = 8
    """Responses to each; advantages are relative to their mean."""
    steps: Count = 1
    """Optimiser steps of an update, a divisor of `num_prompts`: each takes its own share of prompts."""
    optimizer: str = "sgd"
    """`sgd` or `adam`; alignment control comes before it."""
    max_delay: Count = 16
    """Largest delay: how many old parameters are kept."""
    gac: tuple[tuple[str, Any], ...] = (("low", 0.05), ("high", 1.0), ("kappa", "ratio"))
    """Options of `gac`, for the entries that use it."""
    num_evaluated: Count = 256
    """Held-out prompts, drawn once with the key, on which a chunk of updates is judged at its end."""

    def __post_init__(self) -> None:
        for name in ("num_prompts", "group", "steps", "num_evaluated"):
            check_integer(name, getattr(self, name), 1)
        check_integer("max_delay", self.max_delay, 0)
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        if int(self.num_prompts) % int(self.steps):
            raise fail("steps", self.steps, f"a divisor of num_prompts = {self.num_prompts}")
        policy_loss(self.loss, **dict(self.options))
        self.control()

    def control(self) -> optax.GradientTransformation:
        """The gradient transformation of alignment control."""
        return gac(**dict(self.gac))

    def direction(self) -> optax.GradientTransformation:
        """What the optimiser makes of a gradient, before the step size."""
        return optax.scale_by_adam() if self.optimizer == "adam" else optax.identity()


class PolicyRecord(NamedTuple):
    """What happened: means over the updates of a chunk, but for `held_out_reward` at its end."""

    held_out_reward: Any
    """Mean reward of one sample to each of the evaluated held-out prompts."""
    reward: Any
    """Mean reward of the samples that were trained on."""
    entropy: Any
    """Mean entropy of the current policy at the tokens of these samples, nats a token."""
    mean_ratio: Any
    """Mean of r = π_θ/π_behaviour over these tokens."""
    drift: Any
    """Mean of |r − 1|."""
    clip_fraction: Any
    """Share of tokens on which the loss's gate acts."""
    cosine: Any
    """Cosine of consecutive gradients, before alignment control; of the gradient with its reference."""
    gradient_norm: Any
    """Norm of the gradient, before alignment control."""
    response_length: Any
    """Mean tokens of a response, `END` included."""
    controlled: Any
    """Share of gradients that alignment control changed."""


class PolicyState(NamedTuple):
    """One entry. Parameters are one vector: quick to compile, and alignment is of all of them."""

    params: jax.Array
    history: jax.Array
    """(max_delay + 1, d): the parameters of 0, 1, … updates ago."""
    optimizer: Any
    control: Any
    key: jax.Array
    update: jax.Array
    delay: jax.Array
    aligned: jax.Array
    step_size: jax.Array


def policy_update(
    model: Any, task: Any, training: Any
) -> Callable[[Any], tuple[Any, PolicyRecord]]:
    """One update of one entry, as a function of its state; `optimize_policy` makes and scans it."""
    prompt, places = task_sizes(model, task)
    unravel, loss_of = unraveller(model), policy_loss(training.loss, **dict(training.options))
    control, optimizer = training.control(), training.direction()
    prompts, group, steps = (int(n) for n in (training.num_prompts, training.group, training.steps))
    share = prompts * group // steps
    group_id = np.repeat(np.arange(prompts // steps, dtype=np.int32), group)

    def loss(vector: jax.Array, texts: jax.Array, batch: PolicyBatch) -> Any:
        log_prob, entropy = token_log_probs(model, unravel(vector), texts, prompt)
        value, metrics = loss_of(batch._replace(log_prob=log_prob))
        return value, (metrics, entropy, log_prob)

    def step(state: PolicyState, drawn: Any) -> tuple[PolicyState, PolicyRecord]:
        texts, batch, reward = drawn
        slope, (metrics, entropy, log_prob) = jax.grad(loss, has_aux=True)(
            state.params, texts, batch
        )
        norm = jnp.linalg.norm(slope)
        with standard_promotion():  # optax counts steps in integers
            bent, memory = control.update(slope, state.control)
            used = jnp.where(state.aligned, bent, slope)
            direction, moments = optimizer.update(used, state.optimizer)
        vector = state.params - state.step_size * direction
        state = state._replace(params=vector, optimizer=moments, control=memory)

        present = texts[:, prompt:] != PAD
        count = jnp.sum(present, dtype=DTYPE)

        def mean(values: jax.Array) -> jax.Array:
            return jnp.sum(jnp.where(present, values, 0)) / count  # each response has a token

        ratio = jnp.exp(jnp.where(present, log_prob - batch.log_prob_old, 0))
        record = PolicyRecord(
            jnp.zeros((), DTYPE),
            reward.mean(),
            mean(entropy),
            jnp.asarray(metrics["mean_ratio"]).astype(DTYPE),
            mean(jnp.abs(ratio - 1)),
            jnp.asarray(metrics["clip_fraction"]).astype(DTYPE),
            memory.cosine,
            norm,
            count / np.float32(share),
            (state.aligned & (memory.regime > 0)).astype(DTYPE),
        )
        return state, record

    def update(state: PolicyState) -> tuple[PolicyState, PolicyRecord]:
        history = jnp.concatenate([state.params[None], state.history[:-1]])
        behavior = jax.lax.dynamic_index_in_dim(history, state.delay, keepdims=False)
        own = jax.random.fold_in(state.key, state.update)
        chosen = jax.random.randint(
            jax.random.fold_in(own, 0), (prompts,), 0, len(places), np.int32
        )
        asked = jnp.repeat(jnp.asarray(places)[chosen], group)
        texts, responses = respond(
            model, task, unravel(behavior), jax.random.fold_in(own, 1), asked
        )
        reward = task_reward(task, asked, responses.tokens)

        def shared(values: jax.Array) -> jax.Array:
            return values.reshape(steps, share, *values.shape[1:])

        advantage = group_advantage(reward, np.repeat(np.arange(prompts, dtype=np.int32), group))
        every_token = jnp.broadcast_to(advantage[:, None], responses.tokens.shape)
        old, mask = shared(responses.log_prob), shared(responses.mask)
        fixed = [jnp.tile(jnp.asarray(ids)[None], (steps, 1)) for ids in (group_id, 0 * group_id)]
        batch = PolicyBatch(old, old, None, shared(every_token), mask, *fixed)
        state, records = jax.lax.scan(step, state, (shared(texts), batch, shared(reward)))
        state = state._replace(history=history, update=state.update + np.int32(1))
        return state, jax.tree.map(jnp.mean, records)

    return update


def respond(
    model: Any, task: Any, params: Any, key: jax.Array, asked: jax.Array
) -> tuple[jax.Array, Any]:
    """One response to each of the prompts at these places: whole texts, and what was drawn."""
    given = jnp.asarray(task.prompts)[asked]
    responses = draw_responses(model, params, key, given, task.answers.shape[1])
    return jnp.concatenate([given, responses.tokens], axis=1), responses


def task_sizes(model: Any, task: Any) -> tuple[int, np.ndarray]:
    """P, and the places of the training prompts; the model must be the task's."""
    if not isinstance(task, CharacterTask):
        raise fail("task", f"a {type(task).__name__}", "a CharacterTask")
    if not isinstance(model, CharacterModel):
        raise fail("model", f"a {type(model).__name__}", "a CharacterModel")
    prompt, length = task.prompts.shape[1], task.prompts.shape[1] + task.answers.shape[1]
    if model.vocabulary != task.vocabulary or model.length < length:
        got = f"{model.vocabulary} tokens and {model.length} places"
        raise fail(
            "model", got, f"{task.vocabulary} tokens and at least {length} places of the task"
        )
    return prompt, np.flatnonzero(~task.held_out).astype(np.int32)


def unraveller(model: CharacterModel) -> Callable[[jax.Array], Any]:
    """From one vector to the model's parameters."""
    shapes = jax.eval_shape(lambda: init_model(jax.random.key(0), model))
    with jax.ensure_compile_time_eval():
        return ravel_pytree(jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes))[1]
