"""FiberPO as a fiber bundle: densities over tokens, pushed to sequences, gated and lifted back.

The space E is tokens × {+, −}, the base B sequences × {+, −}. A ratio r becomes the density
σ_(i,±) = max(±log r_i, 0)/T on E (F), its push-forward π_*σ sums over the tokens of a sequence, the
kernel K spreads a density on B evenly over a sequence's tokens, and

    G(σ) = K g(π_*σ) + clip(σ − Kπ_*σ, ±ε/T),    log G_i = T(G(σ)_(i,+) − G(σ)_(i,−))    (R).

π_*K = id is the *reflecting* condition: what is left after taking Kπ_*σ away has no aggregate. The long
way round to `boundlab.models.gates`, of which it uses nothing but checks of arguments. Channels are the
last axis, + first.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from boundlab.models.gate_arguments import check_scalar, masked
from boundlab.typing import Scalar

Lift = Callable[[jax.Array, jax.Array], jax.Array]


def ratio_density(log_ratio: Any, mask: Any) -> Float[Array, "batch tokens 2"]:
    """F: the density max(±ρ, 0)/T of log-ratios ρ (B, T); 0 where masked.

    Raises:
        ValueError: the arguments don't fit each other or hold what they must not; it is named.

    Source: li2026fibration, §4 and App. E.

    """
    ratio, kept = masked(log_ratio, mask)
    channels = jnp.stack([jnp.maximum(ratio, 0.0), jnp.maximum(-ratio, 0.0)], axis=2)
    return channels / _per_token(_lengths(kept, ratio.dtype), channels)


def density_ratio(
    density: Float[Array, "batch tokens 2"], mask: Any
) -> Float[Array, "batch tokens"]:
    """R: log-ratios T(σ_+ − σ_−) of a density; R of F is the identity."""
    kept = jnp.asarray(mask).astype(jnp.bool_)
    lengths = _lengths(kept, density.dtype)[:, None]
    return jnp.broadcast_to(lengths, kept.shape) * (density[..., 0] - density[..., 1])


def push_forward(density: Float[Array, "batch tokens 2"]) -> Float[Array, "batch 2"]:
    """π_*: the density of each sequence, log s± if the density is that of ratios."""
    return jnp.sum(density, axis=1)


def kernel(base: Float[Array, "batch 2"], mask: Any) -> Float[Array, "batch tokens 2"]:
    """K: each sequence's density spread evenly over its unmasked tokens."""
    kept = jnp.asarray(mask).astype(jnp.bool_)
    share = jnp.where(kept, 1.0, 0.0).astype(base.dtype)
    share = share / jnp.broadcast_to(_lengths(kept, base.dtype)[:, None], kept.shape)
    return share[:, :, None].repeat(2, axis=2) * base[:, None, :].repeat(kept.shape[1], axis=1)


def check_reflecting(
    density: Float[Array, "batch tokens 2"], mask: Any, lift: Lift = kernel
) -> Float[Array, ""]:
    """Largest |π_*(σ − Kπ_*σ)| for the kernel `lift`: 0 to rounding if it is reflecting.

    Source: li2026fibration, §4 (π_*K = id).

    """
    return jnp.max(jnp.abs(push_forward(density - lift(push_forward(density), mask))))


def density_gate(
    log_ratio: Any,
    mask: Any,
    budget_plus: Scalar,
    budget_minus: Scalar,
    epsilon: Scalar,
    *,
    residual_of_gated: bool = False,
) -> Float[Array, "batch tokens"]:
    """Log G (B, T) of FiberPO by way of densities, 0 where masked.

    Args:
        log_ratio: ρ (B, T), finite at tokens.
        mask: (B, T), bool or 0/1.
        budget_plus: C⁺ ≥ 0. May be traced.
        budget_minus: C⁻ ≥ 0. May be traced.
        epsilon: ε > 0. May be traced.
        residual_of_gated: whether the residual is taken against the *gated* base density instead, as
            other code does; then tokens are given back what the base gate took away.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: li2026fibration, §4 and App. E.

    """
    check_scalar("budget_plus", budget_plus, positive=False)
    check_scalar("budget_minus", budget_minus, positive=False)
    check_scalar("epsilon", epsilon, positive=True)
    density = ratio_density(log_ratio, mask)
    kept = jnp.asarray(mask).astype(jnp.bool_)
    lengths = _lengths(kept, density.dtype)
    base = push_forward(density)
    gated = jnp.stack(
        [
            _rolled_back(base[:, place], jnp.asarray(budget).astype(base.dtype), lengths)
            for place, budget in enumerate((budget_plus, budget_minus))
        ],
        axis=1,
    )
    lifted = kernel(gated, kept)
    residual = density - (lifted if residual_of_gated else kernel(base, kept))
    limit = jnp.asarray(epsilon).astype(base.dtype) / _per_token(lengths, residual)
    limited = jnp.minimum(jnp.maximum(residual, -limit), limit)
    return jnp.where(kept, density_ratio(lifted + limited, kept), 0.0)


def _rolled_back(
    x: Float[Array, " batch"], budget: Float[Array, ""], k: Float[Array, " batch"]
) -> Float[Array, " batch"]:
    """The aggregate's gate of an x ≥ 0: (k + 1)C − kx between C and (1 + 1/k)C, 0 beyond."""
    full = jnp.full_like(x, 1.0) * budget
    falling = jnp.maximum((k + 1.0) * full - k * x, 0.0)
    return jnp.where(x <= full, x, falling)


def _lengths(kept: Bool[Array, "batch tokens"], dtype: Any) -> Float[Array, " batch"]:
    """T of each sequence, 1 in place of 0."""
    return jnp.maximum(jnp.sum(kept, axis=1, dtype=dtype), 1.0)


def _per_token(
    lengths: Float[Array, " batch"], like: Float[Array, "batch tokens 2"]
) -> Float[Array, "batch tokens 2"]:
    return jnp.broadcast_to(lengths[:, None, None], like.shape)
