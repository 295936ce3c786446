"""Score networks of graphs, in Flax linen: one for node features, one for structure.

Symbols: n places of a graph, F features a node, A the (noised, real-valued) adjacency matrix, C
channels of it; Â = D^{−½}(A + I)D^{−½} with unit self-loops, D the row sums of A + I clamped at 1 from
below, since a noised A has negative entries. A network takes one graph and is mapped over batches by
`jax.vmap`; it sees no time, which enters only where its output is scaled (`graph_score`). What stands
where no node is, and on the diagonal of A, is never read. Perceptrons of pairs see each pair once: of a
symmetric matrix only the P places of a rectangle that holds its upper triangle (`_pairs`), channels in
front, so that their products and activations run over long rows.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from boundlab.checks import check_integer, check_key, check_shape, fail
from boundlab.models.sde import VE
from boundlab.precision import is_traced

# Variance 1/(mean of fan-in and fan-out): Glorot and Bengio's. A leading axis holds channels.
_initial = nn.initializers.variance_scaling(1.0, "fan_avg", "uniform", batch_axis=())
_initial_of_channels = nn.initializers.variance_scaling(1.0, "fan_avg", "uniform", batch_axis=0)
_zeros = nn.initializers.zeros_init()


class FeatureScore(nn.Module):
    """Network of the features' score: graph convolutions, all their values into one perceptron.

    x_0 = x, x_{l+1} = tanh(Â x_l W_l + b_l); output MLP[x_0, …, x_L] with three layers and ELU.
    `apply(params, x, adjacency, mask)` on one graph: x (n, F), adjacency (n, n) real and symmetric, mask
    (n,) bool, true for nodes; output (n, F) in the precision of x, 0 where masked.

    Fields: `num_features` F; `num_layers` L; `hidden` width; `param_dtype` of the parameters, by default
    that of the x with which they are initialised.

    Source: [jo2022score].
    """

    num_features: int
    num_layers: int = 3
    hidden: int = 32
    param_dtype: Any = None

    def __post_init__(self) -> None:
        for name in ("num_features", "num_layers", "hidden"):
            check_integer(name, getattr(self, name), 1)
        super().__post_init__()

    @nn.compact
    def __call__(self, x: Any, adjacency: Any, mask: Any) -> Float[Array, "n F"]:
        x, adjacency, mask = _checked(x, adjacency, mask)
        if x.shape[1] != self.num_features:
            raise fail("x", f"shape {x.shape}", f"(n, {self.num_features})")
        dtype = self.param_dtype or x.dtype
        operator, values = _normalized(adjacency), [x]
        for layer in range(self.num_layers):
            shape = (values[-1].shape[1], self.hidden)
            kernel = self.param(f"kernel_{layer}", _initial, shape, dtype).astype(x.dtype)
            bias = self.param(f"bias_{layer}", _zeros, (self.hidden,), dtype).astype(x.dtype)
            values.append(jnp.tanh(operator @ (values[-1] @ kernel) + bias[None, :]))
        everything = jnp.concatenate(values, axis=1)
        width = 2 * everything.shape[1]
        result = _Perceptron((width, width, self.num_features), dtype)(everything)
        return jnp.where(mask[:, None], result, 0)


class StructureScore(nn.Module):
    """Network of the adjacency's score: attention on channels of A, all channels into one perceptron.

    Channels A, A², …; each layer makes new node values and new channels of both, see `_AttentionLayer`.
    Output: a perceptron with three layers and ELU over all channels of a pair.
    `apply(params, x, adjacency, mask)` as `FeatureScore`; output (n, n), symmetric to the last bit, zero
    diagonal, 0 where masked.

    Fields: `num_layers`; `hidden` width of node values; `heads`, a divisor of it; `init_channels` the
    powers of A, `hidden_channels` and `final_channels` of the layers; `param_dtype` as `FeatureScore`.

    Source: [jo2022score].
    """

    num_layers: int = 5
    hidden: int = 32
    heads: int = 4
    init_channels: int = 2
    hidden_channels: int = 8
    final_channels: int = 4
    param_dtype: Any = None

    def __post_init__(self) -> None:
        for name in ("num_layers", "hidden", "heads"):
            check_integer(name, getattr(self, name), 1)
        for name in ("init_channels", "hidden_channels", "final_channels"):
            check_integer(name, getattr(self, name), 1)
        if self.hidden % self.heads:
            raise fail("heads", self.heads, f"a divisor of hidden = {self.hidden}")
        super().__post_init__()

    @nn.compact
    def __call__(self, x: Any, adjacency: Any, mask: Any) -> Float[Array, "n n"]:
        x, adjacency, mask = _checked(x, adjacency, mask)
        dtype = self.param_dtype or x.dtype
        nodes = mask[:, None] & mask[None, :]
        powers = [adjacency]
        for _ in range(self.init_channels - 1):
            powers.append(powers[-1] @ adjacency)
        pairs = _pairs(jnp.stack(powers))
        everything = [pairs]
        widths = [self.hidden_channels] * (self.num_layers - 1) + [self.final_channels]
        for width in widths:
            layer = _AttentionLayer(width, self.hidden, self.heads, dtype)
            x, pairs = layer(x, pairs, nodes)
            x = jnp.where(mask[:, None], x, 0)
            everything.append(pairs)
        pairs = jnp.concatenate(everything)
        width = 2 * len(pairs)
        result = _Perceptron((width, width, 1), dtype, channels_first=True)(pairs)
        return jnp.where(nodes, _matrix(result, len(mask))[0], 0)


class GraphModel(NamedTuple):
    """Two networks and the SDEs whose scores they learn."""

    features: Any
    """`FeatureScore`, or a Flax module called alike."""
    structure: Any
    """`StructureScore`, or a Flax module called alike."""
    sde_features: Any
    """SDE of `boundlab.models.sde`."""
    sde_structure: Any


def init_scores(key: Any, model: GraphModel, x: Any, adjacency: Any, mask: Any) -> dict[str, Any]:
    """Initial parameters of both networks, `features` and `structure`, for one graph or a batch.

    Args:
        key: one typed key.
        model: the networks.
        x: (n, F) or (B, n, F); only its shape and precision matter, as those of the others.
        adjacency: (n, n) or (B, n, n).
        mask: (n,) or (B, n) bool.

    Raises:
        ValueError: naming the argument.

    """
    check_key("key", key)
    if np.ndim(x) == 3:
        x, adjacency, mask = (jnp.asarray(value)[0] for value in (x, adjacency, mask))
    return {
        "features": _init(model.features, jax.random.fold_in(key, 0), x, adjacency, mask),
        "structure": _init(model.structure, jax.random.fold_in(key, 1), x, adjacency, mask),
    }


# Compiled as a whole: one by one the many small draws take longer.
@functools.partial(jax.jit, static_argnums=0)
def _init(network: Any, key: Any, x: jax.Array, adjacency: jax.Array, mask: jax.Array) -> Any:
    return network.init(key, x, adjacency, mask)


def graph_score(
    model: GraphModel, params: Any, mask: Any
) -> Callable[..., tuple[jax.Array, jax.Array]]:
    """Scores of a batch of graphs by two networks, as `boundlab.models.samplers.sample_graphs` wants.

    −net(x, A)/σ(t) of each block, σ² the variance of its own SDE at t; net itself for a
    variance-exploding SDE, whose σ spans orders of magnitude.

    Args:
        model: networks and SDEs.
        params: {"features", "structure"}, of `init_scores` or of training.
        mask: (B, n) bool, true for nodes.

    Returns:
        Function (x (B, n, F), adjacency (B, n, n), t) to the two scores; t > 0 is a scalar or (B,).

    Raises:
        ValueError: naming the argument.

    Source: [jo2022score], docs/graph_diffusion.md#training-loss.

    """
    check_shape("mask", mask, (None, None), "one row a graph")
    if not isinstance(params, dict) or not {"features", "structure"} <= set(params):
        raise fail("params", "other parameters", "a dict of 'features' and 'structure'")
    present = jnp.asarray(mask)

    def score(x: jax.Array, adjacency: jax.Array, t: jax.Array) -> tuple[jax.Array, jax.Array]:
        networks = ((model.features, "features"), (model.structure, "structure"))
        sdes = (model.sde_features, model.sde_structure)
        found = []
        for (network, name), sde in zip(networks, sdes, strict=True):
            block = params[name]
            values = jax.vmap(network.apply, in_axes=(None, 0, 0, 0))(block, x, adjacency, present)
            scale = jnp.broadcast_to(output_scale(sde, t), (len(values),)).astype(values.dtype)
            found.append(values * scale[:, None, None])
        return found[0], found[1]

    return score


def output_scale(sde: Any, t: Any) -> jax.Array:
    """What a network's output is multiplied by to be a score: −1/σ(t), or 1 for a VE SDE."""
    if isinstance(sde, VE):
        return jnp.ones_like(sde.variance(t))
    return -jax.lax.rsqrt(sde.variance(t))


