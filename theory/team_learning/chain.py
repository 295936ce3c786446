"""Dependent subtasks as a chain: what errors of early stages cost later ones.

Symbols: K stages, one an agent; p_k the chance that stage k succeeds given that all before it did, and
q_k = 1 − p_k its error; a failure ends the trajectory. The dependent return J_dep = (1/K) Σ_k Π_{j≤k} p_j
is the mean over stages of being alive after them; J_ind = (1/K) Σ_k p_k is that of independent stages.
Every stage earns its own (process) reward of 1/K; Π_k p_k is the outcome's, all stages solved.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_integer, check_number, check_shape
from boundlab.precision import float64
from boundlab.typing import Count, Numbers, Scalar


@float64
def chain_returns(success_probabilities: Numbers) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Expected returns (J_dep, J_ind) of a chain and of the same stages if independent.

        J_dep = (1/K) Σ_k Π_{j≤k} p_j,    J_ind = (1/K) Σ_k p_k.

    Args:
        success_probabilities: p (K,), K ≥ 1, in [0, 1]. May be traced.

    Returns:
        The two returns, in [0, 1]: means over stages.

    Raises:
        ValueError: `success_probabilities` is no such array.

    Source: derived, docs/team_learning.md#chain.

    """
    errors = 1.0 - _probabilities("success_probabilities", success_probabilities)
    return 1.0 - jnp.mean(_failed_by(errors)), 1.0 - jnp.mean(errors)


@float64
def chain_amplification(success_probabilities: Numbers) -> Float[Array, ""]:
    """Loss of a chain over the loss of independent stages, (1 − J_dep)/(1 − J_ind), in [1, K].

    All error in stage s gives K − s + 1, whatever its size; small errors give K + 1 − s̄, s̄ the mean stage
    weighted by error, an upper bound for errors of any size.

    Args:
        success_probabilities: p (K,), K ≥ 1, in [0, 1]. May be traced.

    Returns:
        The ratio, without cancellation for errors as small as 1 − p allows; 1 when all p are 1.

    Raises:
        ValueError: `success_probabilities` is no such array.

    Source: derived, docs/team_learning.md#chain (cf. εT against εT² of ross2010efficient).

    """
    errors = 1.0 - _probabilities("success_probabilities", success_probabilities)
    some = jnp.any(errors > 0.0)
    total = jnp.where(some, jnp.sum(errors), 1.0)
    return jnp.where(some, jnp.sum(_failed_by(errors)) / total, 1.0)


@float64
def uniform_chain_amplification(num_stages: Count, error: Scalar) -> Float[Array, ""]:
    """`chain_amplification` of K stages that all err with probability g:

        [1 − (1 − g)(1 − (1 − g)^K)/(Kg)]/g = (1/K) Σ_k Σ_{i<k} (1 − g)^i,

    evaluated as the second form, which has no cancellation: (K + 1)/2 as g → 0, 1 at g = 1.

    Args:
        num_stages: K ≥ 1.
        error: g in [0, 1]. May be traced.

    Returns:
        The ratio, in [1, (K + 1)/2].

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#chain.

    """
    stages = check_integer("num_stages", num_stages, 1)
    check_number("error", error, 0, 1)
    check_shape("error", error, ())
    return _uniform(jnp.asarray(error).astype(jnp.float64), stages)


@float64
def product_gap_terms(
    success_probabilities: Numbers, best_probabilities: Numbers
) -> Float[Array, " K"]:
    """What each stage takes off the outcome's return; the terms add up to Πp* − Πp exactly:

        (Π_{j<k} p_j)(p*_k − p_k)(Π_{j>k} p*_j).

    Args:
        success_probabilities: p (K,), K ≥ 1, in [0, 1]. May be traced.
        best_probabilities: p* (K,), in [0, 1], those compared with. May be traced.

    Returns:
        (K,), negative where p_k > p*_k.

    Raises:
        ValueError: an argument is no such array; it is named.

    Source: derived, docs/team_learning.md#chain.

    """
    reached = _probabilities("success_probabilities", success_probabilities)
    best = _probabilities("best_probabilities", best_probabilities)
    check_shape("best_probabilities", best_probabilities, reached.shape, "a number a stage")
    return _survival(reached) * (best - reached) * _survival(best[::-1])[::-1]


@float64
def attrition(success_probabilities: Numbers) -> Float[Array, " K"]:
    """Share of trajectories that reach each stage when all start at the first: Π_{j<k} p_j.

    With p̄_k the mean success of a stage's exploring policy, on-policy learning from n trajectories leaves
    stage k about n·Π_{j<k} p̄_j of them; staged training gives each stage all of its own.

    Args:
        success_probabilities: p (K,), K ≥ 1, in [0, 1]. May be traced.

    Returns:
        (K,), 1 for the first stage.

    Raises:
        ValueError: `success_probabilities` is no such array.

    Source: derived, docs/team_learning.md#chain.

    """
    return _survival(_probabilities("success_probabilities", success_probabilities))


def _probabilities(name: str, values: Numbers) -> Float[Array, " K"]:
    check_number(name, values, 0, 1)
    check_shape(name, values, (None,), "a number a stage")
    return jnp.asarray(values).astype(jnp.float64)


@jax.jit
def _failed_by(errors: Float[Array, " K"]) -> Float[Array, " K"]:
    """Chance of a failure up to each stage: a sum of positive terms, not 1 minus a product."""

    def step(
        failed: Float[Array, ""], error: Float[Array, ""]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        failed = failed + (1.0 - failed) * error
        return failed, failed

    return jax.lax.scan(step, jnp.zeros((), jnp.float64), errors)[1]


@jax.jit
def _survival(probabilities: Float[Array, " K"]) -> Float[Array, " K"]:
    first = jnp.ones((1,), jnp.float64)
    return jnp.concatenate([first, jnp.cumprod(probabilities)[:-1]])


@partial(jax.jit, static_argnames="stages")
def _uniform(error: Float[Array, ""], stages: int) -> Float[Array, ""]:
    def step(
        _: Any, sums: tuple[Float[Array, ""], Float[Array, ""]]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        inner = 1.0 + (1.0 - error) * sums[0]
        return inner, sums[1] + inner

    zero = jnp.zeros((), jnp.float64)
    return jax.lax.fori_loop(0, stages, step, (zero, zero))[1] / stages
