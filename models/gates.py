"""Ratio gates of FiberPO and of its hierarchy: what a sequence's probability ratios are replaced by.

Symbols: ρ_i = log r_i = log π_θ − log π_old of a token, T the number of unmasked tokens of its sequence,
l_i = +1 where ρ_i ≥ 0 (−0.0 too) and −1 elsewhere, log s± = (1/T)Σ max(±ρ, 0) ≥ 0 the two channels of a
sequence, C± their budgets, ε the limit of a token. Gates are returned as logarithms, log G.

    log G_i = log w + clip(l_i u_i, ±ε) − clip(l_i v_i, ±ε),
    log w = g(log s⁺; C⁺, T) − g(log s⁻; C⁻, T),   u_i = l_iρ_i − log s^(l_i),   v_i = −log s^(−l_i).

Arguments are (B, T), padded; what a masked position holds changes neither values nor gradients. All is
computed in the type of `log_ratio`, bfloat16 and float16 in float32.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Shaped

from boundlab.checks import check_number, fail
from boundlab.models.gate_arguments import check_scalar, floating, masked, pairs, parent_ids
from boundlab.precision import is_traced
from boundlab.typing import Numbers, Scalar


class LevelInfo(NamedTuple):
    """Aggregates of the nodes of one level above the sequences; 0 for a node without tokens."""

    log_s_plus: Any
    """(nodes,) mean of log s⁺ over the node's sequences that have tokens."""
    log_s_minus: Any
    """(nodes,) the same of log s⁻."""
    regime_plus: Any
    """(nodes,) regime of the node's own part, its mean less that of the node above it: as FiberInfo."""
    regime_minus: Any
    """(nodes,) the same of the negative channel."""


class FiberInfo(NamedTuple):
    """What a gate did; masked tokens and sequences without tokens hold 0."""

    log_s_plus: Any
    """(B,) log s⁺ = (1/T)Σ max(ρ, 0)."""
    log_s_minus: Any
    """(B,) log s⁻ = (1/T)Σ max(−ρ, 0), not negative either."""
    log_base_weight: Any
    """(B,) log w, the gated aggregates of all levels together."""
    u: Any
    """(B, T) distance of a token from its channel, l·ρ − log s^(l)."""
    v: Any
    """(B, T) minus the other channel, −log s^(−l)."""
    regime_plus: Any
    """(B,) integers: g of the sequence's positive channel passes (0), rolls back (1), gives zero (2)."""
    regime_minus: Any
    """(B,) the same of the negative channel."""
    levels: tuple[LevelInfo, ...] = ()
    """The levels above the sequences, finest first; none for `fiber_gate`."""


class _Nodes(NamedTuple):
    """Sums over the sequences with tokens of each node of a level."""

    plus: Float[Array, " _"]
    minus: Float[Array, " _"]
    sequences: Float[Array, " _"]
    tokens: Float[Array, " _"]


class _Gated(NamedTuple):
    """One level's part of log w, and its regimes."""

    value: Float[Array, " _"]
    regime_plus: Int[Array, " _"]
    regime_minus: Int[Array, " _"]


def aggregate_gate(x: Numbers, budget: Numbers, k: Numbers) -> Float[Array, "..."]:
    """Gate of an aggregate: it passes up to the budget, is rolled back, and is zero beyond (1 + 1/k)C.

        g(x; C, k) = x                          |x| ≤ C
                     sgn(x)(C − k(|x| − C))     C < |x| < (1 + 1/k)C
                     0                          elsewhere.

    Odd and continuous; the rollback is C/k wide with slope −k.

    Args:
        x: log of an aggregated ratio, any shape.
        budget: C ≥ 0. May be traced.
        k: number of unmasked tokens behind the aggregate, > 0. Both broadcast against `x`.

    Returns:
        g, elementwise, in the type of `x`, in float32 for float16 and bfloat16; NaN where x is NaN (a
        concrete one is refused).

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: li2026fibration, Definition 5.1 (g), written without its cancellation.

    """
    check_number("x", x)
    check_number("budget", budget, 0)
    check_number("k", k, 0, low_open=True)
    values = floating(x)
    others = (jnp.asarray(value).astype(values.dtype) for value in (budget, k))
    shape = values.shape
    for name, other in (("budget", budget), ("k", k)):
        try:
            shape = np.broadcast_shapes(shape, np.shape(other))
        except ValueError as error:
            raise fail(name, f"shape {np.shape(other)}", f"one that fits {shape}") from error
    return _gate(*(jnp.broadcast_to(part, shape) for part in (values, *others)))[0]


