"""Grids of times for a reverse sampler: equal steps, equal ratios, or one after the other."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_choice, check_integer, check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.typing import Count, Scalar

KINDS = ("uniform", "geometric", "benton")
MOST_STEPS = 10**8


@float64
def time_grid(
    horizon: Scalar, early_stop: Scalar, num_steps: Count, kind: str = "uniform"
) -> Float[Array, " steps_1"]:
    """Times t_0 = T > t_1 > … > t_N = δ of N steps, both ends exact.

    Args:
        horizon: T > δ, in the time of the forward process; may be traced, as δ may.
        early_stop: δ > 0.
        num_steps: N ≥ 1, static; ≥ 2 for `benton`.
        kind: `uniform`, equal steps; `geometric`, a constant ratio t_{k+1}/t_k; `benton`, N // 2 equal
            steps from T down to 1 and the rest geometric, for T > 1 > δ: steps in proportion to
            min(1, t), as in [benton2024nearly].

    Returns:
        (N + 1,) times, strictly decreasing.

    Raises:
        ValueError: an argument is out of range; it is named. Too many steps for float64 to tell the
            times apart name `num_steps`.

    Source: derived, docs/graph_diffusion.md#setting; `benton` after [benton2024nearly].

    """
    check_choice("kind", kind, KINDS)
    steps = check_integer("num_steps", num_steps, 1, MOST_STEPS, why="what memory holds")
    for name, value in (("horizon", horizon), ("early_stop", early_stop)):
        check_shape(name, value, ())
        check_number(name, value, 0, low_open=True)
    known = not is_traced(horizon, early_stop)
    if known and not float(np.asarray(early_stop)) < float(np.asarray(horizon)):
        raise fail("early_stop", early_stop, f"a time below the horizon {horizon}")
    start, stop = jnp.asarray(horizon, jnp.float64), jnp.asarray(early_stop, jnp.float64)
    if kind == "uniform":
        grid = _between(start, stop, steps, geometric=False)
    elif kind == "geometric":
        grid = _between(start, stop, steps, geometric=True)
    else:
        check_integer("num_steps", num_steps, 2, why="a step on each side of 1")
        check_number("horizon", horizon, 1, low_open=True, why="equal steps end at 1")
        check_number("early_stop", early_stop, 0, 1, high_open=True, why="equal steps end at 1")
        one = jnp.ones((), jnp.float64)
        equal = _between(start, one, steps // 2, geometric=False)
        grid = jnp.concatenate(
            [equal[:-1], _between(one, stop, steps - steps // 2, geometric=True)]
        )
    if not is_traced(grid) and not (np.diff(np.asarray(grid)) < 0).all():
        raise fail("num_steps", num_steps, "so few steps that float64 tells their times apart")
    return grid


def _between(
    start: Float[Array, ""], stop: Float[Array, ""], steps: int, *, geometric: bool
) -> Float[Array, " steps_1"]:
    share = jnp.asarray(np.arange(1, steps) / steps)
    if geometric:
        inner = jnp.exp((1.0 - share) * jnp.log(start) + share * jnp.log(stop))
    else:
        inner = (1.0 - share) * start + share * stop
    return jnp.concatenate([start[None], inner, stop[None]])
