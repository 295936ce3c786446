"""Population dynamics of one ReLU unit, against quadrature, derivatives and a plain loop."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

from boundlab.theory.fanout import population_gradient_descent, population_loss


def loss_by_quadrature(phi: float, psi: float) -> float:
    """½E(σ(φx + ψy) − σ(x))² at Γ = 1: the radius gives E r² = 2, the rest is an angle."""

    def squared(angle: float) -> float:
        first = max(phi * np.cos(angle) + psi * np.sin(angle), 0.0)
        return (first - max(np.cos(angle), 0.0)) ** 2

    turns = np.sort(
        np.mod([np.arctan2(-phi, psi), np.arctan2(phi, -psi), np.pi / 2, 1.5 * np.pi], 2 * np.pi)
    )
    edges = [0.0, *turns, 2 * np.pi]
    pieces = [
        scipy.integrate.quad(squared, a, b, epsabs=1e-14, epsrel=1e-13)[0]
        for a, b in pairwise(edges)
        if b > a
    ]
    return sum(pieces) / np.pi


@pytest.mark.parametrize(
    ("phi", "psi"), [(0.5, 0.7), (-0.2, 1.3), (-1.0, 0.0), (2.0, -0.3), (0.0, 0.0), (1.0, 1e-3)]
)
def test_loss_by_quadrature(phi: float, psi: float) -> None:
    found = population_loss(phi, psi, 0.3)
    np.testing.assert_allclose(found, 0.3 * loss_by_quadrature(phi, psi), rtol=1e-10, atol=1e-16)


def test_loss_near_the_teacher() -> None:
    assert population_loss(1.0, 0.0, 0.5) == 0.0
    # To second order in the error, half of the inputs are active: L = (Γ/2)·‖w − w*‖².
    np.testing.assert_allclose(population_loss(1 + 1e-7, 0.0, 0.5), 0.25e-14, rtol=1e-6)
    np.testing.assert_allclose(population_loss(1.0, 1e-6, 0.5), 0.25e-12, rtol=1e-5)
    assert population_loss(np.zeros((2, 3)), np.ones((2, 3)), 1.0).shape == (2, 3)


@pytest.mark.smoke
def test_trajectory_by_derivatives_of_the_loss() -> None:
    """Against a loop whose gradient is that of the printed closed form, by automatic differentiation."""

    def closed(w: jax.Array) -> jax.Array:
        radius = jnp.sqrt(w @ w)
        rho = w[0] / radius
        kernel = (jnp.sqrt(1 - rho**2) + rho * (jnp.pi - jnp.arccos(rho))) / jnp.pi
        return 0.35 * (radius**2 + 1 - 2 * radius * kernel)

    step = jax.jit(lambda w: (closed(w), w - 0.2 * jax.grad(closed)(w)))
    w, expected = jnp.array([-0.2, 1.3]), []
    for _ in range(31):
        loss, after = step(w)
        expected.append((*w.tolist(), float(loss)))
        w = after
    found = np.stack(population_gradient_descent(-0.2, 1.3, 0.7, 0.2, 30), axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_updates_are_inverse_to_the_squared_norm() -> None:
    for gamma, updates in ((1.0, 220), (0.5, 440), (0.25, 881), (0.1, 2205)):
        loss = population_gradient_descent(-0.2, 1.3, gamma, 0.02, 2205).loss
        assert int(np.argmax(np.asarray(loss) <= 1e-3 * gamma)) == updates


def test_edges() -> None:
    still = population_gradient_descent(0.3, -0.4, 1.0, 0.1, 0)
    np.testing.assert_allclose(still.parallel, [0.3])
    assert still.loss.shape == (1,)
    dead = population_gradient_descent(0.0, 0.0, 1.0, 0.1, 5)
    np.testing.assert_allclose(dead, [[0.0] * 6, [0.0] * 6, [0.5] * 6])
    mirrored = population_gradient_descent(0.3, 0.4, 1.0, 0.1, 5)
    other = population_gradient_descent(0.3, -0.4, 1.0, 0.1, 5)
    np.testing.assert_array_equal(mirrored.orthogonal, -np.asarray(other.orthogonal))


def test_traced_arguments_and_gradients() -> None:
    def last(step_size: jax.Array, phi: jax.Array) -> jax.Array:
        return population_gradient_descent(phi, 1.3, 0.5, step_size, 5).loss[-1]

    both = jax.vmap(last, (0, None))(jnp.array([0.1, 0.3]), jnp.asarray(-0.2))
    np.testing.assert_allclose(both[1], last(jnp.asarray(0.3), jnp.asarray(-0.2)), rtol=1e-12)
    slope = jax.grad(last)(jnp.asarray(0.1), jnp.asarray(-0.2))
    h = 1e-6
    ends = [population_gradient_descent(-0.2, 1.3, 0.5, 0.1 + s, 5).loss[-1] for s in (-h, h)]
    np.testing.assert_allclose(slope, (ends[1] - ends[0]) / (2 * h), rtol=1e-6)
    assert np.isfinite(jax.grad(population_loss)(jnp.asarray(0.0), 0.0, 1.0))


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"parallel": np.nan}, "parallel"),
        ({"orthogonal": np.ones(2)}, "orthogonal"),
        ({"squared_norm": 0.0}, "squared_norm"),
        ({"step_size": 0.0}, "step_size"),
        ({"step_size": -1}, "step_size"),
        ({"num_steps": -1}, "num_steps"),
        ({"num_steps": 2.0}, "num_steps"),
    ],
)
def test_bad_arguments_are_named(changed: dict, name: str) -> None:
    good = {"parallel": 0.1, "orthogonal": 1, "squared_norm": 1.0, "step_size": 0.1, "num_steps": 3}
    with pytest.raises(ValueError, match=f"^{name}: got"):
        population_gradient_descent(**(good | changed))
    with pytest.raises(ValueError, match=r"^squared_norm: got"):
        population_loss(0.0, 1.0, -0.1)
