"""Samplers of score-based models: reverse SDEs on a fixed grid, for arrays and for graphs.

Symbols: τ → t one step down the grid `times`; s the score ∇ log q_t; the schemes' coefficients are in
`boundlab.models.sampler_steps`. Everything is one `lax.scan` over the grid. Keys: fold_in(key, 0) the
start, fold_in(fold_in(key, 1), k) the noise of step k, fold_in(fold_in(key, 2), k) its corrector's.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from boundlab.checks import check_choice, check_integer, check_key
from boundlab.models.sampler_arguments import (
    check_finite,
    check_score,
    checked_graph_start,
    checked_mask,
    checked_shape,
    checked_start,
    prepare,
)
from boundlab.models.sampler_noise import graph_noise, normal_noise
from boundlab.models.sampler_steps import Coefficients, langevin_step
from boundlab.models.sampler_steps import Langevin as Langevin
from boundlab.typing import Count, Numbers

ORDERS = ("jacobi", "gauss_seidel")


def sample(
    key: Any,
    sde: Any,
    score: Any,
    times: Numbers,
    shape: Any,
    scheme: str = "euler_maruyama",
    *,
    denoise: bool = False,
    corrector: Any = None,
    start: Any = None,
    dtype: Any = None,
    draw: Any = None,
) -> jax.Array:
    """Sample from N(0, I) down `times` along the reverse SDE: y' = A y + B s(y, τ) + N(0, Q).

    Args:
        key: one typed key; may be traced.
        sde: an SDE of `boundlab.models.sde`; its parameters may be traced.
        score: function (x, t) of an array of `shape` and a scalar to the score, of `shape`.
        times: (N + 1,) strictly decreasing, ≥ 0, in the time of `sde`; N ≥ 1. Traced ones aren't
            checked.
        shape: shape of the array; an axis may be empty.
        scheme: `exponential_integrator` (linear part and noise exact, score frozen at τ),
            `euler_maruyama` (f and g frozen at τ in the SDE's own time: for VP β(τ)h, not ∫β),
            `ancestral` (posterior of x_t given x_τ and the denoised mean), `probability_flow` (Euler
            on the ordinary differential equation: no noise) or `symmetric_splitting` (half of the
            exact linear flow with noise, all of the score's drift ∫g² s, the other half).
        denoise: leave out the last step's noise.
        corrector: `Langevin`, or None. The first axis of `shape` is the batch of its norms. With
            `symmetric_splitting` corrector and step share one evaluation of the score.
        start: array of `shape` to start from instead of N(0, I).
        dtype: floating-point type of the state; by default that of `times`. The coefficients are
            computed in that of `times`, then rounded.
        draw: function (key, shape, dtype) of the noise, by default
            `boundlab.models.sampler_noise.normal_noise`.

    Returns:
        Array of `shape`. Repeated calls compile anew: wrap the call in `jax.jit`, with `times`
        closed over.

    Raises:
        ValueError: naming the argument; naming `score` if the result isn't finite. Within jit or vmap
            values aren't looked at: a diverged sampler returns NaN or infinities there.

    Warns:
        UserWarning: for VP and OU started from N(0, I), if −½ log(1 − e^{−B}) > 0.01, B = ∫β up to
            times[0]: the KL from the start to the noised law that data of unit second moment may
            cost, a coordinate, in nats.

    Source: [song2021score]; derived, docs/graph_diffusion.md#sampling and #initialisation.

    """
    check_key("key", key)
    steps, noisy, dtype = prepare(scheme, {"sde": sde}, times, dtype, corrector, start is None)
    shape = checked_shape(shape)
    draw = normal_noise if draw is None else draw
    check_score(score, (shape,), dtype, lambda x, t: (score(x, t),))
    if start is not None:
        start = checked_start("start", start, shape, dtype)

    def evaluate(x: jax.Array, t: jax.Array) -> jax.Array:
        return jnp.asarray(score(x, t)).astype(dtype)

    def step(x: jax.Array, inputs: Any) -> tuple[jax.Array, None]:
        (at,), k = inputs
        shared: jax.Array | None = None
        for i in range(0 if corrector is None else corrector.num_steps):
            s = evaluate(x, at.time)
            shared = s if shared is None else shared
            noise = draw(_corrector_key(key, k, i), shape, dtype)
            x = langevin_step(x, s, noise, at.alpha, corrector)
        if scheme != "symmetric_splitting" or shared is None:
            shared = evaluate(x, at.time)
        x = at.linear * x + at.score * shared
        if noisy:
            x = x + at.noise_std * draw(_step_key(key, k), shape, dtype)
        return x, None

    def first() -> jax.Array:
        return draw(_start_key(key), shape, dtype) if start is None else start

    result = _walk(step, first, steps, denoise)
    check_finite(result)
    return result


def sample_graphs(
    key: Any,
    sde_features: Any,
    sde_structure: Any,
    score: Any,
    times: Numbers,
    batch: Count,
    num_nodes: Count,
    num_features: Count,
    scheme: str = "euler_maruyama",
    *,
    order: str = "jacobi",
    denoise: bool = True,
    mask: Any = None,
    corrector: Any = None,
    start: Any = None,
    dtype: Any = None,
    draw: Any = None,
) -> tuple[Float[Array, "batch nodes features"], Float[Array, "batch nodes nodes"]]:
    """Sample node features and adjacency matrices together: two reverse SDEs coupled by their scores.

    Each pair of nodes has one draw of noise, mirrored; the adjacency is symmetric with zero diagonal
    to the last bit, whatever the score's rounding (only its symmetric part is used). Relabelling
    the nodes in the start and in the noise relabels the result, if the score does so.

    Args:
        key: one typed key; may be traced.
        sde_features: SDE of the features.
        sde_structure: SDE of the adjacency.
        score: function (x, adjacency, t) of (B, n, F), (B, n, n) and a scalar to the two scores. Of
            the adjacency's it is the score of one entry a pair: ∂/∂a_ij with a_ij and a_ji one
            variable.
        times: (N + 1,) strictly decreasing, ≥ 0, in the time of both SDEs; N ≥ 1.
        batch: number of graphs B ≥ 0.
        num_nodes: n ≥ 1.
        num_features: F ≥ 1.
        scheme: as in `sample`.
        order: `jacobi`, both blocks step from the old pair; or `gauss_seidel`, features first, then
            the structure with the score at (features new, adjacency old) and the same τ. In each
            correction and in each step; two evaluations of the score instead of one.
        denoise: leave out the last step's noise.
        mask: (B, n) bool, true for nodes; rows and columns of the rest are 0 throughout. All true
            by default. `score` isn't told: it closes over the mask.
        corrector: `Langevin`, the same for both blocks, or None.
        start: pair (x, adjacency) to start from instead of N(0, I); the adjacency symmetric.
        dtype: as in `sample`.
        draw: function (key, B, n, F, dtype) of a pair of noises, by default
            `boundlab.models.sampler_noise.graph_noise`.

    Returns:
        Features (B, n, F) and real-valued adjacency (B, n, n): threshold it at ½ for 0/1 data.

    Raises:
        ValueError: as `sample`.

    Warns:
        UserWarning: as `sample`, for each of the two SDEs.

    Source: the samplers of [jo2022score]; derived, docs/graph_diffusion.md#sampling.

    """
    check_key("key", key)
    check_choice("order", order, ORDERS)
    sdes = {"sde_features": sde_features, "sde_structure": sde_structure}
    steps, noisy, dtype = prepare(scheme, sdes, times, dtype, corrector, start is None)
    size = (
        check_integer("batch", batch, 0),
        check_integer("num_nodes", num_nodes, 1),
        check_integer("num_features", num_features, 1),
    )
    shapes = (size, (*size[:2], size[1]))
    present = checked_mask(mask, size[:2])
    draw = graph_noise if draw is None else draw
    check_score(score, shapes, dtype, score)
    if start is not None:
        start = checked_graph_start(start, shapes, dtype)

    def project(block: int, value: jax.Array) -> jax.Array:
        """Zero outside the nodes; for the adjacency symmetric with zero diagonal, too."""
        if block == 0:
            return jnp.where(present[:, :, None], value, 0)
        return _symmetric(value, present)

    def evaluate(pair: tuple[jax.Array, ...], t: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(
            project(block, jnp.asarray(value).astype(dtype))
            for block, value in enumerate(score(*pair, t))
        )

    def sweep(
        pair: tuple[jax.Array, ...],
        t: jax.Array,
        move: Callable[[int, jax.Array, jax.Array], jax.Array],
        known: tuple[jax.Array, ...] | None = None,
    ) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]:
        """Move both blocks in `order`; returns the pair and the scores used."""
        scores = evaluate(pair, t) if known is None else known
        x = project(0, move(0, pair[0], scores[0]))
        if order == "gauss_seidel" and known is None:
            scores = (scores[0], evaluate((x, pair[1]), t)[1])
        adjacency = project(1, move(1, pair[1], scores[1]))
        return (x, adjacency), scores

    def step(pair: tuple[jax.Array, ...], inputs: Any) -> tuple[tuple[jax.Array, ...], None]:
        tables, k = inputs
        t = tables[0].time
        shared = None
        for i in range(0 if corrector is None else corrector.num_steps):
            noises = draw(_corrector_key(key, k, i), *size, dtype)

            def correct(b: int, y: jax.Array, s: jax.Array, z: Any = noises) -> jax.Array:
                return langevin_step(y, s, project(b, z[b]), tables[b].alpha, corrector)

            pair, scores = sweep(pair, t, correct)
            shared = scores if shared is None else shared
        kicks = draw(_step_key(key, k), *size, dtype) if noisy else None

        def advance(b: int, y: jax.Array, s: jax.Array) -> jax.Array:
            y = tables[b].linear * y + tables[b].score * s
            return y if kicks is None else y + tables[b].noise_std * kicks[b]

        reuse = shared if scheme == "symmetric_splitting" else None
        return sweep(pair, t, advance, reuse)[0], None

    def first() -> tuple[jax.Array, ...]:
        pair = draw(_start_key(key), *size, dtype) if start is None else start
        return tuple(project(block, value) for block, value in enumerate(pair))

    x, adjacency = _walk(step, first, steps, denoise)
    check_finite((x, adjacency))
    # Inside the loop a compiler may round an entry and its mirror image apart (fused multiply-add).
    return x, _symmetric_program(adjacency, present)


def _symmetric(
    value: Float[Array, "batch nodes nodes"], present: Bool[Array | np.ndarray, "batch nodes"]
) -> Float[Array, "batch nodes nodes"]:
    """Symmetric part between the nodes `present`, with zero diagonal."""
    pairs = present[:, :, None] & present[:, None, :] & ~np.eye(value.shape[1], dtype=bool)[None]
    return jnp.where(pairs, (value + value.swapaxes(1, 2)) / 2, 0)


_symmetric_program = jax.jit(_symmetric)


def _walk(
    step: Callable[..., Any],
    first: Callable[[], Any],
    steps: tuple[Coefficients, ...],
    denoise: bool,
) -> Any:
    """All steps from the start, as one program; the last one without noise if `denoise`."""
    ks = np.arange(steps[0].time.shape[0], dtype=np.int32)

    def walk(steps: tuple[Coefficients, ...]) -> Any:
        tables = tuple(_denoised(table) for table in steps) if denoise else steps
        return jax.lax.scan(step, first(), (tables, ks))[0]

    with jax.default_matmul_precision("highest"):  # accelerators would round float32 to 10 bits
        return jax.jit(walk)(steps)


def _denoised(table: Coefficients) -> Coefficients:
    return table._replace(noise_std=table.noise_std.at[-1].set(0))


def _start_key(key: Any) -> Any:
    return jax.random.fold_in(key, 0)


def _step_key(key: Any, k: jax.Array) -> Any:
    return jax.random.fold_in(jax.random.fold_in(key, 1), k)


def _corrector_key(key: Any, k: jax.Array, i: int) -> Any:
    return jax.random.fold_in(jax.random.fold_in(jax.random.fold_in(key, 2), k), i)
