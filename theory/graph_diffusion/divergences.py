"""Divergences between Gaussian modes, and bounds on total variation by KL. Nats; ½ in."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_number
from boundlab.precision import float64
from boundlab.theory.graph_diffusion._gaussian_arguments import (
    eigenvalues_of,
    log_remainder,
    modes_of,
    noised,
    number_of,
    stretched,
)
from boundlab.typing import Numbers, Scalar


@float64
def gaussian_kl(
    variance_target: Numbers,
    variance: Numbers,
    mean_target: Numbers = 0.0,
    mean: Numbers = 0.0,
) -> Float[Array, "*shape"]:
    """KL(N(m*, v) ‖ N(m, u)) of each mode, target first.

    ½[x − log(1 + x)] + (m* − m)²/(2u) with x = v/u − 1, exact to rounding also where the laws nearly
    agree.

    Args:
        variance_target: v > 0. Every argument is one number or of one common shape, and may be traced.
        variance: u > 0 of the approximation; a traced 0 gives infinity.
        mean_target: m*.
        mean: m.

    Returns:
        Of the common shape, in nats, ≥ 0; the caller sums.

    Raises:
        ValueError: an argument is out of range or of another shape; it is named.

    Source: derived, docs/graph_diffusion.md#discretisation.

    """
    v, u, target, m = _laws(variance_target, variance, mean_target, mean, singular=False)
    proper = u > 0.0
    u = jnp.where(proper, u, 1.0)
    x = (v - u) / u
    spread = log_remainder(-x, jnp.log(v) - jnp.log(u), 2)
    kl = 0.5 * spread + (target - m) ** 2 / (2.0 * u)
    return jnp.where(proper, kl, jnp.inf)


@float64
def gaussian_w2(
    variance_target: Numbers,
    variance: Numbers,
    mean_target: Numbers = 0.0,
    mean: Numbers = 0.0,
) -> Float[Array, ""]:
    """Wasserstein-2 distance of two Gaussians with the same modes; not its square.

    W2² = Σ (√v − √u)² + (m* − m)², over all modes.

    Args:
        variance_target: v ≥ 0. Every argument is one number or of one common shape, and may be traced.
        variance: u ≥ 0.
        mean_target: m*.
        mean: m.

    Returns:
        One number. Its derivative where the laws are equal, which doesn't exist, is given as 0.

    Raises:
        ValueError: an argument is out of range or of another shape; it is named.

    Source: derived, docs/graph_diffusion.md#discretisation.

    """
    v, u, target, m = _laws(variance_target, variance, mean_target, mean, singular=True)
    return _distance(v, u, target - m)


@float64
def w2_early_stop(
    eigenvalues: Numbers, early_stop: Scalar, mean: Numbers | None = None
) -> Float[Array, ""]:
    """Wasserstein-2 distance between the data and their law noised to δ: what stopping early costs.

    W2² = Σ (√λ − √v(δ))² + (1 − e^{−δ})²|μ₀|².

    Args:
        eigenvalues: λ (d,) > 0. All numbers may be traced.
        early_stop: δ ≥ 0, OU time.
        mean: μ₀ (d,), None for 0.

    Returns:
        One number, not squared.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#discretisation.

    """
    modes, stop = eigenvalues_of(eigenvalues), number_of("early_stop", early_stop, 0)
    center = modes_of("mean", mean, len(modes))
    return _distance(modes, noised(modes, stop), -jnp.expm1(-stop) * center)


@float64
def pinsker(kl: Numbers) -> Float[Array, "*shape"]:
    """Pinsker's bound on total variation, TV ≤ √(KL/2), TV = sup over events, in [0, 1].

    Args:
        kl: KL ≥ 0 in nats, of any shape; may be traced.

    Returns:
        Like `kl`; above 1, where it says nothing, too.

    Raises:
        ValueError: `kl` is negative or not finite.

    Source: derived, docs/graph_diffusion.md#system-theorem; the inequality is textbook matter.

    """
    check_number("kl", kl, 0)
    return _root(0.5 * jnp.asarray(kl, jnp.float64))


@float64
def bretagnolle_huber(kl: Numbers) -> Float[Array, "*shape"]:
    """Bretagnolle and Huber's bound on total variation, TV ≤ √(1 − e^{−KL}) < 1.

    Args:
        kl: KL ≥ 0 in nats, of any shape; may be traced.

    Returns:
        Like `kl`; below `pinsker` for KL above 1.59.

    Raises:
        ValueError: `kl` is negative or not finite.

    Source: derived, docs/graph_diffusion.md#system-theorem; the inequality is textbook matter.

    """
    check_number("kl", kl, 0)
    return _root(-jnp.expm1(-jnp.asarray(kl, jnp.float64)))


def _distance(
    v: Float[Array, "*shape"], u: Float[Array, "*shape"], shift: Float[Array, "*shape"]
) -> Float[Array, ""]:
    total = _root(v) + _root(u)
    gap = jnp.where(total > 0.0, (v - u) / jnp.where(total > 0.0, total, 1.0), 0.0)
    return _root(jnp.sum(gap**2) + jnp.sum(shift**2))


def _root(value: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """√ with derivative 0 at 0."""
    positive = value > 0.0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, value, 1.0)), 0.0)


def _laws(
    variance_target: Any, variance: Any, mean_target: Any, mean: Any, *, singular: bool
) -> list[Float[Array, "*shape"]]:
    """The four arguments, checked and of one shape; `singular`: variances may be 0."""
    check_number("variance_target", variance_target, 0, low_open=not singular)
    check_number("variance", variance, 0, low_open=not singular)
    check_number("mean_target", mean_target)
    check_number("mean", mean)
    return stretched(
        variance_target=variance_target, variance=variance, mean_target=mean_target, mean=mean
    )
