"""Aggregated Gaussian signals m = Gx, x ~ N(0, I): what SGD and ridge are run on.

An operator G is an (n, n) matrix, or the vector (n,) of the diagonal of an operator that is written
in its own eigenbasis (m = g∘x). For a symmetric G = V diag(g) Vᵀ and θ* in the basis V the second
is the same law, since Vᵀx ~ N(0, I) too; it saves the product with G.
Symbols: M = GGᵀ, ‖θ‖²_M = ‖Gᵀθ‖².
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_number, check_shape, fail


def as_operator(operator: Any) -> jax.Array:
    """`operator` as a float32 or float64 array (n, n) or (n,), or a `ValueError` that names it."""
    accepted = "float32 or float64 numbers, (n, n), or (n,) for a diagonal operator"
    try:
        with np.errstate(over="ignore"):
            array = jnp.asarray(operator)
    except (TypeError, ValueError) as error:
        got = f"values of type {getattr(operator, 'dtype', type(operator).__name__)}"
        raise fail("operator", got, accepted) from error
    if array.dtype not in (jnp.float32, jnp.float64):
        raise fail("operator", f"values of type {array.dtype}", accepted)
    if array.ndim == 1:
        check_shape("operator", array, (None,))
    else:
        check_shape("operator", array, (None, None), "or (n,) for a diagonal one")
        check_shape("operator", array, (array.shape[0],) * 2, "a square matrix")
    check_number("operator", operator)
    check_number("operator", array, why=f"in {array.dtype}")
    return array


def as_numbers(name: str, value: Any, dtype: Any) -> jax.Array:
    """Checked numbers as an array of the operator's `dtype`, in which they must be finite too."""
    with np.errstate(over="ignore"):
        array = jnp.asarray(value, dtype)
    check_number(name, array, why=f"in {dtype}, the type of operator")
    return array


def aggregate(operator: Float[Array, "*n_n"], signals: Float[Array, "N n"]) -> Float[Array, "N n"]:
    """Rows Gx of the rows x of `signals`."""
    if operator.ndim == 1:
        return signals * operator[None, :]
    return signals @ operator.T


def pull_back(operator: Float[Array, "*n_n"], weights: Float[Array, "k n"]) -> Float[Array, "k n"]:
    """Rows Gᵀθ of the rows θ of `weights`: their squared length is ‖θ‖²_M."""
    if operator.ndim == 1:
        return weights * operator[None, :]
    return weights @ operator


def squared_norm(operator: Float[Array, "*n_n"], weights: Float[Array, " n"]) -> Float[Array, ""]:
    """‖θ‖²_M = ‖Gᵀθ‖²."""
    return jnp.sum(jnp.square(pull_back(operator, weights[None, :])))


def relu_risk(
    operator: Float[Array, "*n_n"], weights: Float[Array, " n"], target: Float[Array, " n"]
) -> Float[Array, ""]:
    """E(ReLU(mᵀθ) − ReLU(mᵀθ*))² = 2Δ in closed form, m ~ N(0, M).

    2Δ = ½‖θ − θ*‖²_M + (ab/π)(φ cos φ − sin φ), with a = ‖θ‖_M, b = ‖θ*‖_M and φ the angle between
    them: ½a² + ½b² − (ab/π)(sin φ + (π − φ) cos φ), rearranged so that it doesn't cancel near θ*.
    Derived.
    """
    u, v, difference = pull_back(operator, jnp.stack([weights, target, weights - target]))
    a, b = _norm(u), _norm(v)
    # Kahan's formula, exact near 0 and π. Where a or b is 0 there is no angle: 0, with no gradient.
    closing = jnp.where(a * b > 0, _norm(b * u + a * v), jnp.ones_like(a))
    angle = 2 * jnp.arctan2(_norm(b * u - a * v), closing)
    bend = a * b / jnp.pi * (angle * jnp.cos(angle) - jnp.sin(angle))
    return jnp.sum(jnp.square(difference)) / 2 + bend


def _norm(vector: Float[Array, " n"]) -> Float[Array, ""]:
    """Euclidean norm, with gradient 0 at 0."""
    square = jnp.sum(jnp.square(vector))
    positive = square > 0
    return jnp.where(
        positive, jnp.sqrt(jnp.where(positive, square, jnp.ones_like(square))), 0 * square
    )
