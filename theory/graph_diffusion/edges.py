"""One edge of a Bernoulli graph under noise: score, information, and the law of its samples.

a ∈ {a₀, a₁} with P(a₁) = p; x = m a + σ ξ, ξ ~ N(0, 1), m = e^{−t}, σ² = 1 − e^{−2t}. Symbols:
Δ = m(a₁ − a₀)/σ, r = P(a = a₁ | x), λ = log p/(1 − p), y = (x − m(a₀ + a₁)/2)/σ. Then
r = sigmoid(λ + Δy), and the density of y is φ(y) e^{−Δ²/8} √(p(1−p)) 2cosh((λ + Δy)/2), φ the normal one.
Pairs of a graph whose edges are independent add up.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from boundlab.checks import check_number, check_shape
from boundlab.precision import float64
from boundlab.theory.graph_diffusion._edge_arguments import Edge, at_times, with_values
from boundlab.typing import Numbers, Scalar

# Nodes of the trapezoid rule either side of the integrand's mode. Stepping by at most .2 in y and .5 in
# Δy, they reach to ±32 in y or ±80 in Δy, where φ or 1/cosh has fallen below 1e-17.
HALF_NODES = 160
# Δ from which steps of .5 in Δy are the smaller ones.
SEPARATED = 2.5


@float64
def edge_posterior(
    x: Numbers, t: Scalar, probability: Numbers, low: Scalar = 0.0, high: Scalar = 1.0
) -> Float[Array, "*shape"]:
    """P(a = a₁ | x), the probability of an edge given its noised value.

    sigmoid(λ + [m(a₁ − a₀)x − m²(a₁² − a₀²)/2]/σ²).

    Args:
        x: Noised values, of any shape. All arguments may be traced.
        t: OU time ≥ 1e-100, t = B/2 for another schedule of total noise B.
        probability: p in (0, 1); it and `x` are one number or of one common shape.
        low: a₀, the value of a missing edge.
        high: a₁ > a₀, the value of an edge.

    Returns:
        An array of that shape.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#edges.

    """
    return _posterior(*with_values(x, t, probability, low, high))


@float64
def edge_score(
    x: Numbers, t: Scalar, probability: Numbers, low: Scalar = 0.0, high: Scalar = 1.0
) -> Float[Array, "*shape"]:
    """Exact score d log q_t/dx of a noised edge.

    (m(a₀ + (a₁ − a₀)r) − x)/σ² with r of `edge_posterior`; for a₀ = −1, a₁ = 1 it is
    (m tanh(mx/σ² + λ/2) − x)/σ².

    Args:
        x: Noised values, of any shape. All arguments may be traced.
        t: OU time ≥ 1e-100, t = B/2 for another schedule of total noise B.
        probability: p in (0, 1); it and `x` are one number or of one common shape.
        low: a₀, the value of a missing edge.
        high: a₁ > a₀, the value of an edge.

    Returns:
        An array of that shape.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#edges.

    """
    return _score(*with_values(x, t, probability, low, high))


@float64
def edge_log_density(
    x: Numbers, t: Scalar, probability: Numbers, low: Scalar = 0.0, high: Scalar = 1.0
) -> Float[Array, "*shape"]:
    """Log-density log q_t(x), q_t = (1 − p) N(m a₀, σ²) + p N(m a₁, σ²); in nats.

    Args:
        x: Noised values, of any shape. All arguments may be traced.
        t: OU time ≥ 1e-100, t = B/2 for another schedule of total noise B.
        probability: p in (0, 1); it and `x` are one number or of one common shape.
        low: a₀, the value of a missing edge.
        high: a₁ > a₀, the value of an edge.

    Returns:
        An array of that shape.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#edges.

    """
    return _log_density(*with_values(x, t, probability, low, high))


@float64
def edge_mmse(
    t: Numbers, probability: Numbers, low: Scalar = 0.0, high: Scalar = 1.0
) -> Float[Array, "*shape"]:
    """E(a − E[a | x])², the least mean square error of an edge guessed from its noised value.

    (a₁ − a₀)² √(p(1−p)) e^{−Δ²/8} E_y 1/(2cosh((λ + Δy)/2)) over y ~ N(0, 1), which is
    (a₁ − a₀)² E r(1 − r); by the trapezoid rule around the integrand's mode, to 1e-10 at every t.

    Args:
        t: OU times ≥ 1e-100, of any shape, t = B/2 for another schedule. All arguments may be traced.
        probability: p in (0, 1); it and `t` are one number or of one common shape.
        low: a₀, the value of a missing edge.
        high: a₁ > a₀, the value of an edge.

    Returns:
        An array of that shape; the square isn't halved.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#edges.

    """
    return _mmse(at_times(t, probability, low, high))


@float64
def edge_fisher(
    t: Numbers, probability: Numbers, low: Scalar = 0.0, high: Scalar = 1.0
) -> Float[Array, "*shape"]:
    """J(t) = E(d log q_t/dx)², the Fisher information of a noised edge: 1/σ² − (m²/σ⁴) mmse.

    Args:
        t: OU times ≥ 1e-100, of any shape, t = B/2 for another schedule. All arguments may be traced.
        probability: p in (0, 1); it and `t` are one number or of one common shape.
        low: a₀, the value of a missing edge.
        high: a₁ > a₀, the value of an edge.

    Returns:
        An array of that shape.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#edges, from the identity S5 of #system-theorem.

    """
    return _fisher(at_times(t, probability, low, high))


@float64
def edge_entropy(
    t: Numbers, probability: Numbers, low: Scalar = 0.0, high: Scalar = 1.0
) -> Float[Array, "*shape"]:
    """Differential entropy of a noised edge: ½ log(2πeσ²) + I(a; x), in nats.

    I(a; x) = H(p) − E H(r), H(p) = −p log p − (1−p) log(1−p), with the integral taken as in `edge_mmse`.

    Args:
        t: OU times ≥ 1e-100, of any shape, t = B/2 for another schedule. All arguments may be traced.
        probability: p in (0, 1); it and `t` are one number or of one common shape.
        low: a₀, the value of a missing edge.
        high: a₁ > a₀, the value of an edge.

    Returns:
        An array of that shape; negative where σ is small.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/graph_diffusion.md#edges.

    """
    return _entropy(at_times(t, probability, low, high))


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
        edge = at_times(times, probability, low, high, "times")
        return _entropy(edge), _fisher(edge)

    entropy, fisher = jax.vmap(one)(kinds)
    return counts @ entropy, counts @ fisher


@jax.jit
def _posterior(x: Float[Array, "*shape"], edge: Edge) -> Float[Array, "*shape"]:
    middle = 0.5 * edge.mean * (edge.low + edge.high)
    slope = edge.mean * (edge.high - edge.low) / edge.sigma_sq
    return jax.nn.sigmoid(edge.log_odds + slope * (x - middle))


@jax.jit
def _score(x: Float[Array, "*shape"], edge: Edge) -> Float[Array, "*shape"]:
    guess = edge.low + (edge.high - edge.low) * _posterior(x, edge)
    return (edge.mean * guess - x) / edge.sigma_sq


@jax.jit
def _log_density(x: Float[Array, "*shape"], edge: Edge) -> Float[Array, "*shape"]:
    squares = [(x - edge.mean * code) ** 2 / (2 * edge.sigma_sq) for code in (edge.low, edge.high)]
    absent, present = jnp.log1p(-edge.probability), jnp.log(edge.probability)
    mixture = jnp.logaddexp(absent - squares[0], present - squares[1])
    return mixture - 0.5 * jnp.log(2 * jnp.pi * edge.sigma_sq)


@jax.jit
def _mmse(edge: Edge) -> Float[Array, "*shape"]:
    return (edge.high - edge.low) ** 2 * _overlap(edge, entropy=False)


@jax.jit
def _fisher(edge: Edge) -> Float[Array, "*shape"]:
    return (1.0 - edge.mean**2 * _mmse(edge) / edge.sigma_sq) / edge.sigma_sq


@jax.jit
def _entropy(edge: Edge) -> Float[Array, "*shape"]:
    noise = 0.5 * (jnp.log(edge.sigma_sq) + math.log(2 * math.pi * math.e))
    return noise + edge_information(edge)


@jax.jit
def edge_information(edge: Edge) -> Float[Array, "*shape"]:
    """I(a; x), in nats."""
    p = edge.probability
    return -p * jnp.log(p) - (1 - p) * jnp.log1p(-p) - _overlap(edge, entropy=True)


def _overlap(edge: Edge, entropy: bool) -> Float[Array, "*shape"]:
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
    step = 0.5 / jnp.maximum(separation, SEPARATED)
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
