"""Processes, policies and trees on which improvement bounds are evaluated: random ones and the worst.

In the worst case π stays in the first state, and what π′ prefers there leads to another, where what it
prefers only costs. Both states are worth 0 under π, so that rewards are advantages.
"""

from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from boundlab.models.tabular_mdp import RandomMDP, random_mdp
from boundlab.models.tabular_trees import SequenceTable, sequence_table

STATES, ACTIONS = 5, 3
DISCOUNTS = (0.5, 0.8, 0.95)
# Spread of logits of old policies, and limits of how far new ones are from them.
SPREAD, NEAREST, FURTHEST = 0.7, 0.03, 2.0
# Divergences and mixtures of the worst cases.
WORST = (0.02, 0.3)
# Trees of up to this many steps are one shape: later tokens of a shorter one change nothing.
TOKENS, HORIZONS = 3, (1, 2, 3, 4, 5)
# How much less the second-best action gains than the best in the worst case of the step: no tie.
JUST_BELOW = 0.999


# Made with NumPy, and passed to compiled functions.
AnyArray = Array | np.ndarray


class Processes(NamedTuple):
    """Processes with two policies each; one leading axis for all fields."""

    transition: Float[AnyArray, "cases states actions states"]
    reward: Float[AnyArray, "cases states actions"]
    initial: Float[AnyArray, "cases states"]
    old: Float[AnyArray, "cases states actions"]
    new: Float[AnyArray, "cases states actions"]
    mixture: Float[AnyArray, " cases"]
    discount: Float[AnyArray, " cases"]


class Trees(NamedTuple):
    """Sequence trees of one shape with two policies each."""

    old: Float[AnyArray, "cases prefixes tokens"]
    """log π."""
    new: Float[AnyArray, "cases prefixes tokens"]
    """log π′, the same as log π behind the horizon."""
    leaf_reward: Float[AnyArray, "cases sequences"]
    horizon: Int[AnyArray, " cases"]


def processes(key: jax.Array, count: int) -> tuple[Processes, list[str]]:
    """`count` random processes, discounts in turn, then the worst cases; and what each is."""
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    drawn = _random_mdps(jax.random.split(key, count))
    logits, moves = rng.standard_normal((2, count, STATES, ACTIONS))
    old = SPREAD * logits
    new = old + far_apart(rng, count)[:, None, None] * moves
    discount = np.resize(DISCOUNTS, count)
    policies = [np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True) for x in (old, new)]
    random = Processes(
        transition=np.asarray(drawn.transition),
        reward=np.asarray(drawn.reward),
        initial=np.asarray(drawn.initial),
        old=policies[0],
        new=policies[1],
        mixture=rng.uniform(size=count),
        discount=discount,
    )
    worst = [
        worst_process(kind, far, discount)
        for discount in DISCOUNTS
        for kind, far in [("mixture", far) for far in WORST]
        + [("small step", far) for far in WORST]
        + [("gains astray", 0.0)]
    ]
    kinds = ["mixture"] * len(WORST) + ["small step"] * len(WORST) + ["gains astray"]
    stacked = jax.tree.map(lambda *parts: np.stack(parts), *worst)
    both = jax.tree.map(lambda *parts: np.concatenate(parts), random, stacked)
    return both, ["random"] * count + kinds * len(DISCOUNTS)


@jax.jit
def _random_mdps(keys: jax.Array) -> RandomMDP:
    return jax.vmap(lambda key: random_mdp(key, STATES, ACTIONS))(keys)


def far_apart(rng: np.random.Generator, count: int) -> np.ndarray:
    """Sizes of steps, their logarithms uniform."""
    return np.exp(rng.uniform(np.log(NEAREST), np.log(FURTHEST), count))


def worst_process(kind: str, far: float, discount: float) -> Processes:
    """Two states of which π leaves none; the others are there for the shape and never reached."""
    transition = np.zeros((STATES, ACTIONS, STATES))
    for state in range(STATES):
        transition[state, :, state] = 1.0
    transition[0, 2] = np.eye(STATES)[1]
    reward, old = np.zeros((STATES, ACTIONS)), np.zeros((STATES, ACTIONS))
    old[:, :2] = 0.5
    reward[0], reward[1] = (-1.0, 1.0, 1.0), (1.0, -1.0, 1.0)
    new, mixture = old.copy(), far
    if kind == "mixture":
        # π′ leaves at once and then takes what costs most; so does the mixture, with probability α.
        new[0], new[1] = np.eye(ACTIONS)[2], np.eye(ACTIONS)[1]
    elif kind == "small step":
        new[0] += far * np.array([-1.0, 0.0, 1.0])
        new[1] += far * np.array([-1.0, 1.0, 0.0])
    else:
        # For the trust-region step, which never takes what costs: nothing is to be had elsewhere.
        reward[0], reward[1] = (-JUST_BELOW, JUST_BELOW, 1.0), 0.0
        new[0] = np.eye(ACTIONS)[2]
        mixture = 0.5
    initial = np.eye(STATES)[0]
    return Processes(
        transition, reward, initial, old, new, np.asarray(mixture), np.asarray(discount)
    )


def trees(key: jax.Array, count: int) -> tuple[Trees, list[str]]:
    """`count` random trees of each horizon, then the worst of each; and what each is."""
    table = sequence_table(TOKENS, HORIZONS[-1])
    prefixes, sequences = int(table.prefix.max()) + 1, len(table.prefix)
    depth = np.zeros(prefixes, int)
    depth[table.prefix] = np.arange(HORIZONS[-1])
    horizon = np.repeat(HORIZONS, count)
    total = len(horizon)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    logits, moves = rng.standard_normal((2, total, prefixes, TOKENS))
    size = far_apart(rng, total)
    within = depth[None, :] < horizon[:, None]
    old = SPREAD * logits
    new = old + (size[:, None] * within)[..., None] * moves
    old, new = (x - np.logaddexp.reduce(x, axis=-1, keepdims=True) for x in (old, new))
    reward = rng.standard_normal((total, sequences))
    # A shorter tree pays by its first tokens alone.
    after = TOKENS ** (HORIZONS[-1] - horizon)
    paid = np.arange(sequences)[None, :] // after[:, None]
    reward = np.take_along_axis(reward, paid, axis=1)
    worst = [_worst_tree(table, depth, far, steps) for steps in HORIZONS for far in WORST]
    stacked: list[Any] = [np.stack(part) for part in zip(*worst, strict=True)]
    both = [np.concatenate(pair) for pair in zip((old, new, reward, horizon), stacked, strict=True)]
    return Trees(*both), ["random"] * total + ["worst"] * len(worst)


def _worst_tree(table: SequenceTable, depth: np.ndarray, far: float, horizon: int) -> Trees:
    """The two states as prefixes: the token 2, of probability 0 under π, leads from one to the other."""
    away = np.zeros(len(depth), bool)
    left = np.cumsum(table.token == 2, axis=1) - (table.token == 2) > 0
    away[table.prefix] = left
    advantage = np.where(away[:, None], [[1.0, -1.0, 1.0]], [[-1.0, 1.0, 1.0]])
    change = np.where(away[:, None], [[-1.0, 1.0, 0.0]], [[-1.0, 0.0, 1.0]])
    inside = (depth < horizon)[:, None]
    old = np.broadcast_to([0.5, 0.5, 0.0], advantage.shape)
    gains = (inside * advantage)[table.prefix, table.token].sum(axis=1)
    with np.errstate(divide="ignore"):
        logs = np.log(old), np.log(old + far * inside * change)
    return Trees(*logs, gains, np.asarray(horizon))
