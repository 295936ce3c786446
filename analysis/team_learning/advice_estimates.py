"""What `advise` needs to know of a team task: the mean reward, its noise, its alignment with an interval.

Symbols: agents k = 1 … K with A_k actions; C = ΠA_k joint actions (cells); R(c) the mean reward of cell
c, n_c its episodes, ȳ_c their mean, v_c = σ_c²/n_c its variance. Under *uniform* actions, however the
logs were drawn, V = Var R, V_k = Var E[R | a_k] and A₁ = ΣV_k/V.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from boundlab.checks import check_number, check_shape, fail

MOST_CELLS = 2**20
"""Joint actions that are enumerated."""
LARGEST = 1e100
"""Of rewards and noise: squares of them are summed."""
SMALLEST = 1e-100
"""Spread of rewards, unless they are equal: its square must not underflow."""
COVERAGE_Z = 1.959964
"""Standard normal quantile of a two-sided interval of 95 %."""
SHARES = np.linspace(0.0, 1.0, 2001)
"""Values of A₁ that are tried for the interval."""


class TeamTask(NamedTuple):
    """A task as `advise` sees it; `visits` is None where the mean reward is given, not estimated."""

    reward: Float[np.ndarray, "*actions"]
    """Mean reward of every joint action; from logs, with the spread that noise adds taken off."""
    noise_std: float
    """Of one episode's team reward (outcome) about it."""
    alignment: float
    interval: tuple[float, float]
    teammates_variance: Float[np.ndarray, " K"]
    """Mean over a_k of Var(R | a_k), noise removed: what uniform teammates add to an agent's noise."""
    visits: Int[np.ndarray, "*actions"] | None


def task_of_tensor(reward: Any, noise_std: float) -> TeamTask:
    """The task of a known mean reward (A_1, …, A_K); errors name `reward`."""
    check_number("reward", reward, -LARGEST, LARGEST)
    tensor = np.asarray(reward, dtype=np.float64)
    if tensor.ndim < 1 or not 1 <= tensor.size <= MOST_CELLS:
        accepted = f"an axis an agent, from 1 to {MOST_CELLS} joint actions"
        raise fail("reward", f"shape {tensor.shape}", accepted)
    _check_spread("reward", tensor)
    whole, main = _sums_of_squares(tensor)
    share = 1.0 if _additive(tensor.shape) or whole == 0.0 else min(1.0, float(main.sum()) / whole)
    return TeamTask(tensor, noise_std, share, (share, share), np.maximum(whole - main, 0.0), None)


def task_of_logs(actions: Any, rewards: Any, noise_std: float | None) -> TeamTask:
    """The task behind logged episodes, estimated from cell means; errors name `actions` or `rewards`."""
    cells, shape, y = _check_logs(actions, rewards)
    counts = np.bincount(cells, minlength=math.prod(shape))
    if (counts == 0).any():
        missing = np.unravel_index(int(np.argmin(counts)), shape)
        got = f"no episode of {(counts == 0).sum()} of {counts.size} joint actions, as of "
        got += f"{tuple(int(a) for a in missing)}"
        raise fail("actions", got, "every joint action at least once: its mean reward is needed")
    offset = float(y.mean())
    mean = np.bincount(cells, y - offset) / counts
    within = np.bincount(cells, (y - offset - mean[cells]) ** 2)
    spare = len(y) - counts.size
    if noise_std is not None:
        noise, by_cell = noise_std, np.full(counts.size, noise_std**2)
    elif spare:
        noise = math.sqrt(float(within.sum()) / spare)
        # A cell's own estimate, so that unequal noise doesn't matter; pooled where it has none.
        several = counts > 1
        by_cell = np.where(several, within / np.where(several, counts - 1, 1), noise**2)
    else:
        got = "each joint action once"
        raise fail("actions", got, "one of them twice, or noise_std: noise can't be estimated")
    tensor = mean.reshape(shape)
    v = (by_cell / counts).reshape(shape)
    visits = counts.reshape(shape)
    whole, main = _sums_of_squares(tensor)
    ranks = np.array(shape) - 1.0
    quiet = float(v.mean()) / counts.size  # what one degree of freedom of noise adds to V
    denoised, total = main - ranks * quiet, whole - (counts.size - 1.0) * quiet
    share, interval = 1.0, (1.0, 1.0)
    if not _additive(shape):
        share = min(max(float(denoised.sum()) / total, 0.0), 1.0) if total > 0.0 else 1.0
        interval = _interval(tensor, v, visits, share, known=noise_std is not None)
    estimate = _rescaled(tensor, main, whole, denoised, total)
    whole, main = _sums_of_squares(estimate)
    teammates = np.maximum(whole - main, 0.0)
    return TeamTask(estimate + offset, noise, share, interval, teammates, visits)


