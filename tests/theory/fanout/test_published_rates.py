"""The published iteration counts and the count of operations, against values worked by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.theory.fanout import (
    paper_elasticities,
    paper_iterations_ce,
    paper_iterations_mse,
    training_flops,
)


@pytest.mark.smoke
def test_counts_by_hand() -> None:
    # 100·2²·4^{5/2}·9^{−1/2}/0.5·ln(2²/0.5) = 100·4·32/3·2·ln 8
    found = paper_iterations_mse(100, 2, 4, 9, 0.5)
    np.testing.assert_allclose(found, 100 * 4 * 32 / 3 * 2 * np.log(8), rtol=1e-14)
    # 100²·√ln 100/0.5²/4·4^{−5/2}·(100² + 10)
    found = paper_iterations_ce(100, 0.5, 4, 4, 0.1, constant=2.0)
    expected = 2 * 1e4 * np.sqrt(np.log(100)) / 0.25 / 4 / 32 * (1e4 + 10)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize("loss", ["mse", "cross_entropy"])
def test_elasticities_are_derivatives_of_the_counts(loss: str) -> None:
    def log_count(logs: jax.Array) -> jax.Array:
        b, fan_out = jnp.exp(logs[0]), jnp.exp(logs[1])
        if loss == "mse":
            return jnp.log(paper_iterations_mse(5000, 8, b, fan_out, 0.02))
        return jnp.log(paper_iterations_ce(5000, 0.3, b, fan_out, 0.02))

    slopes = jax.jit(jax.grad(log_count))(jnp.log(jnp.array([300.0, 7.0])))
    np.testing.assert_allclose(slopes, paper_elasticities(loss), rtol=1e-12)


def test_counts_broadcast() -> None:
    b, fan_out = np.array([[10.0], [20.0]]), np.array([[1.0, 2.0, 4.0]])
    grid = paper_iterations_ce(100, 1.0, b, fan_out, 0.1)
    assert grid.shape == (2, 3)
    np.testing.assert_allclose(grid[1, 2], paper_iterations_ce(100, 1.0, 20, 4, 0.1), rtol=1e-14)


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"num_train": 0.5}, "num_train"),
        ({"batch_size": 0.0}, "batch_size"),
        ({"batch_size": 101}, "batch_size"),
        ({"fan_out": 0}, "fan_out"),
        ({"fan_out": np.inf}, "fan_out"),
        ({"target_loss": 0.0}, "target_loss"),
        ({"constant": 0.0}, "constant"),
    ],
)
def test_bad_arguments_are_named(changed: dict, name: str) -> None:
    good = {"num_train": 100, "batch_size": 5, "fan_out": 3, "target_loss": 0.1}
    with pytest.raises(ValueError, match=f"^{name}: got"):
        paper_iterations_mse(num_hidden=4, **(good | changed))
    with pytest.raises(ValueError, match=f"^{name}: got"):
        paper_iterations_ce(separation=0.5, **(good | changed))


def test_bad_arguments_of_one_count() -> None:
    with pytest.raises(ValueError, match=r"^num_hidden: got"):
        paper_iterations_mse(100, 0, 5, 3, 0.1)
    with pytest.raises(ValueError, match=r"^target_loss: got"):
        paper_iterations_mse(100, 2, 5, 3, 4.0)
    with pytest.raises(ValueError, match=r"^separation: got"):
        paper_iterations_ce(100, 0.0, 5, 3, 0.1)
    with pytest.raises(ValueError, match=r"^loss: got 'ce'"):
        paper_elasticities("ce")


def test_operations_by_hand() -> None:
    assert training_flops([5], [3], [7, 2]) == 3 * (2 * 5 * 7 + 2 * 3 * 7 * 2)
    two = 3 * (2 * 20 * 4 + 2 * 10 * 4 * 8 + 2 * 6 * 8 + 2 * 3 * 8 * 2)
    assert training_flops(np.array([20, 6]), (10, 3), [4, 8, 2]) == two
    assert (
        jax.jit(lambda e: training_flops(e, [10.0, 3.0], [4, 8, 2]))(jnp.array([20.0, 6.0])) == two
    )
    assert training_flops([0], [0], [7, 2]) == 0


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (([], [], [3]), "edges"),
        (([1, -2], [1, 1], [1, 1, 1]), "edges"),
        (([1, 2], [1], [1, 1, 1]), "rows"),
        (([1, 2], [1, np.nan], [1, 1, 1]), "rows"),
        (([1, 2], [1, 1], [1, 1]), "widths"),
        (([1], [1], [1, -1]), "widths"),
    ],
)
def test_bad_operations_are_named(arguments: tuple, name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}: got"):
        training_flops(*arguments)
