"""Where losses point that weigh tokens by 1/T, and how many states a batch sees only once."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int

from boundlab.analysis.policy_optimization.config import Config
from boundlab.models.policy_losses import PolicyBatch, policy_loss
from boundlab.models.tabular import (
    ended_sequences,
    sample_sequences,
    solve_ended_tree,
    solve_tree,
)
from boundlab.theory import policy_optimization as theory

TOKENS, HORIZON = 3, 4
# Added to the logits of the end token: the first lets no sequence of a float64 end early.
BIASES = (-60.0, -4.0, -2.5, -1.5, -0.5, 0.5)
# What a loss is a mean or a sum of, and whose advantage a token is given.
AGGREGATIONS = {
    "mean, own": ("seq-mean-token-mean", True),
    "mean, sequence's": ("seq-mean-token-mean", False),
    "sum, own": ("seq-mean-token-sum", True),
}
VISIT_HORIZON, VISIT_SEQUENCES = 6, 32
# Lengths of the prefixes that are counted: of shorter ones hardly any is seen once.
VISIT_LENGTHS = (3, 4, 5)


def lengths(config: Config, key: jax.Array) -> xr.Dataset:
    """Ascent directions of the library's losses on policy, over all sequences, beside closed forms."""
    logit_key, reward_key = jax.random.split(key)
    sequences = ended_sequences(TOKENS, HORIZON)
    shape = (len(BIASES), config.drift_trees)
    prefixes = int(sequences.prefix.max()) + 1
    logits = np.array(jax.random.normal(logit_key, (*shape, prefixes, TOKENS), jnp.float64))
    logits[..., -1] += np.array(BIASES)[:, None, None]
    reward = jax.random.uniform(reward_key, (*shape, len(sequences.mask)), jnp.float64)
    found = jax.jit(jax.vmap(jax.vmap(_directions)))(jnp.asarray(logits), reward)
    number = shape[0] * shape[1]
    flat = {k: np.asarray(v).reshape(number, *v.shape[2:]) for k, v in found.items()}
    size = {k: np.sqrt((flat[k] ** 2).sum(axis=(-2, -1))) for k in ("library", "theory", "true")}
    product = {k: np.einsum("nkpv,npv->nk", flat[k], flat["true"]) for k in ("library", "theory")}
    dims = ("drift_tree", "drift_aggregation")
    columns: dict[str, Any] = {}
    for kind, suffix in (("library", ""), ("theory", "_theory")):
        cosine = product[kind] / (size[kind] * size["true"][:, None])
        ratio = size[kind] / size["true"][:, None]
        of = "of the loss's gradient" if kind == "library" else "in closed form"
        columns[f"drift_cosine{suffix}"] = (dims, cosine, {"long_name": f"cosine with ∇J, {of}"})
        columns[f"drift_size{suffix}"] = (dims, ratio, {"long_name": f"norm over ∇J's, {of}"})
    mean = flat["mean_length"]
    spread = np.sqrt(np.maximum(flat["mean_square"] - mean**2, 0)) / mean
    columns["drift_spread"] = ("drift_tree", spread, {"long_name": "std(T)/E T"})
    columns["drift_length"] = ("drift_tree", mean, {"long_name": "E T", "units": "tokens"})
    return xr.Dataset(
        columns,
        coords={
            "drift_aggregation": list(AGGREGATIONS),
            "drift_bias": ("drift_tree", np.repeat(BIASES, config.drift_trees)),
        },
    ).assign_coords(drift_tree=np.arange(number))


