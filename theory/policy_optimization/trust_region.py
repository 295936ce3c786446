"""The trust-region step of tabular policies, its sample form, and what it is sure to gain.

Symbols: policy π(a|s), advantage A(s, a), state weights w(s), radius δ. The radius is in units of
D̂(s) = Σ_a |π′(a|s) − π(a|s)| = 2D_TV(s), as in `li2026fibration`: without the ½ of the total variation.
Samples i = (s, a) have ratios r = π′/π and deviations Δ = r − 1; of a state's T_s samples n_a took a.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from boundlab.checks import check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.theory.policy_optimization.improvement import horizon_number
from boundlab.typing import Count, Numbers, Scalar

# How far rows of probabilities may be from summing to 1: rows in float32 are a few 1e-7 off.
SUM_TOLERANCE = 1e-5


class TrustRegionStep(NamedTuple):
    """The policy that gains most, to first order, within the radius."""

    policy: Float[Array, "states actions"]
    """π′: rows sum to what those of π sum to, nothing is negative."""
    surrogate_gain: Float[Array, ""]
    """Σ_s w(s) Σ_a (π′ − π)A, in units of the advantage."""


@float64
def tv_trpo_step(policy: Any, advantage: Any, weights: Any, radius: Scalar) -> TrustRegionStep:
    """Maximise Σ_s w(s) Σ_a (π′ − π)A subject to Σ_a |π′(a|s) − π(a|s)| ≤ δ in every state, exactly:

        move probability δ/2 from the worst actions to the best one, in every state.

    The worst action gives what it has, then the next-worst, until δ/2 is moved or all is at the best.
    While δ/2 ≤ π(worst) the gain is δ Σ_s w(s)(max A − min A)/2. Tied actions share in proportion to
    their probabilities (the best ones, if they have none, equally), so that the squared deviation
    Σ_a π(r − 1)² is the least possible; a state of equal advantages stays as it is.

    Args:
        policy: π (S, A), rows sum to 1; zeros are allowed. May be traced, as all others; then x64 is on.
        advantage: A (S, A); a constant added to a row changes nothing.
        weights: w (S,) ≥ 0, an occupancy for instance. States of weight 0 are improved, too.
        radius: δ ≥ 0 in the units of D̂; from 2 on everything may move.

    Returns:
        TrustRegionStep(policy, surrogate_gain).

    Raises:
        ValueError: an argument has another shape or is out of range; it is named.

    Source: derived, docs/policy_optimization.md#trust-region-step; li2026fibration, Theorem D.3
    (without the limit π′ ≥ 0).

    """
    check_shape("policy", policy, (None, None), "(S, A)")
    shape = np.shape(policy)
    check_shape("advantage", advantage, shape, "(S, A) of policy")
    check_shape("weights", weights, shape[:1], "(S,) of policy")
    check_number("policy", policy, 0)
    check_number("advantage", advantage)
    check_number("weights", weights, 0)
    if not is_traced(policy):
        sums = np.asarray(policy).astype(np.float64).sum(axis=1)
        if not np.allclose(sums, 1.0, rtol=0, atol=SUM_TOLERANCE):
            worst = sums[np.argmax(np.abs(sums - 1.0))]
            raise fail("policy", f"probabilities that sum to {worst:.6g}", "rows that sum to 1")
    _check_radius(radius)
    arrays = [jnp.asarray(a).astype(jnp.float64) for a in (policy, advantage, weights, radius)]
    return _step(*arrays)


@float64
def apc_gate(ratio: Numbers, state_id: Any, radius: Scalar) -> Float[Array, " samples"]:
    """Gated ratios of aggregational policy censoring, 1 + clip(r_i − 1, ±B_i⁺), with

        B_i = T_s(δ − D̂(s)) + |r_i − 1|,    D̂(s) = (1/T_s) Σ_{i′ in s} |r_i′ − 1|.

    Inside the region, D̂(s) ≤ δ, nothing changes; outside, each deviation shrinks by T_s(D̂ − δ), to 0 at
    the least.

    Args:
        ratio: r (N,), one a sample; negative ones, which no policy has, are accepted. May be traced.
        state_id: (N,) integers in [0, N): the state of each sample. May be traced.
        radius: δ ≥ 0 in the units of D̂. May be traced.

    Raises:
        ValueError: an argument has another shape or is out of range; it is named.

    Source: li2026fibration, Definition 3.2.

    """
    ratios, states, delta = _samples(ratio, state_id, radius)
    return _gated(ratios, states, delta)


@float64
def apc_objective(
    ratio: Numbers, advantage: Numbers, state_id: Any, radius: Scalar
) -> Float[Array, ""]:
    """Objective of aggregational policy censoring, (1/N) Σ_i [1 + clip(r_i − 1, ±B_i⁺)]A_i.

    Its unconstrained maximum is that of the surrogate in the trust region if in every state the ratios
    and the advantages average to 1 and 0 over the samples, not otherwise.

    Args:
        ratio: r (N,), one a sample; as in `apc_gate`. May be traced, as all others.
        advantage: A (N,) of each sample.
        state_id: (N,) integers in [0, N): the state of each sample.
        radius: δ ≥ 0 in the units of D̂.

    Raises:
        ValueError: an argument has another shape or is out of range; it is named.

    Source: li2026fibration, Definition 3.2 and Appendix D; docs/policy_optimization.md#retraction.

    """
    ratios, states, delta = _samples(ratio, state_id, radius)
    check_shape("advantage", advantage, np.shape(ratio), "(N,) of ratio")
    check_number("advantage", advantage)
    gain = jnp.asarray(advantage).astype(jnp.float64)
    return jnp.mean(_gated(ratios, states, delta) * gain)


@float64
def retraction(deviation: Numbers, counts: Numbers, radius: Scalar) -> Float[Array, " actions"]:
    """Deviations Δ of one state's actions, gated as by `apc_gate` and centred again: proj(G(Δ)).

    proj subtracts the mean over samples, so that Σ_a n_a Δ_a = 0. If that held before, then

        D̂(proj G(Δ)) = D̂(Δ) if D̂(Δ) ≤ δ,    and ≤ max(2δ − D̂(Δ), 0) otherwise.

    Args:
        deviation: Δ = r − 1 (A,), the same for all samples of an action. May be traced, as all others.
        counts: n (A,) ≥ 0, how many samples took each action, one at least; real weights may be given.
        radius: δ ≥ 0 in the units of D̂.

    Raises:
        ValueError: an argument has another shape or is out of range; it is named.

    Source: li2026fibration, Lemma D.9; derived, docs/policy_optimization.md#retraction.

    """
    check_shape("deviation", deviation, (None,), "(A,)")
    check_shape("counts", counts, np.shape(deviation), "(A,) of deviation")
    check_number("deviation", deviation)
    check_number("counts", counts, 0)
    if not is_traced(counts) and not np.sum(np.asarray(counts)) > 0:
        raise fail("counts", "no sample", "one at least")
    _check_radius(radius)
    delta, number = (jnp.asarray(a).astype(jnp.float64) for a in (deviation, counts))
    total = jnp.sum(number)
    total = jnp.where(total > 0.0, total, 1.0)
    excess = jnp.sum(number * jnp.abs(delta)) - total * jnp.asarray(radius).astype(jnp.float64)
    gated = _shrunk(delta, jnp.maximum(excess, 0.0))
    return gated - jnp.sum(number * gated) / total


@float64
def trust_region_radius(
    improvement: Scalar, advantage_max: Scalar, discount: Scalar
) -> Float[Array, ""]:
    """Radius at which the discounted bound, with D̂ in the place of D_TV, promises most:

        t* = (1 − γ)M/(8γε),    M = (1 − γ) Σ_s d_π(s)(max_a A − min_a A)/2 ≤ ε.

    It vanishes as γ → 1. With the ½ that D̂ lacks it would be four times as large.

    Args:
        improvement: M = (1 − γ)Σ_s d(s)(max A − min A)/2 ≥ 0, a mean over the *normalised* occupancy;
            not J′ − J. May be traced, as all others.
        advantage_max: ε = max|A| ≥ 0.
        discount: γ in [0, 1).

    Returns:
        t*, in the units of D̂; +inf where any radius will do (γ = 0) or there is nothing to gain (ε = 0).

    Raises:
        ValueError: an argument is out of range or no single number; it is named.

    Source: li2026fibration, Theorem D.3.

    """
    gain, largest, gamma = _scales(improvement, advantage_max, discount)
    return _quotient((1.0 - gamma) * gain, 8.0 * gamma * largest)


@float64
def guaranteed_gain(
    improvement: Scalar, advantage_max: Scalar, discount: Scalar
) -> Float[Array, ""]:
    """What the step of that radius is sure to gain: J(π′) − J(π) ≥ M²/(16γε).

    It needs t*/2 ≤ π(worst action) in every state. The true gain is between 15/8 and 17/8 of it.

    Args:
        improvement: M ≥ 0, as in `trust_region_radius`. May be traced, as all others.
        advantage_max: ε = max|A| ≥ 0.
        discount: γ in (0, 1).

    Returns:
        The gain, in units of the return (not normalised); 0 for ε = 0.

    Raises:
        ValueError: an argument is out of range or no single number; it is named.

    Source: derived, docs/policy_optimization.md#trust-region-step.

    """
    check_number("discount", discount, 0, 1, low_open=True, high_open=True)
    gain, largest, gamma = _scales(improvement, advantage_max, discount)
    some = largest > 0.0
    return jnp.where(some, gain**2 / (16.0 * gamma * jnp.where(some, largest, 1.0)), 0.0)


@float64
def trust_region_radius_finite(
    improvement: Scalar, advantage_max: Scalar, horizon: Count
) -> Float[Array, ""]:
    """Radius at which the bound for H steps without discount, L − 2H(H − 1)ε(D̂/2)², promises most:

        t* = M/(H(H − 1)ε),    M = Σ_{t<H} E_{s_t∼π}(max_a A − min_a A)/2.

    Args:
        improvement: M ≥ 0, summed over steps. May be traced, as all others.
        advantage_max: ε = max|A| ≥ 0.
        horizon: H ≥ 1.

    Returns:
        t*, in the units of D̂; +inf for H = 1 or ε = 0.

    Raises:
        ValueError: an argument is out of range or no single number; it is named.

    Source: derived, docs/policy_optimization.md#finite-horizon.

    """
    gain, largest, _ = _scales(improvement, advantage_max, 0.0)
    steps = horizon_number(horizon, 1)
    return _quotient(gain, steps * (steps - 1.0) * largest)


@float64
def guaranteed_gain_finite(
    improvement: Scalar, advantage_max: Scalar, horizon: Count
) -> Float[Array, ""]:
    """What the step of that radius is sure to gain in H ≥ 2 steps: M²/(2H(H − 1)ε), 0 for ε = 0.

    Arguments as in `trust_region_radius_finite`. It needs t*/2 ≤ π(worst action) in every state. The
    true gain is between 3/2 and 5/2 of it.

    Raises:
        ValueError: an argument is out of range or no single number; it is named.

    Source: derived, docs/policy_optimization.md#finite-horizon.

    """
    gain, largest, _ = _scales(improvement, advantage_max, 0.0)
    steps = horizon_number(horizon, 2)
    some = largest > 0.0
    scale = 2.0 * steps * (steps - 1.0) * jnp.where(some, largest, 1.0)
    return jnp.where(some, gain**2 / scale, 0.0)


def _check_radius(radius: Any) -> None:
    check_shape("radius", radius, ())
    check_number("radius", radius, 0)


def _scales(improvement: Any, advantage_max: Any, discount: Any) -> list[Float[Array, ""]]:
    for name, value in (("improvement", improvement), ("advantage_max", advantage_max)):
        check_shape(name, value, ())
        check_number(name, value, 0)
    check_shape("discount", discount, ())
    check_number("discount", discount, 0, 1, high_open=True)
    arguments = (improvement, advantage_max, discount)
    return [jnp.asarray(value).astype(jnp.float64) for value in arguments]


def _quotient(above: Float[Array, ""], below: Float[Array, ""]) -> Float[Array, ""]:
    """Of non-negative numbers; +inf where the divisor is 0."""
    some = below > 0.0
    return jnp.where(some, above / jnp.where(some, below, 1.0), jnp.inf)


def _samples(
    ratio: Any, state_id: Any, radius: Any
) -> tuple[Float[Array, " samples"], Int[Array, " samples"], Float[Array, ""]]:
    check_shape("ratio", ratio, (None,), "(N,)")
    check_shape("state_id", state_id, np.shape(ratio), "(N,) of ratio")
    check_number("ratio", ratio)
    kind = state_id.dtype if hasattr(state_id, "dtype") else np.asarray(state_id).dtype
    if not jnp.issubdtype(kind, jnp.integer):
        raise fail("state_id", f"values of type {kind}", "integers")
    check_number("state_id", state_id, 0, np.shape(ratio)[0] - 1)
    _check_radius(radius)
    return (
        jnp.asarray(ratio).astype(jnp.float64),
        jnp.asarray(state_id).astype(jnp.int32),
        jnp.asarray(radius).astype(jnp.float64),
    )


@jax.jit
def _gated(
    ratio: Float[Array, " samples"], state: Int[Array, " samples"], radius: Float[Array, ""]
) -> Float[Array, " samples"]:
    deviation = ratio - 1.0
    # What a state is over its budget: Σ(|r − 1| − δ) over its samples.
    over = jax.ops.segment_sum(jnp.abs(deviation) - radius, state, len(ratio))
    # B_i⁺ ≥ |r − 1| inside the region, where the deviation itself is kept bit for bit.
    excess = jnp.maximum(over, 0.0)[state]
    return jnp.where(excess > 0.0, 1.0 + _shrunk(deviation, excess), ratio)


def _shrunk(
    deviation: Float[Array, " n"], excess: Float[Array, " n"] | Float[Array, ""]
) -> Float[Array, " n"]:
    """Each deviation moved towards 0 by its state's excess, not beyond it."""
    size = jnp.maximum(jnp.abs(deviation) - excess, 0.0)
    return jnp.where(deviation < 0.0, -size, size)


