"""Samples that the regression task takes to an accuracy, and when a blind team takes fewer.

Symbols as in `boundlab.theory.team_learning.regression`; ε is a root mean square error, its square the
target of the mean risk over subtasks; V̄ and F̄ are means over subtasks. Inverting the exact risks leaves
a rule without the noise: the blind team takes no more samples than one agent iff d/D ≤ 1 − F̄/ε².
"""

import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Array, Float

from boundlab.checks import check_choice, check_integer, check_number, check_shape, fail
from boundlab.precision import float64, is_traced
from boundlab.theory.team_learning.regression import LEARNERS, neglected_variance
from boundlab.typing import Count, Scalar

RULES = ("exact", "asymptotic", "paper")
CRITERIA = ("mean", "worst")


@float64
def regression_samples(
    accuracy: Scalar,
    num_agents: Count,
    dim: Count,
    noise_variance: Scalar,
    coupling: Scalar,
    learner: str,
    *,
    kind: str = "mean",
) -> Float[Array, ""]:
    """Sample size at which the mean of `regression_risk` over subtasks is ε²:

        sarl D + 1 + Dσ²V̄/ε²,  aware d + 1 + dσ²V̄/ε²,  blind d + 1 + d(σ²V̄ + F̄)/(ε² − F̄).

    At λ = 0, (n_team − 1)/(n_sarl − 1) = d/D = 1/K exactly.

    Args:
        accuracy: ε > 0, a root mean square error. May be traced.
        num_agents: K ≥ 1.
        dim: d ≥ 1 of each agent's input.
        noise_variance: σ² ≥ 0. May be traced.
        coupling: λ ≥ 0, at most 1e150. May be traced.
        learner: `sarl`, `aware` or `blind`.
        kind: `mean`, `chain` or `sum`.

    Returns:
        n in trajectories, a real number; +inf for `blind` at ε² ≤ F̄, which it never reaches.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#regression-crossover.

    """
    check_choice("learner", learner, LEARNERS)
    check_number("noise_variance", noise_variance, 0)
    check_shape("noise_variance", noise_variance, ())
    size = check_integer("dim", dim, 1)
    root = _accuracy(accuracy)
    neglected = jnp.mean(neglected_variance(num_agents, coupling, kind=kind))
    noise = jnp.asarray(noise_variance).astype(jnp.float64)
    quiet = noise == 0.0
    noise = jnp.where(quiet, 0.0, noise * jnp.where(quiet, 1.0, 1.0 + neglected))
    if learner == "sarl":
        size *= check_integer("num_agents", num_agents, 1)
    if learner != "blind":
        return size + 1.0 + size * noise / root / root
    # (ε + √F̄)(ε − √F̄), since ε² may underflow.
    floor = jnp.sqrt(neglected)
    reached = root > floor
    above = jnp.where(reached, root - floor, 1.0)
    finite = jnp.where(reached, neglected, 0.0)
    n = size + 1.0 + size * (noise + finite) / above / jnp.where(reached, root + floor, 1.0)
    return jnp.where(reached, n, jnp.inf)


@float64
def dimension_ratio_limit(
    misalignment: Scalar, accuracy: Scalar, rule: str = "exact", noise_variance: Scalar = 1.0
) -> Float[Array, ""]:
    """Largest d/D at which the blind team takes no more samples than one agent, t = α/ε:

        exact       1 − t²                        from the sample sizes of `regression_samples`,
        asymptotic  (1 − t²)/(1 + α²/(σ²V̄))      without their d + 1 and D + 1,
        paper       (1 − 2t)²                     its crossover, read with equal logarithms.

    (1 − 2t)² ≤ 1 − t² for t ≤ .8: the paper's rule suffices, and is conservative.

    Args:
        misalignment: α = √F̄ ≥ 0, root mean square. May be traced.
        accuracy: ε > 0, a root mean square error. May be traced.
        rule: `exact`, `asymptotic` or `paper`.
        noise_variance: σ²V̄ > 0, for `asymptotic` alone. May be traced.

    Returns:
        A number in [0, 1]; 0 where the team never gets there, t ≥ 1 (`paper`: t ≥ ½).

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#regression-crossover; `paper` su2026when, from reviews of it.

    """
    check_choice("rule", rule, RULES)
    check_number("misalignment", misalignment, 0)
    check_shape("misalignment", misalignment, ())
    check_number("noise_variance", noise_variance, 0, low_open=True)
    check_shape("noise_variance", noise_variance, ())
    root = _accuracy(accuracy)
    alpha, noise = (jnp.asarray(v).astype(jnp.float64) for v in (misalignment, noise_variance))
    share = jnp.minimum(alpha / root, 1.0)
    if rule == "paper":
        return jnp.maximum(1.0 - 2.0 * share, 0.0) ** 2
    limit = (1.0 - share) * (1.0 + share)
    return limit if rule == "exact" else limit / (1.0 + alpha / noise * alpha)


