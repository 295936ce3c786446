"""Gradient alignment control as an optax transformation: it damps what repeats the last gradient.

Symbols: g the incoming gradient, p the reference, c = ⟨g, p⟩/(‖g‖‖p‖) over all leaves together;
g = g_⊥ + g_∥ with g_∥ along p. Three regimes:

    0 pass      c ≤ low            g
    1 project   low < c ≤ high     g_⊥ + κ g_∥
    2 skip      c > high           0

with κ one of

    ratio   low/c: what is kept along p is low·‖g‖ long, and κ ≥ low, which a convergence bound needs
    exact   (low/c)√((1 − c²)/(1 − low²)): the emitted update has cosine low with p; κ → 0 as c → 1
    zero    0: the whole component goes; where gradients have one dimension, every update

This is a construction of this library: of `xu2026gac`, after which it is named, only abstract and
introduction were read; thresholds, κ and the guard against skipping for ever are ours.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int

from boundlab.checks import check_choice, check_integer, check_number, check_shape, fail
from boundlab.precision import is_traced
from boundlab.typing import Count, Scalar

KAPPAS = ("ratio", "exact", "zero")
REFERENCES = ("raw", "applied")
PASS, PROJECT, SKIP = 0, 1, 2
# Counts of skips are int32.
MOST_SKIPS = 2**31 - 2


class GacState(NamedTuple):
    """What gradient alignment control keeps, and what it did last."""

    previous: Any
    """The reference p, of the parameters' tree, shapes and types; zeros at first."""
    cosine: Float[Array, ""]
    """c of the last update; 0 at the first and where a norm is 0, NaN where a gradient wasn't finite."""
    regime: Int[Array, ""]
    """0 pass, 1 project, 2 skip."""
    num_skips: Int[Array, ""]
    """Skips in a row so far."""


class _Alignment(NamedTuple):
    cosine: Float[Array, ""]
    finite: Bool[Array, ""]  # whether the incoming gradient is
    gradient: Any  # the incoming gradient over its largest entry
    unit: Any  # the reference over its own
    ratio: Float[Array, ""]  # g_∥ = ratio · unit in units of the gradient's largest entry
    length: Float[Array, ""]  # g_∥ = length · unit


def gac(
    low: Scalar = 0.05,
    high: Scalar = 1.0,
    kappa: str = "ratio",
    reference: str = "raw",
    max_skips: Count = 5,
) -> optax.GradientTransformation:
    """Gradient alignment control, see the module: put it first in `optax.chain`, before momentum or Adam.

    Negative cosines pass. Sums over leaves are taken in the widest of float32 and the leaves' types, of
    gradients divided by their largest entry, so that they neither overflow nor vanish (subnormal entries
    count as 0 where the device flushes them); emitted updates have the incoming types. Under `jax.jit`
    with sharded gradients the cosine is that of all shards; under `pmap` or `shard_map` average gradients
    first. One cosine a leaf would be another algorithm.

    A gradient with NaN or infinity has no direction: it is emitted as it is, so that a guard such as
    `optax.apply_if_finite` can see it, marked by a NaN cosine, and doesn't become the reference.

    Args:
        low: 0 ≤ low < 1, the largest cosine that passes. May be traced; then 1 is control switched off.
        high: > low, the largest cosine that isn't skipped; 1 or more, inf too: nothing is skipped. May be
            traced.
        kappa: `ratio`, `exact` or `zero`; static.
        reference: `raw`, the gradient of the update before, whatever became of it, or `applied`, the last
            update emitted that was no skip; static.
        max_skips: after so many skips in a row the next is projected instead, ≥ 0. Parameters that don't
            move give aligned gradients again: without it skipping may never end. May be traced.

    Returns:
        An optax transformation with a `GacState`. Its `init` and `update` raise `ValueError`s that name
        `params` or `updates` where leaves aren't real floating-point arrays or trees don't match.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/policy_optimization.md#gradient-alignment-control.

    """
    for name, value in (("low", low), ("high", high)):
        check_shape(name, value, (), "one number")
    check_number("low", low, 0, 1, high_open=True)
    if is_traced(high) or not (_is_float(high) and np.isposinf(float(high))):
        check_number("high", high)
    if not is_traced(low, high) and float(np.asarray(high)) <= float(np.asarray(low)):
        raise fail("high", high, f"a number > low = {low}")
    check_choice("kappa", kappa, KAPPAS)
    check_choice("reference", reference, REFERENCES)
    if not is_traced(max_skips):
        max_skips = check_integer("max_skips", max_skips, 0, MOST_SKIPS)
    limit = jnp.asarray(max_skips).astype(jnp.int32)

    def init(params: Any) -> GacState:
        _check_leaves("params", params)
        dtype = _sum_type(params)
        return GacState(
            jax.tree.map(jnp.zeros_like, params),
            jnp.zeros((), dtype),
            jnp.zeros((), jnp.int32),
            jnp.zeros((), jnp.int32),
        )

    def update(updates: Any, state: GacState, params: Any = None) -> tuple[Any, GacState]:
        del params
        _check_leaves("updates", updates)
        _check_match(updates, state.previous)
        dtype = state.cosine.dtype
        threshold = jnp.asarray(low).astype(dtype)
        found = _alignment(updates, state.previous, dtype)
        above = found.cosine > jnp.asarray(high).astype(dtype)
        skip = above & (state.num_skips < limit)
        project = (found.cosine > threshold) & ~skip

        def emit(g: jax.Array, along: jax.Array) -> jax.Array:
            kept = (g.astype(dtype) - (1.0 - share) * along).astype(g.dtype)
            return jnp.where(skip, jnp.zeros_like(g), jnp.where(project, kept, g))

        parallel = jax.tree.map(lambda unit: found.length * unit, found.unit)
        share = _share(found, threshold, kappa)
        emitted = jax.tree.map(emit, updates, parallel)
        stored, stays = updates, ~found.finite
        if reference == "applied":
            stored, stays = emitted, stays | skip
        previous = jax.tree.map(
            lambda new, old: jnp.where(stays, old, new.astype(old.dtype)), stored, state.previous
        )
        regime = jnp.where(skip, SKIP, jnp.where(project, PROJECT, PASS)).astype(jnp.int32)
        num_skips = jnp.where(skip, state.num_skips + 1, jnp.zeros_like(state.num_skips))
        return emitted, GacState(previous, found.cosine, regime, num_skips)

    return optax.GradientTransformation(init, update)


