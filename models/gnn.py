"""Graph neural networks in Flax linen that run on sampled neighbours and on the whole graph alike.

A network is called as `network.apply(params, blocks, features)`: one block of
`boundlab.models.aggregation` a layer, innermost first, and the values of the first block's senders.
`sample_blocks` and `full_blocks` make them; the result has one row a row of the last block.

A Flax module of your own works wherever these do if it has `num_layers` and that call. Two more
attributes are optional: `first_aggregation`, the kind by which it aggregates its input before any
weights (then known results are not computed anew), and `whole_graph_limit`, whether sampling all
neighbours is the whole graph.
"""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from boundlab.checks import check_choice, check_integer, check_number, check_shape, fail
from boundlab.models.aggregation import (
    KINDS,
    Block,
    FullBlock,
    aggregate,
    aggregate_full,
    sampled_block,
)
from boundlab.models.graph_layout import Layout
from boundlab.models.neighborhoods import Neighborhoods
from boundlab.models.sampling import sample_neighbors
from boundlab.precision import standard_promotion

__all__ = [
    "ACTIVATIONS",
    "GAT",
    "GCN",
    "NETWORKS",
    "GraphSAGE",
    "aggregate",
    "aggregate_full",
    "full_blocks",
    "make_network",
    "node_losses",
    "sample_blocks",
]

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "linear": lambda values: values,
    "relu": nn.relu,
    "scaled_relu": lambda values: jnp.asarray(2**0.5, values.dtype) * nn.relu(values),
}
NETWORKS = ("sage", "gcn", "gcn_block", "gat")
# Variance 2/(mean of fan-in and fan-out): Glorot and Bengio's, doubled for the ReLU.
_initial = nn.initializers.variance_scaling(2.0, "fan_avg", "uniform")


class _Stack(nn.Module):
    """Layers values → aggregate·kernel (+ own rows·root_kernel) (+ bias), ReLU between them.

    Parameters of the last layer: `kernel`, `root_kernel`, `bias`; those of hidden layer l are called
    `hidden_<l>_kernel` and so on.
    """

    num_outputs: int
    num_layers: int = 1
    hidden: int = 256
    kind: str = "mean"
    root: bool = False
    bias: bool = False
    layer_norm: bool = False
    activation: str = "linear"

    def __post_init__(self) -> None:
        check_integer("num_outputs", self.num_outputs, 1)
        check_integer("num_layers", self.num_layers, 1)
        check_integer("hidden", self.hidden, 1)
        check_choice("kind", self.kind, KINDS)
        check_choice("activation", self.activation, ACTIVATIONS)
        if self.kind == "gcn_block" and self.num_layers > 1:
            raise fail("num_layers", self.num_layers, "1 with kind 'gcn_block'")
        super().__post_init__()

    @property
    def first_aggregation(self) -> str:
        """The first layer aggregates its input by this kind, before any weights."""
        return self.kind

    @property
    def whole_graph_limit(self) -> bool:
        """Whether sampling all neighbours is the whole graph."""
        return self.kind != "gcn_block"

    @nn.compact
    def __call__(
        self, blocks: tuple[Block, ...], features: Float[Array | np.ndarray, "senders r"]
    ) -> Float[Array, "rows K"]:
        if len(blocks) != self.num_layers:
            raise fail("blocks", f"{len(blocks)} of them", f"one a layer, {self.num_layers}")
        values = jnp.asarray(features)
        for layer, block in enumerate(blocks[:-1]):
            name = f"hidden_{layer}_"
            values = self._layer(block, values, self.hidden, name, first=layer == 0)
            if self.layer_norm:
                with standard_promotion():  # Flax mixes float32 in
                    values = nn.LayerNorm(
                        dtype=values.dtype, param_dtype=values.dtype, name=name + "norm"
                    )(values)
            values = nn.relu(values)
        first = self.num_layers == 1
        values = self._layer(blocks[-1], values, self.num_outputs, "", first=first)
        return ACTIVATIONS[self.activation](values)

    def _layer(
        self, block: Block, values: Float[Array, "senders r"], width: int, name: str, *, first: bool
    ) -> Float[Array, "rows width"]:
        shape, dtype = (values.shape[1], width), values.dtype
        kernel = self.param(name + "kernel", _initial, shape, dtype)
        # The order that moves fewer numbers, but input features that were sampled are aggregated
        # as they are: then no derivative has to go back through the sample.
        if width >= shape[0] or (first and not isinstance(block, FullBlock)):
            result = block.aggregate(values, self.kind) @ kernel
        else:
            result = block.aggregate(values @ kernel, self.kind)
        if self.root:
            root_kernel = self.param(name + "root_kernel", _initial, shape, dtype)
            result = result + block.own_rows(values) @ root_kernel
        if self.bias:
            bias = self.param(name + "bias", nn.initializers.zeros_init(), (width,), dtype)
            result = result + bias[None, :]
        return result


class GraphSAGE(_Stack):
    """GraphSAGE with the mean aggregator: W_self h_i + W_neigh mean(h_j) + b, two weights a layer.

    By default the three-layer network of [liu2026full]: hidden width 256, LayerNorm and ReLU between
    layers, linear output. `kind="gcn_full_ht"` etc. would be another network, use `GCN`.

    Fields: `num_outputs` K; `num_layers`; `hidden` width; `root` whether W_self is there; `bias`;
    `layer_norm`; `activation` of the output, `linear`, `relu` (as the authors' one-layer networks)
    or `scaled_relu` = √2·ReLU (as their theory).

    Source: Hamilton, Ying & Leskovec (2017), as DGL's SAGEConv; weights start as Glorot-uniform of
    gain √2, biases at 0.
    """

    num_layers: int = 3
    kind: str = "mean"
    root: bool = True
    bias: bool = True
    layer_norm: bool = True


