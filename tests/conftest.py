"""Shared by all tests: x64 on, strict promotion, no silent rank promotion."""

import jax
import matplotlib
import pytest

matplotlib.use("Agg")
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(scope="session")
def key() -> jax.Array:
    """One fixed threefry key; tests fold a number of their own into it."""
    return jax.random.key(20240817, impl="threefry2x32")
