"""Exact joint score of a nonlinear model of features and structure, by enumeration of its labels.

z is uniform on {−1, 1}ⁿ; X_i = μ z_i + s ξ_i; the edge a_ij is Bernoulli with p_in within a block and
p_out across. Noised to means m_X, m_A: x = m_X X + (1 − m_X²)^{½}ξ and a likewise. Given z all
coordinates are independent, so that the score is a posterior mean over 2ⁿ labellings.
"""

import functools
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.typing import Numbers, Scalar

MAX_NODES = 10
# Below it the square has no digits.
SMALLEST_NOISE = 1e-100


@float64
def sbm_joint_score(
    x: Numbers,
    edges: Numbers,
    mean_features: Scalar,
    mean_structure: Scalar,
    p_in: Scalar,
    p_out: Scalar,
    mu: Scalar,
    noise_std: Scalar,
) -> tuple[Float[Array, " n"], Float[Array, " pairs"]]:
    """Gradients of log q(x, a), the joint density of noised features and edges of a block model.

    With v = m_X² s² + 1 − m_X² they are (m_X μ E[z | x, a] − x)/v and
    (m_A E[edge | x, a] − a)/(1 − m_A²), expectations over all 2ⁿ labellings. A mean of 1 gives a block
    clean: the score of the other is then that of its conditional law. A mean of 0 leaves a block without
    information, and the other has its marginal score.

    Args:
        x: Noised features (n,), n from 1 to 10. All arguments may be traced.
        edges: Noised edges (n(n−1)/2,) in the order of `numpy.triu_indices(n, 1)`, each pair once;
            where `mean_structure` is 1 they are the clean 0 or 1.
        mean_features: m_X in [0, 1].
        mean_structure: m_A in [0, 1].
        p_in: Probability of an edge within a block, in (0, 1).
        p_out: Probability of an edge across, in (0, 1).
        mu: Distance μ of a feature's mean from 0.
        noise_std: s ≥ 1e-100, standard deviation of the features given the labels.

    Returns:
        (score_x (n,), score_edges (n(n−1)/2,)); zeros for a block whose mean is 1.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#enumerated-block-model.

    """
    model = _model_of(x, edges, mean_features, mean_structure, p_in, p_out, mu, noise_std)
    return _score(*model)


@float64
def sbm_information_density(
    x: Numbers,
    edges: Numbers,
    mean_features: Scalar,
    mean_structure: Scalar,
    p_in: Scalar,
    p_out: Scalar,
    mu: Scalar,
    noise_std: Scalar,
) -> Float[Array, ""]:
    """Pointwise mutual information log q(x, a)/(q(x) q(a)) of noised features and edges.

    In nats; its mean over the joint law is I(X; A) at the two noise levels, and the mean of its
    exponential over the product of the marginal laws is 1. It is at most (n − 1) log 2.

    Args:
        x: Noised features (n,), n from 1 to 10. All arguments may be traced.
        edges: Noised edges (n(n−1)/2,), as for `sbm_joint_score`.
        mean_features: m_X in [0, 1]; 1 for clean features.
        mean_structure: m_A in [0, 1]; 1 for clean edges.
        p_in: Probability of an edge within a block, in (0, 1).
        p_out: Probability of an edge across, in (0, 1).
        mu: Distance μ of a feature's mean from 0.
        noise_std: s ≥ 1e-100, standard deviation of the features given the labels.

    Returns:
        A JAX scalar.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#enumerated-block-model.

    """
    model = _model_of(x, edges, mean_features, mean_structure, p_in, p_out, mu, noise_std)
    return _information(*model)


class _Model(NamedTuple):
    """Checked arguments of both functions, in float64."""

    x: Float[Array, " n"]
    edges: Float[Array, " pairs"]
    mean_features: Float[Array, ""]
    mean_structure: Float[Array, ""]
    p_in: Float[Array, ""]
    p_out: Float[Array, ""]
    mu: Float[Array, ""]
    noise_std: Float[Array, ""]


