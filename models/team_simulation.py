"""Regret of one agent and of teams on noisy rewards with balanced designs, simulated three ways.

Symbols as in `team_tasks`; N trajectories, in each of which all K agents act once. Learners:

    joint       one agent compares the A^K joint actions by the outcome, m = N/A^K samples each;
    own         agent k compares its actions by its own signal, m = N/A samples each;
    shared      … by the outcome, teammates' actions balanced but shuffled independently;
    orthogonal  … by the outcome, all joint actions played equally often;
    ols         agents compare coefficients of an additive model, fitted to the outcomes of `shared`.

Methods: `sufficient` draws every arm's mean, `grouped` the largest mean of each group of arms that earn
alike, `raw` the trajectories themselves. All have one law. Of exact ties one is drawn uniformly.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float, Int

from boundlab.checks import check_choice, check_integer, check_key, check_number, check_shape, fail
from boundlab.models.team_selection import (
    arm_winners,
    group_maxima,
    group_winners,
    stored_normal,
)
from boundlab.models.team_tasks import (
    NeedleTask,
    Pattern,
    Payoffs,
    TeamTask,
    best_reward,
    check_joint_actions,
    group_rewards,
    halves,
    joint_rewards,
    marginal_table,
    own_table,
    rewards_of,
)
from boundlab.precision import is_traced
from boundlab.typing import Count

LEARNERS = ("joint", "own", "shared", "orthogonal", "ols")
METHODS = ("sufficient", "grouped", "raw")
# Numbers drawn at once: 8 MB in float64.
BLOCK = 2**20


class FullInformation(NamedTuple):
    """Actions of two empirical risk minimisers on the same scores."""

    joint: Int[Array, "trials agents"]
    """The joint action with the largest mean score."""
    separate: Int[Array, "trials agents"]
    """Each agent's action with the largest mean score of its own."""


def simulate_regret(
    key: Any,
    task: TeamTask,
    learner: str,
    num_trajectories: Any,
    num_trials: Count,
    method: str = "sufficient",
) -> Float[Array, " trials"]:
    """Regret max R − R(â) of what a learner picks after N trajectories, in independent trials.

    Args:
        key: one typed key.
        task: a `ParityTask`, `OrderTask` or `NeedleTask`; its numbers may be traced.
        learner: `joint`, `own`, `shared`, `orthogonal` or `ols`, see the module.
        num_trajectories: N > 0. `raw` needs a whole number, divisible by A^K (joint, orthogonal) or by A;
            `sufficient` and `grouped` take any and may be traced: an arm's mean has variance σ²/m at
            fractional m too.
        num_trials: T ≥ 1.
        method: `sufficient` (at most 2²⁴ joint actions), `grouped` (any number of them) or `raw` for
            joint and own; `raw` alone for the others.

    Returns:
        (T,) regrets in the working precision; rounding errors of optimal picks are set to 0.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#bandit-feedback.

    """
    check_key("key", key)
    pattern, payoffs = halves(task)
    check_choice("learner", learner, LEARNERS)
    check_choice("method", method, METHODS)
    trials = check_integer("num_trials", num_trials, 1)
    if method != "raw" and learner not in ("joint", "own"):
        raise fail("method", repr(method), f"'raw' for the learner {learner!r}")
    check_number("num_trajectories", num_trajectories, 0, low_open=True)
    check_shape("num_trajectories", num_trajectories, ())
    if learner == "orthogonal" or (learner == "joint" and method != "grouped"):
        instead = "; method 'grouped' takes more" if learner == "joint" else ""
        check_joint_actions(pattern, "task", instead)
    arms = pattern.num_actions ** (pattern.num_agents if learner in ("joint", "orthogonal") else 1)
    if method == "raw":
        samples = whole_samples(num_trajectories, arms)
        return _raw(key, payoffs, pattern, learner, samples, trials)
    n = jnp.asarray(num_trajectories).astype(payoffs.gap.dtype)
    return _drawn(key, payoffs, n, pattern, learner, trials, method == "grouped")


