"""What a graph's spectrum says about the risk: spectra, depth, and samples that SGD needs.

In the graph-signal reading a sample is a whole signal x ~ N(0, I) on the nodes and the learner sees
m = Gᴸx, so that M = G^{2L} has the eigenvalues g_i^{2L} of the (positive-definite) graph operator G.

Symbols: μ_i eigenvalues of M, g_i of G, L depth, d_i degrees, A adjacency, N samples.
"""

from math import comb
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_choice, check_integer, check_number, check_shape, fail
from boundlab.precision import float64
from boundlab.theory.excess_risk import _arguments as arguments
from boundlab.theory.excess_risk.inflation import sample_inflation
from boundlab.theory.excess_risk.profiles import RiskProfile
from boundlab.theory.excess_risk.sgd import split_risk
from boundlab.theory.excess_risk.stability import limit
from boundlab.typing import Count, Numbers, Scalar

__all__ = [
    "AdjacencyTraces",
    "RiskProfile",
    "adjacency_traces",
    "depth_profile",
    "effective_rank",
    "laplacian_spectrum",
    "sample_inflation",
]

# Least size for which each family is a simple graph, be it a single node.
SMALLEST = {"cycle": 3, "path": 1, "star": 1, "complete": 1, "hypercube": 0}


@float64
def effective_rank(mu: Numbers) -> Float[Array, ""]:
    """Participation ratio of a spectrum, (Σμ)²/Σμ²: between 1 (one direction) and d (all equal).

    Args:
        mu: (d,) eigenvalues, ≥ 0, in any order and unit.

    Returns:
        Effective rank, scalar, without unit.

    Raises:
        ValueError: `mu` is empty, negative, not finite or zero throughout.

    Source: derived (the standard participation ratio).

    """
    eigenvalues = arguments.spectrum(mu)
    weight = eigenvalues / jnp.max(eigenvalues)  # squares of tiny eigenvalues would underflow
    return jnp.sum(weight) ** 2 / jnp.sum(weight**2)


@float64
def laplacian_spectrum(family: str, size: Count) -> Float[Array, " n"]:
    """Eigenvalues of the Laplacian D − A of a graph family in closed form.

    cycle 2 − 2cos(2πj/n), path 2 − 2cos(πj/n), j = 0 … n − 1; star {n, 1 (n − 2 times), 0};
    complete {n (n − 1 times), 0}; hypercube 2j with multiplicity C(q, j), j = 0 … q. A single node
    (path, star or complete of size 1, hypercube of size 0) has the spectrum {0}.

    Args:
        family: `cycle`, `path`, `star`, `complete` or `hypercube`.
        size: number of nodes n (star: hub included), at least 3 for the cycle, 1 for path, star and
            complete; for the hypercube its dimension q, n = 2^q, from 0 to 24. Static Python or
            NumPy int.

    Returns:
        (n,) eigenvalues, descending; the last is 0.

    Raises:
        ValueError: an unknown family, or a size out of range (the message gives each least size).

    Source: standard; each is checked against the matrix in the tests.

    """
    check_choice("family", family, SMALLEST)
    least = "least sizes: " + ", ".join(f"{name} {least}" for name, least in SMALLEST.items())
    largest = 24 if family == "hypercube" else None
    size = check_integer("size", size, SMALLEST[family], largest, why=least)
    if family in ("cycle", "path"):
        # 2 − 2cos 2a = 4 sin² a, without the cancellation at small angles.
        angle = np.pi * np.arange(size) / (size if family == "cycle" else 2 * size)
        values = 4.0 * np.sin(angle) ** 2
    elif family == "star":
        values = np.ones(size)
        values[0], values[-1] = size, 0.0  # in this order: at size 1 the zero stays
    elif family == "complete":
        values = np.full(size, float(size))
        values[-1] = 0.0
    else:
        counts = [comb(size, j) for j in range(size + 1)]
        values = np.repeat(2.0 * np.arange(size + 1), counts)
    return jnp.asarray(np.sort(values)[::-1])


class AdjacencyTraces(NamedTuple):
    """Traces of powers of an adjacency matrix, exact integers.

    Attributes:
        second: tr A² = 2|E|.
        fourth: tr A⁴, the number of closed walks of length four.

    """

    second: int
    fourth: int


