"""Gradient descent on gradients of old parameters, as an asynchronous learner does it.

Symbols: x_t the parameters, ĝ an estimate of a gradient, τ_t ≥ 0 how many updates old the parameters are
of which it is taken:

    x_{t+1} = x_t − η·U(ĝ(x_{t − τ_t})),    x_t = x_0 for t < 0,

U an optax transformation, or nothing.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from boundlab.checks import check_integer, check_key, check_number, check_shape, fail
from boundlab.precision import is_traced, standard_promotion
from boundlab.typing import Count, Numbers, Scalar

# delayed_descent's limit on the memory of old parameters, in updates.
MOST_DELAY = 100_000
# Steps are counted in int32.
MOST_STEPS = 2**31 - 1


class DescentRun(NamedTuple):
    """A run of `delayed_descent`."""

    observed: Any
    """observe(x_t) at t = 0, …, num_steps − 1, stacked; None without `observe`."""
    cosine: Float[Array, " steps"]
    """Cosine of ĝ at t and t − 1, before the transformation; 0 at t = 0 and where a norm is 0."""
    watched: Any
    """watch(state) of the transformation after each update, stacked; None without `watch`."""
    parameters: Float[Array, " d"]
    """The last parameters, x_{num_steps}."""


class _Carry(NamedTuple):
    current: Float[Array, " d"]  # x_t
    memory: Float[Array, "ages d"]  # x_t in row t mod (s + 1)
    previous: Float[Array, " d"]
    state: Any


def delayed_descent(
    key: Any,
    gradient: Callable[[jax.Array, jax.Array], jax.Array],
    initial: Numbers,
    step_size: Scalar,
    delay: Numbers,
    num_steps: Count,
    *,
    max_delay: Count | None = None,
    transform: optax.GradientTransformation | None = None,
    observe: Callable[[jax.Array], Any] | None = None,
    watch: Callable[[Any], Any] | None = None,
) -> DescentRun:
    """Run the recursion of the module, in the floating-point type of `initial`.

    Args:
        key: one typed key.
        gradient: gradient(key, x) → (d,), an estimate at x with a key of its own each step.
        initial: x_0 (d,), floating; held for all times before 0. May be traced.
        step_size: η ≥ 0. May be traced.
        delay: τ of all steps, or τ_t (num_steps,), integers ≥ 0. May be traced if `max_delay` is given.
        num_steps: ≥ 1, static.
        max_delay: s ≥ every delay, static; None: the largest. Traced delays above it count as s.
        transform: U, for instance `gac`; it sees ĝ and x_t.
        observe: what is recorded of x_t before each update, arrays of any shape.
        watch: what is recorded of the transformation's state after each update.

    Returns:
        The run.

    Raises:
        ValueError: an argument is out of range; it is named.

    """
    check_key("key", key)
    start = _start(initial)
    check_shape("step_size", step_size, (), "one number: map over more")
    check_number("step_size", step_size, 0)
    steps = check_integer("num_steps", num_steps, 1, MOST_STEPS)
    ages, most = _delays(delay, steps, max_delay)
    if watch is not None and transform is None:
        raise fail("watch", "a function without a transform", "None, or a transform to watch")
    rate = jnp.asarray(step_size).astype(start.dtype)
    length = most + 1

    def step(carry: _Carry, now: tuple[jax.Array, ...]) -> tuple[_Carry, tuple[Any, ...]]:
        time, age, step_key = now
        # Read before it is written, and held apart, so that compilers update the memory in place.
        old = jax.lax.dynamic_index_in_dim(carry.memory, (time - age) % length, keepdims=False)
        found, current = gradient(step_key, old), carry.current
        emitted, state = found, carry.state
        if transform is not None:
            with standard_promotion():
                emitted, state = transform.update(found, carry.state, current)
        new = current - rate * emitted
        memory = jax.lax.dynamic_update_index_in_dim(carry.memory, new, (time + 1) % length, 0)
        seen = None if observe is None else observe(current)
        noted = None if watch is None else watch(state)
        return _Carry(new, memory, found, state), (seen, _cosine(found, carry.previous), noted)

    with standard_promotion():
        inner = None if transform is None else transform.init(start)
    opened = _Carry(
        start, jnp.broadcast_to(start, (length, *start.shape)), jnp.zeros_like(start), inner
    )
    times = jnp.arange(steps, dtype=jnp.int32)
    last, (seen, cosine, noted) = jax.lax.scan(
        step, opened, (times, ages, jax.random.split(key, steps))
    )
    return DescentRun(seen, cosine, noted, last.current)


def _cosine(one: Float[Array, " d"], other: Float[Array, " d"]) -> Float[Array, ""]:
    squares = jnp.sum(one * one), jnp.sum(other * other)
    some = (squares[0] > 0.0) & (squares[1] > 0.0)
    norms = [jnp.sqrt(jnp.where(some, square, 1.0)) for square in squares]
    return jnp.where(some, jnp.sum(one * other) / norms[0] / norms[1], 0.0)


def _start(initial: Any) -> Float[Array, " d"]:
    check_number("initial", initial)
    check_shape("initial", initial, (None,), "(d,) with d ≥ 1")
    start = jnp.asarray(initial)
    if not jnp.issubdtype(start.dtype, jnp.floating):
        raise fail("initial", f"values of type {start.dtype}", "floating-point numbers")
    return start


def _delays(delay: Any, steps: int, max_delay: Any) -> tuple[jax.Array, int]:
    """τ_t (num_steps,), int32, and the largest that is allowed."""
    check_number("delay", delay, 0)
    shape = np.shape(delay)
    if shape not in ((), (steps,)):
        raise fail("delay", f"shape {shape}", f"one integer, or ({steps},), one a step")
    kind = jnp.asarray(delay).dtype if is_traced(delay) else np.asarray(delay).dtype
    if not jnp.issubdtype(kind, jnp.integer):
        raise fail("delay", f"values of type {kind}", "integers ≥ 0")
    if is_traced(delay):
        if max_delay is None:
            raise fail("max_delay", None, "an integer, where delay is traced")
    else:
        largest = int(np.max(np.asarray(delay)))
        if max_delay is None:
            max_delay = check_integer("delay", largest, 0, MOST_DELAY)
        elif largest > check_integer("max_delay", max_delay, 0, MOST_DELAY):
            raise fail("max_delay", max_delay, f"an integer ≥ the largest delay, {largest}")
    most = check_integer("max_delay", max_delay, 0, MOST_DELAY)
    ages = jnp.clip(jnp.asarray(delay).astype(jnp.int32), 0, most)
    return jnp.broadcast_to(ages, (steps,)), most
