"""Ridge regression on one drawn design of aggregated signals.

θ̂ = argmin ‖Fθ − y‖² + λ‖θ‖² (λ un-normalised), S = FᵀF, λ = 0 meaning the minimum-norm least-squares
solution. The eigenproblem is solved on the smaller side: S for N > d, FFᵀ otherwise. Symbols: F
(N, d) the design, M the test point's covariance, σ the label noise's standard deviation.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_choice, check_integer, check_key, check_number, check_shape, fail
from boundlab.models.gaussian_signals import (
    aggregate,
    as_numbers,
    as_operator,
    pull_back,
    relu_risk,
)
from boundlab.typing import Count, Numbers, Scalar

READINGS = ("signal", "node")


class RiskProfile(NamedTuple):
    """Bias and variance parts of a risk R = ‖θ̂ − θ*‖²_M (no ½)."""

    bias: Float[Array, ""]
    variance: Float[Array, ""]


def simulate_ridge(
    key: Any,
    operator: Any,
    theta_star: Numbers,
    noise_std: Scalar,
    ridge: Scalar,
    num_samples: Count,
    reading: str = "signal",
    *,
    feature_spectrum: Numbers | None = None,
) -> RiskProfile:
    """Risk of ridge regression on one drawn design, label noise averaged exactly.

    bias = λ² θ*ᵀ(S + λ)^{-1} M (S + λ)^{-1} θ*,  variance = σ² tr[M (S + λ)^{-1} S (S + λ)^{-1}].

    - `signal`: rows of F are N independent m = Gx, x ~ N(0, I); M = GGᵀ; `theta_star` (n,).
    - `node`: F = GX with rows x_v ~ N(0, H), H = diag(`feature_spectrum`) (p,), default ones; one
      sample a node, so the rows are dependent and `num_samples` must be n; M = H, `theta_star` (p,).

    Arguments: `key` one typed key; `operator` G (n, n), or (n,) for a diagonal one (see
    `boundlab.models.gaussian_signals`; for `node` the diagonal of G in its eigenbasis, the same law
    again); `noise_std` σ ≥ 0; `ridge` λ ≥ 0; `num_samples` N ≥ 1.

    Returns two numbers of `operator`'s dtype. Batch with vmap over `key` and every float argument.
    Eigenvalues of S under max(N, d)·ε of the largest count as 0.

    Raises `ValueError` naming the argument. Conventions: no ½ in R, λ and not Nλ, S not divided
    by N. Draws: normal(split(key)[0], F's shape). Derived.
    """
    check_key("key", key)
    operator = as_operator(operator)
    n, dtype = operator.shape[0], operator.dtype
    check_choice("reading", reading, READINGS)
    check_shape("theta_star", theta_star, (n if reading == "signal" else None,))
    check_integer("num_samples", num_samples, 1)
    _check_numbers(theta_star, noise_std, ridge)
    if reading == "signal" and feature_spectrum is not None:
        raise fail("feature_spectrum", "an array", "None when reading is 'signal' (x ~ N(0, I))")
    if reading == "node" and num_samples != n:
        raise fail("num_samples", num_samples, f"{n}, one sample a node, when reading is 'node'")
    if feature_spectrum is None:
        feature_spectrum = np.ones(np.shape(theta_star))
    check_shape("feature_spectrum", feature_spectrum, np.shape(theta_star))
    check_number("feature_spectrum", feature_spectrum, 0)
    with jax.default_matmul_precision("highest"):  # accelerators would round float32 to 10 bits
        return _simulate(
            key,
            operator,
            as_numbers("theta_star", theta_star, dtype),
            as_numbers("noise_std", noise_std, dtype),
            as_numbers("ridge", ridge, dtype),
            jnp.sqrt(as_numbers("feature_spectrum", feature_spectrum, dtype)),
            num_samples=int(num_samples),
            reading=reading,
        )


def simulate_relu_ridge(
    key: Any,
    operator: Any,
    theta_star: Numbers,
    noise_std: Scalar,
    ridge: Scalar,
    num_samples: Count,
) -> Float[Array, ""]:
    """Risk of ridge regression on 2y for a ReLU teacher, one drawn design and one draw of labels.

    y = ReLU(mᵀθ*) + ε; E[2y m] = Mθ*, so the regression of 2y aims at θ*. The risk is
    R = 2Δ = E(ReLU(mᵀθ̂) − ReLU(mᵀθ*))², in closed form.

    Arguments, conventions and errors as in `simulate_ridge` with reading `signal`; `noise_std` is
    that of y, not of 2y. Draws: the noise is normal(split(key)[1], (N,)). Derived.
    """
    check_key("key", key)
    operator = as_operator(operator)
    check_shape("theta_star", theta_star, (operator.shape[0],))
    check_integer("num_samples", num_samples, 1)
    _check_numbers(theta_star, noise_std, ridge)
    dtype = operator.dtype
    with jax.default_matmul_precision("highest"):  # accelerators would round float32 to 10 bits
        return _simulate_relu(
            key,
            operator,
            as_numbers("theta_star", theta_star, dtype),
            as_numbers("noise_std", noise_std, dtype),
            as_numbers("ridge", ridge, dtype),
            num_samples=int(num_samples),
        )


def _check_numbers(theta_star: Numbers, noise_std: Scalar, ridge: Scalar) -> None:
    check_number("theta_star", theta_star)
    check_shape("noise_std", noise_std, ())
    check_number("noise_std", noise_std, 0)
    check_shape("ridge", ridge, ())
    check_number("ridge", ridge, 0)


@partial(jax.jit, static_argnames=("num_samples", "reading"))
def _simulate(
    key: jax.Array,
    operator: Float[Array, "*n_n"],
    theta_star: Float[Array, " d"],
    noise_std: Float[Array, ""],
    ridge: Float[Array, ""],
    feature_std: Float[Array, " d"],
    *,
    num_samples: int,
    reading: str,
) -> RiskProfile:
    design_key, _ = jax.random.split(key)
    normal = jax.random.normal(design_key, (num_samples, len(theta_star)), operator.dtype)
    if reading == "signal":
        design, test_operator = aggregate(operator, normal), operator
    else:
        # One row a node: aggregation mixes the rows, that is the columns of the transpose.
        design = aggregate(operator, (normal * feature_std[None, :]).T).T
        test_operator = feature_std
    return _risk(design, test_operator, theta_star, noise_std, ridge)


def _risk(
    design: Float[Array, "N d"],
    test_operator: Float[Array, "*d_d"],
    theta_star: Float[Array, " d"],
    noise_std: Float[Array, ""],
    ridge: Float[Array, ""],
) -> RiskProfile:
    """Bias and variance given the design; M = BBᵀ with B = `test_operator`."""
    directions, values, inverse = _solve(design, ridge)
    along = directions @ theta_star
    if len(directions) == len(theta_star):  # nothing outside the directions, nothing cancels
        kept = jnp.where(values > 0, ridge * inverse, jnp.ones_like(values))
        residual = (kept * along) @ directions
    else:
        residual = theta_star - (inverse * values * along) @ directions
    bias = jnp.sum(jnp.square(pull_back(test_operator, residual[None, :])))
    lengths = jnp.sum(jnp.square(pull_back(test_operator, directions)), axis=1)
    return RiskProfile(bias, noise_std**2 * jnp.sum(values * inverse**2 * lengths))


def _solve(
    design: Float[Array, "N d"], ridge: Float[Array, ""]
) -> tuple[Float[Array, "k d"], Float[Array, " k"], Float[Array, " k"]]:
    """Right singular vectors of F in rows, k = min(N, d), the λ_k of S, and 1/(λ_k + λ).

    Directions under rounding have λ_k and the inverse set to 0: the design doesn't see them.
    """
    num_samples, d = design.shape
    primal = num_samples > d
    gram = design.T @ design if primal else design @ design.T
    values, vectors = jnp.linalg.eigh(gram)
    seen = values > max(num_samples, d) * jnp.finfo(gram.dtype).eps * values[-1]
    safe = jnp.where(seen, values, jnp.ones_like(values))
    directions = vectors.T if primal else (vectors.T @ design) / jnp.sqrt(safe)[:, None]
    nothing = jnp.zeros_like(values)
    inverse = jnp.where(seen, 1 / (safe + ridge), nothing)
    return directions, jnp.where(seen, values, nothing), inverse


@partial(jax.jit, static_argnames=("num_samples",))
def _simulate_relu(
    key: jax.Array,
    operator: Float[Array, "*n_n"],
    theta_star: Float[Array, " n"],
    noise_std: Float[Array, ""],
    ridge: Float[Array, ""],
    *,
    num_samples: int,
) -> Float[Array, ""]:
    design_key, noise_key = jax.random.split(key)
    shape, dtype = (num_samples, len(theta_star)), operator.dtype
    design = aggregate(operator, jax.random.normal(design_key, shape, dtype))
    noise = noise_std * jax.random.normal(noise_key, (num_samples,), dtype)
    labels = jnp.maximum(design @ theta_star, 0) + noise
    directions, _, inverse = _solve(design, ridge)
    estimate = (inverse * (directions @ (2 * labels @ design))) @ directions
    return relu_risk(operator, estimate, theta_star)