def simulate_full_information(
    key: Any, task: TeamTask, num_samples: Any, num_trials: Count
) -> FullInformation:
    """Joint and per-agent empirical risk minimisation when every action's score is seen n times.

    Agent k's score of action a is μ_k(a) + σ_s·N(0, 1) in each sample; the joint minimiser maximises the
    mean over agents of mean scores plus λ·g(a), which it knows.

    Args:
        key: one typed key.
        task: a `ParityTask` or `OrderTask` with at most 2²⁴ joint actions; its numbers may be traced.
        num_samples: n > 0 samples an arm, real; may be traced.
        num_trials: T ≥ 1.

    Returns:
        Actions (T, K) of both on the same scores. Without coupling they are equal.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#joint-training.

    """
    check_key("key", key)
    if isinstance(task, NeedleTask):
        raise fail("task", "a NeedleTask", "a ParityTask or OrderTask, whose own rewards add up")
    pattern, payoffs = halves(task)
    check_number("num_samples", num_samples, 0, low_open=True)
    check_shape("num_samples", num_samples, ())
    trials = check_integer("num_trials", num_trials, 1)
    check_joint_actions(pattern)
    n = jnp.asarray(num_samples).astype(payoffs.gap.dtype)
    return _full_information(key, payoffs, n, pattern, trials)


def whole_samples(num_trajectories: Any, arms: int) -> int:
    """Samples an arm m = N/arms of a raw design."""
    if is_traced(num_trajectories):
        raise fail("num_trajectories", "a traced value", "a static integer for method 'raw'")
    n = float(np.asarray(num_trajectories))
    if not n.is_integer() or int(n) % arms:
        raise fail("num_trajectories", n, f"a multiple of {arms} (arms) for method 'raw'")
    return int(n) // arms


def compact_table(
    pattern: Pattern, payoffs: Payoffs, learner: str
) -> tuple[Float[Array, "agents groups"], Float[Array, "agents groups"]]:
    """Mean scores and numbers of an agent's actions 0, 1 and all others, which earn alike."""
    columns = min(pattern.num_actions, 3)
    table = own_table if learner == "own" else marginal_table
    values = table(pattern, payoffs, columns)
    counts = np.broadcast_to([1.0, 1.0, pattern.num_actions - 2.0][:columns], values.shape)
    return values, jnp.asarray(counts, values.dtype)


def group_actions(
    winners: Int[Array, "agents trials"], within: Float[Array, "agents trials"], pattern: Pattern
) -> Int[Array, "trials agents"]:
    """Actions of groups 0, 1 and the rest, where `within` in [0, 1) picks one."""
    rest = max(pattern.num_actions - 2, 1)
    picked = jnp.minimum(jnp.floor(within * rest).astype(jnp.int32), rest - 1)
    return jnp.where(winners < 2, winners, 2 + picked).T


def regret_of(
    pattern: Pattern, payoffs: Payoffs, rewards: Float[Array, " trials"]
) -> Float[Array, " trials"]:
    """Regret of rewards, max R − R, with 0 for what rounding leaves of it."""
    regret = best_reward(pattern, payoffs) - rewards
    size = payoffs.bonus + payoffs.cost * pattern.num_agents
    return jnp.where(regret > 64 * jnp.finfo(regret.dtype).eps * size, regret, 0.0)


def in_blocks(key: Any, one_block: Any, num_trials: int, numbers: int) -> Any:
    """one_block(key, trials), block after block of trials that draw about 2²⁰ of `numbers` a trial."""
    size = max(1, min(num_trials, BLOCK // max(numbers, 1)))
    blocks = math.ceil(num_trials / size)
    if blocks == 1:
        return one_block(key, num_trials)
    found = jax.lax.map(lambda one: one_block(one, size), jax.random.split(key, blocks))
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:num_trials], found)


