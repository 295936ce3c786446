"""Score networks: a second implementation by hand, equivariance, padding, symmetry, bad input."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.models import sde
from boundlab.models.score_networks import (
    FeatureScore,
    GraphModel,
    StructureScore,
    graph_score,
    init_scores,
    output_scale,
)

PLACES, FEATURES = 6, 2
FEATURE_NET = FeatureScore(FEATURES, num_layers=2, hidden=4)
STRUCTURE_NET = StructureScore(num_layers=2, hidden=4, heads=2, hidden_channels=3, final_channels=2)
MODEL = GraphModel(FEATURE_NET, STRUCTURE_NET, sde.vp(0.1, 5.0), sde.vp(0.1, 9.0))
MASK = np.arange(PLACES) < 4


def _graph(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.standard_normal((PLACES, PLACES)), 1)
    return rng.standard_normal((PLACES, FEATURES)), upper + upper.T


@pytest.fixture(scope="module")
def params(key: jax.Array) -> dict[str, Any]:
    """Parameters of both networks of the shapes that are drawn, biases away from 0."""
    shapes = jax.eval_shape(lambda k: init_scores(k, MODEL, *_graph(), MASK), key)
    rng = np.random.default_rng(1)
    return jax.tree.map(lambda leaf: 0.5 * rng.standard_normal(leaf.shape), shapes)


@pytest.fixture(scope="module")
def apply() -> dict[str, Any]:
    """Both networks, compiled once."""
    return {"features": jax.jit(FEATURE_NET.apply), "structure": jax.jit(STRUCTURE_NET.apply)}


def _dense(values: np.ndarray, params: dict[str, Any]) -> np.ndarray:
    for layer in range(len(params)):
        values = np.where(values > 0, values, np.expm1(values)) if layer else values
        one = params[f"Dense_{layer}"]
        values = values @ np.asarray(one["kernel"]) + np.asarray(one["bias"])
    return values


def _operator(adjacency: np.ndarray) -> np.ndarray:
    looped = adjacency - np.diag(np.diag(adjacency)) + np.eye(len(adjacency))
    degree = np.maximum(looped.sum(axis=1), 1.0)
    return looped / np.sqrt(np.outer(degree, degree))


def test_features_by_hand(apply: dict[str, Any], params: dict[str, Any]) -> None:
    """Four true nodes alone, in NumPy."""
    x, adjacency = _graph()
    own = params["features"]["params"]
    small, values = _operator(adjacency[:4, :4]), [x[:4]]
    for layer in range(2):
        kernel, bias = np.asarray(own[f"kernel_{layer}"]), np.asarray(own[f"bias_{layer}"])
        values.append(np.tanh(small @ values[-1] @ kernel + bias))
    expected = _dense(np.hstack(values), own["_Perceptron_0"])
    found = np.asarray(apply["features"](params["features"], x, adjacency, MASK))
    np.testing.assert_allclose(found[:4], expected, rtol=1e-10, atol=1e-12)
    assert (found[4:] == 0).all()


def test_structure_by_hand(apply: dict[str, Any], params: dict[str, Any]) -> None:
    """Four true nodes alone, in NumPy, channel by channel and head by head."""
    x, adjacency = _graph()
    own = params["structure"]["params"]
    values, channels = x[:4], [adjacency[:4, :4], adjacency[:4, :4] @ adjacency[:4, :4]]
    everything = list(channels)
    for layer in range(2):
        part, maps, gathered = own[f"_AttentionLayer_{layer}"], [], []
        for c, channel in enumerate(channels):
            kernel, bias = np.asarray(part["kernel"][c]), np.asarray(part["bias"][c])
            q, k, v = np.split(_operator(channel) @ values @ kernel + bias, 3, axis=1)
            heads = [np.tanh(q[:, h] @ k[:, h].T / 2.0) for h in (slice(0, 2), slice(2, 4))]
            maps.append((heads[0] + heads[1] + heads[0].T + heads[1].T) / 4)
            gathered.append(v)
        values = np.tanh(_dense(np.hstack(gathered), part["_Perceptron_0"]))
        pairs = _dense(np.stack([*maps, *channels], axis=2), part["_Perceptron_1"])
        channels = list(np.moveaxis(pairs + pairs.swapaxes(0, 1), 2, 0))
        everything += channels
    out = _dense(np.stack(everything, axis=2), own["_Perceptron_0"])[:, :, 0]
    expected = (out + out.T) / 2 * (1 - np.eye(4))
    found = np.asarray(apply["structure"](params["structure"], x, adjacency, MASK))
    np.testing.assert_allclose(found[:4, :4], expected, rtol=1e-10, atol=1e-12)
    assert (found[4:] == 0).all()
    assert (found == found.T).all()


@pytest.mark.parametrize("block", ["features", "structure"])
def test_what_is_masked_is_never_read(
    block: str, apply: dict[str, Any], params: dict[str, Any]
) -> None:
    x, adjacency = _graph()
    padded, holes = x.copy(), adjacency.copy()
    padded[4:], holes[4:], holes[:, 4:] = np.nan, np.nan, np.inf
    np.fill_diagonal(holes, 7.0)
    clean = apply[block](params[block], x, adjacency, MASK)
    np.testing.assert_array_equal(apply[block](params[block], padded, holes, MASK), clean)
    none = apply[block](params[block], x, adjacency, np.zeros(PLACES, bool))
    assert (np.asarray(none) == 0).all()


@pytest.mark.parametrize("block", ["features", "structure"])
def test_derivatives_are_finite_where_masked(
    block: str, apply: dict[str, Any], params: dict[str, Any]
) -> None:
    x, adjacency = _graph()
    x[4:], adjacency[4:], adjacency[:, 4:] = np.nan, np.nan, np.nan

    def total(own: Any, x: jax.Array) -> jax.Array:
        return jnp.sum(apply[block](own, x, adjacency, MASK) ** 2)

    slopes = jax.jit(jax.grad(total, (0, 1)))(params[block], jnp.asarray(x))
    for slope in jax.tree.leaves(slopes):
        assert np.isfinite(slope).all()


@pytest.mark.parametrize("block", ["features", "structure"])
def test_relabelling_nodes(block: str, apply: dict[str, Any], params: dict[str, Any]) -> None:
    x, adjacency = _graph()
    order = np.array([3, 5, 0, 4, 2, 1])
    found = np.asarray(apply[block](params[block], x, adjacency, MASK))[order]
    found = found[:, order] if block == "structure" else found
    moved = apply[block](params[block], x[order], adjacency[order][:, order], MASK[order])
    np.testing.assert_allclose(np.asarray(moved), found, rtol=0, atol=1e-10)


def test_precision_follows_the_features_or_the_field(key: jax.Array) -> None:
    x, adjacency = _graph()
    small = FeatureScore(FEATURES, 1, 2, param_dtype=jnp.float32)
    own = jax.jit(small.init)(key, x, adjacency, MASK)
    assert {leaf.dtype for leaf in jax.tree.leaves(own)} == {np.dtype(np.float32)}
    assert jax.eval_shape(small.apply, own, x, adjacency, MASK).dtype == np.float64
    single = jax.eval_shape(
        StructureScore(1, 2, 1, 1, 1, 1).init_with_output,
        key,
        x.astype(np.float32),
        adjacency.astype(np.float32),
        MASK,
    )
    assert {leaf.dtype for leaf in jax.tree.leaves(single)} == {np.dtype(np.float32)}


def test_scores_are_scaled_block_by_block(params: dict[str, Any], apply: dict[str, Any]) -> None:
    """−net/σ with each block's own σ, one time a graph or one for all; net itself for VE."""
    pair = [np.stack(both) for both in zip(_graph(0), _graph(1), strict=True)]
    mask = np.stack([MASK, np.ones(PLACES, bool)])
    times = np.array([0.3, 0.8])
    both = jax.jit(graph_score(MODEL, params, mask))(*pair, times)
    for name, found, top in zip(params, both, (5.0, 9.0), strict=True):
        rate = 0.1 * times + (top - 0.1) * times**2 / 2
        for i in range(2):
            net = apply[name](params[name], pair[0][i], pair[1][i], mask[i])
            std = np.sqrt(1 - np.exp(-rate[i]))
            np.testing.assert_allclose(found[i], -net / std, rtol=1e-10, atol=1e-14)
    assert float(output_scale(sde.ve(0.2, 1.0), 0.4)) == 1.0


