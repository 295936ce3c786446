"""Value spectra of team tasks: how many joint actions have which mean reward.

Symbols: K agents, A actions each; an agent's own mean reward is 0 for action 0 and −Δ for the others, the
team's is their mean over agents plus λ times a coupling; j counts the agents that leave action 0. A
spectrum is (values, counts), one entry a group of joint actions of one mean reward (the team's); counts
are floats, since A^K passes every integer type.
"""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_integer, check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.theory.team_learning._reward import reward_tensor
from boundlab.typing import Count, Numbers, Scalar

# A^K beyond this is near the overflow of a float.
MOST_JOINT_ACTIONS = 10**300

Spectrum = tuple[Float[Array, " groups"], Float[Array, " groups"]]


@float64
def parity_spectrum(
    num_actions: Count, num_agents: Count, gap: Scalar, coupling: Scalar
) -> Spectrum:
    """Spectrum of the parity task, whose coupling pays λ where the actions sum to 1 modulo A.

        −jΔ/K + λ:  C(K, j)((A−1)^j − (−1)^j)/A joint actions,    −jΔ/K:  the other of C(K, j)(A−1)^j,

    for j = 0, …, K. With A = 1 the only joint action is paid λ.

    Args:
        num_actions: A ≥ 1.
        num_agents: K ≥ 1, A^K ≤ 1e300.
        gap: Δ ≥ 0, in units of reward. May be traced.
        coupling: λ ≥ 0, in units of reward. May be traced.

    Returns:
        (values (2K + 2,), counts (2K + 2,)), groups with the coupling first; some are empty.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#parity.

    """
    actions, agents = team_size(num_actions, num_agents)
    delta, weight = nonnegative("gap", gap), nonnegative("coupling", coupling)
    return _two_rows(delta, weight, agents, *parity_counts(actions, agents))


@float64
def order_q_spectrum(
    num_actions: Count, num_agents: Count, order: Count, gap: Scalar, coupling: Scalar
) -> Spectrum:
    """Spectrum of the order-q task, whose coupling pays λ where agents 1, …, q all take action 1.

        −jΔ/K + λ:  C(K−q, j−q)(A−1)^{j−q} joint actions,    −jΔ/K:  the other of C(K, j)(A−1)^j,

    for j = 0, …, K.

    Args:
        num_actions: A ≥ 2.
        num_agents: K ≥ 1, A^K ≤ 1e300.
        order: q, 1 ≤ q ≤ K.
        gap: Δ ≥ 0, in units of reward. May be traced.
        coupling: λ ≥ 0, in units of reward. May be traced.

    Returns:
        (values (2K + 2,), counts (2K + 2,)), groups with the coupling first; some are empty.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#order-q-coupling.

    """
    actions, agents = team_size(num_actions, num_agents, fewest_actions=2)
    q = check_integer("order", order, 1, agents, why="at most num_agents")
    delta, weight = nonnegative("gap", gap), nonnegative("coupling", coupling)
    paid, other = [], []
    for j in range(agents + 1):
        solved = math.comb(agents - q, j - q) * (actions - 1) ** (j - q) if j >= q else 0
        paid.append(solved)
        other.append(math.comb(agents, j) * (actions - 1) ** j - solved)
    return _two_rows(delta, weight, agents, paid, other)


@float64
def needle_spectrum(num_actions: Count, num_agents: Count, gap: Scalar) -> Spectrum:
    """Spectrum of the needle: one joint action is paid Δ, the other A^K − 1 nothing.

    Args:
        num_actions: A ≥ 1.
        num_agents: K ≥ 1, A^K ≤ 1e300.
        gap: Δ ≥ 0, in units of reward. May be traced.

    Returns:
        (values (2,), counts (2,)), the best joint action first.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#parity.

    """
    actions, agents = team_size(num_actions, num_agents)
    delta = nonnegative("gap", gap)
    counts = jnp.asarray([1.0, float(actions**agents - 1)], jnp.float64)
    return delta * jnp.asarray([1.0, 0.0], jnp.float64), counts


@float64
def reward_spectrum(reward: Numbers) -> Spectrum:
    """Spectrum of any reward tensor: its distinct values, and how often each occurs.

    Args:
        reward: R (A, …, A), axis k the action of agent k, in units of reward; not traced.

    Returns:
        (values (G,), counts (G,)), G ≤ A^K, in increasing order. Values that differ by rounding are
        different groups, which changes no probability but costs time.

    Raises:
        ValueError: `reward` is traced or no tensor of finite numbers with equal axes.

    Source: derived, docs/team_learning.md#selection.

    """
    if is_traced(reward):
        raise fail("reward", "a traced value", "a concrete tensor: its groups are counted")
    values, counts = np.unique(np.asarray(reward_tensor(reward)), return_counts=True)
    return jnp.asarray(values, jnp.float64), jnp.asarray(counts.astype(np.float64))


def parity_counts(actions: int, agents: int) -> tuple[list[int], list[int]]:
    """Joint actions of j = 0, …, K deviations with the coupling's pay, and without."""
    paid, other = [], []
    for j in range(agents + 1):
        total = math.comb(agents, j) * (actions - 1) ** j
        solved = math.comb(agents, j) * ((actions - 1) ** j - (-1) ** j) // actions
        paid.append(total if actions == 1 else solved)
        other.append(total - paid[-1])
    return paid, other


def team_size(num_actions: Count, num_agents: Count, *, fewest_actions: int = 1) -> tuple[int, int]:
    """A and K as Python ints; errors name the argument."""
    actions = check_integer("num_actions", num_actions, fewest_actions, MOST_JOINT_ACTIONS)
    agents = check_integer("num_agents", num_agents, 1, 10**4)
    if actions**agents > MOST_JOINT_ACTIONS:
        got = f"{actions} with {agents} agents"
        raise fail("num_actions", got, "A and K with A^K ≤ 1e300")
    return actions, agents


def nonnegative(name: str, value: Scalar) -> Float[Array, ""]:
    """One number ≥ 0 as a float64 scalar."""
    check_shape(name, value, ())
    check_number(name, value, 0)
    return jnp.asarray(value).astype(jnp.float64)


def _two_rows(
    gap: Float[Array, ""],
    coupling: Float[Array, ""],
    num_agents: int,
    paid: list[int],
    other: list[int],
) -> Spectrum:
    """Groups of j deviations, with the coupling's pay and without."""
    base = -gap * jnp.arange(num_agents + 1, dtype=jnp.float64) / float(num_agents)
    counts = jnp.asarray([float(count) for count in (*paid, *other)], jnp.float64)
    return jnp.concatenate([base + coupling, base]), counts
