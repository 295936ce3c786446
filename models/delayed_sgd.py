"""SGD on a quadratic whose gradients are taken at parameters some updates old.

The loss is ½ Σ_i λ_i x_i², one mode an entry, and gradients carry noise:

    g_t = λ∘x_{t−τ} + ξ_t,   ξ_t ~ N(0, σ² I),   x_{t+1} = x_t − η g_t,   x_s = x_0 for s ≤ 0.

Symbols: λ (d,) the curvature, η the step size, τ the delay in updates, σ the noise's standard deviation.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from boundlab.checks import check_integer, check_key, check_number, check_shape
from boundlab.precision import is_traced
from boundlab.typing import Count, Numbers, Scalar

# Steps whose noise is drawn at once: a run holds the noise of one block, and the sums are over blocks.
BLOCK = 64
# Steps and delays are counted in int32.
MOST = 2**31 - BLOCK - 1


class DelayedRun(NamedTuple):
    """One run, every gradient recorded."""

    gradients: Float[Array, "steps d"]
    """g_t of t = 0, 1, …, noise included."""
    parameters: Float[Array, " d"]
    """x after the last update."""


class DelayedMoments(NamedTuple):
    """Means over consecutive gradients of one run."""

    cosine: Float[Array, ""]
    """Mean of the cosine of g_t and g_{t−1}; a step where either is 0 counts as 0."""
    lag_product: Float[Array, " d"]
    """Mean of g_t∘g_{t−1}."""
    second_moment: Float[Array, " d"]
    """Mean of g_t²."""


class _State(NamedTuple):
    slot: Int[Array, ""]
    """Place of x_{t−τ} in the ring, where x_{t+1} goes."""
    ring: Float[Array, "stored d"]
    """x_{t−τ} … x_t."""
    parameters: Float[Array, " d"]
    """x_t."""


def delayed_sgd(
    key: Any,
    curvature: Numbers,
    step_size: Scalar,
    delay: Count,
    noise_std: Scalar,
    num_steps: Count,
    *,
    initial: Numbers | None = None,
) -> DelayedRun:
    """One run of delayed SGD and all its gradients, (num_steps, d) numbers.

    Arguments: `key` one typed key; `curvature` λ (d,), float32 or float64, any finite numbers, in whose
    type the run is computed (other numbers, and float64 without x64: JAX's default); `step_size` η > 0;
    `delay` τ ≥ 0, static: how many updates old the parameters of a gradient are, 0 for plain SGD;
    `noise_std` σ ≥ 0; `num_steps` ≥ 1, static; `initial` x_0 (d,), held for the first τ + 1 gradients,
    zeros if None.
    For transformed gradients and delays that change, see `boundlab.models.delayed_descent`.

    Batch it with vmap over `key`, `curvature`, `step_size`, `noise_std` or `initial`.

    Raises `ValueError` naming the argument. A step past the stability limit is no error: the run grows
    as the algorithm does, to infinity and then NaN.

    Draws: σ·normal(split(key, blocks)[b], (64, d)) is the noise of steps 64b … 64b + 63, so a longer run
    begins with the same noise. Source: derived, docs/policy_optimization.md#delayed-gradients.
    """
    arguments = _arguments(key, curvature, step_size, noise_std, initial)
    tau = check_integer("delay", delay, 0, MOST)
    steps = check_integer("num_steps", num_steps, 1, MOST)
    return _run(*arguments, delay=tau, num_steps=steps)


def delayed_sgd_moments(
    key: Any,
    curvature: Numbers,
    step_size: Scalar,
    delay: Count,
    noise_std: Scalar,
    num_steps: Count,
    *,
    burn_in: Count = 0,
    initial: Numbers | None = None,
) -> DelayedMoments:
    """The run of `delayed_sgd` with the same draws, of which only means over time are kept.

    Means are over t = burn_in + 1 … num_steps − 1, `burn_in` from 0 to num_steps − 2, static. The other
    arguments, draws and errors are those of `delayed_sgd`; memory doesn't grow with `num_steps`.
    """
    arguments = _arguments(key, curvature, step_size, noise_std, initial)
    tau = check_integer("delay", delay, 0, MOST)
    steps = check_integer("num_steps", num_steps, 2, MOST)
    start = check_integer("burn_in", burn_in, 0, steps - 2, why="two steps are left")
    return _moments(*arguments, delay=tau, num_steps=steps, burn_in=start)


def _arguments(
    key: Any, curvature: Any, step_size: Any, noise_std: Any, initial: Any
) -> tuple[jax.Array, ...]:
    """The checked key, λ, η, σ and x_0, numbers in the type of λ."""
    check_key("key", key)
    check_shape("curvature", curvature, (None,), "one entry a mode")
    check_number("curvature", curvature)
    given = getattr(curvature, "dtype", None)
    dtype = given if given in (jnp.float32, jnp.float64) else float
    with np.errstate(over="ignore"):
        modes = jnp.asarray(curvature, dtype=jax.dtypes.canonicalize_dtype(dtype))
    if not is_traced(modes):
        check_number("curvature", modes, why=f"in {modes.dtype}")
    for name, value in (("step_size", step_size), ("noise_std", noise_std)):
        check_shape(name, value, ())
        check_number(name, value, 0, low_open=name == "step_size")
    if initial is None:
        initial = np.zeros(modes.shape)
    check_shape("initial", initial, modes.shape, "one entry a mode")
    check_number("initial", initial)
    numbers = []
    for name, value in (("step_size", step_size), ("noise_std", noise_std), ("initial", initial)):
        with np.errstate(over="ignore"):
            number = jnp.asarray(value).astype(modes.dtype)
        if not is_traced(number):
            check_number(name, number, why=f"in {modes.dtype}, the type of curvature")
        numbers.append(number)
    return (key, modes, *numbers)


@partial(jax.jit, static_argnames=("delay", "num_steps"))
def _run(
    key: jax.Array,
    curvature: Float[Array, " d"],
    step_size: Float[Array, ""],
    noise_std: Float[Array, ""],
    initial: Float[Array, " d"],
    *,
    delay: int,
    num_steps: int,
) -> DelayedRun:
    blocks = jax.random.split(key, -(-num_steps // BLOCK))
    shape, dtype = (BLOCK, curvature.size), curvature.dtype
    draws = jax.vmap(lambda k: jax.random.normal(k, shape, dtype))(blocks)
    noise = noise_std * draws.reshape(-1, curvature.size)[:num_steps]
    end, gradients = _advance(_start(initial, delay), noise, curvature, step_size)
    return DelayedRun(gradients, end.parameters)


@partial(jax.jit, static_argnames=("delay", "num_steps", "burn_in"))
def _moments(
    key: jax.Array,
    curvature: Float[Array, " d"],
    step_size: Float[Array, ""],
    noise_std: Float[Array, ""],
    initial: Float[Array, " d"],
    *,
    delay: int,
    num_steps: int,
    burn_in: int,
) -> DelayedMoments:
    num_blocks = -(-num_steps // BLOCK)
    shape, dtype = (BLOCK, curvature.size), curvature.dtype
    times = np.arange(num_blocks * BLOCK).reshape(num_blocks, BLOCK)
    counted = (times > burn_in) & (times < num_steps)  # the last block is run to its end

    def block(
        carry: tuple[_State, Float[Array, " d"], DelayedMoments],
        inputs: tuple[jax.Array, jax.Array],
    ) -> tuple[tuple[_State, Float[Array, " d"], DelayedMoments], None]:
        (state, before, sums), (block_key, kept) = carry, inputs
        noise = noise_std * jax.random.normal(block_key, shape, dtype)
        state, gradients = _advance(state, noise, curvature, step_size)
        earlier = jnp.concatenate([before[None], gradients[:-1]])
        rows = kept[:, None]
        zero = jnp.zeros((), dtype)
        products = jnp.where(rows, gradients * earlier, zero)
        added = DelayedMoments(
            cosine=jnp.sum(jnp.where(kept, _cosines(gradients, earlier), zero)),
            lag_product=jnp.sum(products, axis=0),
            second_moment=jnp.sum(jnp.where(rows, gradients**2, zero), axis=0),
        )
        return (state, gradients[-1], jax.tree.map(jnp.add, sums, added)), None

    zeros = jnp.zeros_like(initial)
    sums = DelayedMoments(jnp.zeros((), dtype), zeros, zeros)
    keys = jax.random.split(key, num_blocks)
    start = (_start(initial, delay), zeros, sums)
    (_, _, sums), _ = jax.lax.scan(block, start, (keys, jnp.asarray(counted)))
    return jax.tree.map(lambda total: total / (num_steps - 1 - burn_in), sums)


def _start(initial: Float[Array, " d"], delay: int) -> _State:
    # x_0 stands in slot 0; at t = 0 the next place holds x_{−τ}, which is x_0 too.
    slot = jnp.asarray(1 % (delay + 1), jnp.int32)
    return _State(slot, jnp.tile(initial[None], (delay + 1, 1)), initial)


def _advance(
    state: _State,
    noise: Float[Array, "steps d"],
    curvature: Float[Array, " d"],
    step_size: Float[Array, ""],
) -> tuple[_State, Float[Array, "steps d"]]:
    """As many updates as there are rows of noise, and their gradients."""
    stored = state.ring.shape[0]

    def step(state: _State, noise: Float[Array, " d"]) -> tuple[_State, Float[Array, " d"]]:
        old = jax.lax.dynamic_index_in_dim(state.ring, state.slot, keepdims=False)
        gradient = curvature * old + noise
        parameters = state.parameters - step_size * gradient
        ring = jax.lax.dynamic_update_index_in_dim(state.ring, parameters, state.slot, 0)
        slot = jnp.where(state.slot + 1 == stored, 0, state.slot + 1)
        return _State(slot, ring, parameters), gradient

    return jax.lax.scan(step, state, noise)


def _cosines(
    first: Float[Array, "steps d"], second: Float[Array, "steps d"]
) -> Float[Array, " steps"]:
    squares = jnp.sum(first**2, axis=1) * jnp.sum(second**2, axis=1)
    some = squares > 0
    norms = jnp.sqrt(jnp.where(some, squares, jnp.ones_like(squares)))
    return jnp.where(some, jnp.sum(first * second, axis=1) / norms, jnp.zeros_like(norms))