@float64
def accuracy_crossover(
    num_agents: Count, coupling: Scalar, rule: str = "exact", *, kind: str = "mean"
) -> Float[Array, ""]:
    """Accuracy ε* above which the blind team takes fewer samples than one agent, whatever noise and d:

        exact  √(F̄ K/(K − 1)),    paper  2√F̄/(1 − 1/√K).

    At ε* both take `regression_crossover`.

    Args:
        num_agents: K ≥ 1.
        coupling: λ ≥ 0, at most 1e150. May be traced.
        rule: `exact` or `paper`.
        kind: `mean`, `chain` or `sum`.

    Returns:
        ε*, a root mean square error; 0 where nothing is neglected (λ = 0 or K = 1).

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#regression-crossover; `paper` su2026when, from reviews of it.

    """
    check_choice("rule", rule, ("exact", "paper"))
    agents = check_integer("num_agents", num_agents, 1)
    floor = jnp.sqrt(jnp.mean(neglected_variance(agents, coupling, kind=kind)))
    if agents == 1:
        return floor
    exact = 1.0 / np.sqrt(1.0 - 1.0 / agents)
    return floor * (exact if rule == "exact" else 2.0 / (1.0 - 1.0 / np.sqrt(agents)))


@float64
def chi_square_samples(
    num_agents: Count,
    dim: Count,
    noise_variance: Scalar,
    accuracy: Scalar,
    failure_probability: Scalar,
    criterion: str = "mean",
) -> tuple[float, float]:
    """Sample sizes at which least squares on a fixed design fails with probability δ, exactly, at λ = 0.

    Failure: in-sample risk, |X(ŵ − w)|²/n, above ε², its mean over subtasks or that of the worst one:

        mean   σ²χ²_{Kp; 1−δ}/(Kε²),     worst  σ²χ²_{p; (1−δ)^{1/K}}/ε²,

    with p = D = Kd inputs a regression for one agent and p = d for a team.

    Args:
        num_agents: K ≥ 1.
        dim: d ≥ 1 of each agent's input.
        noise_variance: σ² ≥ 0.
        accuracy: ε > 0, a root mean square error: the target of the risk is ε².
        failure_probability: δ in (0, 1).
        criterion: `mean` or `worst`.

    Returns:
        (sarl, marl) in trajectories, real numbers; besides, n must reach p for a design of full rank.

    Raises:
        ValueError: an argument is out of range or traced (the quantile is computed on the host).

    Conventions: no ½; the divisor is n. Quantiles keep their relative accuracy for δ down to 1e-300.
    Source: derived, docs/team_learning.md#exact-pac.

    """
    agents, size = check_integer("num_agents", num_agents, 1), check_integer("dim", dim, 1)
    check_choice("criterion", criterion, CRITERIA)
    check_number("noise_variance", noise_variance, 0)
    check_number("accuracy", accuracy, 0, low_open=True)
    check_number("failure_probability", failure_probability, 0, 1, low_open=True, high_open=True)
    numbers = {
        "noise_variance": noise_variance,
        "accuracy": accuracy,
        "failure_probability": failure_probability,
    }
    for name, value in numbers.items():
        check_shape(name, value, ())
        if is_traced(value):
            raise fail(name, "a traced value", "a concrete number")
    noise, root, delta = (np.float64(np.asarray(value)) for value in numbers.values())
    tail = delta if criterion == "mean" else -np.expm1(np.log1p(-delta) / agents)
    shared = agents if criterion == "mean" else 1
    found = []
    for inputs in (agents * size, size):
        quantile = 2.0 * scipy.special.gammainccinv(0.5 * shared * inputs, tail)
        with np.errstate(over="ignore", under="ignore"):
            found.append(float(noise * quantile / shared / root / root))
    return found[0], found[1]


def _accuracy(accuracy: Scalar) -> Float[Array, ""]:
    check_number("accuracy", accuracy, 0, low_open=True)
    check_shape("accuracy", accuracy, ())
    return jnp.asarray(accuracy).astype(jnp.float64)