def fiber_gate(
    log_ratio: Any, mask: Any, budget_plus: Scalar, budget_minus: Scalar, epsilon: Scalar
) -> tuple[Float[Array, "batch tokens"], FiberInfo]:
    """Gate of FiberPO with the levels sequence and token: log G of the module's formula.

    r ↦ G is the identity where |ρ| ≤ min(ε, C⁺, C⁻) on the whole sequence, so the first update on policy
    has the gradient of the plain objective; always −(C⁻ + 2ε) ≤ log G ≤ C⁺ + 2ε. On its edge, every
    ρ = C, rounding decides: a mean that comes out just above C is rolled back, and its slope is −T.

    Args:
        log_ratio: ρ (B, T), natural logarithm, finite at tokens.
        mask: (B, T), bool or 0/1: which positions are tokens.
        budget_plus: C⁺ ≥ 0 of the mean increase. May be traced.
        budget_minus: C⁻ ≥ 0 of the mean decrease. May be traced.
        epsilon: ε > 0. May be traced.

    Returns:
        log G (B, T), 0 where masked, and `FiberInfo`.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: li2026fibration, Definition 5.1.

    """
    budgets = [("budget_plus", budget_plus), ("budget_minus", budget_minus)]
    for name, budget in budgets:
        check_scalar(name, budget, positive=False)
    return _gated(log_ratio, mask, (), ((budget_plus, budget_minus),), epsilon)


def hierarchy_gate(
    log_ratio: Any, mask: Any, parents: Any, budgets: Any, epsilon: Scalar
) -> tuple[Float[Array, "batch tokens"], FiberInfo]:
    """Gate of a hierarchy of any depth: sequences below nodes (groups, domains, …), finest first.

        log w = Σ_± ±[g(a_top; C_top, k_top) + Σ_levels g(a_node − a_parent; C_level, k_node)],

    over the nodes that hold the sequence. a = log s± of a node is the mean over all its sequences that
    have tokens (not over tokens, nor over its children), k its number of unmasked tokens. Tokens are
    gated as in `fiber_gate`. Each level's budgets limit what it adds to the level above.

    Args:
        log_ratio: ρ (B, T), finite at tokens.
        mask: (B, T), bool or 0/1.
        parents: `parents[0]` (B,) the node of each sequence, `parents[1]` the node above each of
            those, …: one entry a node (the domain of each group), not one a sequence. Ids of one level
            lie below the length of the next array, of the last below its own; traced ones that don't
            make all NaN. Nodes that nothing points to are harmless. () is `fiber_gate`. May be traced.
        budgets: one pair (C⁺, C⁻), each ≥ 0, a level; `budgets[0]` the sequences'. May be traced.
        epsilon: ε > 0. May be traced.

    Returns:
        log G (B, T), 0 where masked, and `FiberInfo`: aggregates and regimes of sequences are those of
        log s_sequence − log s_parent; `levels` holds one `LevelInfo` for each entry of `parents`.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: li2026fibration, Definitions 6.2 and 6.4 (three levels with one pair); a pair a level as here.

    """
    if not isinstance(parents, tuple | list):
        raise fail(
            "parents", f"a {type(parents).__name__}", "a tuple of arrays, finest level first"
        )
    return _gated(log_ratio, mask, tuple(parents), pairs(budgets, len(parents) + 1), epsilon)


