"""One pass of constant-step SGD over aggregated signals, risk of the tail average.

A run sees N fresh samples m = Gx, x ~ N(0, I), with labels y, and makes N − 1 updates
θ_{t+1} = θ_t − γ r_t m_t. Symbols: γ `step_size`, s `tail_start`, θ̄ the mean of θ_s … θ_{N−1}.

Samples are handled `BLOCK` at a time: with K = MMᵀ the Gram matrix of a block's rows,
m_jᵀθ_j = m_jᵀθ_0 − γ Σ_{i<j} K_ji r_i gives every residual r of the block from products with θ_0
alone, so the long vectors are touched once a block and not once a sample. The average takes
θ̄ = θ_0 − γ Σ_t w_t r_t m_t, w_t being the share of averaged iterates that come after update t: it is
as exact in float32 as the iterate itself, which a sum of thousands of iterates is not.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_choice, check_integer, check_key, check_number, check_shape
from boundlab.models.gaussian_signals import (
    aggregate,
    as_numbers,
    as_operator,
    relu_risk,
    squared_norm,
)
from boundlab.typing import Count, Numbers, Scalar

ALGORITHMS = ("linear", "glmtron", "relu")
# Few enough rows that the random numbers of some hundred runs stay in cache, enough that a block's
# overhead vanishes: at 512 runs of 256 nodes, 4 and 8 are equally fast, 16 and 32 a third slower.
BLOCK = 8


def simulate_sgd(
    key: Any,
    operator: Any,
    theta_star: Numbers,
    noise_std: Scalar,
    step_size: Scalar,
    num_samples: Count,
    tail_start: Count | None = None,
    algorithm: str = "linear",
    *,
    theta0: Numbers | None = None,
) -> Float[Array, ""]:
    """Risk of the tail average of one run of one-pass SGD, evaluated in closed form.

    With u = mᵀθ, v = mᵀθ*, ε ~ N(0, σ²), the residual r in θ ← θ − γ r m is

    - `linear`: u − (v + ε), and the risk is R = ‖θ̄ − θ*‖²_M;
    - `glmtron`: ReLU(u) − (ReLU(v) + ε), and the risk R = 2Δ = E(ReLU(mᵀθ̄) − ReLU(mᵀθ*))²;
    - `relu`: the true gradient, the same residual times 1[u > 0], same risk; θ_0 = 0 never moves.

    Arguments: `key` one typed key; `operator` G (n, n), or (n,) for a diagonal one (see
    `boundlab.models.gaussian_signals`); `theta_star`, `theta0` (n,), `theta0=None` is 0;
    `noise_std` σ ≥ 0; `step_size` γ > 0; `num_samples` N ≥ 1; `tail_start` s from 0 to N − 1,
    `None` for N // 2.

    Returns one number of `operator`'s dtype (float32 or float64), in which the run is computed.
    Batch it with vmap over `key`, `operator`, `theta_star`, `noise_std`, `step_size` or `theta0`.

    Raises `ValueError` naming the argument. A step size past the stability limit is no error: the
    run diverges as the algorithm does.

    Conventions: no ½ in R, N samples give N − 1 updates (θ̄ = θ_0 at N = 1), no ½ in the loss's
    gradient. Draws: with k_x, k_ε = split(key), block b is normal(split(k_x, blocks)[b], (8, n)) and
    the noise is σ·normal(k_ε, (8·blocks,)), blocks = ⌈(N − 1)/8⌉; a longer run begins with the same
    samples. Source: the algorithms of [zou2023benign] and [wu2023relu] (GLM-tron).
    """
    check_key("key", key)
    operator = as_operator(operator)
    n = operator.shape[0]
    check_choice("algorithm", algorithm, ALGORITHMS)
    check_shape("theta_star", theta_star, (n,), "one entry a node")
    check_number("theta_star", theta_star)
    check_shape("noise_std", noise_std, ())
    check_number("noise_std", noise_std, 0)
    check_shape("step_size", step_size, ())
    check_number("step_size", step_size, 0, low_open=True)
    check_integer("num_samples", num_samples, 1)
    if tail_start is None:
        tail_start = num_samples // 2
    check_integer("tail_start", tail_start, 0, int(num_samples) - 1)
    if theta0 is None:
        theta0 = np.zeros(n)
    check_shape("theta0", theta0, (n,), "one entry a node")
    check_number("theta0", theta0)
    dtype = operator.dtype
    with jax.default_matmul_precision("highest"):  # accelerators would round float32 to 10 bits
        return _simulate(
            key,
            operator,
            as_numbers("theta_star", theta_star, dtype),
            as_numbers("noise_std", noise_std, dtype),
            as_numbers("step_size", step_size, dtype),
            as_numbers("theta0", theta0, dtype),
            num_samples=int(num_samples),
            tail_start=int(tail_start),
            algorithm=algorithm,
        )


@partial(jax.jit, static_argnames=("num_samples", "tail_start", "algorithm"))
def _simulate(
    key: jax.Array,
    operator: Float[Array, "*n_n"],
    theta_star: Float[Array, " n"],
    noise_std: Float[Array, ""],
    step_size: Float[Array, ""],
    theta0: Float[Array, " n"],
    *,
    num_samples: int,
    tail_start: int,
    algorithm: str,
) -> Float[Array, ""]:
    n, dtype = operator.shape[0], operator.dtype
    num_blocks = -(-(num_samples - 1) // BLOCK)
    signal_key, noise_key = jax.random.split(key)
    noise = noise_std * jax.random.normal(noise_key, (num_blocks * BLOCK,), dtype)
    # Share of the averaged iterates θ_s … θ_{N−1} that come after update t = 1, 2, …; 0 for the
    # updates past N − 1 that fill the last block, which are thereby without effect.
    update = np.arange(1, num_blocks * BLOCK + 1)
    share = jnp.asarray(np.clip((num_samples - update) / (num_samples - tail_start), 0, 1), dtype)

    def block(
        carry: Float[Array, "2 n"],
        inputs: tuple[jax.Array, Float[Array, " block"], Float[Array, " block"]],
    ) -> tuple[Float[Array, "2 n"], None]:
        signal_key, noise, share = inputs
        signals = aggregate(operator, jax.random.normal(signal_key, (BLOCK, n), dtype))
        gram = step_size * (signals @ signals.T)
        steps = step_size * _residuals(
            gram, signals @ carry[0], signals @ theta_star, noise, algorithm
        )
        return carry - jnp.stack([steps, share * steps]) @ signals, None

    # The linear update depends on θ − θ* alone, which keeps its digits as it shrinks. With a ReLU
    # the iterate itself is carried: θ_0 = 0 must give u = 0 exactly.
    start = theta0 - theta_star if algorithm == "linear" else theta0
    inputs = (
        jax.random.split(signal_key, num_blocks),
        noise.reshape(num_blocks, BLOCK),
        share.reshape(num_blocks, BLOCK),
    )
    (_, average), _ = jax.lax.scan(block, jnp.stack([start, start]), inputs)
    if algorithm == "linear":
        return squared_norm(operator, average)
    return relu_risk(operator, average, theta_star)


def _residuals(
    gram: Float[Array, "block block"],
    prediction: Float[Array, " block"],
    target: Float[Array, " block"],
    noise: Float[Array, " block"],
    algorithm: str,
) -> Float[Array, " block"]:
    """Residuals of a block's samples, each at the iterate that the earlier ones of the block give.

    `gram` holds γ m_jᵀm_i; `prediction` m_jᵀ(θ − θ*) (linear) or m_jᵀθ at the block's first iterate.
    """
    residuals: list[jax.Array] = []
    for j in range(BLOCK):  # unrolled: each residual is a few scalar operations
        u = prediction[j]
        for i, residual in enumerate(residuals):
            u = u - gram[j, i] * residual
        if algorithm == "linear":
            residuals.append(u - noise[j])
            continue
        residual = jnp.maximum(u, 0) - jnp.maximum(target[j], 0) - noise[j]
        if algorithm == "relu":
            residual = jnp.where(u > 0, residual, jnp.zeros_like(residual))
        residuals.append(residual)
    return jnp.stack(residuals)
