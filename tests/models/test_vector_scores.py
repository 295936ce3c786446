"""Networks of vectors that see the time: by hand in NumPy, precision, bad input."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.models.vector_scores import LinearScore, PerceptronScore, chebyshev

Z = np.array([0.5, -1.0, 2.0])


@pytest.mark.parametrize("count", [1, 2, 5])
def test_polynomials_by_numpy(count: int) -> None:
    for t in (0.0, 0.3, 2.0):
        found = chebyshev(t, count, 2.0, jnp.float64)
        expected = np.polynomial.chebyshev.chebvander(2 * np.sqrt(t / 2.0) - 1, count - 1)
        np.testing.assert_allclose(found, expected[0], atol=1e-13)


def test_linear_by_hand(key: jax.Array) -> None:
    network = LinearScore(2, 3, 2.0)
    start = network.init(key, Z, 0.5)
    assert not np.asarray(start["params"]["kernel"]).any()
    kernel = np.random.default_rng(0).standard_normal((3, 3, 2))
    u = 2 * np.sqrt(0.25) - 1
    weights = [1.0, u, 2 * u * u - 1]
    expected = sum(w * Z @ k for w, k in zip(weights, kernel, strict=True))
    found = network.apply({"params": {"kernel": kernel}}, Z, 0.5)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_perceptron_by_hand(key: jax.Array) -> None:
    network = PerceptronScore(2, 4, 1, 2)
    params = network.init(key, Z, 0.5)
    layers = [params["params"][f"Dense_{i}"] for i in range(2)]
    u = 2 * np.sqrt(0.7) - 1
    values = np.concatenate([Z, [u, 2 * u * u - 1]])
    values = np.tanh(values @ np.asarray(layers[0]["kernel"]) + np.asarray(layers[0]["bias"]))
    expected = values @ np.asarray(layers[1]["kernel"]) + np.asarray(layers[1]["bias"])
    np.testing.assert_allclose(network.apply(params, Z, 0.7), expected, rtol=1e-12)


def test_precision_is_that_of_the_vector(key: jax.Array) -> None:
    for network in (LinearScore(2), PerceptronScore(2, 3)):
        z, t = Z.astype(np.float32), np.float64(0.5)
        found, params = jax.eval_shape(network.init_with_output, key, z, t)
        assert found.dtype == np.float32
        assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {np.dtype(np.float32)}


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("name", "network", "arguments"),
    [
        ("num_outputs", LinearScore, (0,)),
        ("num_times", LinearScore, (2, 0)),
        ("horizon", LinearScore, (2, 1, 0.0)),
        ("hidden", PerceptronScore, (2, 0)),
        ("num_layers", PerceptronScore, (2, 3, 0)),
    ],
)
def test_bad_sizes_are_named(name: str, network: Any, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=rf"^{name}: "):
        network(*arguments)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("name", "z", "t"), [("z", Z[None], 0.5), ("t", Z, np.zeros(2)), ("t", Z, -0.1)]
)
def test_bad_input_is_named(name: str, z: Any, t: Any) -> None:
    params = {"params": {"kernel": np.zeros((4, 3, 2))}}
    with pytest.raises(ValueError, match=rf"^{name}: "):
        LinearScore(2).apply(params, z, t)
