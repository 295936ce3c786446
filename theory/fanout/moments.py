"""Moments of the mean over a few sampled neighbours, and its distance from the mean over all.

Symbols: β fan-out, N(i) neighbours of node i (senders of the edges into it), d_i = |N(i)|,
m_i = min(β, d_i), S_i ⊂ N(i) the sample, uniform among the subsets of size m_i (without replacement),
h̃_i the mean of the features x_j over S_i, h̄_i over N(i), and the neighbourhood covariance
S_i² = (d_i − 1)⁻¹ Σ_{j∈N(i)} (x_j − h̄_i)(x_j − h̄_i)ᵀ, zero for d_i ≤ 1.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.sparse import csr_array

from boundlab.checks import check_choice, check_integer, check_number, fail
from boundlab.precision import float64, is_traced
from boundlab.theory.fanout import _graph
from boundlab.theory.fanout._outcome import nan_unless, refuse_overflow
from boundlab.typing import Count, Numbers

KINDS = ("sqnorm", "trace", "nuclear")
SPARSE = 14
"""A row whose neighbours fill fewer than 1/14 of the features is done faster with sparse products."""


class Moments(NamedTuple):
    """Mean and covariance of the sampled neighbour mean.

    Attributes:
        mean: (rows, r) h̄_i, the mean over all neighbours; 0 for a node without any.
        covariance_trace: (rows,) tr V_i.
        average_covariance: (r, r) V̄, the mean of V_i over the rows.

    """

    mean: Float[np.ndarray, "rows r"]
    covariance_trace: Float[np.ndarray, " rows"]
    average_covariance: Float[np.ndarray, "r r"]


@float64
@np.errstate(over="ignore", invalid="ignore")  # an error of our own instead
def neighbor_mean_moments(
    graph: Any, features: Numbers, fan_out: Count, nodes: Any = None
) -> Moments:
    """Mean and covariance of the mean over β sampled neighbours, exact for any features.

    E h̃_i = h̄_i and Cov h̃_i = V_i = (1/m_i − 1/d_i) S_i² for m_i = min(β, d_i) of the d_i neighbours
    j in N(i), drawn without replacement, with S_i² = (d_i − 1)⁻¹ Σ_j (x_j − h̄_i)(x_j − h̄_i)ᵀ, the
    finite-population correction in the bracket: V_i = 0 where β ≥ d_i, and for d_i ≤ 1.

    Args:
        graph: n nodes; directed or not.
        features: (n, r), finite.
        fan_out: β ≥ 1; above a node's degree it means all its neighbours.
        nodes: distinct nodes that rows and the average run over, in this order; all by default.

    Returns:
        Moments of NumPy arrays, in the units of the features and of their square.

    Raises:
        ValueError: an argument is out of range, not finite, of another shape, or `features` so large
            that the result passes float64; it is named.

    Source: derived, docs/fanout.md, Fan-out estimator (Cochran's variance of a sample mean).

    """
    over = _graph.rows(graph, nodes)
    beta = _graph.fan_out_of(fan_out)
    x = _graph.features_of(features, over.num_nodes)
    mean = over.mean(x)
    root = np.sqrt(pair_factor(over.degrees, beta))
    trace = np.zeros(len(mean))
    total = np.zeros((x.shape[1], x.shape[1]))
    sampled = np.flatnonzero(root)  # where β ≥ d nothing varies
    narrow = np.zeros(len(sampled), dtype=bool)
    if 4 * np.count_nonzero(x) < x.size:
        sparse = csr_array(x)
        narrow = _widths(over.kept(sampled), sparse) * SPARSE < x.shape[1]
        few = sampled[narrow]
        for piece, part in over.kept(few).pieces(-(-x.shape[1] // SPARSE)):
            z_sparse = _centred(part, sparse, root[few[piece]])
            trace[few[piece]] = part.sum(np.asarray(z_sparse.multiply(z_sparse).sum(axis=1)))
            total += (z_sparse.T @ z_sparse).toarray()
    wide = sampled[~narrow]
    for piece, part in over.kept(wide).pieces(x.shape[1]):
        at = wide[piece]
        z = x[part.senders] - mean[at][part.row]
        z *= root[at][part.row][:, None]
        trace[at] = part.sum(np.einsum("er,er->e", z, z))
        total += z.T @ z
    total /= len(mean)
    result = Moments(mean, trace, total)
    refuse_overflow(result, features=x)
    return result


@float64
@np.errstate(over="ignore", invalid="ignore")
def average_covariances(
    graph: Any, features: Numbers, fan_outs: Sequence[Count], nodes: Any = None
) -> Float[np.ndarray, "fan_outs r r"]:
    """V̄(β), the mean over nodes of the covariance of the sampled mean, at several fan-outs at once.

    V̄(β) = mean_i (1/m_i − 1/d_i) S_i²; row by row the `average_covariance` of `neighbor_mean_moments`,
    whose arguments and conventions these are. One pass over the edges serves all fan-outs.

    Args:
        graph: n nodes; directed or not.
        features: (n, r), finite.
        fan_outs: β ≥ 1 each, at least one.
        nodes: distinct nodes that the average runs over; all by default.

    Returns:
        NumPy array in squares of the features' units, in the order of `fan_outs`.

    Raises:
        ValueError: as `neighbor_mean_moments`; `fan_outs` is empty.

    Source: derived, docs/fanout.md, Fan-out estimator.

    """
    over = _graph.rows(graph, nodes)
    candidates = [_graph.fan_out_of(fan_out) for fan_out in fan_outs]
    if not candidates:
        raise fail("fan_outs", "none", "at least one")
    x = _graph.features_of(features, over.num_nodes)
    mean = over.mean(x)
    total = np.zeros((len(candidates), x.shape[1], x.shape[1]))
    for piece, part in over.pieces(x.shape[1]):
        z = x[part.senders] - mean[piece][part.row]
        for sum_, fan_out in zip(total, candidates, strict=True):
            factor = pair_factor(part.degrees, fan_out)[part.row]
            sum_ += (z * factor[:, None]).T @ z
    total /= len(mean)
    refuse_overflow((total,), features=x)
    return total


def _widths(over: _graph.Rows, x: csr_array) -> Int[np.ndarray, " rows"]:
    """Number of features in which a row's neighbours have an entry."""
    pattern = csr_array((np.ones(x.nnz), x.indices, x.indptr), shape=x.shape)
    return np.diff((over.matrix() @ pattern).indptr)


def _centred(over: _graph.Rows, x: csr_array, scale: Float[np.ndarray, " rows"]) -> csr_array:
    """scale_i·(x_j − h̄_i) of every edge, sparse (edges, r)."""
    edges = np.arange(len(over.senders) + 1)
    mean = over.matrix() @ x
    mean.data /= np.repeat(over.degrees, np.diff(mean.indptr))
    factor = scale[over.row]
    own = csr_array((factor, over.senders, edges), shape=(len(over.senders), over.num_nodes))
    around = csr_array((factor, over.row, edges), shape=(len(over.senders), len(over.nodes)))
    return own @ x - around @ mean


def pair_factor(degrees: np.ndarray, fan_out: int) -> Float[np.ndarray, " rows"]:
    """(1/m − 1/d)/(d − 1), which turns Σ_j z_j z_jᵀ into the covariance of the sample mean."""
    d = np.maximum(degrees, 2).astype(np.float64)
    m = np.minimum(fan_out, d)
    return np.where(degrees > 1, (d - m) / (m * d * (d - 1.0)), 0.0)


@float64
def two_hop_variance(
    graph: Any, features: Numbers, fan_out: Count, inner_fan_out: Count, nodes: Any = None
) -> Float[np.ndarray, " rows"]:
    """Variance of a two-hop sampled mean: neighbours of sampled neighbours, without weights.

    tr Cov h̃_i⁽²⁾ = tr (1/m_i − 1/d_i) S_i²(h̄⁽¹⁾) + (1/m_i)(1/d_i) Σ_{j∈N(i)} tr Cov h̃_j⁽¹⁾,
    h̃_j⁽¹⁾ the mean of the features over `inner_fan_out` sampled neighbours of j and h̄_j⁽¹⁾ over all,
    h̃_i⁽²⁾ the mean of h̃_j⁽¹⁾ over the sample of i, m_i = min(fan_out, d_i) of its d_i neighbours, and
    S_i²(h̄⁽¹⁾) the covariance of h̄_j⁽¹⁾ over N(i) with divisor d_i − 1, 0 for d_i ≤ 1. It holds when each
    node has one sample of its neighbours and also when each visit draws a new one, since the visited j
    are distinct. A node without neighbours has h̃ = 0.

    Args:
        graph: n nodes; directed or not.
        features: (n, r), finite.
        fan_out: neighbours of i that are sampled, ≥ 1.
        inner_fan_out: neighbours sampled of each of those, ≥ 1.
        nodes: distinct nodes i that the result runs over; all by default.

    Returns:
        (rows,) traces, a NumPy array, in units of the features squared.

    Raises:
        ValueError: an argument is out of range, not finite, of another shape, or `features` so large
            that the result passes float64; it is named.

    Source: derived, docs/fanout.md, Three layers (law of total covariance).

    """
    inner_fan_out = check_integer("inner_fan_out", inner_fan_out, 1)
    inner = neighbor_mean_moments(graph, features, inner_fan_out)
    outer = neighbor_mean_moments(graph, inner.mean, fan_out, nodes)
    over = _graph.rows(graph, nodes)
    m = np.clip(over.degrees, 1, _graph.fan_out_of(fan_out))
    passed_on = over.mean(inner.covariance_trace[:, None])[:, 0]
    return outer.covariance_trace + passed_on / m


@float64
def row_distance(degree: Numbers, fan_out: Count, kind: str) -> Float[Array, "*shape"]:
    """Distance between a node's full and sampled aggregation rows, the same for every sample.

    For the mean aggregator, a = 1/d on N(i) and a' = 1/m on the sample, m = min(β, d):
    `sqnorm` ‖a − a'‖² = (d − m)/(md); `trace` Σ_j |a_j² − a'_j²| = (d − m)(d + 2m)/(md²);
    `nuclear` ‖aaᵀ − a'a'ᵀ‖_* = √((d − m)(d + 3m))/(md). Zero where β ≥ d, and at d = 0.

    Args:
        degree: d, whole numbers ≥ 0, of any shape; may be traced.
        fan_out: β ≥ 1, whole; may be traced.
        kind: `sqnorm`, `trace` or `nuclear`.

    Returns:
        JAX array like `degree`, without unit; NaN where a traced argument is out of range or no whole
        number.

    Raises:
        ValueError: an argument is out of range, or `kind` is unknown.

    Source: derived, docs/fanout.md, Fan-out estimator.

    """
    check_choice("kind", kind, KINDS)
    check_number("degree", degree, 0.0)
    if not is_traced(degree) and np.any(np.asarray(degree) % 1):
        raise fail("degree", "a fraction", "whole numbers")
    if not is_traced(fan_out):
        _graph.fan_out_of(fan_out)
    d, beta = jnp.asarray(degree, dtype=jnp.float64), jnp.asarray(fan_out, dtype=jnp.float64)
    return _distance(d, beta, kind)


@partial(jax.jit, static_argnums=2)
def _distance(
    degree: Float[Array, "*shape"], fan_out: Float[Array, ""], kind: str
) -> Float[Array, "*shape"]:
    whole = (jnp.floor(degree) == degree) & (jnp.floor(fan_out) == fan_out)
    valid = whole & (degree >= 0.0) & (fan_out >= 1.0)
    return nan_unless(valid, _apart(degree, fan_out, kind))


def _apart(
    degree: Float[Array, "*shape"], fan_out: Float[Array, ""], kind: str
) -> Float[Array, "*shape"]:
    d = jnp.maximum(degree, 1.0)
    m = jnp.minimum(fan_out, d)
    apart = d - m  # 0 at d = 0 too
    if kind == "sqnorm":
        return apart / (m * d)
    if kind == "trace":
        return apart * (d + 2.0 * m) / (m * d**2)
    differs = apart > 0.0
    product = jnp.where(differs, apart * (d + 3.0 * m), 1.0)
    return jnp.where(differs, jnp.sqrt(product) / (m * d), 0.0)
