"""Random bits as a pure function of a key and a counter: Threefry-2×32, 20 rounds.

The generator behind `jax.random`'s default keys [salmon2011parallel], written out so that XLA fuses
the rounds: on CPU JAX's own primitive loops over them, which takes 2 (5,000 counters) to 8
(100,000) times as long. The bits depend on key and counter alone, not on shapes or on x64 mode.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import UInt32

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)


def threefry(
    key: tuple[UInt32[jax.Array, ""], UInt32[jax.Array, ""]],
    first: UInt32[jax.Array, "*shape"],
    second: UInt32[jax.Array, "*shape"],
) -> tuple[UInt32[jax.Array, "*shape"], UInt32[jax.Array, "*shape"]]:
    """Two words of random bits for each counter (`first`, `second`), 64 bits in all."""
    words = (key[0], key[1], key[0] ^ key[1] ^ _PARITY)
    x, y = first + words[0], second + words[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x = x + y
            y = (y << np.uint32(rotation)) | (y >> np.uint32(32 - rotation))
            y = y ^ x
        x = x + words[(group + 1) % 3]
        y = y + words[(group + 2) % 3] + np.uint32(group + 1)
    return x, y


def counter_key(key: Any) -> tuple[UInt32[jax.Array, ""], UInt32[jax.Array, ""]]:
    """Key of `threefry` from a JAX key, apart from what `split` and `fold_in` make of it."""
    if str(jax.random.key_impl(key)) != "threefry2x32":
        bits = jax.random.bits(key, (2,), jnp.uint32)
        return bits[0], bits[1]
    data = jax.random.key_data(key)
    # The same as `bits` would do, but fused; a first word that JAX's own counters hardly reach.
    return threefry((data[0], data[1]), jnp.uint32(0xB0D71AB5), jnp.uint32(0))


def below(
    bits: UInt32[jax.Array, "*shape"], bound: UInt32[jax.Array, "*shape"]
) -> UInt32[jax.Array, "*shape"]:
    """Integers in [0, bound) from 32 random bits each: ⌊bits·bound/2³²⌋; 0 where `bound` is 0.

    Probabilities are off by at most 2⁻³² each, a relative error of bound/2³². The high word of the
    product is put together from 16-bit halves, so that no 64-bit integers are needed.
    """
    half, low = np.uint32(16), np.uint32(0xFFFF)
    a, b = bits >> half, bits & low
    c, d = bound >> half, bound & low
    middle = a * d + ((b * d) >> half)
    return a * c + (middle >> half) + ((b * c + (middle & low)) >> half)


def after(value: Any, words: Any) -> Any:
    """`words`, made to depend on `value`: XLA would compute ahead what a loop's body does not change."""
    return lax.optimization_barrier((words, value))[0]
