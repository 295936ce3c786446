"""Teams that learn one agent after another, or from contexts that only some of them see.

Symbols as in `team_tasks`: K agents of A actions, R(a) the team's expected reward, ā each agent's own
best actions. *Sequential best response*: agents take turns; the one whose turn it is tries all its
actions with the others' held fixed, by the team's reward, and keeps the best. The *information task*:
contexts x uniform on {0, …, A−1}^K, and the team is paid λ·1{a_1 = x_2}; a joint learner sees all
contexts, local agents only their own.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from boundlab.checks import (
    check_choice,
    check_integer,
    check_key,
    check_number,
    check_shape,
    fail,
)
from boundlab.models.team_selection import arm_winners
from boundlab.models.team_tasks import Pattern, Payoffs, best_reward, halves, own_table, rewards_of
from boundlab.models.token_tasks import trajectories
from boundlab.typing import Count, Scalar

STARTS = ("random", "own")
LEARNERS = ("joint", "local")
MOST_CELLS = 2**22


class SearchRuns(NamedTuple):
    """Where independent teams ended."""

    actions: Int[Array, "trials agents"]
    """Each agent's action."""
    regret: Float[Array, " trials"]
    """max R − R of them."""


def simulate_best_response(
    key: Any,
    task: Any,
    start: str,
    num_trials: Count,
    *,
    samples_per_arm: Scalar | None = None,
    num_rounds: Count = 1,
) -> SearchRuns:
    """Sequential best response to the team's reward, agent 1 to K in each round.

    Args:
        key: one typed key.
        task: a ParityTask, OrderTask or NeedleTask; its floats may be traced.
        start: `random`, uniform joint actions, or `own`, ā.
        num_trials: ≥ 1 independent teams.
        samples_per_arm: m > 0 trajectories for each action of the agent whose turn it is, with the task's
            outcome noise, A·m trajectories a turn; None for exact responses. May be traced.
        num_rounds: ≥ 1 turns of every agent.

    Returns:
        Final actions and regrets; of exact ties one is drawn.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#best-response.

    """
    check_key("key", key)
    pattern, payoffs = halves(task)
    check_choice("start", start, STARTS)
    trials = check_integer("num_trials", num_trials, 1)
    rounds = check_integer("num_rounds", num_rounds, 1)
    scale = jnp.zeros_like(payoffs.gap)
    if samples_per_arm is not None:
        scale = _scale("samples_per_arm", samples_per_arm, payoffs.outcome_noise_std)
    start_key, turn_key = jax.random.split(key)
    shape = (trials, pattern.num_agents)
    if start == "random":
        first = jax.random.randint(start_key, shape, 0, pattern.num_actions, dtype=jnp.int32)
    else:
        exact = payoffs._replace(own_noise_std=jnp.zeros_like(payoffs.gap))
        first = _own_best(start_key, pattern, exact, jnp.ones_like(payoffs.gap), trials)
    return _respond(turn_key, first, payoffs, scale, pattern, rounds)


def simulate_two_phases(
    key: Any,
    task: Any,
    own_samples_per_arm: Scalar,
    team_samples_per_arm: Scalar,
    num_trials: Count,
) -> SearchRuns:
    """Own rewards first, then one round of best response to the team's.

    In the first phase all agents learn at once, from A·m trajectories; in the second one after another,
    from A·m' trajectories each.

    Args:
        key: one typed key.
        task: a ParityTask, OrderTask or NeedleTask; its floats may be traced.
        own_samples_per_arm: m ≥ 0, with the task's own noise; 0 leaves a uniform start. May be traced.
        team_samples_per_arm: m' > 0, with the task's outcome noise. May be traced.
        num_trials: ≥ 1 independent teams.

    Returns:
        Final actions and regrets.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#best-response.

    """
    check_key("key", key)
    pattern, payoffs = halves(task)
    trials = check_integer("num_trials", num_trials, 1)
    check_number("own_samples_per_arm", own_samples_per_arm, 0)
    check_shape("own_samples_per_arm", own_samples_per_arm, ())
    count = jnp.asarray(own_samples_per_arm).astype(payoffs.gap.dtype)
    team = _scale("team_samples_per_arm", team_samples_per_arm, payoffs.outcome_noise_std)
    own_key, turn_key = jax.random.split(key)
    first = _own_best(own_key, pattern, payoffs, count, trials)
    return _respond(turn_key, first, payoffs, team, pattern, 1)