class _AttentionLayer(nn.Module):
    """New node values and channels: Q, K, V by one graph convolution on each channel.

    S = mean over heads of tanh(Q_h K_hᵀ/√hidden), symmetrised; values tanh(MLP[V of all channels]);
    channels MLP[S and A of all channels] of each pair, symmetrised.
    """

    num_channels: int
    hidden: int
    heads: int
    param_dtype: Any

    @nn.compact
    def __call__(
        self, x: Float[Array, "n r"], pairs: Float[Array, "C P"], nodes: Bool[Array, "n n"]
    ) -> tuple[Float[Array, "n hidden"], Float[Array, "D P"]]:
        count, n = len(pairs), len(x)
        shape = (count, x.shape[1], 3 * self.hidden)
        kernel = self.param("kernel", _initial_of_channels, shape, self.param_dtype)
        bias = self.param("bias", _zeros, (count, 3 * self.hidden), self.param_dtype)
        kernel, bias = (jnp.asarray(parameter, x.dtype) for parameter in (kernel, bias))
        # Convolution before the weights, at a third of the columns; rows in the order (node, channel),
        # in which the perceptron of all channels reads them without a copy.
        operator = _normalized(jnp.where(nodes, _matrix(pairs, n), 0))
        convolved = operator.transpose(1, 0, 2).reshape(n * count, n) @ x
        convolved = convolved.reshape(n, count, -1)
        split = 2 * self.hidden
        both = convolved.transpose(1, 0, 2) @ kernel[:, :, :split] + bias[:, None, :split]
        query, keys = jnp.split(both, 2, axis=2)

        def by_head(part: Float[Array, "C n hidden"]) -> Float[Array, "C heads n width"]:
            return part.reshape(count, n, self.heads, -1).transpose(0, 2, 1, 3)

        products = by_head(query) @ by_head(keys).swapaxes(2, 3)
        attention = jnp.tanh(products / np.sqrt(self.hidden).astype(x.dtype)).mean(axis=1)
        perceptron = _Perceptron((self.hidden, self.hidden), self.param_dtype, name="_Perceptron_0")
        values = (kernel[:, :, split:], bias[:, split:])
        mixed = perceptron(convolved.reshape(n, -1), values)
        widths = (2 * max(count, self.num_channels), self.num_channels)
        perceptron = _Perceptron(
            widths, self.param_dtype, channels_first=True, name="_Perceptron_1"
        )
        pairs = perceptron(jnp.concatenate([_pairs(attention), pairs]))
        return jnp.tanh(mixed), 2 * pairs  # a pair's value and its transpose's are equal


