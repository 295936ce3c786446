"""Linear regression on K coupled subtasks, solved exactly: one agent, an aware team, a blind team.

Subtask i has an input x_i ~ N(0, I_d) of its own, u_i = w_iᵀx_i + ξ_i with |w_i| = 1 and ξ_i ~ N(0, σ²),
and a label y_i = u_i + what earlier labels add: λ·mean_{j<i} y_j (`mean`), λ·y_{i−1} (`chain`) or
λ·Σ_{j<i} y_j (`sum`). Symbols: n samples, each of which shows all K subtasks; D = Kd; λ the coupling;
V_i the noise variance of y_i over σ²; F_i the variance that the teammates' inputs add to E[y_i | x].
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_choice, check_integer, check_number, check_shape
from boundlab.precision import float64
from boundlab.typing import Count, Scalar

LEARNERS = ("sarl", "aware", "blind")
COUPLINGS = ("mean", "chain", "sum")
# Above it λ² overflows.
MOST_COUPLING = 1e150


@float64
def regression_risk(
    num_samples: Scalar,
    num_agents: Count,
    dim: Count,
    noise_variance: Scalar,
    coupling: Scalar,
    learner: str,
    *,
    kind: str = "mean",
) -> Float[Array, " K"]:
    """Expected excess risk E(ŷ_i − E[y_i | x])² of every subtask after least squares on n samples:

        sarl    V_i σ² D/(n − D − 1)                   one agent regresses y_i on all D inputs,
        aware   V_i σ² d/(n − d − 1)                   agents fit y_i − coupling on x_i, then roll out,
        blind   F_i + (V_i σ² + F_i) d/(n − d − 1)     agents regress y_i on x_i as if independent.

    Args:
        num_samples: n ≥ 0 in trajectories (one shows all K subtasks), real. May be traced.
        num_agents: K ≥ 1.
        dim: d ≥ 1 of each agent's input.
        noise_variance: σ² ≥ 0 of each ξ_i. May be traced.
        coupling: λ ≥ 0, at most 1e150. May be traced.
        learner: `sarl`, `aware` or `blind`.
        kind: how a subtask depends on earlier ones, `mean` (the paper's), `chain` or `sum`.

    Returns:
        (K,) squared errors, +inf for n ≤ D + 1 (`sarl`) or n ≤ d + 1 whatever the noise.

    Raises:
        ValueError: an argument is out of range; it is named.

    Conventions: no ½; the irreducible σ²V_i isn't counted; rewards are the agents' own labels.
    Source: derived, docs/team_learning.md#regression-task.

    """
    agents, size = check_integer("num_agents", num_agents, 1), check_integer("dim", dim, 1)
    check_choice("learner", learner, LEARNERS)
    check_number("num_samples", num_samples, 0)
    check_number("noise_variance", noise_variance, 0)
    check_shape("num_samples", num_samples, ())
    check_shape("noise_variance", noise_variance, ())
    rate = _coupling(coupling, kind)
    neglected = _handed_down(rate, agents, kind)
    missed = neglected if learner == "blind" else jnp.zeros_like(neglected)
    inputs = agents * size if learner == "sarl" else size
    numbers = (jnp.asarray(v).astype(jnp.float64) for v in (num_samples, noise_variance, inputs))
    return _risk(*numbers, 1.0 + neglected, missed)


@float64
def regression_crossover(
    num_agents: Count,
    dim: Count,
    noise_variance: Scalar,
    coupling: Scalar,
    *,
    kind: str = "mean",
) -> Float[Array, ""]:
    """Sample size n* = D + 1 + (D − d) σ² ΣV_i/ΣF_i below which the blind team beats one agent.

    It is where the two mean risks of `regression_risk` are equal, exactly; for n < n* the blind team's is
    the smaller.

    Args:
        num_agents: K ≥ 1.
        dim: d ≥ 1 of each agent's input.
        noise_variance: σ² ≥ 0 of each ξ_i. May be traced.
        coupling: λ ≥ 0, at most 1e150. May be traced.
        kind: `mean`, `chain` or `sum`.

    Returns:
        n* in trajectories, a real number; +inf where there is nothing to neglect (λ = 0 or K = 1).

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#regression-crossover.

    """
    agents, size = check_integer("num_agents", num_agents, 1), check_integer("dim", dim, 1)
    check_number("noise_variance", noise_variance, 0)
    check_shape("noise_variance", noise_variance, ())
    rate = _coupling(coupling, kind)
    numbers = (noise_variance, agents * size, size)
    noise, joint, own = (jnp.asarray(value).astype(jnp.float64) for value in numbers)
    return _crossover(noise, joint, own, _handed_down(rate, agents, kind))


@float64
def noise_inflation(
    num_agents: Count, coupling: Scalar, *, kind: str = "mean"
) -> Float[Array, " K"]:
    """V_i, the noise variance of y_i over σ²: that of its own ξ_i and of those handed down.

    `mean`: V_i = 1 + λ²Σ_{j<i} b²_{i−1,j} with b of `running_mean_weights`; 1 + Σ_{j<i} 1/j² at λ = 1.
    `chain`: Σ_{j<i} λ^{2j}. `sum`: 1 + λ²Σ_{j<i} (1 + λ)^{2(j−1)}.

    Args:
        num_agents: K ≥ 1.
        coupling: λ ≥ 0, at most 1e150. May be traced.
        kind: `mean`, `chain` or `sum`.

    Returns:
        (K,), 1 for the first subtask; +inf where it passes the range of float64.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#regression-task.

    """
    agents = check_integer("num_agents", num_agents, 1)
    return 1.0 + _handed_down(_coupling(coupling, kind), agents, kind)


@float64
def neglected_variance(
    num_agents: Count, coupling: Scalar, *, kind: str = "mean"
) -> Float[Array, " K"]:
    """F_i = V_i − 1, the variance of E[y_i | x] that lies in the teammates' inputs, for |w_j| = 1.

    A learner that takes the subtasks for independent misses it: √F_i is its misalignment, a root mean
    square.

    Arguments, errors and source as in `noise_inflation`; returns (K,), 0 for the first subtask.
    """
    agents = check_integer("num_agents", num_agents, 1)
    return _handed_down(_coupling(coupling, kind), agents, kind)


@float64
def running_mean_weights(num_agents: Count, coupling: Scalar) -> Float[Array, "K K"]:
    """Weights b of mean_{l≤i} y_l = Σ_{j≤i} b_{i,j} u_j under the `mean` coupling:

        b_{i,j} = Γ(i + λ) Γ(j + 1) / (j Γ(j + λ) Γ(i + 1)),    1/i at λ = 0 and 1/j at λ = 1.

    Arguments and errors as in `noise_inflation`; returns (K, K), zero above the diagonal.
    Source: derived, docs/team_learning.md#regression-task.
    """
    agents = check_integer("num_agents", num_agents, 1)
    return _weights(_coupling(coupling, "mean"), agents)


def _coupling(coupling: Scalar, kind: str) -> Float[Array, ""]:
    check_choice("kind", kind, COUPLINGS)
    check_number("coupling", coupling, 0, MOST_COUPLING)
    check_shape("coupling", coupling, ())
    return jnp.asarray(coupling).astype(jnp.float64)


@partial(jax.jit, static_argnames=("num_agents", "kind"))
def _handed_down(coupling: Float[Array, ""], num_agents: int, kind: str) -> Float[Array, " K"]:
    """λ²s_{i−1}, s_i the squared weights of u_1, …, u_i in what subtask i + 1 sees of its predecessors.

    s_i = (growth_i)² s_{i−1} + (share_i)²: all terms are positive, so nothing cancels at large K.
    """
    place = jnp.arange(1, num_agents, dtype=jnp.float64)
    one = jnp.ones_like(place)
    growth, share = {
        "mean": ((place - 1.0 + coupling) / place, 1.0 / place),
        "chain": (coupling * one, one),
        "sum": ((1.0 + coupling) * one, one),
    }[kind]

    def step(
        total: Float[Array, ""], row: tuple[Float[Array, ""], Float[Array, ""]]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        total = row[0] ** 2 * total + row[1] ** 2
        return total, total

    start = jnp.zeros((), jnp.float64)
    _, squares = jax.lax.scan(step, start, (growth, share))
    return jnp.concatenate([start[None], coupling**2 * squares])


@partial(jax.jit, static_argnames="num_agents")
def _weights(coupling: Float[Array, ""], num_agents: int) -> Float[Array, "K K"]:
    place = jnp.arange(1, num_agents + 1, dtype=jnp.float64)
    # Log of Γ(i + λ)/Γ(i + 1) up to a constant, as a sum: differences of log Γ lose large λ.
    factors = jnp.where(place > 1.0, (place - 1.0 + coupling) / place, 1.0)
    log_gamma = jnp.cumsum(jnp.log(factors))
    log_b = log_gamma[:, None] - log_gamma[None, :] - jnp.log(place)[None, :]
    kept = place[:, None] >= place[None, :]
    return jnp.where(kept, jnp.exp(jnp.where(kept, log_b, 0.0)), 0.0)


@jax.jit
def _risk(
    num_samples: Float[Array, ""],
    noise_variance: Float[Array, ""],
    inputs: Float[Array, ""],
    inflation: Float[Array, " K"],
    missed: Float[Array, " K"],
) -> Float[Array, " K"]:
    """Risk of a regression on so many inputs; what it misses is bias, and noise in its fit."""
    spare = num_samples - (inputs + 1.0)
    enough = spare > 0.0
    price = inputs / jnp.where(enough, spare, 1.0)
    risk = missed + (_scaled(noise_variance, inflation) + missed) * price
    return jnp.where(enough, risk, jnp.inf)


@jax.jit
def _crossover(
    noise_variance: Float[Array, ""],
    joint: Float[Array, ""],
    own: Float[Array, ""],
    neglected: Float[Array, " K"],
) -> Float[Array, ""]:
    mean = jnp.mean(neglected)
    some, finite = mean > 0.0, jnp.isfinite(mean)
    safe = jnp.where(some & finite, mean, 1.0)
    ratio = jnp.where(finite, (1.0 + safe) / safe, 1.0)  # V̄/F̄, whose limit is 1
    return jnp.where(some, joint + 1.0 + (joint - own) * noise_variance * ratio, jnp.inf)


def _scaled(noise_variance: Float[Array, ""], inflation: Float[Array, " K"]) -> Float[Array, " K"]:
    """σ²V_i, 0 without noise even where V_i is beyond float64."""
    quiet = noise_variance == 0.0
    return jnp.where(quiet, 0.0, noise_variance * jnp.where(quiet, 1.0, inflation))
