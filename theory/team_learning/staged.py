"""How many samples dependent and independent stages take: exact minimax answers beside union bounds.

Symbols: K stages, one an agent, that learn apart; each compares two arms of gap g, the same in all
stages, by m samples an arm with noise N(0, 1), its own (process) reward, and errs with probability
q = Φ(−g√(m/2)). A stage that errs succeeds with probability 1 − g, one that doesn't always. The loss of a
pattern of J errors is gJ/K if stages are independent, and 1 − (1/K) Σ_k Π_{j≤k} p_j in a chain. A team
fails when it loses more than ε. Samples are counted per arm of one stage: 2m trajectories a stage,
K stages one after another if trained in stages.

All is computed on the host, in NumPy and SciPy: nothing may be traced.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import betainc, betaincinv, ndtr, ndtri, ndtri_exp

from boundlab.checks import check_choice, check_integer, check_number, check_shape, fail
from boundlab.precision import is_traced
from boundlab.typing import Count, Scalar

KINDS = ("independent", "dependent")
# All 2^K patterns of errors of dependent stages are held at once.
MOST_DEPENDENT = 16
MOST_INDEPENDENT = 10**5
HALVINGS = 64
# A loss above ε by less than this, relative to ε, equals it.
ROUNDING = 1e-12


class _Suprema(NamedTuple):
    """Samples that gaps just above each threshold take, and these thresholds."""

    gaps: np.ndarray
    samples: np.ndarray


def staged_minimax_samples(
    num_agents: Count, accuracy: Scalar, failure_probability: Scalar, kind: str
) -> float:
    """Fewest samples per arm of one stage with P(loss > ε) ≤ δ whatever the common gap g ≤ 1.

    The supremum over g is approached from above at thresholds, where one more pattern of errors begins
    to fail. Independent stages: g = Kε/j for j = 1, …, K, so that

        N_ind = max_j 2 z(q_j)² j²/(Kε)²,    P(Bin(K, q_j) ≥ j) = δ,  z(q) = −Φ⁻¹(q),

    over those j with q_j < ½. Dependent stages: the g at which a pattern of errors loses exactly ε, with
    q from the patterns that have failed by then.

    Args:
        num_agents: K ≥ 1, up to 16 for `dependent`, 100,000 for `independent`.
        accuracy: ε > 0, in units of the return, which is at most 1.
        failure_probability: δ in (0, 1).
        kind: `independent` or `dependent`.

    Returns:
        m, samples per arm of one stage, a real number; 0 where chance does (ε ≥ 1, or δ large).

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#staged-minimax.

    """
    found = _suprema(*_arguments(num_agents, accuracy, failure_probability, kind), kind)
    return float(np.max(found.samples, initial=0.0))


def staged_worst_gap(
    num_agents: Count, accuracy: Scalar, failure_probability: Scalar, kind: str
) -> float:
    """The threshold g just above which `staged_minimax_samples` are needed.

    Arguments, errors and source as there.

    Returns:
        g in (0, 1); NaN where no samples are needed.

    """
    found = _suprema(*_arguments(num_agents, accuracy, failure_probability, kind), kind)
    if not found.samples.size or found.samples.max() <= 0.0:
        return float("nan")
    return float(found.gaps[np.argmax(found.samples)])


def staged_union_samples(
    num_agents: Count, accuracy: Scalar, failure_probability: Scalar, kind: str
) -> float:
    """Samples per arm of one stage by the way that upper bounds are put together:

        2 z(δ/K)²/ε_1²,    ε_1 = ε if independent, ε/K if dependent.

    Every stage is solved to ε_1 but with probability δ/K, for the worst gap, which is ε_1: the Gaussian
    form of (T2), and of one stage of (T3). Their ratio is K² at all sizes.

    Args:
        num_agents: K ≥ 1.
        accuracy: ε > 0, in units of the return.
        failure_probability: δ in (0, 1).
        kind: `independent` or `dependent`.

    Returns:
        m, samples per arm of one stage, a real number; 0 where a coin does (δ/K ≥ ½) or ε_1 ≥ 1.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#staged-minimax.

    """
    agents, epsilon, delta = _arguments(num_agents, accuracy, failure_probability, kind)
    share = epsilon / agents if kind == "dependent" else epsilon
    if delta / agents >= 0.5 or share >= 1.0:
        return 0.0
    return float(2.0 * (ndtri(delta / agents) / share) ** 2)


def staged_failure(
    num_agents: Count, accuracy: Scalar, gap: Scalar, samples_per_arm: Scalar, kind: str
) -> float:
    """P(loss > ε) of K stages of gap g that each compare their two arms by m samples an arm.

    Args:
        num_agents: K ≥ 1, up to 16 for `dependent`, 100,000 for `independent`.
        accuracy: ε > 0, in units of the return.
        gap: g in [0, 1].
        samples_per_arm: m ≥ 0, of one stage; real.
        kind: `independent` or `dependent`.

    Returns:
        The probability: a binomial tail for `independent`, a sum over 2^K patterns for `dependent`.

    Raises:
        ValueError: an argument is out of range; it is named.

    Source: derived, docs/team_learning.md#staged-minimax.

    """
    agents, epsilon, _ = _arguments(num_agents, accuracy, 0.5, kind)
    size = _number("gap", gap, 0.0, 1.0)
    samples = _number("samples_per_arm", samples_per_arm)
    error = float(ndtr(-size * np.sqrt(samples / 2.0)))
    epsilon *= 1.0 + ROUNDING
    if kind == "independent":
        failing = np.arange(1, agents + 1) * size / agents > epsilon
        if not failing.any():
            return 0.0
        fewest = int(np.argmax(failing)) + 1
        return float(betainc(fewest, agents - fewest + 1, error))
    patterns = _patterns(agents)
    failing = _chain_loss(patterns, np.full(len(patterns), size)) > epsilon
    counts = np.bincount(patterns[failing].sum(axis=1), minlength=agents + 1)
    return float(_probability(counts[None, :], np.array([error]))[0])


def _suprema(agents: int, epsilon: float, delta: float, kind: str) -> _Suprema:
    if kind == "independent":
        j = np.arange(1, agents + 1)
        j = j[j / agents > epsilon]
        errors = betaincinv(j, agents - j + 1, delta)
        gaps = agents * epsilon / j
        depth = np.where(errors < 0.5, ndtri(np.minimum(errors, 0.5)), 0.0)
        return _Suprema(gaps, 2.0 * (depth / gaps) ** 2)
    patterns = _patterns(agents)
    patterns = patterns[_chain_loss(patterns, np.ones(len(patterns))) > epsilon]
    low, high = np.zeros(len(patterns)), np.ones(len(patterns))
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        above = _chain_loss(patterns, middle) > epsilon
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    order = np.argsort(high, kind="stable")
    gaps = high[order]
    sizes = patterns[order].sum(axis=1)
    counts = np.cumsum(sizes[:, None] == np.arange(agents + 1)[None, :], axis=0)
    return _Suprema(gaps, 2.0 * (_depth(counts, delta) / gaps) ** 2)


def _depth(counts: np.ndarray, delta: float) -> np.ndarray:
    """Φ⁻¹(q), q the error of a stage at which the patterns counted have probability δ; 0 where q ≥ ½."""
    agents = counts.shape[1] - 1
    # Some stage errs with at most Kq, so that q isn't below δ/K.
    least = np.full(len(counts), min(np.log(delta / agents), np.log(0.5)))
    most = np.full(len(counts), np.log(0.5))
    needed = _probability(counts, np.exp(most)) > delta
    for _ in range(HALVINGS):
        middle = 0.5 * (least + most)
        often = _probability(counts, np.exp(middle)) > delta
        least, most = np.where(often, least, middle), np.where(often, middle, most)
    return np.where(needed, ndtri_exp(least), 0.0)


def _probability(counts: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Σ_j counts_j q^j (1 − q)^{K−j} for (rows, K + 1) counts and (rows,) q ≤ ½, by Horner's rule."""
    odds = errors / (1.0 - errors)
    total = np.zeros(len(counts))
    for column in counts.T[::-1]:
        total = total * odds + column
    return total * np.exp((counts.shape[1] - 1) * np.log1p(-errors))


