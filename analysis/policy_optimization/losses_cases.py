"""Batches on which the losses are compared, the losses' options, and the library's answers to them.

All batches are padded to one shape, so that one program answers for all losses on all of them.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.models.gates import fiber_gate
from boundlab.models.policy_losses import LOSSES, PolicyBatch, policy_loss
from boundlab.theory.policy_optimization import loss_gradient, surrogate_loss, token_weights

COUNT, LENGTH, NORM = 6, 8, 4
LENGTHS = np.array([8, 5, 0, 3, 7, 1])
MASK = np.arange(LENGTH) < LENGTHS[:, None]
HALVES = (np.arange(COUNT) < 3, np.arange(COUNT) >= 3)
GROUPS, DOMAINS = np.array([4, 4, 0, 1, 1, 2]), np.array([3, 3, 0, 3, 3, 5])
CLIP = {"epsilon_low": 0.2, "epsilon_high": 0.2}
FIBER = {"budget_plus": 0.13, "budget_minus": 0.06, "epsilon": 0.04}
# By row: loss of the library, loss of the theory, options of both.
ROWS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "ppo": ("ppo", "ppo", CLIP),
    "dual_clip": ("dual_clip", "dual_clip", {**CLIP, "dual_clip": 1.1}),
    "grpo": ("grpo", "ppo", CLIP),
    "dapo": ("dapo", "ppo", {"epsilon_low": 0.2, "epsilon_high": 0.28}),
    "bnpo": ("bnpo", "ppo", CLIP),
    "dr_grpo": ("dr_grpo", "ppo", CLIP),
    "luspo": ("luspo", "gspo", {"epsilon_low": 0.05, "epsilon_high": 0.05}),
    "gspo": ("gspo", "gspo", {"epsilon_low": 0.05, "epsilon_high": 0.05}),
    "gmpo": ("gmpo", "gmpo", {"epsilon_low": 0.4, "epsilon_high": 0.4}),
    "cispo": ("cispo", "cispo", {"epsilon_low": 1.0, "epsilon_high": 0.28}),
    "sapo": ("sapo", "sapo", {"temperature_positive": 1.0, "temperature_negative": 1.05}),
    "vespo": ("vespo", "vespo", {}),
    "dppo": ("dppo", "dppo", {"threshold": 0.05}),
    "dro": ("dro", "dro", {"beta": 0.5}),
    "apc": ("apc", "apc", {"radius": 0.1}),
    "fiberpo": ("fiberpo", "fiberpo", FIBER),
    "fiberpo_pessimistic": ("fiberpo", "fiberpo_pessimistic", FIBER),
    "fiberpo_domain": (
        "fiberpo_domain",
        "fiberpo_domain",
        {"budgets": ((0.12, 0.12), (0.15, 0.15), (0.2, 0.1)), "epsilon": 0.11},
    ),
}
# A batch without ties, whose gradients are drawn; its values are those of the tests.
REFERENCE_OLD = np.array(
    [[-1.2, -0.7, -2.3, -0.1], [-0.5, -1.9, -0.3, -3.0], [-2.0, -0.4, -1.1, -0.8]]
)
REFERENCE_RATIO = np.array(
    [[0.05, -0.31, 0.46, -0.02], [0.26, 0.11, -0.15, 0.0], [-0.61, 0.02, 0.33, -0.09]]
)
REFERENCE_LENGTHS, REFERENCE_ADVANTAGES = (4, 3, 2), (1.0, -0.5, 0.75)

Answers = dict[str, tuple[Any, Any]]


def draw(key: jax.Array, count: int) -> PolicyBatch:
    """`count` random batches, of steps from .03 to .5 in turn; every field has a leading axis."""
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
    shape = (count, COUNT, LENGTH)
    old = -rng.exponential(size=shape)
    moved = old + np.geomspace(0.03, 0.5, count)[:, None, None] * rng.normal(size=shape)
    return stacked(moved, old, rng.normal(size=shape))


def stacked(
    log_prob: Any, log_prob_old: Any, advantage: Any, mask: Any = MASK, ids: Any = (GROUPS, DOMAINS)
) -> PolicyBatch:
    """Batches of arrays with a leading axis; mask and ids are repeated where they have none."""
    lead = (len(log_prob),)
    mask = np.broadcast_to(mask, np.shape(log_prob))
    groups, domains = (np.broadcast_to(i, (*lead, COUNT)) for i in ids)
    return PolicyBatch(log_prob, log_prob_old, None, advantage, mask, groups, domains)


def reference() -> PolicyBatch:
    """The reference batch, padded."""
    arrays = np.zeros((3, 1, COUNT, LENGTH))
    gains = np.repeat(np.array(REFERENCE_ADVANTAGES)[:, None], 4, axis=1)
    for array, values in zip(
        arrays, (REFERENCE_OLD + REFERENCE_RATIO, REFERENCE_OLD, gains), strict=True
    ):
        array[0, :3, :4] = values
    mask = np.zeros((COUNT, LENGTH), bool)
    for row, length in enumerate(REFERENCE_LENGTHS):
        mask[row, :length] = True
    groups = np.array([0, 0, 1, 2, 2, 2])
    return stacked(arrays[0], arrays[1], arrays[2], mask, (groups, np.where(groups == 2, 1, 0)))


def function(row: str, **options: Any) -> Any:
    """The library's loss of a row."""
    name, theory, own = ROWS[row]
    if theory == "fiberpo_pessimistic":
        options["pessimistic"] = True
    if name == "dr_grpo":
        options["norm"] = NORM
    return policy_loss(name, **own, **options)


