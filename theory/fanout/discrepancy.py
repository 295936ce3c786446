"""The paper's graph distance Δ(β, b) between training and test nodes, exactly.

The published cost of matching training node i with test node j is δ^full_ij, a distance of their
full aggregation rows, plus δ^full-mini_i, how far sampling moves row i. The second part depends on i
alone and the transport plan has fixed marginals, hence

    Δ = C·[OT(δ^full) + mean_i δ^full-mini_i]:

one optimal transport serves every batch size and fan-out, and for the mean aggregator, whose sampled
rows don't know the batch, Δ is constant in the batch size.
"""

from math import lcm
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_choice, check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.theory.fanout import _graph
from boundlab.theory.fanout._outcome import nan_unless
from boundlab.theory.fanout.moments import KINDS, row_distance
from boundlab.typing import Count, Scalar

# Beyond these the exact solvers take more than half a minute, or a gigabyte.
LARGEST_ASSIGNMENT = 5000
LARGEST_PROGRAM = 300_000
# Up to this many copies an assignment is faster than the linear program.
MOST_COPIES = 3000


class WassersteinDelta(NamedTuple):
    """The distance Δ and its two parts.

    Attributes:
        total: Δ = scale·(full + sampling).
        full: OT(δ^full), optimal transport between training and test rows with all neighbours.
        sampling: mean of δ^full-mini over the training nodes.

    """

    total: np.float64 | Float[Array, ""]
    full: np.float64
    sampling: np.float64


@float64
def wasserstein_delta(
    graph: Any,
    train_nodes: Any,
    test_nodes: Any,
    batch_size: Count,
    fan_out: Count,
    kind: str = "trace",
    scale: Scalar = 1.0,
) -> WassersteinDelta:
    """Distance Δ(β, b) of training and test nodes for the mean aggregator.

    Δ = scale·[OT(δ^full) + mean_i δ^full-mini_i] with uniform marginals 1/n_train and 1/n_test. With
    a_i = 1/d_i on N(i): `trace` δ^full_ij = Σ_k |a_jk² − a_ik²|, `sqnorm` ‖a_j − a_i‖², `nuclear`
    ‖a_j a_jᵀ − a_i a_iᵀ‖_*; δ^full-mini_i is `row_distance` of the same kind. An isolated node has
    the row 0. `batch_size` is checked and doesn't enter: a mean over a node's own sample is the same
    in every batch.

    Args:
        graph: a Graph or DirectedGraph.
        train_nodes: distinct nodes i.
        test_nodes: distinct nodes j.
        batch_size: b in [1, len(train_nodes)].
        fan_out: β ≥ 1.
        kind: `trace`, `sqnorm` or `nuclear`.
        scale: C ≥ 0, the paper's constant (v_x(v_w + 1)/(2 min(n_train, n_test)) in its draft).

    Returns:
        WassersteinDelta of three NumPy numbers; for a traced `scale` its total is a JAX scalar, NaN for
        a negative one.

    Raises:
        ValueError: an argument is out of range, or there are too many nodes for the exact transport
            (more than 5,000 of each in equal numbers, n_train·n_test above 300,000 otherwise); it is
            named.

    Source: the definition [liu2026full, Definition 1] with the cost of [liu2025draft]; the decoupling
    is derived, docs/fanout.md#wasserstein-distances.

    """
    check_choice("kind", kind, KINDS)
    check_shape("scale", scale, ())
    check_number("scale", scale, 0.0)
    train = _graph.rows_of(graph, train_nodes, "train_nodes")
    test = _graph.rows_of(graph, test_nodes, "test_nodes")
    _graph.batch_size_of(batch_size, len(train.nodes))
    _check_sizes(len(train.nodes), len(test.nodes))
    with jax.ensure_compile_time_eval():  # the scale alone may be traced
        moved = np.asarray(row_distance(train.degrees, _graph.fan_out_of(fan_out), kind))
    full, sampling = np.float64(transport_cost(full_distances(train, test, kind))), moved.mean()
    if not is_traced(scale):
        return WassersteinDelta(np.float64(np.asarray(scale)) * (full + sampling), full, sampling)
    factor = jnp.asarray(scale, jnp.float64)
    return WassersteinDelta(nan_unless(factor >= 0.0, factor * (full + sampling)), full, sampling)


def full_distances(
    train: _graph.Rows, test: _graph.Rows, kind: str
) -> Float[np.ndarray, "train test"]:
    """δ^full_ij as sums of non-negative terms over the c common neighbours and the others."""
    common = (train.matrix() @ test.matrix().T).toarray()
    one, other = train.degrees[:, None], test.degrees[None, :]
    # The entry of each row, which is also its squared norm; an isolated node has the row 0.
    u, v = (np.where(degree > 0, 1 / np.maximum(degree, 1), 0.0) for degree in (one, other))
    apart = (one - common) * u**2 + (other - common) * v**2
    if kind == "trace":
        return apart + common * np.abs((u - v) * (u + v))
    squared = apart + common * (u - v) ** 2
    if kind == "sqnorm":
        return squared
    # √((u + v)² − 4g²), g = c·uv the inner product, as √((u + v − 2g)(u + v + 2g)).
    return np.sqrt(squared * (squared + 4 * common * u * v))


def transport_cost(cost: Float[np.ndarray, "train test"]) -> float:
    """Least mean cost of a coupling of the two uniform laws, exactly."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = cost.shape
    size = lcm(rows, columns)
    if rows != columns and size > MOST_COPIES:
        return _linear_program(cost)
    # With mass 1/size a copy the coupling is an assignment of copies.
    copies = np.repeat(np.repeat(cost, size // rows, axis=0), size // columns, axis=1)
    return float(copies[linear_sum_assignment(copies)].mean())


def _linear_program(cost: Float[np.ndarray, "train test"]) -> float:
    """The transport as a linear program, for numbers without a small common multiple."""
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, kron, vstack

    rows, columns = cost.shape
    marginals = vstack(
        [
            kron(eye_array(rows), np.ones((1, columns))),
            kron(np.ones((1, rows)), eye_array(columns)),
        ]
    )
    mass = np.concatenate([np.full(rows, 1 / rows), np.full(columns, 1 / columns)])
    solved = linprog(cost.ravel(), A_eq=marginals.tocsr(), b_eq=mass, method="highs-ds")
    if solved.status != 0:
        raise RuntimeError(f"the transport program found no optimum: {solved.message}")
    return float(solved.fun)


def _check_sizes(num_train: int, num_test: int) -> None:
    """Refuse, before any large array is made, what the exact solvers can't do."""
    equal = num_train == num_test
    if num_train > LARGEST_ASSIGNMENT if equal else num_train * num_test > LARGEST_PROGRAM:
        accepted = (
            f"at most {LARGEST_ASSIGNMENT} of each in equal numbers, n_train·n_test ≤ "
            f"{LARGEST_PROGRAM} otherwise, for the exact transport: take a sample"
        )
        raise fail("train_nodes", f"{num_train}, with {num_test} test nodes", accepted)