def _gated(
    log_ratio: Any,
    mask: Any,
    parents: tuple[Any, ...],
    budgets: tuple[tuple[Any, Any], ...],
    epsilon: Scalar,
) -> tuple[Float[Array, "batch tokens"], FiberInfo]:
    ratio, kept = masked(log_ratio, mask)
    above = parent_ids(parents, ratio.shape[0])
    check_scalar("epsilon", epsilon, positive=True)
    for ids, size in above:
        if is_traced(ids):  # a gather would read another node; as a factor NaN gets everywhere
            inside = jnp.all((ids >= 0) & (ids < size))
            ratio = ratio * jnp.where(inside, 1.0, jnp.nan).astype(ratio.dtype)
    limit = jnp.asarray(epsilon).astype(ratio.dtype)
    limits = [tuple(jnp.asarray(c).astype(ratio.dtype) for c in pair) for pair in budgets]

    up = ratio >= 0.0  # l = +1; the derivative at 0 is that of ρ → 0⁺ in both channels
    count = jnp.sum(kept, axis=1, dtype=ratio.dtype)
    length = jnp.maximum(count, 1.0)
    plus = jnp.sum(jnp.where(up, ratio, 0.0), axis=1) / length
    minus = jnp.sum(jnp.where(up, 0.0, -ratio), axis=1) / length
    filled = jnp.where(count > 0.0, 1.0, 0.0).astype(ratio.dtype)

    levels = [_Nodes(plus, minus, filled, count)]
    for ids, size in above:
        levels.append(_Nodes(*(jax.ops.segment_sum(part, ids, size) for part in levels[-1])))
    base, gated = _base_weight(levels, above, limits)

    log_gate = jnp.where(kept, _token_gate(ratio, plus, minus, base, limit), 0.0)

    wide_plus, wide_minus = (_wide(s, ratio.shape) for s in (plus, minus))
    own, other = jnp.where(up, wide_plus, wide_minus), jnp.where(up, wide_minus, wide_plus)
    info = FiberInfo(
        log_s_plus=plus,
        log_s_minus=minus,
        log_base_weight=jnp.where(filled > 0.0, base, 0.0),
        u=jnp.where(kept, jnp.abs(ratio) - own, 0.0),
        v=jnp.where(kept, -other, 0.0),
        regime_plus=gated[0].regime_plus,
        regime_minus=gated[0].regime_minus,
        levels=tuple(
            LevelInfo(*_means(nodes), part.regime_plus, part.regime_minus)
            for nodes, part in zip(levels[1:], gated[1:], strict=True)
        ),
    )
    return log_gate, info


@jax.custom_jvp
def _token_gate(
    ratio: Float[Array, "batch tokens"],
    plus: Float[Array, " batch"],
    minus: Float[Array, " batch"],
    base: Float[Array, " batch"],
    limit: Float[Array, ""],
) -> Float[Array, "batch tokens"]:
    """Log G from ρ, log s⁺, log s⁻ and log w, with what a sequence's tokens share taken together."""
    up, tokens = ratio >= 0.0, ratio.shape
    shared = jnp.where(
        up, _wide(base + _clip(minus, limit), tokens), _wide(base - _clip(plus, limit), tokens)
    )
    return shared + _clip(_residual(ratio, plus, minus), limit)


@_token_gate.defjvp
def _token_gate_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """The derivative with slope 1 at the limits, in the form whose transpose sums over tokens least.

    Differentiated as written, log s⁺ and log s⁻ would each take two sums over (B, T).
    """
    ratio, plus, minus, _, limit = primals
    d_ratio, d_plus, d_minus, d_base, d_limit = tangents
    up, tokens = ratio >= 0.0, ratio.shape
    residual = _residual(ratio, plus, minus)
    inside = jnp.abs(residual) <= jnp.broadcast_to(limit, tokens)

    def one(condition: Bool[Array, "batch tokens"]) -> Float[Array, "batch tokens"]:
        return condition.astype(ratio.dtype)

    plus_in, minus_in = (
        _wide(s <= jnp.broadcast_to(limit, s.shape), tokens) for s in (plus, minus)
    )
    by_plus, by_minus = one(jnp.where(up, inside, plus_in)), one(jnp.where(up, minus_in, inside))
    by_limit = one(~inside) * jnp.sign(residual)
    by_limit = by_limit + one(up & ~minus_in) - one(~up & ~plus_in)
    tangent = (
        one(inside) * d_ratio
        + _wide(d_base, tokens)
        - by_plus * _wide(d_plus, tokens)
        + by_minus * _wide(d_minus, tokens)
        + by_limit * jnp.broadcast_to(d_limit, tokens)
    )
    return _token_gate(*primals), tangent


