"""The training loop against dense matrices, hand-made steps and itself under vmap."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.special

from boundlab.models import graphs
from boundlab.models.gnn import GAT, GraphSAGE
from boundlab.models.sampling import sample_batch, sample_neighbors
from boundlab.models.training import train

N, R, K, STEPS = 24, 3, 4, 50
LARGEST = 4
TRAIN = np.array([0, 1, 2, 4, 5, 7, 9, 10, 12, 13, 15, 17, 18, 20, 21, 23])
VALIDATION = np.array([3, 6, 8, 11])
# Runs from given parameters share one program too; it records what depends on all draws.
FROM_START = {"record": ("sampled", "full", "validation"), "validation_nodes": None}
# One network shows that all losses agree; of the others the tests share one program each.
RECORDS = {
    "sage": {},
    "gcn": {"record": ("batch",)},
    "gcn_block": {"record": ("batch", "full")},
    "gat": {"record": ("batch",)},
}


@pytest.fixture(scope="module")
def graph():
    """Degrees from 0 (node 23, a train node) to 4 (nodes 0 and 8)."""
    pairs = [(0, j) for j in range(1, LARGEST + 1)] + [(j, j + 1) for j in range(LARGEST, N - 2)]
    graph = graphs.from_edges([*pairs, (8, 14), (10, 20), (8, 18), (1, 2)], N)
    assert graph.degrees().max() == LARGEST
    assert graph.degrees()[23] == 0
    return graph


@pytest.fixture(scope="module")
def matrices(graph):
    """Dense aggregation of each one-layer network without attention, all neighbours."""
    A, d = graph.adjacency(), graph.degrees()
    inverse = np.divide(1.0, d, out=np.zeros(N), where=d > 0)
    gcn = np.sqrt(inverse)[:, None] * A * np.sqrt(inverse)[None, :]
    return {"sage": inverse[:, None] * A, "gcn": gcn, "gcn_block": gcn}


@pytest.fixture(scope="module")
def features():
    return np.random.default_rng(1).standard_normal((N, R))


@pytest.fixture(scope="module")
def targets():
    """One-hot; class 3 is absent from the train nodes."""
    labels = np.random.default_rng(2).integers(0, K, N)
    labels[TRAIN] %= K - 1
    return np.eye(K)[labels]


@pytest.fixture
def run(key, graph, features, targets):
    """`train` on the fixtures, with a few arguments changed; most tests share one program."""

    def call(**change):
        arguments = {
            "key": key,
            "graph": graph,
            "features": features,
            "targets": targets,
            "train_nodes": TRAIN,
            "validation_nodes": VALIDATION,
            "step_size": 0.1,
            "batch_size": len(TRAIN),
            "fan_out": LARGEST,
            "num_steps": STEPS,
            "max_batch_size": len(TRAIN) + 9,
            "max_fan_out": LARGEST + 9,
        } | change
        return train(**arguments)

    return call


def full_graph_descent(loss, params, optimizer):
    """Losses before each update and the parameters after all, by `jax.grad` and optax alone."""

    def step(carry, _):
        params, state = carry
        value, slope = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(slope, state, params)
        return (optax.apply_updates(params, updates), state), value

    with jax.numpy_dtype_promotion("standard"):
        start = (params, optimizer.init(params))
        (params, _), losses = jax.jit(lambda s: jax.lax.scan(step, s, None, STEPS))(start)
    return losses, params


def linear_descent(inputs, targets, start, nodes=TRAIN):
    """The same with the squared loss of the outputs inputs @ kernel, by NumPy alone."""
    X, Y, kernel = inputs[nodes], targets[nodes], kernel_of(start)
    losses = []
    for _ in range(STEPS):
        errors = X @ kernel - Y
        losses.append(np.sum(errors**2) / (2 * len(nodes)))
        kernel = kernel - 0.1 * X.T @ errors / len(nodes)
    return losses, {"params": {"kernel": kernel}}


def kernel_of(params):
    """The one array of a network with one parameter."""
    return np.asarray(params["params"]["kernel"])


@pytest.fixture(scope="module")
def attention_descent(graph, features, targets):
    """Full-graph descent with one-layer attention; its start depends on the key alone."""
    outputs, found = attention(graph, features), {}

    def loss(params):
        return jnp.sum((outputs(params)[TRAIN] - targets[TRAIN]) ** 2) / (2 * len(TRAIN))

    def call(start):
        if not found:
            found["start"], found["run"] = start, full_graph_descent(loss, start, optax.sgd(0.1))
        jax.tree.map(np.testing.assert_array_equal, start, found["start"])
        return found["run"]

    return call


def attention(graph, features):
    """Outputs of one-layer attention from dense masks, as a function of its parameters."""
    A = graph.adjacency()

    def outputs(params):
        p = params["params"]
        z = (features @ p["kernel"]).reshape(N, 4, K)
        scores = jnp.einsum("jhk,hk->jh", z, p["sender_attention"])[None, :, :]
        scores = scores + jnp.einsum("ihk,hk->ih", z, p["receiver_attention"])[:, None, :]
        powers = A[:, :, None] * jnp.exp(jnp.where(scores > 0, scores, 0.2 * scores))
        total = powers.sum(axis=1, keepdims=True)
        weights = powers / jnp.where(total > 0, total, 1.0)
        return jnp.einsum("ijh,jhk->ik", weights, z) / 4

    return outputs


@pytest.mark.parametrize(
    ("network", "sampled"),
    [("sage", True), ("sage", False), ("gcn", True), ("gat", True), ("gat", False)],
)
def test_all_neighbours_and_all_nodes_are_full_graph_descent(
    run, features, targets, matrices, attention_descent, network, sampled
):
    """Fifty steps, through the sampler and, where nothing has to be sampled, on the whole graph."""
    change = RECORDS[network] if sampled else {"record": ("batch",)}
    found = run(network=network, **change, **({} if sampled else {"max_fan_out": None}))
    if network == "gat":
        losses, params = attention_descent(found.initial_params)
    else:
        inputs = matrices[network] @ features
        losses, params = linear_descent(inputs, targets, found.initial_params)
    for values in found[2:5]:
        if values is not None:
            np.testing.assert_allclose(values, losses, rtol=1e-12)
    for ours, theirs in zip(jax.tree.leaves(found.params), jax.tree.leaves(params), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-13)


def test_block_degrees_are_full_graph_descent_only_with_all_nodes(run, features, targets, matrices):
    inputs, everyone = matrices["gcn_block"] @ features, np.arange(N)
    found = run(network="gcn_block", train_nodes=everyone, batch_size=N, record=("batch",))
    losses, _ = linear_descent(inputs, targets, found.initial_params, everyone)
    np.testing.assert_allclose(found.batch_loss, losses, rtol=1e-12)
    assert found.full_loss is None
    some = run(network="gcn_block", record=("batch", "full"))
    losses, _ = linear_descent(inputs, targets, some.initial_params)
    np.testing.assert_allclose(some.full_loss[0], losses[0], rtol=1e-12)
    batch_loss, full_loss = np.asarray(some.batch_loss), np.asarray(some.full_loss)
    assert abs(batch_loss[0] / losses[0] - 1) > 0.01
    assert abs(full_loss[-1] / losses[-1] - 1) > 0.001


def test_adam_and_cross_entropy_are_optax_by_hand(run, features, targets, matrices):
    inputs = matrices["sage"] @ features
    found = run(loss="cross_entropy", optimizer="adam", record=("batch", "full", "validation"))

    def loss(params):
        outputs = inputs[TRAIN] @ params["params"]["kernel"]
        chosen = jnp.sum(targets[TRAIN] * outputs, axis=1)
        return jnp.mean(jax.scipy.special.logsumexp(outputs, axis=1) - chosen)

    losses, params = full_graph_descent(loss, found.initial_params, optax.adam(0.1))
    np.testing.assert_allclose(found.batch_loss, losses, rtol=1e-11)
    np.testing.assert_allclose(kernel_of(found.params), kernel_of(params), rtol=1e-10)
    # Before the update, with all neighbours, of the validation nodes.
    outputs = inputs[VALIDATION] @ kernel_of(found.initial_params)
    chosen = np.sum(targets[VALIDATION] * outputs, axis=1)
    first = np.mean(scipy.special.logsumexp(outputs, axis=1) - chosen)
    np.testing.assert_allclose(found.validation_loss[0], first, rtol=1e-12)


@pytest.mark.parametrize("network", ["sage", "gcn", "gcn_block"])
def test_steps_by_hand(run, key, graph, features, targets, network):
    """Batches of 5, fan-out 2: NumPy's gradients of the sampled rows, from the documented keys."""
    found = run(network=network, batch_size=5, fan_out=2, **RECORDS[network])
    kernel = kernel_of(found.initial_params)
    assert kernel.shape == (R, K)
    fold, d = jax.random.fold_in, graph.degrees()
    for t in range(STEPS):
        nodes = np.asarray(sample_batch(fold(fold(key, 1), t), TRAIN, 5, 5)[0])
        layer_key = fold(fold(fold(key, 2), t), 0)
        index, mask = map(np.asarray, sample_neighbors(layer_key, graph, nodes, 2, 2))
        rows = np.zeros((5, R))
        for i in range(5):
            for j in index[i][mask[i]]:
                m, c = mask[i].sum(), np.sum(index[mask] == j)
                weight = {
                    "sage": 1 / m,
                    "gcn": d[nodes[i]] / m / np.sqrt(d[nodes[i]] * d[j]),
                    "gcn_block": 1 / np.sqrt(m * c),
                }[network]
                rows[i] += weight * features[j]
        errors = rows @ kernel - targets[nodes]
        np.testing.assert_allclose(found.batch_loss[t], np.sum(errors**2) / 10, rtol=1e-11)
        kernel = kernel - 0.1 * rows.T @ errors / 5
    np.testing.assert_allclose(kernel_of(found.params), kernel, rtol=1e-11)