def _directions(
    logits: Float[Array, "prefixes tokens"], reward: Float[Array, " sequences"]
) -> dict[str, Float[Array, "..."]]:
    """Gradients of the losses and of J by differentiation, and in closed form."""
    prefix, token, mask = ended_sequences(TOKENS, HORIZON)
    start = jax.nn.log_softmax(logits)
    solution = solve_ended_tree(start, reward)
    old = start[prefix, token]
    law = jnp.exp(jnp.sum(jnp.where(mask, old, 0.0), axis=1))
    number = np.asarray(mask.sum(axis=1), np.float64)
    whole = jnp.broadcast_to((reward - solution.objective)[:, None], mask.shape)
    advantages = {True: solution.advantage[prefix, token], False: whole}

    def values(logits: Float[Array, "prefixes tokens"]) -> Float[Array, " losses"]:
        """Each loss, the sign turned, and J: differentiated together they share a program."""
        policy = jax.nn.log_softmax(logits)
        now, found = policy[prefix, token], []
        for mode, own in AGGREGATIONS.values():
            loss = policy_loss("grpo", aggregation=mode, denominator=1.0)
            advantage = law[:, None] * advantages[own]
            found.append(-loss(PolicyBatch(now, old, None, advantage, mask))[0])
        return jnp.stack([*found, solve_ended_tree(policy, reward).objective])

    policy = jnp.exp(start)
    # Constant over a sequence, (R − J)/T is a reward of its own.
    shares = solve_ended_tree(start, (reward - solution.objective) / number).advantage
    pairs = (
        (solution.advantage, solution.inverse_length),
        (shares, jnp.ones_like(policy)),
        (solution.advantage, jnp.ones_like(policy)),
    )
    closed = [theory.length_weighted_gradient(policy, solution.reach, a, m) for a, m in pairs]
    gradients = jax.jacrev(values)(logits)
    return {
        "library": gradients[:-1],
        "theory": jnp.stack(closed),
        "true": gradients[-1],
        "mean_length": jnp.sum(law * number),
        "mean_square": jnp.sum(law * number**2),
    }


def visits(config: Config, key: jax.Array) -> xr.Dataset:
    """Prefixes of each length that exactly one of a batch of sequences passes through."""
    policy_key, run_key = jax.random.split(key)
    prefixes = sum(TOKENS**t for t in range(VISIT_HORIZON))
    logits = jax.random.normal(policy_key, (prefixes, TOKENS), jnp.float64)
    policy = np.asarray(jax.nn.log_softmax(logits))
    number = config.drift_batches * VISIT_SEQUENCES
    drawn = np.asarray(sample_sequences(run_key, policy, VISIT_HORIZON, number))
    drawn = np.sort(drawn.reshape(-1, VISIT_SEQUENCES), axis=1)
    alone = np.stack(
        [_alone(drawn // TOKENS ** (VISIT_HORIZON - t)) for t in VISIT_LENGTHS], axis=1
    )
    reach = np.asarray(solve_tree(policy, np.zeros(TOKENS**VISIT_HORIZON)).reach)
    levels = [TOKENS**t for t in range(VISIT_HORIZON)]
    uniform = np.repeat(1 / np.array(levels), levels)
    exact, even = (
        np.split(np.asarray(theory.expected_single_visits(d, VISIT_SEQUENCES)), np.cumsum(levels))
        for d in (reach, uniform)
    )
    chosen, flat = list(VISIT_LENGTHS), {"exact": exact, "even": even}
    means = {k: np.array([v[t].sum() for t in chosen]) for k, v in flat.items()}
    named = {
        "alone": (("drift_batch_seed", "drift_prefix"), alone, "states seen once"),
        "alone_theory": ("drift_prefix", means["exact"], "their mean number"),
        "alone_even": (
            "drift_prefix",
            means["even"],
            "their mean number, all tokens equally likely",
        ),
    }
    return xr.Dataset(
        {
            f"drift_{name}": (dims, values, {"long_name": text})
            for name, (dims, values, text) in named.items()
        },
        coords={"drift_prefix": chosen},
    ).assign(
        drift_alone_sequences=((), float(VISIT_SEQUENCES), {"long_name": "sequences of a batch"})
    )


def _alone(ordered: Int[np.ndarray, "batches sequences"]) -> Float[np.ndarray, " batches"]:
    """How many numbers of each row occur once in it; rows are in order."""
    edge = np.ones((len(ordered), 1), bool)
    new = np.concatenate([edge, ordered[:, 1:] != ordered[:, :-1], edge], axis=1)
    return (new[:, 1:] & new[:, :-1]).sum(axis=1).astype(np.float64)
