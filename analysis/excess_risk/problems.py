"""Learning problems: a graph, an operator on it, and a teacher, all scaled alike.

Every operator is scaled so that M = GGᵀ has trace 1, and every teacher so that its signal power
‖θ*‖²_M = Σ_i μ_i θ*_i² is 1: graphs are compared at one budget of features and of signal.
"""

from typing import NamedTuple

import jax
import numpy as np

from boundlab.checks import check_choice
from boundlab.models.graph_operators import graph_operator
from boundlab.models.graphs import Graph, barabasi_albert, random_regular

RISK_UNITS = "R = ‖θ − θ*‖²_M, no ½, signal power 1"
TEACHERS = ("isotropic", "head")


class Problem(NamedTuple):
    """One problem, in the node basis and in M's eigenbasis."""

    label: str
    operator: np.ndarray  # (n, n), tr GGᵀ = 1
    operator_eigenvalues: np.ndarray  # (n,) of the unscaled G, descending
    mu: np.ndarray  # (n,) eigenvalues of M, descending, sum 1
    theta_sq: np.ndarray  # (n,) squared components of the teacher in M's eigenbasis
    theta_star: np.ndarray  # (n,) the teacher on the nodes


def problem(label: str, graph: Graph, kind: str, teacher: str = "isotropic") -> Problem:
    """The problem of `graph` with an operator of `kind`; G is symmetric, so that M = G².

    `isotropic`: θ*_i² equal; `head`: θ*_i² ∝ μ_i. Components have positive signs in the basis.
    """
    check_choice("teacher", teacher, TEACHERS)
    matrix = np.asarray(graph_operator(graph, kind), dtype=np.float64)
    values, vectors = np.linalg.eigh(matrix)
    values, vectors = values[::-1], vectors[:, ::-1]
    scale = 1 / np.sqrt(np.sum(values**2))
    mu = (scale * values) ** 2
    theta_sq = np.ones_like(mu) if teacher == "isotropic" else mu
    theta_sq = theta_sq / np.sum(mu * theta_sq)
    return Problem(label, scale * matrix, values, mu, theta_sq, vectors @ np.sqrt(theta_sq))


def graph_pair(key: jax.Array, num_nodes: int, degree: int) -> dict[str, Graph]:
    """A random regular graph and a power-law graph of (nearly) the same mean degree."""
    regular_key, power_key = jax.random.split(key)
    return {
        "regular": random_regular(regular_key, num_nodes, degree),
        "power law": barabasi_albert(power_key, num_nodes, degree // 2),
    }


def require_connected(name: str, graph: Graph) -> None:
    """Refuse a disconnected graph where the largest eigenvalue must be simple."""
    if not graph.is_connected():
        raise ValueError(f"{name}: got a disconnected graph, expected a connected one")
