"""Covariance matrices as arguments: what counts as one, and what becomes of a traced one that isn't."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from boundlab.checks import check_number, check_shape, fail
from boundlab.precision import is_traced
from boundlab.theory.fanout._outcome import nan_unless

# Asymmetry and negative eigenvalues up to this share of the largest entry are taken for rounding.
ROUNDING = 1e-8


def covariance_of(name: str, value: Any, size: int) -> Float[Array, "r r"]:
    """A symmetric positive semi-definite matrix (r, r) in float64, made exactly symmetric.

    Entries may differ from their mirror image, and eigenvalues lie below 0, by 1e-8 of the largest
    entry. Anything worse is an error that names the argument, and NaN throughout if it is traced.
    """
    check_shape(name, value, (size, size), "features squared")
    check_number(name, value)
    if not is_traced(value):
        _check(name, np.asarray(value, dtype=np.float64))
    array = jnp.asarray(value, jnp.float64)
    return _checked(array) if is_traced(value) else _symmetric(array)


def _check(name: str, matrix: Float[np.ndarray, "r r"]) -> None:
    scale = np.abs(matrix).max()
    if scale == 0.0:
        return
    matrix = matrix / scale
    asymmetry = np.abs(matrix - matrix.T).max()
    if asymmetry > ROUNDING:
        raise fail(name, f"an asymmetry of {asymmetry * scale:.3g}", "a symmetric matrix")
    try:  # a tenth of an eigendecomposition's time
        np.linalg.cholesky(matrix + ROUNDING * np.eye(len(matrix)))
    except np.linalg.LinAlgError as error:
        lowest = np.linalg.eigvalsh(matrix)[0] * scale
        raise fail(
            name, f"an eigenvalue {lowest:.6g}", "a positive semi-definite matrix"
        ) from error


@jax.jit
def _symmetric(matrix: Float[Array, "r r"]) -> Float[Array, "r r"]:
    return 0.5 * matrix + 0.5 * matrix.T


def _checked(matrix: Float[Array, "r r"]) -> Float[Array, "r r"]:
    return nan_unless(_is_covariance(jax.lax.stop_gradient(matrix)), _symmetric(matrix))


def _is_covariance(matrix: Float[Array, "r r"]) -> Bool[Array, ""]:
    scale = jnp.max(jnp.abs(matrix))
    matrix = matrix / jnp.where(scale > 0.0, scale, 1.0)
    shifted = matrix + ROUNDING * jnp.eye(len(matrix), dtype=matrix.dtype)
    positive = jnp.isfinite(jnp.linalg.cholesky(shifted)).all()  # NaN where it does not exist
    return positive & (jnp.max(jnp.abs(matrix - matrix.T)) <= ROUNDING)
