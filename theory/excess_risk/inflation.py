"""How many samples SGD needs to do as well as tuned ridge.

Symbols: N ridge's samples, N_sgd those of SGD, μ_i eigenvalues of M, θ* teacher, σ² noise variance.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from boundlab.checks import check_integer
from boundlab.precision import float64
from boundlab.theory.excess_risk import _arguments as arguments
from boundlab.theory.excess_risk import ridge
from boundlab.theory.excess_risk.step_size import least_risk
from boundlab.typing import Count, Numbers, Scalar


@float64
def sample_inflation(
    mu: Numbers,
    theta_sq: Numbers,
    noise_variance: Scalar,
    num_samples: Count,
    *,
    largest: Count = 256,
) -> Float[Array, ""]:
    """Factor N_sgd/N of samples with which tuned SGD reaches the risk of tuned ridge.

    N_sgd is the least N' at which the exact risk of SGD from θ_0 = 0 (default tail, best step size)
    is at most that of ridge with the best λ ≥ 0 at N samples (deterministic equivalent). The best
    risk falls with N', so the search doubles N' from N and then bisects.

    Args:
        mu: (d,) eigenvalues of M, ≥ 0, in any order.
        theta_sq: (d,) squared components of θ* in M's eigenbasis.
        noise_variance: σ² ≥ 0, in the unit of y².
        num_samples: N ≥ 1, the samples that ridge gets.
        largest: the search ends at N' = largest · N (doublings of N up to it are tried).

    Returns:
        N_sgd/N, scalar, a multiple of 1/N; below 1 where SGD needs fewer; ∞ beyond `largest` (for
        example without noise at N > d, where ridge has no risk at all); 1/N without signal, where
        θ_0 = θ*. Its derivative is zero.

    Raises:
        ValueError: an argument is out of range.

    Source: derived; compare zou2021benefits.

    """
    eigenvalues = arguments.spectrum(mu)
    teacher = arguments.per_direction("theta_sq", theta_sq, eigenvalues)
    noise = arguments.scalar("noise_variance", noise_variance)
    check_integer("num_samples", num_samples, 1)
    check_integer("largest", largest, 1)
    eigenvalues, teacher, noise = lax.stop_gradient((eigenvalues, teacher, noise))
    count = int(num_samples)
    power = eigenvalues * teacher
    silent = jnp.sum(power) <= 0.0
    # Without signal the best ridge is infinite: put a finite one in its place and ignore the result.
    best = ridge.best_ridge(eigenvalues, teacher, noise, count)
    best = jnp.where(jnp.isfinite(best), best, 1.0)
    profile = ridge.risk(eigenvalues, teacher, noise, best, count)
    target = jnp.sum(profile.bias) + jnp.sum(profile.variance)
    needed = _search(eigenvalues, power, noise, target, count, count * int(largest))
    return jnp.where(silent, 1.0, needed) / float(count)


@jax.jit
def _search(
    mu: Float[Array, " d"],
    power: Float[Array, " d"],
    noise: Float[Array, ""],
    target: Float[Array, ""],
    first: Int[Array, ""],
    last: Int[Array, ""],
) -> Float[Array, ""]:
    # (low, high, found): N' = `low` misses the target (0: nothing tried yet); once `found`, `high`
    # reaches it. One loop for both phases, so that the risk is compiled once.
    State = tuple[Int[Array, ""], Int[Array, ""], Array]
    first, last = (jnp.asarray(count, dtype=jnp.int64) for count in (first, last))

    def probe(state: State) -> Int[Array, ""]:
        low, high, found = state
        return jnp.where(found, (low + high) // 2, jnp.maximum(first, 2 * low))

    def unfinished(state: State) -> Array:
        low, high, found = state
        return jnp.where(found, high - low > 1, probe(state) <= last)

    def narrow(state: State) -> State:
        low, high, found = state
        count = probe(state)
        reaches = least_risk(mu, power, noise, count)[1] <= target
        return jnp.where(reaches, low, count), jnp.where(reaches, count, high), found | reaches

    zero = jnp.zeros_like(first)
    _, high, found = lax.while_loop(unfinished, narrow, (zero, zero, jnp.array(False)))
    return jnp.where(found, high.astype(mu.dtype), jnp.inf)