@functools.partial(jax.jit, static_argnames=("pattern", "learner", "trials", "grouped"))
def _drawn(
    key: jax.Array,
    payoffs: Payoffs,
    n: Float[Array, ""],
    pattern: Pattern,
    learner: str,
    trials: int,
    grouped: bool,
) -> Float[Array, " trials"]:
    """Regrets from means: of every arm, or of each group's best."""
    actions, agents = pattern.num_actions, pattern.num_agents
    joint = learner == "joint"
    noise_std = payoffs.outcome_noise_std if joint else payoffs.own_noise_std
    if grouped:
        if joint:
            values, sizes = group_rewards(pattern, payoffs)
            values, counts = values[None, :], jnp.asarray(sizes, values.dtype)[None, :]
        else:
            values, counts = compact_table(pattern, payoffs, learner)
    elif joint:
        values = joint_rewards(pattern, payoffs)[None, :]
    else:
        values = own_table(pattern, payoffs, actions)
    # Only now are A^K arms known to be in range.
    scale = noise_std * jnp.sqrt(float(actions) ** (agents if joint else 1) / n)

    def block(one: jax.Array, size: int) -> Float[Array, " size"]:
        first, second = jax.random.split(one)
        if grouped:
            winners = group_winners(values, counts, group_maxima(first, counts, size), scale)
        else:
            z = stored_normal(first, (size, *values.shape), values.dtype)
            winners = arm_winners(values[None] + scale * z, z).T
        if joint:
            return regret_of(pattern, payoffs, values[0][winners[0]])
        if grouped:
            within = jax.random.uniform(second, winners.shape, values.dtype)
            picked = group_actions(winners, within, pattern)
        else:
            picked = winners.T
        return regret_of(pattern, payoffs, rewards_of(pattern, payoffs, picked))

    return in_blocks(key, block, trials, values.size)


@functools.partial(jax.jit, static_argnames=("pattern", "learner", "samples", "trials"))
def _raw(
    key: jax.Array, payoffs: Payoffs, pattern: Pattern, learner: str, samples: int, trials: int
) -> Float[Array, " trials"]:
    """Regrets from trajectories, `samples` an arm."""
    actions, agents = pattern.num_actions, pattern.num_agents
    joint = joint_rewards(pattern, payoffs) if learner in ("joint", "orthogonal") else None
    rows = samples * (actions if joint is None else len(joint))
    dtype = payoffs.gap.dtype

    def one(key: jax.Array) -> Float[Array, ""]:
        draw, last = jax.random.split(key)
        if joint is not None:
            noise = jax.random.normal(draw, (samples, len(joint)), dtype)
            means = jnp.mean(joint[None, :] + payoffs.outcome_noise_std * noise, axis=0)
            if learner == "joint":
                pick = arm_winners(means, jax.random.uniform(last, means.shape, dtype))
                return joint[pick]
            cells = means.reshape((actions,) * agents)
            scores = jnp.stack([_marginal(cells, k) for k in range(agents)])
        elif learner == "own":
            own = own_table(pattern, payoffs, actions)
            noise = jax.random.normal(draw, (samples, *own.shape), dtype)
            scores = jnp.mean(own[None] + payoffs.own_noise_std * noise, axis=0)
        else:
            m = jnp.asarray(samples, jnp.int32)
            played, outcomes, used = shuffled_outcomes(draw, payoffs, m, pattern, rows)
            if learner == "ols":
                scores = additive_fit(played, outcomes, used, pattern)
            else:
                scores = action_means(played, outcomes, m, pattern)
        picks = arm_winners(scores, jax.random.uniform(last, scores.shape, dtype))
        return rewards_of(pattern, payoffs, picks)

    def block(first: jax.Array, size: int) -> Float[Array, " size"]:
        rewards = jax.vmap(one)(jax.random.split(first, size))
        return regret_of(pattern, payoffs, rewards)

    return in_blocks(key, block, trials, rows * agents)


def shuffled_outcomes(
    key: Any, payoffs: Payoffs, samples: Int[Array, ""], pattern: Pattern, rows: int
) -> tuple[Int[Array, "rows agents"], Float[Array, " rows"], Float[Array, " rows"]]:
    """Actions, outcomes and which rows are used: each agent plays each action `samples` times.

    The agents' orders are independent and uniform; the first agent's is fixed, since the order of rows
    means nothing. Rows beyond samples·A are not used, and their outcomes are 0.
    """
    actions, agents = pattern.num_actions, pattern.num_agents
    place = jnp.arange(rows, dtype=jnp.uint32)
    used = place < (samples * actions).astype(jnp.uint32)
    balanced = place % jnp.uint32(actions)
    order_key, noise_key = jax.random.split(key)
    # Random high bits with the action in the low ones: to sort them is to shuffle the actions.
    low = jnp.uint32(max(actions - 1, 0).bit_length())
    bits = jax.random.bits(order_key, (agents - 1, rows), jnp.uint32) >> jnp.uint32(1)
    tickets = ((bits >> low) << low) | balanced[None, :]
    shuffled = jnp.sort(jnp.where(used[None, :], tickets, jnp.uint32(2**32 - 1)), axis=1)
    others = jnp.where(used[None, :], shuffled & ((jnp.uint32(1) << low) - jnp.uint32(1)), 0)
    played = jnp.concatenate([balanced[None, :], others]).astype(jnp.int32).T
    dtype = payoffs.gap.dtype
    noise = jax.random.normal(noise_key, (rows,), dtype)
    outcomes = rewards_of(pattern, payoffs, played) + payoffs.outcome_noise_std * noise
    weight = used.astype(dtype)
    return played, outcomes * weight, weight


