"""Exact law of the arm with the largest empirical mean: one best arm, groups of arms, binary rewards.

Symbols: M arms (candidate policies, or one agent's actions), one of them better by the gap Δ, or groups g
of c_g arms of value v_g; m samples per arm of noise σ; s = √m/σ and x = Δs; q the failure probability, δ
its target; φ, Φ density and distribution function of N(0, 1). All sizes are in samples *per arm*: a
balanced design takes m·M of them. Whose rewards are compared, an agent's own or the team's, is up to v
and σ.
"""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erfc, gammaln, logsumexp, xlog1py, xlogy
from jaxtyping import Array, Float

from boundlab.checks import check_integer, check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.typing import Count, Numbers, Scalar

LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# Standard errors beyond which even 1e300 arms win with a probability below every float.
FURTHEST = 160.0
# Nodes of the trapezoid rules, whose error falls exponentially in them; blocks of them bound memory.
SLIPPAGE_NODES = 640
BLOCKS, BLOCK = 12, 64
# The margin left and right of the integrands' peaks.
MARGIN = 9.0
HALVINGS = 60
MOST_SAMPLES = 10**6


@float64
def selection_probabilities(
    values: Numbers, counts: Numbers, samples_per_arm: Scalar, noise_std: Scalar
) -> Float[Array, " groups"]:
    """Probability that the arm of the largest empirical mean lies in each group:

        P(g) = c_g ∫ φ(z) Φ(z)^{c_g − 1} Π_{h≠g} Φ(z + (v_g − v_h)s)^{c_h} dz.                 (E1)

    Expected regret is Σ P(g)(max v − v_g). Relative error of each, tails included, below 1e-8.

    Args:
        values: v (G,) mean rewards of the groups, in any order, ties allowed. May be traced.
        counts: c (G,) ≥ 0 arms of each group, not all 0; floats, at most 1e300. May be traced.
        samples_per_arm: m ≥ 0, real. May be traced.
        noise_std: σ ≥ 0 of one sample. May be traced.

    Returns:
        (G,) probabilities in input order. Without samples c_g/Σc; without noise 1 for the best group,
        and tied ones share by count.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: bechhofer1954single for a common noise and known gaps; groups derived,
    docs/team_learning.md#selection.

    """
    check_shape("values", values, (None,))
    check_number("values", values)
    arms = jnp.asarray(values).astype(jnp.float64)
    whole = _floats("counts", counts)
    check_shape("counts", whole, arms.shape, "one count a value")
    check_number("counts", whole, 0, 1e300)
    sizes = jnp.asarray(whole).astype(jnp.float64)
    if not is_traced(sizes) and not float(jnp.max(sizes)) > 0.0:
        raise fail("counts", "zeros alone", "at least one arm")
    for name, number in (("samples_per_arm", samples_per_arm), ("noise_std", noise_std)):
        check_shape(name, number, ())
        check_number(name, number, 0)
    samples, noise = (jnp.asarray(n).astype(jnp.float64) for n in (samples_per_arm, noise_std))
    return group_probabilities(arms, sizes, samples, noise)


@float64
def slippage_failure(num_arms: Numbers, x: Numbers) -> Float[Array, "*batch"]:
    """Probability q that the best of M arms, x standard errors ahead of all others, isn't selected:

        q(M, x) = ∫ φ(z) [1 − Φ(z + x)^{M−1}] dz,   x = Δ√m/σ.                                 (E2)

    Relative error below 1e-8 down to the smallest float (1e-3 beyond 1e15 arms): nothing is taken from 1.

    Args:
        num_arms: M ≥ 1, the best one counted; up to 1e300. May be traced.
        x: ≥ 0. May be traced. Both may be arrays that broadcast.

    Returns:
        q; 1 − 1/M at x = 0, 0 for M = 1.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: bechhofer1954single; docs/team_learning.md#selection.

    """
    arms, at = _paired(num_arms, "x", x)
    check_number("x", x, 0)
    return _failures(arms.reshape(-1), at.reshape(-1)).reshape(arms.shape)


