"""Networks on sampled blocks and on the whole graph against plain loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.models import graphs
from boundlab.models.aggregation import aggregate_full, sampled_block
from boundlab.models.gnn import (
    GAT,
    GCN,
    GraphSAGE,
    full_blocks,
    make_network,
    node_losses,
    sample_blocks,
)
from boundlab.models.graph_layout import graph_layout
from boundlab.models.neighborhoods import neighborhoods
from boundlab.models.sampling import sample_neighbors
from boundlab.models.training import train

N, R, K, HIDDEN = 40, 3, 2, 5


@pytest.fixture(scope="module")
def graph():
    """Undirected, degrees from 0 (the last node) to 6."""
    rng = np.random.default_rng(0)
    pairs = [(0, j) for j in range(1, 7)] + [(j, j + 1) for j in range(6, N - 2)]
    return graphs.from_edges([*pairs, tuple(rng.choice(range(7, N - 1), 2, replace=False))], N)


@pytest.fixture(scope="module")
def features():
    return np.random.default_rng(1).standard_normal((N, R))


@pytest.fixture(scope="module")
def sage(graph, features):
    """Three-layer GraphSAGE, with biases and norms that are not what they start as."""
    network = GraphSAGE(K, hidden=HIDDEN)
    blocks = full_blocks(graph_layout(graph), 3)
    params = jax.jit(network.init)(jax.random.key(0), blocks, features)
    rng = np.random.default_rng(2)
    params = jax.tree.map(np.asarray, params)
    return network, jax.tree.map(lambda p: p + 0.1 * rng.standard_normal(p.shape), params)


def forward(params, values, neighbours):
    """Three layers in NumPy; neighbours[l][i] are those that node i averages in layer l."""
    p = jax.tree.map(np.asarray, params["params"])
    for layer, prefix in enumerate(("hidden_0_", "hidden_1_", "")):
        means = np.zeros_like(values)
        for i, chosen in enumerate(neighbours[layer]):
            if len(chosen):
                means[i] = values[chosen].mean(axis=0)
        values = means @ p[prefix + "kernel"] + values @ p[prefix + "root_kernel"]
        values = values + p[prefix + "bias"]
        if prefix:
            norm = p[prefix + "norm"]
            centred = values - values.mean(axis=1, keepdims=True)
            scale = np.sqrt(centred.var(axis=1, keepdims=True) + 1e-6)
            values = np.maximum(centred / scale * norm["scale"] + norm["bias"], 0)
    return values


def all_neighbours(graph):
    return [np.flatnonzero(row) for row in graph.adjacency()]


def test_three_layers_on_the_whole_graph(graph, features, sage):
    network, params = sage
    found = jax.jit(network.apply)(params, full_blocks(graph_layout(graph), 3), features)
    expected = forward(params, features, [all_neighbours(graph)] * 3)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("max_fan_out", [2, 4])
def test_three_layers_on_samples_that_nodes_share(graph, features, sage, max_fan_out):
    """A node has one sample a layer, whether frontiers are trees of slots or all nodes.

    Eight rows of two slots make a tree of 24 rows and then all nodes; of four slots all nodes at once.
    """
    network, params = sage
    lists, layout, key = neighborhoods(graph), graph_layout(graph), jax.random.key(3)
    nodes = jnp.array([0, 9, 9, N - 1, 3, 20, 21, 30], dtype=jnp.int32)

    def outputs(params):
        blocks = sample_blocks(key, lists, layout, nodes, 2, max_fan_out, 3)
        assert (blocks[2].index is None) == (max_fan_out == 2)
        result = network.apply(params, blocks, features)
        return jnp.sum(result**2), result

    slope, found = jax.jit(jax.grad(outputs, has_aux=True))(params)
    everyone, sampled = np.arange(N), []
    for layer in range(3):
        index, mask = sample_neighbors(jax.random.fold_in(key, layer), graph, everyone, 2, 2)
        sampled.append([np.asarray(i)[np.asarray(m)] for i, m in zip(index, mask, strict=True)])
    expected = forward(params, features, sampled)[np.asarray(nodes)]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    # The derivative along one direction, by central differences of the loop.
    rng = np.random.default_rng(4)
    along = jax.tree.map(lambda p: rng.standard_normal(p.shape), params)

    def shifted(size):
        moved = jax.tree.map(lambda p, a: np.asarray(p) + size * a, params, along)
        return np.sum(forward(moved, features, sampled)[np.asarray(nodes)] ** 2)

    expected = (shifted(1e-6) - shifted(-1e-6)) / 2e-6
    slope = jax.tree.map(np.asarray, slope)
    found = sum(jax.tree.leaves(jax.tree.map(lambda s, a: float(np.sum(s * a)), slope, along)))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_three_layers_of_all_neighbours_are_the_whole_graph(graph, features):
    """Losses along five steps of Adam, of all neighbours through the sampler and of the graph."""
    targets = np.eye(K)[np.arange(N) % K]
    run = train(
        jax.random.key(4),
        graph,
        features,
        targets,
        np.arange(0, N, 2),
        network=GraphSAGE(K, hidden=HIDDEN),
        loss="cross_entropy",
        optimizer="adam",
        step_size=0.01,
        batch_size=N // 2,
        fan_out=6,
        max_fan_out=6,
        num_steps=5,
        record=("batch", "full"),
    )
    np.testing.assert_allclose(run.batch_loss, run.full_loss, rtol=1e-12)
    assert run.full_loss[-1] < run.full_loss[0]


def test_attention_against_a_loop(graph, features):
    network = GAT(K)
    layout = graph_layout(graph)
    blocks = full_blocks(layout, 1)
    params = jax.jit(network.init)(jax.random.key(6), blocks, features)
    p = jax.tree.map(np.asarray, params["params"])
    z = (features @ p["kernel"]).reshape(N, 4, K)

    def by_loop(node, neighbours):
        total = np.zeros((4, K))
        for h in range(4):
            own = z[node, h] @ p["receiver_attention"][h]
            scores = np.array([z[j, h] @ p["sender_attention"][h] + own for j in neighbours])
            powers = np.exp(np.where(scores > 0, scores, 0.2 * scores))
            for power, j in zip(powers, neighbours, strict=True):
                total[h] += power / powers.sum() * z[j, h]
        return total.mean(axis=0)

    found = jax.jit(network.apply)(params, blocks, features)
    expected = [by_loop(i, neighbours) for i, neighbours in enumerate(all_neighbours(graph))]
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)
    nodes = jnp.array([0, 0, N - 1, 12], dtype=jnp.int32)
    index, mask = sample_neighbors(jax.random.key(7), graph, nodes, 3, 4)
    block = sampled_block(layout, nodes, index, mask)

    def outputs(params):
        result = network.apply(params, (block,), features)
        return jnp.sum(result**2), result

    slopes, found = jax.jit(jax.grad(outputs, has_aux=True))(params)
    expected = [
        by_loop(int(node), np.asarray(i)[np.asarray(m)])
        for node, i, m in zip(nodes, index, mask, strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))


def test_two_convolutions_against_the_dense_matrix(graph, features):
    network = GCN(K, num_layers=2, hidden=HIDDEN, bias=True)
    blocks = full_blocks(graph_layout(graph), 2)
    params = jax.jit(network.init)(jax.random.key(8), blocks, features)
    p = jax.tree.map(np.asarray, params["params"])
    A, d = graph.adjacency(), np.maximum(graph.degrees(), 1)
    A = A / np.sqrt(d[:, None] * d[None, :])
    hidden = np.maximum(A @ features @ p["hidden_0_kernel"] + p["hidden_0_bias"], 0)
    expected = A @ hidden @ p["kernel"] + p["bias"]
    found = jax.jit(network.apply)(params, blocks, features)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


def test_named_networks_have_one_kernel(graph, features):
    blocks = full_blocks(graph_layout(graph), 1)
    for name in ("sage", "gcn", "gcn_block"):
        network = make_network(name, K)
        params = jax.eval_shape(network.init, jax.random.key(0), blocks, features)
        assert jax.tree.map(jnp.shape, params) == {"params": {"kernel": (R, K)}}
    network = GraphSAGE(K)
    assert make_network(network, K) is network


def test_output_activations(graph, features):
    blocks = full_blocks(graph_layout(graph), 1)
    kernel = {"params": {"kernel": np.random.default_rng(9).standard_normal((R, K))}}
    linear = np.asarray(aggregate_full(graph, features, "mean")) @ kernel["params"]["kernel"]
    for name, factor in (("linear", 1.0), ("relu", 1.0), ("scaled_relu", np.sqrt(2.0))):
        network = GCN(K, kind="mean", activation=name)
        found = jax.jit(network.apply)(kernel, blocks, features)
        expected = linear if name == "linear" else factor * np.maximum(linear, 0)
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_losses_of_nodes():
    """½‖·‖² summed over outputs, and −log of the class's probability."""
    outputs, targets = np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])
    losses = jax.jit(node_losses, static_argnums=0)
    np.testing.assert_allclose(losses("mse", outputs, targets), [1.0, 0.5], rtol=1e-15)
    expected = [np.log(1 + np.exp(-1.0)), np.log(2.0)]
    found = losses("cross_entropy", outputs, targets)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("num_layers", lambda: GCN(K, kind="gcn_block", num_layers=2)),
        ("num_layers", lambda: GCN(K, num_layers=0)),
        ("num_outputs", lambda: GAT(0)),
        ("heads", lambda: GAT(K, heads=0)),
        ("slope", lambda: GAT(K, slope=float("nan"))),
        ("hidden", lambda: GraphSAGE(K, hidden=0)),
        ("kind", lambda: GCN(K, kind="median")),
        ("activation", lambda: GraphSAGE(K, activation="tanh")),
        ("network", lambda: make_network("mlp", K)),
        ("network", lambda: make_network(3, K)),
    ],
)
def test_bad_input_names_the_argument(as_users_call, name, make):
    with pytest.raises(ValueError, match=f"^{name}: got "):
        make()


def test_fan_out_zero_leaves_only_the_rows_themselves(graph, features):
    """Inner layers whose samples have no slots; against the loop without neighbours."""
    network, nodes = GraphSAGE(K, num_layers=2, hidden=HIDDEN, layer_norm=False), [0, 7]
    lists, layout = neighborhoods(graph), graph_layout(graph)
    rows = jnp.asarray(nodes, dtype=jnp.int32)

    @jax.jit
    def outputs(sample_key, initial_key):
        blocks = sample_blocks(sample_key, lists, layout, rows, 0, 0, 2)
        params = network.init(initial_key, blocks, features[nodes])
        return params, network.apply(params, blocks, features)

    params, found = outputs(jax.random.key(3), jax.random.key(4))
    p = jax.tree.map(np.asarray, params["params"])
    hidden = np.maximum(features[nodes] @ p["hidden_0_root_kernel"] + p["hidden_0_bias"], 0)
    expected = hidden @ p["root_kernel"] + p["bias"]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_number_of_blocks_is_checked(graph, features, sage):
    network, params = sage
    with pytest.raises(ValueError, match=r"^blocks: got 2 of them"):
        network.apply(params, full_blocks(graph_layout(graph), 2), features)