def adjacency_traces(degrees: Numbers, num_four_cycles: Count) -> AdjacencyTraces:
    """Traces of A² and A⁴ of a simple graph from its degrees and its number of 4-cycles.

    tr A² = Σd_i = 2|E|;  tr A⁴ = 2|E| + 4 Σ_i C(d_i, 2) + 8 #C₄. At equal mean degree the first is
    fixed and the second grows with Σd_i²: uneven degrees spread the spectrum.

    Args:
        degrees: (n,) node degrees, integers ≥ 0 with an even sum.
        num_four_cycles: number of subgraphs that are 4-cycles, ≥ 0, each counted once.

    Returns:
        (tr A², tr A⁴), Python integers.

    Raises:
        ValueError: an argument is no such integer.

    Source: derived (closed walks of length four cover an edge, a path of two edges or a 4-cycle).

    """
    check_shape("degrees", degrees, (None,), "one degree a node")
    check_number("degrees", degrees, 0.0)
    check_integer("num_four_cycles", num_four_cycles, 0)
    values = np.asarray(degrees)
    if np.any(values != np.floor(values)):
        raise fail("degrees", values[values != np.floor(values)][0], "integers")
    integers = [int(v) for v in values]
    total = sum(integers)
    if total % 2:
        raise fail("degrees", f"an odd sum ({total})", "an even sum, twice the number of edges")
    paths = sum(comb(d, 2) for d in integers)
    return AdjacencyTraces(total, total + 4 * paths + 8 * int(num_four_cycles))


@float64
def depth_profile(
    operator_eigenvalues: Numbers,
    power: Numbers,
    noise_variance: Scalar,
    num_samples: Count,
    depth: Count,
    teacher: str,
    step_fraction: Scalar = 0.5,
) -> RiskProfile:
    """Exact risk of tail-averaged SGD behind L linear aggregations, per eigendirection.

    μ_i = g_i^{2L}/Σ_j g_j^{2L}; γ = step_fraction · stability_limit(μ); default tail, θ_0 = 0.
    Teacher "function": the signal power of a direction stays p_i whatever the depth (the weights
    θ*_i² = p_i/μ_i grow). Teacher "weights": θ*_i² = p_i/μ_i^{(1)} stays, so that the power at depth
    L is p_i μ_i^{(L)}/μ_i^{(1)}. Computed from log g and p, so that depths at which μ underflows
    keep their risk.

    Args:
        operator_eigenvalues: (n,) g_i > 0, eigenvalues of the graph operator, in any order.
        power: (n,) p_i = μ_i θ*_i² at depth 1, ≥ 0, in the unit of y².
        noise_variance: σ² ≥ 0, in the unit of y².
        num_samples: N ≥ 1, static; N − 1 updates.
        depth: L ≥ 1.
        teacher: `function` or `weights`.
        step_fraction: γ/γ_max in (0, 1).

    Returns:
        RiskProfile, both (n,), in the order of `operator_eigenvalues`; R without ½.

    Raises:
        ValueError: an argument is out of range or `teacher` is unknown.

    Source: derived.

    """
    check_shape("operator_eigenvalues", operator_eigenvalues, (None,), "one a node")
    check_number("operator_eigenvalues", operator_eigenvalues, 0.0, low_open=True)
    values = jnp.asarray(operator_eigenvalues, dtype=jnp.float64)
    signal = arguments.per_direction("power", power, values)
    noise = arguments.scalar("noise_variance", noise_variance)
    fraction = arguments.scalar("step_fraction", step_fraction, 0.0, 1.0, is_open=True)
    check_integer("depth", depth, 1)
    check_choice("teacher", teacher, ("function", "weights"))
    count, start = arguments.tail(num_samples, None)
    x, shifted = _at_depth(values, signal, fraction, float(depth))
    return split_risk(x, signal if teacher == "function" else shifted, noise, count, start)


@jax.jit
def _at_depth(
    values: Float[Array, " n"],
    power: Float[Array, " n"],
    fraction: Float[Array, ""],
    depth: Float[Array, ""],
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """The x = γμ of this depth, and the powers that fixed weights have there."""
    log_values = jnp.log(values)
    log_mu = jax.nn.log_softmax(2.0 * depth * log_values)
    log_ratio = log_mu - jax.nn.log_softmax(2.0 * log_values)
    mu = jnp.exp(log_mu)
    return fraction * limit(mu) * mu, power * jnp.exp(log_ratio)