def _rescaled(
    mean: np.ndarray, main: np.ndarray, whole: float, denoised: np.ndarray, total: float
) -> Float[np.ndarray, "*actions"]:
    """Cell means whose effects are shrunk until their sums of squares are the unbiased estimates.

    The largest of many noisy means is too large, and with it the floor; the spread of these is right.
    """
    effects, agents = main_effects(mean), range(mean.ndim)
    rest = mean - mean.mean()
    estimate = np.full_like(mean, mean.mean())
    for k, effect in enumerate(effects):
        along = effect.reshape([-1 if j == k else 1 for j in agents])
        rest = rest - along
        estimate = estimate + along * _shrinkage(float(denoised[k]), float(main[k]))
    return estimate + rest * _shrinkage(total - float(denoised.sum()), whole - float(main.sum()))


def _shrinkage(denoised: float, found: float) -> float:
    return math.sqrt(min(max(denoised / found, 0.0), 1.0)) if found > 0.0 else 0.0


def main_effects(tensor: Float[np.ndarray, "*actions"]) -> list[Float[np.ndarray, " actions"]]:
    """Means over uniform teammates less the mean of all, an array (A_k,) an agent."""
    centred = tensor - tensor.ravel()[0]
    centred = centred - centred.mean()
    axes = range(tensor.ndim)
    return [centred.mean(axis=tuple(j for j in axes if j != k)) for k in axes]


def _sums_of_squares(tensor: np.ndarray) -> tuple[float, Float[np.ndarray, " K"]]:
    """V and the V_k of a tensor."""
    centred = tensor - tensor.ravel()[0]
    main = np.array([np.mean(effect**2) for effect in main_effects(tensor)])
    return float(np.var(centred)), main


def _additive(shape: tuple[int, ...]) -> bool:
    """Whether every reward of this shape is a sum over agents: at most one agent has a choice."""
    return sum(a > 1 for a in shape) <= 1


def _interval(
    mean: np.ndarray, v: np.ndarray, visits: np.ndarray, share: float, *, known: bool
) -> tuple[float, float]:
    """95 % interval of A₁: all t that the statistic ΣV_k − tV doesn't reject (Fieller).

    With M_t the matrix of that quadratic form of the cell means, its unbiased estimate has the variance
    4 RᵀM_tΣM_tR + 2 tr(M_tΣM_tΣ), Σ = diag(v), plus that of the noise taken off. The first term is
    estimated by 4(ȳᵀM_tΣM_tȳ − tr), at least 0: it vanishes where the form does, which keeps the interval
    of an additive task from closing up around 1.
    """
    cells, ranks = mean.size, np.array(mean.shape) - 1.0
    agents = range(mean.ndim)
    effects = main_effects(mean)
    additive = np.zeros_like(mean)
    for k, effect in enumerate(effects):
        additive = additive + effect.reshape([-1 if j == k else 1 for j in agents])
    centred = mean - mean.mean()

    def quadratic(aa: float, ab: float, bb: float) -> np.ndarray:
        """⟨a − tb, a − tb⟩ at every t of SHARES."""
        return aa - 2.0 * SHARES * ab + SHARES**2 * bb

    # M_t = (P − tQ)/C: P projects on the main effects, Q takes the mean off.
    moved = quadratic(
        float(np.sum(v * additive**2)),
        float(np.sum(v * additive * centred)),
        float(np.sum(v * centred**2)),
    )
    traces = quadratic(*_traces(v))
    diagonal = ranks.sum() - SHARES * (cells - 1.0)  # of P − tQ, times C
    single = np.zeros_like(v) if known else v**2 * 2.0 / (visits + 1.0)
    # Estimated variances: their squares are too large by (n_c + 1)/(n_c − 1) on average.
    traces -= (diagonal / cells) ** 2 * float(single.sum())
    weight = np.ones_like(v)
    if not known:
        once = visits == 1
        spare = float((visits - 1).sum())
        pooled = once.sum() * (visits - 1.0) * visits / spare
        weight = np.where(once, 0.0, 1.0 + pooled)
    taken_off = (diagonal / cells) ** 2 * float(np.sum(weight**2 * single))
    variance = 4.0 * np.maximum(moved - traces, 0.0) + 2.0 * np.maximum(traces, 0.0) + taken_off
    whole, main = _sums_of_squares(mean)
    form = cells * (float(main.sum()) - SHARES * whole) - diagonal / cells * float(v.sum())
    kept = SHARES[form**2 <= COVERAGE_Z**2 * variance]
    return float(min([share, *kept])), float(max([share, *kept]))


