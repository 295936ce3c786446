"""Small autoregressive policies whose texts are all enumerated: linear softmax over prefixes.

Symbols: V tokens, texts of T of them, V^T in all; parameters θ (d,); each prefix s of t tokens has a
feature φ(s, v) for each next token v, and P(v | s) ∝ exp(θ·φ(s, v)).
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_integer, check_key, check_number, check_shape, fail
from boundlab.typing import Count, Numbers

MOST_TEXTS = 2**22


def token_features(
    key: Any, num_tokens: Count, vocabulary: Count, dim: Count
) -> tuple[Float[Array, "_prefixes vocabulary dim"], ...]:
    """Random features on the unit sphere: for t = 0, …, T − 1 an array (V^t, V, d).

    Args:
        key: one typed key.
        num_tokens: T ≥ 1; at most 2²² texts.
        vocabulary: V ≥ 1.
        dim: d ≥ 1.

    Returns:
        T arrays in the working precision, prefixes in the order of `text_laws`.

    Raises:
        ValueError: an argument is out of range; it is named.

    """
    check_key("key", key)
    length = check_integer("num_tokens", num_tokens, 1)
    size = check_integer("vocabulary", vocabulary, 1)
    width = check_integer("dim", dim, 1)
    if size > 1 and length * np.log2(size) > np.log2(MOST_TEXTS):
        raise fail("num_tokens", f"{size}^{length} texts", f"at most {MOST_TEXTS}")
    prefixes = [size**t for t in range(length)]
    drawn = jax.random.normal(key, (sum(prefixes), size, width), jnp.result_type(float))
    unit = drawn / jnp.linalg.norm(drawn, axis=-1, keepdims=True)
    ends = np.cumsum(prefixes).tolist()
    return tuple(unit[end - many : end] for many, end in zip(prefixes, ends, strict=True))


def text_laws(parameters: Numbers, features: Any) -> tuple[Float[Array, " _texts"], ...]:
    """Laws of the first 1, …, T tokens of a policy's text, by enumeration.

    Args:
        parameters: θ (d,). May be traced.
        features: T arrays (V^t, V, d), as of `token_features`. May be traced.

    Returns:
        T arrays (V,), (V²,), …, (V^T,), the last token fastest; each sums to 1.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#lipschitz-policies.

    """
    check_shape("parameters", parameters, (None,))
    check_number("parameters", parameters)
    theta = jnp.asarray(parameters).astype(jnp.result_type(float))
    if not isinstance(features, tuple | list) or not features:
        raise fail("features", f"a {type(features).__name__}", "a tuple of arrays, one a token")
    check_shape("features", features[0], (1, None, len(theta)), "(1, V, d) for the first token")
    size = int(np.shape(features[0])[1])
    for t, array in enumerate(features):
        check_shape("features", array, (size**t, size, len(theta)), f"(V^t, V, d) for token {t}")
        check_number("features", array)
    return _laws(theta, tuple(jnp.asarray(array).astype(theta.dtype) for array in features))


def total_variation(first: Numbers, second: Numbers) -> Float[Array, "*laws"]:
    """Total variation ½ Σ|p − q| of laws in the last axis, with its ½: from 0 to 1.

    Args:
        first: p (…, texts) ≥ 0. May be traced.
        second: q of the same shape. May be traced.

    Returns:
        Distances, of the shape without the last axis.

    Raises:
        ValueError: an argument is out of range; it is named.

    """
    shape = np.shape(first)
    if not shape:
        raise fail("first", "a number", "a law, (texts,)")
    check_shape("second", second, shape)
    for name, law in (("first", first), ("second", second)):
        check_number(name, law, 0)
    p, q = (jnp.asarray(law).astype(jnp.result_type(float)) for law in (first, second))
    return 0.5 * jnp.sum(jnp.abs(p - q), axis=-1)


@jax.jit
def _laws(
    theta: Float[Array, " dim"], features: tuple[Float[Array, "_prefixes vocabulary dim"], ...]
) -> tuple[Float[Array, " _texts"], ...]:
    log_law, laws = jnp.zeros(1, theta.dtype), []
    for array in features:
        steps = jax.nn.log_softmax(jnp.sum(array * theta[None, None, :], axis=-1), axis=-1)
        log_law = (log_law[:, None] + steps).reshape(-1)
        laws.append(jnp.exp(log_law))
    return tuple(laws)
