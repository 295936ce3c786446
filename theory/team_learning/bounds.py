"""Upper bounds on sample complexity: one agent, independent, dependent and misaligned teams (T1–T4).

Symbols: d parameters in a ball of radius B; L_step the Lipschitz constant of one token's law in total
variation (with its ½); T tokens; ε accuracy of the value, rewards in [0, 1]; δ failure probability; K
agents of which i has d_i, B_i, T_i; α misalignment, the sup-distance of the reward from the mean of the
subtasks' rewards; |Π_i| policies of a finite class. N counts prompts, each of which shows every agent its
own subtask reward (process reward) unless the team is trained stage by stage.

What is known of su2026when's theorems is what reviews of it say: that one agent takes d log(γ/ε)/ε², the
independent team the hardest agent's part of it, the dependent one Σd_i log(·)/(ε/K)². So the forms are
*reviewed*; every constant, the logarithms' arguments and the form of T4 are *derived*.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from boundlab.checks import check_choice, check_integer, check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.typing import Count, Numbers, Scalar

KINDS = ("sarl", "independent", "dependent", "misaligned")


@float64
def pac_samples(
    kind: str,
    dims: Numbers,
    radii: Numbers,
    horizons: Numbers,
    step_lipschitz: Scalar,
    accuracy: Scalar,
    failure_probability: Scalar,
    alignment: Scalar = 0.0,
) -> Float[Array, ""]:
    """Samples at which the empirical best of parametric policies is within ε with probability 1 − δ.

        sarl         ⌈(8/ε²)(d ln(1 + 16 B L T/ε) + ln(2/δ))⌉                              (T1)
        independent  max_i ⌈(8/ε²)(d_i ln(1 + 16 B_i L T_i/ε) + ln(2K/δ))⌉                 (T2)
        dependent    Σ_i ⌈(8K²/ε²)(d_i ln(1 + 16 K B_i L T_i/ε) + ln(2K/δ))⌉               (T3)
        misaligned   (T2) at ε − 2α                                                        (T4)

    T3 is for agents trained one after another on fresh prompts, each to ε/K; a dependent team that is
    trained jointly is covered by T1 with d = Σd_i. The value of a policy is its mean over prompts of the
    conditional value given the prompt; texts drawn from the policy would need a second deviation term.

    Args:
        kind: `sarl`, `independent`, `dependent` or `misaligned`.
        dims: d ≥ 1, a scalar for `sarl`, (K,) otherwise. May be traced.
        radii: B ≥ 0, a scalar for `sarl`, (K,) otherwise. May be traced.
        horizons: T ≥ 1 tokens, a scalar for `sarl`, (K,) otherwise. May be traced.
        step_lipschitz: L ≥ 0, total variation per unit of parameter; ½ for linear softmax with features
            of norm at most 1. May be traced.
        accuracy: ε > 0, of a value in [0, 1]. May be traced.
        failure_probability: δ in (0, 1). May be traced.
        alignment: α ≥ 0, enters `misaligned` alone. May be traced.

    Returns:
        N in prompts, all K stages together for `dependent`; +inf for `misaligned` at ε ≤ 2α.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: su2026when, Theorems 4.1–4.3 and 4.6: forms reviewed, constants derived,
    docs/team_learning.md#paper-bounds.

    """
    check_choice("kind", kind, KINDS)
    shape = () if kind == "sarl" else (None,)
    check_shape("dims", dims, shape)
    d = _numbers("dims", dims, 1, np.shape(dims))
    b = _numbers("radii", radii, 0, d.shape)
    t = _numbers("horizons", horizons, 1, d.shape)
    lipschitz = _numbers("step_lipschitz", step_lipschitz, 0)
    level, delta, alpha = _common(accuracy, failure_probability, alignment)
    agents = float(d.size)
    target, feasible = _target(kind, level, alpha, agents)
    cover = d * jnp.log1p(16.0 * b * lipschitz * t / target)
    count = jnp.ceil(8.0 / target**2 * (cover + jnp.log(2.0 * agents) - jnp.log(delta)))
    total = jnp.sum(count) if kind == "dependent" else jnp.max(count)
    return jnp.where(feasible, total, jnp.inf)


@float64
def finite_class_samples(
    log_class_sizes: Numbers,
    accuracy: Scalar,
    failure_probability: Scalar,
    kind: str,
    alignment: Scalar = 0.0,
) -> Float[Array, ""]:
    """Samples at which the empirical best of finite classes is within ε with probability 1 − δ.

        sarl         (2/ε²)(Σ_i ln|Π_i| + ln(2/δ))
        independent  (2/ε²)(max_i ln|Π_i| + ln(2K/δ))
        dependent    (2K²/ε²) Σ_i (ln|Π_i| + ln(2K/δ))
        misaligned   `independent` at ε − 2α

    `sarl` is joint maximisation over the product class: it never has the K². For equal classes dependent
    is K³ times independent.

    Args:
        log_class_sizes: ln|Π_i| ≥ 0 (K,), real. May be traced.
        accuracy: ε > 0, of a value in [0, 1]. May be traced.
        failure_probability: δ in (0, 1). May be traced.
        kind: `sarl`, `independent`, `dependent` or `misaligned`.
        alignment: α ≥ 0, enters `misaligned` alone. May be traced.

    Returns:
        N in prompts, a real number without ceiling, all K stages together for `dependent`; +inf for
        `misaligned` at ε ≤ 2α.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#finite-classes; the finite case of su2026when's forms, which
    were reviewed.

    """
    check_choice("kind", kind, KINDS)
    check_shape("log_class_sizes", log_class_sizes, (None,))
    sizes = _numbers("log_class_sizes", log_class_sizes, 0, np.shape(log_class_sizes))
    level, delta, alpha = _common(accuracy, failure_probability, alignment)
    agents = 1.0 if kind == "sarl" else float(sizes.size)
    target, feasible = _target(kind, level, alpha, agents)
    classes = sizes if kind != "sarl" else jnp.sum(sizes, keepdims=True)
    count = 2.0 / target**2 * (classes + jnp.log(2.0 * agents) - jnp.log(delta))
    total = jnp.sum(count) if kind == "dependent" else jnp.max(count)
    return jnp.where(feasible, total, jnp.inf)


@float64
def alignment_crossover(
    log_class_size: Scalar, num_agents: Count, accuracy: Scalar, failure_probability: Scalar
) -> Float[Array, ""]:
    """Misalignment α* at which a team's bound is one agent's, for K equal finite classes:

        α* = (ε/2)(1 − √κ),   κ = (ln|Π₁| + ln(2K/δ))/(K ln|Π₁| + ln(2/δ)).

    By these bounds decomposing pays for α < α*. κ → 1/K for large classes; where κ > 1 (tiny ones) α* is
    negative: there it never pays.

    Args:
        log_class_size: ln|Π₁| ≥ 0. May be traced.
        num_agents: K ≥ 1.
        accuracy: ε > 0. May be traced.
        failure_probability: δ in (0, 1). May be traced.

    Returns:
        α* in units of the value, at most ε/2.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#finite-classes; the counterpart of su2026when, Proposition 4.7,
    which was reviewed.

    """
    size = _numbers("log_class_size", log_class_size, 0)
    agents = float(check_integer("num_agents", num_agents, 1))
    level, delta, _ = _common(accuracy, failure_probability, 0.0)
    return _crossover(size, jnp.asarray(agents, jnp.float64), level, delta)


@float64
def weighted_samples(
    log_class_sizes: Numbers, weights: Numbers, accuracy: Scalar, failure_probability: Scalar
) -> Float[Array, ""]:
    """Samples of an independent team paid Σ w_i r_i: 2(Σ w_i √c_i)²/ε² with c_i = ln(2K|Π_i|/δ).

    Never above `finite_class_samples` of kind `independent`, which it is for equal classes.

    Args:
        log_class_sizes: ln|Π_i| ≥ 0 (K,). May be traced.
        weights: w_i ≥ 0 (K,) that sum to 1. May be traced.
        accuracy: ε > 0, of the weighted value in [0, 1]. May be traced.
        failure_probability: δ in (0, 1). May be traced.

    Returns:
        N in prompts, a real number.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#finite-classes.

    """
    check_shape("log_class_sizes", log_class_sizes, (None,))
    sizes = _numbers("log_class_sizes", log_class_sizes, 0, np.shape(log_class_sizes))
    shares = _numbers("weights", weights, 0, sizes.shape)
    if not is_traced(shares) and abs(float(jnp.sum(shares)) - 1.0) > 1e-6:
        raise fail("weights", f"a sum of {float(jnp.sum(shares)):g}", "weights that sum to 1")
    level, delta, _ = _common(accuracy, failure_probability, 0.0)
    c = sizes + jnp.log(2.0 * sizes.size) - jnp.log(delta)
    return 2.0 * (jnp.sum(shares * jnp.sqrt(c)) / level) ** 2


@float64
def sequence_lipschitz(num_tokens: Numbers, step_lipschitz: Scalar = 0.5) -> Float[Array, "*batch"]:
    """Lipschitz constant T·L_step of a text's law in total variation, and of any value in [0, 1] (L1).

    Token after token is exchanged; ½ is the constant of linear softmax with features of norm at most 1,
    attained by two tokens with opposite features.

    Args:
        num_tokens: T ≥ 1, the longest text; an array or a number. May be traced.
        step_lipschitz: L_step ≥ 0 of one token's law, total variation per unit of parameter. May be
            traced.

    Returns:
        The constant, of the shape of `num_tokens`.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#lipschitz-policies.

    """
    tokens = _numbers("num_tokens", num_tokens, 1, np.shape(num_tokens))
    return tokens * _numbers("step_lipschitz", step_lipschitz, 0)


@float64
def softmax_lipschitz(num_tokens: Numbers) -> Float[Array, "*batch"]:
    """Lipschitz constant √T/2 = min(T, √T)/2 of a linear-softmax policy's texts in total variation.

    Each token's KL is at most ½‖Δθ‖² for features of norm at most 1; Pinsker on their sum.

    Args:
        num_tokens: T ≥ 1, the longest text; an array or a number. May be traced.

    Returns:
        The constant, of the shape of `num_tokens`; never above `sequence_lipschitz`.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#lipschitz-policies.

    """
    return 0.5 * jnp.sqrt(_numbers("num_tokens", num_tokens, 1, np.shape(num_tokens)))


@jax.jit
def _crossover(
    size: Float[Array, ""],
    agents: Float[Array, ""],
    level: Float[Array, ""],
    delta: Float[Array, ""],
) -> Float[Array, ""]:
    log_failure = jnp.log(2.0) - jnp.log(delta)
    one, team = agents * size + log_failure, size + jnp.log(agents) + log_failure
    # 1 − √κ without cancellation.
    saved = (one - team) / one
    return 0.5 * level * saved / (1.0 + jnp.sqrt(team / one))


def _target(
    kind: str, level: Float[Array, ""], alpha: Float[Array, ""], agents: float
) -> tuple[Float[Array, ""], Any]:
    """The accuracy that each agent is solved to, and whether there is any."""
    if kind == "dependent":
        return level / agents, True
    if kind == "misaligned":
        left = level - 2.0 * alpha
        return jnp.where(left > 0.0, left, 1.0), left > 0.0
    return level, True


def _common(
    accuracy: Any, failure_probability: Any, alignment: Any
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    check_number("accuracy", accuracy, 0, low_open=True)
    check_number("failure_probability", failure_probability, 0, 1, low_open=True, high_open=True)
    check_number("alignment", alignment, 0)
    values = []
    for name, value in (
        ("accuracy", accuracy),
        ("failure_probability", failure_probability),
        ("alignment", alignment),
    ):
        check_shape(name, value, ())
        values.append(jnp.asarray(value).astype(jnp.float64))
    return values[0], values[1], values[2]


def _numbers(
    name: str, value: Any, low: int, shape: tuple[int, ...] = ()
) -> Float[Array, "*shape"]:
    check_shape(name, value, shape)
    check_number(name, value, low)
    return jnp.asarray(value).astype(jnp.float64)
