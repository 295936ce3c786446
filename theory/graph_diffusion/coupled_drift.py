"""Gaussian systems whose blocks are coupled in the drift of the forward process.

dZ = −K Z dt + √(2K) dW with K = [[I, kC], [kCᵀ, I]] keeps N(0, I) invariant; its eigenvalues are 1 and
1 ± the singular values of kC. The data are N(0, S), S_t = e^{−Kt} S e^{−Kt} + I − e^{−2Kt}, and the score
is −S_t⁻¹z. A sampler with the score frozen over a step of length h takes
z to e^{Kh}z − 2(e^{Kh} − I)S_τ⁻¹z + N(0, e^{2Kh} − I).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.theory.graph_diffusion._system_arguments import (
    check_overflow,
    positive_definite,
    times_of,
)
from boundlab.theory.graph_diffusion.systems import covariance_kl
from boundlab.typing import Numbers, Scalar


class _Drift(NamedTuple):
    """K by its eigenvectors, and S in their basis."""

    rates: Float[Array, " d"]
    vectors: Float[Array, "d d"]
    covariance: Float[Array, "d d"]


@float64
def coupled_drift_covariance(covariance: Any, coupling: Any, t: Scalar) -> Float[Array, "d d"]:
    """Covariance S_t = e^{−Kt} S e^{−Kt} + I − e^{−2Kt} of the noised pair at time t.

    KL(q_t ‖ N(0, I)) falls as e^{−4(1 − ‖kC‖)t} unless S = I along the slowest eigenvectors: coupling the
    drift lengthens the diffusion.

    Args:
        covariance: S (d, d) of the data, positive definite, features first.
        coupling: kC (d_X, d_A), d_X + d_A = d, spectral norm below 1.
        t: Time ≥ 0. All arguments may be traced.

    Returns:
        S_t (d, d).

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#coupled-drift.

    """
    drift = _drift_of(covariance, coupling)
    check_shape("t", t, ())
    check_number("t", t, 0)
    noised = _noised(drift, jnp.asarray(t, jnp.float64))
    whole = drift.vectors @ noised @ drift.vectors.T
    return (whole + whole.T) / 2


@float64
def coupled_drift_reverse(covariance: Any, coupling: Any, times: Numbers) -> Float[Array, "d d"]:
    """Covariance of what the sampler with a coupled drift returns: exact score, frozen over each step.

    Started from N(0, I); V becomes A V Aᵀ + e^{2Kh} − I, A = e^{Kh} − 2(e^{Kh} − I)S_τ⁻¹.

    Args:
        covariance: S (d, d) of the data, positive definite, features first.
        coupling: kC (d_X, d_A), spectral norm below 1.
        times: (N + 1,) strictly decreasing, ≥ 0.

    Returns:
        V (d, d), to be held against `coupled_drift_covariance` at times[−1].

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#coupled-drift.

    """
    found = _reverse(_drift_of(covariance, coupling), times_of(times))
    check_overflow(found)
    return found


@float64
def coupled_drift_bound(
    covariance: Any, coupling: Any, times: Numbers
) -> dict[str, Float[Array, ""]]:
    """Bound on the KL of the sampler with a coupled drift, as its two terms.

    initialization = KL(q_T ‖ N(0, I)); discretization = Σ_k ∫ E dᵀKd dt, d the change of the score since
    the step's start. In closed form, by de Bruijn's identity and since the mean of the score at t given
    Z_τ is e^{−K(τ−t)} times that at τ:
    ½ log det S_T − ½ log det S_δ + T' tr K + Σ_k tr[(Kh + 2e^{−Kh} − 2I) S_τ⁻¹], T' = T − δ.

    Args:
        covariance: S (d, d) of the data, positive definite, features first.
        coupling: kC (d_X, d_A), spectral norm below 1.
        times: (N + 1,) strictly decreasing, ≥ 0.

    Returns:
        {"initialization", "discretization"}, in nats; the bound is their sum.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#coupled-drift.

    """
    return _bound(_drift_of(covariance, coupling), times_of(times))


@jax.jit
def _reverse(drift: _Drift, grid: Float[Array, " steps_1"]) -> Float[Array, "d d"]:
    def step(
        variance: Float[Array, "d d"], pair: tuple[Float[Array, ""], Float[Array, ""]]
    ) -> tuple[Float[Array, "d d"], None]:
        tau, t = pair
        grown = drift.rates * (tau - t)
        gain = 2 * jnp.expm1(grown)[:, None] * jnp.linalg.inv(_noised(drift, tau))
        moved = jnp.diag(jnp.exp(grown)) - gain
        variance = moved @ variance @ moved.T + jnp.diag(jnp.expm1(2 * grown))
        return (variance + variance.T) / 2, None

    start = jnp.eye(len(drift.rates), dtype=jnp.float64)
    variance = jax.lax.scan(step, start, (grid[:-1], grid[1:]))[0]
    whole = drift.vectors @ variance @ drift.vectors.T
    return (whole + whole.T) / 2


@jax.jit
def _bound(drift: _Drift, grid: Float[Array, " steps_1"]) -> dict[str, Float[Array, ""]]:
    def frozen(tau: Float[Array, ""], t: Float[Array, ""]) -> Float[Array, ""]:
        decayed = drift.rates * (tau - t)
        weight = decayed + 2 * jnp.expm1(-decayed)
        return jnp.sum(weight * jnp.diag(jnp.linalg.inv(_noised(drift, tau))))

    first, last = _noised(drift, grid[0]), _noised(drift, grid[-1])
    entropy = 0.5 * (jnp.linalg.slogdet(first)[1] - jnp.linalg.slogdet(last)[1])
    steps = jax.vmap(frozen)(grid[:-1], grid[1:])
    return {
        "initialization": covariance_kl(first, jnp.eye(len(first), dtype=first.dtype)),
        "discretization": entropy + (grid[0] - grid[-1]) * jnp.sum(drift.rates) + jnp.sum(steps),
    }


def _drift_of(covariance: Any, coupling: Any) -> _Drift:
    matrix = positive_definite("covariance", covariance)
    check_shape("coupling", coupling, (None, None), "features by structure")
    check_number("coupling", coupling)
    size = len(matrix)
    shape = coupling.shape if is_traced(coupling) else np.shape(coupling)
    if sum(shape) != size:
        raise fail("coupling", f"shape {shape}", f"d_X + d_A = {size}, as covariance has it")
    if not is_traced(coupling):
        norm = np.linalg.norm(np.asarray(coupling, np.float64), 2)
        if norm >= 1.0:
            raise fail("coupling", f"a spectral norm {norm:.6g}", "one below 1")
    cross = jnp.asarray(coupling, jnp.float64)
    block = jnp.eye(size, dtype=jnp.float64)
    block = block.at[: shape[0], shape[0] :].set(cross).at[shape[0] :, : shape[0]].set(cross.T)
    rates, vectors = jnp.linalg.eigh(block)
    return _Drift(rates, vectors, vectors.T @ matrix @ vectors)


def _noised(drift: _Drift, t: Float[Array, ""]) -> Float[Array, "d d"]:
    mean = jnp.exp(-drift.rates * t)
    kept = drift.covariance * mean[:, None] * mean[None, :]
    return kept + jnp.diag(-jnp.expm1(-2 * drift.rates * t))
