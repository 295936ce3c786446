"""Discovery without noise: how many uniform trajectories until the best action has been seen.

Symbols: K agents of A actions; rewards are deterministic, every trajectory plays a uniform joint action;
one agent (outcome reward) needs the best of A^K joint actions, a team with own rewards (process) the best
of A actions for each agent; δ failure probability. N is in trajectories, in which all agents act at once.
"""

import decimal
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_integer, check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.typing import Count, Numbers, Scalar

MOST_DIGITS = 1000
MOST_ARMS = 10**5
# Sample sizes at which rounding could decide are powers of two with at most so many bits: a float has
# 1074 of them.
EXACT_BITS = 1200


def coupon_samples(
    num_actions: Count, num_agents: Count, failure_probability: Scalar
) -> tuple[int, int]:
    """Smallest numbers of trajectories that miss the best action with probability at most δ:

        n_sarl = ⌈ln δ / ln(1 − A^{−K})⌉,   n_marl = ⌈ln(1 − (1 − δ)^{1/K}) / ln(1 − 1/A)⌉.     (E5)

    Exact, for δ the binary number that it is: one trajectory less fails more often than δ.

    Args:
        num_actions: A ≥ 1.
        num_agents: K ≥ 1; A^K of at most 1000 digits.
        failure_probability: δ in (0, 1).

    Returns:
        (sarl, marl), Python integers ≥ 1, in trajectories.

    Raises:
        ValueError: an argument is out of range or traced; it is named.

    Source: derived, docs/team_learning.md#discovery.

    """
    actions, agents = _sizes(num_actions, num_agents)
    if is_traced(failure_probability):
        raise fail("failure_probability", "a traced value", "a number")
    check_shape("failure_probability", failure_probability, ())
    check_number("failure_probability", failure_probability, 0, 1, low_open=True, high_open=True)
    delta = float(np.asarray(failure_probability))
    return _smallest(actions**agents, 1, delta), _smallest(actions, agents, delta)


@float64
def discovery_failure(
    num_samples: Numbers, num_actions: Count, num_agents: Count
) -> tuple[Float[Array, "*budgets"], Float[Array, "*budgets"]]:
    """Probability that N uniform trajectories miss the best action:

        sarl (1 − A^{−K})^N,   marl 1 − (1 − (1 − 1/A)^N)^K.

    Args:
        num_samples: N ≥ 0 trajectories, a number or an array. May be traced.
        num_actions: A ≥ 1.
        num_agents: K ≥ 1; A^K of at most 1000 digits.

    Returns:
        (sarl, marl), each of the shape of `num_samples`; small probabilities keep their digits.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#discovery.

    """
    actions, agents = _sizes(num_actions, num_agents)
    if isinstance(num_samples, int) and 0 <= num_samples <= 10**300:
        num_samples = float(num_samples)  # it may pass every integer type
    check_number("num_samples", num_samples, 0)
    n = jnp.asarray(num_samples).astype(jnp.float64)
    rates = [
        -math.log1p(-1 / arms) if arms > 1 else math.inf for arms in (actions**agents, actions)
    ]
    return _missed(n, *(jnp.asarray(number, jnp.float64) for number in (*rates, float(agents))))


@float64
def coverage_probability(
    num_arms: Count, num_samples: Count | Scalar, num_agents: Count = 1
) -> Float[Array, ""]:
    """Probability that N uniform draws of each of K agents have shown every one of its M arms:

        (Σ_j (−1)^j C(M, j)(1 − j/M)^N)^K,

    by the number of arms seen so far, a sum of positive terms: small probabilities keep their digits.

    Args:
        num_arms: M, from 1 to 10⁵: A for an agent of a team, A^K for one agent.
        num_samples: N ≥ 0 trajectories, an integer. May be traced.
        num_agents: K ≥ 1 that draw independently.

    Returns:
        The probability; 0 for N < M.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#discovery.

    """
    arms = check_integer("num_arms", num_arms, 1, MOST_ARMS)
    agents = check_integer("num_agents", num_agents, 1)
    if is_traced(num_samples):
        check_shape("num_samples", num_samples, ())
        draws = jnp.asarray(num_samples).astype(jnp.int64)
    else:
        draws = jnp.asarray(check_integer("num_samples", num_samples, 0, 2**62), jnp.int64)
    law = jax.lax.fori_loop(0, draws, lambda _, law: _draw(law), _nothing_seen(arms))
    return law[-1] ** agents