def _traces(v: np.ndarray) -> tuple[float, float, float]:
    """tr(PΣPΣ), tr(PΣQΣ) and tr(QΣQΣ) for Σ = diag(v), from marginal sums of v."""
    cells, agents = v.size, range(v.ndim)
    total, squares = float(v.sum()), float(np.sum(v**2))

    def pair(k: int, j: int) -> float:
        """Σ (A_k δ_k − 1)(A_j δ_j − 1) v v' over pairs of cells, δ_k = 1 where they agree in k."""
        sizes = v.shape[k] * v.shape[j]
        marginal = v.sum(axis=tuple(i for i in agents if i not in (k, j)))
        return sizes * float(np.sum(marginal**2)) - single(k) - single(j) - total**2

    def single(k: int) -> float:
        """Σ (A_k δ_k − 1) v v' over pairs of cells."""
        marginal = v.sum(axis=tuple(i for i in agents if i != k))
        return v.shape[k] * float(np.sum(marginal**2)) - total**2

    main = sum(pair(k, j) for k in agents for j in agents) / cells**2
    ranks = sum(v.shape) - v.ndim
    crossed = (ranks * squares - sum(single(k) for k in agents) / cells) / cells
    centred = squares * (1.0 - 2.0 / cells) + total**2 / cells**2
    return main, crossed, centred


def _check_logs(actions: Any, rewards: Any) -> tuple[np.ndarray, tuple[int, ...], np.ndarray]:
    """Cell of each episode, numbers of actions, rewards."""
    check_shape("actions", actions, (None, None), "one row an episode, one column an agent")
    check_number("actions", actions, 0, why="each agent's actions are numbered from 0")
    table = np.asarray(actions)
    if table.dtype.kind not in "iu":
        raise fail("actions", f"values of type {table.dtype}", "integers from 0")
    check_shape("rewards", rewards, (len(table),), "the team's reward of each episode")
    check_number("rewards", rewards, -LARGEST, LARGEST)
    shape = tuple(int(most) + 1 for most in table.max(axis=0))
    if math.prod(shape) > MOST_CELLS:
        accepted = f"at most {MOST_CELLS} joint actions"
        raise fail("actions", f"{math.prod(shape)} joint actions {shape}", accepted)
    cells = np.ravel_multi_index(tuple(table.T.astype(np.int64)), shape)
    y = np.asarray(rewards, dtype=np.float64)
    _check_spread("rewards", y)
    return cells, shape, y


def _check_spread(name: str, rewards: np.ndarray) -> None:
    spread = float(np.ptp(rewards))
    if 0.0 < spread < SMALLEST:
        raise fail(name, f"a spread of {spread:.2g}", f"equal rewards, or a spread ≥ {SMALLEST:g}")
