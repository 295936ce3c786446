"""Regret and failure probability of a team's learners on the parity task, exactly, at any budget.

Symbols: K agents of A actions; Δ gap, λ coupling, σ_s noise of an agent's own reward, σ_o of the team's
outcome; N budget in trajectories (all agents act once in each), spread evenly over the arms compared; q
an agent's chance of a wrong action; ε accuracy. Regret is in the team's mean reward R(a) of the joint
action that is chosen in the end. Learners: `joint` compares the A^K joint actions by the outcome, with
m = N/A^K samples of each; the others compare an agent's A actions, m = N/A: `own` by its own (process)
reward, `shared` by the team's outcome while teammates act uniformly, `orthogonal` by the outcome in a
full factorial design.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_number
from boundlab.precision import float64
from boundlab.theory.team_learning._team_task import (
    Signal,
    Task,
    Value,
    agent_error,
    agent_signal,
    check_learner,
    checked,
    decomposed_regret,
    fails,
    joint_scale,
    pattern_failure,
    read_task,
    sees_all,
)
from boundlab.theory.team_learning._winners import winners_loss
from boundlab.typing import Numbers, Scalar

# Budgets are filled up to a multiple of the first number, so that a few programs serve all; at most the
# second are computed at once, to bound memory.
STEP, BATCH = 8, 512


@float64
def team_regret(num_trajectories: Numbers, task: Any, learner: str) -> Float[Array, "*budgets"]:
    """Expected regret R* − E R(a) of a learner with N trajectories.

        joint:  Σ_g P_g (v_max − v_g) over `parity_spectrum`, with the law (E1) at m = N/A^K and σ_o;
        others: max(0, λ − Δ/K) + Δq − λ(1 − (1 − qA/(A−1))^K)/A                            (E8),

    with q of one best action among A at m = N/A: gap Δ and noise σ_s for `own`; gap Δ/K for the others,
    with noise σ_o for `orthogonal` and σ_eff² = σ_o² + ((K−1)/K²)Δ²(A−1)/A² + λ²(A−1)/A² (E4) for
    `shared`. Exact for Gaussian noise but for `shared`, which takes teammates' exploration as Gaussian
    and errors as independent: 1–2 % of the regret at N ≥ 54. N < A^K interpolates for `joint`. One
    agent (K = 1) paid the outcome is the joint learner.

    Args:
        num_trajectories: N ≥ 0, a number or an array of any shape; 0 is a uniform choice. May be traced.
        task: a `boundlab.models.teams.ParityTask`, or anything with its attributes `num_actions`,
            `num_agents`, `gap`, `coupling`, `own_noise_std` and `outcome_noise_std` (None: own/√K).
            Its floats may be traced.
        learner: `joint`, `own`, `shared` or `orthogonal`.

    Returns:
        The regret, units of the team's reward, of the shape of `num_trajectories`.

    Raises:
        ValueError: an argument or attribute is out of range; it is named.

    Source: derived, docs/team_learning.md#bandit-feedback and #parity.

    """
    budgets, read = _budgets(num_trajectories), _checked(task, learner)
    if sees_all(task, learner):
        flat = _joint_regrets(_filled(budgets), read)
    else:
        flat = _team_regrets(_filled(budgets), read, agent_signal(read, learner))
    return flat[: budgets.size].reshape(budgets.shape)


@float64
def team_failure(
    num_trajectories: Numbers, task: Any, learner: str, accuracy: Scalar
) -> Float[Array, "*budgets"]:
    """P(R* − R(a) > ε), the chance that a learner with N trajectories isn't within ε of the best.

    `joint`: Σ P_g over the groups that are more than ε below the best. Others: errors J ~ Bin(K, q),
    uniform among wrong actions, over the patterns that lose more than ε; without coupling that is
    P(Bin(K, q) > ⌊Kε/Δ⌋).

    Args:
        num_trajectories: N ≥ 0, a number or an array of any shape. May be traced.
        task: as for `team_regret`.
        learner: `joint`, `own`, `shared` or `orthogonal`; laws as for `team_regret`.
        accuracy: ε ≥ 0, units of the team's reward; losses of ε itself are within it. May be traced.

    Returns:
        The probability, of the shape of `num_trajectories`; tails keep their relative accuracy.

    Raises:
        ValueError: an argument or attribute is out of range; it is named.

    Source: derived, docs/team_learning.md#bandit-feedback.

    """
    budgets, read = _budgets(num_trajectories), _checked(task, learner)
    level = checked("accuracy", accuracy)
    if sees_all(task, learner):
        flat = _joint_failures(_filled(budgets), read, level)
    else:
        flat = _team_failures(_filled(budgets), read, agent_signal(read, learner), level)
    return flat[: budgets.size].reshape(budgets.shape)


def joint_regret(budget: Value, task: Task) -> Value:
    """`team_regret` of the joint learner at one budget, unchecked."""
    return winners_loss(task.values, task.counts, task.losses, joint_scale(budget, task))


def regret_of_team(budget: Value, task: Task, signal: Signal) -> Value:
    """`team_regret` of a decomposed learner at one budget, unchecked."""
    return decomposed_regret(agent_error(budget, task, signal), task)


@jax.jit
def _joint_regrets(budgets: Float[Array, " n"], task: Task) -> Float[Array, " n"]:
    return _over(lambda budget: joint_regret(budget, task), budgets)


@jax.jit
def _team_regrets(budgets: Float[Array, " n"], task: Task, signal: Signal) -> Float[Array, " n"]:
    return _over(lambda budget: regret_of_team(budget, task, signal), budgets)


@jax.jit
def _joint_failures(budgets: Float[Array, " n"], task: Task, accuracy: Value) -> Float[Array, " n"]:
    failing = fails(task.losses, accuracy, task).astype(jnp.float64)
    return _over(
        lambda n: winners_loss(task.values, task.counts, failing, joint_scale(n, task)), budgets
    )


@jax.jit
def _team_failures(
    budgets: Float[Array, " n"], task: Task, signal: Signal, accuracy: Value
) -> Float[Array, " n"]:
    return _over(lambda n: pattern_failure(agent_error(n, task, signal), task, accuracy), budgets)


def _over(one: Any, budgets: Float[Array, " n"]) -> Float[Array, " n"]:
    if budgets.size <= BATCH:
        return jax.vmap(one)(budgets)
    return jax.lax.map(one, budgets, batch_size=BATCH)


def _filled(budgets: Float[Array, "*budgets"]) -> Float[Array, " n"]:
    step = STEP if budgets.size <= BATCH else BATCH
    return jnp.pad(budgets.reshape(-1), (0, step - 1 - (budgets.size - 1) % step))


def _budgets(num_trajectories: Numbers) -> Float[Array, "*budgets"]:
    check_number("num_trajectories", num_trajectories, 0)
    return jnp.asarray(num_trajectories).astype(jnp.float64)


def _checked(task: Any, learner: str) -> Task:
    check_learner(learner)
    return read_task(task)
