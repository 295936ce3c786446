"""The argument `reward`: a tensor R (A, …, A) of mean rewards, one axis an agent."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_number, fail
from boundlab.typing import Numbers


def reward_tensor(reward: Numbers) -> Float[Array, "*actions"]:
    """`reward` as a float64 tensor with K ≥ 1 equal axes; errors name it."""
    check_number("reward", reward)
    tensor = jnp.asarray(reward).astype(jnp.float64)
    if tensor.ndim < 1 or tensor.size < 1 or len(set(tensor.shape)) > 1:
        raise fail("reward", f"shape {tensor.shape}", "shape (A, …, A), an axis an agent")
    return tensor