def action_means(
    played: Int[Array, "rows agents"],
    outcomes: Float[Array, " rows"],
    samples: Int[Array, ""],
    pattern: Pattern,
) -> Float[Array, "agents actions"]:
    """Mean outcome of the trajectories in which agent k played a."""
    arms = jnp.arange(pattern.num_actions, dtype=jnp.int32)
    chosen = played[:, :, None] == arms[None, None, :]
    sums = jnp.sum(jnp.where(chosen, outcomes[:, None, None], 0.0), axis=0)
    return sums / samples.astype(outcomes.dtype)


def additive_fit(
    played: Int[Array, "rows agents"],
    outcomes: Float[Array, " rows"],
    used: Float[Array, " rows"],
    pattern: Pattern,
) -> Float[Array, "agents actions"]:
    """Least squares of the used outcomes on the agents' actions, no interactions, action 0 the baseline.

    A design that confounds actions gets the solution of a vanishing ridge.
    """
    actions, agents = pattern.num_actions, pattern.num_agents
    dtype, total = outcomes.dtype, jnp.sum(used)
    if actions == 1:
        return jnp.zeros((agents, 1), dtype)
    arms = jnp.arange(1, actions, dtype=jnp.int32)
    columns = (played[:, :, None] == arms[None, None, :]).astype(dtype) - 1 / actions
    design = columns.reshape(len(played), -1) * used[:, None]
    centred = outcomes - used * (jnp.sum(outcomes) / total)
    with jax.default_matmul_precision("highest"):  # accelerators would round float32 to 10 bits
        gram, moments = design.T @ design, design.T @ centred
    ridge = 8 * jnp.finfo(dtype).eps * total * agents
    factor = jnp.linalg.cholesky(gram + ridge * jnp.eye(len(gram), dtype=dtype))
    slopes = cho_solve((factor, True), moments).reshape(agents, actions - 1)
    return jnp.concatenate([jnp.zeros((agents, 1), dtype), slopes], axis=1)


@functools.partial(jax.jit, static_argnames=("pattern", "trials"))
def _full_information(
    key: jax.Array, payoffs: Payoffs, n: Float[Array, ""], pattern: Pattern, trials: int
) -> FullInformation:
    actions, agents = pattern.num_actions, pattern.num_agents
    own = own_table(pattern, payoffs, actions)
    # The bonus alone: the scores bring the rest.
    bonus = joint_rewards(pattern, payoffs._replace(cost=jnp.zeros_like(payoffs.cost)))
    scale = payoffs.own_noise_std / jnp.sqrt(n)
    shape = (actions,) * agents

    def block(one: jax.Array, size: int) -> FullInformation:
        z = stored_normal(one, (size, *own.shape), own.dtype)
        scores = own[None] + scale * z

        def summed(parts: Float[Array, "size agents actions"]) -> Float[Array, "size arms"]:
            total = jnp.zeros((size, 1), own.dtype)
            for k in range(agents):
                total = (total[:, :, None] + parts[:, None, k]).reshape(size, -1)
            return total / agents

        joint = arm_winners(summed(scores) + bonus[None, :], summed(z))
        places = jnp.unravel_index(joint, shape)
        return FullInformation(jnp.stack(places, axis=1), arm_winners(scores, z))

    return in_blocks(key, block, trials, 2 * bonus.size)


def _marginal(cells: Float[Array, "..."], agent: int) -> Float[Array, " actions"]:
    return jnp.mean(cells, axis=tuple(k for k in range(cells.ndim) if k != agent))