def _patterns(agents: int) -> np.ndarray:
    """All 2^K patterns of errors (2^K, K), 1 where a stage errs."""
    return (np.arange(2**agents)[:, None] >> np.arange(agents)[None, :]) & 1


def _chain_loss(patterns: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    """1 − J_dep of each pattern at its gap, as a sum of positive terms."""
    failed, total = np.zeros(len(gaps)), np.zeros(len(gaps))
    for errs in patterns.T:
        failed = failed + (1.0 - failed) * gaps * errs
        total = total + failed
    return total / patterns.shape[1]


def _arguments(
    num_agents: Count, accuracy: Scalar, failure_probability: Scalar, kind: str
) -> tuple[int, float, float]:
    check_choice("kind", kind, KINDS)
    most = MOST_DEPENDENT if kind == "dependent" else MOST_INDEPENDENT
    agents = check_integer("num_agents", num_agents, 1, most)
    epsilon = _number("accuracy", accuracy, inside=True)
    delta = _number("failure_probability", failure_probability, 0.0, 1.0, inside=True)
    return agents, epsilon, delta


def _number(
    name: str, value: Scalar, low: float = 0.0, high: float = np.inf, *, inside: bool = False
) -> float:
    """One concrete number in [low, high], with `inside` in the open interval."""
    if is_traced(value):
        raise fail(name, "a traced value", "a concrete number: suprema are searched on the host")
    check_number(name, value, low, high, low_open=inside, high_open=inside)
    check_shape(name, value, ())
    return float(np.asarray(value))