@float64
def slippage_root(num_arms: Numbers, failure_probability: Numbers) -> Float[Array, "*batch"]:
    """Separation x* at which the best of M arms is missed with probability δ: q(M, x*) = δ.

    m* = (x*σ/Δ)² is the exact number of samples per arm. Relative error below 1e-9 up to 1e15 arms, 1e-5
    beyond.

    Args:
        num_arms: M ≥ 1, the best one counted; up to 1e300. May be traced.
        failure_probability: δ in (0, 1). May be traced. Both may be arrays that broadcast.

    Returns:
        x*, not its square; 0 where δ ≥ 1 − 1/M, which a uniform choice reaches.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#selection.

    """
    arms, delta = _paired(num_arms, "failure_probability", failure_probability)
    check_number("failure_probability", failure_probability, 0, 1, low_open=True, high_open=True)
    return _roots(arms.reshape(-1), delta.reshape(-1)).reshape(arms.shape)


@float64
def bernoulli_selection(
    num_arms: Count | Scalar, best_mean: Scalar, other_mean: Scalar, samples_per_arm: Count
) -> Float[Array, ""]:
    """Probability that the best of M arms with 0/1 rewards has the most successes, ties at random:

        P(best) = Σ_k f₁(k) (F(k)^M − F(k−1)^M)/(M f(k)),

    f₁ the law Bin(m, p₁) of the best arm, f and F that of another, Bin(m, p₀), and its sum.

    Args:
        num_arms: M ≥ 1, the best one counted; up to 1e300. May be traced.
        best_mean: p₁ in [0, 1]. May be traced; may be below p₀.
        other_mean: p₀ in [0, 1]. May be traced.
        samples_per_arm: m, an integer from 0 to 10⁶.

    Returns:
        The probability that this one arm is selected; relative error 1e-13·m.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#selection.

    """
    arms, _ = _paired(num_arms, "num_arms", num_arms)
    check_shape("num_arms", arms, ())
    for name, mean in (("best_mean", best_mean), ("other_mean", other_mean)):
        check_shape(name, mean, ())
        check_number(name, mean, 0, 1)
    m = check_integer("samples_per_arm", samples_per_arm, 0, MOST_SAMPLES)
    best, other = (jnp.asarray(p).astype(jnp.float64) for p in (best_mean, other_mean))
    return _bernoulli(arms, best, other, m)


@jax.jit
def group_probabilities(
    values: Float[Array, " groups"],
    counts: Float[Array, " groups"],
    samples: Float[Array, ""],
    noise: Float[Array, ""],
) -> Float[Array, " groups"]:
    """`selection_probabilities` unchecked: all arguments may be traced and vmapped.

    With t the largest estimate in units of 1/s, one pass over t serves all groups: the density of a win
    of g at t is c_g (φ/Φ)(t − u_g) Π_h Φ(t − u_h)^{c_h}, u_h ≤ 0 the place of group h.
    """
    present = counts > 0.0
    behind = jnp.where(present, jnp.max(jnp.where(present, values, -jnp.inf)) - values, 0.0)
    tied = present & (behind == 0.0)
    apart = (behind > 0.0) & (samples > 0.0)
    exact = noise <= 0.0
    scale = jnp.sqrt(samples) / jnp.where(exact, 1.0, noise)
    distance = jnp.where(apart, behind, 1.0) * jnp.where(apart & ~exact, scale, 1.0)
    distance = jnp.where(exact, FURTHEST, jnp.minimum(distance, FURTHEST))
    places = -jnp.where(apart, distance, 0.0)
    # A group that wins rarely does so half-way between its place and the best one's; where a group has
    # so many arms that one is surely better, no arm wins.
    low = jnp.maximum(0.5 * jnp.min(places) - MARGIN, jnp.max(places + _crowded(counts)))
    reach = places + jnp.sqrt(2.0 * jnp.log(jnp.maximum(counts, 1.0)))
    high = jnp.max(jnp.where(present, reach, 0.0)) + MARGIN
    step = (high - low) / (BLOCKS * BLOCK - 1)

    def add(
        total: Float[Array, " groups"], first: Float[Array, ""]
    ) -> tuple[Float[Array, " groups"], None]:
        t = low + step * (first + jnp.arange(BLOCK, dtype=jnp.float64))
        z = t[None, :] - places[:, None]
        log_cdf = _log_cdf(z)
        largest = jnp.sum(counts[:, None] * log_cdf, axis=0)
        log_hazard = -0.5 * z**2 - LOG_ROOT_TWO_PI - log_cdf
        return total + jnp.sum(jnp.exp(log_hazard + largest[None, :]), axis=1), None

    starts = BLOCK * jnp.arange(BLOCKS, dtype=jnp.float64)
    total, _ = jax.lax.scan(add, jnp.zeros_like(values), starts)
    # Without samples all arms are tied, without noise the best ones are.
    level = present & (tied | (samples <= 0.0))
    shares = jnp.where(level, counts, 0.0) / jnp.sum(jnp.where(level, counts, 0.0))
    return jnp.where((samples <= 0.0) | exact, shares, step * counts * total)


