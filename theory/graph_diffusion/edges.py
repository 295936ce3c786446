"""One edge of a Bernoulli graph under noise: score, information, and the law of its samples.

a ∈ {a₀, a₁} with P(a₁) = p; x = m a + σ ξ, ξ ~ N(0, 1), m = e^{−t}, σ² = 1 − e^{−2t}. Symbols:
Δ = m(a₁ − a₀)/σ, r = P(a = a₁ | x), λ = log p/(1 − p), y = (x − m(a₀ + a₁)/2)/σ. Then
r = sigmoid(λ + Δy), and the density of y is φ(y) e^{−Δ²/8} √(p(1−p)) 2cosh((λ + Δy)/2), φ the normal one.
Pairs of a graph whose edges are independent add up.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.typing import Numbers, Scalar

# Nodes of the trapezoid rule either side of the integrand's mode. Stepping by at most .2 in y and .5 in
# Δy, they reach to ±32 in y or ±80 in Δy, where φ or 1/cosh has fallen below 1e-17.
HALF_NODES = 160
# Slope in x of the posterior's argument from which the logistic law is integrated and not the normal one.
STEEP = 2.5


class _Edge(NamedTuple):
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


@float64
def edge_posterior(
    x: Numbers, t: Scalar, probability: Numbers, low: Scalar = 0.0, high: Scalar = 1.0
) -> Float[Array, "*shape"]:
    """P(a = a₁ | x), the probability of an edge given its noised value.

    sigmoid(λ + [m(a₁ − a₀)x − m²(a₁² − a₀²)/2]/σ²).

    Args:
        x: Noised values, of any shape. All arguments may be traced.
        t: OU time > 0, t = B/2 for another schedule of total noise B.
        probability: p in (0, 1), one number or of the shape of `x`.
        low: a₀, the value of a missing edge.
        high: a₁ > a₀, the value of an edge.

    Returns:
        An array like x.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#edges.

    """
    values, edge = _with_values(x, t, probability, low, high)
    return _posterior(values, edge)


@float64
def edge_score(
    x: Numbers, t: Scalar, probability: Numbers, low: Scalar = 0.0, high: Scalar = 1.0
) -> Float[Array, "*shape"]:
    """Exact score d log q_t/dx of a noised edge.

    (m(a₀ + (a₁ − a₀)r) − x)/σ² with r of `edge_posterior`; for a₀ = −1, a₁ = 1 it is
    (m tanh(mx/σ² + λ/2) − x)/σ².

    Args:
        x: Noised values, of any shape. All arguments may be traced.
        t: OU time > 0, t = B/2 for another schedule of total noise B.
        probability: p in (0, 1), one number or of the shape of `x`.
        low: a₀, the value of a missing edge.
        high: a₁ > a₀, the value of an edge.

    Returns:
        An array like x.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#edges.

    """
    values, edge = _with_values(x, t, probability, low, high)
    posterior_mean = edge.low + (edge.high - edge.low) * _posterior(values, edge)
    return (edge.mean * posterior_mean - values) / edge.sigma_sq


@float64
def edge_log_density(
    x: Numbers, t: Scalar, probability: Numbers, low: Scalar = 0.0, high: Scalar = 1.0
) -> Float[Array, "*shape"]:
    """Log-density log q_t(x), q_t = (1 − p) N(m a₀, σ²) + p N(m a₁, σ²); in nats.

    Args:
        x: Noised values, of any shape. All arguments may be traced.
        t: OU time > 0, t = B/2 for another schedule of total noise B.
        probability: p in (0, 1), one number or of the shape of `x`.
        low: a₀, the value of a missing edge.
        high: a₁ > a₀, the value of an edge.

    Returns:
        An array like x.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#edges.

    """
    values, edge = _with_values(x, t, probability, low, high)
    absent = jnp.log1p(-edge.probability) - (values - edge.mean * edge.low) ** 2 / (
        2 * edge.sigma_sq
    )
    present = jnp.log(edge.probability) - (values - edge.mean * edge.high) ** 2 / (
        2 * edge.sigma_sq
    )
    return jnp.logaddexp(absent, present) - 0.5 * jnp.log(2 * jnp.pi * edge.sigma_sq)


@float64
def edge_mmse(
    t: Numbers, probability: Numbers, low: Scalar = 0.0, high: Scalar = 1.0
) -> Float[Array, "*shape"]:
    """E(a − E[a | x])², the least mean square error of an edge guessed from its noised value.

    (a₁ − a₀)² √(p(1−p)) e^{−Δ²/8} E_y 1/(2cosh((λ + Δy)/2)) over y ~ N(0, 1), which is
    (a₁ − a₀)² E r(1 − r); by the trapezoid rule around the integrand's mode, to 1e-10 at every t.

    Args:
        t: OU times > 0, of any shape, t = B/2 for another schedule. All arguments may be traced.
        probability: p in (0, 1), one number or of the shape of `t`.
        low: a₀, the value of a missing edge.
        high: a₁ > a₀, the value of an edge.

    Returns:
        An array like t; the square isn't halved.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#edges.

    """
    return _mmse(_at_times(t, probability, low, high))


@float64
def edge_fisher(
    t: Numbers, probability: Numbers, low: Scalar = 0.0, high: Scalar = 1.0
) -> Float[Array, "*shape"]:
    """J(t) = E(d log q_t/dx)², the Fisher information of a noised edge: 1/σ² − (m²/σ⁴) mmse.

    Args:
        t: OU times > 0, of any shape, t = B/2 for another schedule. All arguments may be traced.
        probability: p in (0, 1), one number or of the shape of `t`.
        low: a₀, the value of a missing edge.
        high: a₁ > a₀, the value of an edge.

    Returns:
        An array like t.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#edges, from the identity S5 of #system-theorem.

    """
    return _fisher(_at_times(t, probability, low, high))


@float64
def edge_entropy(
    t: Numbers, probability: Numbers, low: Scalar = 0.0, high: Scalar = 1.0
) -> Float[Array, "*shape"]:
    """Differential entropy of a noised edge: ½ log(2πeσ²) + I(a; x), in nats.

    I(a; x) = H(p) − E H(r), H(p) = −p log p − (1−p) log(1−p), with the integral taken as in `edge_mmse`.

    Args:
        t: OU times > 0, of any shape, t = B/2 for another schedule. All arguments may be traced.
        probability: p in (0, 1), one number or of the shape of `t`.
        low: a₀, the value of a missing edge.
        high: a₁ > a₀, the value of an edge.

    Returns:
        An array like t; negative where σ is small.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#edges.

    """
    return _entropy(_at_times(t, probability, low, high))


@float64
def edge_initialization_kl(
    horizon: Numbers, probability: Numbers, low: Scalar = 0.0, high: Scalar = 1.0
) -> Float[Array, "*shape"]:
    """KL(q_T ‖ N(0, 1)) of a noised edge: what starting the sampler from the prior costs.

    ½m²(E a² − 1) − ½ log(1 − m²) − I(a; x_T): the bound S8 for any law, less the information left in x.
    To 1e-15 absolutely.

    Args:
        horizon: OU times T > 0, of any shape, T = B/2 for another schedule. All arguments may be traced.
        probability: p in (0, 1), one number or of the shape of `horizon`.
        low: a₀, the value of a missing edge.
        high: a₁ > a₀, the value of an edge.

    Returns:
        An array like horizon, in nats.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#initialisation.

    """
    edge = _at_times(horizon, probability, low, high, "horizon")
    second = edge.low**2 + edge.probability * (edge.high**2 - edge.low**2)
    gaussian = 0.5 * (edge.mean**2 * (second - 1.0) - jnp.log(edge.sigma_sq))
    return gaussian - _information(edge)


@float64
def edge_chi_squared(
    horizon: Numbers, probability: Numbers, low: Scalar = 0.0, high: Scalar = 1.0
) -> Float[Array, "*shape"]:
    """χ²(q_T ‖ N(0, 1)) of a noised edge; the KL is at most log(1 + χ²).

    1 + χ² = Σ_{ij} p_i p_j (1 − ρ²)^{−½} exp([ρ a_i a_j − ρ²(a_i² + a_j²)/2]/(1 − ρ²)), ρ = e^{−2T}: the
    Hermite series of docs/graph_diffusion.md summed by Mehler's formula.

    Args:
        horizon: OU times T > 0, of any shape, T = B/2 for another schedule. All arguments may be traced.
        probability: p in (0, 1), one number or of the shape of `horizon`.
        low: a₀, the value of a missing edge.
        high: a₁ > a₀, the value of an edge.

    Returns:
        An array like horizon.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#initialisation.

    """
    edge = _at_times(horizon, probability, low, high, "horizon")
    rho = edge.mean**2
    spread = edge.sigma_sq * (1.0 + rho)
    total = jnp.zeros_like(rho)
    atoms = ((edge.low, 1.0 - edge.probability), (edge.high, edge.probability))
    for first, weight in atoms:
        for second, other in atoms:
            exponent = rho * (first * second - 0.5 * rho * (first**2 + second**2)) / spread
            total += weight * other * jnp.expm1(exponent - 0.5 * jnp.log1p(-(rho**2)))
    return total


@float64
def edge_probability_after_sampling(
    probability: Numbers, integrated_beta: Numbers, low: Scalar = 0.0, high: Scalar = 1.0
) -> Float[Array, "*shape"]:
    """P(edge) in samples of the reverse SDE with the exact score, started from N(0, 1).

    E_{x ~ N(0, 1)} r(x, T) with m² = e^{−B}, σ² = 1 − e^{−B}: the reverse SDE is the true backward
    kernel, so what it makes of the wrong start is the posterior. No discretisation error is in it. It
    tends to p as B → ∞ and to P(x > (a₀ + a₁)/2) as B → 0.

    Args:
        probability: p in (0, 1), one number or of the shape of `integrated_beta`.
        integrated_beta: B = ∫β > 0, the total noise of the schedule, of any shape. All may be traced.
        low: a₀, the value of a missing edge.
        high: a₁ > a₀, the value of an edge.

    Returns:
        An array like integrated_beta.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#short-schedule.

    """
    check_number("integrated_beta", integrated_beta, 0, low_open=True)
    edge = _edge_of("integrated_beta", integrated_beta, 0.5, probability, low, high)
    slope = edge.mean * (edge.high - edge.low) / edge.sigma_sq
    offset = edge.log_odds - 0.5 * slope * edge.mean * (edge.high + edge.low)
    return _logistic_normal(offset, slope)


@float64
def bernoulli_graph_totals(
    times: Numbers, probabilities: Numbers, pairs: Numbers, low: Scalar = 0.0, high: Scalar = 1.0
) -> tuple[Float[Array, " steps_1"], Float[Array, " steps_1"]]:
    """Entropy and Fisher information of a noised graph whose edges are independent.

    Sums over pairs i < j, each once, of `edge_entropy` and `edge_fisher`: what `bound_entropy_fisher`
    takes. Erdős–Rényi graphs have one kind of pair, block models with known labels one a pair of blocks.

    Args:
        times: OU times (N + 1,) > 0, in any order. All arguments may be traced.
        probabilities: P(edge) of each kind of pair (k,), in (0, 1).
        pairs: how many pairs of each kind (k,), ≥ 0.
        low: a₀, the value of a missing edge.
        high: a₁ > a₀, the value of an edge.

    Returns:
        (entropy (N + 1,), fisher (N + 1,)), totals in nats and without a ½.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#edges.

    """
    check_shape("times", times, (None,))
    check_number("times", times, 0, low_open=True)
    check_shape("probabilities", probabilities, (None,))
    check_number("probabilities", probabilities, 0, 1, low_open=True, high_open=True)
    kinds = jnp.asarray(probabilities, jnp.float64)
    check_shape("pairs", pairs, kinds.shape, "one count a probability")
    check_number("pairs", pairs, 0)
    counts = jnp.asarray(pairs, jnp.float64)

    def one(
        probability: Float[Array, ""],
    ) -> tuple[Float[Array, " steps_1"], Float[Array, " steps_1"]]:
        edge = _at_times(times, probability, low, high, "times")
        return _entropy(edge), _fisher(edge)

    entropy, fisher = jax.vmap(one)(kinds)
    return counts @ entropy, counts @ fisher


def _with_values(
    x: Any, t: Any, probability: Any, low: Any, high: Any
) -> tuple[Float[Array, "*shape"], _Edge]:
    check_number("x", x)
    values = jnp.asarray(x, jnp.float64)
    check_shape("t", t, ())
    check_number("t", t, 0, low_open=True)
    time = jnp.broadcast_to(jnp.asarray(t, jnp.float64), values.shape)
    return values, _edge_of("x", time, 1.0, probability, low, high)


def _at_times(t: Any, probability: Any, low: Any, high: Any, name: str = "t") -> _Edge:
    check_number(name, t, 0, low_open=True)
    return _edge_of(name, t, 1.0, probability, low, high)


def _edge_of(name: str, value: Any, rate: float, probability: Any, low: Any, high: Any) -> _Edge:
    """The arguments in the shape of `value`, the argument `name`; rate·value is the OU time."""
    times = rate * jnp.asarray(value, jnp.float64)
    check_number("probability", probability, 0, 1, low_open=True, high_open=True)
    chance = jnp.asarray(probability, jnp.float64)
    if chance.shape not in ((), times.shape):
        raise fail("probability", f"shape {chance.shape}", f"one number or the shape of {name}")
    check_codes(low, high)
    codes = [jnp.broadcast_to(jnp.asarray(a, jnp.float64), times.shape) for a in (low, high)]
    chance = jnp.broadcast_to(chance, times.shape)
    return _Edge(jnp.exp(-times), -jnp.expm1(-2 * times), chance, codes[0], codes[1])


def check_codes(low: Any, high: Any) -> None:
    """Refuse values of missing and present edges but two finite numbers, low < high."""
    for name, code in (("low", low), ("high", high)):
        check_shape(name, code, ())
        check_number(name, code)
    if not is_traced(low, high) and not float(np.asarray(low)) < float(np.asarray(high)):
        raise fail("low", low, f"a number below high = {high}")


def _posterior(x: Float[Array, "*shape"], edge: _Edge) -> Float[Array, "*shape"]:
    middle = 0.5 * edge.mean * (edge.low + edge.high)
    slope = edge.mean * (edge.high - edge.low) / edge.sigma_sq
    return jax.nn.sigmoid(edge.log_odds + slope * (x - middle))


@jax.jit
def _mmse(edge: _Edge) -> Float[Array, "*shape"]:
    return (edge.high - edge.low) ** 2 * _overlap(edge, entropy=False)


@jax.jit
def _fisher(edge: _Edge) -> Float[Array, "*shape"]:
    return (1.0 - edge.mean**2 * _mmse(edge) / edge.sigma_sq) / edge.sigma_sq


@jax.jit
def _entropy(edge: _Edge) -> Float[Array, "*shape"]:
    noise = 0.5 * (jnp.log(edge.sigma_sq) + math.log(2 * math.pi * math.e))
    return noise + _information(edge)


@jax.jit
def _information(edge: _Edge) -> Float[Array, "*shape"]:
    """I(a; x), in nats."""
    p = edge.probability
    return -p * jnp.log(p) - (1 - p) * jnp.log1p(-p) - _overlap(edge, entropy=True)


def _overlap(edge: _Edge, entropy: bool) -> Float[Array, "*shape"]:
    """E r(1 − r), or with `entropy` E H(r), over the law of x.

    The integrand is log-concave in y up to a power of |u|, so its mode is where the slopes of y²/2 and
    of |u|/2, u = λ + Δy, balance or at the kink u = 0.
    """
    separation, log_odds = edge.separation, edge.log_odds
    at_kink = jnp.abs(log_odds) < 0.5 * separation**2
    distance = jnp.where(
        at_kink, jnp.abs(log_odds) / jnp.where(at_kink, separation, 1.0), 0.5 * separation
    )
    mode = -jnp.sign(log_odds) * distance
    step = 0.5 / jnp.maximum(separation, STEEP)
    nodes = jnp.arange(-HALF_NODES, HALF_NODES + 1, dtype=jnp.float64)
    y = mode[..., None] + step[..., None] * nodes.reshape((1,) * mode.ndim + (-1,))
    u = log_odds[..., None] + separation[..., None] * y
    size = jnp.abs(u)
    # log 2cosh(u/2) = |u|/2 + log(1 + e^{−|u|}).
    softplus = jnp.log1p(jnp.exp(-size))
    # H(r) = log(1 + e^{−|u|}) + |u|(1 − max(r, 1 − r)), and r(1 − r) = 1/(2cosh(u/2))².
    if entropy:
        share = softplus + size * jax.nn.sigmoid(-size)
        log_weight = 0.5 * size + softplus
    else:
        share = jnp.ones_like(u)
        log_weight = -0.5 * size - softplus
    chance = 0.5 * (jnp.log(edge.probability) + jnp.log1p(-edge.probability))
    exponent = log_weight - 0.5 * y**2 + (chance - separation**2 / 8)[..., None]
    total = jnp.sum(share * jnp.exp(exponent), axis=-1)
    return step * total / math.sqrt(2 * math.pi)


@jax.jit
def _logistic_normal(
    offset: Float[Array, "*shape"], slope: Float[Array, "*shape"]
) -> Float[Array, "*shape"]:
    """E sigmoid(offset + slope·x) over x ~ N(0, 1), slope > 0, to 1e-10 whatever its size.

    A steep sigmoid is nearly a step; as P(L < offset + slope·x) with L logistic, the integral over L has
    the smooth integrand Φ((offset − u)/slope)/(2cosh(u/2))².
    """
    nodes = jnp.arange(-HALF_NODES, HALF_NODES + 1, dtype=jnp.float64)
    nodes = nodes.reshape((1,) * offset.ndim + (-1,))
    steep = slope > STEEP
    flat_slope = jnp.where(steep, 1.0, slope)[..., None]
    normal = jnp.exp(-0.5 * (0.2 * nodes) ** 2) / math.sqrt(2 * math.pi)
    flat = 0.2 * jnp.sum(
        normal * jax.nn.sigmoid(offset[..., None] + flat_slope * (0.2 * nodes)), axis=-1
    )
    steep_slope = jnp.where(steep, slope, 1.0)
    # Below u = 0 the integrand is e^{u − (u − offset)²/(2 slope²)} where Φ is small.
    mode = jnp.minimum(offset + steep_slope**2, 0.0)
    u = mode[..., None] + 0.5 * nodes
    logistic = jax.nn.sigmoid(u) * jax.nn.sigmoid(-u)
    below = jax.scipy.special.ndtr((offset[..., None] - u) / steep_slope[..., None])
    return jnp.where(steep, 0.5 * jnp.sum(logistic * below, axis=-1), flat)