def test_losses_stand_before_their_update(run):
    """A run that starts from the result of another continues its full loss."""
    usual = run(fan_out=2)
    start = np.array(usual.initial_params["params"]["kernel"])
    again = run(fan_out=2, initial_params=start, **FROM_START)
    same = usual._replace(batch_loss=None, validation_loss=None)
    jax.tree.map(np.testing.assert_array_equal, again, same)
    later = run(fan_out=2, initial_params=usual.params, **FROM_START)
    continued = np.asarray(later.full_loss)[0], np.asarray(usual.full_loss)[-1]
    assert continued[0] != continued[1]
    np.testing.assert_allclose(*continued, rtol=0.05)


@pytest.fixture(scope="module")
def losses_of_ten(key, graph, features):
    """Batch losses of nine steps on nodes 0 … 9, compiled, of (mode, batch size, fan-out).

    Without neighbours (fan-out 0) outputs stay 0, and node i loses 2^i.
    """
    targets = np.sqrt(2.0 * 2.0 ** np.arange(N))[:, None]

    def losses(mode, batch_size, fan_out):
        return train(
            key,
            graph,
            features,
            targets,
            np.arange(10),
            batches=mode,
            step_size=0.1,
            batch_size=batch_size,
            fan_out=fan_out,
            num_steps=9,
            record=("batch",),
            max_batch_size=16,
            max_fan_out=LARGEST,
        ).batch_loss

    return jax.jit(losses, static_argnums=0)


