"""Linear regression on K coupled subtasks, by least squares: one agent, an aware team, a blind team.

Symbols: n samples; agent i's input x_i ~ N(0, I_d), its weights w_i a uniform direction; D = Kd; L (K, K)
what a label takes from earlier ones, y_i = w_iᵀx_i + ξ_i + Σ_{j<i} L_{ij} y_j with ξ_i ~ N(0, σ²). Excess
risks are exact given the fit: for x ~ N(0, I) they are the squared errors of its coefficients.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float, Int

from boundlab.checks import (
    check_choice,
    check_integer,
    check_key,
    check_number,
    check_range_of,
    check_shape,
    fail,
)
from boundlab.precision import is_traced
from boundlab.typing import Count, Numbers, Scalar

LEARNERS = ("sarl", "aware", "blind")


def coupling_matrix(num_agents: Count, coupling: Scalar, kind: str = "mean") -> Float[Array, "K K"]:
    """L (K, K): `mean` λ/(i − 1) for all j < i, `chain` λ for j = i − 1, `sum` λ for all j < i.

    Arguments: `num_agents` K ≥ 1; `coupling` λ ≥ 0, may be traced; `kind`.
    Raises `ValueError` naming the argument. The paper's dependent task is `mean` with λ = 1 (su2026when,
    from reviews of it).
    """
    agents = check_integer("num_agents", num_agents, 1)
    check_number("coupling", coupling, 0)
    check_shape("coupling", coupling, ())
    check_range_of("coupling", coupling, _dtype())
    below = np.tri(agents, k=-1)
    tables = {
        "mean": below / np.maximum(np.arange(agents), 1)[:, None],
        "chain": np.eye(agents, k=-1),
        "sum": below,
    }
    check_choice("kind", kind, tables)
    rate = jnp.asarray(coupling).astype(_dtype())
    return rate * jnp.asarray(tables[kind], rate.dtype)


def simulate_regression(
    key: Any,
    num_samples: Any,
    num_agents: Count,
    dim: Count,
    noise_variance: Scalar,
    coupling: Scalar,
    learner: str,
    *,
    max_samples: Count | None = None,
) -> Float[Array, " K"]:
    """Excess risks E(ŷ_i − E[y_i | x])² of one run on the paper's task, coupled by the mean label.

    `simulate_coupled_regression` with L = `coupling_matrix(num_agents, coupling)`; see there.
    """
    matrix = coupling_matrix(num_agents, coupling)
    return simulate_coupled_regression(
        key, num_samples, matrix, dim, noise_variance, learner, max_samples=max_samples
    )


def simulate_coupled_regression(
    key: Any,
    num_samples: Any,
    predecessors: Numbers,
    dim: Count,
    noise_variance: Scalar,
    learner: str,
    *,
    max_samples: Count | None = None,
) -> Float[Array, " K"]:
    """Excess risks E(ŷ_i − E[y_i | x])² of one run: all is drawn, then fitted.

    - `sarl`: one agent regresses every y_i on all D inputs.
    - `aware`: agent i knows L and regresses y_i − Σ_j L_{ij} y_j on x_i (teacher forcing); the agents'
      predictions are rolled out through L.
    - `blind`: agent i regresses y_i on x_i, as if L were 0.

    Args:
        key: one typed key. The draws don't depend on the learner, on L or on σ; those of the first n
            samples not on `max_samples`.
        num_samples: n in trajectories, at least D for `sarl`, d otherwise. May be traced if `max_samples`
            is given.
        predecessors: L (K, K), zero on and above the diagonal. May be traced.
        dim: d ≥ 1 of each agent's input.
        noise_variance: σ² ≥ 0. May be traced.
        learner: `sarl`, `aware` or `blind`.
        max_samples: largest n that `num_samples` stands for; only its first n samples count.

    Returns:
        (K,) in the working precision; no ½, irreducible noise not counted. +inf where least squares has
        no answer: n traced and too small, or normal equations singular to rounding (which takes n within
        a few of D, in float32).

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#regression-task.

    """
    check_choice("learner", learner, LEARNERS)
    return _checked(key, num_samples, predecessors, dim, noise_variance, (learner,), max_samples)[0]


def simulate_learners(
    key: Any,
    num_samples: Any,
    predecessors: Numbers,
    dim: Count,
    noise_variance: Scalar,
    *,
    max_samples: Count | None = None,
) -> dict[str, Float[Array, " K"]]:
    """Excess risks of all three learners on the same draws: `simulate_coupled_regression` at less cost.

    Arguments, errors and source as there, n at least D; returns a (K,) array by learner.
    """
    found = _checked(key, num_samples, predecessors, dim, noise_variance, LEARNERS, max_samples)
    return dict(zip(LEARNERS, found, strict=True))


def simulate_fixed_design(
    key: Any,
    num_samples: Any,
    num_agents: Count,
    dim: Count,
    noise_variance: Scalar,
    learner: str,
    num_trials: Count,
    *,
    max_samples: Count | None = None,
) -> Float[Array, "trials K"]:
    """In-sample risks |X(ŵ_i − w_i)|²/n of least squares on independent subtasks with fixed inputs.

    Inputs are drawn once, the noise of each trial anew. `sarl` regresses every label on all D inputs,
    `marl` label i on x_i.

    Args:
        key: one typed key.
        num_samples: n in trajectories, at least the inputs of a regression (D or d). May be traced if
            `max_samples` is given.
        num_agents: K ≥ 1.
        dim: d ≥ 1 of each agent's input.
        noise_variance: σ² ≥ 0. May be traced.
        learner: `sarl` or `marl`.
        num_trials: number of noises.
        max_samples: largest n that `num_samples` stands for.

    Returns:
        (num_trials, K) in the working precision; no ½, divisor n; +inf as in
        `simulate_coupled_regression`.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#exact-pac.

    """
    check_key("key", key)
    check_choice("learner", learner, ("sarl", "marl"))
    agents, size = check_integer("num_agents", num_agents, 1), check_integer("dim", dim, 1)
    trials = check_integer("num_trials", num_trials, 1)
    count, most = _sizes(num_samples, max_samples, agents * size if learner == "sarl" else size)
    with jax.default_matmul_precision("highest"):
        return _fixed_design(
            key,
            count,
            _noise_std(noise_variance),
            num_agents=agents,
            dim=size,
            together=learner == "sarl",
            num_trials=trials,
            max_samples=most,
        )


def _checked(
    key: Any,
    num_samples: Any,
    predecessors: Numbers,
    dim: Count,
    noise_variance: Scalar,
    learners: tuple[str, ...],
    max_samples: Count | None,
) -> tuple[Float[Array, " K"], ...]:
    check_key("key", key)
    check_number("predecessors", predecessors)
    check_shape("predecessors", predecessors, (None, None))
    size, agents = check_integer("dim", dim, 1), np.shape(predecessors)[0]
    check_shape("predecessors", predecessors, (agents, agents))
    if not is_traced(predecessors) and np.triu(np.asarray(predecessors)).any():
        raise fail("predecessors", "entries on or above the diagonal", "zeros there")
    count, most = _sizes(num_samples, max_samples, agents * size if "sarl" in learners else size)
    with jax.default_matmul_precision("highest"):  # accelerators would round float32 to 10 bits
        return _simulate(
            key,
            count,
            jnp.asarray(predecessors).astype(_dtype()),
            _noise_std(noise_variance),
            dim=size,
            learners=learners,
            max_samples=most,
        )


def _dtype() -> Any:
    """The working precision: float64 with x64 on, float32 otherwise."""
    return jnp.result_type(float)


def _noise_std(noise_variance: Scalar) -> Float[Array, ""]:
    check_number("noise_variance", noise_variance, 0)
    check_shape("noise_variance", noise_variance, ())
    return jnp.sqrt(jnp.asarray(noise_variance).astype(_dtype()))


def _sizes(num_samples: Any, max_samples: Any, inputs: int) -> tuple[Int[Array, ""], int]:
    """The number of samples as an array, and the static number of rows."""
    why = "the inputs of a regression"
    if max_samples is None:
        most = check_integer("num_samples", num_samples, inputs, why=why)
    else:
        most = check_integer("max_samples", max_samples, inputs, why=why)
    if is_traced(num_samples):
        check_shape("num_samples", num_samples, ())
        count = jnp.asarray(num_samples)
        if not jnp.issubdtype(count.dtype, jnp.integer):
            raise fail("num_samples", f"values of type {count.dtype}", "a traced integer")
        return jnp.minimum(count.astype(jnp.int32), jnp.asarray(most, jnp.int32)), most
    check_integer("num_samples", num_samples, inputs, most)
    return jnp.asarray(int(num_samples), jnp.int32), most


@partial(jax.jit, static_argnames=("dim", "learners", "max_samples"))
def _simulate(
    key: jax.Array,
    num_samples: Int[Array, ""],
    predecessors: Float[Array, "K K"],
    noise_std: Float[Array, ""],
    *,
    dim: int,
    learners: tuple[str, ...],
    max_samples: int,
) -> tuple[Float[Array, " K"], ...]:
    agents = len(predecessors)
    first, x, noise = _draws(key, num_samples, max_samples, agents, dim, 1, predecessors.dtype)
    weights = first / jnp.sqrt(jnp.sum(first**2, axis=1, keepdims=True))
    handed_on = _handed_on(predecessors)
    own = jnp.sum(x * weights[None, :, :], axis=2) + noise_std * noise[..., 0]
    labels = own @ handed_on.T
    truth = handed_on @ _blocks(weights)
    coefficients = {}
    if "sarl" in learners:
        fitted = _least_squares(x.reshape(max_samples, -1), labels, num_samples)
        coefficients["sarl"] = fitted.T
    if teams := [learner for learner in learners if learner != "sarl"]:
        targets = {"aware": labels - labels @ predecessors.T, "blind": labels}
        pairs = jnp.swapaxes(x, 0, 1), jnp.stack([targets[team].T for team in teams], axis=2)
        fitted = jax.lax.map(lambda pair: _least_squares(pair[0], pair[1], num_samples), pairs)
        for place, team in enumerate(teams):
            own_part = _blocks(fitted[..., place])
            coefficients[team] = handed_on @ own_part if team == "aware" else own_part
    return tuple(_risks(coefficients[learner] - truth) for learner in learners)


@partial(jax.jit, static_argnames=("num_agents", "dim", "together", "num_trials", "max_samples"))
def _fixed_design(
    key: jax.Array,
    num_samples: Int[Array, ""],
    noise_std: Float[Array, ""],
    *,
    num_agents: int,
    dim: int,
    together: bool,
    num_trials: int,
    max_samples: int,
) -> Float[Array, "trials K"]:
    dtype = noise_std.dtype
    _, x, noise = _draws(key, num_samples, max_samples, num_agents, dim, num_trials, dtype)
    # The fit is linear in the labels, so that the weights' own part of them drops out of ŵ − w.
    errors = noise_std * noise

    def one(pair: tuple[Float[Array, "n p"], Float[Array, "n m"]]) -> Float[Array, " m"]:
        design, targets = pair
        off = design @ _least_squares(design, targets, num_samples)
        return jnp.sum(off**2, axis=0) / num_samples.astype(dtype)

    if together:
        risks = one((x.reshape(max_samples, -1), errors.reshape(max_samples, -1)))
        risks = risks.reshape(num_agents, num_trials)
    else:
        risks = jax.lax.map(one, (jnp.swapaxes(x, 0, 1), jnp.swapaxes(errors, 0, 1)))
    return _finite(risks.T)


def _draws(
    key: jax.Array,
    num_samples: Int[Array, ""],
    max_samples: int,
    agents: int,
    dim: int,
    trials: int,
    dtype: Any,
) -> tuple[Float[Array, "K d"], Float[Array, "n K d"], Float[Array, "n K trials"]]:
    """Directions of the weights, inputs, unit noise; samples from n on are zero, which leaves them out.

    All normal numbers come from one call, which compiles in a third of the time of three.
    """
    drawn = jax.random.normal(key, (1 + max_samples, agents, dim + trials), dtype)
    used = (jnp.arange(max_samples, dtype=jnp.int32) < num_samples).astype(dtype)
    samples = drawn[1:] * used[:, None, None]
    return drawn[0, :, :dim], samples[..., :dim], samples[..., dim:]


def _least_squares(
    design: Float[Array, "n p"], targets: Float[Array, "n m"], num_samples: Int[Array, ""]
) -> Float[Array, "p m"]:
    """Solution of the normal equations by Cholesky; NaN where they are singular."""
    inputs = design.shape[1]
    enough = num_samples >= inputs
    gram = jnp.where(enough, design.T @ design, jnp.eye(inputs, dtype=design.dtype))
    solved = cho_solve((jnp.linalg.cholesky(gram), True), design.T @ targets)
    return jnp.where(enough, solved, jnp.nan)


def _handed_on(predecessors: Float[Array, "K K"]) -> Float[Array, "K K"]:
    """(I − L)^{-1}: what every label holds of every subtask's own part, subtask after subtask."""
    agents = len(predecessors)

    def step(
        labels: Float[Array, "K K"], row: tuple[Int[Array, ""], Float[Array, " K"]]
    ) -> tuple[Float[Array, "K K"], None]:
        return labels.at[row[0]].add(row[1] @ labels), None

    own = jnp.eye(agents, dtype=predecessors.dtype)
    labels, _ = jax.lax.scan(step, own, (jnp.arange(agents, dtype=jnp.int32), predecessors))
    return labels


def _blocks(weights: Float[Array, "K d"]) -> Float[Array, "K D"]:
    """Row i holds w_i at agent i's inputs and zeros at the others'."""
    agents, dim = weights.shape
    placed = jnp.eye(agents, dtype=weights.dtype)[:, :, None] * weights[:, None, :]
    return placed.reshape(agents, agents * dim)


def _risks(errors: Float[Array, "K D"]) -> Float[Array, " K"]:
    return _finite(jnp.sum(errors**2, axis=1))


def _finite(risks: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """+inf in place of NaN: no estimate, no bound on its error."""
    return jnp.where(jnp.isnan(risks), jnp.inf, risks)
