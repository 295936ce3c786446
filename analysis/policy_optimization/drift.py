"""How far an inner loop moves from the old policy under each loss, and in which direction it starts.

Every token of every sequence of a small tree, with exact advantages and exact expectations: what moves
the policy here is the loss, not noise. Losses are the library's; two gates that pass for another's are
written here in NumPy, with their slopes by hand.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from boundlab.analysis.datasets import describe
from boundlab.analysis.policy_optimization.config import Config
from boundlab.analysis.policy_optimization.drift_claims import CLAIMS as CLAIMS
from boundlab.analysis.policy_optimization.drift_lengths import lengths, visits
from boundlab.experiment import Repeat
from boundlab.models.policy_losses import PolicyBatch, policy_loss
from boundlab.models.tabular import sequence_log_probs, sequence_table, solve_tree

TOKENS, HORIZON = 3, 4
SPREAD = 0.7
REWARDED = 0.3
STEP_SIZE = 0.5
RECORD = 25
PLUS, MINUS, EPSILON = 0.12, 0.05, 0.04
GSPO = 0.01
FIBER = {"budget_plus": PLUS, "budget_minus": MINUS, "epsilon": EPSILON}
# Each loss with its options; the first three have claims, the others are drawn beside them.
LOSSES: dict[str, tuple[str, dict[str, Any]]] = {
    "FiberPO": ("fiberpo", FIBER),
    "GRPO": ("grpo", {"epsilon_low": 0.2, "epsilon_high": 0.2}),
    "GSPO": ("gspo", {"epsilon_low": GSPO, "epsilon_high": GSPO}),
    "FiberPO pessimistic": ("fiberpo", {**FIBER, "pessimistic": True}),
    "APC": ("apc", {"radius": 0.1}),
    "SAPO": ("sapo", {}),
}
# Sum over tokens and their own advantages; the mean over tokens; the sequence's advantage for each.
VARIANTS = ("sum", "mean", "sequence")
SETTINGS = {"step": np.array([1.0, 1 / HORIZON, 1.0]), "own": np.array([1.0, 1.0, 0.0])}


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Inner loops, gradients where lengths differ, and states that are seen once.

    `repeat` isn't used: nothing here is random but the tasks, and each program runs for a second.
    """
    loop_key, length_key, visit_key = jax.random.split(key, 3)
    logits, reward = tasks(loop_key, config.drift_seeds)
    parts = [
        _loops(config, logits, reward),
        _rivals(config, logits, reward),
        lengths(config, length_key),
        visits(config, visit_key),
    ]
    return describe(xr.merge(parts), "1")


def tasks(
    key: jax.Array, number: int
) -> tuple[Float[np.ndarray, "seeds prefixes tokens"], Float[np.ndarray, "seeds sequences"]]:
    """Logits of the old policies and the leaves' rewards, 0 or 1."""
    logit_key, reward_key = jax.random.split(key)
    prefixes = sum(TOKENS**t for t in range(HORIZON))
    logits = jax.random.normal(logit_key, (number, prefixes, TOKENS), jnp.float64)
    chance = jax.random.uniform(reward_key, (number, TOKENS**HORIZON), jnp.float64)
    return SPREAD * np.asarray(logits), (np.asarray(chance) < REWARDED) * 1.0


