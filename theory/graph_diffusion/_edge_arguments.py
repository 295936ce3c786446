"""Arguments of the functions of noised edges: times, P(edge), the values of absence and presence."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_number, check_shape, fail
from boundlab.precision import is_traced


class Edge(NamedTuple):
    """Checked arguments in float64, all of one shape."""

    mean: Float[Array, "*shape"]
    """m."""
    sigma_sq: Float[Array, "*shape"]
    """σ²."""
    probability: Float[Array, "*shape"]
    low: Float[Array, "*shape"]
    high: Float[Array, "*shape"]

    @property
    def log_odds(self) -> Float[Array, "*shape"]:
        """λ = log p/(1 − p)."""
        return jnp.log(self.probability) - jnp.log1p(-self.probability)

    @property
    def separation(self) -> Float[Array, "*shape"]:
        """Δ = m(a₁ − a₀)/σ."""
        return self.mean * (self.high - self.low) / jnp.sqrt(self.sigma_sq)


def with_values(
    x: Any, t: Any, probability: Any, low: Any, high: Any
) -> tuple[Float[Array, "*shape"], Edge]:
    check_number("x", x)
    values = jnp.asarray(x, jnp.float64)
    check_shape("t", t, ())
    check_number("t", t, 0, low_open=True)
    time = jnp.broadcast_to(jnp.asarray(t, jnp.float64), values.shape)
    return values, edge_of("x", time, 1.0, probability, low, high)


def at_times(t: Any, probability: Any, low: Any, high: Any, name: str = "t") -> Edge:
    check_number(name, t, 0, low_open=True)
    return edge_of(name, t, 1.0, probability, low, high)


def edge_of(name: str, value: Any, rate: float, probability: Any, low: Any, high: Any) -> Edge:
    """The arguments in the shape of `value`, the argument `name`; rate·value is the OU time."""
    times = jnp.asarray(value, jnp.float64) * rate
    check_number("probability", probability, 0, 1, low_open=True, high_open=True)
    chance = jnp.asarray(probability, jnp.float64)
    if chance.shape not in ((), times.shape):
        raise fail("probability", f"shape {chance.shape}", f"one number or the shape of {name}")
    check_codes(low, high)
    codes = [jnp.asarray(code, jnp.float64) for code in (low, high)]
    return _noised(times, chance, codes[0], codes[1])


def check_codes(low: Any, high: Any) -> None:
    """Refuse values of missing and present edges but two finite numbers, low < high."""
    for name, code in (("low", low), ("high", high)):
        check_shape(name, code, ())
        check_number(name, code)
    if not is_traced(low, high) and not float(np.asarray(low)) < float(np.asarray(high)):
        raise fail("low", low, f"a number below high = {high}")


@jax.jit
def _noised(
    times: Float[Array, "*shape"],
    probability: Float[Array, "..."],
    low: Float[Array, ""],
    high: Float[Array, ""],
) -> Edge:
    rest = (jnp.broadcast_to(value, times.shape) for value in (probability, low, high))
    return Edge(jnp.exp(-times), -jnp.expm1(-2 * times), *rest)