@float64
def coverage_mean(num_arms: Count, num_agents: Count = 1) -> Float[Array, ""]:
    """Expected number of trajectories until every one of K agents has seen all of its M arms.

    M·H_M for one agent; the mean of the largest of K such times, Σ_n (1 − P(N = n covers)^K), else.

    Args:
        num_arms: M, from 1 to 10⁵.
        num_agents: K ≥ 1 that draw independently.

    Returns:
        The mean, in trajectories.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#discovery.

    """
    arms = check_integer("num_arms", num_arms, 1, MOST_ARMS)
    agents = check_integer("num_agents", num_agents, 1)
    if agents == 1:
        return jnp.asarray(arms * math.fsum(1 / j for j in range(1, arms + 1)), jnp.float64)
    # P(not covered) ≤ K·M(1 − 1/M)^n, of which the sum beyond here is below 1e-16.
    most = math.ceil(arms * (math.log(agents) + 2 * math.log(arms) + 37)) + 1

    def step(law: Float[Array, " seen"], _: None) -> tuple[Float[Array, " seen"], Float[Array, ""]]:
        # From what is missing: 1 − (1 − p)^K.
        missing = jnp.minimum(jnp.sum(law[:-1]), 1.0)
        whole = missing >= 1.0
        log_all = jnp.log1p(-jnp.where(whole, 0.5, missing))
        return _draw(law), jnp.where(whole, 1.0, -jnp.expm1(agents * log_all))

    _, uncovered = jax.lax.scan(step, _nothing_seen(arms), None, length=most)
    return jnp.sum(uncovered)


def _nothing_seen(arms: int) -> Float[Array, " seen"]:
    return jnp.zeros(arms + 1, jnp.float64).at[0].set(1.0)


def _draw(law: Float[Array, " seen"]) -> Float[Array, " seen"]:
    """The law of the number of arms seen, one draw later."""
    seen = jnp.arange(len(law), dtype=jnp.float64) / (len(law) - 1)
    fresh = (1.0 - seen) * law
    return seen * law + jnp.concatenate([jnp.zeros_like(fresh[:1]), fresh[:-1]])


@jax.jit
def _missed(
    n: Float[Array, "*budgets"],
    joint: Float[Array, ""],
    single: Float[Array, ""],
    agents: Float[Array, ""],
) -> tuple[Float[Array, "*budgets"], Float[Array, "*budgets"]]:
    """Failures of both, which miss the best of their arms with chance e^{−rate} in a trajectory."""
    none = n <= 0.0
    played = jnp.where(none, 1.0, n)
    each = jnp.log1p(-jnp.exp(-played * single))
    return (
        jnp.where(none, 1.0, jnp.exp(-played * joint)),
        jnp.where(none, 1.0, -jnp.expm1(agents * each)),
    )


def _sizes(num_actions: Count, num_agents: Count) -> tuple[int, int]:
    actions = check_integer("num_actions", num_actions, 1)
    agents = check_integer("num_agents", num_agents, 1)
    if agents * math.log10(actions) > MOST_DIGITS:
        got = f"{num_actions}^{num_agents} joint actions"
        raise fail("num_agents", got, f"at most {MOST_DIGITS} digits of A^K")
    return actions, agents


def _smallest(arms: int, agents: int, delta: float) -> int:
    """Smallest n ≥ 1 with 1 − (1 − (1 − 1/M)^n)^K ≤ δ."""
    if arms == 1:
        return 1
    digits = math.ceil(math.log10(arms)) + math.ceil(-math.log10(delta))
    context = decimal.Context(prec=80 + 2 * digits, Emax=10**9, Emin=-(10**9))
    one = decimal.Decimal(1)
    # δ_k = 1 − (1 − δ)^{1/K}, the failure that each agent may have.
    passing = context.ln(context.subtract(one, decimal.Decimal(delta)))
    root = context.exp(context.divide(passing, decimal.Decimal(agents)))
    each = (
        context.ln(context.subtract(one, root))
        if agents > 1
        else context.ln(decimal.Decimal(delta))
    )
    miss = context.ln(context.subtract(one, context.divide(one, decimal.Decimal(arms))))
    quotient = context.divide(each, miss)
    n = max(1, int(quotient.to_integral_value(decimal.ROUND_CEILING, context)))
    # P(failure) = δ exactly needs powers of two of few bits; beyond, 80 digits decide.
    if n * agents * arms.bit_length() <= 2 * EXACT_BITS:
        allowed = Fraction(delta)

        def fails(size: int) -> bool:
            return 1 - (1 - Fraction(arms - 1, arms) ** size) ** agents > allowed

        while n > 1 and not fails(n - 1):
            n -= 1
        while fails(n):
            n += 1
    return n