def simulate_information(
    key: Any,
    num_actions: Count,
    num_agents: Count,
    coupling: Scalar,
    learner: str,
    num_trajectories: Any,
    num_evaluations: Count,
    *,
    max_trajectories: Count | None = None,
) -> Float[Array, ""]:
    """Regret of one run of the information task, measured on fresh contexts.

    Agent 1 explores uniformly for N trajectories, then takes the action of the largest mean reward in its
    context; untried actions count 0, of ties one is drawn for each context.

    Args:
        key: one typed key.
        num_actions: A ≥ 1, of actions and of each agent's contexts.
        num_agents: K ≥ 2; A^{K+1} at most 2²².
        coupling: λ ≥ 0. May be traced.
        learner: `joint`, whose table has all A^K contexts, or `local`, with agent 1's A.
        num_trajectories: N ≥ 0. May be traced if `max_trajectories` is given.
        num_evaluations: ≥ 1 fresh trajectories.
        max_trajectories: the largest N that `num_trajectories` stands for.

    Returns:
        λ minus the mean reward of the fresh trajectories.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#information-floor.

    """
    check_key("key", key)
    actions = check_integer("num_actions", num_actions, 1)
    agents = check_integer("num_agents", num_agents, 2)
    if actions ** (agents + 1) > MOST_CELLS:
        raise fail("num_agents", f"{actions}^{agents + 1} cells", f"at most {MOST_CELLS}")
    check_number("coupling", coupling, 0)
    check_shape("coupling", coupling, ())
    check_choice("learner", learner, LEARNERS)
    evaluations = check_integer("num_evaluations", num_evaluations, 1)
    count, most = trajectories("num_trajectories", num_trajectories, max_trajectories)
    weight = jnp.asarray(coupling).astype(jnp.result_type(float))
    return _information(key, weight, count, actions, agents, learner, most, evaluations)


def _scale(name: str, samples: Scalar, noise: Float[Array, ""]) -> Float[Array, ""]:
    """Standard deviation of a mean of `samples` numbers."""
    check_number(name, samples, 0, low_open=True)
    check_shape(name, samples, ())
    return noise / jnp.sqrt(jnp.asarray(samples).astype(noise.dtype))


@partial(jax.jit, static_argnames=("pattern", "trials"))
def _own_best(
    key: jax.Array, pattern: Pattern, payoffs: Payoffs, count: Float[Array, ""], trials: int
) -> Int[Array, "trials agents"]:
    """Each agent's choice by `count` samples of its own reward per action; uniform by 0."""
    table = own_table(pattern, payoffs, pattern.num_actions)
    z = jax.random.normal(key, (trials, *table.shape), table.dtype)
    scale = payoffs.own_noise_std / jnp.sqrt(jnp.where(count > 0.0, count, 1.0))
    scores = table[None, :, :] + scale * z
    return arm_winners(jnp.where(count > 0.0, scores, 0.0), z)


@partial(jax.jit, static_argnames=("pattern", "rounds"))
def _respond(
    key: jax.Array,
    first: Int[Array, "trials agents"],
    payoffs: Payoffs,
    scale: Float[Array, ""],
    pattern: Pattern,
    rounds: int,
) -> SearchRuns:
    tried = jnp.arange(pattern.num_actions, dtype=jnp.int32)

    def turn(
        actions: Int[Array, "trials agents"], row: tuple[jax.Array, Int[Array, ""]]
    ) -> tuple[Int[Array, "trials agents"], None]:
        own_key, agent = row
        mine = jnp.arange(pattern.num_agents, dtype=jnp.int32) == agent
        options = jnp.where(
            mine[None, None, :], tried[None, :, None], actions[:, None, :]
        )  # trials, actions, agents
        rewards = rewards_of(pattern, payoffs, options)
        z = jax.random.normal(own_key, rewards.shape, rewards.dtype)
        chosen = arm_winners(rewards + scale * z, z)
        return jnp.where(mine[None, :], chosen[:, None], actions), None

    turns = rounds * pattern.num_agents
    order = jnp.arange(turns, dtype=jnp.int32) % pattern.num_agents
    actions, _ = jax.lax.scan(turn, first, (jax.random.split(key, turns), order))
    regret = best_reward(pattern, payoffs) - rewards_of(pattern, payoffs, actions)
    return SearchRuns(actions, regret)


@partial(jax.jit, static_argnames=("actions", "agents", "learner", "most", "evaluations"))
def _information(
    key: jax.Array,
    coupling: Float[Array, ""],
    count: Int[Array, ""],
    actions: int,
    agents: int,
    learner: str,
    most: int,
    evaluations: int,
) -> Float[Array, ""]:
    draw_key, tie_key = jax.random.split(key)
    drawn = jax.random.randint(
        draw_key, (most + evaluations, agents + 1), 0, actions, dtype=jnp.int32
    )
    contexts, acted = drawn[:most, :-1], drawn[:most, -1]
    fresh = drawn[most:, :-1]
    visible = agents if learner == "joint" else 1
    digits = actions ** jnp.arange(visible, dtype=jnp.int32)

    def place(seen: Int[Array, "n agents"]) -> Int[Array, " n"]:
        return jnp.sum(seen[:, :visible] * digits[None, :], axis=1, dtype=jnp.int32)

    used = (jnp.arange(most, dtype=jnp.int32) < count).astype(coupling.dtype)
    paid = coupling * (acted == contexts[:, 1]).astype(coupling.dtype)
    cells = jnp.zeros((actions**visible, actions, 2), coupling.dtype)
    sums = cells.at[place(contexts), acted].add(jnp.stack([used * paid, used], axis=1))
    means = sums[..., 0] / jnp.maximum(sums[..., 1], 1.0)
    policy = arm_winners(means, jax.random.uniform(tie_key, means.shape, means.dtype))
    hits = (policy[place(fresh)] == fresh[:, 1]).astype(coupling.dtype)
    return coupling * (1.0 - jnp.mean(hits))