class _Perceptron(nn.Module):
    """Dense layers of `widths` over the last axis, or the first of two; ELU between them.

    `before`: kernel (C, r, h) and bias (C, h) of affine maps of C blocks of r values each, whose results
    the first layer takes; they are made one with it. Parameters are named as those of `nn.Dense`.
    """

    widths: Sequence[int]
    param_dtype: Any
    channels_first: bool = False

    @nn.compact
    def __call__(
        self, values: Float[Array, "*shape"], before: tuple[jax.Array, jax.Array] | None = None
    ) -> Float[Array, "*result"]:
        dtype = values.dtype
        rows = values.shape[0 if self.channels_first else -1] if before is None else before[1].size
        for layer, width in enumerate(self.widths):
            dense = _Dense(rows, width, self.param_dtype, name=f"Dense_{layer}")
            kernel, bias = dense(dtype)
            if layer:
                values = _elu(values)
            elif before is not None:
                blocks = kernel.reshape(*before[1].shape, width)
                bias = before[1].reshape(-1) @ kernel + bias
                kernel = (before[0] @ blocks).reshape(-1, width)
            if self.channels_first:
                values = kernel.T @ values + bias[:, None]
            else:
                values = values @ kernel + bias.reshape((1,) * (values.ndim - 1) + (width,))
            rows = width
        return values


