"""How many trajectories a learner needs, measured: the N at which failures become as rare as asked.

Symbols as in `team_tasks` and `team_simulation`; δ the failure probability; a trial fails if its regret
max R − R(â) exceeds the accuracy ε.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betainc
from jaxtyping import Array, Bool, Float, Int

from boundlab.checks import check_choice, check_integer, check_key, check_number, check_shape, fail
from boundlab.models.team_selection import arm_winners, group_maxima, group_winners
from boundlab.models.team_simulation import (
    action_means,
    compact_table,
    group_actions,
    in_blocks,
    regret_of,
    shuffled_outcomes,
)
from boundlab.models.team_tasks import (
    Pattern,
    Payoffs,
    TeamTask,
    group_rewards,
    halves,
    marginal_table,
    rewards_of,
)
from boundlab.precision import is_traced, x64
from boundlab.typing import Count, Scalar

LEARNERS = ("joint", "own", "shared", "orthogonal")
# Standard deviations of a mean that are tried, relative to the range of the means; 40 halvings of
# their logarithms leave 3e-11 of N.
SCALES = (1e-9, 1e4)
HALVINGS = 40
# A raw design is searched up to this many trajectories.
MOST_TRAJECTORIES = 2**20


class SampleComplexity(NamedTuple):
    """Trajectories needed, and how often the learner failed there."""

    num_samples: Float[Array, ""]
    """N in trajectories, in each of which all K agents act; 0 if none are needed, +inf if none do."""
    failure_rate: Float[Array, ""]
    """Share of the trials whose regret exceeds the accuracy at that N, in its limit if N is 0 or +inf."""
    interval: Float[Array, " 2"]
    """95 % Clopper–Pearson interval (low, high) of the failure probability at that N, taken as given."""


def empirical_sample_complexity(
    key: Any,
    task: TeamTask,
    learner: str,
    accuracy: Scalar,
    failure_probability: Scalar,
    num_trials: Count,
) -> SampleComplexity:
    """Smallest N at which at most a share δ of the trials has regret > ε, by bisection on log N.

    Trials keep their random numbers from one N to the next. `joint`, `own` and `orthogonal` find a real
    N: an arm's mean is drawn with variance σ²/m at fractional m too, by groups of arms that earn alike,
    so that A^K has no limit. (With all joint actions played equally often, what `orthogonal` agents
    compare has independent Gaussian noise of variance σ_o²·A/N.) `shared` has no such law: it plays its
    trajectories and finds a multiple of A. The failure probability is taken to fall with N wherever it
    passes δ.

    Args:
        key: one typed key.
        task: a `ParityTask`, `OrderTask` or `NeedleTask`; its numbers may be traced but for `shared`.
        learner: `joint`, `own`, `shared` or `orthogonal`, see `team_simulation`.
        accuracy: ε ≥ 0, in rewards of the team; may be traced.
        failure_probability: δ in (0, 1); may be traced (but for `shared`).
        num_trials: T ≥ 1; a failure probability of .1 is known to 2 % at T = 20,000.

    Returns:
        N, the failure rate and its interval. N is 0 if picks at random do, as with one action, without a
        gap, or δ near 1; without noise it is 0 too, for any N > 0 does. It is +inf if learners without
        noise fail more often than δ: their floor exceeds the accuracy.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#bandit-feedback.

    """
    check_key("key", key)
    pattern, payoffs = halves(task)
    check_choice("learner", learner, LEARNERS)
    check_number("accuracy", accuracy, 0)
    check_shape("accuracy", accuracy, ())
    check_number("failure_probability", failure_probability, 0, 1, low_open=True, high_open=True)
    check_shape("failure_probability", failure_probability, ())
    trials = check_integer("num_trials", num_trials, 1)
    dtype = payoffs.gap.dtype
    epsilon, delta = (jnp.asarray(x).astype(dtype) for x in (accuracy, failure_probability))
    if learner == "shared":
        most = _most_samples(task, pattern, payoffs, failure_probability)
        n, rate = _search_designs(key, payoffs, epsilon, delta, pattern, trials, most)
    else:
        n, rate = _search(key, payoffs, epsilon, delta, pattern, learner, trials)
    total = jnp.asarray(trials, dtype)
    return SampleComplexity(n, rate, _interval_of(jnp.round(rate * total), trials))


def binomial_interval(failures: Scalar, num_trials: Count) -> Float[Array, " 2"]:
    """95 % Clopper–Pearson interval (low, high) of a probability, from failures among trials.

    Args:
        failures: 0 to `num_trials`; may be traced.
        num_trials: ≥ 1.

    Raises:
        ValueError: an argument is out of range; it is named.

    """
    trials = check_integer("num_trials", num_trials, 1)
    check_number("failures", failures, 0, trials)
    check_shape("failures", failures, ())
    count = jnp.asarray(failures).astype(jnp.result_type(float))
    return _interval_of(count, trials)


def _interval_of(failures: Float[Array, ""], trials: int) -> Float[Array, " 2"]:
    """The interval in the type of `failures`, found in float64 if not traced: betainc loses digits."""
    dtype = failures.dtype
    if is_traced(failures):
        return _interval(failures, jnp.asarray(trials, dtype))
    with x64():
        found = _interval(jnp.asarray(np.asarray(failures, np.float64)), jnp.asarray(float(trials)))
    return jnp.asarray(np.asarray(found), dtype)


@jax.jit
def _interval(failures: Float[Array, ""], total: Float[Array, ""]) -> Float[Array, " 2"]:
    dtype = failures.dtype
    shift = jnp.array([0.0, 1.0], dtype)
    first = failures + shift
    second = total - failures + 1 - shift
    level = jnp.array([0.025, 0.975], dtype)
    inside = (first > 0) & (second > 0)
    a, b = jnp.where(inside, first, 1.0), jnp.where(inside, second, 1.0)

    def halve(_: Any, ends: tuple[Float[Array, " 2"], ...]) -> tuple[Float[Array, " 2"], ...]:
        low, high = ends
        middle = (low + high) / 2
        below = betainc(a, b, middle) < level
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    steps = jnp.finfo(dtype).nmant + 8
    low, high = jax.lax.fori_loop(0, steps, halve, (jnp.zeros(2, dtype), jnp.ones(2, dtype)))
    return jnp.where(inside, (low + high) / 2, shift)


@functools.partial(jax.jit, static_argnames=("pattern", "learner", "trials"))
def _search(
    key: jax.Array,
    payoffs: Payoffs,
    epsilon: Float[Array, ""],
    delta: Float[Array, ""],
    pattern: Pattern,
    learner: str,
    trials: int,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Bisection where means of arms can be drawn at any real N."""
    dtype, joint = payoffs.gap.dtype, learner == "joint"
    if joint:
        rewards, sizes = group_rewards(pattern, payoffs)
        values, counts = rewards[None, :], jnp.asarray(sizes, dtype)[None, :]
        arms = float(pattern.num_actions) ** pattern.num_agents
    else:
        values, counts = compact_table(pattern, payoffs, learner)
        arms = float(pattern.num_actions)
    noise_std = payoffs.own_noise_std if learner == "own" else payoffs.outcome_noise_std

    def failed(
        winners: Int[Array, "rows trials"], within: Float[Array, "rows trials"]
    ) -> Bool[Array, " trials"]:
        if joint:
            earned = values[0][winners[0]]
        else:
            earned = rewards_of(pattern, payoffs, group_actions(winners, within, pattern))
        return _failed(pattern, payoffs, earned, epsilon)

    return search_groups(key, values, counts, arms, noise_std, failed, delta, trials)


