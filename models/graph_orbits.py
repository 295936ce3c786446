"""Orbits of the connected induced subgraphs on two to four nodes, counted by matrix products.

Symbols: A (n, n) of 0 and 1, zero diagonal; d_v degrees; C = A² common neighbours of two nodes;
t_v triangles at v; T = A∘C triangles at an edge; k_v complete subgraphs on four nodes at v.

The fifteen orbits stand in ORCA's order [hocevar2014combinatorial]: 0 edge; path of three, 1 end,
2 middle; 3 triangle; path of four, 4 end, 5 middle; claw, 6 leaf, 7 centre; 8 cycle of four; paw,
9 pendant node, 10 node of degree 2, 11 node of degree 3; diamond, 12 node of degree 2, 13 node of
degree 3; 14 complete graph of four.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

NUM_ORBITS = 15


def orbit_counts(adjacency: Float[Array, "m n n"]) -> Float[Array, "m n 15"]:
    """Number of induced subgraphs in which each node stands in each orbit.

    Subgraphs are first counted whether induced or not, each by a sum over walks that starts at the
    node. Every set of four nodes holds a known number of them, so that the sets are then told apart
    from the densest to the sparsest. Entries are whole numbers, exact while below 2⁵³ (float64) or
    2²⁴ (float32). Time m·n⁴, memory m·n².
    """
    degree = jnp.sum(adjacency, axis=2)
    common = adjacency @ adjacency
    at_edge = adjacency * common
    triangles = jnp.sum(at_edge, axis=2) / 2
    complete = _complete_fours(adjacency)

    def over_neighbors(values: Float[Array, "m n"]) -> Float[Array, "m n"]:
        return jnp.einsum("muv,mv->mu", adjacency, values)

    # A walk of two steps that comes back is no common neighbour.
    between = common * (1 - jnp.eye(adjacency.shape[1], dtype=adjacency.dtype))[None]
    pairs = degree * (degree - 1) / 2
    # Rooted subgraphs of four nodes, induced or not.
    path_end = jnp.sum(between * (degree[:, None, :] - 1 - adjacency), axis=2)
    path_middle = (degree - 1) * over_neighbors(degree - 1) - 2 * triangles
    claw_leaf = over_neighbors((degree - 1) * (degree - 2) / 2)
    claw_centre = degree * (degree - 1) * (degree - 2) / 6
    cycle = jnp.sum(between * (between - 1), axis=2) / 2
    paw_pendant = over_neighbors(triangles) - 2 * triangles
    paw_two = jnp.einsum("muv,mv->mu", at_edge, degree - 2)
    paw_three = triangles * (degree - 2)
    # Σ over triangles (v, a, b) of the other triangles at the edge ab.
    opposite = jnp.einsum("mua,mab->mub", adjacency, adjacency * (common - 1))
    diamond_two = jnp.sum(opposite * adjacency, axis=2) / 2
    diamond_three = jnp.sum(at_edge * (common - 1), axis=2) / 2

    o14 = complete
    o13 = diamond_three - 3 * o14
    o12 = diamond_two - 3 * o14
    o11 = paw_three - 2 * o13 - 3 * o14
    o10 = paw_two - 2 * o13 - 2 * o12 - 6 * o14
    o9 = paw_pendant - 2 * o12 - 3 * o14
    o8 = cycle - o12 - o13 - 3 * o14
    o7 = claw_centre - o11 - o13 - o14
    o6 = claw_leaf - o9 - o10 - 2 * o12 - o13 - 3 * o14
    o5 = path_middle - 2 * o8 - o10 - 2 * o11 - 2 * o12 - 4 * o13 - 6 * o14
    o4 = path_end - 2 * o8 - 2 * o9 - o10 - 4 * o12 - 2 * o13 - 6 * o14
    o3 = triangles
    o2 = pairs - triangles
    o1 = over_neighbors(degree - 1) - 2 * triangles
    counts = (degree, o1, o2, o3, o4, o5, o6, o7, o8, o9, o10, o11, o12, o13, o14)
    # XLA divides by a constant through its reciprocal, which leaves the last bit open.
    return jnp.round(jnp.stack(counts, axis=2))


def _complete_fours(adjacency: Float[Array, "m n n"]) -> Float[Array, "m n"]:
    """Complete subgraphs on four nodes at each node: triangles among its neighbours."""

    def at_node(row: Float[Array, "m n"]) -> Float[Array, " m"]:
        among = adjacency * row[:, :, None] * row[:, None, :]
        return jnp.sum(among * (among @ among), axis=(1, 2)) / 6

    return jax.lax.map(at_node, jnp.swapaxes(adjacency, 0, 1)).T
