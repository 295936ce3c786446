"""What a benchmark of generated graphs measures: repeats in its data, and its discrepancy's mean.

Symbols: a law of graphs as atoms, classes of `multiplicity` graphs of `probability` each; c nodes of a
community, p = 0.1/c the probability of a pair across two communities; m and n sizes of two samples.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import comb

from boundlab.checks import check_choice, check_integer, check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.typing import Count, Numbers, Scalar


class Atoms(NamedTuple):
    """A law on finitely many graphs, those of equal probability together."""

    probability: Float[Array, " classes"]
    """Of each graph of the class."""
    multiplicity: Float[Array, " classes"]
    """Number of graphs in the class."""


@float64
def shared_community_law(forced: str = "first") -> Atoms:
    """Law of a graph of the benchmark `community_small` as published: one seed a size.

    M is uniform on 12 … 20, c = ⌊M/2⌋. All graphs with one c share both communities, which are
    connected, so that only the c² pairs across differ: each is joined with probability p = 0.1/c.
    Where none is, with probability (1 − p)^{c²}, an edge is forced between the first nodes: those
    graphs are one graph, which also has probability p(1 − p)^{c²−1} of being drawn as it is.

    Args:
        forced: `first`, as published; `uniform`, a variant whose forced edge is any of the c² pairs.

    Returns:
        Classes of every c by the number of edges across; graphs with one edge across are two
        classes with `first`.

    Raises:
        ValueError: naming `forced`.

    Source: derived, docs/graph_diffusion.md#benchmark-duplicates; the recipe is [jo2022score]'s.

    """
    check_choice("forced", forced, ("first", "uniform"))
    sizes, counts = np.unique(np.arange(12, 21) // 2, return_counts=True)
    probability, multiplicity = [], []
    for c, share in zip(sizes.tolist(), (counts / counts.sum()).tolist(), strict=True):
        pairs, p = c * c, 0.1 / c
        edges = np.arange(1, pairs + 1)
        each = share * p**edges * (1 - p) ** (pairs - edges)
        number = comb(pairs, edges)
        none = share * (1 - p) ** pairs
        if forced == "uniform":
            each[0] += none / pairs
        else:
            each, number = np.append(each, each[0] + none), np.append(number, 1.0)
            number[0] -= 1
        probability.append(each)
        multiplicity.append(number)
    return Atoms(
        jnp.asarray(np.concatenate(probability)), jnp.asarray(np.concatenate(multiplicity))
    )


@float64
def expected_distinct(
    probability: Numbers, multiplicity: Numbers, num_graphs: Count
) -> Float[Array, ""]:
    """Expected number of different graphs among N independent ones: Σ over graphs of 1 − (1 − a)^N.

    Args:
        probability: a (classes,) of each graph of a class.
        multiplicity: (classes,) graphs in the class; Σ probability·multiplicity = 1.
        num_graphs: N.

    Raises:
        ValueError: naming the argument.

    Source: derived, docs/graph_diffusion.md#benchmark-duplicates.

    """
    a, number = _law(probability, multiplicity)
    count = check_integer("num_graphs", num_graphs, 1)
    return jnp.sum(number * _met(a, count))


@float64
def expected_duplicates(
    probability: Numbers, multiplicity: Numbers, num_test: Count, num_train: Count
) -> Float[Array, ""]:
    """Expected number of test graphs that equal a training graph: T Σ over graphs of a(1 − (1 − a)^N).

    Args:
        probability: As in `expected_distinct`.
        multiplicity: The same.
        num_test: T; graphs that occur twice in the test set count twice.
        num_train: N; all graphs are independent.

    Raises:
        ValueError: naming the argument.

    Source: derived, docs/graph_diffusion.md#benchmark-duplicates.

    """
    a, number = _law(probability, multiplicity)
    test = check_integer("num_test", num_test, 1)
    train = check_integer("num_train", num_train, 0)
    return test * jnp.sum(number * a * _met(a, train))


@float64
def expected_mmd_squared(
    within_reference: Numbers,
    within_generated: Numbers,
    between: Numbers,
    num_reference: Count,
    num_generated: Count,
    estimator: str = "v",
) -> Float[Array, "*cases"]:
    """Mean of the squared maximum mean discrepancy of two samples, for kernels with k(x, x) = 1.

    `u`: r + g − 2b. `v`, whose pairs of a graph with itself count 1: r + (1 − r)/m + g + (1 − g)/n −
    2b, more by (1 − r)/m + (1 − g)/n. Two samples of one law (r = g = b) have mean 0 and
    (1 − r)(1/m + 1/n); a kernel that sees no two graphs as alike (r = g = b = 0) gives 1/m + 1/n
    whatever the laws.

    Args:
        within_reference: r, mean kernel of two different graphs of the reference, in [0, 1].
        within_generated: g, of two different generated graphs.
        between: b, of a graph of the reference and a generated one. The three are broadcast.
        num_reference: m, graphs in the sample of the reference.
        num_generated: n.
        estimator: `v` or `u`, as in `boundlab.models.graph_metrics.mmd_squared`.

    Raises:
        ValueError: naming the argument.

    Source: derived, docs/graph_diffusion.md#metrics.

    """
    named = {
        "within_reference": within_reference,
        "within_generated": within_generated,
        "between": between,
    }
    for name, value in named.items():
        check_number(name, value, 0, 1)
    try:
        shape = np.broadcast_shapes(*(np.shape(value) for value in named.values()))
    except ValueError as error:
        raise fail(", ".join(named), "shapes that don't fit together", "one shape") from error
    check_choice("estimator", estimator, ("v", "u"))
    least = 2 if estimator == "u" else 1
    m = check_integer("num_reference", num_reference, least)
    n = check_integer("num_generated", num_generated, least)
    r, g, b = (jnp.broadcast_to(jnp.asarray(v, jnp.float64), shape) for v in named.values())
    unbiased = r + g - 2 * b
    return unbiased if estimator == "u" else unbiased + (1 - r) / m + (1 - g) / n


def _met(a: Float[Array, " classes"], count: int) -> Float[Array, " classes"]:
    """1 − (1 − a)^count, exact for small a."""
    sure = a >= 1
    return jnp.where(
        sure & (count > 0), 1.0, -jnp.expm1(count * jnp.log1p(-jnp.where(sure, 0.0, a)))
    )


def _law(
    probability: Numbers, multiplicity: Numbers
) -> tuple[Float[Array, " classes"], Float[Array, " classes"]]:
    check_shape("probability", probability, (None,))
    check_number("probability", probability, 0, 1)
    check_shape("multiplicity", multiplicity, np.shape(probability), "one entry a class")
    check_number("multiplicity", multiplicity, 0)
    a, number = jnp.asarray(probability, jnp.float64), jnp.asarray(multiplicity, jnp.float64)
    if not is_traced(a, number):
        total: Scalar = float(jnp.sum(a * number))
        if abs(total - 1) > 1e-9:
            raise fail("probability", f"a sum of {total} over all graphs", "1")
    return a, number