def search_groups(
    key: Any,
    values: Float[Array, "rows groups"],
    counts: Float[Array, "rows groups"],
    arms: Any,
    noise_std: Float[Array, ""],
    failed: Callable[[Array, Array], Array],
    delta: Float[Array, ""],
    trials: int,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """N at which a share δ of the trials fails, and the share, where rows pick among groups of arms.

    `failed` says of (rows, trials) groups picked, and of as many uniform numbers to pick within them,
    which trials fail. An arm's mean has standard deviation noise_std·√(arms/N).
    """
    dtype = values.dtype
    first, second = jax.random.split(key)
    maxima = group_maxima(first, counts, trials)
    within = jax.random.uniform(second, (len(values), trials), dtype)
    some = counts > 0
    span = jnp.max(jnp.where(some, values, -jnp.inf)) - jnp.min(jnp.where(some, values, jnp.inf))
    ends = jnp.log(jnp.where(span > 0, span, 1.0)) + jnp.log(jnp.asarray(SCALES, dtype))
    zero, one = jnp.zeros((), dtype), jnp.ones((), dtype)

    # Steps 0 and 1 look at no data and at no noise; one program then serves these and the halvings.
    def step(i: Any, state: tuple[Float[Array, ""], ...]) -> tuple[Float[Array, ""], ...]:
        low, high, at_none, at_all, found = state
        middle = (low + high) / 2
        signal = jnp.where(i == 0, zero, one)
        scale = jnp.where(i == 0, one, jnp.where(i == 1, zero, jnp.exp(middle)))
        winners = group_winners(signal * values, counts, maxima, scale)
        rate = jnp.mean(failed(winners, within).astype(dtype))
        enough = rate <= delta
        halving = i > 1
        return (
            jnp.where(halving & enough, middle, low),
            jnp.where(halving & ~enough, middle, high),
            jnp.where(i == 0, rate, at_none),
            jnp.where(i == 1, rate, at_all),
            jnp.where((i == 1) | (halving & enough), rate, found),
        )

    state = (ends[0], ends[1], zero, zero, zero)
    low, _, at_none, at_all, found = jax.lax.fori_loop(0, HALVINGS + 2, step, state)
    needed = arms * (noise_std / jnp.exp(low)) ** 2
    found = jnp.where(noise_std > 0, found, at_all)
    return _answer(needed, found, at_none, at_all, delta)


@functools.partial(jax.jit, static_argnames=("pattern", "trials", "most"))
def _search_designs(
    key: jax.Array,
    payoffs: Payoffs,
    epsilon: Float[Array, ""],
    delta: Float[Array, ""],
    pattern: Pattern,
    trials: int,
    most: int,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Bisection over whole samples an arm, 1 to `most`, of shared rewards."""
    rows, dtype = most * pattern.num_actions, payoffs.gap.dtype

    def failure(samples: Int[Array, ""]) -> Float[Array, ""]:
        def one(key: jax.Array) -> Float[Array, ""]:
            draw, last = jax.random.split(key)
            played, outcomes, _ = shuffled_outcomes(draw, payoffs, samples, pattern, rows)
            means = action_means(played, outcomes, jnp.maximum(samples, 1), pattern)
            tie_break = jax.random.uniform(last, means.shape, dtype)
            return rewards_of(pattern, payoffs, arm_winners(means, tie_break))

        def block(first: jax.Array, size: int) -> Float[Array, " size"]:
            return jax.vmap(one)(jax.random.split(first, size))

        earned = in_blocks(key, block, trials, rows * pattern.num_agents)
        return jnp.mean(_failed(pattern, payoffs, earned, epsilon).astype(dtype))

    def unfinished(state: Any) -> Any:
        i, low, high, _ = state
        return (i < 2) | (high - low > 1)

    def step(state: Any) -> Any:
        i, low, high, rates = state
        middle = jnp.sqrt(jnp.maximum(low, 1).astype(dtype) * high.astype(dtype))
        probe = jnp.clip(jnp.round(middle).astype(jnp.int32), low + 1, high - 1)
        probe = jnp.where(i == 0, 0, jnp.where(i == 1, most, probe))
        rate = failure(probe)
        enough = rate <= delta
        halving = i > 1
        return (
            i + 1,
            jnp.where(halving & ~enough, probe, low),
            jnp.where(halving & enough, probe, high),
            jnp.stack(
                [
                    jnp.where(i == 0, rate, rates[0]),
                    jnp.where(i == 1, rate, rates[1]),
                    jnp.where((i == 1) | (halving & enough), rate, rates[2]),
                ]
            ),
        )

    start = (jnp.int32(0), jnp.int32(0), jnp.int32(most), jnp.zeros(3, dtype))
    _, _, high, rates = jax.lax.while_loop(unfinished, step, start)
    needed = (high * pattern.num_actions).astype(dtype)
    return _answer(needed, rates[2], rates[0], rates[1], delta)


def _answer(
    needed: Float[Array, ""],
    found: Float[Array, ""],
    at_none: Float[Array, ""],
    at_all: Float[Array, ""],
    delta: Float[Array, ""],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """N and the failure rate there, from the rates at N = 0, at the N found, and without noise."""
    never, always = at_all > delta, at_none <= delta
    n = jnp.where(never, jnp.inf, jnp.where(always, 0.0, needed))
    return n, jnp.where(never, at_all, jnp.where(always, at_none, found))


def _failed(
    pattern: Pattern, payoffs: Payoffs, earned: Float[Array, " trials"], epsilon: Float[Array, ""]
) -> Bool[Array, " trials"]:
    """Regret > ε; equality to rounding is no failure."""
    size = payoffs.bonus + payoffs.cost * pattern.num_agents
    slack = 64 * jnp.finfo(earned.dtype).eps * size
    return regret_of(pattern, payoffs, earned) > epsilon + slack


def _most_samples(
    task: TeamTask, pattern: Pattern, payoffs: Payoffs, failure_probability: Any
) -> int:
    """Samples an arm after which shared rewards have told all they tell.

    By the union bound for Gaussian means, m = 4 ln(K(A − 1)/(2δ'))·σ²/gap² with all of the teammates'
    variance in σ² and δ' = min(δ, 1/4); a few more for small m.
    """
    if is_traced(payoffs, failure_probability):
        raise fail("task", "traced values", "concrete ones for the learner 'shared'")
    actions, agents = pattern.num_actions, pattern.num_agents
    columns = min(actions, 3)
    means = np.asarray(marginal_table(pattern, payoffs, columns), np.float64)
    behind = means.max(axis=1, keepdims=True) - means
    size = float(payoffs.bonus) + float(payoffs.cost) * agents
    gaps = behind[behind > 64 * float(jnp.finfo(payoffs.gap.dtype).eps) * size]
    if not gaps.size:
        return 8
    values, counts = (np.asarray(x, np.float64) for x in group_rewards(pattern, payoffs))
    weights = counts / counts.sum()
    variance = float(payoffs.outcome_noise_std) ** 2
    variance += float(weights @ values**2 - (weights @ values) ** 2)
    delta = min(float(np.asarray(failure_probability)), 0.25)
    union = 4 * max(math.log(agents * max(actions - 1, 1) / (2 * delta)), 1.0)
    most = math.ceil(union * variance / gaps.min() ** 2) + 8
    if most * actions > MOST_TRAJECTORIES:
        got = f"one that may need {most * actions} trajectories with shared rewards"
        raise fail("task", got, f"at most {MOST_TRAJECTORIES}: a larger gap or less noise")
    return most
