"""The argument `reward`: a tensor R of mean rewards, one axis an agent, (A, …, A) unless said."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_number, fail
from boundlab.typing import Numbers


def reward_tensor(reward: Numbers, *, equal: bool = True) -> Float[Array, "*actions"]:
    """`reward` as a float64 tensor with K ≥ 1 axes, of equal size if `equal`; errors name it."""
    check_number("reward", reward)
    tensor = jnp.asarray(reward).astype(jnp.float64)
    if tensor.ndim < 1 or tensor.size < 1 or (equal and len(set(tensor.shape)) > 1):
        accepted = "shape (A, …, A), an axis an agent" if equal else "an axis an agent, none empty"
        raise fail("reward", f"shape {tensor.shape}", accepted)
    return tensor