@pytest.fixture(scope="module")
def grid_of_ten(losses_of_ten):
    """The same in epochs, for six sizes and fan-outs at once."""
    losses = jax.vmap(lambda size, fan_out: losses_of_ten("epoch", size, fan_out))
    return lambda *sizes: np.asarray(jax.jit(losses)(*sizes))


def decoded(losses, counts):
    """Nodes of each batch, from mean losses of which node i contributes 2^i."""
    sums = np.rint(np.asarray(losses) * np.asarray(counts)).astype(int)
    return [{i for i in range(10) if s >> i & 1} for s in sums]


@pytest.mark.parametrize("mode", ["fresh", "epoch"])
def test_batches(losses_of_ten, grid_of_ten, mode):
    """A batch's loss says which nodes it holds."""

    def losses(batch_size):
        return losses_of_ten(mode, batch_size, 0)

    if mode == "fresh":
        found = decoded(losses(4), [4] * 9)
        assert all(len(batch) == 4 for batch in found)
        assert len(set.union(*found[:3])) < 10
        assert decoded(losses(10), [10] * 9) == [set(range(10))] * 9
        return
    found = decoded(losses(4), [4, 4, 2] * 3)
    assert [len(batch) for batch in found] == [4, 4, 2] * 3
    for first in (0, 3, 6):
        assert set.union(*found[first : first + 3]) == set(range(10))
    assert found[:3] != found[3:6] != found[6:]
    assert all(decoded([loss], [1])[0] for loss in np.asarray(losses(1)))
    # The order of an epoch is drawn in every lane.
    batched = grid_of_ten(np.array([3, 4, 1, 2, 5, 6]), np.zeros(6, np.int64))
    np.testing.assert_allclose(batched[1], losses(4), rtol=1e-14)


