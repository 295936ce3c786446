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
from boundlab.models.token_tasks import trajectories, uniform_integers
from boundlab.typing import Count, Scalar

STARTS = ("random", "own")
MOST_CELLS = 2**22


class SearchRuns(NamedTuple):
    """Where independent teams ended."""

    actions: Int[Array, "trials agents"]
    """Each agent's action."""
    regret: Float[Array, " trials"]
    """max R − R of them."""


class InformationRegret(NamedTuple):
    """Regrets of one run of the information task."""

    joint: Float[Array, ""]
    """Of a learner that sees all contexts."""
    local: Float[Array, ""]
    """Of an agent that sees its own."""


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
    zero, one = jnp.zeros_like(payoffs.gap), jnp.ones_like(payoffs.gap)
    if samples_per_arm is None:
        responses, payoffs = one, payoffs._replace(outcome_noise_std=zero)
    else:
        responses = _positive("samples_per_arm", samples_per_arm, payoffs)
    exact = payoffs._replace(own_noise_std=zero)
    return _search(
        key, exact, zero if start == "random" else one, responses, pattern, trials, rounds
    )


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
    own = jnp.asarray(own_samples_per_arm).astype(payoffs.gap.dtype)
    team = _positive("team_samples_per_arm", team_samples_per_arm, payoffs)
    return _search(key, payoffs, own, team, pattern, trials, 1)


def simulate_information(
    key: Any,
    num_actions: Count,
    num_agents: Count,
    coupling: Scalar,
    num_trajectories: Any,
    num_evaluations: Count,
    *,
    max_trajectories: Count | None = None,
) -> InformationRegret:
    """Regrets of one run of the information task, measured on fresh contexts.

    Agent 1 explores uniformly for N trajectories, then takes the action of the largest mean reward in its
    context; untried actions count 0, of ties one is drawn for each context. A joint learner's table has
    all A^K contexts, a local one's agent 1's A; both learn from the same trajectories.

    Args:
        key: one typed key.
        num_actions: A ≥ 1, of actions and of each agent's contexts.
        num_agents: K ≥ 2; A^{K+1} at most 2²².
        coupling: λ ≥ 0. May be traced.
        num_trajectories: N ≥ 0. May be traced if `max_trajectories` is given.
        num_evaluations: ≥ 1 fresh trajectories.
        max_trajectories: the largest N that `num_trajectories` stands for.

    Returns:
        λ minus the mean reward of the fresh trajectories, of both.

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
    evaluations = check_integer("num_evaluations", num_evaluations, 1)
    count, most = trajectories("num_trajectories", num_trajectories, max_trajectories)
    weight = jnp.asarray(coupling).astype(jnp.result_type(float))
    return _information(key, weight, count, actions, agents, most, evaluations)


def _positive(name: str, samples: Scalar, payoffs: Payoffs) -> Float[Array, ""]:
    check_number(name, samples, 0, low_open=True)
    check_shape(name, samples, ())
    return jnp.asarray(samples).astype(payoffs.gap.dtype)


@partial(jax.jit, static_argnames=("pattern", "trials", "rounds"))
def _search(
    key: jax.Array,
    payoffs: Payoffs,
    own_samples: Float[Array, ""],
    team_samples: Float[Array, ""],
    pattern: Pattern,
    trials: int,
    rounds: int,
) -> SearchRuns:
    """A choice by own rewards, uniform if there are no samples of these, then rounds of responses."""
    agents, turns = pattern.num_agents, rounds * pattern.num_agents
    tried = jnp.arange(pattern.num_actions, dtype=jnp.int32)
    shape = (agents + turns, trials, pattern.num_actions)
    z = jax.random.normal(
        key, shape, payoffs.gap.dtype
    )  # one draw compiles in half the time of two
    some = own_samples > 0.0
    spread = payoffs.own_noise_std / jnp.sqrt(jnp.where(some, own_samples, 1.0))
    signals = own_table(pattern, payoffs, pattern.num_actions)[:, None, :] + spread * z[:agents]
    first = arm_winners(jnp.where(some, signals, 0.0), z[:agents]).T
    scale = payoffs.outcome_noise_std / jnp.sqrt(team_samples)

    def turn(
        actions: Int[Array, "trials agents"], row: tuple[Float[Array, "trials A"], Int[Array, ""]]
    ) -> tuple[Int[Array, "trials agents"], None]:
        noise, agent = row
        mine = jnp.arange(agents, dtype=jnp.int32) == agent
        options = jnp.where(  # trials, actions, agents
            mine[None, None, :], tried[None, :, None], actions[:, None, :]
        )
        rewards = rewards_of(pattern, payoffs, options)
        chosen = arm_winners(rewards + scale * noise, noise)
        return jnp.where(mine[None, :], chosen[:, None], actions), None

    order = jnp.arange(turns, dtype=jnp.int32) % agents
    actions, _ = jax.lax.scan(turn, first, (z[agents:], order))
    regret = best_reward(pattern, payoffs) - rewards_of(pattern, payoffs, actions)
    return SearchRuns(actions, regret)


@partial(jax.jit, static_argnames=("actions", "agents", "most", "evaluations"))
def _information(
    key: jax.Array,
    coupling: Float[Array, ""],
    count: Int[Array, ""],
    actions: int,
    agents: int,
    most: int,
    evaluations: int,
) -> InformationRegret:
    rows, visible = most + evaluations, (agents, 1)
    tables = [actions ** (seen + 1) for seen in visible]
    # One draw for contexts, actions and ties, which compiles in a third of the time of three.
    uniform = jax.random.uniform(key, (rows * (agents + 1) + sum(tables),), coupling.dtype)
    drawn = uniform_integers(uniform[: rows * (agents + 1)].reshape(rows, agents + 1), actions)
    contexts, acted, fresh = drawn[:most, :-1], drawn[:most, -1], drawn[most:, :-1]
    ties = jnp.split(uniform[rows * (agents + 1) :], (tables[0],))
    used = (jnp.arange(most, dtype=jnp.int32) < count).astype(coupling.dtype)
    paid = coupling * (acted == contexts[:, 1]).astype(coupling.dtype)

    def regret(seen: int, tie_break: Float[Array, " cells"]) -> Float[Array, ""]:
        digits = actions ** jnp.arange(seen, dtype=jnp.int32)
        place, asked = (
            jnp.sum(x[:, :seen] * digits[None, :], axis=1, dtype=jnp.int32)
            for x in (contexts, fresh)
        )
        cells = jnp.zeros((actions**seen, actions, 2), coupling.dtype)
        sums = cells.at[place, acted].add(jnp.stack([used * paid, used], axis=1))
        means = sums[..., 0] / jnp.maximum(sums[..., 1], 1.0)
        policy = arm_winners(means, tie_break.reshape(means.shape))
        hits = (policy[asked] == fresh[:, 1]).astype(coupling.dtype)
        return coupling * (1.0 - jnp.mean(hits))

    joint, local = (regret(seen, tie) for seen, tie in zip(visible, ties, strict=True))
    return InformationRegret(joint, local)