class GCN(_Stack):
    """Graph convolution: Σ_j h_j W/√(d_i dout_j) (+ b), without self-loops.

    `kind="gcn_full_ht"` has the degrees of the whole graph and the Horvitz–Thompson factor d/m, which
    makes the sampled sum unbiased; `kind="gcn_block"` those of the sampled block, as DGL's GraphConv
    (one layer only). Other fields as in `GraphSAGE`.

    Source: Kipf & Welling (2017), docs/fanout.md#block-degrees.
    """

    kind: str = "gcn_full_ht"


class GAT(nn.Module):
    """One layer of graph attention: mean over heads of Σ_j α_ij W_h x_j, j ∈ N(i), no root term.

    α_i· = softmax over the (sampled) in-neighbours of leaky ReLU(a_h·W_h x_j + b_h·W_h x_i). Over a
    sample the softmax is biased. Parameters: `kernel` (r, heads·K), `sender_attention` a
    and `receiver_attention` b (heads, K). A node without neighbours gives 0.

    Source: Veličković et al. (2018), heads averaged as in [liu2026full].
    """

    num_outputs: int
    heads: int = 4
    slope: float = 0.2
    activation: str = "linear"

    num_layers = 1
    first_aggregation = None
    whole_graph_limit = True

    def __post_init__(self) -> None:
        check_integer("num_outputs", self.num_outputs, 1)
        check_integer("heads", self.heads, 1)
        check_shape("slope", self.slope, ())
        check_number("slope", self.slope)
        check_choice("activation", self.activation, ACTIVATIONS)
        super().__post_init__()

    @nn.compact
    def __call__(
        self, blocks: tuple[Block, ...], features: Float[Array | np.ndarray, "senders r"]
    ) -> Float[Array, "rows K"]:
        (block,) = blocks
        features = jnp.asarray(features)
        shape, dtype = (self.heads, self.num_outputs), features.dtype
        width = features.shape[1]
        kernel = self.param("kernel", _initial, (width, self.heads * self.num_outputs), dtype)
        values = (features @ kernel).reshape(-1, *shape)
        sender = self.param("sender_attention", _initial, shape, dtype)
        receiver = self.param("receiver_attention", _initial, shape, dtype)
        sender_scores = (values * sender[None]).sum(axis=2)
        receiver_scores = block.own_rows((values * receiver[None]).sum(axis=2))
        # A block with known results never comes here: there is no `first_aggregation`.
        found = block.attend(values, sender_scores, receiver_scores, self.slope)  # type: ignore[union-attr]
        return ACTIVATIONS[self.activation](found.mean(axis=1))


def make_network(network: Any, num_outputs: int) -> Any:
    """A Flax module as it is, or one of the theory's one-layer networks by name.

    `sage`, `gcn` and `gcn_block`: linear output, no bias, no root term; their only parameter is the
    `kernel` (r, K). `gat`: four heads.

    Raises `ValueError` naming `network`.
    """
    if isinstance(network, nn.Module):
        if not isinstance(getattr(network, "num_layers", None), int):
            accepted = "a Flax module with num_layers, called as network(blocks, features)"
            raise fail("network", f"a {type(network).__name__}", accepted)
        return network
    check_choice("network", network, NETWORKS)
    if network == "gat":
        return GAT(num_outputs)
    if network == "sage":
        return GraphSAGE(num_outputs, num_layers=1, root=False, bias=False, layer_norm=False)
    return GCN(num_outputs, kind={"gcn": "gcn_full_ht"}.get(network, network))


def sample_blocks(
    key: jax.Array,
    lists: Neighborhoods,
    layout: Layout,
    nodes: Int[Array, " rows"],
    fan_out: Any,
    max_fan_out: int,
    num_layers: int,
) -> tuple[Block, ...]:
    """Blocks of `num_layers` rounds of sampling that end in `nodes`, innermost first.

    Layer l samples with key fold_in(key, l), and a node's sample is a function of that key and of the
    node: however often a node occurs in a layer, it has one sample there, as in DGL's blocks, which
    hold each node once. An outer layer's rows are the senders of the layer after it, at most
    rows·(1 + max_fan_out)^rounds; where that would exceed the n nodes, all nodes are computed
    instead, which gives the same values.
    """
    num_nodes = layout.in_degrees.shape[0]
    blocks: list[Block] = []
    for layer in reversed(range(num_layers)):
        layer_key = jax.random.fold_in(key, layer)
        index, mask = sample_neighbors(layer_key, lists, nodes, fan_out, max_fan_out)
        block = sampled_block(layout, nodes, index, mask)
        if layer > 0:
            if len(nodes) * (1 + max_fan_out) < num_nodes:
                block = block._replace(own=None, index=None)
                nodes = jnp.concatenate([nodes, index.reshape(-1)])
            else:
                nodes = jnp.arange(num_nodes, dtype=jnp.int32)
        blocks.append(block)
    return tuple(reversed(blocks))


def full_blocks(layout: Layout, num_layers: int) -> tuple[Block, ...]:
    """Blocks of `num_layers` rounds over all neighbours of all nodes."""
    return (FullBlock(layout),) * num_layers


def node_losses(
    loss: str,
    outputs: Float[Array | np.ndarray, "rows K"],
    targets: Float[Array | np.ndarray, "rows K"],
) -> Float[Array, " rows"]:
    """Loss of each node: `mse` ½‖output − target‖² (sum over K), or softmax `cross_entropy` in nats."""
    if loss == "mse":
        return jnp.square(outputs - targets).sum(axis=1) / 2
    return optax.softmax_cross_entropy(outputs, targets)