def test_one_program_serves_the_grid_and_equals_single_runs(run, key):
    """Traced batch size, fan-out, step size and key under one vmap; the same key, the same bits."""
    sizes, fans = np.array([4, 16, 16]), np.array([2, 3, LARGEST])
    steps, keys = np.array([0.1, 0.2, 0.05]), jax.random.split(key, 3)

    @jax.vmap
    def cell(key, b, fan_out, step_size):
        return run(key=key, batch_size=b, fan_out=fan_out, step_size=step_size)

    grid = jax.tree.map(np.asarray, jax.jit(cell)(keys, sizes, fans, steps))
    keys = list(keys)

    def single(i):
        b, fan_out = int(sizes[i]), int(fans[i])
        return run(key=keys[i], batch_size=b, fan_out=fan_out, step_size=steps[i])

    for i in range(3):
        alone = single(i)
        jax.tree.map(lambda a, b, i=i: np.testing.assert_allclose(a[i], b, rtol=1e-11), grid, alone)
        jax.tree.map(np.testing.assert_array_equal, single(i), alone)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_float32_is_float64_to_its_rounding(run, features, optimizer):
    loss = "mse" if optimizer == "sgd" else "cross_entropy"
    record = ("batch", "full", "validation")
    # Programs of other tests, so that `sgd` records the sampled loss as well.
    wide_record = {} if optimizer == "sgd" else {"record": record}
    wide = run(optimizer=optimizer, loss=loss, fan_out=2, batch_size=5, **wide_record)
    with jax.enable_x64(optimizer == "sgd"):
        narrow = run(
            optimizer=optimizer,
            loss=loss,
            fan_out=2,
            batch_size=5,
            record=record,
            features=features.astype(np.float32),
            initial_params=np.asarray(wide.initial_params["params"]["kernel"]),
        )
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(narrow))
    for name in ("batch_loss", "full_loss", "validation_loss"):
        found, expected = getattr(narrow, name), getattr(wide, name)
        np.testing.assert_allclose(found, expected, rtol=5e-5, err_msg=name)


def test_targets_of_other_nodes_are_never_read(run, targets):
    """Neither their values nor whether they are numbers; the validation nodes' only by their loss."""
    test_nodes = np.setdiff1d(np.arange(N), np.concatenate([TRAIN, VALIDATION]))
    usual = run(fan_out=2)
    shuffled, missing, changed = targets.copy(), targets.copy(), targets.copy()
    shuffled[test_nodes] = 1 - targets[test_nodes]
    missing[test_nodes] = np.nan
    changed[VALIDATION] += 1.0
    for other in (shuffled, missing):
        jax.tree.map(np.testing.assert_array_equal, run(fan_out=2, targets=other), usual)
    found = run(fan_out=2, targets=changed)
    jax.tree.map(np.testing.assert_array_equal, found.params, usual.params)
    assert np.all(found.validation_loss != usual.validation_loss)


@pytest.mark.parametrize("network", ["sage", "gcn_block", "gat"])
def test_nothing_sampled_leaves_the_parameters(run, network):
    found = run(network=network, fan_out=0, **RECORDS[network])
    jax.tree.map(np.testing.assert_array_equal, found.params, found.initial_params)
    np.testing.assert_allclose(found.batch_loss, 0.5, rtol=1e-14)


def test_losses_that_are_not_recorded(run):
    """Some are recorded every ten steps; `batch` alone is left out where FROM_START is used.

    Nor do the static bounds matter, of which this program has the least.
    """
    usual = run(batch_size=5, fan_out=2)
    least = {"max_batch_size": None, "max_fan_out": None}
    sparse = run(
        batch_size=5, fan_out=2, record_every=10, record=("batch", "sampled", "full"), **least
    )
    np.testing.assert_allclose(kernel_of(sparse.params), kernel_of(usual.params), rtol=1e-11)
    np.testing.assert_allclose(sparse.batch_loss, usual.batch_loss, rtol=1e-13)
    for name in ("sampled_loss", "full_loss"):
        every_tenth = np.asarray(getattr(usual, name))[::10]
        np.testing.assert_allclose(getattr(sparse, name), every_tenth, rtol=1e-13)
    assert sparse.validation_loss is None