class _Block(nn.Module):
    """Network without parameters: one of its inputs, 0 where no node is."""

    structure: bool

    def __call__(self, x: jax.Array, adjacency: jax.Array, mask: jax.Array) -> jax.Array:
        return jnp.where(mask[:, None], adjacency if self.structure else x, 0)


def test_one_time_for_all_graphs() -> None:
    pair = [np.stack(both) for both in zip(_graph(0), _graph(1), strict=True)]
    mask = np.stack([MASK, np.ones(PLACES, bool)])
    model = GraphModel(_Block(False), _Block(True), *MODEL[2:])
    found = jax.jit(graph_score(model, {"features": {}, "structure": {}}, mask))(*pair, 0.8)
    for score, net, top in zip(found, pair, (5.0, 9.0), strict=True):
        std = np.sqrt(1 - np.exp(-(0.08 + (top - 0.1) * 0.32)))
        expected = np.where(mask[:, :, None], -net / std, 0)
        np.testing.assert_allclose(score, expected, rtol=1e-12)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("x", {"x": np.zeros(PLACES)}),
        ("x", {"x": np.zeros((PLACES, FEATURES + 1))}),
        ("adjacency", {"adjacency": np.zeros((PLACES, PLACES + 1))}),
        ("adjacency", {"adjacency": np.triu(np.ones((PLACES, PLACES)), 1)}),
        ("mask", {"mask": np.ones(PLACES - 1, bool)}),
        ("mask", {"mask": np.ones(PLACES)}),
    ],
)
def test_bad_input_is_named(name: str, change: dict[str, Any], params: dict[str, Any]) -> None:
    x, adjacency = _graph()
    given = {"x": x, "adjacency": adjacency, "mask": MASK} | change
    with pytest.raises(ValueError, match=f"^{name}: "):
        FEATURE_NET.apply(params["features"], **given)


@pytest.mark.usefixtures("as_users_call")
def test_bad_sizes_are_named(params: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^num_features: "):
        FeatureScore(0)
    with pytest.raises(ValueError, match=r"^heads: "):
        StructureScore(hidden=6, heads=4)
    with pytest.raises(ValueError, match=r"^init_channels: "):
        StructureScore(init_channels=0)
    with pytest.raises(ValueError, match=r"^mask: "):
        graph_score(MODEL, params, MASK)
    with pytest.raises(ValueError, match=r"^params: "):
        graph_score(MODEL, {"features": 0}, MASK[None])


def test_networks_are_flax_modules() -> None:
    assert isinstance(FEATURE_NET, nn.Module)
    assert isinstance(STRUCTURE_NET, nn.Module)
