"""Exact law of the sampler on one edge, by propagating its density on a grid.

A step of the exponential integrator from τ down to t, h = τ − t, is y' = μ(y) + N(0, Q) with
μ(y) = e^h y + 2(e^h − 1)s_τ(y), Q = e^{2h} − 1 and s_τ the exact score. Its density after the step is
∫ρ(y) N(·; μ(y), Q) dy, taken in two stages: every grid point is smeared by a normal kernel two spacings
wide, which the grid resolves to 1e-30, and the rest of Q follows by one fast Fourier transform. So √Q
must be at least two spacings.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_integer, check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.theory.graph_diffusion._edge_arguments import LARGEST, check_codes
from boundlab.theory.graph_diffusion._system_arguments import times_of
from boundlab.theory.graph_diffusion.edges import edge_log_density, edge_score
from boundlab.typing import Count, Numbers, Scalar

# Width of the first kernel in spacings, and its reach in spacings: e^{−(18/2)²/2} = 3e-18.
KERNEL_WIDTH = 2.0
KERNEL_REACH = 18
# Mass that may leave the grid before the result is refused.
LOST_MASS = 1e-8
MOST_POINTS = 10**7


@float64
def propagate_edge_density(
    times: Numbers,
    probability: Scalar,
    low: Scalar = 0.0,
    high: Scalar = 1.0,
    *,
    half_width: Scalar = 9.0,
    num_points: Count = 3001,
) -> tuple[Float[Array, " points"], Float[Array, " points"]]:
    """Density of the exponential integrator's output for one edge, with the exact score.

    From N(0, 1) at times[0], over all steps, on an equidistant grid over [−half_width, half_width]; the
    scores are those of `edge_score`. Its mass (sum times spacing) is 1 to rounding but for what leaves
    the grid at any step (a first step of .4 carries 1e-12 beyond 9), which is missing from the result;
    the rest has an absolute error of 1e-12.

    Args:
        times: OU times (N + 1,), strictly decreasing, > 0.
        probability: p in (0, 1), one number.
        low: a₀, the value of a missing edge.
        high: a₁ > a₀, the value of an edge.
        half_width: end of the grid, > 0; static.
        num_points: points of the grid, at least 64; static.

    Returns:
        (grid, density), each (num_points,); the density is ≥ 0.

    Raises:
        ValueError: an argument is out of range; `num_points` where a step's noise √Q is below two
            spacings, so that the grid can't resolve it; `half_width` where the law leaves the grid.
            Traced values aren't looked at.

    Source: derived, docs/graph_diffusion.md#spurious-edges.

    """
    points = check_integer("num_points", num_points, 64, MOST_POINTS, why="what memory holds")
    if is_traced(half_width):
        raise fail("half_width", "a traced value", "a static number")
    check_shape("half_width", half_width, ())
    check_number("half_width", half_width, 0, LARGEST, low_open=True)
    steps = times_of(times)
    check_number("times", times, 0, low_open=True)
    check_shape("probability", probability, ())
    check_number("probability", probability, 0, 1, low_open=True, high_open=True)
    check_codes(low, high)
    width = float(np.asarray(half_width))
    spacing = 2 * width / (points - 1)
    if not is_traced(times):
        # Within a jit, `steps` is traced though the times are known.
        _check_resolution(np.asarray(times, np.float64), spacing, width)
    codes = [jnp.asarray(value, jnp.float64) for value in (probability, low, high)]
    grid = jnp.linspace(-width, width, points, dtype=jnp.float64)
    density = _propagate(steps, *codes, grid, spacing)
    _check_mass("the law", density, spacing, width)
    return grid, jnp.maximum(density, 0.0)


@float64
def edge_sampling_errors(
    times: Numbers,
    probability: Scalar,
    low: Scalar = 0.0,
    high: Scalar = 1.0,
    *,
    half_width: Scalar = 9.0,
    num_points: Count = 3001,
) -> dict[str, Float[Array, ""]]:
    """Exact errors of the exponential integrator on one edge, with the exact score.

    Between q_δ, the noised data at times[−1], and the density p of `propagate_edge_density`: the KL
    divergence KL(q_δ ‖ p) in nats, the total variation ½∫|q_δ − p|, and P(y > m(a₀ + a₁)/2), the
    probability that a sample is read as an edge. On the default grid they are good to 1e-10, 1e-5 (of
    the kinks of |q_δ − p|) and 1e-8.

    Args:
        times: OU times (N + 1,), strictly decreasing, > 0.
        probability: p in (0, 1), one number.
        low: a₀, the value of a missing edge.
        high: a₁ > a₀, the value of an edge.
        half_width: end of the grid, > 0; static.
        num_points: points of the grid, at least 64; static.

    Returns:
        {"kl", "total_variation", "probability"}, JAX scalars.

    Raises:
        ValueError: as `propagate_edge_density`.

    Source: derived, docs/graph_diffusion.md#spurious-edges.

    """
    grid, density = propagate_edge_density(
        times, probability, low, high, half_width=half_width, num_points=num_points
    )
    spacing = grid[1] - grid[0]
    last = times_of(times)[-1]
    log_target = edge_log_density(grid, last, probability, low, high)
    target = jnp.exp(log_target)
    _check_mass("the noised data", target, spacing, half_width)
    # Below rounding of the transform the density is unknown, and q_δ is as small there.
    known = density > 1e-15
    log_ratio = jnp.where(known, log_target - jnp.log(jnp.where(known, density, 1.0)), 0.0)
    codes = [jnp.asarray(code, jnp.float64) for code in (low, high)]
    threshold = 0.5 * jnp.exp(-last) * (codes[0] + codes[1])
    return {
        "kl": spacing * jnp.sum(target * log_ratio),
        "total_variation": 0.5 * spacing * jnp.sum(jnp.abs(target - density)),
        "probability": _mass_above(grid, density, threshold),
    }


def _check_resolution(times: np.ndarray, spacing: float, half_width: float) -> None:
    """Refuse a grid on which the noise of the smallest step is narrower than the first kernel."""
    noise = math.sqrt(math.expm1(2 * float(-np.diff(times).max())))
    if noise < KERNEL_WIDTH * spacing:
        needed = math.ceil(2 * half_width * KERNEL_WIDTH / noise) + 1
        got = f"a spacing of {spacing:.3g} where the smallest step has noise {noise:.3g}"
        raise fail("num_points", got, f"at least {needed} at this half_width")


def _check_mass(what: str, density: Float[Array, " points"], spacing: Any, half_width: Any) -> None:
    """Refuse a grid that doesn't hold the density."""
    if is_traced(density):
        return
    lost = 1.0 - float(jnp.sum(density) * spacing)
    if not abs(lost) < LOST_MASS:
        got = f"{float(np.asarray(half_width)):g}, beyond which {what} has a mass of {lost:.3g}"
        raise fail("half_width", got, "a wider grid, or finer steps")