@jax.jit
def _failures(arms: Float[Array, " n"], x: Float[Array, " n"]) -> Float[Array, " n"]:
    return jnp.exp(jax.vmap(_log_failure)(arms, x))


@jax.jit
def _roots(arms: Float[Array, " n"], delta: Float[Array, " n"]) -> Float[Array, " n"]:
    return jax.vmap(_root)(arms, delta)


def _log_failure(arms: Float[Array, ""], x: Float[Array, ""]) -> Float[Array, ""]:
    """Log q(M, x), −∞ for M = 1."""
    x = jnp.minimum(x, FURTHEST)
    low, high = -0.5 * x - MARGIN, MARGIN
    z = low + (high - low) * jnp.linspace(0.0, 1.0, SLIPPAGE_NODES, dtype=jnp.float64)
    lost = -jnp.expm1((arms - 1.0) * _log_cdf(z + x))
    some = lost > 0.0
    log_lost = jnp.where(some, jnp.log(jnp.where(some, lost, 1.0)), -jnp.inf)
    log_step = jnp.log((high - low) / (SLIPPAGE_NODES - 1)) - LOG_ROOT_TWO_PI
    alone = arms <= 1.0
    peak = logsumexp(jnp.where(alone, 0.0, log_lost) - 0.5 * z**2)
    # A uniform choice is exact; what is integrated is off by rounding.
    uniform = jnp.log1p(-1.0 / jnp.where(alone, 2.0, arms))
    return jnp.where(alone, -jnp.inf, jnp.where(x > 0.0, peak + log_step, uniform))