@jax.jit
@jax.vmap
def answers(batch: PolicyBatch) -> Answers:
    """The library's loss and gradient of every row."""

    def one(row: str) -> Any:
        loss = function(row)
        return jax.value_and_grad(lambda x: loss(batch._replace(log_prob=x))[0])(batch.log_prob)

    return {row: one(row) for row in ROWS}


@jax.jit
@jax.vmap
def split_answers(batch: PolicyBatch) -> dict[str, Any]:
    """Losses of micro-batches: with the whole batch's count as denominator, and with their own.

    The batch comes in two halves; what is not in one is masked there.
    """
    mask = batch.mask.astype(bool)
    tokens = jnp.sum(mask, dtype=jnp.float64)
    sequences = jnp.sum(jnp.any(mask, axis=1), dtype=jnp.float64)

    def one(row: str) -> dict[str, Any]:
        count = tokens if LOSSES[ROWS[row][0]].aggregation == "token-mean" else sequences
        parts = [batch._replace(mask=mask & half[:, None]) for half in HALVES]
        shared = [function(row, denominator=count)(part)[0] for part in parts]
        alone = [function(row)(part)[0] for part in parts]
        return {"shared": shared[0] + shared[1], "alone": (alone[0] + alone[1]) / 2.0}

    return {row: one(row) for row in SPLIT}


SPLIT = ("ppo", "dr_grpo", "gspo", "gmpo", "vespo", "fiberpo")


def weights(row: str, mask: Any = MASK) -> Float[Array, "sequences tokens"]:
    """μ of a row by theory."""
    mode = LOSSES[ROWS[row][0]].aggregation or "seq-mean-token-mean"
    return token_weights(mask, mode, NORM if mode == "seq-mean-token-sum-norm" else None)


def expected(row: str, batch: PolicyBatch, at: int, kind: str, **changed: Any) -> np.ndarray:
    """Theory's value or gradient of a row on one of the batches; `changed` makes it wrong."""
    _, theory, options = ROWS[row]
    options = dict(options)
    used = changed.pop("weights", weights(row))
    gain = changed.pop("advantage", batch.advantage[at])
    options |= changed
    if theory == "fiberpo_domain":
        options |= {"group_id": GROUPS, "domain_id": DOMAINS}
    if theory == "dppo":
        options["log_prob"] = batch.log_prob[at]
    step = batch.log_prob[at] - batch.log_prob_old[at]
    evaluate = surrogate_loss if kind == "value" else loss_gradient
    return np.asarray(evaluate(theory, step, gain, used, **options))


@jax.jit
@jax.vmap
def channels(log_ratio: Any) -> Any:
    """The two aggregates log s± of FiberPO for the first sequence."""
    _, info = fiber_gate(log_ratio, jnp.ones(log_ratio.shape, bool), **FIBER)
    return jnp.stack([info.log_s_plus[0], info.log_s_minus[0]])


@jax.jit
@jax.vmap
def sign_gate_gradient(advantage: Any, token_weight: Any) -> Any:
    """On-policy gradient of FiberPO's gate as it comes out with jnp.sign, which is 0 at ρ = 0."""
    kept = jnp.asarray(MASK)
    count = jnp.maximum(jnp.sum(kept, axis=1, dtype=jnp.float64), 1.0)[:, None]

    def loss(rho: Any) -> Any:
        plus, minus = (
            jnp.sum(jnp.where(kept, jnp.maximum(s * rho, 0.0), 0.0), axis=1, keepdims=True) / count
            for s in (1.0, -1.0)
        )
        sign = jnp.sign(rho)
        own = jnp.where(sign > 0, plus, minus)
        other = jnp.where(sign > 0, minus, plus)
        fiber = sign * ((sign * rho - own) + other)
        return -jnp.sum(token_weight * jnp.exp(plus - minus + fiber) * advantage)

    return jax.grad(loss)(jnp.zeros(kept.shape, jnp.float64))