@jax.jit
def _propagate(
    times: Float[Array, " steps_1"],
    probability: Float[Array, ""],
    low: Float[Array, ""],
    high: Float[Array, ""],
    grid: Float[Array, " points"],
    spacing: Any,
) -> Float[Array, " points"]:
    points = len(grid)
    # Twice the grid, so that what the transform wraps around falls outside.
    size = 2 ** math.ceil(math.log2(2 * points))
    first = grid[0]
    frequency = 2 * jnp.pi * jnp.fft.rfftfreq(size).astype(jnp.float64)
    offsets = jnp.arange(-KERNEL_REACH, KERNEL_REACH + 1, dtype=jnp.int32)

    def step(
        density: Float[Array, " points"], pair: tuple[Float[Array, ""], Float[Array, ""]]
    ) -> tuple[Float[Array, " points"], None]:
        tau, t = pair
        growth = jnp.expm1(tau - t)
        score = edge_score(grid, tau, probability, low, high)
        # In spacings, from the first point of the grid.
        moved = ((1.0 + growth) * grid + 2 * growth * score - first) / spacing
        nearest = jnp.round(moved)
        cells = nearest.astype(jnp.int32)[:, None] + offsets[None, :]
        distance = cells.astype(jnp.float64) - moved[:, None]
        kernel = jnp.exp(-0.5 * (distance / KERNEL_WIDTH) ** 2)
        kernel /= KERNEL_WIDTH * math.sqrt(2 * math.pi)
        # Index `size` is outside: dropped, as are cells beyond either end.
        inside = (cells >= 0) & (cells < points)
        target = jnp.where(inside, cells, size)
        smeared = jnp.zeros(size, jnp.float64)
        smeared = smeared.at[target].add(density[:, None] * kernel, mode="drop")
        rest = jnp.expm1(2 * (tau - t)) / spacing**2 - KERNEL_WIDTH**2
        factor = jnp.exp(-0.5 * rest * frequency**2)
        spectrum = jnp.fft.rfft(smeared) * factor.astype(jnp.complex128)
        return jnp.fft.irfft(spectrum, size)[:points], None

    start = jnp.exp(-0.5 * grid**2) / math.sqrt(2 * math.pi)
    return jax.lax.scan(step, start, (times[:-1], times[1:]))[0]


@jax.jit
def _mass_above(
    grid: Float[Array, " points"], density: Float[Array, " points"], threshold: Float[Array, ""]
) -> Float[Array, ""]:
    """∫ of the density above the threshold, by the cubic through its cumulative sums.

    The density is smooth on the grid; its integral from the ends is as exact as the trapezoid rule, and
    between two points it is the integral of the cubic through four.
    """
    spacing = grid[1] - grid[0]
    place = jnp.clip((threshold - grid[0]) / spacing, 1.0, len(grid) - 3.0)
    cell = jnp.floor(place).astype(jnp.int32)
    share = place - cell.astype(jnp.float64)
    # Integral from grid[cell] to the end by Euler and Maclaurin's sum, with the slope at its start.
    index = jnp.arange(len(grid), dtype=jnp.int32)
    beyond = jnp.sum(jnp.where(index > cell, density, 0.0)) + 0.5 * density[cell]
    slope = (density[cell + 1] - density[cell - 1]) / 2
    whole = beyond + slope / 12
    before, here, after, last = (density[cell + k] for k in (-1, 0, 1, 2))
    # ∫₀^share of Lagrange's cubic through −1, 0, 1, 2.
    s = share
    part = (
        before * (-(s**4) / 24 + s**3 / 6 - s**2 / 6)
        + here * (s**4 / 8 - s**3 / 3 - s**2 / 4 + s)
        + after * (-(s**4) / 8 + s**3 / 6 + s**2 / 2)
        + last * (s**4 / 24 - s**2 / 12)
    )
    return spacing * (whole - part)
