"""Arguments of the functions of noised edges: times, P(edge), the values of absence and presence."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_number, check_shape, fail
from boundlab.precision import is_traced
from boundlab.theory.graph_diffusion._gaussian_arguments import stretched

# Limits within which Δ² neither overflows nor is a ratio of numbers without digits.
SHORTEST = 1e-100
LARGEST = 1e100


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
    check_shape("t", t, ())
    check_number("t", t, SHORTEST)
    check_number("probability", probability, 0, 1, low_open=True, high_open=True)
    values, chance = stretched(x=x, probability=probability)
    time = jnp.broadcast_to(jnp.asarray(t, jnp.float64), values.shape)
    return values, edge_of("x", time, 1.0, chance, low, high)


def at_times(t: Any, probability: Any, low: Any, high: Any, name: str = "t") -> Edge:
    check_number(name, t, SHORTEST)
    return edge_of(name, t, 1.0, probability, low, high)


def edge_of(name: str, value: Any, rate: float, probability: Any, low: Any, high: Any) -> Edge:
    """The arguments in their one shape; rate·value, `value` the argument `name`, is the OU time."""
    check_number("probability", probability, 0, 1, low_open=True, high_open=True)
    times, chance = stretched(**{name: value, "probability": probability})
    check_codes(low, high)
    codes = [jnp.asarray(code, jnp.float64) for code in (low, high)]
    return _noised(times * rate, chance, codes[0], codes[1])


def check_codes(low: Any, high: Any) -> None:
    """Refuse values of missing and present edges but two finite numbers, low < high."""
    for name, code in (("low", low), ("high", high)):
        check_shape(name, code, ())
        check_number(name, code, -LARGEST, LARGEST)
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
