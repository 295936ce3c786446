"""Grids of times of one length whatever their number of steps, so that one compilation serves all."""

import jax
import jax.numpy as jnp
import numpy as np

from boundlab.typing import Scalar


def padded_grid(
    horizon: Scalar,
    early_stop: Scalar,
    num_steps: Scalar,
    most: int,
    geometric: Scalar = False,
) -> jax.Array:
    """(most + 1,) times: `num_steps` equal steps, or equal ratios, then repetitions of the last time.

    Every argument but `most` may be traced. Repetitions change no moment and add to no bound.
    """
    share = jnp.minimum(jnp.asarray(np.arange(most + 1, dtype=np.float64)) / num_steps, 1.0)
    equal = (1.0 - share) * horizon + share * early_stop
    ratio = jnp.exp((1.0 - share) * jnp.log(horizon) + share * jnp.log(early_stop))
    # The end exactly, so that its repetitions are equal.
    return jnp.where(share < 1.0, jnp.where(geometric, ratio, equal), early_stop)