@jax.jit
def _step(
    policy: Float[Array, "states actions"],
    advantage: Float[Array, "states actions"],
    weights: Float[Array, " states"],
    radius: Float[Array, ""],
) -> TrustRegionStep:
    best = advantage == jnp.max(advantage, axis=1, keepdims=True)
    order = jnp.argsort(advantage, axis=1, stable=True)
    back = jnp.argsort(order, axis=1, stable=True)
    chance = jnp.take_along_axis(policy, order, axis=1)
    sorted_advantage = jnp.take_along_axis(advantage, order, axis=1)
    # Probability of all that is worse, and of all that is tied, by the ends of runs of equal advantages.
    through = jnp.cumsum(chance, axis=1)
    rises = sorted_advantage[:, 1:] > sorted_advantage[:, :-1]
    edge = jnp.ones((len(policy), 1), bool)
    starts = jnp.concatenate([edge, rises], axis=1)
    ends = jnp.concatenate([rises, edge], axis=1)
    worse = jax.lax.cummax(jnp.where(starts, through - chance, 0.0), axis=1)
    upto = jax.lax.cummin(jnp.where(ends, through, jnp.inf), axis=1, reverse=True)
    tied = jnp.maximum(upto - worse, 0.0)
    taken_share = jnp.clip(0.5 * radius - worse, 0.0, tied) / jnp.where(tied > 0.0, tied, 1.0)
    given = jnp.where(best, 0.0, policy * jnp.take_along_axis(taken_share, back, axis=1))
    moved = jnp.sum(given, axis=1, keepdims=True)
    at_best = jnp.where(best, policy, 0.0)
    held = jnp.sum(at_best, axis=1, keepdims=True)
    equally = best.astype(policy.dtype) / jnp.sum(best.astype(policy.dtype), axis=1, keepdims=True)
    share = jnp.where(held > 0.0, at_best / jnp.where(held > 0.0, held, 1.0), equally)
    # All that is moved comes from an action to the best: no difference of large numbers.
    behind = jnp.max(advantage, axis=1, keepdims=True) - advantage
    gain = jnp.sum(weights * jnp.sum(given * behind, axis=1))
    return TrustRegionStep(policy - given + moved * share, gain)