def _model_of(
    x: Any,
    edges: Any,
    mean_features: Any,
    mean_structure: Any,
    p_in: Any,
    p_out: Any,
    mu: Any,
    noise_std: Any,
) -> _Model:
    check_shape("x", x, (None,))
    check_number("x", x)
    nodes = x.shape[0] if is_traced(x) else len(np.asarray(x))
    if nodes > MAX_NODES:
        raise fail("x", f"{nodes} nodes", f"1 to {MAX_NODES}, as 2ⁿ labellings are enumerated")
    check_shape("edges", edges, (nodes * (nodes - 1) // 2,), "one a pair of nodes")
    check_number("edges", edges)
    scalars: dict[str, tuple[Any, dict[str, Any]]] = {
        "mean_features": (mean_features, {"low": 0, "high": 1}),
        "mean_structure": (mean_structure, {"low": 0, "high": 1}),
        "p_in": (p_in, {"low": 0, "high": 1, "low_open": True, "high_open": True}),
        "p_out": (p_out, {"low": 0, "high": 1, "low_open": True, "high_open": True}),
        "mu": (mu, {}),
        "noise_std": (noise_std, {"low": SMALLEST_NOISE}),
    }
    values = []
    for name, (value, limits) in scalars.items():
        check_shape(name, value, ())
        check_number(name, value, **limits)
        values.append(jnp.asarray(value, jnp.float64))
    if not is_traced(mean_structure, edges) and float(np.asarray(mean_structure)) == 1.0:
        binary = np.asarray(edges)
        if not np.isin(binary, (0.0, 1.0)).all():
            other = binary[~np.isin(binary, (0.0, 1.0))][0]
            raise fail("edges", other, "0 or 1 where mean_structure is 1")
    return _Model(jnp.asarray(x, jnp.float64), jnp.asarray(edges, jnp.float64), *values)


@functools.cache
def _labellings(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """All labellings (2ⁿ, n), and 1 for their pairs of equal labels (2ⁿ, pairs)."""
    labels = np.array(list(itertools.product((1.0, -1.0), repeat=nodes)))
    first, second = np.triu_indices(nodes, 1)
    return labels, (labels[:, first] == labels[:, second]).astype(np.float64)


class _Posterior(NamedTuple):
    """What each labelling of `_labellings` says of a point, and P(edge) given its value."""

    log_features: Float[Array, " labellings"]
    """Log-likelihood of x, up to what all labellings share."""
    log_structure: Float[Array, " labellings"]
    """Log-likelihood of the edges, likewise."""
    variance: Float[Array, ""]
    """v."""
    sigma_sq: Float[Array, ""]
    """1 − m_A², or 1 for clean edges."""
    edge_inside: Float[Array, " pairs"]
    edge_across: Float[Array, " pairs"]


def _posterior(model: _Model) -> _Posterior:
    labels, same = _labellings(len(model.x))
    clean = model.mean_structure >= 1.0
    sigma_sq = jnp.where(clean, 1.0, 1.0 - model.mean_structure**2)
    # log N(a; m, σ²)/N(a; 0, σ²): what a noised edge says for a 1.
    evidence = (model.mean_structure * model.edges - 0.5 * model.mean_structure**2) / sigma_sq
    # The two likelihoods over their sum, which all labellings share: never 0/0, 0 and 1 where clean.
    present = jnp.where(clean, model.edges, jax.nn.sigmoid(evidence))
    absent = jnp.where(clean, 1.0 - model.edges, jax.nn.sigmoid(-evidence))
    inside = model.p_in * present + (1.0 - model.p_in) * absent
    across = model.p_out * present + (1.0 - model.p_out) * absent
    mean = model.mean_features
    variance = (mean * model.noise_std) ** 2 + 1.0 - mean**2
    return _Posterior(
        jnp.asarray(labels) @ model.x * (mean * model.mu / variance),
        jnp.asarray(same) @ jnp.log(inside / across),
        variance,
        sigma_sq,
        model.p_in * present / inside,
        model.p_out * present / across,
    )


@jax.jit
def _score(*arguments: Float[Array, "..."]) -> tuple[Float[Array, " n"], Float[Array, " pairs"]]:
    model = _Model(*arguments)
    labels, same = _labellings(len(model.x))
    seen = _posterior(model)
    weight = jax.nn.softmax(seen.log_features + seen.log_structure)
    alike = weight @ same
    edge_mean = alike * seen.edge_inside + (1.0 - alike) * seen.edge_across
    score_x = (model.mean_features * model.mu * (weight @ labels) - model.x) / seen.variance
    score_edges = (model.mean_structure * edge_mean - model.edges) / seen.sigma_sq
    return (
        jnp.where(model.mean_features >= 1.0, 0.0, score_x),
        jnp.where(model.mean_structure >= 1.0, 0.0, score_edges),
    )


@jax.jit
def _information(*arguments: Float[Array, "..."]) -> Float[Array, ""]:
    seen = _posterior(_Model(*arguments))
    parts = (seen.log_features + seen.log_structure, seen.log_features, seen.log_structure)
    both, features, structure = (jax.scipy.special.logsumexp(part) for part in parts)
    return both - features - structure + jnp.log(float(len(seen.log_features)))
