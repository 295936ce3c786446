"""The ReLU unit and its teacher, against quadrature and a loop in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.models import graphs
from boundlab.models.relu_teacher import descend_to_teacher, teacher_error, teacher_losses
from boundlab.models.sampling import sample_batch, sample_neighbors


@pytest.mark.smoke
def test_error_of_known_weights() -> None:
    """The teacher has none, zero weights have ½, the opposite weights E(σ(u)² + σ(−u)²)/2 = 1."""
    np.testing.assert_allclose(teacher_error([1.0, 0.0]), 0.0, atol=1e-15)
    np.testing.assert_allclose(
        teacher_error(np.array([[0.0, 0.0], [-1.0, 0.0], [2.0, 0.0]])), [0.5, 1.0, 0.5], rtol=1e-3
    )
    # Orthogonal unit weights: 1 − σ̂(0) = 1 − 1/π.
    np.testing.assert_allclose(teacher_error([0.0, -1.0]), 1 - 1 / np.pi, rtol=1e-3)


def test_error_is_the_mean_of_the_losses(key: jax.Array) -> None:
    weights = np.array([-0.2, 1.3])
    features = np.random.default_rng(0).standard_normal((20_000, 2))
    losses = np.asarray(teacher_losses(jnp.asarray(features), jnp.asarray(weights)))
    error = losses.std(ddof=1) / np.sqrt(len(losses))
    assert abs(losses.mean() - float(teacher_error(weights))) < 4.9 * error


def test_descent_by_a_loop(key: jax.Array) -> None:
    """Three steps with the same draws, gradients by hand, masked rows of the batch left out."""
    graph = graphs.circulant(9, 4)
    start = np.array([-0.2, 1.3, 0.4])
    rates = {"mean": 0.5, "sum": 0.1, "gcn_block": jnp.asarray(0.3)}
    paths = descend_to_teacher(key, graph, start, rates, 4, 2, 3, 6, 3)
    for kind, path in paths.items():
        assert path.shape == (4, 3)
        w = start.copy()
        for t in range(3):
            np.testing.assert_allclose(path[t], w, rtol=1e-12)
            parts = jax.random.split(jax.random.fold_in(key, t), 3)
            x = np.asarray(jax.random.normal(parts[0], (9, 3)))
            nodes = np.asarray(sample_batch(parts[1], np.arange(9), 4, 6)[0])[:4]
            index, mask = map(np.asarray, sample_neighbors(parts[2], graph, nodes, 2, 3))
            assert mask.sum(axis=1).tolist() == [2] * 4
            counts = np.bincount(index[mask], minlength=9)
            slope = np.zeros(3)
            for i in range(4):
                chosen = index[i, :2]
                scale = {"mean": 0.5, "sum": 1.0, "gcn_block": 1 / np.sqrt(2 * counts[chosen])}[
                    kind
                ]
                h = (np.broadcast_to(scale, 2)[:, None] * x[chosen]).sum(axis=0)
                rest = max(h @ w, 0.0) - max(h[0], 0.0)
                slope += 2 * rest * (h @ w > 0) * h / 4
            w = w - float(rates[kind]) * slope
        np.testing.assert_allclose(path[3], w, rtol=1e-12)


def test_descent_is_traced_and_keeps_its_precision(key: jax.Array) -> None:
    graph = graphs.circulant(9, 4)
    start = np.array([-0.2, 1.3], np.float32)

    def last(b: jax.Array, rate: jax.Array) -> jax.Array:
        return descend_to_teacher(key, graph, start, {"mean": rate}, b, b - 1, 5, 6, 4)["mean"][-1]

    batched = jax.jit(jax.vmap(last))(jnp.array([2, 5]), jnp.array([0.1, 0.2]))
    assert batched.dtype == jnp.float32
    single = descend_to_teacher(key, graph, start, {"mean": 0.2}, 5, 4, 5, 6, 4)["mean"][-1]
    np.testing.assert_allclose(batched[1], single, rtol=1e-6)


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"weights": [np.nan]}, "weights"),
        ({"step_sizes": {"mean": 0.0}}, "step_sizes"),
        ({"step_sizes": {"median": 0.1}}, "step_sizes"),
        ({"batch_size": 7}, "batch_size"),
        ({"num_steps": 0}, "num_steps"),
        ({"key": 3}, "key"),
        ({"graph": 3}, "graph"),
    ],
)
def test_bad_arguments_are_named(key: jax.Array, changed: dict, name: str) -> None:
    good = {
        "key": key,
        "graph": graphs.circulant(9, 4),
        "weights": np.ones(2),
        "step_sizes": {"mean": 0.1},
        "batch_size": 2,
        "fan_out": 2,
        "num_steps": 2,
        "max_batch_size": 6,
        "max_fan_out": 4,
    }
    with pytest.raises(ValueError, match=f"^{name}: got"):
        descend_to_teacher(**(good | changed))