def _inner_loop(
    name: str,
    num_steps: int,
    start: Float[Array, "prefixes tokens"],
    reward: Float[Array, " sequences"],
    setting: dict[str, Any],
) -> dict[str, Float[Array, " records"]]:
    """Mean |r − 1| and the gain in J along gradient ascent on one loss, the start first."""
    loss_name, options = LOSSES[name]
    loss = policy_loss(loss_name, aggregation="seq-mean-token-sum", denominator=1.0, **options)
    old = sequence_log_probs(jax.nn.log_softmax(start), HORIZON)
    law = jnp.exp(jnp.sum(old, axis=1, keepdims=True))
    solution = solve_tree(jax.nn.log_softmax(start), reward)
    table = sequence_table(TOKENS, HORIZON)
    tokens = solution.advantage[table.prefix, table.token]
    whole = (reward - solution.objective)[:, None]
    # Losses are homogeneous in the advantage: it carries the weight of each sequence.
    advantage = law * (setting["own"] * tokens + (1.0 - setting["own"]) * whole)
    mask = np.ones(tokens.shape, bool)

    def value(logits: Float[Array, "prefixes tokens"]) -> Float[Array, ""]:
        now = sequence_log_probs(jax.nn.log_softmax(logits), HORIZON)
        return loss(PolicyBatch(now, old, None, advantage, mask))[0]

    def step(logits: Any, _: None) -> tuple[Any, None]:
        return logits - STEP_SIZE * setting["step"] * jax.grad(value)(logits), None

    def stretch(logits: Any, _: None) -> tuple[Any, tuple[Any, Any]]:
        logits, _ = jax.lax.scan(step, logits, None, length=RECORD)
        now = sequence_log_probs(jax.nn.log_softmax(logits), HORIZON)
        away = jnp.sum(law * jnp.abs(jnp.expm1(now - old))) / HORIZON
        gain = jnp.sum(jnp.exp(jnp.sum(now, axis=1)) * reward) - solution.objective
        return logits, (away, gain)

    _, (moved, gained) = jax.lax.scan(stretch, start, None, length=num_steps // RECORD)
    first = jnp.zeros(1, jnp.float64)
    return {
        "moved": jnp.concatenate([first, moved]),
        "gained": jnp.concatenate([first, gained]),
    }


def _loops(
    config: Config,
    logits: Float[np.ndarray, "seeds prefixes tokens"],
    reward: Float[np.ndarray, "seeds sequences"],
) -> xr.Dataset:
    """The library's losses, in all variants: one program a loss, which draws nothing."""
    names = tuple(LOSSES)[: config.drift_losses]
    settings = {k: jnp.asarray(v) for k, v in SETTINGS.items()}
    found = []
    for name in names:
        one = functools.partial(_inner_loop, name, config.drift_steps)
        many = jax.vmap(jax.vmap(one, (None, None, 0)), (0, 0, None))
        found.append(jax.device_get(jax.jit(many)(logits, reward, settings)))
    dims = ("drift_loss", "drift_seed", "drift_variant", "drift_step")
    words = {
        "moved": r"mean $|r-1|$ of the old policy's tokens",
        "gained": r"gain in expected reward $\Delta J$",
    }
    units = {"moved": "1", "gained": "reward"}
    return xr.Dataset(
        {
            f"drift_{name}": (
                dims,
                np.stack([part[name] for part in found]),
                {"long_name": words[name], "units": units[name]},
            )
            for name in words
        },
        coords={
            "drift_loss": list(names),
            "drift_variant": list(VARIANTS),
            "drift_step": np.arange(0, config.drift_steps + 1, RECORD),
        },
    ).assign(
        drift_budget=((), PLUS + MINUS, {"long_name": "FiberPO's budgets together"}),
    )


def _rivals(
    config: Config,
    logits: Float[np.ndarray, "seeds prefixes tokens"],
    reward: Float[np.ndarray, "seeds sequences"],
) -> xr.Dataset:
    """Two gates that pass for another's: a symmetric clamp, and GSPO as the paper writes it."""
    clamped = [
        ascend(_clamp_slope, logits, reward, float(step) * STEP_SIZE, bool(own), config.drift_steps)
        for step, own in zip(*SETTINGS.values(), strict=True)
    ]
    signed = ascend(_sequence_slope, logits, reward, STEP_SIZE, True, config.drift_steps)
    text = "mean |r - 1| with"
    return xr.Dataset(
        {
            "drift_clamped": (
                ("drift_variant", "drift_seed"),
                np.stack(clamped),
                {"long_name": f"{text} a symmetric clamp of FiberPO's total budget"},
            ),
            "drift_signed": (
                "drift_seed",
                signed,
                {"long_name": f"{text} GSPO's one sign a sequence, own advantages, sum"},
            ),
        },
        coords={"drift_variant": list(VARIANTS)},
    )


Slope = Callable[[np.ndarray, np.ndarray], np.ndarray]


def ascend(
    slope: Slope, logits: np.ndarray, reward: np.ndarray, step: float, own: bool, num_steps: int
) -> np.ndarray:
    """Mean |r − 1| after gradient ascent, seeds first; in NumPy, without automatic differentiation.

    slope(ρ, A), both (seeds, V^H, H), are the derivatives of Σ_τ Σ_t G A with respect to ρ. The
    advantages hold the weights of the sequences.
    """
    first = np.cumsum([0, *(TOKENS**t for t in range(HORIZON))])
    seeds = len(logits)

    def sequences(table: np.ndarray) -> np.ndarray:
        """From prefixes and tokens to the tokens of all sequences."""
        columns = [
            np.repeat(table[:, first[t] : first[t + 1]].reshape(seeds, -1), after, axis=1)
            for t, after in enumerate(TOKENS ** np.arange(HORIZON)[::-1])
        ]
        return np.stack(columns, axis=2)

    def transposed(table: np.ndarray) -> np.ndarray:
        levels = [
            table[:, :, t].reshape(seeds, TOKENS**t, TOKENS, -1).sum(axis=3) for t in range(HORIZON)
        ]
        return np.concatenate(levels, axis=1)

    old_policy = _softmax(logits)
    old = np.log(sequences(old_policy))
    law = np.exp(old.sum(axis=2))[..., None]
    value, advantage = reward, np.empty(logits.shape)
    for t in reversed(range(HORIZON)):
        at = slice(first[t], first[t + 1])
        paid = value.reshape(seeds, -1, TOKENS)
        value = (old_policy[:, at] * paid).sum(axis=2)
        advantage[:, at] = paid - value[..., None]
    weighted = law * (sequences(advantage) if own else (reward - value)[..., None])
    weighted = np.broadcast_to(weighted, old.shape)
    now = logits.copy()
    for _ in range(num_steps):
        policy = _softmax(now)
        by_log_policy = transposed(slope(np.log(sequences(policy)) - old, weighted))
        now += step * (by_log_policy - policy * by_log_policy.sum(axis=2, keepdims=True))
    away = np.abs(np.expm1(np.log(sequences(_softmax(now))) - old))
    return (law * away).sum(axis=(1, 2)) / HORIZON


def _clamp_slope(log_ratio: np.ndarray, advantage: np.ndarray) -> np.ndarray:
    """Of e^{b + clip(ρ − b, ±ε)}, b = clip(mean ρ, ±δ): FiberPO's levels, but a clamp in both."""
    mean, limit = log_ratio.mean(axis=2, keepdims=True), PLUS + MINUS
    base = np.clip(mean, -limit, limit)
    rest = log_ratio - base
    inside = np.abs(rest) <= EPSILON
    paid = advantage * np.exp(base + np.clip(rest, -EPSILON, EPSILON))
    shared = (paid * ~inside).sum(axis=2, keepdims=True) * (np.abs(mean) <= limit)
    return paid * inside + shared / HORIZON


def _sequence_slope(log_ratio: np.ndarray, advantage: np.ndarray) -> np.ndarray:
    """Of GSPO with the sign of ΣA for all tokens of a sequence, and no stop-gradient."""
    ratio = np.exp(log_ratio.mean(axis=2, keepdims=True))
    total = advantage.sum(axis=2, keepdims=True)
    passes = np.where(total > 0, ratio <= 1 + GSPO, ratio >= 1 - GSPO)
    return np.broadcast_to(passes * ratio * total / HORIZON, log_ratio.shape)


def _softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)
