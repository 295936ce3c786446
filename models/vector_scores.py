"""Score networks of plain vectors that see the time: one linear in the vector, one perceptron.

Symbols: z (d,) the noised vector, t its time on [0, horizon], T_k the Chebyshev polynomials of
2√(t/horizon) − 1, a clock in which scores change slowly near t = 0. A network's output over −σ(t) is the
score. With a linear score a sampler's law stays Gaussian, so that its error is a closed form.
"""

from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_integer, check_number, check_shape

# Variance 1/fan-in.
_initial = nn.initializers.variance_scaling(1.0, "fan_in", "uniform")


class LinearScore(nn.Module):
    """Network z → Σ_{k<K} T_k(t) W_k z, from W = 0.

    `apply(params, z, t)` for one vector; the only parameter `kernel` is (K, d, `num_outputs`).

    Fields: `num_outputs`; `num_times` K; `horizon`.

    Source: derived, docs/graph_diffusion.md#score-error.
    """

    num_outputs: int
    num_times: int = 4
    horizon: float = 1.0

    def __post_init__(self) -> None:
        check_integer("num_outputs", self.num_outputs, 1)
        check_integer("num_times", self.num_times, 1)
        check_number("horizon", self.horizon, 0, low_open=True)
        super().__post_init__()

    @nn.compact
    def __call__(self, z: Any, t: Any) -> Float[Array, " outputs"]:
        check_shape("z", z, (None,), "one vector: map over a batch by jax.vmap")
        z = jnp.asarray(z)
        shape = (self.num_times, z.shape[0], self.num_outputs)
        kernel = self.param("kernel", nn.initializers.zeros_init(), shape, z.dtype)
        weights = chebyshev(t, self.num_times, self.horizon, z.dtype)
        return z @ jnp.tensordot(weights, kernel.astype(z.dtype), 1)


class PerceptronScore(nn.Module):
    """Perceptron of z and T_1(t), …, T_K(t), with tanh between its layers.

    `apply(params, z, t)` for one vector.

    Fields: `num_outputs`; `hidden` width; `num_layers` hidden layers; `num_times` K; `horizon`.
    """

    num_outputs: int
    hidden: int = 32
    num_layers: int = 2
    num_times: int = 4
    horizon: float = 1.0

    def __post_init__(self) -> None:
        for name in ("num_outputs", "hidden", "num_layers", "num_times"):
            check_integer(name, getattr(self, name), 1)
        check_number("horizon", self.horizon, 0, low_open=True)
        super().__post_init__()

    @nn.compact
    def __call__(self, z: Any, t: Any) -> Float[Array, " outputs"]:
        check_shape("z", z, (None,), "one vector: map over a batch by jax.vmap")
        z = jnp.asarray(z)
        times = chebyshev(t, self.num_times + 1, self.horizon, z.dtype)[1:]
        values = jnp.concatenate([z, times])
        for width in [self.hidden] * self.num_layers:
            values = jnp.tanh(self._dense(width, values))
        return self._dense(self.num_outputs, values)

    def _dense(self, width: int, values: Float[Array, " r"]) -> Float[Array, " width"]:
        dtype = values.dtype
        return nn.Dense(width, dtype=dtype, param_dtype=dtype, kernel_init=_initial)(values)


def chebyshev(t: Any, count: int, horizon: float, dtype: Any) -> Float[Array, " count"]:
    """T_0, …, T_{count−1} at 2√(t/horizon) − 1, by the recurrence T_{k+1} = 2u T_k − T_{k−1}."""
    check_shape("t", t, ())
    check_number("t", t, 0)
    place = 2 * jnp.sqrt(jnp.asarray(t).astype(dtype) / jnp.asarray(horizon, dtype)) - 1
    values = [jnp.ones_like(place), place]
    for _ in range(count - 2):
        values.append(2 * place * values[-1] - values[-2])
    return jnp.stack(values[:count])
