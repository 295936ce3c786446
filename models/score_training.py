"""Denoising score matching: the loss of score networks and its descent, which can be resumed.

Symbols: X_t = m X_0 + σz the noised data, z standard normal, s the score that a network gives. Blocks of
a system, such as features and structure, have a loss and parameters each: {"features": …, …}. Keys:
fold_in(key, 0) the initial parameters, fold_in(fold_in(key, 1), k) all draws of step k.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Float

from boundlab.checks import check_integer, check_key, check_number, check_shape, fail
from boundlab.models.sampler_noise import graph_noise
from boundlab.models.score_networks import GraphModel, graph_score, init_scores
from boundlab.precision import is_traced, standard_promotion
from boundlab.typing import Count, Scalar

# Steps between two looks at the losses, unless the caller says otherwise.
_USUAL_CHUNK = 100

Loss = Callable[..., dict[str, jax.Array]]


@dataclass(frozen=True)
class Descent:
    """Adam as score networks are trained with; the defaults are the published ones [jo2022score].

    The gradient of each block is clipped to norm `clip`, `weight_decay` times the parameters is added
    to it (so it goes through Adam's scaling), and the step size is
    `learning_rate`·`decay`^(whole epochs of `steps_per_epoch` steps so far).
    """

    learning_rate: float = 0.01
    decay: float = 0.999
    steps_per_epoch: int = 1
    weight_decay: float = 1e-4
    clip: float = 1.0
    average: float = 0.999
    """Of the running mean of parameters: mean ← a·mean + (1 − a)·parameters, a at most (1 + k)/(10 + k)
    after k steps."""

    def __post_init__(self) -> None:
        check_number("learning_rate", self.learning_rate, 0, low_open=True)
        check_number("decay", self.decay, 0, 1, low_open=True)
        check_integer("steps_per_epoch", self.steps_per_epoch, 1)
        check_number("weight_decay", self.weight_decay, 0)
        check_number("clip", self.clip, 0, low_open=True)
        check_number("average", self.average, 0, 1, high_open=True)

    def optimizer(self) -> optax.GradientTransformation:
        """The optax optimiser of one block."""
        schedule = optax.exponential_decay(
            self.learning_rate, self.steps_per_epoch, self.decay, staircase=True
        )
        return optax.chain(
            optax.clip_by_global_norm(self.clip),
            optax.add_decayed_weights(self.weight_decay),
            optax.scale_by_adam(),
            optax.scale_by_learning_rate(schedule),
        )


class ScoreTraining(NamedTuple):
    """Trained parameters, by block."""

    params: dict[str, Any]
    """After the last step."""
    average_params: dict[str, Any]
    """Their running mean, usually the better score."""
    losses: Float[np.ndarray, "num_steps blocks"]
    """Loss of each step's batch before the step, in the order of `params`."""


class _State(NamedTuple):
    """Parameters of each block as one vector: a program of few large operations, quick to compile."""

    params: dict[str, jax.Array]
    average: dict[str, jax.Array]
    optimizer: dict[str, Any]
    key: jax.Array
    step: jax.Array


def descend(
    key: Any,
    loss: Loss,
    params: dict[str, Any],
    *,
    num_steps: Count,
    data: tuple[Any, ...] = (),
    descent: Descent | None = None,
    chunk_steps: Count | None = None,
    advance: Any = None,
) -> ScoreTraining:
    """Minimise the sum of the blocks' losses by stochastic gradients.

    Args:
        key: one typed key, concrete.
        loss: function (params, key, *data) of all blocks' parameters, the step's key and arrays to
            {block: scalar}, with the keys of `params`.
        params: {block: pytree of arrays} to start from; their precision is that of the training.
        num_steps: ≥ 1.
        data: arrays that the loss reads.
        descent: optimiser, by default `Descent()`.
        chunk_steps: steps of one compiled chunk, a divisor of `num_steps`; after each, losses are
            looked at, progress is shown and a checkpoint may be written. By default the largest up to
            100. To prolong a finished training give it the same one.
        advance: what runs the chunks: function (fn, state, num_chunks, *, constants, inspect), as
            `boundlab.long_runs.advance` with its checkpoint and progress; by default a plain loop.

    Returns:
        `ScoreTraining`.

    Raises:
        ValueError: naming the argument; naming `loss` and the step if a loss isn't finite, or the
            parameters are not after it. A checkpoint then holds the chunk before.

    Source: the training of [jo2022score], docs/graph_diffusion.md#training-loss.

    """
    check_key("key", key)
    if is_traced(key, params, data):
        raise fail("params", "traced values", "arrays: training is no part of a jit")
    descent = Descent() if descent is None else descent
    if not isinstance(descent, Descent):
        raise fail("descent", f"a {type(descent).__name__}", "a Descent, or None")
    if not isinstance(params, dict) or not params:
        raise fail("params", f"a {type(params).__name__}", "a dict of blocks")
    num_steps = check_integer("num_steps", num_steps, 1, 2**31 - 1)
    chunk = _chunk(num_steps, chunk_steps)
    blocks, optimizer = tuple(params), descent.optimizer()
    _check_loss(loss, params, data)
    start, trees = _flattened(params)

    def total(params: Any, key: Any, data: Any) -> tuple[jax.Array, jax.Array]:
        losses = loss(params, key, *data)
        each = jnp.stack([losses[block] for block in blocks])
        return each.sum(), each

    def fn(state: _State, *data: Any) -> tuple[_State, tuple[jax.Array, jax.Array]]:
        def step(state: _State, _: None) -> tuple[_State, jax.Array]:
            step_key = jax.random.fold_in(state.key, state.step)
            params = {block: trees[block](state.params[block]) for block in blocks}
            slope, each = jax.grad(total, has_aux=True)(params, step_key, data)
            vectors, memory = {}, {}
            with standard_promotion():  # optax counts steps in integers
                for block in blocks:
                    gradient, own = ravel_pytree(slope[block])[0], state.params[block]
                    update, memory[block] = optimizer.update(gradient, state.optimizer[block], own)
                    vectors[block] = own + update
            average = _averaged(descent.average, state.average, vectors, state.step)
            return _State(vectors, average, memory, state.key, state.step + 1), each

        state, losses = jax.lax.scan(step, state, None, length=chunk)
        finite = [jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(state.params)]
        return state, (losses, jnp.stack(finite).all())

    with standard_promotion():
        state = _State(
            start,
            start,
            {block: optimizer.init(start[block]) for block in blocks},
            jax.random.fold_in(key, 1),
            jnp.zeros((), jnp.int32),
        )
    inspect = _inspector(blocks, chunk)
    run = _loop if advance is None else advance
    state, (losses, _) = run(fn, state, num_steps // chunk, constants=tuple(data), inspect=inspect)
    backs = {block: jax.jit(back) for block, back in trees.items()}
    last, average = (
        {block: backs[block](vectors[block]) for block in blocks}
        for vectors in (state.params, state.average)
    )
    return ScoreTraining(last, average, np.asarray(losses).reshape(num_steps, len(blocks)))


def graph_loss(
    model: GraphModel, batch_size: Count, *, first_time: Scalar = 1e-5, horizon: Scalar = 1.0
) -> Loss:
    """Denoising loss of both networks on graphs, as `descend` takes it with data (x, adjacency, mask).

    ½ Σ (σ s + z)², a mean over the batch, summed over the true nodes' features and over pairs of nodes
    (each pair once); t uniform on [first_time, horizon], one for both blocks of a graph. The batch is
    drawn with replacement.

    Args:
        model: networks and SDEs.
        batch_size: graphs a step, ≥ 1.
        first_time: least time, > 0, where the loss per unit of time is still finite.
        horizon: largest time.

    Returns:
        Function (params, key, x (D, n, F), adjacency (D, n, n), mask (D, n)) to the losses of
        `features` and `structure`.

    Raises:
        ValueError: naming the argument.

    Source: [jo2022score] (whose structure loss counts each pair twice).

    """
    if not isinstance(model, GraphModel):
        raise fail("model", f"a {type(model).__name__}", "a GraphModel of score_networks")
    size = check_integer("batch_size", batch_size, 1)
    check_number("first_time", first_time, 0, low_open=True)
    check_number("horizon", horizon, float(np.asarray(first_time)), low_open=True)

    def loss(params: Any, key: Any, x: Any, adjacency: Any, mask: Any) -> dict[str, jax.Array]:
        keys = [jax.random.fold_in(key, i) for i in range(3)]
        chosen = jax.random.randint(keys[0], (size,), 0, len(x), jnp.int32)
        present = mask[chosen]
        low, high = (jnp.asarray(value).astype(x.dtype) for value in (first_time, horizon))
        t = low + (high - low) * jax.random.uniform(keys[1], (size,), x.dtype)
        noise = graph_noise(keys[2], size, x.shape[1], x.shape[2], x.dtype)
        noised, deviations = [], []
        sdes = (model.sde_features, model.sde_structure)
        for sde, clean, z in zip(sdes, (x, adjacency), noise, strict=True):
            deviation = jnp.sqrt(sde.variance(t))[:, None, None]
            noised.append(sde.mean_coefficient(t)[:, None, None] * clean[chosen] + deviation * z)
            deviations.append(deviation)
        scores = graph_score(model, params, present)(*noised, t)
        gaps = [d * s + z for d, s, z in zip(deviations, scores, noise, strict=True)]
        nodes = jnp.where(present[:, :, None], gaps[0] ** 2, 0).sum()
        pairs = jnp.triu(jnp.ones(adjacency.shape[1:], bool), 1)
        pairs = pairs[None] & present[:, :, None] & present[:, None, :]
        edges = jnp.where(pairs, gaps[1] ** 2, 0).sum()
        return {"features": nodes / (2 * size), "structure": edges / (2 * size)}

    return loss


def train_scores(
    key: Any,
    model: GraphModel,
    x: Any,
    adjacency: Any,
    mask: Any,
    *,
    num_steps: Count,
    batch_size: Count = 128,
    descent: Descent | None = None,
    first_time: Scalar = 1e-5,
    horizon: Scalar = 1.0,
    initial_params: Any = None,
    dtype: Any = np.float32,
    chunk_steps: Count | None = None,
    advance: Any = None,
) -> ScoreTraining:
    """Train the two score networks of `model` on graphs by denoising score matching.

    With `advance=functools.partial(boundlab.long_runs.advance, checkpoint=path)` the training shows a
    bar and, interrupted, is continued by the same call to the same bits.

    Args:
        key: one typed key, concrete.
        model: networks and SDEs.
        x: (D, n, F) node features; what stands where no node is is never read.
        adjacency: (D, n, n) symmetric.
        mask: (D, n) bool, true for nodes.
        num_steps: ≥ 1.
        batch_size: graphs a step, drawn with replacement.
        descent: as for `descend`.
        first_time: least time, as for `graph_loss`.
        horizon: largest time.
        initial_params: {"features", "structure"}; by default drawn.
        dtype: precision of the training.
        chunk_steps: as for `descend`.
        advance: as for `descend`.

    Returns:
        `ScoreTraining` of the blocks `features` and `structure`.

    Raises:
        ValueError: naming the argument; naming `loss` if the training diverges, see `descend`.

    Source: [jo2022score], docs/graph_diffusion.md#training-loss.

    """
    check_key("key", key)
    loss = graph_loss(model, batch_size, first_time=first_time, horizon=horizon)
    data = _graphs(x, adjacency, mask, dtype)
    if initial_params is None:
        initial_params = init_scores(jax.random.fold_in(key, 0), model, *data)
    else:
        wanted = jax.tree.map(np.shape, jax.eval_shape(_initial(model), key, *data))
        got = jax.tree.map(np.shape, initial_params)
        if got != wanted:
            raise fail("initial_params", got, str(wanted))
    return descend(
        key,
        loss,
        initial_params,
        num_steps=num_steps,
        data=data,
        descent=descent,
        chunk_steps=chunk_steps,
        advance=advance,
    )


def _initial(model: GraphModel) -> Callable[..., Any]:
    return lambda key, *data: init_scores(key, model, *data)


def _graphs(x: Any, adjacency: Any, mask: Any, dtype: Any) -> tuple[jax.Array, ...]:
    """Checked graphs in `dtype`, zero where no node is."""
    check_shape("x", x, (None, None, None), "one graph a row")
    count, n = np.shape(x)[:2]
    check_shape("adjacency", adjacency, (count, n, n), "those of x")
    check_shape("mask", mask, (count, n), "those of x")
    present = np.asarray(mask)
    if present.dtype != bool:
        raise fail("mask", f"values of type {present.dtype}", "bool, true for nodes")
    kind = jnp.dtype(dtype)
    if not jnp.issubdtype(kind, jnp.floating):
        raise fail("dtype", kind, "a floating-point type")
    nodes = present[:, :, None]
    pairs = nodes & present[:, None, :] & ~np.eye(n, dtype=bool)[None]
    features = np.where(nodes, np.asarray(x), 0)
    matrices = np.where(pairs, np.asarray(adjacency), 0)
    check_number("x", features)
    check_number("adjacency", matrices)
    if not np.array_equal(matrices, matrices.swapaxes(1, 2)):
        raise fail("adjacency", "a matrix that is not symmetric", "symmetric matrices")
    return jnp.asarray(features, kind), jnp.asarray(matrices, kind), jnp.asarray(present)


def _chunk(num_steps: int, chunk_steps: Any) -> int:
    if chunk_steps is None:
        return max(d for d in range(1, min(num_steps, _USUAL_CHUNK) + 1) if num_steps % d == 0)
    chunk = check_integer("chunk_steps", chunk_steps, 1, num_steps)
    if num_steps % chunk:
        raise fail("chunk_steps", chunk, f"a divisor of num_steps = {num_steps}")
    return chunk


def _flattened(params: dict[str, Any]) -> tuple[dict[str, jax.Array], dict[str, Any]]:
    """Each block's parameters as a vector, and the way back."""
    leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(params)]
    kinds = {leaf.dtype for leaf in leaves}
    if len(kinds) != 1 or not jnp.issubdtype(next(iter(kinds)), jnp.floating):
        raise fail("params", f"arrays of types {sorted(map(str, kinds))}", "one floating type")
    trees: dict[str, Any] = {}

    def ravel(params: dict[str, Any]) -> dict[str, jax.Array]:
        both = {block: ravel_pytree(own) for block, own in params.items()}
        trees.update({block: pair[1] for block, pair in both.items()})
        return {block: pair[0] for block, pair in both.items()}

    # Compiled as a whole: one by one the many shapes take longer.
    return jax.jit(ravel)(jax.tree.map(jnp.asarray, params)), trees


def _check_loss(loss: Any, params: Any, data: Any) -> None:
    if not callable(loss):
        raise fail("loss", f"a {type(loss).__name__}", "a function")
    key = jax.ShapeDtypeStruct((), jax.random.key(0, impl="threefry2x32").dtype)
    found = jax.eval_shape(loss, params, key, *data)
    shapes = {k: v.shape for k, v in found.items()} if isinstance(found, dict) else found
    wanted: dict[str, tuple[int, ...]] = dict.fromkeys(params, ())
    if shapes != wanted:
        raise fail("loss", f"results {shapes}", f"one scalar a block, {wanted}")


def _averaged(
    most: float, average: dict[str, jax.Array], params: dict[str, jax.Array], step: jax.Array
) -> dict[str, jax.Array]:
    """Running mean after step number `step`, counted from 0; faster at first."""
    count = (step + 1).astype(jnp.float32)
    left = 1 - jnp.minimum(jnp.float32(most), (1 + count) / (10 + count))
    return {
        block: mean + left.astype(mean.dtype) * (params[block] - mean)
        for block, mean in average.items()
    }


def _inspector(blocks: tuple[str, ...], chunk: int) -> Callable[[Any, int], None]:
    """Refuse a chunk whose losses or last parameters aren't finite."""
    accepted = "finite losses (a smaller learning_rate or clip, or data of smaller scale?)"

    def inspect(record: tuple[Any, Any], place: int) -> None:
        losses, finite = (np.asarray(part) for part in record)
        bad = np.argwhere(~np.isfinite(losses))
        if len(bad):
            step, block = place * chunk + int(bad[0][0]), blocks[int(bad[0][1])]
            raise fail("loss", f"{losses[tuple(bad[0])]} of {block} at step {step}", accepted)
        if not finite:
            got = f"parameters that are not finite after step {(place + 1) * chunk - 1}"
            raise fail("loss", got, accepted)

    return inspect


def _loop(
    fn: Callable[..., Any], state: Any, num_chunks: int, *, constants: Any, inspect: Any
) -> Any:
    """Run the chunks one after another."""
    program, records = jax.jit(fn), []
    for place in range(num_chunks):
        state, record = program(state, *constants)
        inspect(record, place)
        records.append(jax.tree.map(np.asarray, record))
    return state, jax.tree.map(lambda *parts: np.stack(parts), *records)