def test_initial_parameters_may_be_the_one_array(run):
    kernel = np.arange(R * K, dtype=np.float64).reshape(R, K)
    found = run(initial_params=kernel, **FROM_START)
    np.testing.assert_array_equal(found.initial_params["params"]["kernel"], kernel)
    nested = run(initial_params={"params": {"kernel": kernel}}, **FROM_START)
    jax.tree.map(np.testing.assert_array_equal, found, nested)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("key", {"key": 3}),
        ("graph", {"graph": np.eye(N)}),
        ("features", {"features": np.ones((N - 1, R))}),
        ("features", {"features": np.full((N, R), np.nan)}),
        ("features", {"features": np.ones((N, R), int)}),
        ("targets", {"targets": np.ones((N - 1, K))}),
        ("targets", {"targets": np.ones(N)}),
        ("targets", {"targets": np.full((N, K), np.nan)}),
        ("train_nodes", {"train_nodes": [N]}),
        ("train_nodes", {"train_nodes": [1, 1]}),
        ("train_nodes", {"train_nodes": []}),
        ("train_nodes", {"train_nodes": [[1], [2, 3]]}),
        ("network", {"network": "mlp"}),
        ("network", {"network": len}),
        ("network", {"network": GraphSAGE(1, num_layers=1)}),
        ("network", {"network": GAT(K + 1)}),
        ("loss", {"loss": "hinge"}),
        ("optimizer", {"optimizer": "lion"}),
        ("step_size", {"step_size": 0.0}),
        ("step_size", {"step_size": np.nan}),
        ("batch_size", {"batch_size": len(TRAIN) + 1}),
        ("batch_size", {"batch_size": 0}),
        ("batch_size", {"batch_size": 2.0}),
        ("batch_size", {"batch_size": 9, "max_batch_size": 8}),
        ("max_batch_size", {"max_batch_size": 0}),
        ("fan_out", {"fan_out": -1}),
        ("fan_out", {"fan_out": 4, "max_fan_out": 3}),
        ("max_fan_out", {"max_fan_out": -1}),
        ("num_steps", {"num_steps": 0}),
        ("num_steps", {"num_steps": 2**31 + 1}),
        ("batches", {"batches": "poisson"}),
        ("validation_nodes", {"validation_nodes": [-1]}),
        ("initial_params", {"initial_params": np.ones((K, R))}),
        ("initial_params", {"initial_params": np.full((R, K), np.inf)}),
        ("initial_params", {"initial_params": {"foo": np.ones((R, K))}}),
        ("initial_params", {"initial_params": {"kernel": np.ones(3), "bias": np.ones(2)}}),
        ("record", {"record": ("accuracy",)}),
        ("record", {"record": "full"}),
        ("record_every", {"record_every": 7}),
    ],
)
def test_bad_input_names_the_argument(run, as_users_call, name, change):
    with pytest.raises(ValueError, match=f"^{name}: got "):
        run(**change)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("features", np.full((N, R), 1e300)),
        ("targets", np.full((N, K), -1e300)),
        ("initial_params", np.full((R, K), 1e300)),
        ("step_size", 1e60),
        ("step_size", 1e-60),
    ],
)
def test_values_beyond_float32_are_refused_there(run, features, as_users_call, name, value):
    """float64 ones with x64 off, where they would silently become infinite, or a step of 0."""
    change = {"features": features.astype(np.float32), name: value}
    with jax.enable_x64(False), pytest.raises(ValueError, match=f"^{name}: got .* of float32"):
        run(**change)


@pytest.mark.parametrize(
    ("row", "match"),
    [
        ([0.0, 0.0, 0.0, 0.0], r"zeros only \(unlabelled\?\) at node 5"),
        ([0.5, 0.25, 0.0, 0.0], "a row with sum 0.75 at node 5"),
        ([1.5, -0.5, 0.0, 0.0], "-0.5 at"),
    ],
)
def test_cross_entropy_takes_probabilities(run, targets, as_users_call, row, match):
    changed = targets.copy()
    changed[5] = row
    with pytest.raises(ValueError, match=f"^targets: got .*{match}"):
        run(targets=changed, loss="cross_entropy")
    with pytest.raises(ValueError, match=r"^targets: got one column"):
        run(targets=targets[:, :1], loss="cross_entropy")


def test_traced_sizes_are_clamped(grid_of_ten):
    """Also 64-bit ones that 32 bits can't hold, to what the same program does with the bounds."""
    bounds = np.array([0, -3, 2**40, 2**32 + 2, 1, 10], np.int64)
    fans = np.array([-1, -(2**40), 2**40, 2**32 + 2, 0, LARGEST], np.int64)
    found = grid_of_ten(bounds, fans)
    for i, expected in enumerate((4, 4, 5, 5)):
        np.testing.assert_array_equal(found[i], found[expected])
    assert np.all(found[4] != found[5])


def test_traced_sizes_need_their_bound(run, as_users_call):
    for name in ("batch_size", "fan_out"):
        with pytest.raises(ValueError, match=f"^{name}: got a traced value"):
            jax.jit(lambda size, name=name: run(**{name: size, f"max_{name}": None}))(3)
