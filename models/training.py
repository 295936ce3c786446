"""Training of graph neural networks on sampled batches: one scanned loop that vmaps.

Symbols: n train nodes, b batch size, β fan-out, W_t the parameters after t updates. Every purpose has
its own key: fold_in(key, 0) the initial parameters, 1 the batches, 2 the batches' neighbours, 3 the
neighbours of the sampled loss; step t folds t into it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int

from boundlab.models.aggregation import Block, FullBlock, KnownBlock
from boundlab.models.gnn import full_blocks, node_losses, sample_blocks
from boundlab.models.graph_layout import Layout, rows_of
from boundlab.models.neighborhoods import Neighborhoods
from boundlab.models.sampling import sample_batch
from boundlab.models.stopping import FirstHit, first_hit, held
from boundlab.models.training_arguments import LOSSES, Settings, prepare
from boundlab.precision import standard_promotion
from boundlab.typing import Count, Scalar

__all__ = ["FirstHit", "Training", "first_hit", "held", "train"]

Losses = tuple[Any, Any, Any, Any]


class Training(NamedTuple):
    """A run: parameters before and after, and losses before each update (`None`: not asked for)."""

    initial_params: Any
    params: Any
    batch_loss: Float[Array, " num_steps"] | None
    sampled_loss: Float[Array, " records"] | None
    full_loss: Float[Array, " records"] | None
    validation_loss: Float[Array, " records"] | None
    measured: Any = None


def train(
    key: Any,
    graph: Any,
    features: Any,
    targets: Any,
    train_nodes: Any,
    *,
    network: Any = "sage",
    loss: str = "mse",
    optimizer: str = "sgd",
    step_size: Scalar,
    batch_size: Count,
    fan_out: Count,
    num_steps: Count,
    batches: Literal["fresh", "epoch"] | str = "fresh",
    validation_nodes: Any = None,
    initial_params: Any = None,
    max_batch_size: Count | None = None,
    max_fan_out: Count | None = None,
    record: Any = LOSSES,
    record_every: Count = 1,
    measure: Any = None,
) -> Training:
    """Train a network on batches of `train_nodes` with sampled neighbours.

    Each step draws a batch, samples min(β, d) neighbours of each of its nodes (and of theirs, a layer
    further in) and takes one step of the optimiser on the batch's mean loss.

    Args:
        key: one typed key; may be traced.
        graph: `Graph` or `DirectedGraph`.
        features: (n, r), float32 or float64: the precision of the whole run.
        targets: (n, K), for instance one-hot; rows outside the train and validation nodes are never
            read. For `cross_entropy` those read must be probabilities, of K ≥ 2 classes: no zero
            rows of unlabelled nodes.
        train_nodes: (n_train,) distinct node ids.
        network: `sage`, `gcn` (full degrees, Horvitz–Thompson), `gcn_block` (the block's degrees) or
            `gat`: one layer, linear output, no bias, no root term; or a Flax module, see
            `boundlab.models.gnn`.
        loss: `mse`, mean over nodes of ½‖output − target‖² (`nn.MSELoss` is 2/K of it), or
            `cross_entropy`, mean softmax cross-entropy in nats.
        optimizer: `sgd` or `adam`, with optax's defaults.
        step_size: η > 0; may be traced.
        batch_size: b ≤ n_train; may be traced if `max_batch_size` is given.
        fan_out: β ≥ 0, in every layer; may be traced if `max_fan_out` is given.
        num_steps: number of updates, static.
        batches: `fresh`, a uniform subset each step, independent of the others; or `epoch`,
            ⌈n_train/b⌉ batches that partition the train nodes, anew each epoch, the last one smaller,
            each a mean over its own count.
        validation_nodes: node ids of the validation loss.
        initial_params: W_0, shaped as the network's own (or the one array itself where a network has
            one parameter); by default as the network draws them.
        max_batch_size: static bound of a traced `batch_size`: one compiled program serves all.
        max_fan_out: static bound of a traced `fan_out`.
        record: which of `batch`, `sampled`, `full` and `validation` losses to record.
        record_every: all but the batch loss are computed before updates 0, q, 2q, … only; must
            divide `num_steps`.
        measure: a function of the outputs (n, K) of all nodes with all neighbours, for instance their
            accuracy on some nodes; its results, taken with the losses, are stacked in `measured`.

    Returns:
        `Training`. Losses have shape (num_steps,), or (num_steps/q,), entry t before update t, at
        W_t: of the batch about to be used; of all train nodes with one fresh sample each; of all
        train nodes with all neighbours; of the validation nodes with all neighbours. Batch it with
        vmap over `key`, `step_size`, `initial_params`, `features`, `targets` or traced sizes.

    Raises:
        ValueError: naming the argument. Divergence is no error: losses become infinite or NaN.

    Conventions: for `gcn_block`, "all neighbours" means D_in^{-1/2} A D_out^{-1/2} of the whole
    graph, which training with b = n_train < n never has. With β ≥ the largest degree nothing is
    sampled, and features of one-layer networks are aggregated once.

    Source: the loops of [liu2026full], docs/fanout.md#setting.

    """
    run = prepare(
        key=key,
        graph=graph,
        features=features,
        targets=targets,
        train_nodes=train_nodes,
        network=network,
        loss=loss,
        optimizer=optimizer,
        step_size=step_size,
        batch_size=batch_size,
        fan_out=fan_out,
        num_steps=num_steps,
        batches=batches,
        validation_nodes=validation_nodes,
        initial_params=initial_params,
        max_batch_size=max_batch_size,
        max_fan_out=max_fan_out,
        record=record,
        record_every=record_every,
        measure=measure,
    )
    with jax.default_matmul_precision("highest"):  # accelerators would round float32 to 10 bits
        return _train(**run)


@partial(jax.jit, static_argnames="settings")
def _train(
    key: jax.Array,
    lists: Neighborhoods,
    layout: Layout,
    features: Float[Array, "n r"],
    targets: Float[Array, "n K"],
    train_nodes: Int[Array, " n_train"],
    validation_nodes: Int[Array, " n_validation"] | None,
    step_size: Float[Array, ""],
    batch_size: Int[Array, ""],
    fan_out: Int[Array, ""],
    initial_params: Any,
    *,
    settings: Settings,
) -> Training:
    module, num_train = settings.network, train_nodes.shape[0]
    optimizer = {"sgd": optax.sgd, "adam": optax.adam}[settings.optimizer](step_size)
    # What no weights come before is the same at every step.
    known = None
    kind = getattr(module, "first_aggregation", None)
    if kind is not None:
        known = FullBlock(layout).aggregate(features, kind)

    def whole_graph(params: Any, nodes: Int[Array, " rows"]) -> Float[Array, "rows K"]:
        """Outputs at `nodes` with all neighbours."""
        blocks = full_blocks(layout, module.num_layers)
        if known is None:
            return rows_of(module.apply(params, blocks, features), nodes)
        everyone = jnp.arange(features.shape[0], dtype=jnp.int32)
        first = nodes if module.num_layers == 1 else everyone
        blocks = (KnownBlock(first, rows_of(known, first)), *blocks[1:])
        outputs = module.apply(params, blocks, features)
        return outputs if module.num_layers == 1 else rows_of(outputs, nodes)

    def sampled(key: jax.Array, nodes: Int[Array, " rows"]) -> tuple[Block, ...] | None:
        """Blocks of sampled neighbours that end in `nodes`; None where all neighbours are taken."""
        if settings.whole_graph:
            return None
        return sample_blocks(
            key, lists, layout, nodes, fan_out, settings.max_fan_out, module.num_layers
        )

    def mean_loss(
        params: Any,
        blocks: tuple[Block, ...] | None,
        nodes: Int[Array, " rows"],
        used: Bool[Array, " rows"] | None,
    ) -> Float[Array, ""]:
        """Mean loss of the nodes `used`, on sampled neighbours or, without blocks, on all."""
        sampled_rows = blocks is not None
        outputs = (
            module.apply(params, blocks, features) if sampled_rows else whole_graph(params, nodes)
        )
        losses = node_losses(settings.loss, outputs, rows_of(targets, nodes))
        if used is None:
            return losses.mean()
        total = jnp.where(used, losses, jnp.zeros_like(losses)).sum()
        return total / jnp.maximum(used.sum(), 1).astype(losses.dtype)

    def evaluate(params: Any, t: Int[Array, ""]) -> Losses:
        fresh = full = validation = measured = None
        if "sampled" in settings.record:
            sample_key = jax.random.fold_in(key, 3)
            blocks = _drawn(lambda s: sampled(jax.random.fold_in(sample_key, s), train_nodes), t)
            fresh = mean_loss(params, blocks, train_nodes, None)
        if "full" in settings.record:
            full = mean_loss(params, None, train_nodes, None)
        if "validation" in settings.record and validation_nodes is not None:
            validation = mean_loss(params, None, validation_nodes, None)
        if settings.measure is not None:
            everyone = jnp.arange(features.shape[0], dtype=jnp.int32)
            measured = settings.measure(whole_graph(params, everyone))
        return fresh, full, validation, measured

    def batch(
        order: Int[Array, " n_train"], t: Int[Array, ""]
    ) -> tuple[Int[Array, " n_train"], Int[Array, " b"], Bool[Array, " b"]]:
        """Nodes of batch t, which of them are used, and the epoch's order."""
        batch_key = jax.random.fold_in(key, 1)
        if settings.batches == "fresh":
            step_key = jax.random.fold_in(batch_key, t)
            nodes, used = sample_batch(step_key, train_nodes, batch_size, settings.max_batch_size)
            return order, nodes, used
        num_batches = (num_train + batch_size - 1) // batch_size
        order = jax.lax.cond(
            t % num_batches == 0,
            lambda: jax.random.permutation(
                jax.random.fold_in(batch_key, t // num_batches), train_nodes
            ),
            lambda: order,
        )
        slot = jnp.arange(settings.max_batch_size, dtype=jnp.int32)
        place = slot + (t % num_batches) * batch_size
        return order, rows_of(order, place), (slot < batch_size) & (place < num_train)

    def step(carry: Any, t: Int[Array, ""]) -> tuple[Any, Float[Array, ""] | None]:
        params, state, order = carry

        def draw(s: Int[Array, ""]) -> Any:
            """Batch s, which of its nodes are used, their sampled neighbours, the epoch's order."""
            new_order, nodes, used = batch(order, s)
            blocks = sampled(jax.random.fold_in(jax.random.fold_in(key, 2), s), nodes)
            if blocks is not None:
                blocks = (*blocks[:-1], _without(blocks[-1], used))
            return new_order, nodes, used, blocks

        order, nodes, used, blocks = _drawn(draw, t)
        value, slope = jax.value_and_grad(mean_loss)(params, blocks, nodes, used)
        with standard_promotion():  # optax counts steps in integers
            updates, state = optimizer.update(slope, state, params)
            params = optax.apply_updates(params, updates)
        return (params, state, order), value if "batch" in settings.record else None

    def chunk(carry: Any, first: Int[Array, ""]) -> tuple[Any, tuple[Losses, Any]]:
        losses = evaluate(carry[0], first)
        if settings.record_every == 1:
            carry, value = step(carry, first)
            return carry, (losses, value)
        times = first + jnp.arange(settings.record_every, dtype=jnp.int32)
        carry, values = jax.lax.scan(step, carry, times)
        return carry, (losses, values)

    if initial_params is None:
        blocks = full_blocks(layout, module.num_layers)
        initial_params = module.init(jax.random.fold_in(key, 0), blocks, features)
    firsts = jnp.arange(0, settings.num_steps, settings.record_every, dtype=jnp.int32)
    carry = (initial_params, optimizer.init(initial_params), train_nodes)
    (params, _, _), (losses, batch_loss) = jax.lax.scan(chunk, carry, firsts)
    if batch_loss is not None:
        batch_loss = batch_loss.reshape(-1)
    return Training(initial_params, params, batch_loss, *losses)


def _drawn(draw: Callable[[Int[Array, ""]], Any], t: Int[Array, ""]) -> Any:
    """draw(t), put into memory once by a loop over t alone.

    Otherwise XLA computes the sampled indices anew wherever they are read: twice the time of a step.
    """
    shapes = jax.eval_shape(draw, t)
    empty = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    return jax.lax.fori_loop(t, t + 1, lambda s, _: draw(s), empty)


def _without(block: Block, used: Bool[Array, " rows"]) -> Block:
    """The block with nothing sampled in rows that are not used, which must not count for others."""
    return block._replace(mask=block.mask & used[:, None])  # type: ignore[call-arg,union-attr]
