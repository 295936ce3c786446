"""Shared by the tests of models: one small operator, one teacher, and lists of keys."""

import jax
import jaxtyping
import numpy as np
import pytest


@pytest.fixture
def as_users_call(monkeypatch):
    """Switch the run-time type checker off, which would refuse some bad input before we do."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture(scope="session")
def operator() -> np.ndarray:
    """A symmetric positive-definite operator G (6, 6) that isn't diagonal, tr G² about 1."""
    rng = np.random.default_rng(3)
    basis, _ = np.linalg.qr(rng.standard_normal((6, 6)))
    return (basis * np.array([0.7, 0.5, 0.4, 0.25, 0.15, 0.1])) @ basis.T


@pytest.fixture(scope="session")
def theta_star() -> np.ndarray:
    """A teacher (6,) of mixed signs."""
    return np.array([1.0, -0.5, 0.8, 0.3, -1.2, 0.6])


@pytest.fixture(scope="session")
def keys():
    """Function (seed, count ≤ 3,500) of a list of keys, for loops.

    Unpacked by NumPy: iterating over an array of keys compiles a program for each length.
    """

    def call(seed: int, count: int) -> list[jax.Array]:
        split = jax.random.split(jax.random.key(seed, impl="threefry2x32"), 3500)
        numbers = np.asarray(jax.random.key_data(split))[:count]
        return [jax.random.wrap_key_data(pair, impl="threefry2x32") for pair in numbers]

    return call