def _is_float(value: Any) -> bool:
    """Whether it is one floating-point number, of Python or an array."""
    dtype = getattr(value, "dtype", type(value))
    return dtype is float or jax.dtypes.issubdtype(dtype, np.floating)


def _sum_type(tree: Any) -> Any:
    wide = any(leaf.dtype == jnp.float64 for leaf in jax.tree.leaves(tree))
    return jnp.float64 if wide else jnp.float32


def _dot(one: Any, other: Any, dtype: Any) -> Float[Array, ""]:
    """Sum of products over all entries of two trees of the type of the sum."""
    total = jnp.zeros((), dtype)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        total = total + jnp.sum(a * b)
    return total


def _scaled(tree: Any, dtype: Any) -> tuple[Any, Float[Array, ""]]:
    """The tree over its largest entry, and that entry; as it is where all is 0.

    Both are first multiplied by the same power of two: compilers divide by multiplying with the inverse,
    and that of the largest numbers would be subnormal, which is flushed to 0, of the smallest infinite.
    """
    size = jnp.zeros((), dtype)
    for leaf in jax.tree.leaves(tree):
        size = jnp.maximum(size, jnp.max(jnp.abs(leaf), initial=0.0).astype(dtype))
    size = jnp.where(size == 0.0, jnp.ones_like(size), size)
    scale = jnp.where(size > 1.0, 0.0625, 16.0).astype(dtype)
    whole = size * scale
    return jax.tree.map(lambda leaf: (leaf.astype(dtype) * scale) / whole, tree), size


def _norm(tree: Any, dtype: Any) -> Float[Array, ""]:
    """Norm of a tree, with a derivative (of 0) where it is 0."""
    unit, size = _scaled(tree, dtype)
    square = _dot(unit, unit, dtype)
    some = square > 0.0
    return jnp.where(some, size * jnp.sqrt(jnp.where(some, square, 1.0)), 0.0)


def _alignment(updates: Any, previous: Any, dtype: Any) -> _Alignment:
    (one, g_size), (other, _) = _scaled(updates, dtype), _scaled(previous, dtype)
    product = _dot(one, other, dtype)
    g_square, p_square = _dot(one, one, dtype), _dot(other, other, dtype)
    directed = (g_square > 0.0) & (p_square > 0.0)
    p_norm = jnp.where(directed, p_square, 1.0)
    norms = jnp.sqrt(jnp.where(directed, g_square, 1.0)) * jnp.sqrt(p_norm)
    cosine = jnp.where(directed, jnp.clip(product / norms, -1.0, 1.0), 0.0)
    # Whatever isn't finite leaves NaN in the squares.
    cosine = jnp.where(jnp.isfinite(g_square + p_square), cosine, jnp.nan)
    ratio = product / p_norm
    return _Alignment(cosine, jnp.isfinite(g_square), one, other, ratio, ratio * g_size)


def _share(found: _Alignment, low: Float[Array, ""], kappa: str) -> Float[Array, ""]:
    """κ, where the update is projected."""
    cosine = found.cosine
    if kappa == "zero":
        return jnp.zeros_like(cosine)
    if kappa == "ratio":
        return low / jnp.where(cosine > low, cosine, 1.0)
    # ‖g_⊥‖/‖g_∥‖ measured: √(1 − c²)/c would lose its digits near c = 1.
    dtype = cosine.dtype
    parallel = jax.tree.map(lambda unit: found.ratio * unit, found.unit)
    across = jax.tree.map(jnp.subtract, found.gradient, parallel)
    length = _norm(parallel, dtype)
    slope = _norm(across, dtype) / jnp.where(length > 0.0, length, 1.0)
    return jnp.minimum(slope * low / jnp.sqrt(1.0 - low * low), 1.0)


def _check_leaves(name: str, tree: Any) -> None:
    for leaf in jax.tree.leaves(tree):
        dtype = getattr(leaf, "dtype", None)
        if dtype is None or not jnp.issubdtype(dtype, jnp.floating):
            got = type(leaf).__name__ if dtype is None else f"a leaf of type {dtype}"
            raise fail(name, got, "a tree of real floating-point arrays")


def _check_match(updates: Any, previous: Any) -> None:
    got: Any = jax.tree.structure(updates)
    expected: Any = jax.tree.structure(previous)
    if got != expected:
        raise fail("updates", got, f"the tree of init's params, {expected}")
    for new, old in zip(jax.tree.leaves(updates), jax.tree.leaves(previous), strict=True):
        if new.shape != old.shape:
            raise fail(
                "updates", f"a leaf of shape {new.shape}", f"{old.shape} as in init's params"
            )