class _Dense(nn.Module):
    """Kernel and bias of one layer, in the precision asked for."""

    rows: int
    width: int
    param_dtype: Any

    @nn.compact
    def __call__(self, dtype: Any) -> tuple[Float[Array, "rows width"], Float[Array, " width"]]:
        kernel = self.param("kernel", _initial, (self.rows, self.width), self.param_dtype)
        bias = self.param("bias", _zeros, (self.width,), self.param_dtype)
        return jnp.asarray(kernel, dtype), jnp.asarray(bias, dtype)


def _elu(values: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """x, or eˣ − 1 where x ≤ 0; in single precision as it stands, to within 2⁻²⁴ of the exact one."""
    if values.dtype == np.float64:
        return nn.elu(values)
    negative = jnp.where(values > 0, 0, values)
    return jnp.where(values > 0, values, jnp.exp(negative) - 1)


def _pairs(matrices: Float[Array, "*C n n"]) -> Float[Array, "*C P"]:
    """Symmetric parts, each pair of places once (for odd n those of the middle row twice).

    Row i < n/2 of the upper triangle and row n − 1 − i, turned round, fill one row of ⌈n/2⌉ by n − 1.
    """
    n = matrices.shape[-1]
    half = (n + 1) // 2
    means = (matrices + matrices.swapaxes(-1, -2)) / 2
    upper = ~np.tri(half, n - 1, -1, dtype=bool)
    rectangle = jnp.where(upper, means[..., :half, 1:], means[..., ::-1, ::-1][..., :half, :-1])
    return rectangle.reshape(*matrices.shape[:-2], half * (n - 1))


def _matrix(pairs: Float[Array, "*C P"], n: int) -> Float[Array, "*C n n"]:
    """Symmetric matrices of zero diagonal that have these `_pairs`."""
    half = (n + 1) // 2
    rectangle = pairs.reshape(*pairs.shape[:-1], half, n - 1)
    edge = jnp.zeros((*rectangle.shape[:-1], 1), pairs.dtype)
    top = jnp.concatenate([edge, rectangle], axis=-1)
    bottom = jnp.concatenate([rectangle, edge], axis=-1)[..., ::-1, ::-1]
    rows = jnp.concatenate([top, bottom[..., 2 * half - n :, :]], axis=-2)
    upper = jnp.where(np.tri(n, dtype=bool), 0, rows)
    return upper + upper.swapaxes(-1, -2)


def _normalized(adjacency: Float[Array, "*C n n"]) -> Float[Array, "*C n n"]:
    """Â of each channel; what stands on the diagonal is replaced by the self-loop."""
    loop = np.eye(adjacency.shape[-1], dtype=bool)
    looped = jnp.where(loop, jnp.ones((), adjacency.dtype), adjacency)
    scale = jax.lax.rsqrt(jnp.maximum(looped.sum(axis=-1), 1))
    return scale[..., :, None] * looped * scale[..., None, :]


def _checked(x: Any, adjacency: Any, mask: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
    """One graph with zeros where no node is and on the diagonal of the adjacency."""
    check_shape("x", x, (None, None), "one graph: map over a batch by jax.vmap")
    n = np.shape(x)[0]
    check_shape("adjacency", adjacency, (n, n), "of one graph")
    check_shape("mask", mask, (n,), "one entry a row of x")
    present = jnp.asarray(mask)
    if present.dtype != bool:
        raise fail("mask", f"values of type {present.dtype}", "bool, true for nodes")
    values = jnp.asarray(x)
    if not jnp.issubdtype(values.dtype, jnp.floating):
        values = values.astype(jnp.result_type(float))
    values = jnp.where(present[:, None], values, 0)
    pairs = present[:, None] & present[None, :] & ~np.eye(n, dtype=bool)
    matrix = jnp.asarray(adjacency).astype(values.dtype)
    if not is_traced(matrix, mask):
        known = np.where(np.asarray(pairs), np.asarray(matrix), 0)
        if not np.allclose(known, known.T, rtol=1e-4, atol=1e-5, equal_nan=True):
            raise fail("adjacency", "a matrix that is not symmetric", "a symmetric matrix")
    return values, jnp.where(pairs, matrix, 0), present
