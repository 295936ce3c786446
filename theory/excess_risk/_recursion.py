"""The second-moment recursion of one-pass SGD on Gaussian inputs.

With s_i = E δ_i² (δ = θ_t − θ*) in M's eigenbasis, the recursion is closed on the diagonal. It is
carried in risk units e_i = μ_i s_i, where it depends on μ and the step size γ by x_i = γμ_i alone:

    e_i ← (1 − 2x_i + 2x_i²) e_i + x_i² (R + σ²),    R = Σ_j e_j.

Nothing is divided by μ, so directions whose μ underflows keep their risk. The tail average needs
E[δ_{t+k} | δ_t] = (I − γM)^k δ_t; with Σ the running sum of the averaged iterates, carry
C = μ E[(Σδ) δ_t] and Q = μ E[(Σδ)²] instead of geometric sums, which cancel for small x:

    Q ← Q + 2C + e,    C ← (1 − x)(C + e).

Symbols: `x` γμ, `power` e at t = 0, `noise` σ², `feedback` 1 for SGD, 0 to drop R (a lower bound).
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

# A derivative needs a loop of static length, which compiles anew for each number of samples; a
# value does not. So values run through a loop whose bounds are data (one compilation serves a whole
# grid of sample sizes), and derivatives of either mode through the same loop with static bounds.
Count = int | Int[Array, ""]


def run(
    x: Float[Array, " d"],
    power: Float[Array, " d"],
    noise: Float[Array, ""],
    feedback: Float[Array, ""],
    num_samples: Count,
    tail_start: Count,
) -> Float[Array, " d"]:
    """μ_i E δ̄_i² of the average of iterates `tail_start` … `num_samples` − 1, per direction."""
    decay, kick = _coefficients(x)

    def step(_: Count, e: Float[Array, " d"]) -> Float[Array, " d"]:
        return decay * e + kick * (feedback * jnp.sum(e) + noise)

    def averaged_step(
        t: Count, carry: tuple[Float[Array, " d"], Float[Array, " d"], Float[Array, " d"]]
    ) -> tuple[Float[Array, " d"], Float[Array, " d"], Float[Array, " d"]]:
        e, cross, square = carry
        joined = cross + e
        return step(t, e), (1.0 - x) * joined, square + (cross + joined)

    start = lax.fori_loop(0, tail_start, step, power)
    zero = jnp.zeros_like(power)
    square = lax.fori_loop(tail_start, num_samples, averaged_step, (start, zero, zero))[2]
    return square / jnp.square(jnp.asarray(num_samples - tail_start, dtype=square.dtype))


_any_length = jax.jit(run)
_fixed_length = jax.jit(run, static_argnums=(4, 5))


@functools.partial(jax.custom_jvp, nondiff_argnums=(4, 5))
def tail_average(
    x: Float[Array, " d"],
    power: Float[Array, " d"],
    noise: Float[Array, ""],
    feedback: Float[Array, ""],
    num_samples: int,
    tail_start: int,
) -> Float[Array, " d"]:
    """`run`, compiled once for all sample sizes and differentiable in its float arguments."""
    return _any_length(x, power, noise, feedback, num_samples, tail_start)


@tail_average.defjvp
def _tail_average_jvp(num_samples: int, tail_start: int, primals: tuple, tangents: tuple) -> tuple:
    def fixed(*floats: Float[Array, "..."]) -> Float[Array, " d"]:
        return _fixed_length(*floats, num_samples, tail_start)

    return jax.jvp(fixed, primals, tangents)


@functools.partial(jax.jit, static_argnums=3)
def curve(
    x: Float[Array, " d"], power: Float[Array, " d"], noise: Float[Array, ""], num_samples: int
) -> Float[Array, " t"]:
    """R of the iterates 0 … `num_samples` − 1."""
    decay, kick = _coefficients(x)

    def step(e: Float[Array, " d"], _: None) -> tuple[Float[Array, " d"], Float[Array, ""]]:
        total = jnp.sum(e)
        # An unstable run overflows; a finite cap keeps 0·∞ out of the directions with μ = 0.
        drive = jnp.minimum(total + noise, jnp.finfo(e.dtype).max)
        return decay * e + kick * drive, total

    return lax.scan(step, power, length=num_samples)[1]


def _coefficients(x: Float[Array, " d"]) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
    kick = jnp.square(x)
    return 1.0 - 2.0 * x + 2.0 * kick, kick