def _root(arms: Float[Array, ""], delta: Float[Array, ""]) -> Float[Array, ""]:
    """x* by halving an interval that the union bound 4 ln((M − 1)/(2δ)) ≥ x*² closes."""
    goal = jnp.log(delta)
    others = jnp.maximum(arms - 1.0, 1.0)
    high = 2.0 * jnp.sqrt(jnp.maximum(jnp.log(0.5 * others) - goal, 0.0)) + 1e-6

    def halve(
        _: Any, ends: tuple[Float[Array, ""], Float[Array, ""]]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        low, high = ends
        middle = 0.5 * (low + high)
        fails = _log_failure(arms, middle) > goal
        return jnp.where(fails, middle, low), jnp.where(fails, high, middle)

    low, high = jax.lax.fori_loop(0, HALVINGS, halve, (jnp.zeros_like(high), high))
    # To rounding: 2/3 and 1 − 1/3 differ.
    reached = arms * (1.0 - delta) <= 1.0 + 1e-15
    return jnp.where(reached, 0.0, 0.5 * (low + high))


def _crowded(counts: Float[Array, " groups"]) -> Float[Array, " groups"]:
    """Places t below which Φ(t)^c is below e^{−900}: c(1 − Φ(t)) ≥ 1e5/(t√(2π)) there, and t ≤ 37."""
    many = counts > 1e5
    log_ratio = jnp.log(jnp.where(many, counts, 1e5)) - math.log(1e5)
    return jnp.where(many, jnp.sqrt(2.0 * log_ratio), -FURTHEST)


def _log_cdf(z: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Log Φ(z); right of 0 through 1 − Φ, since counts as large as A^K multiply it.

    One erfc serves both sides until it underflows; beyond, the series of Mills' ratio to 1e-10.
    """
    size = jnp.abs(z)
    far = z < -36.0
    tail = 0.5 * erfc(jnp.where(far, 0.0, size) / math.sqrt(2.0))
    inverse = 1.0 / jnp.where(far, size, 36.0) ** 2
    series = 1.0 - inverse * (1.0 - 3.0 * inverse * (1.0 - 5.0 * inverse))
    left = jnp.where(
        far, jnp.log(series * jnp.sqrt(inverse)) - 0.5 * z**2 - LOG_ROOT_TWO_PI, jnp.log(tail)
    )
    return jnp.where(z > 0.0, jnp.log1p(-jnp.where(z > 0.0, tail, 0.5)), left)


def _law(k: Float[Array, " k"], p: Float[Array, ""]) -> Float[Array, " k"]:
    """Bin(m, p) on 0, …, m."""
    m = k[-1]
    log_choose = gammaln(m + 1.0) - gammaln(k + 1.0) - gammaln(m - k + 1.0)
    return jnp.exp(log_choose + xlogy(k, p) + xlog1py(m - k, -p))


@functools.partial(jax.jit, static_argnames="m")
def _bernoulli(
    arms: Float[Array, ""], best: Float[Array, ""], other: Float[Array, ""], m: int
) -> Float[Array, ""]:
    k = jnp.arange(m + 1, dtype=jnp.float64)
    law = _law(k, other)
    below, above = jnp.cumsum(law), jnp.cumsum(law[::-1])[::-1] - law
    some = below > 0.0
    # Each sum near the end that it starts from.
    log_below = jnp.where(
        below < 0.5, jnp.log(jnp.where(some, below, 1.0)), jnp.log1p(-jnp.minimum(above, 0.5))
    )
    # (F^M − G^M)/(M f) = F^{M−1}(1 − (1 − y)^M)/(M y) with G = F − f, y = f/F.
    share = jnp.where(some, jnp.minimum(law / jnp.where(some, below, 1.0), 1.0), 0.0)
    rare = arms * share < 1e-12
    y = jnp.where(rare, 0.5, share)
    ties = jnp.where(rare, 1.0, -jnp.expm1(arms * jnp.log1p(-y)) / (arms * y))
    others = jnp.where(some, jnp.exp((arms - 1.0) * log_below), 0.0)
    return jnp.where(arms <= 1.0, 1.0, jnp.sum(_law(k, best) * others * ties))


def _paired(num_arms: Any, name: str, other: Any) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    """M ≥ 1 and the other argument as arrays that broadcast; `name` is named where they don't."""
    arms = _floats("num_arms", num_arms)
    check_number("num_arms", arms, 1, 1e300)
    rest = _floats(name, other)
    check_number(name, rest)
    try:
        shape = np.broadcast_shapes(np.shape(arms), np.shape(rest))
    except ValueError as error:
        raise fail(name, f"shape {np.shape(rest)}", f"one that fits {np.shape(arms)}") from error
    both = (jnp.asarray(one).astype(jnp.float64) for one in (arms, rest))
    first, second = (jnp.broadcast_to(one, shape) for one in both)
    return first, second


def _floats(name: str, value: Any) -> Any:
    """Python's integers, which may pass every integer type, as floats; all else as it is."""
    try:
        if isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if isinstance(value, list | tuple) and all(type(one) in (int, float) for one in value):
            return [float(one) for one in value]
    except OverflowError as error:
        raise fail(name, "an integer beyond 1e308", "at most 1e300") from error
    return value