def _residual(
    ratio: Float[Array, "batch tokens"],
    plus: Float[Array, " batch"],
    minus: Float[Array, " batch"],
) -> Float[Array, "batch tokens"]:
    """l·u, the log-ratio less its own channel's aggregate."""
    shape = ratio.shape
    return ratio - jnp.where(ratio >= 0.0, _wide(plus, shape), _wide(-minus, shape))


def _base_weight(
    levels: list[_Nodes],
    above: list[tuple[Int[Array, " _"], int]],
    budgets: list[tuple[Any, ...]],
) -> tuple[Float[Array, " batch"], list[_Gated]]:
    """Log w of each sequence, from the top down, and each level's part."""
    gated: list[_Gated] = []
    total = parent_plus = parent_minus = jnp.zeros((), levels[0].plus.dtype)
    for depth in reversed(range(len(levels))):
        nodes, (budget_plus, budget_minus) = levels[depth], budgets[depth]
        plus, minus = _means(nodes)
        shape = plus.shape
        # A node without tokens has no part of its own; it must not fall out of its parent's budget.
        filled = nodes.sequences > 0.0
        if depth < len(above):
            ids = above[depth][0]
            total, parent_plus, parent_minus = (
                part[ids] for part in (total, parent_plus, parent_minus)
            )
            own_plus = jnp.where(filled, plus - parent_plus, 0.0)
            own_minus = jnp.where(filled, minus - parent_minus, 0.0)
        else:
            total, own_plus, own_minus = _wide(total, shape), plus, minus
        tokens = jnp.maximum(nodes.tokens, 1.0)
        passed_plus, regime_plus = _gate(own_plus, _wide(budget_plus, shape), tokens)
        passed_minus, regime_minus = _gate(own_minus, _wide(budget_minus, shape), tokens)
        part = passed_plus - passed_minus
        total = part + total
        gated.append(_Gated(part, regime_plus, regime_minus))
        parent_plus, parent_minus = plus, minus
    return total, gated[::-1]


def _means(nodes: _Nodes) -> tuple[Float[Array, " nodes"], Float[Array, " nodes"]]:
    sequences = jnp.maximum(nodes.sequences, 1.0)
    return nodes.plus / sequences, nodes.minus / sequences


def _gate(
    x: Float[Array, "*shape"], budget: Float[Array, "*shape"], k: Float[Array, "*shape"]
) -> tuple[Float[Array, "*shape"], Int[Array, "*shape"]]:
    """Value and regime of g; the order of the comparisons lets a NaN through."""
    size = jnp.abs(x)
    beyond = k * (size - budget)
    outside, zeroed = size > budget, beyond >= budget
    rolled = jnp.where(zeroed, 0.0, jnp.sign(x) * (budget - beyond))
    regime = outside.astype(jnp.int32) + (outside & zeroed).astype(jnp.int32)
    return jnp.where(outside, rolled, x), regime


def _clip(x: Float[Array, "..."], limit: Float[Array, ""]) -> Float[Array, "..."]:
    """Clip to ±limit, with slope 1 at the limits (jnp.clip halves it)."""
    bound = jnp.broadcast_to(limit, x.shape)
    return jnp.where(x > bound, bound, jnp.where(x < -bound, -bound, x))


def _wide(values: Any, shape: tuple[int, ...]) -> Shaped[Array, "..."]:
    """One number a sequence as (B, T), or one number as (nodes,)."""
    return jnp.broadcast_to(values[:, None] if len(shape) == 2 else values, shape)
